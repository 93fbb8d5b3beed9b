//! Brings a queue to a standstill for the rest of a transaction.

use super::schema::Schema;
use crate::pg::{guc, lock_timeout, subtransaction};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a change of hands sleeps after its first try. Each try keeps clients waiting, so behind a long transaction the
/// pause grows, until they have most of the time.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Locks the queue's tables against everybody, all or none. Clients take them in an order of their
/// own, so a wait for one while holding another could be a deadlock, of which a client would be the
/// victim; each try gives up before any deadlock detection begins (`deadlock_timeout`, 1 s), lets the
/// others pass and comes again. A `lock_timeout` of the caller's bounds the whole.
pub(super) fn stand_still(schema: &Schema, tables: &str) {
    let script = format!("LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE");
    let patience = lock_timeout::of_the_session();
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        pgrx::check_for_interrupts!();
        let locked = subtransaction::unless_lock_not_available(|| {
            guc::with_settings(&[(c"lock_timeout", c"200ms")], || schema.run_script(&script));
        });
        if locked.is_some() {
            return;
        }
        if patience.is_some_and(|patience| started.elapsed() > patience) {
            schema.run_script(&format!("{script} NOWAIT"));
            return;
        }
        sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
