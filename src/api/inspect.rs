//! Instances, executions and counts, as operators see them.

use super::set_of_rows;

use crate::db::Db;
use crate::pg::values::{Text, TextBuf, Timestamptz};
use crate::queue::{inspect, metrics};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{name, pg_extern, pg_sys, prelude::TableIterator};

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
    Ok(set_of_rows(fcinfo, |db| inspect::list_instances_by_status(db, p_status))?)
}

/// The executions of an instance, in order.
#[pg_extern(sql = false)]
fn list_executions(p_instance_id: Option<Text>, fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    Ok(set_of_rows(fcinfo, |db| inspect::list_executions(db, p_instance_id))?)
}

/// The sub-orchestrations of an instance, the eldest first.
#[pg_extern(sql = false)]
fn list_children(p_instance_id: Option<Text>, fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    Ok(set_of_rows(fcinfo, |db| inspect::list_children(db, p_instance_id))?)
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
) -> Result<
    TableIterator<
        'static,
        (
            name!(instance_id, Option<TextBuf>),
            name!(orchestration_name, Option<TextBuf>),
            name!(orchestration_version, Option<TextBuf>),
            name!(current_execution_id, Option<i64>),
            name!(created_at, Option<Timestamptz>),
            name!(updated_at, Option<Timestamptz>),
            name!(status, Option<TextBuf>),
            name!(output, Option<TextBuf>),
            name!(parent_instance_id, Option<TextBuf>),
        ),
    >,
    ErrorReport,
> {
    let info = Db::enter(fcinfo, |db| Ok(inspect::instance(db, p_instance_id)))?;
    Ok(TableIterator::new(info.map(|info| {
        (
            info.instance_id,
            info.orchestration_name,
            info.orchestration_version,
            info.current_execution_id,
            info.created_at,
            info.updated_at,
            info.status,
            info.output,
            info.parent_instance_id,
        )
    })))
}

/// One execution, with the number of its events.
#[pg_extern(sql = false)]
fn get_execution_info(
    p_instance_id: Option<Text>,
    p_execution_id: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<
    TableIterator<
        'static,
        (
            name!(execution_id, Option<i64>),
            name!(status, Option<TextBuf>),
            name!(output, Option<TextBuf>),
            name!(started_at, Option<Timestamptz>),
            name!(completed_at, Option<Timestamptz>),
            name!(event_count, Option<i64>),
        ),
    >,
    ErrorReport,
> {
    let info = Db::enter(fcinfo, |db| Ok(inspect::execution(db, p_instance_id, p_execution_id)))?;
    Ok(TableIterator::new(info.map(|info| {
        (info.execution_id, info.status, info.output, info.started_at, info.completed_at, info.event_count)
    })))
}

/// Sizes of an instance.
#[pg_extern(sql = false)]
fn get_instance_stats(
    p_instance: Option<Text>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<
    TableIterator<
        'static,
        (
            name!(out_found, bool),
            name!(out_history_event_count, i64),
            name!(out_history_size_bytes, i64),
            name!(out_queue_pending_count, i64),
            name!(out_kv_user_key_count, i64),
            name!(out_kv_total_value_bytes, i64),
        ),
    >,
    ErrorReport,
> {
    let stats = Db::enter(fcinfo, |db| Ok(inspect::stats(db, p_instance)))?;
    Ok(TableIterator::once((
        stats.found,
        stats.history_events,
        stats.history_bytes,
        stats.carried_forward,
        stats.kv_keys,
        stats.kv_bytes,
    )))
}

/// Messages and work items that are visible and not under a live lease.
#[pg_extern(sql = false)]
fn get_queue_depths(
    p_now_ms: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<
    TableIterator<'static, (name!(orchestrator_queue, Option<i64>), name!(worker_queue, Option<i64>))>,
    ErrorReport,
> {
    Ok(TableIterator::once(Db::enter(fcinfo, |db| Ok(metrics::depths(db, p_now_ms)))?))
}

/// Counts over the whole queue.
#[pg_extern(sql = false)]
fn get_system_metrics(
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<
    TableIterator<
        'static,
        (
            name!(total_instances, Option<i64>),
            name!(total_executions, Option<i64>),
            name!(running_instances, Option<i64>),
            name!(completed_instances, Option<i64>),
            name!(failed_instances, Option<i64>),
            name!(total_events, Option<i64>),
        ),
    >,
    ErrorReport,
> {
    Ok(TableIterator::once(Db::enter(fcinfo, |db| Ok(metrics::system(db)))?.into()))
}
