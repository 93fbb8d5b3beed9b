//! Deletion, pruning, and the end of a queue.

use super::{required, set_of_one};
use crate::db::Db;

use crate::pg::spi::Value;
use crate::pg::values::{Text, TextArray};
use crate::queue::{cleanup, deletion, pruning};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{pg_extern, pg_sys};

/// Deletes instances, all or none.
///
/// Errors: P0001 `Instance ... is Running` without force, `Orphan detected` when a child would be left;
/// 22004 when force is NULL.
#[pg_extern(sql = false)]
fn delete_instances_atomic(
    p_instance_ids: Option<TextArray>,
    p_force: Option<bool>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    let force = required(p_force, "p_force")?;
    let delete = |db: &Db| deletion::delete(db, p_instance_ids, force).map(Some);
    Ok(set_of_one(fcinfo, delete, |deleted| {
        [deleted.instances, deleted.executions, deleted.events, deleted.messages].map(Value::from)
    })?)
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
) -> Result<(), ErrorReport> {
    let prune = |db: &Db| pruning::prune(db, p_instance_id, p_keep_last, p_completed_before_ms).map(Some);
    Ok(set_of_one(fcinfo, prune, |pruned| [1, pruned.executions, pruned.events].map(Value::from))?)
}

/// Drops the queue's tables and functions.
#[pg_extern(sql = false)]
fn cleanup_schema(fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    Ok(Db::enter(fcinfo, |db| {
        cleanup::drop_everything(db);
        Ok(())
    })?)
}
