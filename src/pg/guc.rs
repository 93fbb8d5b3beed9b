//! Settings for as long as a piece of work takes.

use core::ffi::CStr;
use pgrx::pg_sys;

/// Runs `body` with these settings, names and values, and puts the session's own back.
pub(crate) fn with_settings<R>(settings: &[(&CStr, &CStr)], body: impl FnOnce() -> R) -> R {
    // SAFETY: a GUC nest level is what a function's SET clause uses. If `body` raises an error, the
    // abort of the (sub)transaction unwinds the level.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        for (name, value) in settings {
            pg_sys::set_config_option(
                name.as_ptr(),
                value.as_ptr(),
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

/// Runs `body` and undoes every change that it makes to settings.
pub(crate) fn put_back_after<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: as above; a level that is not committed is rolled back.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        let result = body();
        pg_sys::AtEOXact_GUC(false, level);
        result
    }
}
