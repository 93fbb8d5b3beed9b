//! A row as READ COMMITTED shows and locks it.
//!
//! A row has its newest committed version and at most one holder: the open transaction that has
//! locked, inserted, changed or deleted it. Others see the committed version, and whoever wants
//! to lock or write the row waits for the holder, skips the row, or is refused. After a wait the
//! row is looked at again in its newest version (EvalPlanQual), not in the one of the snapshot.

use crate::state::SessionId;

/// One row of a table, there or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row<V> {
    pub committed: Option<V>,
    pub held: Option<Held<V>>,
}

/// The row in the eyes of the transaction that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Held<V> {
    pub by: SessionId,
    pub version: Option<V>,
}

impl<V: Copy + PartialEq> Row<V> {
    pub fn new(committed: Option<V>) -> Self {
        Row { committed, held: None }
    }

    /// The version that a new snapshot of `session` shows.
    pub fn seen_by(&self, session: SessionId) -> Option<V> {
        match self.held {
            Some(held) if held.by == session => held.version,
            _ => self.committed,
        }
    }

    /// Who else holds the row.
    pub fn holder_but(&self, session: SessionId) -> Option<SessionId> {
        self.held.map(|held| held.by).filter(|&by| by != session)
    }

    /// Whether somebody else is inserting, changing or deleting it, not only locking it.
    pub fn is_in_flight_for(&self, session: SessionId) -> bool {
        self.held.is_some_and(|held| held.by != session && held.version != self.committed)
    }

    /// Locks the newest version. To be called only if nobody else holds the row.
    pub fn lock(&mut self, session: SessionId) {
        self.write(session, self.seen_by(session));
    }

    /// Inserts, changes or deletes. To be called only if nobody else holds the row.
    pub fn write(&mut self, session: SessionId, version: Option<V>) {
        debug_assert!(self.holder_but(session).is_none(), "two transactions cannot write one row");
        self.held = Some(Held { by: session, version });
    }

    /// Ends the transaction of `session`; returns whether the row went with it.
    pub fn commit(&mut self, session: SessionId) -> bool {
        let Some(held) = self.held.filter(|held| held.by == session) else { return false };
        let is_gone = self.committed.is_some() && held.version.is_none();
        *self = Row::new(held.version);
        is_gone
    }

    /// Ends the transaction of `session` as if it had not been.
    pub fn roll_back(&mut self, session: SessionId) {
        if self.held.is_some_and(|held| held.by == session) {
            self.held = None;
        }
    }

    /// Calls `f` with each version there is.
    pub fn each_version(&mut self, f: &mut impl FnMut(&mut V)) {
        self.committed.iter_mut().for_each(&mut *f);
        if let Some(held) = &mut self.held {
            held.version.iter_mut().for_each(f);
        }
    }
}
