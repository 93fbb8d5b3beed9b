//! Planner settings for the statements whose plan must not depend on statistics.
//!
//! A saved plan is made once and kept until a table changes. Made while a queue is empty, the
//! planner would find a sequential scan just as cheap, and every fetch would pay for it after the
//! backlog has grown. So these statements are planned with only index scans and nested loops on
//! offer. Costs of disabled nodes are huge before PostgreSQL 18, which would wake the JIT compiler.

use crate::db::Planning;
use core::ffi::CStr;
use pgrx::pg_sys;

const BY_INDEX: &[&CStr] = &[
    c"enable_seqscan",
    c"enable_bitmapscan",
    c"enable_hashjoin",
    c"enable_mergejoin",
    c"enable_material",
    c"jit",
];

const IN_INDEX_ORDER: &[&CStr] = &[
    c"enable_seqscan",
    c"enable_bitmapscan",
    c"enable_hashjoin",
    c"enable_mergejoin",
    c"enable_material",
    c"enable_sort",
    c"enable_incremental_sort",
    c"jit",
];

/// Runs `body` with the settings of `planning`, and puts the session's own back.
pub(crate) fn with_settings<R>(planning: Planning, body: impl FnOnce() -> R) -> R {
    let settings = match planning {
        Planning::ByStatistics => return body(),
        Planning::ByIndex => BY_INDEX,
        Planning::InIndexOrder => IN_INDEX_ORDER,
    };
    // SAFETY: a GUC nest level is what a function's SET clause uses. If `body` raises an error, the
    // abort of the (sub)transaction unwinds the level.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        for name in settings {
            pg_sys::set_config_option(
                name.as_ptr(),
                c"off".as_ptr(),
                pg_sys::GucContext::PGC_USERSET,
                pg_sys::GucSource::PGC_S_SESSION,
                pg_sys::GucAction::GUC_ACTION_SAVE,
                true,
                0,
                false,
            );
        }
        let result = body();
        pg_sys::AtEOXact_GUC(true, level);
        result
    }
}
