//! Claims an instance with all its visible messages, under a lease.
//!
//! The claim waits for nobody: keys are only tried, rows are locked with SKIP LOCKED, and a lock
//! row is inserted only after a look at whether somebody else is inserting it. An instance counts
//! as claimed when its key is held, a snapshot taken after that shows no lease and at least one
//! message, and every such message could be locked; otherwise nothing was written.

use crate::clock::{Clock, visible_until};
use crate::db::{Db, Planning, Statement, types::*};
use crate::error::Result;
use crate::json::MAX_DIGITS_OF_ALL;
use crate::pg::advisory::Key;
use crate::pg::json::{self, Form, Refusal};
use crate::pg::spi::{self, Rows, Value};
use crate::pg::{encoding, lock_timeout, probe};
use crate::queue::rounds::Look;
use crate::queue::scan_start::{self, Place, Ready, Row, Scan, Statements, ready};
use crate::queue::turn_input::TurnInput;
use crate::queue::{dead_letters, instance_lease, snapshot_check, turn_input};
use uuid::Uuid;

/// Bytes of messages in one turn; what is behind them waits for the next. jsonb holds less than
/// 256 MB in one array, and a backend should not die of an instance with a hundred thousand messages.
const MAX_MESSAGE_BYTES: i64 = 32 << 20;

/// A lease is counted anew once its turn is loaded, if that took more than this part of it: a history of a
/// hundred megabytes takes seconds.
const LEASE_PER_LOADING: i64 = 10;

/// What a dispatcher asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) clock: Clock,
    pub(crate) lock_timeout_ms: i64,
    pub(crate) versions: Versions,
}

/// Least and greatest packed version of duroxide that a dispatcher runs. `None` runs all.
pub(crate) type Versions = Option<(i64, Option<i64>)>;

/// A claimed instance: one turn of work.
#[derive(Debug)]
pub(crate) struct ClaimedInstance {
    pub(crate) instance_id: Vec<u8>,
    pub(crate) lock_token: String,
    pub(crate) attempt_count: i32,
    pub(crate) input: TurnInput,
}

/// A new lock token.
pub(crate) fn new_lock_token() -> String {
    format!("lock_{}", Uuid::new_v4())
}

/// Claims the first free instance in order of (visible_at, id) of its messages.
pub(crate) fn claim(db: &Db, request: &Request) -> Result<Option<ClaimedInstance>> {
    let memories = db.memories();
    let mut passed_over: Vec<Vec<u8>> = Vec::new();
    let mut previous = None;
    let mut after = Place::FIRST;
    for look in memories.looks.of_a_claim() {
        let is_repeated = matches!(look, Look::Window(_)) || previous.replace(look) == Some(look);
        let window = if let Look::Window(window) = look { window } else { 1 };
        let candidates = {
            let passed_over: Vec<&[u8]> = passed_over.iter().map(Vec::as_slice).collect();
            let scan = CandidateScan { request, look, passed_over: &passed_over };
            scan_start::candidates(&scan, db, &memories.messages, window, after, is_repeated)?
        };
        if candidates.is_empty() {
            return Ok(None);
        }
        let mut rest = candidates.into_iter();
        while let Some(Candidate { instance_id, key, is_key_held, place }) = rest.next() {
            pgrx::check_for_interrupts!();
            after = place.map_or(after, |place| after.max(place.next()));
            let is_new = !passed_over.contains(&instance_id);
            if is_key_held || is_new && key.try_lock() {
                let claimed = if is_new { claim_under_key(db, request, &instance_id)? } else { None };
                if claimed.is_some() {
                    rest.filter(|other| other.is_key_held).for_each(|other| other.key.unlock());
                    return Ok(claimed);
                }
                key.unlock();
            }
            if is_new {
                passed_over.push(instance_id);
            }
        }
        memories.looks.others_met();
    }
    Ok(None)
}

