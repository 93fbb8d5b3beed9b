//! The settings of the extension, all of them.

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use pgrx::{PostgresGucEnum, pg_sys};

/// Which clock a lease starts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub(crate) enum LeaseClock {
    /// The caller's, moved on by the time spent in the call.
    #[name = c"caller"]
    Caller,
    /// The later of that and the server's, as duroxide-pg 0.1.38 has it.
    #[name = c"latest"]
    Latest,
}

static LEASE_CLOCK: GucSetting<LeaseClock> = GucSetting::<LeaseClock>::new(LeaseClock::Caller);

/// `duroxide_queue.lease_clock`.
pub(crate) fn lease_clock() -> LeaseClock {
    LEASE_CLOCK.get()
}

/// Makes the settings known. Called once per backend, when the library loads.
pub(crate) fn define() {
    GucRegistry::define_enum_guc(
        c"duroxide_queue.lease_clock",
        c"The clock that leases and renewals start by.",
        c"caller: the caller's own, moved on by the time spent in the call. latest: the later of that and the server's clock.",
        &LEASE_CLOCK,
        GucContext::Userset,
        GucFlags::default(),
    );
    // SAFETY: the prefix is a C string that lives for good.
    unsafe { pg_sys::MarkGUCPrefixReserved(c"duroxide_queue".as_ptr()) };
}
