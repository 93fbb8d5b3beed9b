//! What always holds, and what must be seen to happen so that the model is not about nothing.

use crate::calls::{Call, claim::Fetch};
use crate::fleet::Kind;
use crate::protocol::Protocol;
use crate::sets::Set;
use crate::state::{Breach, Place, SessionId, State};
use stateright::{Expectation, Property};

pub const ONE_TURN_PER_CLAIM: &str = "at most one turn commits per claim";
pub const NONE_LOST: &str = "no message is lost";
pub const NONE_CONSUMED_TWICE: &str = "no message is consumed twice";
pub const MESSAGES_GO_WITH_TURN: &str = "a message goes with the turn that was given it";
pub const NO_TURN_AFTER_DELETION: &str = "no turn commits with messages of a deleted instance";
pub const NEWEST_HISTORY: &str = "a turn builds on the newest history";
pub const WITHIN_LEASE: &str = "no turn commits after its lease";
pub const NOT_EMPTY: &str = "a claim has a message";
pub const COMPLETE: &str = "a claim has every message that is due under its key";
pub const LIVE_LEASE_STAYS: &str = "no live lease is taken over";
pub const RENEWED_IN_TIME: &str = "no expired lease is renewed";
pub const NEVER_SHORTENED: &str = "no renewal shortens a lease";
pub const FETCH_NEVER_WAITS: &str = "a fetch never waits";
pub const NO_DEADLOCK: &str = "no calls wait for each other in a circle";
pub const CLAIMABLE: &str = "what is due is claimed by a fetch with nobody else about";

pub const TAKEOVER: &str = "an expired lease is taken over";
pub const TWO_TURNS: &str = "two turns are about to commit";
pub const ALL_CONSUMED: &str = "all messages are consumed";
pub const SOME_WAIT: &str = "a call waits for another";
pub const CIRCLE_WITH_STRANGER: &str = "a stranger and a call wait for each other";

/// The names of what always holds.
pub fn always() -> impl Iterator<Item = &'static str> {
    let always = all().into_iter().filter(|property| property.expectation == Expectation::Always);
    always.map(|property| property.name)
}

pub fn all() -> Vec<Property<Protocol>> {
    let mut all: Vec<Property<Protocol>> = vec![
        Property::always(ONE_TURN_PER_CLAIM, |_, state: &State| !state.has_seen(Breach::SecondTurnOfClaim)),
        Property::always(NONE_LOST, |_, state: &State| {
            state.fates.iter().all(|fate| fate.place != Place::Consumed || fate.turns > 0)
        }),
        Property::always(NONE_CONSUMED_TWICE, |_, state: &State| {
            state.fates.iter().all(|fate| fate.turns <= 1)
        }),
        Property::always(MESSAGES_GO_WITH_TURN, |_, state: &State| {
            state.fates.iter().all(|fate| fate.place != Place::InQueue || fate.turns == 0)
        }),
        Property::always(NO_TURN_AFTER_DELETION, |_, state: &State| {
            state.fates.iter().all(|fate| fate.place != Place::DeletedWithInstance || fate.turns == 0)
        }),
        Property::always(NEWEST_HISTORY, |_, state: &State| !state.has_seen(Breach::TurnOnOldHistory)),
        Property::always(WITHIN_LEASE, |_, state: &State| !state.has_seen(Breach::TurnAfterLease)),
        Property::always(NOT_EMPTY, |_, state: &State| !state.has_seen(Breach::EmptyClaim)),
        Property::always(COMPLETE, |_, state: &State| !state.has_seen(Breach::IncompleteClaim)),
        Property::always(LIVE_LEASE_STAYS, |_, state: &State| !state.has_seen(Breach::LiveLeaseTakenOver)),
        Property::always(RENEWED_IN_TIME, |_, state: &State| !state.has_seen(Breach::ExpiredLeaseRenewed)),
        Property::always(NEVER_SHORTENED, |_, state: &State| !state.has_seen(Breach::LeaseShortened)),
        Property::always(FETCH_NEVER_WAITS, |protocol: &Protocol, state: &State| {
            waiting(protocol, state).all(|(session, _)| !matches!(state.calls[session], Call::Fetch(_)))
        }),
        Property::always(NO_DEADLOCK, |protocol: &Protocol, state: &State| {
            !has_circle(protocol, state, |call| !matches!(call, Call::Steal(_)))
        }),
        Property::always(CLAIMABLE, claimable),
    ];
    all.extend(sights());
    all
}

fn sights() -> Vec<Property<Protocol>> {
    vec![
        Property::sometimes(TAKEOVER, |_, state: &State| {
            state.leases.iter().any(|row| match (row.committed, row.held) {
                (Some(old), Some(held)) => {
                    let by_fetch = state.calls.get(held.by) == Some(&Call::Fetch(Fetch::Claimed));
                    by_fetch && held.version.is_some_and(|new| new.token != old.token)
                }
                _ => false,
            })
        }),
        Property::sometimes(TWO_TURNS, |_, state: &State| {
            let is_committing = |call: &&Call| matches!(call, Call::Ack(ack) if ack.is_complete());
            state.calls.iter().filter(is_committing).count() == 2
        }),
        Property::sometimes(ALL_CONSUMED, |protocol: &Protocol, state: &State| {
            let fates = &state.fates[..protocol.fleet.messages.len()];
            fates.iter().all(|fate| fate.place == Place::Consumed)
        }),
        Property::sometimes(SOME_WAIT, |protocol: &Protocol, state: &State| {
            waiting(protocol, state).next().is_some()
        }),
        Property::sometimes(CIRCLE_WITH_STRANGER, |protocol: &Protocol, state: &State| {
            has_circle(protocol, state, |_| true)
        }),
    ]
}

/// Sessions that wait, and for whom.
fn waiting<'a>(protocol: &'a Protocol, state: &'a State) -> impl Iterator<Item = (SessionId, Set)> + 'a {
    let waits = protocol.sessions().map(|session| (session, protocol.waits_for(state, session)));
    waits.filter(|(_, holders)| !holders.is_empty())
}

/// Whether some of the calls that `counts` selects wait for each other, and only for each other.
fn has_circle(protocol: &Protocol, state: &State, counts: fn(&Call) -> bool) -> bool {
    let edges: Vec<(SessionId, Set)> =
        waiting(protocol, state).filter(|&(session, _)| counts(&state.calls[session])).collect();
    let reaches = |from: SessionId| {
        let mut reached = Set::EMPTY;
        for _ in &edges {
            for &(session, holders) in &edges {
                if session == from || reached.contains(session) {
                    reached = reached.union(holders);
                }
            }
        }
        reached
    };
    edges.iter().any(|&(session, _)| reaches(session).contains(session))
}

/// Looked at where no transaction is open, which any of them may end at any time: as it is, for
/// every clock, and when all leases have ended and all messages are visible.
fn claimable(protocol: &Protocol, state: &State) -> bool {
    if !state.is_quiet() {
        return true;
    }
    let mut later = state.clone();
    let least_clock = protocol.least_clock();
    later.each_moment(&mut |moment| *moment = least_clock);
    let has_messages = state.fates.iter().any(|fate| fate.place == Place::InQueue);
    let members = protocol.fleet.sessions.iter().enumerate();
    members.filter(|(_, member)| member.calls.contains(&Kind::Fetch)).all(|(session, _)| {
        (!protocol.has_candidates(state, session) || protocol.can_claim(state, session))
            && (!has_messages || protocol.can_claim(&later, session))
    })
}
