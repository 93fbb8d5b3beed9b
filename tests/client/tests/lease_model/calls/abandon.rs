//! `abandon_orchestration_item`: src/queue/instance_lease.rs, ABANDON.

use crate::calls::{Call, Caller};
use crate::fleet::DELAY;
use crate::guards::Guard;
use crate::sets::Set;
use crate::state::{InstanceId, Message, Moment, State, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Abandon {
    pub token: Token,
    instance: InstanceId,
    /// When the messages are visible again. `None`: when they were.
    visible_at: Option<Moment>,
    next: Next,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    TakeKey,
    DeleteLease,
    ReleaseMessages,
    Commit,
}

impl Abandon {
    /// Finds the lease by its token, whether it has ended or not.
    pub fn start(caller: Caller, state: &State, token: Token, with_delay: bool) -> Call {
        let Some((instance, _)) = caller.find(state, token) else { return Call::Idle };
        let visible_at = with_delay.then(|| caller.now() + DELAY);
        let next = if caller.keeps(Guard::KeyInAbandon) { Next::TakeKey } else { Next::DeleteLease };
        Call::Abandon(Abandon { token, instance, visible_at, next })
    }

    pub fn step(self, caller: Caller, state: &mut State) -> Call {
        match self.next {
            Next::TakeKey => {
                state.keys[self.instance] = Some(caller.session);
                self.then(Next::DeleteLease)
            }
            Next::DeleteLease => {
                if !self.has_lease(caller, state) {
                    return Call::Idle;
                }
                state.leases[self.instance].write(caller.session, None);
                self.then(Next::ReleaseMessages)
            }
            Next::ReleaseMessages => {
                let claimed = caller.claimed(state, self.instance, self.token);
                caller.update(state, claimed, |message| Message {
                    visible_at: self.visible_at.unwrap_or(message.visible_at),
                    claim: None,
                });
                self.then(Next::Commit)
            }
            Next::Commit => Call::Abandon(self),
        }
    }

    pub fn is_complete(&self) -> bool {
        self.next == Next::Commit
    }

    pub fn waits_for(&self, caller: Caller, state: &State) -> Set {
        match self.next {
            Next::TakeKey => caller.key_holder(state, self.instance),
            Next::DeleteLease if self.has_lease(caller, state) => caller.lease_holder(state, self.instance),
            Next::ReleaseMessages => {
                caller.message_holders(state, caller.claimed(state, self.instance, self.token))
            }
            Next::DeleteLease | Next::Commit => Set::EMPTY,
        }
    }

    pub fn each_moment(&mut self, f: &mut impl FnMut(&mut Moment)) {
        self.visible_at.iter_mut().for_each(f);
    }

    fn has_lease(&self, caller: Caller, state: &State) -> bool {
        caller.lease(state, self.instance).is_some_and(|lease| lease.token == self.token)
    }

    fn then(self, next: Next) -> Call {
        Call::Abandon(Abandon { next, ..self })
    }
}
