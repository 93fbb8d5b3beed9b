//! A transaction that somebody left open, while turns go on: nothing that they leave behind can be vacuumed away.

use super::Row;
use crate::bench::{Bench, Commit};
use crate::line::{Goal, Line, Unit, number};
use crate::load;
use crate::own_cost::Probe;
use crate::pgbench::{Load, Until};
use crate::plot::{Plot, Point};
use crate::probes::Fetch;
use crate::report::Report;
use crate::side::{Pair, Side, median};
use crate::turn_script::{self, SCRIPT};
use async_trait::async_trait;
use duroxide_queue_tests::outcome::must;
use std::time::{Duration, Instant};

const CLIENTS: u64 = 16;
/// How often the cost of a fetch is looked at on the way.
const SLICES: u64 = 10;
const CALLS: usize = 15;
/// The environment variable that sets how many turns run.
const TURNS_VARIABLE: &str = "DUROXIDE_QUEUE_BENCH_TURNS";
const TURNS: u64 = 200_000;
/// A side that has not done its turns by then is stopped, and the table says how far it came.
const PATIENCE: Duration = Duration::from_secs(150);

/// The row.
pub struct HeldSnapshot;

#[async_trait(?Send)]
impl Row for HeldSnapshot {
    fn name(&self) -> &'static str {
        "snapshot"
    }

    async fn run(&self, bench: &Bench) -> Report {
        let turns = std::env::var(TURNS_VARIABLE).map_or(TURNS, |turns| {
            turns.parse().unwrap_or_else(|_| panic!("{TURNS_VARIABLE}={turns} is no number"))
        });
        // What the other side leaves behind must not be in the way.
        let ours = run(bench, Side::Ours, turns).await;
        let theirs = run(bench, Side::Theirs, turns).await;
        report(turns, &Pair { ours, theirs })
    }
}

/// The own cost of a fetch before the first slice and after each.
async fn run(bench: &Bench, side: Side, turns: u64) -> Vec<f64> {
    let slice = turns / SLICES;
    bench.load(&[load::ready(1..=turns + (SLICES + 1) * 2 * CALLS as u64)]).await;
    let mut holder = bench.session(side).await;
    must(&mut holder, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    must(&mut holder, "SELECT count(*) FROM instances").await;

    let begin = Instant::now();
    let mut costs = vec![own_cost(bench, side).await];
    for _ in 0..SLICES {
        if begin.elapsed() > PATIENCE {
            break;
        }
        let load = Load {
            script: SCRIPT,
            parameters: &turn_script::parameters(),
            clients: CLIENTS,
            until: Until::Transactions(slice / CLIENTS),
            commit: Commit::Asynchronous,
        };
        load.run(bench, side).await;
        costs.push(own_cost(bench, side).await);
    }
    must(&mut holder, "COMMIT").await;
    costs
}

/// In a session that has long been at work, as a dispatcher's is.
async fn own_cost(bench: &Bench, side: Side) -> f64 {
    let mut probe = Fetch::open(bench, side).await;
    let (mut whole, mut trips) = (Vec::new(), Vec::new());
    for _ in 0..2 * CALLS {
        whole.push(probe.call().await);
        trips.push(probe.round_trip().await);
    }
    (median(&whole[CALLS..]) - median(&trips[CALLS..])).max(0.001)
}

fn report(turns: u64, costs: &Pair<Vec<f64>>) -> Report {
    let slices = costs.map(Vec::len);
    let done = |points: usize| number(((points - 1) as u64 * (turns / SLICES)) as f64);
    let growth = costs.map(|costs| costs[costs.len() - 1] / costs[0]);
    // Where both have come to.
    let last = slices.ours.min(slices.theirs) - 1;
    let both = costs.map(|costs| costs[last]);
    let reach = if slices.ours == slices.theirs {
        format!("{} turns", done(slices.ours))
    } else {
        format!("{} turns of ours and {} of theirs", done(slices.ours), done(slices.theirs))
    };
    let points = (0..slices.ours.max(slices.theirs)).map(|slice| Point {
        label: done(slice + 1),
        ours: costs.ours.get(slice).copied(),
        theirs: costs.theirs.get(slice).copied(),
    });
    Report {
        lines: vec![
            Line::new(
                "snapshot-growth",
                &format!(
                    "a snapshot held open in another session while {reach} run: own cost of a fetch grows to"
                ),
                growth,
                Unit::Times,
                Goal::AtMost(3.0),
            ),
            Line::new(
                "snapshot-end",
                &format!("the same: own cost after {} turns", done(last + 1)),
                both,
                Unit::Milliseconds,
                Goal::Ratio(1.0, None),
            ),
        ],
        plots: vec![Plot {
            file: "snapshot",
            title: "Fetch while a snapshot is held open".to_owned(),
            x: "turns done, 16 clients".to_owned(),
            y: "own cost, ms".to_owned(),
            points: points.collect(),
        }],
    }
}
