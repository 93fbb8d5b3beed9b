//! Which schema a call belongs to: that of the function's own OID, never the search path.

use core::ffi::CStr;
use pgrx::pg_sys;
use std::cell::Cell;

thread_local! {
    static CHANGED: Cell<bool> = const { Cell::new(false) };
}

/// The schema of the function that `fcinfo` calls.
pub(crate) fn of_call(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Oid {
    // SAFETY: PostgreSQL calls an SQL function with a filled-in fcinfo and flinfo.
    unsafe { pg_sys::get_func_namespace((*(*fcinfo).flinfo).fn_oid) }
}

/// The bare name of a schema, in the encoding of the database; `None` when it is gone.
pub(crate) fn name(oid: pg_sys::Oid) -> Option<Vec<u8>> {
    // SAFETY: returns NULL or a palloc'd C string, which is copied and freed here.
    unsafe {
        let name = pg_sys::get_namespace_name(oid);
        if name.is_null() {
            return None;
        }
        let bytes = CStr::from_ptr(name).to_bytes().to_vec();
        pg_sys::pfree(name.cast());
        Some(bytes)
    }
}

/// Asks to be told of renamed and dropped schemas. Called once per backend, when the library loads.
pub(crate) fn watch() {
    // SAFETY: the callback only sets a flag; it lives as long as the library, which is for good.
    unsafe {
        pg_sys::CacheRegisterSyscacheCallback(
            pg_sys::SysCacheIdentifier::NAMESPACEOID as i32,
            Some(on_change),
            pg_sys::Datum::from(0),
        );
    }
}

/// Whether any schema may have been renamed or dropped since [`upon_change`] last ran its work to the end.
pub(crate) fn has_changed() -> bool {
    CHANGED.get()
}

/// Runs `body` if any schema may have been renamed or dropped, and again at the next call if an error ends it.
pub(crate) fn upon_change(body: impl FnOnce()) {
    struct Unfinished;
    impl Drop for Unfinished {
        fn drop(&mut self) {
            CHANGED.set(true);
        }
    }
    // Cleared first: what changes meanwhile is for the next call.
    if CHANGED.replace(false) {
        let unfinished = Unfinished;
        body();
        core::mem::forget(unfinished);
    }
}

unsafe extern "C-unwind" fn on_change(_arg: pg_sys::Datum, _cache: i32, _hash: u32) {
    CHANGED.set(true);
}
