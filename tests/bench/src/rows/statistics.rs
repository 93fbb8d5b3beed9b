//! Statistics of an empty queue, and 200,000 messages that came after them.

use super::Row;
use crate::bench::Bench;
use crate::calls::{self, FETCH};
use crate::line::{Goal, Line, Unit};
use crate::load;
use crate::own_cost::measure;
use crate::plot::{Plot, Point};
use crate::probes::Fetch;
use crate::report::Report;
use crate::side::{Pair, Side, median};
use async_trait::async_trait;
use duroxide_queue_tests::outcome::must;

const MESSAGES: u64 = 200_000;
const CALLS: usize = 20;
const ROUNDS: usize = 3;
/// PostgreSQL makes a plan for each of the first five calls; then it may keep one.
const OWN_PLANS: usize = 5;

/// The row.
pub struct Statistics;

#[async_trait(?Send)]
impl Row for Statistics {
    fn name(&self) -> &'static str {
        "statistics"
    }

    async fn run(&self, bench: &Bench) -> Report {
        bench.load(&[load::ready(1..=MESSAGES)]).await;
        let fresh = measure::<Fetch>(bench).await;
        let trips = fresh.map(|cost| cost.whole - cost.own);
        let mut rounds = Pair { ours: Vec::new(), theirs: Vec::new() };
        for _ in 0..ROUNDS {
            for side in Side::BOTH {
                rounds.of_mut(side).push(calls_after_empty_statistics(bench, side).await);
            }
        }
        let stale = |side| median_of_each_call(rounds.of(side), *trips.of(side));
        let stale = Pair { ours: stale(Side::Ours), theirs: stale(Side::Theirs) };
        report(fresh.map(|cost| cost.own), &stale)
    }
}

/// The calls of the session that analysed the queue while it was empty, one after the other.
async fn calls_after_empty_statistics(bench: &Bench, side: Side) -> Vec<f64> {
    let mut session = bench.session(side).await;
    must(&mut session, load::CLEAR).await;
    // Or autovacuum may bring the statistics up to date in the middle.
    must(&mut session, "ALTER TABLE orchestrator_queue SET (autovacuum_enabled = false)").await;
    must(&mut session, "ANALYZE orchestrator_queue, instance_locks, instances, executions, history").await;
    must(&mut session, &load::ready(1..=MESSAGES)).await;
    // Or the few calls that count fall into the writing of what has just been put in.
    must(&mut session, "CHECKPOINT").await;
    let mut took = Vec::new();
    for _ in 0..CALLS {
        let answer = calls::fetch(&mut session, FETCH).await;
        calls::ack_nothing(&mut session, &answer.token()).await;
        took.push(answer.took);
    }
    must(&mut session, "ALTER TABLE orchestrator_queue RESET (autovacuum_enabled)").await;
    took
}

/// The first calls of all rounds, the second ones and so on, each less the round trip.
fn median_of_each_call(rounds: &[Vec<f64>], trip: f64) -> Vec<f64> {
    (0..CALLS)
        .map(|call| {
            let took: Vec<f64> = rounds.iter().map(|round| round[call]).collect();
            (median(&took) - trip).max(0.001)
        })
        .collect()
}

fn report(fresh: Pair<f64>, stale: &Pair<Vec<f64>>) -> Report {
    // The first call also loads the library and makes every plan: it stands in the plot.
    let before = stale.map(|took| median(&took[1..OWN_PLANS]));
    let after = stale.map(|took| median(&took[OWN_PLANS..]));
    let times = |a: Pair<f64>, b: Pair<f64>| Pair { ours: a.ours / b.ours, theirs: a.theirs / b.theirs };
    let lines = vec![
        Line::new(
            "statistics-stale",
            "ANALYZE on an empty queue, then 200,000 messages, same session: own cost of a fetch, in terms of fresh statistics",
            times(after, fresh),
            Unit::Times,
            Goal::AtMost(1.5),
        ),
        Line::new(
            "statistics-step",
            "the same: calls from the sixth on, in terms of those before",
            times(after, before),
            Unit::Times,
            Goal::AtMost(1.5),
        ),
        Line::new("statistics-own", "the same: own cost", after, Unit::Milliseconds, Goal::None),
    ];
    let points = stale.ours.iter().zip(&stale.theirs).enumerate().map(|(call, (&ours, &theirs))| Point {
        label: (call + 1).to_string(),
        ours: Some(ours),
        theirs: Some(theirs),
    });
    let plot = Plot {
        file: "statistics",
        title: "Fetch with the statistics of an empty queue, 200,000 messages".to_owned(),
        x: "call of the session".to_owned(),
        y: "own cost, ms".to_owned(),
        points: points.collect(),
    };
    Report { lines, plots: vec![plot] }
}
