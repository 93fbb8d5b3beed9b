//! The lease of a claimed work item: renewed, given up.

use crate::clock::{self, Clock, timestamptz};
use crate::db::{Db, Planning, Statement, types::*};
use crate::error::{Error, Result};
use crate::pg::values::Text;

static RENEW: Statement = Statement {
    text: "
WITH renewed AS (
  UPDATE {q}.worker_queue w
  SET locked_until = GREATEST(w.locked_until, $2)
  WHERE w.lock_token = $1 AND w.locked_until > $3
  RETURNING w.session_id
), active AS (
  UPDATE {q}.sessions s
  SET last_activity_at = $4
  FROM renewed
  WHERE s.session_id = renewed.session_id AND s.locked_until > $4
)
SELECT pg_catalog.count(*) FROM renewed",
    parameters: &[TEXT, INT8, INT8, INT8],
    planning: Planning::ByIndex,
};

static LOCK: Statement = Statement {
    text: "SELECT w.id FROM {q}.worker_queue w WHERE w.lock_token = $1 FOR UPDATE",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// Extends a live lease to `extend_secs` seconds from now, never to an earlier end. The row is
/// locked first, so that a wait for it counts: the clock is read after it.
pub(crate) fn renew(
    db: &Db,
    lock_token: Option<Text>,
    clock: Clock,
    caller_ms: i64,
    extend_secs: i64,
) -> Result<()> {
    let extend_ms = clock::seconds(extend_secs)?;
    if db.query(&LOCK, &[lock_token.into()]).len() == 0 {
        return Err(Error::WorkItemLeaseLost);
    }
    let rows = db.query(
        &RENEW,
        &[lock_token.into(), clock.lease_end_ms(extend_ms)?.into(), clock.now_ms()?.into(), caller_ms.into()],
    );
    if rows.first().and_then(|row| row.int8(1)) == Some(0) { Err(Error::WorkItemLeaseLost) } else { Ok(()) }
}

static ABANDON: Statement = Statement {
    text: "
UPDATE {q}.worker_queue w
SET lock_token = NULL,
    locked_until = NULL,
    visible_at = $2,
    attempt_count = CASE WHEN $3 THEN GREATEST(0, w.attempt_count - 1) ELSE w.attempt_count END
WHERE w.lock_token = $1",
    parameters: &[TEXT, TIMESTAMPTZ, BOOL],
    planning: Planning::ByIndex,
};

/// Gives a claimed work item back, visible again now or after `delay_ms`; with `ignore_attempt` the
/// claim does not count.
pub(crate) fn abandon(
    db: &Db,
    lock_token: Option<Text>,
    now_ms: i64,
    delay_ms: Option<i64>,
    ignore_attempt: bool,
) -> Result<()> {
    let delay_ms = delay_ms.filter(|&delay_ms| delay_ms > 0).unwrap_or(0);
    let visible_at = timestamptz(now_ms.checked_add(delay_ms).ok_or(Error::NumberOutOfRange("p_delay_ms"))?)?;
    let abandoned = db.query(&ABANDON, &[lock_token.into(), visible_at.into(), ignore_attempt.into()]);
    if abandoned.affected() == 0 { Err(Error::WorkItemNotHeld) } else { Ok(()) }
}
