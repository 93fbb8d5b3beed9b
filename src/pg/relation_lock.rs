//! Locks on tables and indexes that are taken at once or not at all.

use pgrx::pg_sys;

/// Takes the lock that a plain SELECT takes, unless somebody holds one against it. `false` also for
/// what has been dropped since it was found.
pub(crate) fn try_to_read(relation: pg_sys::Oid) -> bool {
    // SAFETY: the lock belongs to the current (sub)transaction; the look at the catalog after it tells
    // whether the relation is still there.
    unsafe {
        pg_sys::ConditionalLockRelationOid(relation, pg_sys::AccessShareLock as i32)
            && pg_sys::get_rel_relkind(relation) != 0
    }
}
