//! A fetch of an instance with a long history and 1,000 messages.

use super::Row;
use crate::bench::Bench;
use crate::line::{Goal, Line, Unit, number};
use crate::load;
use crate::probes::FetchAgain;
use crate::report::Report;
use crate::sweep::{Size, Sweep};
use async_trait::async_trait;

const EVENTS: [u64; 3] = [10, 1_000, 10_000];
const MESSAGES: u64 = 1_000;

/// The row.
pub struct History;

#[async_trait(?Send)]
impl Row for History {
    fn name(&self) -> &'static str {
        "history"
    }

    async fn run(&self, bench: &Bench) -> Report {
        let sizes = EVENTS.map(|events| Size::new(events, load::long_instance(events, MESSAGES)));
        let sweep = Sweep::run::<FetchAgain>(bench, sizes.into()).await;
        let mut lines: Vec<Line> = EVENTS
            .iter()
            .enumerate()
            .map(|(size, &events)| {
                let goal =
                    if events == 10_000 { Goal::Ratio(1.5, Some(3.0)) } else { Goal::Ratio(1.0, None) };
                let what = format!(
                    "fetch of an instance with {} events and 1,000 messages: own cost",
                    number(events as f64)
                );
                Line::new(&format!("history-{events}"), &what, sweep.own(size), Unit::Milliseconds, goal)
            })
            .collect();
        let whole = "the same, the whole call with its result sent and read";
        lines.push(Line::new("history-10000-whole", whole, sweep.whole(2), Unit::Milliseconds, Goal::None));
        Report {
            lines,
            plots: vec![sweep.plot(
                "history",
                "Fetch of an instance with 1,000 messages",
                "events in its history",
            )],
        }
    }
}
