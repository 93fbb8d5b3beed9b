//! Whose rights a step runs with, where they are not the caller's.
//!
//! One step has more: declaring C functions. What touches an owner's tables and text has the owner's.

use crate::pg::guc;
use pgrx::pg_sys;

/// Runs `body` as the bootstrap superuser, as PostgreSQL itself runs the script of a trusted
/// extension (`extension.c`, `execute_extension_script`). `SECURITY_LOCAL_USERID_CHANGE` keeps
/// SET ROLE and friends out while it lasts. An error in `body` aborts the (sub)transaction, which
/// puts the caller's identity back.
pub(crate) fn as_superuser<R>(body: impl FnOnce() -> R) -> R {
    run_as(pg_sys::Oid::from(pg_sys::BOOTSTRAP_SUPERUSERID), pg_sys::SECURITY_LOCAL_USERID_CHANGE, body)
}

/// Runs `body` with the rights of `role` and no others, as VACUUM runs index expressions: code and
/// text of the role's must not run with the rights of whoever calls. Settings that it changes are
/// put back, whatever it set them to.
pub(crate) fn as_role<R>(role: pg_sys::Oid, body: impl FnOnce() -> R) -> R {
    let restricted = pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_RESTRICTED_OPERATION;
    guc::put_back_after(|| run_as(role, restricted, body))
}

fn run_as<R>(role: pg_sys::Oid, flags: u32, body: impl FnOnce() -> R) -> R {
    let mut user = pg_sys::InvalidOid;
    let mut context = 0;
    // SAFETY: both calls only read and write backend-local state.
    unsafe {
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        pg_sys::SetUserIdAndSecContext(role, context | flags as i32);
    }
    let result = body();
    // SAFETY: puts back what was read above.
    unsafe { pg_sys::SetUserIdAndSecContext(user, context) };
    result
}
