//! The rows of the table, one file each.

mod backlog;
mod claimers;
mod empty_poll;
mod first_call;
mod held_snapshot;
mod history;
mod large_ack;
mod leased;
mod runtime;
mod statistics;
mod turn;
mod waiting;
mod worker;

use crate::bench::Bench;
use crate::report::Report;
use async_trait::async_trait;

/// One row: a situation that is loaded, measured on both sides and reported.
#[async_trait(?Send)]
pub trait Row {
    /// The name to select it by.
    fn name(&self) -> &'static str;

    /// Loads, measures, reports.
    async fn run(&self, bench: &Bench) -> Report;
}

/// All rows, in the order of the table.
pub fn all() -> Vec<Box<dyn Row>> {
    vec![
        Box::new(turn::ONE_CLIENT),
        Box::new(turn::MANY_CLIENTS),
        Box::new(turn::SYNCHRONOUS),
        Box::new(leased::Leased),
        Box::new(waiting::Future),
        Box::new(waiting::OneInstance),
        Box::new(worker::Future),
        Box::new(worker::Leased),
        Box::new(history::History),
        Box::new(large_ack::LargeAck),
        Box::new(claimers::Claimers),
        Box::new(first_call::FirstCall),
        Box::new(statistics::Statistics),
        Box::new(held_snapshot::HeldSnapshot),
        Box::new(empty_poll::EmptyPoll),
        Box::new(runtime::Runtime),
        Box::new(backlog::Backlog),
    ]
}
