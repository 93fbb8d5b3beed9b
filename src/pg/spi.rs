//! The server programming interface: saved plans run in, rows read out.
//!
//! pgrx's own SPI client assigns a transaction id at every `update` and reads with an old snapshot
//! until there is one. A claim wants what PL/pgSQL does: each statement sees what has been committed
//! before it started, and an id is assigned by the first write. So plans run with `read_only` false
//! throughout, which gives exactly that (`_SPI_execute_plan` in spi.c) and works on a standby too,
//! as long as the statement writes nothing.

use crate::error::Error;
use crate::pg::result_set::ResultSet;
use crate::pg::values::{self, Raw};
use core::ffi::CStr;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::pg_sys::submodules::elog::PgLogLevel;
use std::marker::PhantomData;

/// A connection to SPI; its memory goes when it is dropped.
pub(crate) struct Session(PhantomData<*mut ()>);

impl Session {
    pub(crate) fn open() -> Self {
        // SAFETY: paired with SPI_finish in Drop, or undone by the abort of the (sub)transaction.
        unsafe { pg_sys::SPI_connect() };
        Session(PhantomData)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // While an error unwinds, PostgreSQL's abort closes the connection (AtEOSubXact_SPI).
        if !std::thread::panicking() {
            // SAFETY: the matching SPI_connect succeeded.
            unsafe { pg_sys::SPI_finish() };
        }
    }
}

/// A plan that outlives the transaction.
pub(crate) struct SavedPlan(pg_sys::SPIPlanPtr);

impl SavedPlan {
    /// Parses and saves one statement. With `generic`, its plan never looks at the arguments.
    pub(crate) fn new(text: &CStr, parameters: &[pg_sys::Oid], generic: bool) -> Self {
        let options = if generic { pg_sys::CURSOR_OPT_GENERIC_PLAN } else { 0 };
        let mut types = parameters.to_vec();
        // SAFETY: the text is NUL-terminated and the types are as many as said; a plan that cannot
        // be made raises an error, and SPI_keepplan moves it to memory that lasts.
        unsafe {
            let plan = pg_sys::SPI_prepare_cursor(
                text.as_ptr(),
                types.len() as i32,
                types.as_mut_ptr(),
                options as i32,
            );
            assert!(!plan.is_null(), "SPI_prepare_cursor refused a statement");
            pg_sys::SPI_keepplan(plan);
            SavedPlan(plan)
        }
    }

