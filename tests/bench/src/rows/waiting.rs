//! A fetch while many messages lie in the queue that nobody may have now.

use super::Row;
use crate::bench::Bench;
use crate::line::{Goal, Line, Unit};
use crate::load;
use crate::own_cost::CALLS;
use crate::probes::Fetch;
use crate::report::Report;
use crate::sweep::{Size, Sweep};
use async_trait::async_trait;

/// The row of messages that become visible later.
pub struct Future;

/// The row of messages that wait for one instance whose turn is being worked on.
pub struct OneInstance;

#[async_trait(?Send)]
impl Row for Future {
    fn name(&self) -> &'static str {
        "future"
    }

    async fn run(&self, bench: &Bench) -> Report {
        let sizes = [0, 20_000, 200_000].map(|count| {
            Size::new(count, vec![load::ready(1..=CALLS), load::future(CALLS + 1..=CALLS + count)])
        });
        let sweep = Sweep::run::<Fetch>(bench, sizes.into()).await;
        let what = "fetch with 200,000 messages in the future: own cost grows to";
        Report {
            lines: vec![Line::new("future-growth", what, sweep.growth(), Unit::Times, Goal::AtMost(2.0))],
            plots: vec![sweep.plot(
                "future",
                "Fetch beside messages of the future",
                "messages in the future",
            )],
        }
    }
}

#[async_trait(?Send)]
impl Row for OneInstance {
    fn name(&self) -> &'static str {
        "waiting"
    }

    async fn run(&self, bench: &Bench) -> Report {
        let sizes = [0, 5_000, 50_000].map(|count| {
            let mut statements = load::leased(1).to_vec();
            statements.push(load::waiting_for_leased(count));
            statements.push(load::ready(1..=CALLS));
            Size::new(count, statements)
        });
        let sweep = Sweep::run::<Fetch>(bench, sizes.into()).await;
        Report {
            lines: vec![
                Line::new(
                    "waiting-growth",
                    "fetch with 50,000 messages waiting for one leased instance: own cost grows to",
                    sweep.growth(),
                    Unit::Times,
                    Goal::AtMost(2.0),
                ),
                Line::new(
                    "waiting-first",
                    "the same, first call of a session",
                    sweep.first(2),
                    Unit::Milliseconds,
                    Goal::None,
                ),
            ],
            plots: vec![sweep.plot(
                "waiting",
                "Fetch behind messages of one leased instance",
                "messages that wait for it",
            )],
        }
    }
}
