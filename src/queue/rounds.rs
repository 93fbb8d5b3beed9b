//! How long a claim looks: a bounded number of rounds, over windows that grow.
//!
//! A round reads a window of candidates in one query, so that many dispatchers that start at once do
//! not pay a query for each candidate that the others hold. Reading far ahead costs where the first
//! candidate is free, which it mostly is: so the first window is as large as the last claim needed.

use std::cell::Cell;

/// A claim gives up after this many rounds; the next call has a fresh clock.
const MAX_ROUNDS: usize = 50;
const SECOND_WINDOW: i64 = 8;
const MAX_FIRST_WINDOW: i64 = 64;
const MAX_WINDOW: i64 = 256;

/// How many candidates the last successful claim of this backend tried.
pub(crate) struct Tried(Cell<i64>);

impl Default for Tried {
    fn default() -> Self {
        Tried(Cell::new(1))
    }
}

impl Tried {
    /// Notes that the candidate of this number, counted from 1, was free.
    pub(crate) fn note(&self, number: i64) {
        self.0.set(number);
    }

    /// The sizes of the windows, one a round. Whoever met others in its way looks twice as far.
    pub(crate) fn windows(&self) -> impl Iterator<Item = i64> + use<> {
        let tried = self.0.get();
        let first = if tried > 1 { tried.saturating_mul(2).min(MAX_FIRST_WINDOW) } else { 1 };
        let growing = (0..).map(move |round: u32| (first.max(SECOND_WINDOW) << round.min(8)).min(MAX_WINDOW));
        core::iter::once(first).chain(growing).take(MAX_ROUNDS)
    }
}

#[cfg(test)]
mod tests {
    use super::Tried;

    fn windows(tried: i64) -> Vec<i64> {
        let memory = Tried::default();
        memory.note(tried);
        memory.windows().collect()
    }

    #[test]
    fn windows_grow_to_a_bound_and_end() {
        let windows = windows(1);

        assert_eq!(windows[..8], [1, 8, 16, 32, 64, 128, 256, 256]);
        assert_eq!(windows.len(), 50);
    }

    #[test]
    fn a_claim_that_met_others_is_followed_by_one_that_looks_further() {
        assert_eq!(windows(2)[..3], [4, 8, 16]);
        assert_eq!(windows(9)[..3], [18, 18, 36]);
        assert_eq!(windows(1_000)[..4], [64, 64, 128, 256]);
        assert_eq!(windows(i64::MAX)[0], 64);
    }
}
