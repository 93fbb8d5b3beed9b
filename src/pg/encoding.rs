//! The encoding of the database, which is that of every text in this backend, and of the client.

use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};
use std::borrow::Cow;
use std::panic::AssertUnwindSafe;

/// Whether texts are UTF-8.
pub(crate) fn is_utf8() -> bool {
    // SAFETY: reads a global that is set when the backend starts.
    unsafe { pg_sys::GetDatabaseEncoding() == pg_sys::pg_enc::PG_UTF8 as i32 }
}

/// A message as the server can send it. pgrx hands messages over in UTF-8; a server of another
/// encoding would take them for its own and could fail with 22021 instead of the error itself, so
/// there only ASCII is left.
pub(crate) fn sendable(message: Cow<'_, str>) -> Cow<'_, str> {
    if message.is_ascii() || is_utf8() {
        return message;
    }
    message.chars().map(|character| if character.is_ascii() { character } else { '?' }).collect()
}

/// Whether a text can be sent to this client. One that cannot would fail the whole call after the
/// function has returned, each time again; another client may have an encoding for it.
pub(crate) fn reaches_client(text: &[u8]) -> bool {
    // SAFETY: both read globals.
    let (client, server) = unsafe { (pg_sys::pg_get_client_encoding(), pg_sys::GetDatabaseEncoding()) };
    if client == server || text.is_ascii() {
        return true;
    }
    // SAFETY: reads a global.
    let context = unsafe { pg_sys::CurrentMemoryContext };
    // A conversion only computes, so that its error can be caught without a subtransaction.
    PgTryBuilder::new(AssertUnwindSafe(|| {
        // SAFETY: converts `len` bytes into a new string of the current context.
        unsafe { pg_sys::pg_server_to_any(text.as_ptr().cast(), text.len() as i32, client) };
        true
    }))
    .catch_others(|error| {
        // SAFETY: the context that was current when the call began.
        unsafe { pg_sys::MemoryContextSwitchTo(context) };
        match error {
            CaughtError::PostgresError(ref report)
                if matches!(
                    report.sql_error_code(),
                    PgSqlErrorCode::ERRCODE_UNTRANSLATABLE_CHARACTER
                        | PgSqlErrorCode::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE
                ) =>
            {
                false
            }
            other => other.rethrow(),
        }
    })
    .execute()
}
