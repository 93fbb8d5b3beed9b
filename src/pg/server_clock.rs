//! The server's wall clock, read only where the setting `duroxide_queue.lease_clock` asks for it.

use pgrx::pg_sys;

/// Microseconds from the Unix epoch to PostgreSQL's (2000-01-01).
pub(crate) const POSTGRES_EPOCH_US: i64 = 946_684_800_000_000;

/// Milliseconds of the Unix epoch, now.
pub(crate) fn now_ms() -> i64 {
    // SAFETY: reads the system clock.
    let now = unsafe { pg_sys::GetCurrentTimestamp() };
    (now + POSTGRES_EPOCH_US).div_euclid(1000)
}
