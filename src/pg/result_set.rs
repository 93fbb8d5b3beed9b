//! The rows that a set-returning function gives, handed over as they come from SPI.

use crate::pg::spi::Rows;
use pgrx::pg_sys;

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
}
