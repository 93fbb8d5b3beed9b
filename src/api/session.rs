//! Sessions of workers.

use super::required;
use crate::clock::Clock;
use crate::db::Db;

use crate::pg::values::TextArray;
use crate::queue::sessions;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{pg_extern, pg_sys};

/// Extends the live sessions of these owners; returns how many.
///
/// Errors: 22004 when the extension is NULL, 22003 when its end is out of range.
#[pg_extern(sql = false)]
fn renew_session_lock(
    p_owner_ids: Option<TextArray>,
    p_now_ms: Option<i64>,
    p_extend_ms: Option<i64>,
    p_idle_timeout_ms: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<i64, ErrorReport> {
    let extend_ms = required(p_extend_ms, "p_extend_ms")?;
    let Some(now_ms) = p_now_ms else { return Ok(0) };
    let clock = Clock::start(now_ms);
    Ok(Db::enter(fcinfo, |db| sessions::renew(db, p_owner_ids, clock, extend_ms, p_idle_timeout_ms))?)
}

/// Removes expired sessions without work items; returns how many.
#[pg_extern(sql = false)]
fn cleanup_orphaned_sessions(
    p_now_ms: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<i64, ErrorReport> {
    Ok(Db::enter(fcinfo, |db| Ok(sessions::clean_up(db, p_now_ms)))?)
}
