//! The tables, the open transactions, and what an observer has noted of turns and messages.
//!
//! Time is told relative to now: a tick makes every moment one less, and what is past for every
//! clock is all the same. Tokens have no names of their own, only the order in which they occur,
//! and are forgotten when nothing refers to them any more. So a state says only what matters from
//! here on, and neither time nor the number of claims needs a bound.

use crate::calls::Call;
use crate::row::Row;
use crate::sets::Set;

/// Room for the largest of the fleets.
pub const INSTANCES: usize = 2;
pub const MESSAGES: usize = 3;
pub const SESSIONS: usize = 3;
/// One committed lease an instance, and one more for each session that has found or written it.
pub const TOKENS: usize = INSTANCES + SESSIONS;

pub type SessionId = usize;
pub type InstanceId = usize;
pub type MessageId = usize;
pub type Token = usize;
/// Ticks from now.
pub type Moment = i8;

/// Holds the row of a message that is being enqueued.
pub const ENQUEUER: SessionId = SESSIONS;
/// Any token that nobody can acknowledge, abandon or renew any more.
const DEAD: Token = TOKENS;

/// A row of `instance_locks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    pub token: Token,
    pub until: Moment,
}

/// A row of `orchestrator_queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    pub visible_at: Moment,
    pub claim: Option<Lease>,
}

impl Message {
    /// Whether a claim at `now` takes it.
    pub fn is_due(self, now: Moment) -> bool {
        self.visible_at <= now && self.claim.is_none_or(|claim| claim.until <= now)
    }

    pub fn claimed(self, claim: Lease) -> Self {
        Message { claim: Some(claim), ..self }
    }
}

/// What the holder of a token was given, and did with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Claim {
    pub instance: InstanceId,
    pub messages: Set,
    /// Another turn of the instance has committed since its history was read.
    pub is_behind: bool,
    pub is_acknowledged: bool,
}

/// Where a message has got to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    NotYetEnqueued,
    InQueue,
    Consumed,
    DeletedWithInstance,
}

/// A message in the eyes of an observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fate {
    pub place: Place,
    /// Committed turns that were given it.
    pub turns: u8,
}

/// What no step may do, as the observer of a step sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    SecondTurnOfClaim,
    TurnOnOldHistory,
    TurnAfterLease,
    EmptyClaim,
    IncompleteClaim,
    LiveLeaseTakenOver,
    ExpiredLeaseRenewed,
    LeaseShortened,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub leases: [Row<Lease>; INSTANCES],
    pub messages: [Row<Message>; MESSAGES],
    pub keys: [Option<SessionId>; INSTANCES],
    pub calls: [Call; SESSIONS],
    pub claims: [Claim; TOKENS],
    pub fates: [Fate; MESSAGES],
    breaches: Set,
}

impl State {
    /// An empty queue, and nobody doing anything.
    pub fn empty() -> Self {
        State {
            leases: [Row::new(None); INSTANCES],
            messages: [Row::new(None); MESSAGES],
            keys: [None; INSTANCES],
            calls: [Call::Idle; SESSIONS],
            claims: [Claim::default(); TOKENS],
            fates: [Fate { place: Place::NotYetEnqueued, turns: 0 }; MESSAGES],
            breaches: Set::EMPTY,
        }
    }

    pub fn note(&mut self, breach: Breach) {
        self.breaches.insert(breach as usize);
    }

    pub fn has_seen(&self, breach: Breach) -> bool {
        self.breaches.contains(breach as usize)
    }

    /// A token that nothing refers to, for a claim of `messages`.
    pub fn new_token(&mut self, instance: InstanceId, messages: Set) -> Token {
        let in_use = self.tokens_in_use();
        let token = (0..TOKENS).find(|token| !in_use.contains(token)).expect("a token a session is enough");
        self.claims[token] = Claim { instance, messages, ..Claim::default() };
        token
    }

    /// Notes that a turn of the claim `token` has committed.
    pub fn turn_committed(&mut self, token: Token) {
        let claim = self.claims[token];
        if claim.is_acknowledged {
            self.note(Breach::SecondTurnOfClaim);
        }
        if claim.is_behind {
            self.note(Breach::TurnOnOldHistory);
        }
        for id in claim.messages.iter() {
            self.fates[id].turns = (self.fates[id].turns + 1).min(2);
        }
        self.history_changed(claim.instance);
        self.claims[token] = Claim { is_acknowledged: true, ..claim };
    }

