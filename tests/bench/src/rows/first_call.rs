//! 64 dispatchers that start at once, with 64 instances ready.

use super::Row;
use crate::bench::Bench;
use crate::calls::{self, FETCH};
use crate::line::{Goal, Line, Unit};
use crate::load;
use crate::report::Report;
use crate::side::{Pair, Side};
use async_trait::async_trait;
use std::sync::Arc;
use tokio::sync::Barrier;

const DISPATCHERS: u64 = 64;
const ROUNDS: usize = 5;

/// The row.
pub struct FirstCall;

#[async_trait(?Send)]
impl Row for FirstCall {
    fn name(&self) -> &'static str {
        "first-call"
    }

    async fn run(&self, bench: &Bench) -> Report {
        let mut fewest = Pair { ours: f64::INFINITY, theirs: f64::INFINITY };
        let mut slowest = Pair { ours: Vec::new(), theirs: Vec::new() };
        for _ in 0..ROUNDS {
            bench.load(&[load::ready(1..=DISPATCHERS)]).await;
            for side in Side::BOTH {
                let calls = start_at_once(bench, side).await;
                let served = calls.iter().filter(|(served, _)| *served).count() as f64;
                *fewest.of_mut(side) = fewest.of(side).min(served);
                slowest.of_mut(side).push(calls.iter().map(|(_, took)| *took).fold(0.0, f64::max));
            }
        }
        let served = "64 dispatchers started at once on 64 ready instances: served in their first call, worst of 5 rounds";
        let took = "the same: the slowest of the 64 first calls";
        Report {
            lines: vec![
                Line::new(
                    "first-call-served",
                    served,
                    fewest,
                    Unit::Count,
                    Goal::AtLeast(DISPATCHERS as f64),
                ),
                Line::new("first-call-slowest", took, slowest.medians(), Unit::Milliseconds, Goal::None),
            ],
            plots: Vec::new(),
        }
    }
}

/// Opens the sessions, then lets all make their first call: whether each got an instance, and what the call took.
async fn start_at_once(bench: &Bench, side: Side) -> Vec<(bool, f64)> {
    let barrier = Arc::new(Barrier::new(DISPATCHERS as usize));
    let mut tasks = Vec::new();
    for _ in 0..DISPATCHERS {
        let (mut session, barrier) = (bench.session(side).await, Arc::clone(&barrier));
        tasks.push(tokio::spawn(async move {
            barrier.wait().await;
            let answer = calls::fetch(&mut session, FETCH).await;
            (answer.row.is_some(), answer.took)
        }));
    }
    let mut calls = Vec::new();
    for task in tasks {
        calls.push(task.await.expect("a dispatcher"));
    }
    calls
}
