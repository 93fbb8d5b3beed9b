//! A fetch while other dispatchers hold the oldest instances.

use super::Row;
use crate::bench::Bench;
use crate::line::{Goal, Line, Unit};
use crate::load;
use crate::own_cost::CALLS;
use crate::probes::Fetch;
use crate::report::Report;
use crate::sweep::{Size, Sweep};
use async_trait::async_trait;

/// The row.
pub struct Leased;

#[async_trait(?Send)]
impl Row for Leased {
    fn name(&self) -> &'static str {
        "leased"
    }

    async fn run(&self, bench: &Bench) -> Report {
        let sizes = [0, 2_000, 20_000, 100_000].map(|count| {
            let mut statements = load::leased(count).to_vec();
            statements.push(load::ready(1..=CALLS));
            Size::new(count, statements)
        });
        let sweep = Sweep::run::<Fetch>(bench, sizes.into()).await;
        let line = |key, what, figures, unit, goal| Line::new(key, what, figures, unit, goal);
        let ms = Unit::Milliseconds;
        Report {
            lines: vec![
                line("leased-0", "fetch, nothing leased: own cost", sweep.own(0), ms, Goal::None),
                line(
                    "leased-growth",
                    "fetch with 2,000, 20,000 and 100,000 leased instances at the head: the most that own cost grows to",
                    sweep.growth(),
                    Unit::Times,
                    Goal::AtMost(1.5),
                ),
                line(
                    "leased-20000",
                    "fetch with 20,000 leased instances at the head: own cost",
                    sweep.own(2),
                    ms,
                    Goal::Ratio(50.0, None),
                ),
                line("leased-100000", "the same with 100,000", sweep.own(3), ms, Goal::None),
            ],
            plots: vec![sweep.plot(
                "leased",
                "Fetch behind leased instances",
                "leased instances at the head",
            )],
        }
    }
}