    /// Notes that whoever has read the history of `instance` has read an old one.
    pub fn history_changed(&mut self, instance: InstanceId) {
        for claim in self.claims.iter_mut().filter(|claim| claim.instance == instance) {
            claim.is_behind = true;
        }
        for call in &mut self.calls {
            call.history_changed(instance);
        }
    }

    /// Ends the transaction of `session`; its deleted messages are at `place` then.
    pub fn commit(&mut self, session: SessionId, place: Place) {
        self.leases.iter_mut().for_each(|row| {
            row.commit(session);
        });
        for (row, fate) in self.messages.iter_mut().zip(&mut self.fates) {
            if row.commit(session) {
                fate.place = place;
            } else if row.committed.is_some() {
                fate.place = Place::InQueue;
            }
        }
        self.end(session);
    }

    pub fn roll_back(&mut self, session: SessionId) {
        self.leases.iter_mut().for_each(|row| row.roll_back(session));
        self.messages.iter_mut().for_each(|row| row.roll_back(session));
        self.end(session);
    }

    fn end(&mut self, session: SessionId) {
        for key in self.keys.iter_mut().filter(|key| **key == Some(session)) {
            *key = None;
        }
        if let Some(call) = self.calls.get_mut(session) {
            *call = Call::Idle;
        }
    }

    /// Whether `session` keeps others from any row.
    pub fn holds_rows(&self, session: SessionId) -> bool {
        self.leases.iter().any(|row| row.held.is_some_and(|held| held.by == session))
            || self.messages.iter().any(|row| row.held.is_some_and(|held| held.by == session))
    }

    /// Whether no transaction is open.
    pub fn is_quiet(&self) -> bool {
        self.calls.iter().all(|call| *call == Call::Idle) && !self.holds_rows(ENQUEUER)
    }

    /// Calls `f` with every moment of the state.
    pub fn each_moment(&mut self, f: &mut impl FnMut(&mut Moment)) {
        for row in &mut self.leases {
            row.each_version(&mut |lease| f(&mut lease.until));
        }
        for row in &mut self.messages {
            row.each_version(&mut |message| {
                f(&mut message.visible_at);
                if let Some(claim) = &mut message.claim {
                    f(&mut claim.until);
                }
            });
        }
        for call in &mut self.calls {
            call.each_moment(f);
        }
    }

    /// Calls `f` with every token that somebody may still acknowledge, abandon or renew.
    fn each_live_token(&mut self, f: &mut impl FnMut(&mut Token)) {
        for row in &mut self.leases {
            row.each_version(&mut |lease| f(&mut lease.token));
        }
        for call in &mut self.calls {
            call.each_token(f);
        }
    }

    /// In order of their first occurrence.
    fn tokens_in_use(&mut self) -> Vec<Token> {
        let mut tokens = Vec::new();
        self.each_live_token(&mut |token| {
            if !tokens.contains(token) {
                tokens.push(*token);
            }
        });
        tokens
    }

    /// Makes states equal that differ in nothing that matters, given the least of all clocks.
    pub fn normalize(&mut self, least_clock: Moment) {
        let floor = self.calls.iter().filter_map(Call::statement_now).fold(least_clock, Moment::min);
        self.each_moment(&mut |moment| *moment = (*moment).max(floor));
        self.rename_tokens();
        for row in &mut self.messages {
            row.each_version(&mut |message| {
                message.claim = message.claim.filter(|claim| claim.token != DEAD || claim.until > floor);
            });
        }
    }

    fn rename_tokens(&mut self) {
        let old = self.tokens_in_use();
        let new = |token: Token| old.iter().position(|&other| other == token).unwrap_or(DEAD);
        self.each_live_token(&mut |token| *token = new(*token));
        for row in &mut self.messages {
            row.each_version(&mut |message| {
                if let Some(claim) = &mut message.claim {
                    claim.token = new(claim.token);
                }
            });
        }
        let mut claims = [Claim::default(); TOKENS];
        for (claim, &token) in claims.iter_mut().zip(&old) {
            *claim = self.claims[token];
        }
        self.claims = claims;
    }
}
