//! `fetch_orchestration_item`: src/queue/claim_instance.rs, src/pg/probe.rs, src/queue/turn_input.rs.
//!
//! A window holds every candidate. The history is read in the step that writes the lease: a
//! statement of its own would see the same, since only an acknowledgement adds to it, for which it
//! needs the lock row that is written here.

use crate::calls::{Call, Caller};
use crate::fleet::LEASE;
use crate::guards::Guard;
use crate::sets::Set;
use crate::state::{Breach, INSTANCES, InstanceId, Lease, MessageId, Moment, State};

/// The statement to run next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fetch {
    Candidates {
        passed_over: Set,
    },
    TryKey {
        search: Search,
    },
    /// LEASE_END, with a snapshot of its own.
    LookAtLease {
        attempt: Attempt,
        old: Option<View>,
    },
    /// LOCK_MESSAGES begins: it is given a clock, and takes its snapshot.
    Look {
        attempt: Attempt,
        old: Option<View>,
        has_lock_row: bool,
    },
    /// LOCK_MESSAGES goes on, with the messages that an observer saw to be due when it began.
    LockMessages {
        attempt: Attempt,
        view: View,
        now: Moment,
        due: Set,
    },
    WriteLease {
        attempt: Attempt,
        found: Found,
    },
    /// The insert alone, where something may come between the probe and it.
    InsertLease {
        attempt: Attempt,
        found: Found,
    },
    Claimed,
    /// No row is returned, but as long as the transaction is open it holds what it has locked.
    GaveUp,
}

/// What is left of the window, and what was tried in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Search {
    window: [Option<Candidate>; INSTANCES],
    passed_over: Set,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Candidate {
    instance: InstanceId,
    /// Without `Guard::FreshSnapshot`: what the candidates were chosen by.
    old: Option<View>,
}

/// The candidate that is being tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    instance: InstanceId,
    search: Search,
}

/// What a snapshot shows of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    due: Set,
    has_live_lease: bool,
    has_lock_row: bool,
    /// A turn has committed since.
    is_old: bool,
}

/// What the claim will consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Found {
    locked: Set,
    due: Set,
    has_lock_row: bool,
    is_old: bool,
}

impl Fetch {
    pub fn start(caller: Caller, state: &State) -> Call {
        look_for_candidates(caller, state, Set::EMPTY)
    }

    pub fn step(self, caller: Caller, state: &mut State) -> Call {
        match self {
            Fetch::Candidates { passed_over } => look_for_candidates(caller, state, passed_over),
            Fetch::TryKey { search } => try_key(caller, state, search),
            Fetch::LookAtLease { attempt, old } => look_at_lease(caller, state, attempt, old),
            Fetch::Look { attempt, old, has_lock_row } => look(caller, state, attempt, old, has_lock_row),
            Fetch::LockMessages { attempt, view, now, due } => {
                lock_messages(caller, state, attempt, view, now, due)
            }
            Fetch::WriteLease { attempt, found } if found.has_lock_row => {
                lease_again(caller, state, attempt, found)
            }
            Fetch::WriteLease { attempt, found } => probe(caller, state, attempt, found),
            Fetch::InsertLease { attempt, found } => lease_anew(caller, state, attempt, found),
            Fetch::Claimed | Fetch::GaveUp => Call::Fetch(self),
        }
    }

    pub fn is_complete(&self) -> bool {
        matches!(self, Fetch::Claimed | Fetch::GaveUp)
    }

    /// Nobody, as long as no guard is missing.
    pub fn waits_for(&self, caller: Caller, state: &State) -> Set {
        match *self {
            Fetch::TryKey { search } if !caller.keeps(Guard::KeyOnlyTried) => {
                caller.key_holder(state, search.first().instance)
            }
            Fetch::LockMessages { view, .. } if !caller.keeps(Guard::SkipLockedMessages) => {
                caller.message_holders(state, view.due)
            }
            Fetch::WriteLease { attempt, found } if found.has_lock_row => {
                let waits = !caller.keeps(Guard::SkipLockedLease);
                if waits { caller.lease_holder(state, attempt.instance) } else { Set::EMPTY }
            }
            Fetch::WriteLease { attempt, .. } if !caller.keeps(Guard::Probe) => {
                attempt.inserter(caller, state)
            }
            Fetch::InsertLease { attempt, .. } => attempt.inserter(caller, state),
            _ => Set::EMPTY,
        }
    }

