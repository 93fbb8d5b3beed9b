//! Claims a work item under a lease, and the session that it is bound to.
//!
//! As with instances, nothing here waits: rows are locked with SKIP LOCKED, a session's key is only
//! tried, and what somebody else holds is passed over.

use crate::clock::{Clock, visible_until};
use crate::db::{Db, Planning, Statement, types::*};
use crate::error::Result;
use crate::pg::advisory::Key;
use crate::pg::values::{Text, TextArray, TextBuf};
use crate::pg::{encoding, lock_timeout, probe};
use crate::queue::claim_instance::new_lock_token;
use crate::queue::rounds;

/// Which tags a worker takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// Claims the first free work item in order of (visible_at, id).
pub(crate) fn claim(db: &Db, request: &Request) -> Result<Option<ClaimedWorkItem>> {
    let mut passed_over: Vec<i64> = Vec::new();
    for window in rounds::windows() {
        let candidates = candidates(db, request, &passed_over, window)?;
        if candidates.is_empty() {
            return Ok(None);
        }
        let mut rest = candidates.as_slice();
        while let Some(first) = rest.first() {
            pgrx::check_for_interrupts!();
            let claimed = match &first.session {
                Some((session_id, key)) => {
                    let claimed = claim_with_session(db, request, first.id, session_id, *key)?;
                    passed_over.push(first.id);
                    rest = &rest[1..];
                    claimed
                }
                None => {
                    // A run of items that are bound to no session is tried in one statement.
                    let run = rest.iter().take_while(|candidate| candidate.session.is_none()).count();
                    let ids: Vec<i64> = rest[..run].iter().map(|candidate| candidate.id).collect();
                    rest = &rest[run..];
                    let claimed = take(db, request, &ids)?;
                    passed_over.extend(ids);
                    claimed
                }
            };
            if claimed.is_some() {
                return Ok(claimed);
            }
        }
    }
    Ok(None)
}

/// Two partial indexes, as for instances: unclaimed items, and claimed ones by the end of their
/// lease. `$5` is the owner; without one, no item of a session qualifies.
static CANDIDATES: Statement = Statement {
    text: "
SELECT c.id, c.session_id, pg_catalog.hashtext({key} || 'session.' || c.session_id)::bigint
FROM ((SELECT w.id, w.session_id, w.visible_at
       FROM {q}.worker_queue w
       WHERE w.lock_token IS NULL AND w.visible_at <= $1
         AND CASE $6 WHEN 'default_only' THEN w.tag IS NULL
                     WHEN 'tags' THEN w.tag = ANY ($7)
                     WHEN 'default_and' THEN w.tag IS NULL OR w.tag = ANY ($7)
                     ELSE true END
         AND (w.session_id IS NULL
              OR ($5 IS NOT NULL
                  AND (SELECT s.locked_until > $2 AND s.worker_id <> $5 FROM {q}.sessions s
                       WHERE s.session_id = w.session_id) IS NOT TRUE))
         AND w.id <> ALL ($3)
       ORDER BY w.visible_at, w.id
       LIMIT $4)
      UNION ALL
      (SELECT w.id, w.session_id, w.visible_at
       FROM {q}.worker_queue w
       WHERE w.lock_token IS NOT NULL AND w.locked_until <= $2 AND (w.visible_at <= $1) IS TRUE
         AND CASE $6 WHEN 'default_only' THEN w.tag IS NULL
                     WHEN 'tags' THEN w.tag = ANY ($7)
                     WHEN 'default_and' THEN w.tag IS NULL OR w.tag = ANY ($7)
                     ELSE true END
         AND (w.session_id IS NULL
              OR ($5 IS NOT NULL
                  AND (SELECT s.locked_until > $2 AND s.worker_id <> $5 FROM {q}.sessions s
                       WHERE s.session_id = w.session_id) IS NOT TRUE))
         AND w.id <> ALL ($3)
       ORDER BY w.locked_until, w.id
       LIMIT GREATEST($4, 1000))) c
ORDER BY c.visible_at, c.id",
    parameters: &[TIMESTAMPTZ, INT8, INT8S, INT8, TEXT, TEXT, TEXTS],
    planning: Planning::InIndexOrder,
};

fn candidates(db: &Db, request: &Request, passed_over: &[i64], window: i64) -> Result<Vec<Candidate>> {
    let now_ms = request.clock.now_ms()?;
    let mode: &[u8] = match request.tag_mode {
        TagMode::DefaultOnly => b"default_only",
        TagMode::Tags => b"tags",
        TagMode::DefaultAnd => b"default_and",
        TagMode::Any => b"any",
    };
    let rows = db.query(
        &CANDIDATES,
        &[
            visible_until(now_ms).into(),
            now_ms.into(),
            passed_over.into(),
            window.into(),
            request.owner_id.into(),
            mode.into(),
            request.tags.into(),
        ],
    );
    Ok(rows
        .iter()
        .filter_map(|row| {
            let session = row.text(2).zip(row.int8(3)).map(|(id, key)| (id.to_vec(), Key(key)));
            Some(Candidate { id: row.int8(1)?, session })
        })
        .collect())
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

fn take(db: &Db, request: &Request, ids: &[i64]) -> Result<Option<ClaimedWorkItem>> {
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
    let Some(row) = rows.first() else { return Ok(None) };
    let work_item = row.text(1).unwrap_or_default();
    if !encoding::reaches_client(work_item) {
        db.query(&PUT_BACK, &[lock_token.as_bytes().into()]);
        let others: Vec<i64> = ids.iter().copied().filter(|&id| Some(id) != row.int8(3)).collect();
        return take(db, request, &others);
    }
    Ok(Some(ClaimedWorkItem {
        work_item: TextBuf(work_item.to_vec()),
        attempt_count: row.int4(2).unwrap_or(0),
        lock_token,
    }))
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
) -> Result<Option<ClaimedWorkItem>> {
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
    let locked = db.query(&LOCK_SESSION, &[session_id.into(), request.owner_id.into(), now_ms.into()]);
    if let Some(row) = locked.first() {
        return Ok(row.bool(1) == Some(true));
    }
    let exists = db.query(&SESSION_EXISTS, &[session_id.into()]).first().and_then(|row| row.bool(1));
    Ok(exists == Some(false) && !probe::in_flight(db.schema(), c"sessions", session_id))
}
