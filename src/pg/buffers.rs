//! How many blocks of tables and indexes this backend has looked at: work that no clock blurs.

use pgrx::pg_sys;

/// Blocks of shared tables touched since the backend began, found in memory or not.
pub(crate) fn touched() -> u64 {
    // SAFETY: reads counters that only this backend writes (instrument.c: `pgBufferUsage`).
    let usage = unsafe { pg_sys::pgBufferUsage };
    (usage.shared_blks_hit + usage.shared_blks_read) as u64
}
