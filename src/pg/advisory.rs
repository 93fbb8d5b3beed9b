//! Transaction-level advisory locks on one bigint key, as `pg_advisory_xact_lock(bigint)` takes them.

use pgrx::pg_sys;

/// The key of one instance (or session): what `hashtext('<schema>.<id>')` gives, widened to bigint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(pub(crate) i64);

impl Key {
    /// Takes the key unless another session holds it. Never waits.
    pub(crate) fn try_lock(self) -> bool {
        // SAFETY: the tag is complete; LockAcquire copies it and registers the lock with the
        // current resource owner, which releases it when the transaction ends.
        let result = unsafe { pg_sys::LockAcquire(&self.tag(), pg_sys::ExclusiveLock as i32, false, true) };
        result != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL
    }

    /// Takes the key, waiting for whoever holds it. Interruptible, and part of deadlock detection.
    pub(crate) fn lock(self) {
        // SAFETY: as in `try_lock`.
        unsafe { pg_sys::LockAcquire(&self.tag(), pg_sys::ExclusiveLock as i32, false, false) };
    }

    /// Gives the key back before the transaction ends. Only right while nothing was written under
    /// it: a claim that found nothing to claim must not keep an instance from others for as long
    /// as its caller's transaction lasts.
    pub(crate) fn unlock(self) {
        // SAFETY: releases one of the holds that `try_lock` took in this transaction.
        unsafe { pg_sys::LockRelease(&self.tag(), pg_sys::ExclusiveLock as i32, false) };
    }

    /// The tag that lockfuncs.c builds for a single bigint argument (`SET_LOCKTAG_INT64`).
    fn tag(self) -> pg_sys::LOCKTAG {
        let bits = self.0 as u64;
        pg_sys::LOCKTAG {
            // SAFETY: set at backend start and constant from then on.
            locktag_field1: unsafe { pg_sys::MyDatabaseId }.to_u32(),
            locktag_field2: (bits >> 32) as u32,
            locktag_field3: bits as u32,
            locktag_field4: 1,
            locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
            locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
        }
    }
}
