//! `ack_orchestration_item`: src/queue/ack_turn.rs, src/pg/commit_check.rs.
//!
//! The rest of what a turn writes has no step of its own: it is there or not with the messages that
//! the turn consumes, and nothing else in the protocol looks at it.

use crate::calls::{Call, Caller};
use crate::guards::Guard;
use crate::sets::Set;
use crate::state::{Breach, InstanceId, Moment, Place, State, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ack {
    pub token: Token,
    instance: InstanceId,
    next: Next,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    TakeKey,
    TakeLease,
    /// TAKE_LEASE waits for the lock row, with the clock of when it began.
    TakeLeaseAfterWait {
        now: Moment,
    },
    ConsumeMessages {
        until: Moment,
    },
    /// Without `Guard::LockRowFirst`.
    DropLease {
        until: Moment,
    },
    Commit {
        until: Moment,
    },
}

impl Ack {
    /// Finds the lease by its token, if it is live.
    pub fn start(caller: Caller, state: &State, token: Token) -> Call {
        match caller.find(state, token) {
            Some((instance, lease)) if lease.until > caller.now() => {
                let next = if caller.keeps(Guard::KeyInAck) { Next::TakeKey } else { Next::TakeLease };
                Call::Ack(Ack { token, instance, next })
            }
            _ => Call::Idle,
        }
    }

    pub fn step(self, caller: Caller, state: &mut State) -> Call {
        match self.next {
            Next::TakeKey => {
                state.keys[self.instance] = Some(caller.session);
                self.then(Next::TakeLease)
            }
            Next::TakeLease => self.take_lease(caller, state, caller.now()),
            Next::TakeLeaseAfterWait { now } => self.take_lease(caller, state, now),
            Next::ConsumeMessages { until } => self.consume_messages(caller, state, until),
            Next::DropLease { until } => {
                if caller.lease(state, self.instance).is_some_and(|lease| lease.token == self.token) {
                    state.leases[self.instance].write(caller.session, None);
                }
                self.then(Next::Commit { until })
            }
            Next::Commit { .. } => Call::Ack(self),
        }
    }

    pub fn is_complete(&self) -> bool {
        matches!(self.next, Next::Commit { .. })
    }

    pub fn waits_for(&self, caller: Caller, state: &State) -> Set {
        match self.next {
            Next::TakeKey => caller.key_holder(state, self.instance),
            Next::TakeLeaseAfterWait { .. } | Next::DropLease { .. } => {
                caller.lease_holder(state, self.instance)
            }
            Next::ConsumeMessages { .. } => caller.message_holders(state, self.consumed(caller, state)),
            Next::TakeLease | Next::Commit { .. } => Set::EMPTY,
        }
    }

    pub fn statement_now(&self) -> Option<Moment> {
        match self.next {
            Next::TakeLeaseAfterWait { now } => Some(now),
            _ => None,
        }
    }

    pub fn each_moment(&mut self, f: &mut impl FnMut(&mut Moment)) {
        match &mut self.next {
            Next::TakeLeaseAfterWait { now } => f(now),
            Next::ConsumeMessages { until } | Next::DropLease { until } | Next::Commit { until } => f(until),
            Next::TakeKey | Next::TakeLease => {}
        }
    }

    /// Commits the turn, unless its lease has ended.
    pub fn commit(self, caller: Caller, state: &mut State) {
        let Next::Commit { until } = self.next else { return };
        if until <= caller.now() {
            if caller.keeps(Guard::CommitCheck) {
                return state.roll_back(caller.session);
            }
            state.note(Breach::TurnAfterLease);
        }
        state.commit(caller.session, Place::Consumed);
        state.turn_committed(self.token);
    }

    fn then(self, next: Next) -> Call {
        Call::Ack(Ack { next, ..self })
    }

    /// Deletes the lock row, or fails.
    fn take_lease(self, caller: Caller, state: &mut State, now: Moment) -> Call {
        let found = caller.lease(state, self.instance).filter(|lease| {
            (lease.token == self.token || !caller.keeps(Guard::TokenCheckedAgain))
                && (lease.until > now || !caller.keeps(Guard::LeaseCheckedAgain))
        });
        let Some(lease) = found else { return Call::Idle };
        if caller.keeps(Guard::LockRowFirst) {
            if !caller.lease_holder(state, self.instance).is_empty() {
                return self.then(Next::TakeLeaseAfterWait { now });
            }
            state.leases[self.instance].write(caller.session, None);
        }
        self.then(Next::ConsumeMessages { until: lease.until })
    }

    fn consume_messages(self, caller: Caller, state: &mut State, until: Moment) -> Call {
        for id in self.consumed(caller, state).iter() {
            state.messages[id].write(caller.session, None);
        }
        let is_last = caller.keeps(Guard::LockRowFirst);
        self.then(if is_last { Next::Commit { until } } else { Next::DropLease { until } })
    }

    fn consumed(&self, caller: Caller, state: &State) -> Set {
        if caller.keeps(Guard::ConsumedByToken) {
            caller.claimed(state, self.instance, self.token)
        } else {
            caller.messages(state, self.instance, |_| true)
        }
    }
}
