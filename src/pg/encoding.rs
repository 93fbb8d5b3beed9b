//! The encoding of the database, which is that of every text in this backend.

use pgrx::pg_sys;

/// Whether texts are UTF-8.
pub(crate) fn is_utf8() -> bool {
    // SAFETY: reads a global that is set when the backend starts.
    unsafe { pg_sys::GetDatabaseEncoding() == pg_sys::pg_enc::PG_UTF8 as i32 }
}
