//! JSON as PostgreSQL reads it. Texts go in as bytes and come out as jsonb; PostgreSQL's own input
//! functions decide what is JSON, so that what is refused here is what it would refuse.

use crate::error::Error;
use crate::json::{
    ArrayEncoder, MAX_BYTES, MAX_DIGITS_OF_ALL, Push, are_too_many, certainly_one_value, digits_of_exponents,
};
use crate::pg::values::JsonbBuf;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};
use std::ffi::CString;
use std::panic::AssertUnwindSafe;

/// Why a text is not one JSON value: PostgreSQL's message, its detail and SQLSTATE.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: PgSqlErrorCode,
    pub(crate) message: String,
}

impl Refusal {
    /// The SQLSTATE as five characters.
    pub(crate) fn sqlstate(&self) -> String {
        sqlstate(self.code)
    }

    /// The message, or its beginning.
    pub(crate) fn shown(&self) -> String {
        match self.message.char_indices().nth(SHOWN) {
            None => self.message.clone(),
            Some((end, _)) => format!("{}...", &self.message[..end]),
        }
    }
}

/// How much of a message is shown: PostgreSQL's tells the whole token that it cannot read.
const SHOWN: usize = 1000;

/// A SQLSTATE as five characters (elog.h: `PGUNSIXBIT`).
pub(crate) fn sqlstate(code: PgSqlErrorCode) -> String {
    let code = code as i32;
    (0..5).map(|place| char::from(((code >> (6 * place)) & 0x3f) as u8 + b'0')).collect()
}

/// The largest text that one varlena can hold (`MaxAllocSize`), less its header.
const MAX_TEXT: usize = 0x3fff_ffff - 16;

/// Which of PostgreSQL's two JSON types decides.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Syntax only: `\u0000` and unpaired surrogates pass, for texts that are delivered as text.
    Json,
    /// What jsonb can hold.
    Jsonb,
}

/// Checks that `text` is one JSON value. Gives how many digits its exponents add when it is written out.
pub(crate) fn check(text: &[u8], form: Form) -> Result<usize, Refusal> {
    // No number with an exponent is certain.
    if certainly_one_value(text) {
        return Ok(0);
    }
    parse(text, form).map(|(_, digits)| digits)
}

/// What PostgreSQL makes of a text, whatever a quick look says.
#[cfg(any(test, feature = "pg_test"))]
pub(crate) fn parsed(text: &[u8], form: Form) -> Result<JsonbBuf, Refusal> {
    parse(text, form).map(|(parsed, _)| parsed)
}

/// One jsonb array of texts that are each one JSON value; the first that is not is told by its
/// index. The whole may be too large for jsonb though each is fine.
///
/// An encoder of our own builds it; PostgreSQL's parser, several times slower, is asked for the
/// elements that this one is in doubt about, and only for them.
pub(crate) fn array_of(texts: &[&[u8]]) -> Result<JsonbBuf, Unfit> {
    let watch = || {
        pgrx::check_for_interrupts!();
    };
    let bytes = texts.iter().map(|text| text.len()).sum();
    let mut array = ArrayEncoder::new(texts.len(), bytes);
    let mut all_digits = 0;
    for (index, text) in texts.iter().enumerate() {
        watch();
        let pushed = match array.push(text, &watch) {
            Push::InDoubt => {
                let (element, digits) =
                    parse(text, Form::Jsonb).map_err(|refusal| Unfit::Element(index, refusal))?;
                all_digits += digits;
                if all_digits > MAX_DIGITS_OF_ALL {
                    return Err(Unfit::Whole(too_many_digits(all_digits)));
                }
                array.push_jsonb(element.bytes())
            }
            pushed => pushed,
        };
        if pushed == Push::Full {
            drop(array);
            return Err(too_large(texts, index + 1));
        }
    }
    Ok(JsonbBuf::of_bytes(array.finish()))
}

/// Each text that is left may still be the one that is no JSON, which goes before.
fn too_large(texts: &[&[u8]], checked: usize) -> Unfit {
    for (index, text) in texts.iter().enumerate().skip(checked) {
        pgrx::check_for_interrupts!();
        if let Err(refusal) = check(text, Form::Jsonb) {
            return Unfit::Element(index, refusal);
        }
    }
    // As PostgreSQL says it (jsonb_util.c), which would read it all again first.
    Unfit::Whole(Refusal {
        code: PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        message: format!("total size of jsonb array elements exceeds the maximum of {MAX_BYTES} bytes"),
    })
}

/// Why texts cannot be one jsonb array.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// The text of this index is not one JSON value.
    Element(usize, Refusal),
    /// Each is, but jsonb cannot hold them all.
    Whole(Refusal),
}

/// The refusal of a text that the client's encoding has no form for.
pub(crate) fn not_sendable() -> Refusal {
    Refusal {
        code: PgSqlErrorCode::ERRCODE_UNTRANSLATABLE_CHARACTER,
        message: "the text has characters that the encoding of this client does not have".into(),
    }
}