    pub fn statement_now(&self) -> Option<Moment> {
        match *self {
            Fetch::LockMessages { now, .. } => Some(now),
            _ => None,
        }
    }

    pub fn each_moment(&mut self, f: &mut impl FnMut(&mut Moment)) {
        if let Fetch::LockMessages { now, .. } = self {
            f(now);
        }
    }

    pub fn history_changed(&mut self, instance: InstanceId) {
        match self {
            Fetch::TryKey { search } => search.history_changed(instance),
            Fetch::LookAtLease { attempt, old } | Fetch::Look { attempt, old, .. } => {
                attempt.search.history_changed(instance);
                old.iter_mut().filter(|_| attempt.instance == instance).for_each(|view| view.is_old = true);
            }
            Fetch::LockMessages { attempt, view, .. } => {
                attempt.search.history_changed(instance);
                view.is_old |= attempt.instance == instance;
            }
            Fetch::WriteLease { attempt, found } | Fetch::InsertLease { attempt, found } => {
                attempt.search.history_changed(instance);
                found.is_old |= attempt.instance == instance;
            }
            Fetch::Candidates { .. } | Fetch::Claimed | Fetch::GaveUp => {}
        }
    }
}

impl Search {
    fn first(&self) -> Candidate {
        self.window[0].expect("a key is only tried for a candidate")
    }

    fn split_first(mut self) -> (Candidate, Search) {
        let first = self.first();
        self.window.rotate_left(1);
        self.window[INSTANCES - 1] = None;
        (first, self)
    }

    fn history_changed(&mut self, instance: InstanceId) {
        for candidate in self.window.iter_mut().flatten().filter(|candidate| candidate.instance == instance) {
            candidate.old.iter_mut().for_each(|view| view.is_old = true);
        }
    }
}

impl Attempt {
    /// Who an insert of the lock row waits for.
    fn inserter(self, caller: Caller, state: &State) -> Set {
        let is_in_flight = state.leases[self.instance].is_in_flight_for(caller.session);
        if is_in_flight { caller.lease_holder(state, self.instance) } else { Set::EMPTY }
    }

    /// Gives the key back, and goes on with the next candidate.
    fn pass_over(self, caller: Caller, state: &mut State) -> Call {
        let key = &mut state.keys[self.instance];
        if *key == Some(caller.session) {
            *key = None;
        }
        self.next(caller, state)
    }

    fn next(self, caller: Caller, state: &State) -> Call {
        let search = Search { passed_over: self.search.passed_over.with(self.instance), ..self.search };
        if search.window[0].is_some() {
            return Call::Fetch(Fetch::TryKey { search });
        }
        if search.passed_over == Set::of(caller.protocol.instances()) {
            return no_row(caller, state);
        }
        Call::Fetch(Fetch::Candidates { passed_over: search.passed_over })
    }
}

fn view(caller: Caller, state: &State, instance: InstanceId) -> View {
    let lease = caller.lease(state, instance);
    View {
        due: caller.due(state, instance),
        has_live_lease: lease.is_some_and(|lease| lease.until > caller.now()),
        has_lock_row: lease.is_some(),
        is_old: false,
    }
}

/// In order of (visible_at, id) of the first message.
fn look_for_candidates(caller: Caller, state: &State, passed_over: Set) -> Call {
    let mut found: Vec<((Moment, MessageId), Candidate)> = Vec::new();
    for instance in caller.protocol.instances().filter(|&instance| !passed_over.contains(instance)) {
        let view = view(caller, state, instance);
        let place = |id: MessageId| Some((state.messages[id].seen_by(caller.session)?.visible_at, id));
        if let (Some(first), false) = (view.due.iter().filter_map(place).min(), view.has_live_lease) {
            let old = (!caller.keeps(Guard::FreshSnapshot)).then_some(view);
            found.push((first, Candidate { instance, old }));
        }
    }
    if found.is_empty() {
        return no_row(caller, state);
    }
    found.sort_unstable_by_key(|&(first, _)| first);
    let mut window = [None; INSTANCES];
    for (place, (_, candidate)) in window.iter_mut().zip(found) {
        *place = Some(candidate);
    }
    Call::Fetch(Fetch::TryKey { search: Search { window, passed_over } })
}

fn no_row(caller: Caller, state: &State) -> Call {
    if state.holds_rows(caller.session) { Call::Fetch(Fetch::GaveUp) } else { Call::Idle }
}

