//! Claims a work item under a lease, and the session that it is bound to.
//!
//! As with instances, nothing here waits: rows are locked with SKIP LOCKED, a session's key is only
//! tried, and what somebody else holds is passed over.

use crate::clock::{Clock, visible_until};
use crate::db::{Db, Planning, Statement, types::*};
use crate::error::Result;
use crate::pg::advisory::Key;
use crate::pg::spi::{self, Rows, Value};
use crate::pg::values::{Text, TextArray, TextBuf};
use crate::pg::{encoding, lock_timeout, probe, transaction};
use crate::queue::claim_instance::new_lock_token;
use crate::queue::scan_start::{self, Place, Ready, Row, Scan, Statements, ready};
use std::cell::Cell;

/// Which tags a worker takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TagMode {
    /// Only items without a tag.
    DefaultOnly,
    /// Only items with one of the given tags.
    Tags,
    /// Items without a tag and those with one of the given.
    DefaultAnd,
    /// Everything.
    Any,
}

impl TagMode {
    fn name(self) -> &'static [u8] {
        match self {
            TagMode::DefaultOnly => b"default_only",
            TagMode::Tags => b"tags",
            TagMode::DefaultAnd => b"default_and",
            TagMode::Any => b"any",
        }
    }
}

/// What a worker asks for.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) clock: Clock,
    pub(crate) lock_timeout_ms: i64,
    /// Without an owner, items that are bound to a session are left alone.
    pub(crate) owner_id: Option<Text>,
    /// Length of the session's lease; `None` for that of the item.
    pub(crate) session_lock_timeout_ms: Option<i64>,
    pub(crate) tags: Option<TextArray>,
    pub(crate) tag_mode: TagMode,
}

/// A claimed work item.
#[derive(Debug)]
pub(crate) struct ClaimedWorkItem {
    pub(crate) work_item: TextBuf,
    pub(crate) lock_token: String,
    pub(crate) attempt_count: i32,
}

struct Candidate {
    id: i64,
    session: Option<(Vec<u8>, Key)>,
    /// What the item says, if the scan has locked its row.
    locked: Option<TextBuf>,
}

/// What a look at the queue came to.
enum Looked {
    Claimed(ClaimedWorkItem),
    /// There are candidates, and none of them could be had.
    PassedOver,
    Nothing,
}

/// Claims the first free work item in order of (visible_at, id).
pub(crate) fn claim(db: &Db, request: &Request) -> Result<Option<ClaimedWorkItem>> {
    let memories = db.memories();
    let mut passed_over = Vec::new();
    // Where nothing can be written nothing can be locked, but a poll of an empty queue works.
    let locks_head = memories.plain_claims.begin() && !transaction::is_read_only();
    if locks_head
        && let Looked::Claimed(claimed) =
            look(db, request, true, memories.tried.first_window(), &mut passed_over)?
    {
        memories.plain_claims.claimed(false);
        return Ok(Some(claimed));
    }
    for window in memories.tried.windows() {
        match look(db, request, false, window, &mut passed_over)? {
            Looked::Claimed(claimed) => {
                memories.plain_claims.claimed(locks_head);
                return Ok(Some(claimed));
            }
            Looked::PassedOver => {}
            Looked::Nothing => break,
        }
    }
    Ok(None)
}

