//! The current transaction.

use pgrx::pg_sys;

/// Whether it can only read, because it was begun so or on a standby.
pub(crate) fn is_read_only() -> bool {
    // SAFETY: reads a global of this backend.
    unsafe { pg_sys::XactReadOnly }
}

/// Whether all statements of the transaction see what had been committed before its first (REPEATABLE READ, SERIALIZABLE).
pub(crate) fn keeps_one_snapshot() -> bool {
    // SAFETY: reads a global of this backend.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}
