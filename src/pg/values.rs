//! SQL values that pass through undecoded, as the bytes that PostgreSQL holds.
//!
//! Nothing here assumes UTF-8 or parses JSON: the database's encoding may be another, and numbers
//! keep their digits. An argument is a borrowed datum, good for the length of the call; a result is
//! owned by Rust until PostgreSQL takes it.

use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::datum::Datum;
use pgrx::nullable::Nullable;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{FromDatum, pg_sys, varlena};

macro_rules! sql_type {
    ($name:ident, $sql:literal) => {
        // SAFETY: names the SQL type whose datum the Rust type holds.
        unsafe impl SqlTranslatable for $name {
            const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!($name);
            const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
            const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal($sql));
            const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
                Ok(ReturnsRef::One(SqlMappingRef::literal($sql)));
        }
    };
}

macro_rules! argument {
    ($name:ident, $sql:literal) => {
        sql_type!($name, $sql);

        impl FromDatum for $name {
            unsafe fn from_polymorphic_datum(
                datum: pg_sys::Datum,
                is_null: bool,
                _: pg_sys::Oid,
            ) -> Option<Self> {
                (!is_null).then_some($name(datum.into()))
            }
        }

        // SAFETY: reads the datum of the argument and nothing behind it.
        unsafe impl<'fcx> ArgAbi<'fcx> for $name {
            unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
                // SAFETY: the functions of this crate take every argument as an Option, so a NULL
                // comes by `unbox_nullable_arg`.
                unsafe { arg.unbox_arg_using_from_datum().expect("argument is not null") }
            }

            unsafe fn unbox_nullable_arg(arg: Arg<'_, 'fcx>) -> Nullable<Self> {
                // SAFETY: `from_polymorphic_datum` above accepts any datum of the declared type.
                unsafe { arg.unbox_arg_using_from_datum().into() }
            }
        }
    };
}

/// A datum held raw, so that the wrappers around it stay `UnwindSafe`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw(usize);

impl From<pg_sys::Datum> for Raw {
    fn from(datum: pg_sys::Datum) -> Self {
        Raw(datum.value())
    }
}

impl From<Raw> for pg_sys::Datum {
    fn from(raw: Raw) -> Self {
        pg_sys::Datum::from(raw.0)
    }
}

/// A `text` argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text(pub(crate) Raw);
argument!(Text, "text");

impl Text {
    /// The bytes of the text, in the encoding of the database.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: a `text` argument; detoasting gives the argument itself or a copy in the context
        // of the call, and both outlive this borrow.
        unsafe { text_bytes(self.0.into()) }
    }
}

/// A `jsonb` argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jsonb(pub(crate) Raw);
argument!(Jsonb, "jsonb");

/// A `text[]` argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextArray(pub(crate) Raw);
argument!(TextArray, "text[]");

impl TextArray {
    /// The bytes that the array is stored in: equal ones are equal arrays.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: as above; what is read is the varlena's content, whatever its type.
        unsafe { text_bytes(self.0.into()) }
    }
}

/// A `timestamptz`, in microseconds of PostgreSQL's epoch; the infinities are the extremes of i64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamptz(pub(crate) i64);
sql_type!(Timestamptz, "timestamptz");

impl FromDatum for Timestamptz {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
        (!is_null).then(|| Timestamptz(datum.value() as i64))
    }
}

// SAFETY: a timestamptz is passed by value on every platform that pgrx supports.
unsafe impl<'fcx> ArgAbi<'fcx> for Timestamptz {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: as for the other arguments.
        unsafe { arg.unbox_arg_using_from_datum().expect("argument is not null") }
    }
}

/// A `text` result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextBuf(pub(crate) Vec<u8>);
sql_type!(TextBuf, "text");

// SAFETY: `new_text` allocates in the context that pgrx returns values from.
unsafe impl BoxRet for TextBuf {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        // SAFETY: a datum of the type that the function is declared to return.
        unsafe { fcinfo.return_raw_datum(new_text(&self.0)) }
    }
}

