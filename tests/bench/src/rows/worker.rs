//! A worker's fetch while many items lie in the queue that nobody may have now.

use super::Row;
use crate::bench::Bench;
use crate::line::{Goal, Line, Unit};
use crate::load;
use crate::own_cost::CALLS;
use crate::probes::FetchWork;
use crate::report::Report;
use crate::sweep::{Size, Sweep};
use async_trait::async_trait;

/// The row of items that become visible later.
pub struct Future;

/// The row of items that other workers hold.
pub struct Leased;

#[async_trait(?Send)]
impl Row for Future {
    fn name(&self) -> &'static str {
        "worker-future"
    }

    async fn run(&self, bench: &Bench) -> Report {
        let sizes = [0, 10_000, 100_000]
            .map(|count| Size::new(count, vec![load::future_work(count), load::ready_work(CALLS)]));
        let sweep = Sweep::run::<FetchWork>(bench, sizes.into()).await;
        Report {
            lines: vec![
                Line::new(
                    "worker-future-growth",
                    "worker fetch with 100,000 future items: own cost grows to",
                    sweep.growth(),
                    Unit::Times,
                    Goal::AtMost(1.5),
                ),
                Line::new(
                    "worker-future-100000",
                    "the same: own cost",
                    sweep.own(2),
                    Unit::Milliseconds,
                    Goal::Ratio(50.0, None),
                ),
            ],
            plots: vec![sweep.plot(
                "worker-future",
                "Worker fetch beside items of the future",
                "items in the future",
            )],
        }
    }
}

#[async_trait(?Send)]
impl Row for Leased {
    fn name(&self) -> &'static str {
        "worker-leased"
    }

    async fn run(&self, bench: &Bench) -> Report {
        let sizes = [0, 2_000, 20_000, 100_000]
            .map(|count| Size::new(count, vec![load::leased_work(count), load::ready_work(CALLS)]));
        let sweep = Sweep::run::<FetchWork>(bench, sizes.into()).await;
        Report {
            lines: vec![
                Line::new(
                    "worker-leased-growth",
                    "worker fetch with 2,000, 20,000 and 100,000 leased items at the head: the most that own cost grows to",
                    sweep.growth(),
                    Unit::Times,
                    Goal::AtMost(1.5),
                ),
                Line::new(
                    "worker-leased-20000",
                    "worker fetch with 20,000 leased items at the head: own cost",
                    sweep.own(2),
                    Unit::Milliseconds,
                    Goal::Ratio(50.0, None),
                ),
                Line::new(
                    "worker-leased-100000",
                    "the same with 100,000",
                    sweep.own(3),
                    Unit::Milliseconds,
                    Goal::None,
                ),
            ],
            plots: vec![sweep.plot(
                "worker-leased",
                "Worker fetch behind leased items",
                "leased items at the head",
            )],
        }
    }
}
