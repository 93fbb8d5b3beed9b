//! Work items.

use super::{required, set_of_one};
use crate::clock::Clock;
use crate::db::Db;
use crate::error::Error;
use crate::pg::values::{Text, TextArray};
use crate::queue::claim_work_item::{self, TagMode};
use crate::queue::{ack_work_item, enqueue, work_item_lease};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{pg_extern, pg_sys};

/// Enqueues a work item.
///
/// Errors: 22P02 when it is not JSON; 23502 when the item or the time is NULL; 22008 when the time is
/// out of range.
#[pg_extern(sql = false)]
fn enqueue_worker_work(
    p_work_item: Option<Text>,
    p_now_ms: Option<i64>,
    p_instance_id: Option<Text>,
    p_execution_id: Option<i64>,
    p_activity_id: Option<i64>,
    p_session_id: Option<Text>,
    p_tag: Option<Text>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    let item = enqueue::NewWorkItem {
        work_item: p_work_item,
        now_ms: p_now_ms,
        instance_id: p_instance_id,
        execution_id: p_execution_id,
        activity_id: p_activity_id,
        session_id: p_session_id,
        tag: p_tag,
    };
    Ok(Db::enter(fcinfo, |db| enqueue::work_item(db, &item))?)
}

/// Claims the first free work item; no row when there is none.
///
/// Errors: 22004 when the lease is NULL, 22003 when its end is out of range.
#[pg_extern(sql = false)]
fn fetch_work_item(
    p_now_ms: Option<i64>,
    p_lock_timeout_ms: Option<i64>,
    p_owner_id: Option<Text>,
    p_session_lock_timeout_ms: Option<i64>,
    p_tag_filter: Option<TextArray>,
    p_tag_mode: Option<Text>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    let clock = p_now_ms.map(Clock::start);
    let claim = |db: &Db| {
        let tag_mode = match p_tag_mode.as_ref().map(Text::bytes) {
            Some(b"default_only") => TagMode::DefaultOnly,
            Some(b"tags") => TagMode::Tags,
            Some(b"default_and") => TagMode::DefaultAnd,
            Some(b"any") => TagMode::Any,
            // `none`, and any mode that is not known, take nothing.
            _ => return Ok(None),
        };
        let Some(clock) = clock else { return Ok(None) };
        let request = claim_work_item::Request {
            clock,
            lock_timeout_ms: required(p_lock_timeout_ms, "p_lock_timeout_ms")?,
            owner_id: p_owner_id,
            session_lock_timeout_ms: p_session_lock_timeout_ms,
            tags: p_tag_filter,
            tag_mode,
        };
        claim_work_item::claim(db, &request)
    };
    Ok(set_of_one(fcinfo, claim, |claimed| {
        [(&claimed.work_item).into(), claimed.lock_token.as_bytes().into(), claimed.attempt_count.into()]
    })?)
}

/// Acknowledges a work item and sends its completion.
///
/// Errors: P0001 `Worker queue item not found or already processed`, or that an argument is required
/// with a completion; 22P02, 22P05 or 22003 when the completion could never be delivered.
#[pg_extern(sql = false)]
fn ack_worker(
    p_lock_token: Option<Text>,
    p_instance_id: Option<Text>,
    p_completion_json: Option<Text>,
    p_now_ms: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    let completion =
        p_completion_json.map(|json| ack_work_item::Completion { instance_id: p_instance_id, json });
    let clock = p_now_ms.map(Clock::start);
    Ok(Db::enter(fcinfo, |db| ack_work_item::acknowledge(db, p_lock_token, completion, p_now_ms, clock))?)
}

/// Extends the lease of a claimed work item.
///
/// Errors: P0001 `Lock token invalid, expired, or already acked`; 22004 when the extension is NULL;
/// 22003 when its end is out of range.
#[pg_extern(sql = false)]
fn renew_work_item_lock(
    p_lock_token: Option<Text>,
    p_now_ms: Option<i64>,
    p_extend_secs: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    let extend_secs = required(p_extend_secs, "p_extend_secs")?;
    let now_ms = p_now_ms.ok_or(Error::WorkItemLeaseLost)?;
    let clock = Clock::start(now_ms);
    Ok(Db::enter(fcinfo, |db| work_item_lease::renew(db, p_lock_token, clock, now_ms, extend_secs))?)
}

/// Gives a claimed work item back.
///
/// Errors: P0001 `Invalid lock token or already acked`; 22004 when the time is NULL, as the item would
/// have no time to be visible at.
#[pg_extern(sql = false)]
fn abandon_work_item(
    p_lock_token: Option<Text>,
    p_now_ms: Option<i64>,
    p_delay_ms: Option<i64>,
    p_ignore_attempt: Option<bool>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    let now_ms = required(p_now_ms, "p_now_ms")?;
    let ignore_attempt = p_ignore_attempt.unwrap_or(false);
    Ok(Db::enter(fcinfo, |db| {
        work_item_lease::abandon(db, p_lock_token, now_ms, p_delay_ms, ignore_attempt)
    })?)
}
