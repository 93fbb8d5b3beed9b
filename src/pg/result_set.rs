//! The rows that a set-returning function gives, handed over all at once.

use crate::pg::spi::{Rows, Value};
use core::ffi::c_char;
use pgrx::{PgTupleDesc, pg_sys};

/// Where the rows of one call go. It belongs to the query that called, so it outlives
/// subtransactions of the call that are undone.
pub(crate) struct ResultSet {
    store: *mut pg_sys::Tuplestorestate,
    desc: pg_sys::TupleDesc,
    context: pg_sys::MemoryContext,
}

unsafe extern "C-unwind" {
    /// tstoreReceiver.c; raises no error.
    fn SetTuplestoreDestReceiverParams(
        receiver: *mut pg_sys::DestReceiver,
        store: *mut pg_sys::Tuplestorestate,
        context: pg_sys::MemoryContext,
        detoast: bool,
        target: pg_sys::TupleDesc,
        mismatch: *const c_char,
    );
}

impl ResultSet {
    /// Opens the result of the function that `fcinfo` calls. To be called outside of SPI, whose
    /// memory goes first.
    pub(crate) fn of_call(fcinfo: pg_sys::FunctionCallInfo) -> Self {
        // SAFETY: PostgreSQL calls a set-returning function with a ReturnSetInfo, which
        // InitMaterializedSRF checks and fills in. The columns that the query expects are the function's; asking for
        // its row type would fail where it is declared with one column, which makes it a set of that type (`funcapi.h`).
        unsafe {
            pg_sys::InitMaterializedSRF(fcinfo, pg_sys::MAT_SRF_USE_EXPECTED_DESC);
            let info = (*fcinfo).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            ResultSet {
                store: (*info).setResult,
                desc: (*info).setDesc,
                context: (*(*info).econtext).ecxt_per_query_memory,
            }
        }
    }

    /// Where a statement sends its rows to add them, in memory of the current context. It refuses ones of other columns
    /// (42804): an owner can change the type of a column, and to take a number for a pointer would be the end of the backend.
    pub(super) fn receiver(&self) -> *mut pg_sys::DestReceiver {
        // SAFETY: store and descriptor live in the context given, as long as the query, and so longer than the receiver.
        unsafe {
            let receiver = pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestTuplestore);
            SetTuplestoreDestReceiverParams(
                receiver,
                self.store,
                self.context,
                false,
                self.desc,
                c"a column of the queue has another type than this function returns".as_ptr(),
            );
            receiver
        }
    }

    /// Adds all the rows that a statement has found, where its end in an error is not that of the call: of what it had sent to a
    /// receiver by then, some would stay. Their columns must be those that the function is declared with. Values come along
    /// whole: the tables may be gone before the rows are read, since no lock of a subtransaction that is undone protects them.
    pub(crate) fn append(&self, rows: &Rows<'_>) {
        for row in rows.iter() {
            row.check_types(self.desc);
            // SAFETY: the tuple has as many columns as the result and the same types; it is copied.
            unsafe {
                let whole = pg_sys::heap_copy_tuple_as_datum(row.tuple(), self.desc)
                    .cast_mut_ptr::<pg_sys::HeapTupleHeaderData>();
                let mut tuple = pg_sys::HeapTupleData {
                    t_len: pgrx::varsize(whole.cast()) as u32,
                    t_data: whole,
                    ..Default::default()
                };
                pg_sys::tuplestore_puttuple(self.store, &mut tuple);
                pg_sys::pfree(whole.cast());
            }
        }
    }

    /// Adds one row of these columns.
    pub(crate) fn append_row(&self, columns: &[Value<'_>]) {
        let (mut datums, mut nulls) = (Vec::with_capacity(columns.len()), Vec::with_capacity(columns.len()));
        // SAFETY: the descriptor lives as long as the query.
        let expected = unsafe { PgTupleDesc::from_pg_unchecked(self.desc) };
        assert_eq!(expected.len(), columns.len(), "columns of a result");
        for (column, attribute) in columns.iter().zip(expected.iter()) {
            assert!(column.type_oid().is_none_or(|oid| oid == attribute.atttypid), "types of a result");
            let datum = column.datum();
            nulls.push(datum.is_none());
            datums.push(datum.unwrap_or(pg_sys::Datum::from(0)));
        }
        // SAFETY: number and types are those of the descriptor; what is stored is a copy.
        unsafe {
            pg_sys::tuplestore_putvalues(self.store, self.desc, datums.as_mut_ptr(), nulls.as_mut_ptr());
        }
    }
}