/// The first unclaimed message, whosever its instance is: what can be told of that under its key is left for then.
static HEAD: Ready = ready! {
    ["
SELECT q.instance_id, pg_catalog.hashtext({key} || q.instance_id)::bigint, q.visible_at, q.id, NULL::bigint, false
FROM {q}.orchestrator_queue q
WHERE q.lock_token IS NULL AND q.visible_at <= $1"],
    " AND (q.visible_at, q.id) >= ($2, $3)",
    ["
ORDER BY q.visible_at, q.id
LIMIT 1"],
    [TIMESTAMPTZ]
};

/// What is asked of a candidate's instance. The lock row is asked as well as the message: one that came
/// after the claim is itself unclaimed. A dispatcher that runs only some versions passes over instances
/// that are pinned to others; versions are packed as bigint, so that one which integer arithmetic cannot
/// pack does not make every fetch fail.
///
/// What is asked of other tables is asked in scalar subqueries: they are run for each row, by primary
/// key, whatever the statistics say. NOT EXISTS may become a join that reads all of `instance_locks`, or a
/// hash of all executions.
macro_rules! is_not_leased {
    () => {
        "(SELECT l.locked_until > $2 FROM {q}.instance_locks l WHERE l.instance_id = q.instance_id) IS NOT TRUE"
    };
}

macro_rules! is_of_a_version {
    () => {
        "($5 IS NULL OR coalesce(
        (SELECT (e.duroxide_version_major IS NULL
                 OR e.duroxide_version_major::bigint * 1000000 + e.duroxide_version_minor::bigint * 1000
                    + e.duroxide_version_patch BETWEEN $5 AND $6) IS TRUE
         FROM {q}.instances i
         JOIN {q}.executions e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
         WHERE i.instance_id = q.instance_id), true))"
    };
}

macro_rules! of_a_free_instance {
    () => {
        concat!(is_not_leased!(), "\n  AND ", is_of_a_version!())
    };
}

macro_rules! candidate {
    () => {
        "
SELECT q.instance_id, pg_catalog.hashtext({key} || q.instance_id)::bigint, q.visible_at, q.id, q.locked_until, false
FROM {q}.orchestrator_queue q
WHERE q.instance_id <> ALL ($3) AND "
    };
}

