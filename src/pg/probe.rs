//! Looks for a row that no snapshot of this transaction shows: one that another transaction is inserting right now, or
//! has inserted since.
//!
//! An INSERT into a unique index waits for the transaction that has inserted the same key and not
//! yet committed, ON CONFLICT or not (`_bt_check_unique` in nbtinsert.c), and no SQL can ask first.
//! Sessions that take the instance's key never meet here; one that ignores the key does, and a
//! claim must not wait for it.

use crate::pg::values;
use core::ffi::CStr;
use pgrx::pg_sys;

/// True if the primary key of `table`, a text, holds an entry for `value` that this transaction
/// cannot see as settled: being inserted, or deleted, by a transaction that is still running. False
/// for a table that its owner has made into something else, where nothing can be asked.
pub(crate) fn in_flight(schema: pg_sys::Oid, table: &CStr, value: &[u8]) -> bool {
    any(schema, table, value, |found| {
        found.xmin != pg_sys::InvalidTransactionId || found.xmax != pg_sys::InvalidTransactionId
    })
}

/// True if there is a row of this key by now, whatever the transaction's snapshot shows. False as above.
pub(crate) fn exists(schema: pg_sys::Oid, table: &CStr, value: &[u8]) -> bool {
    any(schema, table, value, |_| true)
}

/// Whether a row of this key, as a dirty snapshot finds it, is one that `is_it` says yes to.
fn any(
    schema: pg_sys::Oid,
    table: &CStr,
    value: &[u8],
    is_it: impl Fn(&pg_sys::SnapshotData) -> bool,
) -> bool {
    // SAFETY: opens, scans and closes as genam.h asks; an error in between aborts the transaction,
    // whose resource owner closes what is open. The dirty snapshot lives on this stack frame and
    // outlives the scan that writes to it.
    unsafe {
        let table = pg_sys::get_relname_relid(table.as_ptr(), schema);
        let value = values::new_text(value);
        let heap = pg_sys::table_open(table, pg_sys::RowExclusiveLock as i32);
        let index_oid = pg_sys::RelationGetPrimaryKeyIndex(
            heap,
            #[cfg(feature = "pg18")]
            false,
        );
        if index_oid == pg_sys::InvalidOid {
            pg_sys::table_close(heap, pg_sys::NoLock as i32);
            return false;
        }
        let index = pg_sys::index_open(index_oid, pg_sys::AccessShareLock as i32);
        if !is_plain(heap) || !is_of_one_text(index) {
            pg_sys::index_close(index, pg_sys::NoLock as i32);
            pg_sys::table_close(heap, pg_sys::NoLock as i32);
            return false;
        }
        let mut snapshot = pg_sys::SnapshotData {
            snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
            ..Default::default()
        };
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyEntryInitialize(
            &mut key,
            0,
            1,
            pg_sys::BTEqualStrategyNumber as u16,
            pg_sys::InvalidOid,
            *(*index).rd_indcollation,
            pg_sys::Oid::from(pg_sys::F_TEXTEQ),
            value,
        );
        let scan = pg_sys::index_beginscan(
            heap,
            index,
            &mut snapshot,
            #[cfg(feature = "pg18")]
            core::ptr::null_mut(),
            1,
            0,
        );
        pg_sys::index_rescan(scan, &mut key, 1, core::ptr::null_mut(), 0);
        let slot = pg_sys::table_slot_create(heap, core::ptr::null_mut());

        let mut found = false;
        while !found && pg_sys::index_getnext_slot(scan, pg_sys::ScanDirection::ForwardScanDirection, slot) {
            found = is_it(&snapshot);
        }

        pg_sys::ExecDropSingleTupleTableSlot(slot);
        pg_sys::index_endscan(scan);
        pg_sys::index_close(index, pg_sys::NoLock as i32);
        pg_sys::table_close(heap, pg_sys::NoLock as i32);
        found
    }
}

/// Whether a relation has rows of its own: a partitioned table has no access method.
///
/// # Safety
/// The relation is open.
unsafe fn is_plain(heap: pg_sys::Relation) -> bool {
    // SAFETY: an open relation has its row of pg_class.
    unsafe { (*(*heap).rd_rel).relkind == pg_sys::RELKIND_RELATION as i8 && !(*heap).rd_tableam.is_null() }
}

/// Whether an index compares one column as texts: a key of another type is another kind of pointer,
/// or none.
///
/// # Safety
/// The index is open.
unsafe fn is_of_one_text(index: pg_sys::Relation) -> bool {
    // SAFETY: an open index has its row of pg_index, and as many entries of the others as key columns.
    unsafe {
        (*(*index).rd_rel).relam == pg_sys::BTREE_AM_OID
            && (*(*index).rd_index).indnkeyatts == 1
            && *(*index).rd_opcintype == pg_sys::TEXTOID
            && *(*index).rd_opfamily == pg_sys::TEXT_BTREE_FAM_OID
    }
}
