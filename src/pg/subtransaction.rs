//! A piece of work that may fail and leave nothing behind.

use crate::pg::encoding;
use crate::pg::json::sqlstate;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};
use std::panic::AssertUnwindSafe;

/// Runs `body` in a subtransaction. `None`, and all of it undone, if it failed with 55P03; any other
/// error goes on up.
pub(crate) fn unless_lock_not_available<R>(body: impl FnOnce() -> R) -> Option<R> {
    match in_subtransaction(body, End::Keep) {
        Ok(result) => Some(result),
        Err(error) if code(&error) == PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE => None,
        Err(error) => error.rethrow(),
    }
}

/// How a piece of work ended whose effects are gone.
pub(crate) enum Undone<R> {
    /// With what it returned.
    Returned(R),
    /// With an error: its SQLSTATE and message.
    Failed(String),
}

/// Runs `body` in a subtransaction and undoes it, whether it failed or not: locks that it took are given
/// back, settings and identity are those of before. A cancel, a shutdown and want of memory or disk are
/// for the whole call, so those errors go on up.
pub(crate) fn undone<R>(body: impl FnOnce() -> R) -> Undone<R> {
    match in_subtransaction(body, End::Undo) {
        Ok(result) => Undone::Returned(result),
        Err(error) => match *error {
            CaughtError::PostgresError(report) | CaughtError::ErrorReport(report)
                if !concerns_the_whole_call(report.sql_error_code()) =>
            {
                let told = format!("{}: {}", sqlstate(report.sql_error_code()), report.message());
                Undone::Failed(encoding::sendable(told.into()).into_owned())
            }
            error => error.rethrow(),
        },
    }
}

/// What becomes of the effects of work that has not failed.
#[derive(PartialEq, Eq)]
enum End {
    Keep,
    Undo,
}

/// Runs `body` in a subtransaction, which has ended when this returns, whatever happened: an error that
/// left it open would abort it in place of the level around it, and the session could not get out of
/// its transaction any more.
fn in_subtransaction<R>(body: impl FnOnce() -> R, end: End) -> Result<R, Box<CaughtError>> {
    // SAFETY: what pl_exec.c does around a block with an EXCEPTION clause: memory context and resource
    // owner are those of before, whichever way the subtransaction ends.
    unsafe {
        let context = pg_sys::CurrentMemoryContext;
        let owner = pg_sys::CurrentResourceOwner;
        pg_sys::BeginInternalSubTransaction(core::ptr::null());
        pg_sys::MemoryContextSwitchTo(context);
        let outcome = PgTryBuilder::new(AssertUnwindSafe(|| Ok(body())))
            .catch_others(|error| Err(Box::new(error)))
            .execute();
        pg_sys::MemoryContextSwitchTo(context);
        if outcome.is_ok() && end == End::Keep {
            pg_sys::ReleaseCurrentSubTransaction();
        } else {
            pg_sys::RollbackAndReleaseCurrentSubTransaction();
        }
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
        outcome
    }
}

fn code(error: &CaughtError) -> PgSqlErrorCode {
    match error {
        CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => report.sql_error_code(),
        CaughtError::RustPanic { ereport, .. } => ereport.sql_error_code(),
    }
}

/// Classes 53 (resources) and 57 (operator intervention).
fn concerns_the_whole_call(code: PgSqlErrorCode) -> bool {
    matches!(sqlstate(code).get(..2), Some("53" | "57"))
}
