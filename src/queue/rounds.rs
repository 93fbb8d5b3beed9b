//! How long a claim looks: a bounded number of rounds, over windows that grow.
//!
//! A round reads a window of candidates in one query, so that many dispatchers that start at once do
//! not pay a query for each candidate that the others hold. The first window is small, since mostly
//! the first candidate is free.

/// A claim gives up after this many rounds; the next call has a fresh clock.
const MAX_ROUNDS: u32 = 50;
const FIRST_WINDOW: i64 = 8;
const MAX_WINDOW: i64 = 256;

/// The sizes of the windows, one a round.
pub(crate) fn windows() -> impl Iterator<Item = i64> {
    (0..MAX_ROUNDS).map(|round| (FIRST_WINDOW << round.min(8)).min(MAX_WINDOW))
}

#[cfg(test)]
mod tests {
    #[test]
    fn windows_grow_to_a_bound_and_end() {
        let windows: Vec<i64> = super::windows().collect();

        assert_eq!(windows[..7], [8, 16, 32, 64, 128, 256, 256]);
        assert_eq!(windows.len(), 50);
    }
}
