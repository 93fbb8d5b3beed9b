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
/// How often in between it is asked whether the time is over.
const PARTS: u64 = 5;
const CALLS: usize = 15;
/// The environment variable that sets how many turns run.
const TURNS_VARIABLE: &str = "DUROXIDE_QUEUE_BENCH_TURNS";
const TURNS: u64 = 200_000;
/// A side that has not done its turns by then is stopped, and the table says how far it came.
const PATIENCE: Duration = Duration::from_secs(120);

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

/// How it went on one side.
struct Course {
    /// The own cost of a fetch before the first slice and after each that was done.
    costs: Vec<f64>,
    /// The turns that were done.
    turns: u64,
    /// The own cost after them.
    end: f64,
    /// The first call of the session that found it, which had to find its way past all that is dead.
    first: f64,
}

async fn run(bench: &Bench, side: Side, turns: u64) -> Course {
    // Enough for the probes too, whose echo takes a call each: an empty queue is another matter.
    bench.load(&[load::ready(1..=turns + (SLICES + 2) * 3 * CALLS as u64)]).await;
    let mut holder = bench.session(side).await;
    must(&mut holder, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    must(&mut holder, "SELECT count(*) FROM instances").await;

    let begin = Instant::now();
    let [_, start] = own_cost(bench, side).await;
    let mut course = Course { costs: vec![start], turns: 0, end: start, first: start };
    let each = (turns / SLICES / PARTS / CLIENTS).max(1);
    let part = each * CLIENTS;
    while course.turns < turns && begin.elapsed() < PATIENCE {
        let load = Load {
            script: SCRIPT,
            parameters: &turn_script::parameters(),
            clients: CLIENTS,
            until: Until::Transactions(each),
            commit: Commit::Asynchronous,
            pool: None,
        };
        load.run(bench, side).await;
        course.turns += part;
        if course.turns.is_multiple_of(part * PARTS) {
            course.costs.push(own_cost(bench, side).await[1]);
        }
    }
    [course.first, course.end] = own_cost(bench, side).await;
    must(&mut holder, "COMMIT").await;
    course
}

/// Of the first call of a session, and of one that has been at work for a while, as a dispatcher's is.
async fn own_cost(bench: &Bench, side: Side) -> [f64; 2] {
    let mut probe = Fetch::open(bench, side).await;
    let (mut whole, mut trips) = (Vec::new(), Vec::new());
    for _ in 0..2 * CALLS {
        whole.push(probe.call().await);
        trips.push(probe.round_trip().await);
    }
    let trip = median(&trips[CALLS..]);
    [whole[0], median(&whole[CALLS..])].map(|took| (took - trip).max(0.001))
}

fn report(turns: u64, sides: &Pair<Course>) -> Report {
    let thousands = |turns: u64| number(turns as f64);
    let done = sides.map(|course| course.turns);
    let reach = if done.ours == done.theirs {
        format!("{} turns", thousands(done.ours))
    } else {
        let minutes = number(PATIENCE.as_secs_f64() / 60.0);
        format!(
            "{} turns of ours and {} of theirs (stopped after {minutes} minutes)",
            thousands(done.ours),
            thousands(done.theirs)
        )
    };
    let slices = sides.map(|course| course.costs.len());
    let points = (0..slices.ours.max(slices.theirs)).map(|slice| Point {
        label: thousands(slice as u64 * (turns / SLICES)),
        ours: sides.ours.costs.get(slice).copied(),
        theirs: sides.theirs.costs.get(slice).copied(),
    });
    Report {
        lines: vec![
            Line::new(
                "snapshot-growth",
                &format!(
                    "a snapshot held open in another session while {reach} run: own cost of a fetch grows to"
                ),
                sides.map(|course| course.end / course.costs[0]),
                Unit::Times,
                Goal::AtMost(3.0),
            ),
            Line::new(
                "snapshot-end",
                "the same: own cost at the end",
                sides.map(|course| course.end),
                Unit::Milliseconds,
                Goal::Ratio(1.0, None),
            ),
            Line::new(
                "snapshot-first",
                "the same: the first call of a session at the end",
                sides.map(|course| course.first),
                Unit::Milliseconds,
                Goal::None,
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
