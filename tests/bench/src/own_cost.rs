//! What a call costs beyond the round trip: its time less that of a statement in the same session that takes the same
//! arguments and sends the same result, but finds it ready in a temporary table.

use crate::bench::Bench;
use crate::side::{Pair, Side, median};
use async_trait::async_trait;
use std::time::{Duration, Instant};

/// Calls before any is counted: more than the five after which PostgreSQL may change to a generic plan, which is
/// where duroxide-pg's own procedures get slow.
const WARM_UP: usize = 12;
/// Blocks of a side, that take turns with those of the other.
const BLOCKS: usize = 5;
/// Calls that count in one block: slow ones are as few as this, quick ones go on for a while.
const FEWEST: usize = 6;
const MOST: usize = 300;
const A_WHILE: Duration = Duration::from_millis(150);

/// So many calls are made at most: what a load has to have ready for them.
pub const CALLS: u64 = (WARM_UP + BLOCKS * (MOST + 1) + 1) as u64;

/// A call that can be repeated, in a session of its own.
#[async_trait(?Send)]
pub trait Probe: Sized {
    /// Opens its session on a side, with nothing called yet.
    async fn open(bench: &Bench, side: Side) -> Self;

    /// One call, and what has to follow it so that the next finds the same; the milliseconds of the call alone.
    async fn call(&mut self) -> f64;

    /// The same arguments, the same result, none of the work; the milliseconds.
    async fn round_trip(&mut self) -> f64;
}

/// What the calls of one side took, in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct Cost {
    /// The median of the whole calls, as a client sees them.
    pub whole: f64,
    /// The median of each less the round trip just before it: what slows the machine down for a while slows both.
    pub own: f64,
    /// The very first call of the session, less the round trip.
    pub first: f64,
}

/// Makes the calls on both sides, in blocks that take turns.
pub async fn measure<P: Probe>(bench: &Bench) -> Pair<Cost> {
    let mut probes =
        Pair { ours: P::open(bench, Side::Ours).await, theirs: P::open(bench, Side::Theirs).await };
    let mut first = Pair { ours: 0.0, theirs: 0.0 };
    for side in Side::BOTH {
        let probe = probes.of_mut(side);
        *first.of_mut(side) = probe.call().await;
        for _ in 1..WARM_UP {
            probe.round_trip().await;
            probe.call().await;
        }
    }
    let mut whole = Pair { ours: Vec::new(), theirs: Vec::new() };
    let mut trips = whole.clone();
    for _ in 0..BLOCKS {
        for side in Side::BOTH {
            let probe = probes.of_mut(side);
            // Finds the processor's caches full of what the other side did.
            probe.call().await;
            let begin = Instant::now();
            let mut calls = 0;
            while calls < FEWEST || (calls < MOST && begin.elapsed() < A_WHILE) {
                trips.of_mut(side).push(probe.round_trip().await);
                whole.of_mut(side).push(probe.call().await);
                calls += 1;
            }
        }
    }
    let cost = |side| {
        let (calls, trips) = (whole.of(side), trips.of(side));
        let beyond_its_own: Vec<f64> = calls.iter().zip(trips).map(|(call, trip)| call - trip).collect();
        Cost {
            whole: median(calls),
            own: or_little(median(&beyond_its_own)),
            first: or_little(first.of(side) - median(trips)),
        }
    };
    Pair { ours: cost(Side::Ours), theirs: cost(Side::Theirs) }
}

/// A difference, where it can be told from nothing.
fn or_little(difference: f64) -> f64 {
    difference.max(0.001)
}