/// Unclaimed messages of free instances. Those of the future are behind where it ends, live leases are not in its index.
static READY: Ready = ready! {
    [candidate!(), "q.lock_token IS NULL AND q.visible_at <= $1"],
    " AND (q.visible_at, q.id) >= ($7, $8)",
    ["
  AND ", of_a_free_instance!(), "
ORDER BY q.visible_at, q.id
LIMIT $4"],
    [TIMESTAMPTZ, INT8, TEXTS, INT8, INT8, INT8]
};

/// The first of them whose instance's key nobody holds, and that key with it.
///
/// Many sessions that claim at once pass over each other's instances here, so a key that is held is noticed
/// early: taking it for the session and giving it back does that, with no effect that outlasts it,
/// and only the key of the row that is returned stays taken, for the transaction. CASE and OFFSET 0 keep the planner from asking
/// in another order, which would take keys of rows that are not returned. Leases come first: no key of a leased
/// instance is touched, for which somebody may be waiting under a `lock_timeout`.
static PAST_OTHERS: Ready = ready! {
    ["
SELECT q.instance_id, q.key, q.visible_at, q.id, NULL::bigint, true
FROM (SELECT m.instance_id, pg_catalog.hashtext({key} || m.instance_id)::bigint AS key, m.visible_at, m.id
      FROM {q}.orchestrator_queue m
      WHERE m.lock_token IS NULL AND m.visible_at <= $1"],
    " AND (m.visible_at, m.id) >= ($7, $8)",
    ["
        AND m.instance_id <> ALL ($3)
      ORDER BY m.visible_at, m.id
      OFFSET 0) q
WHERE CASE WHEN ", is_not_leased!(), " THEN
  CASE WHEN pg_catalog.pg_try_advisory_lock(q.key) THEN pg_catalog.pg_advisory_unlock(q.key)
    AND ", is_of_a_version!(), "
    AND pg_catalog.pg_try_advisory_xact_lock(q.key) END END
LIMIT 1"],
    [TIMESTAMPTZ, INT8, TEXTS, INT8, INT8, INT8]
};

/// Messages of expired leases; live ones are behind where it ends. By the end of the lease, which is
/// the order of the claim up to a thousand that have expired at once.
static EXPIRED: Statement = Statement {
    text: concat!(
        candidate!(),
        "q.lock_token IS NOT NULL AND q.locked_until <= $2 AND q.locked_until >= $7 AND (q.visible_at <= $1) IS TRUE
  AND ",
        of_a_free_instance!(),
        "
ORDER BY q.locked_until, q.id
LIMIT GREATEST($4, 1000)"
    ),
    parameters: &[TIMESTAMPTZ, INT8, TEXTS, INT8, INT8, INT8, INT8],
    planning: Planning::InIndexOrder,
};

static ANY_EXPIRED: Statement = Statement {
    text: "
SELECT true FROM {q}.orchestrator_queue q
WHERE q.lock_token IS NOT NULL AND q.locked_until <= $1 AND q.locked_until >= $2
ORDER BY q.locked_until
LIMIT 1",
    parameters: &[INT8, INT8],
    planning: Planning::InIndexOrder,
};

/// Whether there is anything to look at.
static ANY: Statement = Statement {
    text: "
SELECT coalesce(
  (SELECT true FROM {q}.orchestrator_queue q WHERE q.lock_token IS NULL AND q.visible_at <= $1
   ORDER BY q.visible_at, q.id LIMIT 1),
  (SELECT true FROM {q}.orchestrator_queue q WHERE q.lock_token IS NOT NULL AND q.locked_until <= $2
   ORDER BY q.locked_until, q.id LIMIT 1))",
    parameters: &[TIMESTAMPTZ, INT8],
    planning: Planning::InIndexOrder,
};

/// Unclaimed messages that are newer than their place says.
static NEWER: Statement = Statement {
    text: concat!(
        candidate!(),
        "q.id > $9 AND q.lock_token IS NULL AND (q.visible_at <= $1) IS TRUE AND ((q.visible_at, q.id) < ($7, $8)) IS TRUE
  AND ",
        of_a_free_instance!(),
        "
ORDER BY q.id
LIMIT $4"
    ),
    parameters: &[TIMESTAMPTZ, INT8, TEXTS, INT8, INT8, INT8, TIMESTAMPTZ, INT8, INT8],
    planning: Planning::InIndexOrder,
};

static HIGHEST_ID: Statement = Statement {
    text: "
SELECT coalesce((SELECT pg_catalog.max(q.id) FROM {q}.orchestrator_queue q),
                CASE WHEN pg_catalog.has_sequence_privilege(s.name, 'USAGE')
                     THEN pg_catalog.pg_sequence_last_value(s.name::regclass) END)
FROM (SELECT pg_catalog.pg_get_serial_sequence(pg_catalog.quote_ident({name}) || '.orchestrator_queue', 'id') AS name
      OFFSET 0) s",
    parameters: &[],
    planning: Planning::ByIndex,
};

/// An instance with something to claim. One with several messages may be found repeatedly.
struct Candidate {
    instance_id: Vec<u8>,
    key: Key,
    /// Whether the scan has taken the key.
    is_key_held: bool,
    /// Among unclaimed messages.
    place: Option<Place>,
}

struct CandidateScan<'r> {
    request: &'r Request,
    look: Look,
    passed_over: &'r [&'r [u8]],
}

impl Scan for CandidateScan<'_> {
    type Candidate = Candidate;

    fn statements(&self) -> Statements {
        Statements { any: &ANY, expired: &EXPIRED, newer: &NEWER, highest_id: &HIGHEST_ID }
    }

    fn is_any_expired(&self, db: &Db, now_ms: i64, from_ms: i64) -> bool {
        db.query(&ANY_EXPIRED, &[now_ms.into(), from_ms.into()]).len() > 0
    }

    fn ready<'d>(&self, db: &'d Db, now_ms: i64, window: i64, start: Place, _: bool) -> Rows<'d> {
        match self.look {
            Look::AtHead => HEAD.query(db, &[visible_until(now_ms).into()], start),
            Look::PastOthers => PAST_OTHERS.query(db, &self.arguments(now_ms, window), start),
            Look::Window(_) => READY.query(db, &self.arguments(now_ms, window), start),
        }
    }

    fn passes_over_others(&self) -> bool {
        self.look != Look::AtHead
    }

    fn filter(&self) -> u64 {
        scan_start::filter(&self.request.versions)
    }

    fn now_ms(&self) -> Result<i64> {
        self.request.clock.now_ms()
    }

    fn arguments(&self, now_ms: i64, window: i64) -> Vec<Value<'_>> {
        let (least, greatest) = self.request.versions.unzip();
        vec![
            visible_until(now_ms).into(),
            now_ms.into(),
            self.passed_over.into(),
            window.into(),
            least.into(),
            greatest.flatten().into(),
        ]
    }

    fn row(&self, row: &spi::Row<'_>) -> Option<Row<Candidate>> {
        let place = Place { visible_at: row.timestamptz(3)?, id: row.int8(4)? };
        let instance_id = row.text(1)?.to_vec();
        let lease_end_ms = row.int8(5);
        Some(Row {
            place,
            lease_end_ms,
            candidate: Candidate {
                instance_id,
                key: Key(row.int8(2)?),
                is_key_held: row.bool(6)?,
                place: lease_end_ms.is_none().then_some(place),
            },
        })
    }
}

