//! Leases that a transaction has acknowledged, and that must still live when it commits.
//!
//! An acknowledgement checks its lease when it writes, but a client's transaction may go on after
//! it. Nobody can take the instance over meanwhile, since the key is held; yet a turn that commits
//! after its lease has ended is not what the lease promised, so the commit fails. COMMIT PREPARED asks
//! nobody (`FinishPreparedTransaction` in twophase.c), so a transaction that has acknowledged is not prepared.

use crate::error::Error;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::pg_sys::submodules::elog::PgLogLevel;
use std::cell::RefCell;
use std::time::Instant;

struct Acknowledged {
    lease_end: Instant,
    subtransaction: pg_sys::SubTransactionId,
}

thread_local! {
    static ACKNOWLEDGED: RefCell<Vec<Acknowledged>> = const { RefCell::new(Vec::new()) };
}

/// Makes the commit of this transaction fail from `lease_end` on, unless the acknowledgement is
/// rolled back to a savepoint before.
pub(crate) fn require_live_until_commit(lease_end: Instant) {
    // SAFETY: reads the state of the current transaction.
    let subtransaction = unsafe { pg_sys::GetCurrentSubTransactionId() };
    ACKNOWLEDGED.with_borrow_mut(|all| all.push(Acknowledged { lease_end, subtransaction }));
}

/// Asks to be told of commits and rollbacks. Called once per backend, when the library loads.
pub(crate) fn watch() {
    // SAFETY: both callbacks live as long as the library, which is for good.
    unsafe {
        pg_sys::RegisterXactCallback(Some(on_transaction), core::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(on_subtransaction), core::ptr::null_mut());
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn on_transaction(
    event: pg_sys::XactEvent::Type,
    _argument: *mut core::ffi::c_void,
) {
    match event {
        pg_sys::XactEvent::XACT_EVENT_PRE_PREPARE if ACKNOWLEDGED.with_borrow(|all| !all.is_empty()) => {
            ErrorReport::from(Error::AcknowledgedAndPrepared).report(PgLogLevel::ERROR);
        }
        pg_sys::XactEvent::XACT_EVENT_PRE_COMMIT => {
            let now = Instant::now();
            if ACKNOWLEDGED.with_borrow(|all| all.iter().any(|acknowledged| now >= acknowledged.lease_end)) {
                ErrorReport::from(Error::InvalidLockToken).report(PgLogLevel::ERROR);
            }
        }
        // Must not allocate or fail: the transaction is over.
        _ => ACKNOWLEDGED.with_borrow_mut(Vec::clear),
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn on_subtransaction(
    event: pg_sys::SubXactEvent::Type,
    ended: pg_sys::SubTransactionId,
    parent: pg_sys::SubTransactionId,
    _argument: *mut core::ffi::c_void,
) {
    ACKNOWLEDGED.with_borrow_mut(|all| match event {
        pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB => {
            all.retain(|acknowledged| acknowledged.subtransaction != ended);
        }
        pg_sys::SubXactEvent::SUBXACT_EVENT_COMMIT_SUB => {
            for acknowledged in all.iter_mut().filter(|acknowledged| acknowledged.subtransaction == ended) {
                acknowledged.subtransaction = parent;
            }
        }
        _ => {}
    });
}
