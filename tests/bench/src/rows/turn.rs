//! A turn: fetch an instance with one message, acknowledge it with one event. 100,000 more wait.

use super::Row;
use crate::bench::{Bench, Commit};
use crate::line::{Goal, Line, Unit};
use crate::load;
use crate::pgbench::{Load, Until};
use crate::report::Report;
use crate::side::{Pair, Side};
use crate::turn_script::{self, ROUND_TRIPS, SCRIPT};
use async_trait::async_trait;
use duroxide_queue_tests::outcome::must;

const BACKLOG: u64 = 100_000;
/// How often each side has its turn.
const ROUNDS: u64 = 5;

/// The row for a number of clients.
pub struct Turn {
    name: &'static str,
    clients: u64,
    commit: Commit,
    /// Turns of one round, of all clients together.
    turns: u64,
    goal: Goal,
}

/// One client, asynchronous commit.
pub const ONE_CLIENT: Turn = Turn {
    name: "turn-1",
    clients: 1,
    commit: Commit::Asynchronous,
    turns: 8_000,
    goal: Goal::Ratio(2.0, Some(3.0)),
};

/// 16 clients, asynchronous commit.
pub const MANY_CLIENTS: Turn = Turn {
    name: "turn-16",
    clients: 16,
    commit: Commit::Asynchronous,
    turns: 4_800,
    goal: Goal::Ratio(2.5, Some(4.0)),
};

/// 16 clients, synchronous commit.
pub const SYNCHRONOUS: Turn = Turn {
    name: "turn-16-sync",
    clients: 16,
    commit: Commit::Synchronous,
    turns: 1_600,
    goal: Goal::Ratio(1.5, None),
};

#[async_trait(?Send)]
impl Row for Turn {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn run(&self, bench: &Bench) -> Report {
        bench.load(&[load::ready(1..=BACKLOG)]).await;
        let load = Load {
            script: SCRIPT,
            parameters: &turn_script::parameters(),
            clients: self.clients,
            until: Until::Transactions(self.turns / self.clients),
            commit: self.commit,
            pool: None,
        };
        let mut rates = Pair { ours: Vec::new(), theirs: Vec::new() };
        let mut own = Pair { ours: Vec::new(), theirs: Vec::new() };
        for round in 0..ROUNDS {
            for side in Side::BOTH {
                let rate = load.run(bench, side).await.expect("turns");
                let trips = Load { script: ROUND_TRIPS, ..load }.run(bench, side).await.expect("round trips");
                rates.of_mut(side).push(rate);
                own.of_mut(side).push((1000.0 / rate - 1000.0 / trips).max(0.001));
                // The backlog stays what it was.
                let added = BACKLOG + round * self.turns;
                let statement = load::ready(added + 1..=added + self.turns);
                must(&mut bench.session(side).await, &statement).await;
            }
        }
        for side in Side::BOTH {
            self.check_that_all_were_turns(bench, side).await;
        }
        let what = match (self.clients, self.commit) {
            (1, _) => "turn (fetch and ack of one message), backlog 100,000, 1 client, asynchronous commit"
                .to_owned(),
            (clients, Commit::Asynchronous) => format!("the same, {clients} clients"),
            (clients, Commit::Synchronous) => format!("the same with synchronous commit, {clients} clients"),
        };
        let mut lines = vec![Line::new(self.name, &what, rates.medians(), Unit::PerSecond, self.goal)];
        // With more clients the processors are busy, and a turn takes as long as it waits for one.
        if self.clients == 1 {
            let what = "the same: own cost of a turn, less its two round trips";
            lines.push(Line::new("turn-1-own", what, own.medians(), Unit::Milliseconds, self.goal));
        }
        Report { lines, plots: Vec::new() }
    }
}

impl Turn {
    /// A fetch that got nothing would count as a quick transaction.
    async fn check_that_all_were_turns(&self, bench: &Bench, side: Side) {
        let executions = "SELECT count(*) FROM executions";
        let turns = must(&mut bench.session(side).await, executions).await.remove(0).remove(0);
        assert_eq!(turns, Some((ROUNDS * self.turns).to_string()), "turns of {side:?}");
    }
}