/// Looks at the first candidates that have not been passed over, and claims the first that can be had.
fn look(
    db: &Db,
    request: &Request,
    locks_head: bool,
    window: i64,
    passed_over: &mut Vec<i64>,
) -> Result<Looked> {
    let memories = db.memories();
    let is_repeated = !passed_over.is_empty();
    let scan = CandidateScan { request, passed_over, locks_head: Cell::new(locks_head) };
    let mut candidates =
        scan_start::candidates(&scan, db, &memories.work_items, window, Place::FIRST, is_repeated)?;
    let Some(first) = candidates.first_mut() else { return Ok(Looked::Nothing) };
    if let Some(work_item) = first.locked.take() {
        passed_over.push(first.id);
        return Ok(mark(db, request, first.id, work_item)?.map_or(Looked::PassedOver, Looked::Claimed));
    }
    let mut rest = candidates.as_slice();
    while let Some(first) = rest.first() {
        pgrx::check_for_interrupts!();
        // A run of items that are bound to no session is tried in one statement.
        let run = match first.session {
            Some(_) => 1,
            None => rest.iter().take_while(|candidate| candidate.session.is_none()).count(),
        };
        let ids: Vec<i64> = rest[..run].iter().map(|candidate| candidate.id).collect();
        let claimed = match &first.session {
            Some((session_id, key)) => claim_with_session(db, request, first.id, session_id, *key)?,
            None => take(db, request, &ids)?,
        };
        if let Some((id, claimed)) = claimed {
            let tried = ids.iter().take_while(|&&tried| tried != id).count() + 1;
            memories.tried.note((passed_over.len() + tried) as i64);
            return Ok(Looked::Claimed(claimed));
        }
        passed_over.extend(ids);
        rest = &rest[run..];
    }
    Ok(Looked::PassedOver)
}

macro_rules! has_its_tag {
    () => {
        "CASE $6 WHEN 'default_only' THEN w.tag IS NULL
              WHEN 'tags' THEN w.tag = ANY ($7)
              WHEN 'default_and' THEN w.tag IS NULL OR w.tag = ANY ($7)
              ELSE true END"
    };
}

/// What both ways to a candidate ask of it. `$5` is the owner; without one, no item of a session
/// qualifies.
macro_rules! for_this_worker {
    () => {
        concat!(
            has_its_tag!(),
            "
  AND (w.session_id IS NULL
       OR ($5 IS NOT NULL
           AND (SELECT s.locked_until > $2 AND s.worker_id <> $5 FROM {q}.sessions s
                WHERE s.session_id = w.session_id) IS NOT TRUE))
  AND w.id <> ALL ($3)"
        )
    };
}

