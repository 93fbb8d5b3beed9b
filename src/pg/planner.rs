//! Planner settings under which the plan of a statement does not depend on statistics.
//!
//! A saved plan is made once and kept until a table changes. Made while a queue is empty, the
//! planner would find a sequential scan just as cheap, and every fetch would pay for it after the
//! backlog has grown. So a call runs with only index scans and nested loops on offer. It does so
//! throughout, not only when a plan is known to be stale: an invalidation can arrive at any moment
//! before the plan is used, and PostgreSQL would plan anew on the spot. Costs of disabled nodes are
//! huge before PostgreSQL 18, which would wake the JIT compiler.

use crate::db::Planning;
use crate::pg::{guc, hidden_indexes};
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

const BY_STATISTICS: &[(&CStr, &CStr)] = &[
    (c"enable_seqscan", c"on"),
    (c"enable_bitmapscan", c"on"),
    (c"enable_hashjoin", c"on"),
    (c"enable_mergejoin", c"on"),
    (c"enable_material", c"on"),
];

/// Runs a whole call as most of its statements want it.
pub(crate) fn during_call<R>(body: impl FnOnce() -> R) -> R {
    hidden_indexes::during(|| guc::with_settings(BY_INDEX, body))
}

/// Runs one statement of a call with what it wants otherwise.
pub(crate) fn during_statement<R>(planning: Planning, body: impl FnOnce() -> R) -> R {
    match planning {
        Planning::ByIndex => body(),
        Planning::InIndexOrder => guc::with_settings(IN_INDEX_ORDER, body),
        Planning::ByStatistics => guc::with_settings(BY_STATISTICS, body),
    }
}
