//! The functions as SQL calls them: arguments checked, handed to the operation, result shaped.
//!
//! Their SQL declarations are in `sql/queue_functions.sql`, since each queue's schema has its own;
//! here stand only the symbols, which must never go: a newer library serves older declarations.

#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "the signatures are the contract's")]
#![allow(clippy::result_large_err, reason = "pgrx raises an ErrorReport by value, once a call at most")]

mod history;
mod inspect;
mod kv;
mod maintenance;
mod management;
mod observe;
mod orchestrator;
mod session;
mod worker;

use crate::db::Db;
use crate::error::{Error, Result};
use crate::pg::result_set::ResultSet;
use crate::pg::spi::Value;
use pgrx::pg_sys;

/// The value of an argument that must not be NULL.
fn required<T>(argument: Option<T>, name: &'static str) -> Result<T> {
    argument.ok_or(Error::NullArgument(name))
}

/// The result of a function that returns what a statement finds: handed over at once. Called row by row it would, under
/// its own `search_path`, be entered for each, and once more at the end.
fn set_of_rows(fcinfo: pg_sys::FunctionCallInfo, read: impl FnOnce(&Db, &ResultSet)) -> Result<()> {
    let result = ResultSet::of_call(fcinfo);
    Db::enter(fcinfo, |db| {
        read(db, &result);
        Ok(())
    })
}

/// The result of a function that returns one row, or none, of what an operation found.
fn set_of_one<T, const N: usize>(
    fcinfo: pg_sys::FunctionCallInfo,
    find: impl FnOnce(&Db) -> Result<Option<T>>,
    columns: impl FnOnce(&T) -> [Value<'_>; N],
) -> Result<()> {
    let result = ResultSet::of_call(fcinfo);
    if let Some(found) = Db::enter(fcinfo, find)? {
        result.append_row(&columns(&found));
    }
    Ok(())
}