/// The first unclaimed item that nobody else has locked, and its lock: many workers that claim at once pass over each
/// other's items here. Not while any item is bound to a session: the row of such a one is locked under the key of its
/// session only, since the session's worker would pass over it, and it may come first.
static LOCK_HEAD: Ready = ready! {
    ["
SELECT w.id, NULL::text, NULL::bigint, w.visible_at, NULL::bigint, w.work_item
FROM {q}.worker_queue w
WHERE w.lock_token IS NULL AND w.visible_at <= $1"],
    " AND (w.visible_at, w.id) >= ($8, $9)",
    ["
  AND w.session_id IS NULL AND ", has_its_tag!(), "
ORDER BY w.visible_at, w.id
LIMIT 1
FOR UPDATE OF w SKIP LOCKED"],
    [TIMESTAMPTZ, INT8, INT8S, INT8, TEXT, TEXT, TEXTS]
};

macro_rules! candidate {
    () => {
        "
SELECT w.id, w.session_id, pg_catalog.hashtext({key} || 'session.' || w.session_id)::bigint,
       w.visible_at, w.locked_until, NULL::text
FROM {q}.worker_queue w
WHERE "
    };
}

/// Unclaimed items. Those of the future are behind where it ends, live leases are not in its index.
static READY: Ready = ready! {
    [candidate!(), "w.lock_token IS NULL AND w.visible_at <= $1"],
    " AND (w.visible_at, w.id) >= ($8, $9)",
    ["
  AND ", for_this_worker!(), "
ORDER BY w.visible_at, w.id
LIMIT $4"],
    [TIMESTAMPTZ, INT8, INT8S, INT8, TEXT, TEXT, TEXTS]
};

/// Items of expired leases, in the order of the claim up to a thousand that have expired at once.
static EXPIRED: Statement = Statement {
    text: concat!(
        candidate!(),
        "w.lock_token IS NOT NULL AND w.locked_until <= $2 AND w.locked_until >= $8 AND (w.visible_at <= $1) IS TRUE
  AND ",
        for_this_worker!(),
        "
ORDER BY w.locked_until, w.id
LIMIT GREATEST($4, 1000)"
    ),
    parameters: &[TIMESTAMPTZ, INT8, INT8S, INT8, TEXT, TEXT, TEXTS, INT8],
    planning: Planning::InIndexOrder,
};

/// Whether a lease has expired, and whether any item is bound to a session, claimable or not. ORDER BY leaves the planner
/// no indexes but those of leases and of sessions.
static ANY_EXPIRED_OR_BOUND: Statement = Statement {
    text: "
SELECT (SELECT true FROM {q}.worker_queue w
        WHERE w.lock_token IS NOT NULL AND w.locked_until <= $1 AND w.locked_until >= $2
        ORDER BY w.locked_until LIMIT 1),
       (SELECT true FROM {q}.worker_queue w WHERE w.session_id IS NOT NULL ORDER BY w.session_id LIMIT 1)",
    parameters: &[INT8, INT8],
    planning: Planning::InIndexOrder,
};

/// Whether there is anything to look at.
static ANY: Statement = Statement {
    text: "
SELECT coalesce(
  (SELECT true FROM {q}.worker_queue w WHERE w.lock_token IS NULL AND w.visible_at <= $1
   ORDER BY w.visible_at, w.id LIMIT 1),
  (SELECT true FROM {q}.worker_queue w WHERE w.lock_token IS NOT NULL AND w.locked_until <= $2
   ORDER BY w.locked_until, w.id LIMIT 1))",
    parameters: &[TIMESTAMPTZ, INT8],
    planning: Planning::InIndexOrder,
};

/// Unclaimed items that are newer than their place says.
static NEWER: Statement = Statement {
    text: concat!(
        candidate!(),
        "w.id > $10 AND w.lock_token IS NULL AND (w.visible_at <= $1) IS TRUE AND ((w.visible_at, w.id) < ($8, $9)) IS TRUE
  AND ",
        for_this_worker!(),
        "
ORDER BY w.id
LIMIT $4"
    ),
    parameters: &[TIMESTAMPTZ, INT8, INT8S, INT8, TEXT, TEXT, TEXTS, TIMESTAMPTZ, INT8, INT8],
    planning: Planning::InIndexOrder,
};

static HIGHEST_ID: Statement = Statement {
    text: "
SELECT coalesce((SELECT pg_catalog.max(w.id) FROM {q}.worker_queue w),
                CASE WHEN pg_catalog.has_sequence_privilege(s.name, 'USAGE')
                     THEN pg_catalog.pg_sequence_last_value(s.name::regclass) END)
FROM (SELECT pg_catalog.pg_get_serial_sequence(pg_catalog.quote_ident({name}) || '.worker_queue', 'id') AS name
      OFFSET 0) s",
    parameters: &[],
    planning: Planning::ByIndex,
};

struct CandidateScan<'r> {
    request: &'r Request,
    passed_over: &'r [i64],
    /// Whether to lock the first item as it is found. Not any more where an item is bound to a session.
    locks_head: Cell<bool>,
}

impl Scan for CandidateScan<'_> {
    type Candidate = Candidate;

    fn statements(&self) -> Statements {
        Statements { any: &ANY, expired: &EXPIRED, newer: &NEWER, highest_id: &HIGHEST_ID }
    }

    fn passes_over_others(&self) -> bool {
        self.locks_head.get()
    }

    fn is_any_expired(&self, db: &Db, now_ms: i64, from_ms: i64) -> bool {
        let rows = db.query(&ANY_EXPIRED_OR_BOUND, &[now_ms.into(), from_ms.into()]);
        let [is_expired, is_bound] = [1, 2].map(|column| rows.first().and_then(|row| row.bool(column)));
        self.locks_head.set(self.locks_head.get() && is_bound.is_none());
        is_expired.is_some()
    }

    fn ready<'d>(&self, db: &'d Db, now_ms: i64, window: i64, start: Place, are_first: bool) -> Rows<'d> {
        let arguments = self.arguments(now_ms, window);
        if !(self.locks_head.get() && are_first) {
            return READY.query(db, &arguments, start);
        }
        lock_timeout::at_least_a_second(db.schema(), &[c"worker_queue"], || {
            LOCK_HEAD.query(db, &arguments, start)
        })
    }

    fn filter(&self) -> u64 {
        let Request { owner_id, tags, tag_mode, .. } = *self.request;
        scan_start::filter(&(
            owner_id.as_ref().map(Text::bytes),
            tags.as_ref().map(TextArray::bytes),
            tag_mode,
        ))
    }

    fn now_ms(&self) -> Result<i64> {
        self.request.clock.now_ms()
    }

    fn arguments(&self, now_ms: i64, window: i64) -> Vec<Value<'_>> {
        vec![
            visible_until(now_ms).into(),
            now_ms.into(),
            self.passed_over.into(),
            window.into(),
            self.request.owner_id.into(),
            self.request.tag_mode.name().into(),
            self.request.tags.into(),
        ]
    }

    fn row(&self, row: &spi::Row<'_>) -> Option<Row<Candidate>> {
        let id = row.int8(1)?;
        let session = row.text(2).zip(row.int8(3)).map(|(session_id, key)| (session_id.to_vec(), Key(key)));
        Some(Row {
            place: Place { visible_at: row.timestamptz(4)?, id },
            lease_end_ms: row.int8(5),
            candidate: Candidate { id, session, locked: row.text_buf(6) },
        })
    }
}

