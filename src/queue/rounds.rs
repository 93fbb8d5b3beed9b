//! How long a claim looks, and how: a bounded number of rounds.
//!
//! The first in line is mostly free, and a look at it alone costs least. Where it is not, many
//! dispatchers that start at once must not each pay a query for each candidate that the others hold: an
//! instance is then looked for by a query that passes over whatever is not free. A work item is looked for by one that
//! locks the first that is free, or, where that cannot be, in a window of candidates that grows.

use std::cell::Cell;

/// A claim gives up after this many rounds; the next call has a fresh clock.
const MAX_ROUNDS: usize = 50;
const SECOND_WINDOW: i64 = 8;
const MAX_FIRST_WINDOW: i64 = 64;
const MAX_WINDOW: i64 = 256;

/// How a claim of an instance looks for a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// At the first in line, free or not.
    AtHead,
    /// At the first one that is free and whose key nobody holds.
    PastOthers,
    /// At so many that are free, held or not: where the first ones turn out not to be had, for whatever reason, it
    /// takes few queries to get past thousands of them.
    Window(i64),
}

/// Claims of a backend that pass over others at once after one that met others at the head.
const CLAIMS_PAST_OTHERS: u32 = 16;
/// Looks past others in one claim: mostly one is enough.
const LOOKS_PAST_OTHERS: usize = 4;

/// How many of the backend's next claims pass over others at once.
#[derive(Default)]
pub(crate) struct Looks(Cell<u32>);

impl Looks {
    /// The looks of one claim, one a round.
    pub(crate) fn of_a_claim(&self) -> impl Iterator<Item = Look> + use<> {
        let past_others = self.0.get();
        self.0.set(past_others.saturating_sub(1));
        core::iter::repeat_n(Look::AtHead, usize::from(past_others == 0))
            .chain(core::iter::repeat_n(Look::PastOthers, LOOKS_PAST_OTHERS))
            .chain(growing(SECOND_WINDOW).map(Look::Window))
            .take(MAX_ROUNDS)
    }

    /// Notes that the first in line was not free.
    pub(crate) fn others_met(&self) {
        self.0.set(CLAIMS_PAST_OTHERS);
    }
}

/// Windows that double, up to the largest.
fn growing(first: i64) -> impl Iterator<Item = i64> {
    (0..).map(move |round: u32| (first << round.min(8)).min(MAX_WINDOW))
}

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

    /// The size of the first window. Whoever met others in its way looks twice as far.
    pub(crate) fn first_window(&self) -> i64 {
        let tried = self.0.get();
        if tried > 1 { tried.saturating_mul(2).min(MAX_FIRST_WINDOW) } else { 1 }
    }

    /// The sizes of the windows, one a round.
    pub(crate) fn windows(&self) -> impl Iterator<Item = i64> + use<> {
        let first = self.first_window();
        core::iter::once(first).chain(growing(first.max(SECOND_WINDOW))).take(MAX_ROUNDS)
    }
}

/// Claims of work items that do not lock as they look, after one that did so in vain.
const CLAIMS_AFTER_VAIN: u32 = 16;

/// How many of a backend's next claims of work items look first and lock then. After one that found nothing, the next does, so
/// that a poll of an empty queue needs no right but to read, and its emptiness is remembered.
pub(crate) struct PlainClaims(Cell<u32>);

impl Default for PlainClaims {
    fn default() -> Self {
        PlainClaims(Cell::new(1))
    }
}

impl PlainClaims {
    /// Begins a claim: whether it locks as it looks. Until it has claimed something, the next is plain.
    pub(crate) fn begin(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.max(1));
        left == 0
    }

    /// Notes that an item was claimed, and whether locking it as it was looked for was tried in vain.
    pub(crate) fn claimed(&self, in_vain: bool) {
        self.0.set(if in_vain { CLAIMS_AFTER_VAIN } else { self.0.get().saturating_sub(1) });
    }
}

#[cfg(test)]
mod tests {
    use super::{Look, Looks, PlainClaims, Tried};

    fn looks(memory: &Looks) -> Vec<Look> {
        memory.of_a_claim().collect()
    }

    #[test]
    fn the_head_is_looked_at_first_and_rounds_end() {
        let looks = looks(&Looks::default());

        assert_eq!(looks[..2], [Look::AtHead, Look::PastOthers]);
        assert_eq!(looks[4..8], [Look::PastOthers, Look::Window(8), Look::Window(16), Look::Window(32)]);
        assert_eq!(looks.len(), 50);
        assert_eq!(looks[49], Look::Window(256));
    }

    #[test]
    fn a_claim_that_met_others_is_followed_by_some_that_pass_over_them_at_once() {
        let memory = Looks::default();
        memory.others_met();

        for claim in 1..=16 {
            assert_eq!(looks(&memory)[0], Look::PastOthers, "claim {claim}");
        }
        assert_eq!(looks(&memory)[0], Look::AtHead);
    }

    #[test]
    fn locking_as_one_looks_comes_after_a_claim_and_goes_for_a_while_when_it_was_in_vain() {
        let memory = PlainClaims::default();
        assert!(!memory.begin(), "nothing has been claimed yet");
        memory.claimed(false);
        assert!(memory.begin());
        assert!(!memory.begin(), "the claim before found nothing, or did not end well");
        memory.claimed(false);
        assert!(memory.begin());

        memory.claimed(true);
        for claim in 1..=16 {
            assert!(!memory.begin(), "claim {claim}");
            memory.claimed(false);
        }
        assert!(memory.begin());
    }

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