    /// Runs the plan under a fresh snapshot.
    pub(crate) fn run<'s>(
        &self,
        _session: &'s Session,
        types: &[pg_sys::Oid],
        arguments: &[Value<'_>],
    ) -> Rows<'s> {
        // SAFETY: without a receiver, SPI keeps the rows.
        unsafe {
            self.execute(types, arguments, core::ptr::null_mut());
            Rows::take()
        }
    }

    /// Runs the plan under a fresh snapshot, with its rows as those of `result`.
    pub(crate) fn run_into(
        &self,
        _session: &Session,
        types: &[pg_sys::Oid],
        arguments: &[Value<'_>],
        result: &ResultSet,
    ) {
        // SAFETY: the receiver is made for this one run, and refuses rows that do not fit.
        unsafe { self.execute(types, arguments, result.receiver()) };
    }

    /// # Safety
    /// In an SPI session; `dest` is null or a receiver that has received nothing.
    unsafe fn execute(
        &self,
        types: &[pg_sys::Oid],
        arguments: &[Value<'_>],
        dest: *mut pg_sys::DestReceiver,
    ) {
        // SAFETY: the list has room for as many parameters as there are arguments; `Db` checked their number and types
        // against the plan's.
        unsafe {
            let params = pg_sys::makeParamList(arguments.len() as i32);
            let slots = (*params).params.as_mut_slice(arguments.len());
            for ((slot, argument), &ptype) in slots.iter_mut().zip(arguments).zip(types) {
                let datum = argument.datum();
                *slot = pg_sys::ParamExternData {
                    value: datum.unwrap_or(pg_sys::Datum::from(0)),
                    isnull: datum.is_none(),
                    pflags: pg_sys::PARAM_FLAG_CONST as u16,
                    ptype,
                };
            }
            let options = pg_sys::SPIExecuteOptions { params, dest, ..Default::default() };
            pg_sys::SPI_execute_plan_extended(self.0, &options);
        }
    }
}

impl Drop for SavedPlan {
    fn drop(&mut self) {
        // SAFETY: kept by `new` and freed nowhere else.
        unsafe { pg_sys::SPI_freeplan(self.0) };
    }
}

/// Runs a script of one or more statements, each planned when its turn comes.
pub(crate) fn run_script(_session: &Session, text: &CStr) {
    // SAFETY: the text is NUL-terminated; errors are raised, not returned.
    unsafe {
        pg_sys::SPI_execute(text.as_ptr(), false, 0);
        drop(Rows::take());
    }
}

/// Runs one statement without saving its plan.
pub(crate) fn run_once<'s>(_session: &'s Session, text: &CStr, arguments: &[Value<'_>]) -> Rows<'s> {
    let mut types = Vec::with_capacity(arguments.len());
    let mut datums = Vec::with_capacity(arguments.len());
    for argument in arguments {
        types.push(argument.type_oid().unwrap_or(pg_sys::TEXTOID));
        datums.push(argument.datum().unwrap_or(pg_sys::Datum::from(0)));
    }
    let nulls: Vec<core::ffi::c_char> = arguments
        .iter()
        .map(|argument| if matches!(argument, Value::Null) { b'n' } else { b' ' } as _)
        .collect();
    // SAFETY: types and values come from the same arguments.
    unsafe {
        pg_sys::SPI_execute_with_args(
            text.as_ptr(),
            types.len() as i32,
            types.as_mut_ptr(),
            datums.as_mut_ptr(),
            nulls.as_ptr(),
            false,
            0,
        );
        Rows::take()
    }
}

/// One argument of a plan.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int4(i32),
    Int8(i64),
    Timestamptz(values::Timestamptz),
    Text(&'a [u8]),
    TextList(&'a [&'a [u8]]),
    Int8List(&'a [i64]),
    Jsonb(&'a values::JsonbBuf),
    Oid(pg_sys::Oid),
    Passed(Raw, pg_sys::Oid),
}

impl Value<'_> {
    /// The value in the current memory context; `None` for NULL.
    pub(super) fn datum(&self) -> Option<pg_sys::Datum> {
        Some(match *self {
            Value::Null => return None,
            Value::Bool(value) => value.into(),
            Value::Int4(value) => value.into(),
            Value::Int8(value) => value.into(),
            Value::Timestamptz(value) => value.0.into(),
            Value::Text(bytes) => values::new_text(bytes),
            Value::TextList(list) => values::new_text_array(list),
            Value::Int8List(list) => values::new_int8_array(list),
            Value::Jsonb(value) => values::new_jsonb(value),
            Value::Oid(oid) => oid.into(),
            Value::Passed(raw, _) => raw.into(),
        })
    }

    /// The SQL type of the value; `None` for NULL, which fits any.
    pub(crate) fn type_oid(&self) -> Option<pg_sys::Oid> {
        match self {
            Value::Null => None,
            Value::Bool(_) => Some(pg_sys::BOOLOID),
            Value::Int4(_) => Some(pg_sys::INT4OID),
            Value::Int8(_) => Some(pg_sys::INT8OID),
            Value::Timestamptz(_) => Some(pg_sys::TIMESTAMPTZOID),
            Value::Text(_) => Some(pg_sys::TEXTOID),
            Value::TextList(_) => Some(pg_sys::TEXTARRAYOID),
            Value::Int8List(_) => Some(pg_sys::INT8ARRAYOID),
            Value::Jsonb(_) => Some(pg_sys::JSONBOID),
            Value::Oid(_) => Some(pg_sys::OIDOID),
            Value::Passed(_, oid) => Some(*oid),
        }
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Int8(value)
    }
}

impl From<pg_sys::Oid> for Value<'_> {
    fn from(value: pg_sys::Oid) -> Self {
        Value::Oid(value)
    }
}

impl From<i32> for Value<'_> {
    fn from(value: i32) -> Self {
        Value::Int4(value)
    }
}

impl From<values::Timestamptz> for Value<'_> {
    fn from(value: values::Timestamptz) -> Self {
        Value::Timestamptz(value)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Value::Text(value)
    }
}

impl<'a> From<&'a Vec<u8>> for Value<'a> {
    fn from(value: &'a Vec<u8>) -> Self {
        Value::Text(value)
    }
}

impl<'a> From<&'a [&'a [u8]]> for Value<'a> {
    fn from(value: &'a [&'a [u8]]) -> Self {
        Value::TextList(value)
    }
}

impl<'a> From<&'a values::TextBuf> for Value<'a> {
    fn from(value: &'a values::TextBuf) -> Self {
        Value::Text(&value.0)
    }
}

impl<'a> From<&'a values::JsonbBuf> for Value<'a> {
    fn from(value: &'a values::JsonbBuf) -> Self {
        Value::Jsonb(value)
    }
}

impl<'a> From<&'a [i64]> for Value<'a> {
    fn from(value: &'a [i64]) -> Self {
        Value::Int8List(value)
    }
}

impl From<values::Text> for Value<'_> {
    fn from(value: values::Text) -> Self {
        Value::Passed(value.0, pg_sys::TEXTOID)
    }
}

impl From<values::Jsonb> for Value<'_> {
    fn from(value: values::Jsonb) -> Self {
        Value::Passed(value.0, pg_sys::JSONBOID)
    }
}