/// When the instance's lease ends or has ended.
static LEASE_END: Statement = Statement {
    text: "SELECT l.locked_until FROM {q}.instance_locks l WHERE l.instance_id = $1",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// The version of duroxide that the instance's current execution is pinned to; by the whole key, since an instance can have
/// had thousands.
static PINNED_VERSION: Statement = Statement {
    text: "
SELECT e.duroxide_version_major, e.duroxide_version_minor, e.duroxide_version_patch
FROM {q}.instances i,
     LATERAL (SELECT x.duroxide_version_major, x.duroxide_version_minor, x.duroxide_version_patch
              FROM {q}.executions x
              WHERE x.instance_id = i.instance_id AND x.execution_id = i.current_execution_id
              OFFSET 0) e
WHERE i.instance_id = $1",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// What [`READY`] asks of the version, asked of one instance.
fn runs(db: &Db, versions: Versions, instance_id: &[u8]) -> bool {
    let Some((least, greatest)) = versions else { return true };
    let rows = db.query(&PINNED_VERSION, &[instance_id.into()]);
    let pinned = rows.first().map(|row| [1, 2, 3].map(|column| row.int4(column)));
    let Some([Some(major), minor, patch]) = pinned else { return true };
    let (Some(minor), Some(patch), Some(greatest)) = (minor, patch, greatest) else { return false };
    let packed = i64::from(major) * 1_000_000 + i64::from(minor) * 1000 + i64::from(patch);
    (least..=greatest).contains(&packed)
}

/// Locks what there is to claim. Counting apart from locking tells whether a row was skipped: a
/// message that another session holds back must come before the ones behind it, so the instance
/// is contended then. Texts come along unless they are more than one turn can hold. `IS TRUE` keeps
/// visible_at out of the index conditions, so that the plan can only go by instance. A plan that joins
/// in the other order would count anew for each message, were the count not materialized.
static LOCK_MESSAGES: Statement = Statement {
    text: "
WITH v AS MATERIALIZED (
  SELECT pg_catalog.count(*) AS messages, pg_catalog.sum(pg_catalog.octet_length(a.work_item)) AS bytes
  FROM {q}.orchestrator_queue a
  WHERE a.instance_id = $1 AND (a.visible_at <= $2) IS TRUE
    AND (a.lock_token IS NULL OR a.locked_until <= $3)
)
SELECT q.id, CASE WHEN v.bytes <= $4 THEN q.work_item END, pg_catalog.octet_length(q.work_item)::bigint,
       v.messages
FROM {q}.orchestrator_queue q, v
WHERE q.instance_id = $1 AND (q.visible_at <= $2) IS TRUE
  AND (q.lock_token IS NULL OR q.locked_until <= $3)
FOR UPDATE OF q SKIP LOCKED",
    parameters: &[TEXT, TIMESTAMPTZ, INT8, INT8],
    planning: Planning::ByIndex,
};

static READ_MESSAGES: Statement = Statement {
    text: "SELECT q.id, q.work_item FROM {q}.orchestrator_queue q WHERE q.id = ANY ($1)",
    parameters: &[INT8S],
    planning: Planning::ByIndex,
};

/// Writes the lease where there is no lock row yet.
static LEASE_ANEW: Statement = Statement {
    text: "
INSERT INTO {q}.instance_locks (instance_id, lock_token, locked_until, locked_at)
VALUES ($1, $2, $3, $4)
ON CONFLICT (instance_id) DO NOTHING",
    parameters: &[TEXT, TEXT, INT8, INT8],
    planning: Planning::ByIndex,
};

/// Writes the lease over one that has expired, unless somebody holds its row.
static LEASE_AGAIN: Statement = Statement {
    text: "
WITH expired AS (
  SELECT l.instance_id FROM {q}.instance_locks l
  WHERE l.instance_id = $1 AND l.locked_until <= $4
  FOR UPDATE SKIP LOCKED
)
UPDATE {q}.instance_locks l
SET lock_token = $2, locked_until = $3, locked_at = $4
FROM expired
WHERE l.instance_id = $1 AND l.instance_id = expired.instance_id",
    parameters: &[TEXT, TEXT, INT8, INT8],
    planning: Planning::ByIndex,
};

/// Marks the messages as claimed. A count of attempts that cannot go up must not make every fetch fail.
static MARK_MESSAGES: Statement = Statement {
    text: "
UPDATE {q}.orchestrator_queue q
SET lock_token = $1, locked_until = $2, attempt_count = LEAST(q.attempt_count, 2147483646) + 1
WHERE q.id = ANY ($3)
RETURNING q.attempt_count",
    parameters: &[TEXT, INT8, INT8S],
    planning: Planning::ByIndex,
};

/// Claims one instance whose key is held. `None`: there is nothing to claim, or somebody who does
/// not keep to the key is in the way, or this client cannot be sent what it says; nothing was
/// written then.
fn claim_under_key(db: &Db, request: &Request, instance_id: &[u8]) -> Result<Option<ClaimedInstance>> {
    snapshot_check::require_current(db, instance_id)?;
    let lease_end_ms = db.query(&LEASE_END, &[instance_id.into()]).first().and_then(|row| row.int8(1));
    let now_ms = request.clock.now_ms()?;
    let is_leased = lease_end_ms.is_some_and(|end_ms| end_ms > now_ms);
    // A look that has asked for the version did so by what was committed before the key was had.
    if is_leased || !runs(db, request.versions, instance_id) {
        return Ok(None);
    }
    let arguments =
        [instance_id.into(), visible_until(now_ms).into(), now_ms.into(), MAX_MESSAGE_BYTES.into()];
    let locked = lock_timeout::at_least_a_second(db.schema(), &[c"orchestrator_queue"], || {
        db.query(&LOCK_MESSAGES, &arguments)
    });
    let Some(first) = locked.first() else { return Ok(None) };
    if first.int8(4) != Some(locked.len() as i64) {
        return Ok(None);
    }
    let has_lock_row = lease_end_ms.is_some();
    let too_many = first.text(2).is_none();
    let read = too_many.then(|| db.query(&READ_MESSAGES, &[ids_that_fit(&locked).as_slice().into()]));

    let (messages, undeliverable) = sorted_out(read.as_ref().unwrap_or(&locked));
    if messages.is_empty() {
        dead_letters::bury_messages(db, now_ms, &undeliverable)?;
        return Ok(None);
    }

    if !encoding::reaches_client(instance_id)
        || !messages.iter().all(|&(_, text)| encoding::json_reaches_client(text))
    {
        return Ok(None);
    }

    let ids: Vec<i64> = messages.iter().map(|&(id, _)| id).collect();
    let lock_token = new_lock_token();
    let Some(attempt_count) = lease(db, request, instance_id, &lock_token, has_lock_row, &ids)? else {
        return Ok(None);
    };
    let leased_ms = request.clock.now_ms()?;
    dead_letters::bury_messages(db, now_ms, &undeliverable)?;

    let texts: Vec<&[u8]> = messages.iter().map(|&(_, work_item)| work_item).collect();
    let input = turn_input::load(db, instance_id, &texts)?;
    let loading_ms = request.clock.now_ms()?.saturating_sub(leased_ms);
    if loading_ms > request.lock_timeout_ms / LEASE_PER_LOADING && request.lock_timeout_ms > 0 {
        instance_lease::count_anew(db, request, instance_id, &lock_token)?;
    }
    Ok(Some(ClaimedInstance { instance_id: instance_id.to_vec(), lock_token, attempt_count, input }))
}

/// The first messages in order of id that one turn can hold, at least one.
fn ids_that_fit(locked: &Rows<'_>) -> Vec<i64> {
    let mut sizes: Vec<(i64, i64)> = locked.iter().filter_map(|row| row.int8(1).zip(row.int8(3))).collect();
    sizes.sort_unstable();
    let mut bytes = 0;
    let fit = sizes.iter().take_while(|(_, size)| {
        bytes += size;
        bytes <= MAX_MESSAGE_BYTES
    });
    let fit = fit.count().max(1);
    sizes.into_iter().take(fit).map(|(id, _)| id).collect()
}

/// Messages that can be delivered, in order of id, and those that never can.
#[allow(clippy::type_complexity, reason = "two lists of pairs")]
fn sorted_out<'r>(rows: &'r Rows<'_>) -> (Vec<(i64, &'r [u8])>, Vec<(i64, Refusal)>) {
    let mut messages = Vec::with_capacity(rows.len());
    let mut undeliverable = Vec::new();
    for row in rows.iter() {
        pgrx::check_for_interrupts!();
        let (Some(id), Some(work_item)) = (row.int8(1), row.text(2)) else { continue };
        match json::check(work_item, Form::Jsonb) {
            Ok(digits) => messages.push((id, work_item, digits)),
            Err(refusal) => undeliverable.push((id, refusal)),
        }
    }
    messages.sort_unstable_by_key(|&(id, ..)| id);
    // What does not fit into one value written out waits for the next turn; each for itself does.
    let mut digits = 0;
    let fitting = messages.into_iter().take_while(|(.., more)| {
        digits += more;
        digits <= MAX_DIGITS_OF_ALL
    });
    (fitting.map(|(id, work_item, _)| (id, work_item)).collect(), undeliverable)
}

