//! Indexes that a call's plans must not use.
//!
//! An adopted queue keeps the indexes of duroxide-pg. While a table is small, a scan of a whole index of
//! theirs, filtered row by row, looks as cheap as our way to a few rows, and the plan stays when the table has
//! grown: 46 ms a claim of a work item among 100,000 on PostgreSQL 15, where 0.5 ms is right. No planner
//! setting forbids that and leaves index scans on offer, so during a call these are not offered.

use crate::db::Planning;
use crate::pg::planner::{self, Now};
use core::ffi::CStr;
use pgrx::pg_sys;
use std::sync::OnceLock;

/// duroxide-pg's indexes that begin with a column by which no statement of ours looks for rows.
const THEIRS: [&CStr; 3] = [c"idx_orch_visible", c"idx_worker_visible", c"idx_worker_available"];

/// Those that begin with the time at which a row can be claimed.
const FOR_SCANS: [&CStr; 4] = [
    c"orchestrator_queue_ready_idx",
    c"orchestrator_queue_leased_idx",
    c"worker_queue_ready_idx",
    c"worker_queue_leased_idx",
];

static NEXT_HOOK: OnceLock<pg_sys::get_relation_info_hook_type> = OnceLock::new();

/// Asks to be told of relations that are planned for. Called once per backend, when the library loads.
pub(crate) fn watch() {
    // SAFETY: hooks are plain pointers of this backend, set while it loads a library; whoever was
    // there before is called first.
    unsafe {
        let _ = NEXT_HOOK.set(pg_sys::get_relation_info_hook);
        pg_sys::get_relation_info_hook = Some(hide);
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn hide(
    root: *mut pg_sys::PlannerInfo,
    relation: pg_sys::Oid,
    inherited: bool,
    info: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the arguments are the planner's own (plancat.c: `get_relation_info`), which lets a hook
    // change its list of indexes; the list's cells hold pointers to IndexOptInfo.
    unsafe {
        if let Some(Some(next)) = NEXT_HOOK.get() {
            next(root, relation, inherited, info);
        }
        let hidden: &[&[&CStr]] = match planner::now() {
            Now::OutsideOfCalls => &[],
            Now::InStatement(Planning::ByIndex) => &[&THEIRS, &FOR_SCANS],
            Now::InCall | Now::InStatement(_) => &[&THEIRS],
        };
        if hidden.is_empty() || (*info).indexlist.is_null() {
            return;
        }
        for place in (0..(*(*info).indexlist).length).rev() {
            let cell = (*(*info).indexlist).elements.add(place as usize);
            let index = (*cell).ptr_value.cast::<pg_sys::IndexOptInfo>();
            let name = pg_sys::get_rel_name((*index).indexoid);
            if !name.is_null() && hidden.iter().any(|names| names.contains(&CStr::from_ptr(name))) {
                (*info).indexlist = pg_sys::list_delete_nth_cell((*info).indexlist, place);
            }
        }
    }
}
