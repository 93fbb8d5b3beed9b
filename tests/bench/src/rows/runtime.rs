//! The real runtime: duroxide's own stress test (orchestrations that fan out to five activities of 10 ms, 20 at a time).

use super::Row;
use crate::bench::Bench;
use crate::line::{Goal, Line, Unit};
use crate::plot::{Plot, Point};
use crate::report::Report;
use crate::side::{Pair, Side};
use async_trait::async_trait;
use duroxide::provider_stress_tests::StressTestConfig;
use duroxide::provider_stress_tests::parallel_orchestrations::{
    ProviderStressFactory, run_parallel_orchestrations_test_with_config,
};
use duroxide::providers::Provider;
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::queue;
use duroxide_queue_tests::server;
use std::sync::Arc;

const DISPATCHERS: [usize; 3] = [1, 4, 16];
const ROUNDS: usize = 3;
const SECONDS: u64 = 6;

/// The row.
pub struct Runtime;

/// The client's own migrations find nothing to do on either side.
struct Client<'a> {
    schema: &'a str,
}

#[async_trait]
impl ProviderStressFactory for Client<'_> {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        Arc::new(queue::open(&server::url(), self.schema, MigrationPolicy::ApplyAll).await)
    }
}

#[async_trait(?Send)]
impl Row for Runtime {
    fn name(&self) -> &'static str {
        "runtime"
    }

    async fn run(&self, bench: &Bench) -> Report {
        let mut rates = Vec::new();
        for dispatchers in DISPATCHERS {
            let mut rounds = Pair { ours: Vec::new(), theirs: Vec::new() };
            for _ in 0..ROUNDS {
                bench.load(&[]).await;
                for side in Side::BOTH {
                    rounds.of_mut(side).push(orchestrations_per_second(bench, side, dispatchers).await);
                }
            }
            rates.push(rounds.medians());
        }
        report(&rates)
    }
}

async fn orchestrations_per_second(bench: &Bench, side: Side, dispatchers: usize) -> f64 {
    let config = StressTestConfig {
        duration_secs: SECONDS,
        orch_concurrency: dispatchers,
        worker_concurrency: dispatchers,
        ..StressTestConfig::default()
    };
    let client = Client { schema: bench.schema(side) };
    let result = run_parallel_orchestrations_test_with_config(&client, config)
        .await
        .unwrap_or_else(|error| panic!("duroxide's stress test on {side:?}: {error}"));
    assert_eq!(result.failed, 0, "orchestrations that failed on {side:?}");
    result.orch_throughput
}

fn report(rates: &[Pair<f64>]) -> Report {
    let lines = DISPATCHERS.iter().zip(rates).map(|(&dispatchers, &rates)| {
        let what =
            format!("real runtime, dispatchers: {dispatchers} (duroxide's stress test, orchestrations)");
        let goal = Goal::Ratio(if dispatchers == 16 { 1.5 } else { 1.0 }, None);
        Line::new(&format!("runtime-{dispatchers}"), &what, rates, Unit::PerSecond, goal)
    });
    let points = DISPATCHERS.iter().zip(rates).map(|(dispatchers, rates)| Point {
        label: dispatchers.to_string(),
        ours: Some(rates.ours),
        theirs: Some(rates.theirs),
    });
    Report {
        lines: lines.collect(),
        plots: vec![Plot {
            file: "runtime",
            title: "The real runtime in duroxide's stress test".to_owned(),
            x: "orchestration dispatchers, and as many workers".to_owned(),
            y: "orchestrations a second".to_owned(),
            points: points.collect(),
        }],
    }
}
