//! The calls, statement by statement.
//!
//! A call is one transaction, and each statement of it is a step with a snapshot of its own. A
//! statement that does more than one thing to what others may hold is a step for each: for its
//! snapshot and its locks, or for lock rows and messages. One that meets a row which somebody else
//! holds waits with the clock that it was given, and goes on with the row as it is then.

pub mod abandon;
pub mod ack;
pub mod claim;
pub mod delete;
pub mod renew;
pub mod steal;

use crate::fleet::Kind;
use crate::guards::Guard;
use crate::protocol::Protocol;
use crate::sets::Set;
use crate::state::{InstanceId, Lease, Message, Moment, Place, SessionId, State, Token};

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Nothing, and no transaction is open.
    Idle,
    Fetch(claim::Fetch),
    Ack(ack::Ack),
    Abandon(abandon::Abandon),
    Renew(renew::Renew),
    Delete(delete::Delete),
    Steal(steal::Steal),
}

impl Call {
    /// Runs the next statement. `Idle` if the call fails, or returns no row and has locked none.
    pub fn step(self, caller: Caller, state: &mut State) -> Call {
        match self {
            Call::Idle => Call::Idle,
            Call::Fetch(fetch) => fetch.step(caller, state),
            Call::Ack(ack) => ack.step(caller, state),
            Call::Abandon(abandon) => abandon.step(caller, state),
            Call::Renew(renew) => renew.step(caller, state),
            Call::Delete(delete) => delete.step(caller, state),
            Call::Steal(steal) => steal.step(caller, state),
        }
    }

    /// Whether all statements have run, so that only the end of the transaction is to come.
    pub fn is_complete(&self) -> bool {
        match self {
            Call::Idle => false,
            Call::Fetch(fetch) => fetch.is_complete(),
            Call::Ack(ack) => ack.is_complete(),
            Call::Abandon(abandon) => abandon.is_complete(),
            Call::Renew(renew) => renew.is_complete(),
            Call::Delete(delete) => delete.is_complete(),
            Call::Steal(steal) => steal.is_complete(),
        }
    }

    /// Sessions whose transactions must end before the next statement can go on.
    pub fn waits_for(&self, caller: Caller, state: &State) -> Set {
        match self {
            Call::Idle => Set::EMPTY,
            Call::Fetch(fetch) => fetch.waits_for(caller, state),
            Call::Ack(ack) => ack.waits_for(caller, state),
            Call::Abandon(abandon) => abandon.waits_for(caller, state),
            Call::Renew(renew) => renew.waits_for(caller, state),
            Call::Delete(delete) => delete.waits_for(caller, state),
            Call::Steal(steal) => steal.waits_for(caller, state),
        }
    }

    /// Commits, or rolls back if the call may not commit any more.
    pub fn commit(self, caller: Caller, state: &mut State) {
        match self {
            Call::Ack(ack) => ack.commit(caller, state),
            Call::Delete(delete) => delete.commit(caller, state),
            _ => state.commit(caller.session, Place::InQueue),
        }
    }

    /// The clock that a statement under way was given.
    pub fn statement_now(&self) -> Option<Moment> {
        match self {
            Call::Fetch(fetch) => fetch.statement_now(),
            Call::Ack(ack) => ack.statement_now(),
            Call::Renew(renew) => renew.statement_now(),
            _ => None,
        }
    }

    pub fn each_moment(&mut self, f: &mut impl FnMut(&mut Moment)) {
        match self {
            Call::Fetch(fetch) => fetch.each_moment(f),
            Call::Ack(ack) => ack.each_moment(f),
            Call::Abandon(abandon) => abandon.each_moment(f),
            Call::Renew(renew) => renew.each_moment(f),
            Call::Idle | Call::Delete(_) | Call::Steal(_) => {}
        }
    }

    pub fn each_token(&mut self, f: &mut impl FnMut(&mut Token)) {
        match self {
            Call::Ack(ack) => f(&mut ack.token),
            Call::Abandon(abandon) => f(&mut abandon.token),
            Call::Renew(renew) => f(&mut renew.token),
            // The tokens of claims are on the lock rows that they write.
            Call::Idle | Call::Fetch(_) | Call::Delete(_) | Call::Steal(_) => {}
        }
    }

    /// What the call has read of the history of `instance` is no longer all of it.
    pub fn history_changed(&mut self, instance: InstanceId) {
        if let Call::Fetch(fetch) = self {
            fetch.history_changed(instance);
        }
    }
}

/// The session that makes a call, and the rules that it makes it by.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    pub protocol: &'a Protocol,
    pub session: SessionId,
}

impl Caller<'_> {
    /// The caller's clock.
    pub fn now(self) -> Moment {
        self.protocol.fleet.sessions[self.session].clock
    }

    /// Whether the client can be sent what messages say.
    pub fn can_be_sent(self) -> bool {
        !self.protocol.fleet.sessions[self.session].calls.contains(&Kind::FetchInVain)
    }

    pub fn keeps(self, guard: Guard) -> bool {
        self.protocol.keeps(guard)
    }

    /// The lease of `instance` that a new snapshot shows.
    pub fn lease(self, state: &State, instance: InstanceId) -> Option<Lease> {
        state.leases[instance].seen_by(self.session)
    }

    /// The lease of `token` that a new snapshot shows, and its instance.
    pub fn find(self, state: &State, token: Token) -> Option<(InstanceId, Lease)> {
        let mut leases = self.protocol.instances().filter_map(|id| Some((id, self.lease(state, id)?)));
        leases.find(|(_, lease)| lease.token == token)
    }

    /// Messages of `instance` that a new snapshot shows, as far as they pass `test`.
    pub fn messages(self, state: &State, instance: InstanceId, test: impl Fn(Message) -> bool) -> Set {
        let shown = |&id: &usize| state.messages[id].seen_by(self.session).is_some_and(&test);
        Set::of(self.protocol.messages_of(instance).filter(shown))
    }

    /// Messages of `instance` that a claim would take now.
    pub fn due(self, state: &State, instance: InstanceId) -> Set {
        self.messages(state, instance, |message| message.is_due(self.now()))
    }

    /// Messages that are claimed under `token`.
    pub fn claimed(self, state: &State, instance: InstanceId, token: Token) -> Set {
        self.messages(state, instance, |message| message.claim.is_some_and(|claim| claim.token == token))
    }

    /// Who else holds the key of `instance`.
    pub fn key_holder(self, state: &State, instance: InstanceId) -> Set {
        Set::of(state.keys[instance].filter(|&holder| holder != self.session))
    }

    /// Who else holds the lock row of `instance`.
    pub fn lease_holder(self, state: &State, instance: InstanceId) -> Set {
        Set::of(state.leases[instance].holder_but(self.session))
    }

    /// Who else holds any of `messages`.
    pub fn message_holders(self, state: &State, messages: Set) -> Set {
        Set::of(messages.iter().filter_map(|id| state.messages[id].holder_but(self.session)))
    }

    /// Writes the version that `change` makes of each of `messages`.
    pub fn update(self, state: &mut State, messages: Set, change: impl Fn(Message) -> Message) {
        for id in messages.iter() {
            let row = &mut state.messages[id];
            let changed = row.seen_by(self.session).map(&change);
            row.write(self.session, changed);
        }
    }
}