fn try_key(caller: Caller, state: &mut State, search: Search) -> Call {
    let (candidate, search) = search.split_first();
    let attempt = Attempt { instance: candidate.instance, search };
    let key = &mut state.keys[candidate.instance];
    if caller.keeps(Guard::KeyInClaim) {
        if key.is_some() {
            return attempt.next(caller, state);
        }
        *key = Some(caller.session);
    }
    Call::Fetch(Fetch::LookAtLease { attempt, old: candidate.old })
}

fn look_at_lease(caller: Caller, state: &mut State, attempt: Attempt, old: Option<View>) -> Call {
    let view = old.unwrap_or(view(caller, state, attempt.instance));
    if view.has_live_lease && caller.keeps(Guard::NoLiveLease) {
        return attempt.pass_over(caller, state);
    }
    Call::Fetch(Fetch::Look { attempt, old, has_lock_row: view.has_lock_row })
}

fn look(caller: Caller, state: &mut State, attempt: Attempt, old: Option<View>, has_lock_row: bool) -> Call {
    let fresh = view(caller, state, attempt.instance);
    let view = View { has_lock_row, ..old.unwrap_or(fresh) };
    if view.due.is_empty() && caller.keeps(Guard::AtLeastOneMessage) {
        return attempt.pass_over(caller, state);
    }
    Call::Fetch(Fetch::LockMessages { attempt, view, now: caller.now(), due: fresh.due })
}

/// Locks what the snapshot showed, as far as it is still so and nobody else holds it.
fn lock_messages(
    caller: Caller,
    state: &mut State,
    attempt: Attempt,
    view: View,
    now: Moment,
    due: Set,
) -> Call {
    let still_due = caller.messages(state, attempt.instance, |message| message.is_due(now));
    let is_free = |id: MessageId| state.messages[id].holder_but(caller.session).is_none();
    let locked = Set::of(view.due.iter().filter(|&id| still_due.contains(id) && is_free(id)));
    caller.update(state, locked, |message| message);

    let is_short = locked != view.due && caller.keeps(Guard::AllMessagesLocked);
    let is_empty = locked.is_empty() && caller.keeps(Guard::AtLeastOneMessage);
    if is_short || is_empty || !caller.can_be_sent() {
        return attempt.pass_over(caller, state);
    }
    let found = Found { locked, due, has_lock_row: view.has_lock_row, is_old: view.is_old };
    Call::Fetch(Fetch::WriteLease { attempt, found })
}

/// LEASE_AGAIN.
fn lease_again(caller: Caller, state: &mut State, attempt: Attempt, found: Found) -> Call {
    let is_free = caller.lease_holder(state, attempt.instance).is_empty();
    match caller.lease(state, attempt.instance) {
        Some(lease) if is_free && caller.keeps(Guard::Takeover) => {
            if lease.until > caller.now() {
                if caller.keeps(Guard::OnlyOverExpiredLease) {
                    return attempt.pass_over(caller, state);
                }
                state.note(Breach::LiveLeaseTakenOver);
            }
            write_lease(caller, state, attempt.instance, found)
        }
        _ => attempt.pass_over(caller, state),
    }
}

fn probe(caller: Caller, state: &mut State, attempt: Attempt, found: Found) -> Call {
    if caller.keeps(Guard::Probe) && !attempt.inserter(caller, state).is_empty() {
        return attempt.pass_over(caller, state);
    }
    if caller.keeps(Guard::NothingAfterProbe) {
        return lease_anew(caller, state, attempt, found);
    }
    Call::Fetch(Fetch::InsertLease { attempt, found })
}

/// LEASE_ANEW.
fn lease_anew(caller: Caller, state: &mut State, attempt: Attempt, found: Found) -> Call {
    match caller.lease(state, attempt.instance) {
        Some(_conflict) => attempt.pass_over(caller, state),
        None => write_lease(caller, state, attempt.instance, found),
    }
}

/// Writes the lease and marks the messages, which are locked.
fn write_lease(caller: Caller, state: &mut State, instance: InstanceId, found: Found) -> Call {
    let lease = Lease { token: state.new_token(instance, found.locked), until: caller.now() + LEASE };
    state.leases[instance].write(caller.session, Some(lease));
    caller.update(state, found.locked, |message| message.claimed(lease));
    state.claims[lease.token].is_behind = found.is_old && !caller.keeps(Guard::FreshSnapshot);
    if found.locked.is_empty() {
        state.note(Breach::EmptyClaim);
    }
    if found.locked != found.due {
        state.note(Breach::IncompleteClaim);
    }
    Call::Fetch(Fetch::Claimed)
}
