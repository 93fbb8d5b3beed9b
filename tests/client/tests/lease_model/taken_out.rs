//! Without a guard, what it guards is broken, and the checker finds it.
//!
//! Guards that are tried beside a stranger are against sessions that ignore the key: among those who
//! take it, nothing breaks without them. The keys in turn matter only where instances are deleted.

use crate::check::{finds, holds};
use crate::fleet;
use crate::guards::Guard;
use crate::properties;
use crate::protocol::Protocol;

#[test]
fn claim_without_the_key() {
    // Either guard is enough.
    finds(
        fleet::DELETIONS,
        &[Guard::KeyInClaim, Guard::LeasesDeletedLast],
        properties::NO_TURN_AFTER_DELETION,
    );
}

#[test]
fn claim_that_waits_for_the_key() {
    finds(fleet::PAIR, &[Guard::KeyOnlyTried], properties::FETCH_NEVER_WAITS);
}

#[test]
fn claim_by_the_snapshot_of_the_candidates() {
    finds(fleet::PAIR, &[Guard::FreshSnapshot], properties::COMPLETE);
}

/// Who did not see the timer yet can still lock all that it saw, though a turn has committed since.
#[test]
fn history_by_the_snapshot_of_the_candidates() {
    finds(fleet::PAIR_WITH_TIMER, &[Guard::FreshSnapshot], properties::NEWEST_HISTORY);
}

#[test]
fn claim_without_messages() {
    finds(fleet::PAIR, &[Guard::AtLeastOneMessage], properties::NOT_EMPTY);
}

#[test]
fn claim_of_the_messages_that_could_be_locked() {
    finds(fleet::FETCHES_IN_VAIN, &[Guard::AllMessagesLocked], properties::COMPLETE);
}

#[test]
fn claim_that_waits_for_messages() {
    finds(fleet::FETCHES_IN_VAIN, &[Guard::SkipLockedMessages], properties::FETCH_NEVER_WAITS);
}

#[test]
fn claim_that_waits_for_the_lock_row() {
    finds(fleet::STRANGER, &[Guard::SkipLockedLease], properties::FETCH_NEVER_WAITS);
}

#[test]
fn insert_without_a_probe() {
    finds(fleet::STRANGER, &[Guard::Probe], properties::FETCH_NEVER_WAITS);
}

#[test]
fn no_takeover() {
    finds(fleet::PAIR, &[Guard::Takeover], properties::CLAIMABLE);
}

#[test]
fn takeover_whatever_the_lease() {
    finds(fleet::PAIR, &[Guard::NoLiveLease, Guard::OnlyOverExpiredLease], properties::LIVE_LEASE_STAYS);
}

#[test]
fn ack_without_the_key() {
    finds(fleet::DELETIONS, &[Guard::KeyInAck], properties::NO_DEADLOCK);
}

#[test]
fn ack_that_does_not_look_at_the_token_again() {
    finds(fleet::PAIR, &[Guard::TokenCheckedAgain], properties::NONE_CONSUMED_TWICE);
}

#[test]
fn ack_twice_that_does_not_look_at_the_token_again() {
    finds(fleet::PAIR, &[Guard::TokenCheckedAgain], properties::ONE_TURN_PER_CLAIM);
}

#[test]
fn ack_that_deletes_the_lock_row_last() {
    finds(fleet::STRANGER, &[Guard::LockRowFirst], properties::NONE_CONSUMED_TWICE);
}

#[test]
fn ack_that_consumes_all_of_the_instance() {
    finds(fleet::PAIR, &[Guard::ConsumedByToken], properties::NONE_LOST);
}

#[test]
fn no_look_at_the_lease_at_commit() {
    finds(fleet::PAIR, &[Guard::CommitCheck], properties::WITHIN_LEASE);
}

#[test]
fn abandon_without_the_key() {
    finds(fleet::DELETIONS, &[Guard::KeyInAbandon], properties::NO_DEADLOCK);
}

#[test]
fn renew_without_the_key() {
    finds(fleet::DELETIONS, &[Guard::KeyInRenew], properties::NO_DEADLOCK);
}

#[test]
fn renew_by_the_clock_of_before_a_wait() {
    finds(fleet::STRANGER, &[Guard::ClockReadUnderRowLock], properties::RENEWED_IN_TIME);
}

#[test]
fn renew_after_the_lease() {
    finds(fleet::PAIR, &[Guard::OnlyLiveLeaseRenewed], properties::RENEWED_IN_TIME);
}

#[test]
fn renew_to_an_earlier_end() {
    finds(fleet::PAIR, &[Guard::NeverEarlier], properties::NEVER_SHORTENED);
}

#[test]
fn delete_without_the_key() {
    finds(
        fleet::DELETIONS,
        &[Guard::KeyInDelete, Guard::LeasesDeletedLast],
        properties::NO_TURN_AFTER_DELETION,
    );
}

#[test]
fn delete_that_takes_keys_in_any_order() {
    finds(fleet::DELETIONS_OF_TWO, &[Guard::KeysInOrder], properties::NO_DEADLOCK);
}

/// Rows and tokens are enough between dispatchers, whoever has the key.
#[test]
fn dispatchers_without_any_key() {
    let keys = [Guard::KeyInClaim, Guard::KeyInAck, Guard::KeyInAbandon, Guard::KeyInRenew];

    holds(Protocol::without(fleet::PAIR, &keys), 66_686, &[]);
}

/// Among dispatchers nobody renews a lease while a claim has the key of its instance. A stranger can take it over
/// between the claim's look at the lease and its own lease.
#[test]
fn takeover_that_does_not_look_at_the_lease_again() {
    holds(Protocol::without(fleet::PAIR, &[Guard::OnlyOverExpiredLease]), 44_129, &[]);
    finds(fleet::STRANGER, &[Guard::OnlyOverExpiredLease], properties::LIVE_LEASE_STAYS);
}

// On the next two guards no property depends.

/// LEASE_AGAIN looks at the lease as well. This one keeps a claim off the messages that come while
/// the instance is leased, which it would lock and then give up.
#[test]
fn look_at_the_messages_of_a_leased_instance() {
    nothing_breaks(Guard::NoLiveLease, [50_717, 34_367]);
}

/// The commit looks at the lease as well. This one fails before the turn is written.
#[test]
fn ack_that_looks_at_its_lease_only_when_it_commits() {
    nothing_breaks(Guard::LeaseCheckedAgain, [44_129, 33_839]);
}

fn nothing_breaks(guard: Guard, states: [usize; 2]) {
    holds(Protocol::without(fleet::PAIR, &[guard]), states[0], &[]);
    holds(Protocol::without(fleet::STRANGER, &[guard]), states[1], &[]);
}