/// Claims an item whose row this transaction has locked.
static MARK: Statement = Statement {
    text: "
UPDATE {q}.worker_queue w
SET lock_token = $2, locked_until = $3, attempt_count = LEAST(w.attempt_count, 2147483646) + 1
WHERE w.id = $1
RETURNING w.attempt_count",
    parameters: &[INT8, TEXT, INT8],
    planning: Planning::ByIndex,
};

fn mark(db: &Db, request: &Request, id: i64, work_item: TextBuf) -> Result<Option<ClaimedWorkItem>> {
    if !encoding::reaches_client(&work_item.0) {
        return Ok(None);
    }
    let lock_token = new_lock_token();
    let marked = lock_timeout::at_least_a_second(db.schema(), &[c"worker_queue"], || {
        let until_ms = request.clock.lease_end_ms(request.lock_timeout_ms)?;
        Ok(db.query(&MARK, &[id.into(), lock_token.as_bytes().into(), until_ms.into()]))
    })?;
    // A trigger of the owner's may have kept the row as it was.
    let Some(row) = marked.first() else { return Ok(None) };
    let attempt_count = row.int4(1).unwrap_or(0);
    Ok(Some(ClaimedWorkItem { work_item, lock_token, attempt_count }))
}

/// Takes the first of the given items that nobody else holds or has taken since.
static TAKE: Statement = Statement {
    text: "
WITH free AS (
  SELECT w.id FROM {q}.worker_queue w
  WHERE w.id = ANY ($1) AND (w.visible_at <= $2) IS TRUE AND (w.lock_token IS NULL OR w.locked_until <= $3)
  ORDER BY w.visible_at, w.id
  LIMIT 1
  FOR UPDATE SKIP LOCKED
)
UPDATE {q}.worker_queue w
SET lock_token = $4, locked_until = $5, attempt_count = LEAST(w.attempt_count, 2147483646) + 1
FROM free
WHERE w.id = free.id
RETURNING w.work_item, w.attempt_count, w.id",
    parameters: &[INT8S, TIMESTAMPTZ, INT8, TEXT, INT8],
    planning: Planning::ByIndex,
};

