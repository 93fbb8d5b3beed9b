//! `renew_orchestration_item_lock`: src/queue/instance_lease.rs, LOCK and RENEW.

use crate::calls::{Call, Caller};
use crate::fleet::EXTENSION;
use crate::guards::Guard;
use crate::sets::Set;
use crate::state::{Breach, InstanceId, Lease, Moment, State, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Renew {
    pub token: Token,
    instance: InstanceId,
    next: Next,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    TakeKey,
    LockLease,
    ExtendLease,
    /// Without `Guard::ClockReadUnderRowLock`: RENEW waits, with the clock of when it began.
    ExtendLeaseAfterWait {
        now: Moment,
    },
    ExtendMessages {
        until: Moment,
    },
    Commit,
}

impl Renew {
    /// Finds the lease by its token, if it is live.
    pub fn start(caller: Caller, state: &State, token: Token) -> Call {
        match caller.find(state, token) {
            Some((instance, lease)) if lease.until > caller.now() => {
                let next = if caller.keeps(Guard::KeyInRenew) { Next::TakeKey } else { Next::LockLease };
                Call::Renew(Renew { token, instance, next })
            }
            _ => Call::Idle,
        }
    }

    pub fn step(self, caller: Caller, state: &mut State) -> Call {
        match self.next {
            Next::TakeKey => {
                state.keys[self.instance] = Some(caller.session);
                self.then(Next::LockLease)
            }
            Next::LockLease => self.lock_lease(caller, state),
            Next::ExtendLease => self.extend_lease(caller, state, caller.now()),
            Next::ExtendLeaseAfterWait { now } => self.extend_lease(caller, state, now),
            Next::ExtendMessages { until } => {
                let lease = Lease { token: self.token, until };
                let claimed = caller.claimed(state, self.instance, self.token);
                caller.update(state, claimed, |message| message.claimed(lease));
                self.then(Next::Commit)
            }
            Next::Commit => Call::Renew(self),
        }
    }

    pub fn is_complete(&self) -> bool {
        self.next == Next::Commit
    }

    pub fn waits_for(&self, caller: Caller, state: &State) -> Set {
        match self.next {
            Next::TakeKey => caller.key_holder(state, self.instance),
            Next::LockLease
                if caller.keeps(Guard::ClockReadUnderRowLock) && self.lease(caller, state).is_some() =>
            {
                caller.lease_holder(state, self.instance)
            }
            Next::ExtendLeaseAfterWait { .. } => caller.lease_holder(state, self.instance),
            Next::ExtendMessages { .. } => {
                caller.message_holders(state, caller.claimed(state, self.instance, self.token))
            }
            Next::LockLease | Next::ExtendLease | Next::Commit => Set::EMPTY,
        }
    }

    pub fn statement_now(&self) -> Option<Moment> {
        match self.next {
            Next::ExtendLeaseAfterWait { now } => Some(now),
            _ => None,
        }
    }

    pub fn each_moment(&mut self, f: &mut impl FnMut(&mut Moment)) {
        match &mut self.next {
            Next::ExtendLeaseAfterWait { now } => f(now),
            Next::ExtendMessages { until } => f(until),
            Next::TakeKey | Next::LockLease | Next::ExtendLease | Next::Commit => {}
        }
    }

    fn then(self, next: Next) -> Call {
        Call::Renew(Renew { next, ..self })
    }

    fn lease(&self, caller: Caller, state: &State) -> Option<Lease> {
        caller.lease(state, self.instance).filter(|lease| lease.token == self.token)
    }

    fn lock_lease(self, caller: Caller, state: &mut State) -> Call {
        if self.lease(caller, state).is_none() {
            return Call::Idle;
        }
        if caller.keeps(Guard::ClockReadUnderRowLock) {
            state.leases[self.instance].lock(caller.session);
        }
        self.then(Next::ExtendLease)
    }

    fn extend_lease(self, caller: Caller, state: &mut State, now: Moment) -> Call {
        let only_live = caller.keeps(Guard::OnlyLiveLeaseRenewed);
        let lease = self.lease(caller, state).filter(|lease| lease.until > now || !only_live);
        let Some(lease) = lease else { return Call::Idle };
        if !caller.lease_holder(state, self.instance).is_empty() {
            return self.then(Next::ExtendLeaseAfterWait { now });
        }
        let least = if caller.keeps(Guard::NeverEarlier) { lease.until } else { Moment::MIN };
        let until = least.max(now + EXTENSION);
        state.leases[self.instance].write(caller.session, Some(Lease { until, ..lease }));
        if lease.until <= caller.now() {
            state.note(Breach::ExpiredLeaseRenewed);
        }
        if until < lease.until {
            state.note(Breach::LeaseShortened);
        }
        self.then(Next::ExtendMessages { until })
    }
}