/// A text of our own as jsonb.
pub(crate) fn of_text(text: &str) -> JsonbBuf {
    parse(text.as_bytes(), Form::Jsonb).expect("a JSON text of our own is JSON").0
}

/// A message as a JSON string. What is not ASCII becomes `?`: it may not exist in the encoding of
/// the database.
pub(crate) fn quoted(message: &str) -> String {
    let mut quoted = String::from("\"");
    for character in message.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            ' '..='~' => quoted.push(character),
            _ => quoted.push('?'),
        }
    }
    quoted.push('"');
    quoted
}

fn too_many_digits(digits: usize) -> Refusal {
    Refusal {
        code: PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        message: format!(
            "numbers with exponents that come to {digits} digits are more than one value can hold"
        ),
    }
}

/// Runs PostgreSQL's input function on `text`. Gives how many digits its exponents add when it is written out, too.
fn parse(text: &[u8], form: Form) -> Result<(JsonbBuf, usize), Refusal> {
    if text.len() > MAX_TEXT {
        return Err(Refusal {
            code: PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            message: format!("{} bytes of JSON are more than one value can hold", text.len()),
        });
    }
    let digits = if form == Form::Jsonb { digits_of_exponents(text) } else { 0 };
    let is_too_long = are_too_many(digits, text.len());
    let text = CString::new(text).expect("a text of PostgreSQL holds no NUL byte");
    let input: BuiltIn = match form {
        Form::Json => pg_sys::json_in,
        Form::Jsonb => pg_sys::jsonb_in,
    };
    let parsed = call(input, || vec![Some(pg_sys::Datum::from(text.as_ptr()))])?;
    if is_too_long { Err(too_many_digits(digits)) } else { Ok((parsed, digits)) }
}

type BuiltIn = unsafe fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum;

/// Calls a function that returns JSON, in memory of its own. These functions only compute: they hold
/// no lock, buffer or reference that an error would leave behind, so an error of theirs can be caught
/// without a subtransaction.
fn call(
    function: BuiltIn,
    arguments: impl FnOnce() -> Vec<Option<pg_sys::Datum>>,
) -> Result<JsonbBuf, Refusal> {
    // SAFETY: reads a global; the new context is a child of the current one.
    let (outer, scratch) = unsafe {
        let outer = pg_sys::CurrentMemoryContext;
        let scratch = pg_sys::AllocSetContextCreateInternal(
            outer,
            c"duroxide_queue json".as_ptr(),
            pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        );
        (outer, scratch)
    };
    let result = PgTryBuilder::new(AssertUnwindSafe(|| {
        // SAFETY: the function is PostgreSQL's own and gets the arguments that it is declared with.
        unsafe {
            pg_sys::MemoryContextSwitchTo(scratch);
            let value = pgrx::direct_function_call_as_datum(function, &arguments());
            Ok(JsonbBuf::copy(value.expect("these functions return a value")))
        }
    }))
    .catch_others(|error| Err(refusal_of(error)))
    .execute();
    // SAFETY: the context that was current when the call began, and the one made above; an error
    // that went on up leaves both to the end of the transaction.
    unsafe {
        pg_sys::MemoryContextSwitchTo(outer);
        pg_sys::MemoryContextDelete(scratch);
    }
    result
}

/// An error that speaks of the text is a refusal; a cancel, or memory that ran out, goes on up.
fn refusal_of(error: CaughtError) -> Refusal {
    let CaughtError::PostgresError(ref report) = error else { error.rethrow() };
    let code = report.sql_error_code();
    match code {
        PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION
        | PgSqlErrorCode::ERRCODE_UNTRANSLATABLE_CHARACTER
        | PgSqlErrorCode::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE
        | PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE
        | PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED
        | PgSqlErrorCode::ERRCODE_STATEMENT_TOO_COMPLEX => {
            let message = match report.detail() {
                Some(detail) => format!("{}: {detail}", report.message()),
                None => report.message().to_string(),
            };
            Refusal { code, message }
        }
        // PostgreSQL 15 says so of an escape that an encoding other than UTF-8 does not have; as 0A000 a
        // client would try it again.
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED => Refusal {
            code: PgSqlErrorCode::ERRCODE_UNTRANSLATABLE_CHARACTER,
            message: report.message().to_string(),
        },
        // What palloc says of a request beyond its limit (mcxt.c): the text is too large, not we at fault.
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR => Refusal {
            code: PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            message: report.message().to_string(),
        },
        _ => error.rethrow(),
    }
}

/// Refuses an argument that could never be delivered, and says which and why.
pub(crate) fn guard(argument: &'static str, text: &[u8], form: Form) -> Result<(), Error> {
    check(text, form).map(drop).map_err(|refusal| Error::Undeliverable { argument, refusal })
}
