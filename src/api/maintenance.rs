//! Deletion, pruning, and the end of a queue.

use super::required;
use crate::db::Db;

use crate::pg::values::{Text, TextArray};
use crate::queue::{cleanup, deletion, pruning};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{name, pg_extern, pg_sys, prelude::TableIterator};

/// Deletes instances, all or none.
///
/// Errors: P0001 `Instance ... is Running` without force, `Orphan detected` when a child would be left;
/// 22004 when force is NULL.
#[pg_extern(sql = false)]
fn delete_instances_atomic(
    p_instance_ids: Option<TextArray>,
    p_force: Option<bool>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<
    TableIterator<
        'static,
        (
            name!(instances_deleted, i64),
            name!(executions_deleted, i64),
            name!(events_deleted, i64),
            name!(queue_messages_deleted, i64),
        ),
    >,
    ErrorReport,
> {
    let force = required(p_force, "p_force")?;
    let deleted = Db::enter(fcinfo, |db| deletion::delete(db, p_instance_ids, force))?;
    Ok(TableIterator::once((deleted.instances, deleted.executions, deleted.events, deleted.messages)))
}

/// Prunes old executions of an instance.
///
/// Errors: P0001 `Instance ... not found`.
#[pg_extern(sql = false)]
fn prune_executions(
    p_instance_id: Option<Text>,
    p_keep_last: Option<i32>,
    p_completed_before_ms: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<
    TableIterator<
        'static,
        (name!(instances_processed, i64), name!(executions_deleted, i64), name!(events_deleted, i64)),
    >,
    ErrorReport,
> {
    let pruned =
        Db::enter(fcinfo, |db| pruning::prune(db, p_instance_id, p_keep_last, p_completed_before_ms))?;
    Ok(TableIterator::once((1, pruned.executions, pruned.events)))
}

/// Drops the queue's tables and functions.
#[pg_extern(sql = false)]
fn cleanup_schema(fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    Ok(Db::enter(fcinfo, |db| {
        cleanup::drop_everything(db);
        Ok(())
    })?)
}
