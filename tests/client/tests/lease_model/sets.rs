//! Small sets of small numbers: messages, instances, sessions.

/// A set of numbers below eight.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Set(u8);

impl Set {
    pub const EMPTY: Set = Set(0);

    pub fn of(members: impl IntoIterator<Item = usize>) -> Self {
        members.into_iter().fold(Set::EMPTY, Set::with)
    }

    pub fn with(self, member: usize) -> Self {
        Set(self.0 | 1 << member)
    }

    pub fn insert(&mut self, member: usize) {
        *self = self.with(member);
    }

    pub fn contains(self, member: usize) -> bool {
        self.0 & 1 << member != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn union(self, other: Set) -> Self {
        Set(self.0 | other.0)
    }

    pub fn intersection(self, other: Set) -> Self {
        Set(self.0 & other.0)
    }

    pub fn iter(self) -> impl DoubleEndedIterator<Item = usize> {
        (0..8).filter(move |&member| self.contains(member))
    }
}

impl std::fmt::Debug for Set {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}
