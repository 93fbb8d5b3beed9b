//! The current transaction.

use pgrx::pg_sys;

/// Whether it can only read, because it was begun so or on a standby.
pub(crate) fn is_read_only() -> bool {
    // SAFETY: reads a global of this backend.
    unsafe { pg_sys::XactReadOnly }
}
