//! Planner settings for the statements whose plan must not depend on statistics.
//!
//! A saved plan is made once and kept until a table changes. Made while a queue is empty, the
//! planner would find a sequential scan just as cheap, and every fetch would pay for it after the
//! backlog has grown. So these statements are planned with only index scans and nested loops on
//! offer. Costs of disabled nodes are huge before PostgreSQL 18, which would wake the JIT compiler.

use crate::db::Planning;
use crate::pg::guc;
use core::ffi::CStr;

const BY_INDEX: &[(&CStr, &CStr)] = &[
    (c"enable_seqscan", c"off"),
    (c"enable_bitmapscan", c"off"),
    (c"enable_hashjoin", c"off"),
    (c"enable_mergejoin", c"off"),
    (c"enable_material", c"off"),
    (c"jit", c"off"),
];

const IN_INDEX_ORDER: &[(&CStr, &CStr)] = &[(c"enable_sort", c"off"), (c"enable_incremental_sort", c"off")];

/// Runs `body` with the settings of `planning`, and puts the session's own back.
pub(crate) fn with_settings<R>(planning: Planning, body: impl FnOnce() -> R) -> R {
    match planning {
        Planning::ByStatistics => body(),
        Planning::ByIndex => guc::with_settings(BY_INDEX, body),
        Planning::InIndexOrder => guc::with_settings(BY_INDEX, || guc::with_settings(IN_INDEX_ORDER, body)),
    }
}
