//! The two that are compared, and one of something for each.

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A created queue of duroxide_queue.
    Ours,
    /// A schema of duroxide-pg with its own PL/pgSQL procedures.
    Theirs,
}

impl Side {
    /// Both, in the order in which they take turns.
    pub const BOTH: [Side; 2] = [Side::Ours, Side::Theirs];
}

/// One of something for each side.
#[derive(Clone, Copy, Debug)]
pub struct Pair<T> {
    /// duroxide_queue's.
    pub ours: T,
    /// duroxide-pg's.
    pub theirs: T,
}

impl<T> Pair<T> {
    /// The one of that side.
    pub fn of(&self, side: Side) -> &T {
        match side {
            Side::Ours => &self.ours,
            Side::Theirs => &self.theirs,
        }
    }

    /// The one of that side, to be changed.
    pub fn of_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Ours => &mut self.ours,
            Side::Theirs => &mut self.theirs,
        }
    }

    /// The same done with both.
    pub fn map<U>(&self, change: impl Fn(&T) -> U) -> Pair<U> {
        Pair { ours: change(&self.ours), theirs: change(&self.theirs) }
    }
}

impl Pair<Vec<f64>> {
    /// The median of each.
    pub fn medians(&self) -> Pair<f64> {
        self.map(|values| median(values))
    }
}

/// The middle one of some values.
///
/// # Panics
///
/// If there are none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}
