//! A session that ignores the key, but not row locks, costs a retry or a wait, and never a message.

use crate::check::{breaks_only, holds};
use crate::fleet;
use crate::guards::Guard;
use crate::properties::{
    ALL_CONSUMED, CIRCLE_WITH_STRANGER, FETCH_NEVER_WAITS, NEWEST_HISTORY, NO_TURN_AFTER_DELETION, SOME_WAIT,
    TAKEOVER,
};
use crate::protocol::Protocol;

const SIGHTS: [&str; 4] = [TAKEOVER, SOME_WAIT, ALL_CONSUMED, CIRCLE_WITH_STRANGER];

/// PostgreSQL breaks the circle with 40P01, on which clients try again. What the one that is
/// aborted leaves behind is among the states, since any call may be aborted anywhere.
#[test]
fn a_stranger_may_cost_a_deadlock() {
    holds(Protocol::as_built(fleet::STRANGER), 32_831, &SIGHTS);
}

/// The probe and the insert are two looks at the index, with nothing between them. Who takes the
/// key cannot come in there; a stranger can.
#[test]
fn a_stranger_who_inserts_between_the_probe_and_the_insert_may_cost_a_wait() {
    let protocol = Protocol::without(fleet::STRANGER, &[Guard::NothingAfterProbe]);

    breaks_only(protocol, 33_320, &[FETCH_NEVER_WAITS], &SIGHTS);
}

/// What is left is a claim of a message that came after the deletion had begun.
#[test]
fn a_claim_of_a_stranger_does_not_outlive_the_deletion_of_its_instance() {
    let protocol = Protocol::as_built(fleet::STRANGER_AND_DELETIONS);

    breaks_only(protocol, 15_996, &[NEWEST_HISTORY], &SIGHTS);
}

/// The lock row that a stranger commits while a deletion waits for the messages is not in the
/// snapshot of the statement that deletes those.
#[test]
fn it_would_if_lock_rows_were_deleted_in_the_statement_of_the_messages() {
    let protocol = Protocol::without(fleet::STRANGER_AND_DELETIONS, &[Guard::LeasesDeletedLast]);

    breaks_only(protocol, 21_705, &[NO_TURN_AFTER_DELETION, NEWEST_HISTORY], &SIGHTS);
}
