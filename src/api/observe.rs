//! What the views of the extension's own schema are made of: see `sql/views.sql`.

use super::required;

use crate::observe;
use crate::pg::encoding;
use crate::pg::json::{self, Form};
use crate::pg::result_set::ResultSet;
use crate::pg::values::{Text, TextBuf, Timestamptz};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{pg_extern, pg_sys};

/// How each queue stands.
///
/// Errors: 22003 a time that is infinite; 22004.
#[pg_extern(sql = false)]
fn list_queue_health(at: Option<Timestamptz>, fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    Ok(observe::health(&ResultSet::of_call(fcinfo), required(at, "at")?)?)
}

/// Every lease of each queue.
///
/// Errors: as `list_queue_health`.
#[pg_extern(sql = false)]
fn list_leases(at: Option<Timestamptz>, fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    Ok(observe::leases(&ResultSet::of_call(fcinfo), required(at, "at")?)?)
}

/// What is stuck in each queue.
///
/// Errors: as `list_queue_health`.
#[pg_extern(sql = false)]
fn list_stuck(
    ready_before: Option<Timestamptz>,
    attempts: Option<i32>,
    at: Option<Timestamptz>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    let ready_before = required(ready_before, "ready_before")?;
    let attempts = required(attempts, "attempts")?;
    Ok(observe::stuck(&ResultSet::of_call(fcinfo), required(at, "at")?, ready_before, attempts)?)
}

/// How each queue came to be, as far as the reader may know.
#[pg_extern(sql = false)]
fn list_registries(fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    observe::registries(&ResultSet::of_call(fcinfo));
    Ok(())
}

/// Why a text could never be delivered as a message.
#[pg_extern(sql = false)]
fn why_undeliverable(work_item: Option<Text>) -> Option<TextBuf> {
    let refusal = json::check(work_item?.bytes(), Form::Jsonb).err()?;
    let why = format!("{}: {}", refusal.sqlstate(), refusal.message);
    Some(TextBuf(encoding::sendable(why.into()).into_owned().into_bytes()))
}
