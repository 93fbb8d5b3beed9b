//! `delete_instances_atomic`: src/queue/deletion.rs, by force.
//!
//! In one statement, the messages go before the lock rows: they are counted, and a part of a
//! statement whose rows are counted runs before one that is only run.

use crate::calls::{Call, Caller};
use crate::guards::Guard;
use crate::sets::Set;
use crate::state::{InstanceId, Place, State};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Delete {
    instances: Set,
    next: Next,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    TakeKey {
        held: Set,
    },
    DeleteMessages,
    /// The statement waits for messages. Its snapshot shows these, and these lock rows.
    DeleteMessagesAfterWait {
        messages: Set,
        leases: Set,
    },
    DeleteLeases {
        leases: Set,
    },
    Commit,
}

impl Delete {
    pub fn start(caller: Caller, instances: Set) -> Call {
        let takes_keys = caller.keeps(Guard::KeyInDelete);
        let next = if takes_keys { Next::TakeKey { held: Set::EMPTY } } else { Next::DeleteMessages };
        Call::Delete(Delete { instances, next })
    }

    pub fn step(self, caller: Caller, state: &mut State) -> Call {
        match self.next {
            Next::TakeKey { held } => match self.next_key(caller, held) {
                Some(instance) => {
                    state.keys[instance] = Some(caller.session);
                    self.then(Next::TakeKey { held: held.with(instance) })
                }
                None => self.then(Next::DeleteMessages),
            },
            Next::DeleteMessages => {
                let messages = self.messages(caller, state);
                let leases = self.leases(caller, state);
                if !caller.message_holders(state, messages).is_empty() {
                    return self.then(Next::DeleteMessagesAfterWait { messages, leases });
                }
                self.delete_messages(caller, state, messages, leases)
            }
            Next::DeleteMessagesAfterWait { messages, leases } => {
                self.delete_messages(caller, state, messages, leases)
            }
            Next::DeleteLeases { leases } => {
                for instance in self.leases_to_delete(caller, state, leases).iter() {
                    state.leases[instance].write(caller.session, None);
                }
                self.then(Next::Commit)
            }
            Next::Commit => Call::Delete(self),
        }
    }

    pub fn is_complete(&self) -> bool {
        self.next == Next::Commit
    }

    pub fn waits_for(&self, caller: Caller, state: &State) -> Set {
        match self.next {
            Next::TakeKey { held } => match self.next_key(caller, held) {
                Some(instance) => caller.key_holder(state, instance),
                None => Set::EMPTY,
            },
            Next::DeleteMessagesAfterWait { messages, .. } => caller.message_holders(state, messages),
            Next::DeleteLeases { leases } => {
                let leases = self.leases_to_delete(caller, state, leases);
                leases.iter().map(|id| caller.lease_holder(state, id)).fold(Set::EMPTY, Set::union)
            }
            Next::DeleteMessages | Next::Commit => Set::EMPTY,
        }
    }

    pub fn commit(self, caller: Caller, state: &mut State) {
        state.commit(caller.session, Place::DeletedWithInstance);
        for instance in self.instances.iter() {
            state.history_changed(instance);
        }
    }

    fn then(self, next: Next) -> Call {
        Call::Delete(Delete { next, ..self })
    }

    /// Without `Guard::KeysInOrder`, every other session begins at the other end.
    fn next_key(&self, caller: Caller, held: Set) -> Option<InstanceId> {
        let mut missing = self.instances.iter().filter(|&id| !held.contains(id));
        let backwards = caller.session % 2 == 1 && !caller.keeps(Guard::KeysInOrder);
        if backwards { missing.next_back() } else { missing.next() }
    }

    fn messages(&self, caller: Caller, state: &State) -> Set {
        let messages = self.instances.iter().map(|id| caller.messages(state, id, |_| true));
        messages.fold(Set::EMPTY, Set::union)
    }

    fn leases(&self, caller: Caller, state: &State) -> Set {
        Set::of(self.instances.iter().filter(|&id| caller.lease(state, id).is_some()))
    }

    /// Of those that the snapshot showed the ones that are still there, or what a snapshot of a
    /// statement of its own shows.
    fn leases_to_delete(&self, caller: Caller, state: &State, shown: Set) -> Set {
        let there = self.leases(caller, state);
        if caller.keeps(Guard::LeasesDeletedLast) { there } else { there.intersection(shown) }
    }

    fn delete_messages(self, caller: Caller, state: &mut State, messages: Set, leases: Set) -> Call {
        for id in messages.intersection(self.messages(caller, state)).iter() {
            state.messages[id].write(caller.session, None);
        }
        self.then(Next::DeleteLeases { leases })
    }
}
