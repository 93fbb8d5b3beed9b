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

use crate::error::Error;

/// The value of an argument that must not be NULL.
fn required<T>(argument: Option<T>, name: &'static str) -> Result<T, Error> {
    argument.ok_or(Error::NullArgument(name))
}
