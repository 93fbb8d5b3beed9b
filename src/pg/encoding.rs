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

/// Whether what is sent to this client is converted to another encoding.
pub(crate) fn is_converted() -> bool {
    // SAFETY: both read globals.
    unsafe { pg_sys::pg_get_client_encoding() != pg_sys::GetDatabaseEncoding() }
}

/// Whether a JSON text can be sent to this client as jsonb, whose text form has the characters themselves where a
/// text may have escapes.
pub(crate) fn json_reaches_client(text: &[u8]) -> bool {
    if !is_converted() {
        return true;
    }
    reaches_client(text) && (!is_utf8() || reaches_client(escaped_characters(text).as_bytes()))
}

/// The characters that a JSON text has as `\u` escapes.
fn escaped_characters(text: &[u8]) -> String {
    let mut units = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].iter().position(|&byte| byte == b'\\') {
        at += found + 2;
        let digits = text.get(at..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        if text.get(at - 1) == Some(&b'u')
            && let Some(unit) = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok())
        {
            units.push(unit);
            at += 4;
        }
        at = at.min(text.len());
    }
    // Halves of pairs that do not belong together are refused elsewhere.
    char::decode_utf16(units).filter_map(Result::ok).collect()
}

/// Whether a text can be sent to this client. One that cannot would fail the whole call after the
/// function has returned, each time again; another client may have an encoding for it.
pub(crate) fn reaches_client(text: &[u8]) -> bool {
    if !is_converted() || text.is_ascii() {
        return true;
    }
    // SAFETY: both read globals.
    let (client, context) = unsafe { (pg_sys::pg_get_client_encoding(), pg_sys::CurrentMemoryContext) };
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

#[cfg(test)]
mod tests {
    use super::escaped_characters;

    #[test]
    fn escapes_are_the_characters_that_they_stand_for() {
        for (text, characters) in [
            (r#""a""#, ""),
            (r#"["\u65e5", "\\u0041", "\n"]"#, "\u{65e5}"),
            (r#""\ud83d\ude00\\\u00e9""#, "\u{1f600}\u{e9}"),
            (r#""\ud83d""#, ""),
            (r#""\ufffd""#, "\u{fffd}"),
            ("\"\\u12", ""),
            ("\\", ""),
        ] {
            assert_eq!(escaped_characters(text.as_bytes()), characters, "{text}");
        }
    }
}
