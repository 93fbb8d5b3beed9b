//! Locking and writing under a `lock_timeout` so short that it would fail where nobody is in the way.
//!
//! Sessions that lengthen one table's file take turns on a heavyweight lock (`RelationExtensionLock` in
//! hio.c), for microseconds each, and the wait counts against `lock_timeout`. With one of 1 ms a busy
//! queue's fetches would fail by it, though no session holds anything back. So does the one wait that SKIP LOCKED leaves: where
//! a row's writer ends just as it is looked at, and another writes the new version at once
//! (`heap_lock_updated_tuple_rec` in heapam.c).

use crate::pg::guc;
use core::ffi::CStr;
use pgrx::pg_sys;
use std::time::Duration;

/// The session's own `lock_timeout`, if it has one.
pub(crate) fn of_the_session() -> Option<Duration> {
    // SAFETY: reads a global of this backend.
    let timeout_ms = unsafe { pg_sys::LockTimeout };
    u64::try_from(timeout_ms).ok().filter(|&timeout_ms| timeout_ms > 0).map(Duration::from_millis)
}

/// Runs the part of a claim that locks rows or writes with a `lock_timeout` of at least a second. Its tables are
/// locked before that, under the caller's own: a wait for DDL is the caller's to bound.
pub(crate) fn at_least_a_second<R>(schema: pg_sys::Oid, tables: &[&CStr], body: impl FnOnce() -> R) -> R {
    if of_the_session().is_none_or(|timeout| timeout >= Duration::from_secs(1)) {
        return body();
    }
    for table in tables {
        // SAFETY: the lock that the statement itself takes, held to the end of the transaction.
        unsafe {
            let table = pg_sys::get_relname_relid(table.as_ptr(), schema);
            pg_sys::LockRelationOid(table, pg_sys::RowExclusiveLock as i32);
        }
    }
    guc::with_settings(&[(c"lock_timeout", c"1s")], body)
}
