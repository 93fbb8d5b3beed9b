//! Instances, executions and counts, as operators see them.

use super::{set_of_one, set_of_rows};

use crate::db::Db;
use crate::pg::values::{Text, TextBuf};
use crate::queue::{inspect, metrics};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{pg_extern, pg_sys};

/// All instances, the youngest first.
#[pg_extern(sql = false)]
fn list_instances(fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    Ok(set_of_rows(fcinfo, inspect::list_instances)?)
}

/// The instances whose current execution has a status, the youngest first.
#[pg_extern(sql = false)]
fn list_instances_by_status(
    p_status: Option<Text>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    Ok(set_of_rows(fcinfo, |db, result| inspect::list_instances_by_status(db, result, p_status))?)
}

/// The executions of an instance, in order.
#[pg_extern(sql = false)]
fn list_executions(p_instance_id: Option<Text>, fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    Ok(set_of_rows(fcinfo, |db, result| inspect::list_executions(db, result, p_instance_id))?)
}

/// The sub-orchestrations of an instance, the eldest first.
#[pg_extern(sql = false)]
fn list_children(p_instance_id: Option<Text>, fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    Ok(set_of_rows(fcinfo, |db, result| inspect::list_children(db, result, p_instance_id))?)
}

/// The parent of an instance, NULL for one at the top.
///
/// Errors: P0001 `Instance not found`.
#[pg_extern(sql = false)]
fn get_parent_id(
    p_instance_id: Option<Text>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<Option<TextBuf>, ErrorReport> {
    Ok(Db::enter(fcinfo, |db| inspect::parent(db, p_instance_id))?)
}

/// The current execution of an instance, NULL if there is no such instance.
#[pg_extern(sql = false)]
fn latest_execution_id(
    p_instance_id: Option<Text>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<Option<i64>, ErrorReport> {
    Ok(Db::enter(fcinfo, |db| Ok(inspect::latest_execution(db, p_instance_id)))?)
}

/// One instance, with the state of its current execution.
#[pg_extern(sql = false)]
fn get_instance_info(
    p_instance_id: Option<Text>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    Ok(set_of_rows(fcinfo, |db, result| inspect::instance(db, result, p_instance_id))?)
}

/// One execution, with the number of its events.
#[pg_extern(sql = false)]
fn get_execution_info(
    p_instance_id: Option<Text>,
    p_execution_id: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    Ok(set_of_rows(fcinfo, |db, result| inspect::execution(db, result, p_instance_id, p_execution_id))?)
}

/// Sizes of an instance.
#[pg_extern(sql = false)]
fn get_instance_stats(p_instance: Option<Text>, fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    let stats = |db: &Db| Ok(Some(inspect::stats(db, p_instance)));
    Ok(set_of_one(fcinfo, stats, |stats| {
        [
            stats.found.into(),
            stats.history_events.into(),
            stats.history_bytes.into(),
            stats.carried_forward.into(),
            stats.kv_keys.into(),
            stats.kv_bytes.into(),
        ]
    })?)
}

/// Messages and work items that are visible and not under a live lease.
#[pg_extern(sql = false)]
fn get_queue_depths(p_now_ms: Option<i64>, fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    Ok(set_of_rows(fcinfo, |db, result| metrics::depths(db, result, p_now_ms))?)
}

/// Counts over the whole queue.
#[pg_extern(sql = false)]
fn get_system_metrics(fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    Ok(set_of_rows(fcinfo, metrics::system)?)
}