/// A `jsonb`: the whole varlena as PostgreSQL built it, header included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonbBuf(Vec<u8>);

impl JsonbBuf {
    /// `{}`: the header of a varlena of eight bytes (varatt.h: `SET_VARSIZE_4B`), and that of an object
    /// without members (jsonb.h: `JB_FOBJECT`).
    pub(crate) fn empty_object() -> Self {
        let size: u32 = if cfg!(target_endian = "big") { 8 } else { 8 << 2 };
        JsonbBuf([size.to_ne_bytes(), 0x2000_0000_u32.to_ne_bytes()].concat())
    }

    /// Copies a jsonb datum out of PostgreSQL's memory.
    pub(crate) fn copy(datum: pg_sys::Datum) -> Self {
        // SAFETY: callers hold a datum of type jsonb; a detoasted varlena is readable for its size.
        unsafe {
            let value = pg_sys::pg_detoast_datum(datum.cast_mut_ptr());
            let size = varlena::varsize_any(value);
            JsonbBuf(core::slice::from_raw_parts(value.cast::<u8>(), size).to_vec())
        }
    }

    /// Takes bytes that are those of a jsonb.
    pub(crate) fn of_bytes(varlena: Vec<u8>) -> Self {
        JsonbBuf(varlena)
    }

    /// The whole varlena.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A new `text` datum in the current memory context.
pub(crate) fn new_text(bytes: &[u8]) -> pg_sys::Datum {
    // SAFETY: copies `len` bytes; a length over 1 GB raises an error inside.
    let text = unsafe { pg_sys::cstring_to_text_with_len(bytes.as_ptr().cast(), bytes.len() as i32) };
    pg_sys::Datum::from(text)
}

/// A new `jsonb` datum in the current memory context.
pub(crate) fn new_jsonb(value: &JsonbBuf) -> pg_sys::Datum {
    // SAFETY: the new allocation is as large as what is copied into it.
    unsafe {
        let copy = pg_sys::palloc(value.0.len()).cast::<u8>();
        core::ptr::copy_nonoverlapping(value.0.as_ptr(), copy, value.0.len());
        pg_sys::Datum::from(copy)
    }
}

/// A new `text[]` datum in the current memory context.
pub(crate) fn new_text_array(elements: &[&[u8]]) -> pg_sys::Datum {
    let mut datums: Vec<pg_sys::Datum> = elements.iter().map(|element| new_text(element)).collect();
    new_array(&mut datums, pg_sys::TEXTOID, -1, false, pg_sys::TYPALIGN_INT)
}

/// A new `bigint[]` datum in the current memory context.
pub(crate) fn new_int8_array(elements: &[i64]) -> pg_sys::Datum {
    let mut datums: Vec<pg_sys::Datum> = elements.iter().map(|&element| element.into()).collect();
    new_array(&mut datums, pg_sys::INT8OID, 8, true, pg_sys::TYPALIGN_DOUBLE)
}

fn new_array(
    datums: &mut [pg_sys::Datum],
    element: pg_sys::Oid,
    length: i32,
    by_value: bool,
    align: u8,
) -> pg_sys::Datum {
    // SAFETY: the element type's length, passing and alignment are those of pg_type.
    let array = unsafe {
        pg_sys::construct_array(
            datums.as_mut_ptr(),
            datums.len() as i32,
            element,
            length,
            by_value,
            align as _,
        )
    };
    pg_sys::Datum::from(array)
}

/// The bytes of a text datum, detoasted into the current memory context if need be.
///
/// # Safety
/// `datum` is a `text` that outlives `'a`, and so does the current memory context.
pub(crate) unsafe fn text_bytes<'a>(datum: pg_sys::Datum) -> &'a [u8] {
    // SAFETY: by the caller's promise.
    unsafe {
        let value = pg_sys::pg_detoast_datum_packed(datum.cast_mut_ptr());
        core::slice::from_raw_parts(varlena::vardata_any(value).cast(), varlena::varsize_any_exhdr(value))
    }
}
