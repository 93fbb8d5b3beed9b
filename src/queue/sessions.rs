//! Sessions of workers: renewed by heartbeats, removed when nobody needs them.

use crate::clock::Clock;
use crate::db::{Db, Planning, Statement, types::*};
use crate::error::{Error, Result};
use crate::pg::values::TextArray;

/// Locked in one order, so that two heartbeats cannot deadlock; and before the clock is read again, so
/// that a session which expires during a wait stays expired.
static LOCK: Statement = Statement {
    text: "
SELECT s.session_id FROM {q}.sessions s
WHERE s.worker_id = ANY ($1) AND s.locked_until > $2
ORDER BY s.session_id
FOR UPDATE",
    parameters: &[TEXTS, INT8],
    planning: Planning::ByStatistics,
};

static RENEW: Statement = Statement {
    text: "
UPDATE {q}.sessions s
SET locked_until = GREATEST(s.locked_until, $3)
WHERE s.worker_id = ANY ($1) AND s.locked_until > $2 AND s.last_activity_at > $4",
    parameters: &[TEXTS, INT8, INT8, INT8],
    planning: Planning::ByStatistics,
};

/// Extends the live sessions of these owners that were active within `idle_timeout_ms`; returns how
/// many.
pub(crate) fn renew(
    db: &Db,
    owner_ids: Option<TextArray>,
    clock: Clock,
    extend_ms: i64,
    idle_timeout_ms: Option<i64>,
) -> Result<i64> {
    db.query(&LOCK, &[owner_ids.into(), clock.now_ms()?.into()]);
    let now_ms = clock.now_ms()?;
    let active_since = idle_timeout_ms
        .map(|idle_ms| now_ms.checked_sub(idle_ms).ok_or(Error::NumberOutOfRange("p_idle_timeout_ms")))
        .transpose()?;
    let renewed = db.query(
        &RENEW,
        &[owner_ids.into(), now_ms.into(), clock.lease_end_ms(extend_ms)?.into(), active_since.into()],
    );
    Ok(renewed.affected() as i64)
}

/// What somebody has locked is left to the next time: who waits for one row after another could deadlock.
static CLEAN_UP: Statement = Statement {
    text: "
WITH orphaned AS (
  SELECT s.session_id FROM {q}.sessions s
  WHERE s.locked_until < $1
    AND NOT EXISTS (SELECT FROM {q}.worker_queue w WHERE w.session_id = s.session_id)
  FOR UPDATE SKIP LOCKED
)
DELETE FROM {q}.sessions s USING orphaned WHERE s.session_id = orphaned.session_id",
    parameters: &[INT8],
    planning: Planning::ByStatistics,
};

/// Removes the expired sessions that no work item belongs to; returns how many.
pub(crate) fn clean_up(db: &Db, now_ms: Option<i64>) -> i64 {
    db.query(&CLEAN_UP, &[now_ms.into()]).affected() as i64
}
