//! Planner settings under which the plan of a statement does not depend on statistics.
//!
//! A saved plan is made once and kept until a table changes. Made while a queue is empty, the
//! planner would find a sequential scan just as cheap, and every fetch would pay for it after the
//! backlog has grown. So whatever is planned during a call is planned with only index scans and nested
//! loops on offer. That cannot be left to the moment when a plan is known to be stale: an invalidation can
//! arrive at any moment before the plan is used, and PostgreSQL plans anew on the spot. So a hook sets the
//! settings around the planning itself, and a call whose plans are made pays nothing for them. Costs of
//! disabled nodes are huge before PostgreSQL 18, which would wake the JIT compiler.

use crate::db::Planning;
use crate::pg::guc;
use core::ffi::{CStr, c_char, c_int};
use pgrx::pg_sys;
use std::cell::Cell;
use std::sync::OnceLock;

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

static NEXT_HOOK: OnceLock<pg_sys::planner_hook_type> = OnceLock::new();

/// Where a session is as something is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Now {
    OutsideOfCalls,
    /// In a call, in nothing of it that says how it wants to be planned.
    InCall,
    InStatement(Planning),
}

thread_local! {
    static NOW: Cell<Now> = const { Cell::new(Now::OutsideOfCalls) };
}

/// Where this session is.
pub(super) fn now() -> Now {
    NOW.get()
}

/// Runs a whole call; what is planned in it is planned as most of its statements want it.
pub(crate) fn during_call<R>(body: impl FnOnce() -> R) -> R {
    during(Now::InCall, body)
}

/// Runs one statement of a call, planned as it wants.
pub(crate) fn during_statement<R>(planning: Planning, body: impl FnOnce() -> R) -> R {
    during(Now::InStatement(planning), body)
}

fn during<R>(now: Now, body: impl FnOnce() -> R) -> R {
    struct Restore(Now);
    impl Drop for Restore {
        fn drop(&mut self) {
            NOW.set(self.0);
        }
    }
    // Put back by an error that unwinds, too.
    let _restore = Restore(NOW.replace(now));
    body()
}

/// Asks to be told when something is planned. Called once per backend, when the library loads.
pub(crate) fn watch() {
    // SAFETY: hooks are plain pointers of this backend, set while it loads a library; whoever was
    // there before is called in turn.
    unsafe {
        let _ = NEXT_HOOK.set(pg_sys::planner_hook);
        pg_sys::planner_hook = Some(plan);
    }
}

unsafe extern "C-unwind" {
    /// planner.c. Not pgrx's binding of it, which takes an error apart and raises it anew: that of a statement which is not
    /// ours must pass as it is.
    fn standard_planner(
        query: *mut pg_sys::Query,
        text: *const c_char,
        options: c_int,
        parameters: pg_sys::ParamListInfo,
    ) -> *mut pg_sys::PlannedStmt;
}

/// Stands in every planning of the session, and keeps nothing on its stack that an error could jump over.
unsafe extern "C-unwind" fn plan(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    parameters: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: the arguments are handed on as they came (planner.c: `planner`).
    unsafe {
        match NOW.get() {
            Now::OutsideOfCalls => plan_as_ever(query, text, options, parameters),
            Now::InCall | Now::InStatement(_) => plan_in_call(query, text, options, parameters),
        }
    }
}

/// As whoever was there before does, or PostgreSQL.
unsafe fn plan_as_ever(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    parameters: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: as in `plan`.
    unsafe {
        match NEXT_HOOK.get() {
            Some(Some(next)) => next(query, text, options, parameters),
            _ => standard_planner(query, text, options, parameters),
        }
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn plan_in_call(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    parameters: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    let settings: &[_] = match NOW.get() {
        Now::InStatement(Planning::InIndexOrder) => IN_INDEX_ORDER,
        Now::InStatement(Planning::ByStatistics) => BY_STATISTICS,
        Now::InStatement(Planning::ByIndex) | Now::InCall | Now::OutsideOfCalls => &[],
    };
    // SAFETY: as in `plan`; the guard turns an error into one that unwinds what is on the stack here.
    let plan =
        || unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| plan_as_ever(query, text, options, parameters)) };
    guc::with_settings(BY_INDEX, || guc::with_settings(settings, plan))
}
