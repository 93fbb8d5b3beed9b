//! A piece of work that may fail for want of a lock and be tried again.

use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};
use std::panic::AssertUnwindSafe;

/// Runs `body` in a subtransaction. `None`, and all of it undone, if it failed with 55P03; any other
/// error goes on up.
pub(crate) fn unless_lock_not_available<R>(body: impl FnOnce() -> R) -> Option<R> {
    // SAFETY: what pl_exec.c does around a block with an EXCEPTION clause: memory context and resource
    // owner are those of before, whichever way the subtransaction ends.
    unsafe {
        let context = pg_sys::CurrentMemoryContext;
        let owner = pg_sys::CurrentResourceOwner;
        pg_sys::BeginInternalSubTransaction(core::ptr::null());
        pg_sys::MemoryContextSwitchTo(context);
        let outcome = PgTryBuilder::new(AssertUnwindSafe(|| Some(body())))
            .catch_when(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, |_| None)
            .execute();
        pg_sys::MemoryContextSwitchTo(context);
        match outcome {
            Some(_) => pg_sys::ReleaseCurrentSubTransaction(),
            None => pg_sys::RollbackAndReleaseCurrentSubTransaction(),
        }
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
        outcome
    }
}