static TAKE_BACK: Statement = Statement {
    text: "DELETE FROM {q}.instance_locks l WHERE l.instance_id = $1 AND l.lock_token = $2",
    parameters: &[TEXT, TEXT],
    planning: Planning::ByIndex,
};

/// Writes the lease and marks the messages; returns the highest attempt count among them.
fn lease(
    db: &Db,
    request: &Request,
    instance_id: &[u8],
    lock_token: &str,
    has_lock_row: bool,
    ids: &[i64],
) -> Result<Option<i32>> {
    let statement = if has_lock_row {
        &LEASE_AGAIN
    } else if probe::in_flight(db.schema(), c"instance_locks", instance_id) {
        return Ok(None);
    } else {
        &LEASE_ANEW
    };
    let tables = [c"instance_locks", c"orchestrator_queue"];
    lock_timeout::at_least_a_second(db.schema(), &tables, || {
        let until_ms = request.clock.lease_end_ms(request.lock_timeout_ms)?;
        let now_ms = request.clock.now_ms()?;
        let token = lock_token.as_bytes();
        let leased = db.query(statement, &[instance_id.into(), token.into(), until_ms.into(), now_ms.into()]);
        if leased.affected() == 0 {
            return Ok(None);
        }
        let marked = db.query(&MARK_MESSAGES, &[token.into(), until_ms.into(), ids.into()]);
        let attempt_count = marked.iter().filter_map(|row| row.int4(1)).max();
        if attempt_count.is_none() {
            // A trigger of the owner's has kept the messages as they were.
            db.query(&TAKE_BACK, &[instance_id.into(), token.into()]);
        }
        Ok(attempt_count)
    })
}
