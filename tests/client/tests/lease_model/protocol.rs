//! The model: the calls of a fleet, ticks and enqueues, in every order.

use crate::calls::{
    Call, Caller, abandon::Abandon, ack::Ack, claim::Fetch, delete::Delete, renew::Renew, steal::Steal,
};
use crate::fleet::{Fleet, Kind, LONGEST_STATEMENT};
use crate::guards::Guard;
use crate::properties;
use crate::row::Row;
use crate::sets::Set;
use crate::state::{ENQUEUER, InstanceId, Message, MessageId, Moment, Place, SessionId, State};
use stateright::{Model, Property};

/// The protocol as a fleet runs it, less some guards.
#[derive(Clone, Debug)]
pub struct Protocol {
    pub fleet: Fleet,
    without: Vec<Guard>,
}

/// One step of somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Tick,
    Enqueue(MessageId),
    EnqueueCommits,
    EnqueueRollsBack,
    Begin(SessionId, Kind, InstanceId),
    Step(SessionId),
    Commit(SessionId),
    /// The call is cancelled, its client or its backend dies, or it is the victim of a deadlock.
    Abort(SessionId),
}

impl Protocol {
    /// As the implementation is.
    pub fn as_built(fleet: Fleet) -> Self {
        Protocol { fleet, without: Vec::new() }
    }

    /// As the implementation is, but for some guards.
    pub fn without(fleet: Fleet, guards: &[Guard]) -> Self {
        Protocol { fleet, without: guards.to_vec() }
    }

    pub fn keeps(&self, guard: Guard) -> bool {
        !self.without.contains(&guard)
    }

    pub fn instances(&self) -> impl DoubleEndedIterator<Item = InstanceId> + use<> {
        0..self.fleet.instances
    }

    pub fn sessions(&self) -> impl Iterator<Item = SessionId> + use<> {
        0..self.fleet.sessions.len()
    }

    /// All messages of an instance, enqueued yet or not.
    pub fn messages_of(&self, instance: InstanceId) -> impl Iterator<Item = MessageId> {
        let messages = self.fleet.messages.iter().enumerate();
        messages.filter(move |(_, message)| message.instance == instance).map(|(id, _)| id)
    }

    pub fn least_clock(&self) -> Moment {
        self.fleet.sessions.iter().map(|member| member.clock).min().unwrap_or(0)
    }

    /// Who has to end before the call of `session` can go on.
    pub fn waits_for(&self, state: &State, session: SessionId) -> Set {
        state.calls[session].waits_for(self.caller(session), state)
    }

    /// Whether a fetch of `session` has anything to try.
    pub fn has_candidates(&self, state: &State, session: SessionId) -> bool {
        Fetch::start(self.caller(session), state) != Call::Idle
    }

    /// Whether a fetch of `session` gets a claim while nobody else does anything.
    pub fn can_claim(&self, state: &State, session: SessionId) -> bool {
        let mut state = state.clone();
        state.calls[session] = Fetch::start(self.caller(session), &state);
        while state.calls[session] != Call::Idle && !state.calls[session].is_complete() {
            self.step(&mut state, session);
        }
        state.calls[session] == Call::Fetch(Fetch::Claimed)
    }

    fn caller(&self, session: SessionId) -> Caller<'_> {
        Caller { protocol: self, session }
    }

    /// The first statement of a call. Tokens are known to all: a client retries what it is not sure
    /// of on another connection, and renews while a turn is being acknowledged.
    fn begin(&self, state: &mut State, session: SessionId, kind: Kind, instance: InstanceId) -> Call {
        let caller = self.caller(session);
        let token = state.leases[instance].committed.map(|lease| lease.token);
        match (kind, token) {
            (Kind::Fetch | Kind::FetchInVain, _) => Fetch::start(caller, state),
            (Kind::Ack, Some(token)) => Ack::start(caller, state, token),
            (Kind::Abandon, Some(token)) => Abandon::start(caller, state, token, false),
            (Kind::AbandonWithDelay, Some(token)) => Abandon::start(caller, state, token, true),
            (Kind::Renew, Some(token)) => Renew::start(caller, state, token),
            (Kind::Ack | Kind::Abandon | Kind::AbandonWithDelay | Kind::Renew, None) => Call::Idle,
            (Kind::Delete, _) => Delete::start(caller, Set::of([instance])),
            (Kind::DeleteAll, _) => Delete::start(caller, Set::of(self.instances())),
            (Kind::Steal, _) => Steal::start(caller, state, instance),
        }
    }

    fn step(&self, state: &mut State, session: SessionId) {
        match state.calls[session].step(self.caller(session), state) {
            Call::Idle => state.roll_back(session),
            call => state.calls[session] = call,
        }
    }

    /// Time goes on, but no statement takes for ever.
    fn may_tick(&self, state: &State) -> bool {
        self.sessions().all(|session| {
            let begun = state.calls[session].statement_now();
            begun.is_none_or(|begun| begun > self.caller(session).now() - LONGEST_STATEMENT)
        })
    }

    fn actions_of(&self, state: &State, session: SessionId, actions: &mut Vec<Action>) {
        let call = state.calls[session];
        if call == Call::Idle {
            for &kind in self.fleet.sessions[session].calls {
                let is_for_all = matches!(kind, Kind::Fetch | Kind::FetchInVain | Kind::DeleteAll);
                let targets = self.instances().take(if is_for_all { 1 } else { usize::MAX });
                actions.extend(targets.map(|instance| Action::Begin(session, kind, instance)));
            }
            return;
        }
        actions.push(Action::Abort(session));
        if call.is_complete() {
            actions.push(Action::Commit(session));
        } else if self.waits_for(state, session).is_empty() {
            actions.push(Action::Step(session));
        }
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut state = State::empty();
        for (id, message) in self.fleet.messages.iter().enumerate().filter(|(_, message)| !message.is_late) {
            state.messages[id] = Row::new(Some(Message { visible_at: message.visible_at, claim: None }));
            state.fates[id].place = Place::InQueue;
        }
        state.normalize(self.least_clock());
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if self.may_tick(state) {
            actions.push(Action::Tick);
        }
        for id in (0..self.fleet.messages.len()).filter(|&id| state.fates[id].place == Place::NotYetEnqueued)
        {
            if state.messages[id].held.is_none() {
                actions.push(Action::Enqueue(id));
            } else {
                actions.extend([Action::EnqueueCommits, Action::EnqueueRollsBack]);
            }
        }
        for session in self.sessions() {
            self.actions_of(state, session, actions);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Tick => state.each_moment(&mut |moment| *moment -= 1),
            Action::Enqueue(id) => {
                let visible_at = self.fleet.messages[id].visible_at;
                state.messages[id].write(ENQUEUER, Some(Message { visible_at, claim: None }));
            }
            Action::EnqueueCommits => state.commit(ENQUEUER, Place::InQueue),
            Action::EnqueueRollsBack => state.roll_back(ENQUEUER),
            Action::Begin(session, kind, instance) => {
                state.calls[session] = self.begin(&mut state, session, kind, instance);
            }
            Action::Step(session) => self.step(&mut state, session),
            Action::Commit(session) => state.calls[session].commit(self.caller(session), &mut state),
            Action::Abort(session) => state.roll_back(session),
        }
        state.normalize(self.least_clock());
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
