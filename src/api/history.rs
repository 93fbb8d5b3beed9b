//! History.

use super::set_of_rows;

use crate::db::Db;
use crate::pg::values::{Jsonb, Text};
use crate::queue::history;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{pg_extern, pg_sys};

/// The events of the latest execution, in order.
#[pg_extern(sql = false)]
fn fetch_history(p_instance_id: Option<Text>, fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    Ok(set_of_rows(fcinfo, |db, result| history::of_latest_execution(db, result, p_instance_id))?)
}

/// The events of one execution, in order.
#[pg_extern(sql = false)]
fn fetch_history_with_execution(
    p_instance_id: Option<Text>,
    p_execution_id: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    Ok(set_of_rows(fcinfo, |db, result| history::of_execution(db, result, p_instance_id, p_execution_id))?)
}

/// Appends events; those whose id is there already are left as they were.
///
/// Errors: P0001 `Invalid event_id in append_history`; 22P02, 22P05 or 22003 when an event could never
/// be delivered.
#[pg_extern(sql = false)]
fn append_history(
    p_instance_id: Option<Text>,
    p_execution_id: Option<i64>,
    p_events: Option<Jsonb>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    Ok(Db::enter(fcinfo, |db| history::append(db, p_instance_id, p_execution_id, p_events))?)
}
