//! The lease of a claimed instance: found by its token, renewed, given up.
//!
//! Whoever writes a lock row or claimed messages takes the instance's key first and looks at the
//! token again under it. The key is always the first lock of such a call, and no call takes a
//! second one after a row lock, so these calls cannot deadlock among themselves.

use crate::clock::{self, Clock, timestamptz};
use crate::db::{Db, Planning, Statement, types::*};
use crate::error::{Error, Result};
use crate::pg::advisory::Key;
use crate::pg::values::{Text, Timestamptz};
use crate::queue::claim_instance::Request;

/// The instance that a lock token stands for.
pub(crate) struct Leased {
    pub(crate) instance_id: Vec<u8>,
    pub(crate) key: Key,
    pub(crate) locked_until_ms: i64,
}

static FIND: Statement = Statement {
    text: "
SELECT l.instance_id, pg_catalog.hashtext({key} || l.instance_id)::bigint, l.locked_until
FROM {q}.instance_locks l
WHERE l.lock_token = $1",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// The lease of a token, expired or not. Nothing is locked by this: look again under the key.
pub(crate) fn find(db: &Db, lock_token: Option<Text>) -> Option<Leased> {
    let rows = db.query(&FIND, &[lock_token.into()]);
    let row = rows.first()?;
    Some(Leased { instance_id: row.text(1)?.to_vec(), key: Key(row.int8(2)?), locked_until_ms: row.int8(3)? })
}

static LOCK: Statement = Statement {
    text: "
SELECT l.locked_until FROM {q}.instance_locks l
WHERE l.instance_id = $1 AND l.lock_token = $2
FOR UPDATE",
    parameters: &[TEXT, TEXT],
    planning: Planning::ByIndex,
};

static RENEW: Statement = Statement {
    text: "
WITH lease AS (
  UPDATE {q}.instance_locks l
  SET locked_until = GREATEST(l.locked_until, $3)
  WHERE l.instance_id = $1 AND l.lock_token = $2 AND l.locked_until > $4
  RETURNING l.locked_until
), messages AS (
  UPDATE {q}.orchestrator_queue q
  SET locked_until = lease.locked_until
  FROM lease
  WHERE q.instance_id = $1 AND q.lock_token = $2
)
SELECT lease.locked_until FROM lease",
    parameters: &[TEXT, TEXT, INT8, INT8],
    planning: Planning::ByIndex,
};

/// Extends a live lease to `extend_secs` seconds from now, never to an earlier end.
pub(crate) fn renew(db: &Db, lock_token: Option<Text>, clock: Clock, extend_secs: i64) -> Result<()> {
    let extend_ms = clock::seconds(extend_secs)?;
    let leased =
        find(db, lock_token).filter(|leased| clock.now_ms().is_ok_and(|now| leased.locked_until_ms > now));
    let leased = leased.ok_or(Error::LeaseLost)?;
    leased.key.lock();
    // A session that ignores the key may hold the row: the clock is read after a wait for it, too.
    if db.query(&LOCK, &[(&leased.instance_id).into(), lock_token.into()]).len() == 0 {
        return Err(Error::LeaseLost);
    }
    let renewed = db.query(
        &RENEW,
        &[
            (&leased.instance_id).into(),
            lock_token.into(),
            clock.lease_end_ms(extend_ms)?.into(),
            clock.now_ms()?.into(),
        ],
    );
    if renewed.len() == 0 { Err(Error::LeaseLost) } else { Ok(()) }
}

/// Lets a lease that was written in this call begin now.
pub(crate) fn count_anew(db: &Db, request: &Request, instance_id: &[u8], lock_token: &str) -> Result<()> {
    let until_ms = request.clock.lease_end_ms(request.lock_timeout_ms)?;
    // Whatever the clock says by now: nobody else can have had it.
    db.query(&RENEW, &[instance_id.into(), lock_token.as_bytes().into(), until_ms.into(), i64::MIN.into()]);
    Ok(())
}

static ABANDON: Statement = Statement {
    text: "
WITH lease AS (
  DELETE FROM {q}.instance_locks l WHERE l.instance_id = $1 AND l.lock_token = $2
  RETURNING l.lock_token
), messages AS (
  UPDATE {q}.orchestrator_queue q
  SET lock_token = NULL,
      locked_until = NULL,
      visible_at = coalesce($3, q.visible_at),
      attempt_count = CASE WHEN $4 THEN GREATEST(0, q.attempt_count - 1) ELSE q.attempt_count END
  FROM lease
  WHERE q.instance_id = $1 AND q.lock_token = $2
)
SELECT lease.lock_token FROM lease",
    parameters: &[TEXT, TEXT, TIMESTAMPTZ, BOOL],
    planning: Planning::ByIndex,
};

/// Gives a claimed instance back, at once or visible again after `delay_ms`; with `ignore_attempt`
/// the claim does not count. Returns the instance.
pub(crate) fn abandon(
    db: &Db,
    lock_token: Option<Text>,
    now_ms: Option<i64>,
    delay_ms: Option<i64>,
    ignore_attempt: bool,
) -> Result<Vec<u8>> {
    let leased = find(db, lock_token).ok_or(Error::InvalidLockToken)?;
    let visible_at = match delay_ms {
        Some(delay_ms) if delay_ms > 0 => Some(visible_after(now_ms, delay_ms)?),
        _ => None,
    };
    leased.key.lock();
    let released = db.query(
        &ABANDON,
        &[(&leased.instance_id).into(), lock_token.into(), visible_at.into(), ignore_attempt.into()],
    );
    if released.len() == 0 {
        return Err(Error::InvalidLockToken);
    }
    db.memories().messages.forget();
    Ok(leased.instance_id)
}

fn visible_after(now_ms: Option<i64>, delay_ms: i64) -> Result<Timestamptz> {
    let now_ms = now_ms.ok_or(Error::NullArgument("p_now_ms"))?;
    timestamptz(now_ms.checked_add(delay_ms).ok_or(Error::NumberOutOfRange("p_delay_ms"))?)
}