impl From<values::TextArray> for Value<'_> {
    fn from(value: values::TextArray) -> Self {
        Value::Passed(value.0, pg_sys::TEXTARRAYOID)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// What a statement returned, until the rows are dropped or the session ends.
pub(crate) struct Rows<'s> {
    table: *mut pg_sys::SPITupleTable,
    count: usize,
    affected: usize,
    session: PhantomData<&'s Session>,
}

impl Rows<'_> {
    /// # Safety
    /// Right after an SPI call that succeeded, so that SPI's globals speak of it.
    unsafe fn take() -> Self {
        // SAFETY: reads SPI's result globals.
        unsafe {
            let table = pg_sys::SPI_tuptable;
            let affected = pg_sys::SPI_processed as usize;
            let count = if table.is_null() { 0 } else { (*table).numvals as usize };
            pg_sys::SPI_tuptable = core::ptr::null_mut();
            Rows { table, count, affected, session: PhantomData }
        }
    }

    /// Rows that a statement without RETURNING wrote, or the rows that it returned.
    pub(crate) fn affected(&self) -> usize {
        self.affected
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn first(&self) -> Option<Row<'_>> {
        self.iter().next()
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        (0..self.count).map(|index| {
            // SAFETY: index < numvals of a live table.
            unsafe {
                Row { tuple: *(*self.table).vals.add(index), desc: (*self.table).tupdesc, rows: PhantomData }
            }
        })
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        if !self.table.is_null() && !std::thread::panicking() {
            // SAFETY: came from SPI in this session, and only now goes.
            unsafe { pg_sys::SPI_freetuptable(self.table) };
        }
    }
}

/// One row; columns are numbered from 1, as in the statement's select list.
#[derive(Clone, Copy)]
pub(crate) struct Row<'r> {
    tuple: pg_sys::HeapTuple,
    desc: pg_sys::TupleDesc,
    rows: PhantomData<&'r ()>,
}

impl<'r> Row<'r> {
    /// The type is checked at each value: an owner can change that of a column, and to take a number
    /// for a pointer would be the end of the backend, or worse.
    fn get(&self, column: i32, expected: pg_sys::Oid) -> Option<pg_sys::Datum> {
        let mut is_null = false;
        // SAFETY: tuple and descriptor belong together; SPI checks the column number.
        unsafe {
            let found = pg_sys::SPI_gettypeid(self.desc, column);
            if found != expected {
                ErrorReport::from(Error::UnexpectedType { found, expected }).report(PgLogLevel::ERROR);
            }
            let datum = pg_sys::SPI_getbinval(self.tuple, self.desc, column, &mut is_null);
            (!is_null).then_some(datum)
        }
    }

    pub(crate) fn tuple(&self) -> pg_sys::HeapTuple {
        self.tuple
    }

    /// Refuses a row that is not of these columns.
    pub(crate) fn check_types(&self, expected: pg_sys::TupleDesc) {
        // SAFETY: both descriptors are live; SPI checks the column number.
        unsafe {
            assert_eq!((*self.desc).natts, (*expected).natts, "columns of a result");
            for column in 1..=(*expected).natts {
                let found = pg_sys::SPI_gettypeid(self.desc, column);
                let expected = pg_sys::SPI_gettypeid(expected, column);
                if found != expected {
                    ErrorReport::from(Error::UnexpectedType { found, expected }).report(PgLogLevel::ERROR);
                }
            }
        }
    }

    pub(crate) fn int8(&self, column: i32) -> Option<i64> {
        self.get(column, pg_sys::INT8OID).map(|datum| datum.value() as i64)
    }

    pub(crate) fn int4(&self, column: i32) -> Option<i32> {
        self.get(column, pg_sys::INT4OID).map(|datum| datum.value() as i32)
    }

    pub(crate) fn oid(&self, column: i32) -> Option<pg_sys::Oid> {
        self.get(column, pg_sys::OIDOID).map(|datum| pg_sys::Oid::from(datum.value() as u32))
    }

    pub(crate) fn bool(&self, column: i32) -> Option<bool> {
        self.get(column, pg_sys::BOOLOID).map(|datum| datum.value() as u8 != 0)
    }

    pub(crate) fn timestamptz(&self, column: i32) -> Option<values::Timestamptz> {
        self.get(column, pg_sys::TIMESTAMPTZOID).map(|datum| values::Timestamptz(datum.value() as i64))
    }

    pub(crate) fn text(&self, column: i32) -> Option<&'r [u8]> {
        // SAFETY: the tuple lives as long as the rows, and so does what SPI's context detoasts.
        self.get(column, pg_sys::TEXTOID).map(|datum| unsafe { values::text_bytes(datum) })
    }

    pub(crate) fn text_buf(&self, column: i32) -> Option<values::TextBuf> {
        self.text(column).map(|bytes| values::TextBuf(bytes.to_vec()))
    }

    pub(crate) fn jsonb(&self, column: i32) -> Option<values::JsonbBuf> {
        self.get(column, pg_sys::JSONBOID).map(values::JsonbBuf::copy)
    }
}
