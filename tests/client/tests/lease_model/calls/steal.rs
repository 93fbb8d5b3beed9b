//! A stranger: the claim of duroxide-pg's own procedure, in plain statements and under no key of
//! ours. It keeps to row locks. What it claims is acknowledged, abandoned and renewed by our calls.

use crate::calls::{Call, Caller};
use crate::fleet::LEASE;
use crate::sets::Set;
use crate::state::{InstanceId, Lease, State};

/// The statement to run next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Steal {
    /// INSERT ... ON CONFLICT DO UPDATE, if the lease has ended.
    WriteLease {
        instance: InstanceId,
    },
    MarkMessages {
        instance: InstanceId,
    },
    Commit,
}

impl Steal {
    /// Locks the first visible message that it can, if there is no live lease.
    pub fn start(caller: Caller, state: &mut State, instance: InstanceId) -> Call {
        if has_live_lease(caller, state, instance) {
            return Call::Idle;
        }
        let visible = caller.messages(state, instance, |message| message.visible_at <= caller.now());
        let mut free = visible.iter().filter(|&id| state.messages[id].holder_but(caller.session).is_none());
        let Some(first) = free.next() else { return Call::Idle };
        state.messages[first].lock(caller.session);
        Call::Steal(Steal::WriteLease { instance })
    }

    pub fn step(self, caller: Caller, state: &mut State) -> Call {
        match self {
            Steal::WriteLease { instance } => write_lease(caller, state, instance),
            Steal::MarkMessages { instance } => mark_messages(caller, state, instance),
            Steal::Commit => Call::Steal(self),
        }
    }

    pub fn is_complete(&self) -> bool {
        *self == Steal::Commit
    }

    pub fn waits_for(&self, caller: Caller, state: &State) -> Set {
        match *self {
            Steal::WriteLease { instance } => caller.lease_holder(state, instance),
            Steal::MarkMessages { instance } => caller.message_holders(state, caller.due(state, instance)),
            Steal::Commit => Set::EMPTY,
        }
    }
}

fn has_live_lease(caller: Caller, state: &State, instance: InstanceId) -> bool {
    caller.lease(state, instance).is_some_and(|lease| lease.until > caller.now())
}

fn write_lease(caller: Caller, state: &mut State, instance: InstanceId) -> Call {
    if has_live_lease(caller, state, instance) {
        return Call::Idle;
    }
    let lease = Lease { token: state.new_token(instance, Set::EMPTY), until: caller.now() + LEASE };
    state.leases[instance].write(caller.session, Some(lease));
    Call::Steal(Steal::MarkMessages { instance })
}

fn mark_messages(caller: Caller, state: &mut State, instance: InstanceId) -> Call {
    let due = caller.due(state, instance);
    let Some(lease) = caller.lease(state, instance).filter(|_| !due.is_empty()) else { return Call::Idle };
    caller.update(state, due, |message| message.claimed(lease));
    state.claims[lease.token].messages = due;
    Call::Steal(Steal::Commit)
}
