//! The real runtime with a backlog: how fast it works off what has been started before it is.

use super::Row;
use crate::bench::Bench;
use crate::line::{Goal, Line, Unit};
use crate::report::Report;
use crate::side::{Pair, Side};
use async_trait::async_trait;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::{queue, server};
use std::sync::Arc;
use std::time::{Duration, Instant};

const DISPATCHERS: usize = 16;
const ORCHESTRATIONS: usize = 600;
const ACTIVITIES: usize = 5;
const ACTIVITY: Duration = Duration::from_millis(10);
const ROUNDS: usize = 3;
/// How often it is asked whether all are done.
const EVERY: Duration = Duration::from_millis(50);

/// The row.
pub struct Backlog;

#[async_trait(?Send)]
impl Row for Backlog {
    fn name(&self) -> &'static str {
        "backlog"
    }

    async fn run(&self, bench: &Bench) -> Report {
        let mut rates = Pair { ours: Vec::new(), theirs: Vec::new() };
        for _ in 0..ROUNDS {
            bench.load(&[]).await;
            for side in Side::BOTH {
                rates.of_mut(side).push(orchestrations_per_second(bench, side).await);
            }
        }
        let what = format!(
            "real runtime, {DISPATCHERS} dispatchers, {ORCHESTRATIONS} orchestrations of the same kind started before it"
        );
        Line::new("runtime-backlog", &what, rates.medians(), Unit::PerSecond, Goal::None).into()
    }
}

async fn orchestrations_per_second(bench: &Bench, side: Side) -> f64 {
    let provider = Arc::new(queue::open(&server::url(), bench.schema(side), MigrationPolicy::ApplyAll).await);
    let client = Client::new(provider.clone());
    for number in 0..ORCHESTRATIONS {
        client.start_orchestration(format!("order-{number}"), "FanOut", "").await.expect("start");
    }
    let options = RuntimeOptions {
        orchestration_concurrency: DISPATCHERS,
        worker_concurrency: DISPATCHERS,
        ..RuntimeOptions::default()
    };
    let mut session = bench.session(side).await;
    let begin = Instant::now();
    let runtime = Runtime::start_with_options(provider, activities(), orchestrations(), options).await;
    let done = "SELECT count(*) FROM executions WHERE status = 'Completed'";
    while must(&mut session, done).await[0][0] != Some(ORCHESTRATIONS.to_string()) {
        tokio::time::sleep(EVERY).await;
    }
    let took = begin.elapsed();
    runtime.shutdown(None).await;
    ORCHESTRATIONS as f64 / took.as_secs_f64()
}

fn activities() -> ActivityRegistry {
    let step = |_: ActivityContext, input: String| async move {
        tokio::time::sleep(ACTIVITY).await;
        Ok(input)
    };
    ActivityRegistry::builder().register("step", step).build()
}

fn orchestrations() -> OrchestrationRegistry {
    let fan_out = |ctx: OrchestrationContext, _: String| async move {
        let steps = (0..ACTIVITIES).map(|step| ctx.schedule_activity("step", step.to_string())).collect();
        let results = ctx.join(steps).await;
        results.into_iter().collect::<Result<Vec<String>, String>>().map(|results| results.join(","))
    };
    OrchestrationRegistry::builder().register("FanOut", fan_out).build()
}
