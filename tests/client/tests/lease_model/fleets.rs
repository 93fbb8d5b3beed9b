//! Everything holds, in every state that a fleet can get to.
//!
//! Too large for every run, but run once: three dispatchers with all calls (3,663,934 states), two
//! instances with all calls (1,542,350), two late messages and deletions (1,774,074), a clock that is
//! ahead by more than a lease (1,167,763), all calls and three messages beside a stranger (1,484,924).

use crate::check::holds;
use crate::fleet;
use crate::properties::{ALL_CONSUMED, SOME_WAIT, TAKEOVER, TWO_TURNS};
use crate::protocol::Protocol;

#[test]
fn two_dispatchers_of_one_instance() {
    holds(Protocol::as_built(fleet::TWO_DISPATCHERS), 364_367, &[TAKEOVER, SOME_WAIT, ALL_CONSUMED]);
}

#[test]
fn three_dispatchers_of_one_instance() {
    holds(Protocol::as_built(fleet::THREE_DISPATCHERS), 294_079, &[TAKEOVER, SOME_WAIT, ALL_CONSUMED]);
}

#[test]
fn two_dispatchers_of_two_instances() {
    let sights = [TAKEOVER, SOME_WAIT, ALL_CONSUMED, TWO_TURNS];
    holds(Protocol::as_built(fleet::TWO_INSTANCES), 178_549, &sights);
}

#[test]
fn two_dispatchers_of_an_instance_that_is_deleted() {
    holds(Protocol::as_built(fleet::DELETIONS), 150_252, &[TAKEOVER, SOME_WAIT, ALL_CONSUMED]);
}

#[test]
fn two_deletions_of_two_instances() {
    holds(Protocol::as_built(fleet::DELETIONS_OF_TWO), 4_368, &[TAKEOVER, SOME_WAIT, ALL_CONSUMED]);
}

#[test]
fn two_dispatchers_and_one_whose_client_cannot_be_sent_the_messages() {
    holds(Protocol::as_built(fleet::FETCHES_IN_VAIN), 23_960, &[TAKEOVER, SOME_WAIT, ALL_CONSUMED]);
}
