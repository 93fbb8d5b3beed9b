//! The rows that a set-returning function gives, handed over as they come from SPI.

use crate::pg::spi::{Rows, Value};
use pgrx::{PgTupleDesc, pg_sys};

/// Where the rows of one call go. It belongs to the query that called, so it outlives
/// subtransactions of the call that are undone.
pub(crate) struct ResultSet {
    store: *mut pg_sys::Tuplestorestate,
    desc: pg_sys::TupleDesc,
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
            ResultSet { store: (*info).setResult, desc: (*info).setDesc }
        }
    }

    /// Adds rows. Their columns must be those that the function is declared with.
    pub(crate) fn append(&self, rows: &Rows<'_>) {
        for row in rows.iter() {
            row.check_types(self.desc);
            // SAFETY: the tuple has as many columns as the result and the same types; it is copied.
            unsafe { pg_sys::tuplestore_puttuple(self.store, row.tuple()) };
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
            pg_sys::tuplestore_putvalues(self.store, self.desc, datums.as_ptr(), nulls.as_ptr());
        }
    }
}
