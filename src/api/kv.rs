//! Key-value store and custom status, as readers see them.

use super::{set_of_one, set_of_rows};

use crate::db::Db;
use crate::pg::values::Text;
use crate::queue::{custom_status, kv};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{pg_extern, pg_sys};

/// The value of one key, and whether there is one.
#[pg_extern(sql = false)]
fn get_kv_value(
    p_instance: Option<Text>,
    p_key: Option<Text>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    let value = |db: &Db| Ok(Some(kv::value(db, p_instance, p_key)));
    Ok(set_of_one(fcinfo, value, |value| [value.as_ref().into(), value.is_some().into()])?)
}

/// Every key with its value.
#[pg_extern(sql = false)]
fn get_kv_all_values(p_instance: Option<Text>, fcinfo: pg_sys::FunctionCallInfo) -> Result<(), ErrorReport> {
    Ok(set_of_rows(fcinfo, |db, result| kv::all_values(db, result, p_instance))?)
}

/// The custom status and its version, if it has changed since the version last seen.
#[pg_extern(sql = false)]
fn get_custom_status(
    p_instance_id: Option<Text>,
    p_last_seen_version: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Result<(), ErrorReport> {
    Ok(set_of_rows(fcinfo, |db, result| {
        custom_status::since(db, result, p_instance_id, p_last_seen_version)
    })?)
}