/// The item and its id.
fn take(db: &Db, request: &Request, ids: &[i64]) -> Result<Option<(i64, ClaimedWorkItem)>> {
    if ids.is_empty() {
        return Ok(None);
    }
    let lock_token = new_lock_token();
    let rows = lock_timeout::at_least_a_second(db.schema(), &[c"worker_queue"], || {
        let now_ms = request.clock.now_ms()?;
        let until_ms = request.clock.lease_end_ms(request.lock_timeout_ms)?;
        let token = lock_token.as_bytes();
        Ok(db.query(
            &TAKE,
            &[ids.into(), visible_until(now_ms).into(), now_ms.into(), token.into(), until_ms.into()],
        ))
    })?;
    let Some((row, id)) = rows.first().and_then(|row| Some((row, row.int8(3)?))) else { return Ok(None) };
    let work_item = row.text(1).unwrap_or_default();
    if !encoding::reaches_client(work_item) {
        db.query(&PUT_BACK, &[lock_token.as_bytes().into()]);
        let others: Vec<i64> = ids.iter().copied().filter(|&other| other != id).collect();
        return take(db, request, &others);
    }
    let claimed = ClaimedWorkItem {
        work_item: TextBuf(work_item.to_vec()),
        attempt_count: row.int4(2).unwrap_or(0),
        lock_token,
    };
    Ok(Some((id, claimed)))
}

/// For an item that this client cannot be sent; another may have an encoding for it.
static PUT_BACK: Statement = Statement {
    text: "
UPDATE {q}.worker_queue w
SET lock_token = NULL, locked_until = NULL, attempt_count = w.attempt_count - 1
WHERE w.lock_token = $1",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// The session's row, if there is one that nobody else holds.
static LOCK_SESSION: Statement = Statement {
    text: "
SELECT s.worker_id = $2 OR s.locked_until <= $3
FROM {q}.sessions s
WHERE s.session_id = $1
FOR UPDATE SKIP LOCKED",
    parameters: &[TEXT, TEXT, INT8],
    planning: Planning::ByIndex,
};

static SESSION_EXISTS: Statement = Statement {
    text: "SELECT EXISTS (SELECT FROM {q}.sessions s WHERE s.session_id = $1)",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

static OPEN_SESSION: Statement = Statement {
    text: "
INSERT INTO {q}.sessions AS s (session_id, worker_id, locked_until, last_activity_at)
VALUES ($1, $2, $3, $4)
ON CONFLICT (session_id) DO UPDATE
SET worker_id = EXCLUDED.worker_id,
    locked_until = CASE WHEN s.worker_id = EXCLUDED.worker_id
                        THEN GREATEST(s.locked_until, EXCLUDED.locked_until)
                        ELSE EXCLUDED.locked_until END,
    last_activity_at = EXCLUDED.last_activity_at",
    parameters: &[TEXT, TEXT, INT8, INT8],
    planning: Planning::ByIndex,
};

/// Claims an item of a session, and the session with it unless another worker has it.
fn claim_with_session(
    db: &Db,
    request: &Request,
    id: i64,
    session_id: &[u8],
    key: Key,
) -> Result<Option<(i64, ClaimedWorkItem)>> {
    if !key.try_lock() {
        return Ok(None);
    }
    let claimed = if may_have_session(db, request, session_id)? { take(db, request, &[id])? } else { None };
    if claimed.is_none() {
        key.unlock();
        return Ok(None);
    }
    let length_ms = request.session_lock_timeout_ms.unwrap_or(request.lock_timeout_ms);
    lock_timeout::at_least_a_second(db.schema(), &[c"sessions"], || {
        let until_ms = request.clock.lease_end_ms(length_ms)?;
        let now_ms = request.clock.now_ms()?;
        db.query(
            &OPEN_SESSION,
            &[session_id.into(), request.owner_id.into(), until_ms.into(), now_ms.into()],
        );
        Ok(())
    })?;
    Ok(claimed)
}

fn may_have_session(db: &Db, request: &Request, session_id: &[u8]) -> Result<bool> {
    let now_ms = request.clock.now_ms()?;
    let locked = lock_timeout::at_least_a_second(db.schema(), &[c"sessions"], || {
        db.query(&LOCK_SESSION, &[session_id.into(), request.owner_id.into(), now_ms.into()])
    });
    if let Some(row) = locked.first() {
        return Ok(row.bool(1) == Some(true));
    }
    let exists = db.query(&SESSION_EXISTS, &[session_id.into()]).first().and_then(|row| row.bool(1));
    Ok(exists == Some(false) && !probe::in_flight(db.schema(), c"sessions", session_id))
}
