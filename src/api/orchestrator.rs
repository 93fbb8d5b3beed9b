//! Instances and their messages.

use super::{required, set_of_one};
use crate::clock::Clock;
use crate::db::Db;

use crate::pg::values::{Jsonb, Text, TextBuf, Timestamptz};
use crate::queue::{ack_turn, claim_instance, enqueue, instance_lease};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{pg_extern, pg_sys};

/// Claims the first free instance with all its visible messages; no row when there is none.
///
/// Errors: 22004 when the lease is NULL, 22003 when its end is out of range.
#[pg_extern(sql = false)]
fn fetch_orchestration_item(
    p_now_ms: Option<i64>,
    p_lock_timeout_ms: Option<i64>,
    p_min_version_packed: Option<i64>,
    p_max_version_packed: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    let clock = p_now_ms.map(Clock::start);
    let claim = |db: &Db| {
        // Nothing is visible at a time that is not known.
        let Some(clock) = clock else { return Ok(None) };
        let request = claim_instance::Request {
            clock,
            lock_timeout_ms: required(p_lock_timeout_ms, "p_lock_timeout_ms")?,
            versions: p_min_version_packed.map(|least| (least, p_max_version_packed)),
        };
        claim_instance::claim(db, &request)
    };
    Ok(set_of_one(fcinfo, claim, |claimed| {
        let input = &claimed.input;
        [
            (&claimed.instance_id).into(),
            (&input.orchestration_name).into(),
            (&input.orchestration_version).into(),
            input.execution_id.into(),
            (&input.history).into(),
            (&input.messages).into(),
            claimed.lock_token.as_bytes().into(),
            claimed.attempt_count.into(),
            (&input.kv_snapshot).into(),
        ]
    })?)
}

/// Acknowledges a turn, all or nothing.
///
/// Errors: P0001 `Invalid lock token` when the lease is gone, expired or taken over; 22P02, 22P05 or
/// 22003 when an event could never be delivered.
#[pg_extern(sql = false)]
fn ack_orchestration_item(
    p_lock_token: Option<Text>,
    p_now_ms: Option<i64>,
    p_execution_id: Option<i64>,
    p_history_delta: Option<Jsonb>,
    p_worker_items: Option<Jsonb>,
    p_orchestrator_items: Option<Jsonb>,
    p_metadata: Option<Jsonb>,
    p_cancelled_activities: Option<Jsonb>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    let turn = ack_turn::Turn {
        lock_token: p_lock_token,
        execution_id: p_execution_id,
        history: p_history_delta,
        worker_items: p_worker_items,
        orchestrator_items: p_orchestrator_items,
        metadata: p_metadata,
        cancelled_activities: p_cancelled_activities,
    };
    // No lease is live at a time that is not known.
    let now_ms = p_now_ms.ok_or(crate::error::Error::InvalidLockToken)?;
    let clock = Clock::start(now_ms);
    Ok(Db::enter(fcinfo, |db| ack_turn::acknowledge(db, &turn, clock, now_ms))?)
}

/// Gives a claimed instance back; returns its id.
///
/// Errors: P0001 `Invalid lock token`.
#[pg_extern(sql = false)]
fn abandon_orchestration_item(
    p_lock_token: Option<Text>,
    p_now_ms: Option<i64>,
    p_delay_ms: Option<i64>,
    p_ignore_attempt: Option<bool>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<TextBuf, ErrorReport> {
    let ignore_attempt = p_ignore_attempt.unwrap_or(false);
    let instance_id = Db::enter(fcinfo, |db| {
        instance_lease::abandon(db, p_lock_token, p_now_ms, p_delay_ms, ignore_attempt)
    })?;
    Ok(TextBuf(instance_id))
}

/// Extends the lease of a claimed instance.
///
/// Errors: P0001 `Lock token invalid, expired, or already released`; 22004 when the extension is
/// NULL; 22003 when its end is out of range.
#[pg_extern(sql = false)]
fn renew_orchestration_item_lock(
    p_lock_token: Option<Text>,
    p_now_ms: Option<i64>,
    p_extend_secs: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    let extend_secs = required(p_extend_secs, "p_extend_secs")?;
    let now_ms = p_now_ms.ok_or(crate::error::Error::LeaseLost)?;
    let clock = Clock::start(now_ms);
    Ok(Db::enter(fcinfo, |db| instance_lease::renew(db, p_lock_token, clock, extend_secs))?)
}

/// Enqueues a message. The last three arguments are the contract's and have no effect: an instance
/// comes to be by the acknowledgement of its first turn.
///
/// Errors: 22P02, 22P05 or 22003 when it could never be delivered; 23502 when a value is NULL.
#[pg_extern(sql = false)]
fn enqueue_orchestrator_work(
    p_instance_id: Option<Text>,
    p_work_item: Option<Text>,
    p_visible_at: Option<Timestamptz>,
    _p_orchestration_name: Option<Text>,
    _p_orchestration_version: Option<Text>,
    _p_execution_id: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    Ok(Db::enter(fcinfo, |db| enqueue::message(db, p_instance_id, p_work_item, p_visible_at))?)
}
