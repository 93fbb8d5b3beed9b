//! The process that does the work: the unmodified duroxide runtime on the unmodified duroxide-pg.

use crate::{Failure, QUEUE};
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::workflow::{self, Pace};
use duroxide_queue_tests::{queue, server};
use std::sync::Arc;
use std::time::Duration;

/// What a runtime says when it begins to look for work.
pub const READY: &str = "looks for work";

/// How long a claim holds. An activity's would hold for 30 s: too long to watch it run out.
pub const LEASE: Duration = Duration::from_secs(3);

const PACE: Pace = Pace {
    charge: Duration::from_millis(2500),
    activity: Duration::from_millis(200),
    timer: Duration::from_secs(1),
};

/// What a runtime says when an activity's code begins to run.
pub fn runs(activity: &str) -> String {
    format!("runs activity {activity}")
}

/// Works until its standard input ends, which it does at the latest with the process that
/// started it.
pub async fn run(name: &str) -> Result<(), Failure> {
    server::quiet_logs();
    let provider = queue::open(&url_of(name), QUEUE, MigrationPolicy::VerifyOnly).await;
    let observer = |activity: &str| println!("{}", runs(activity));
    let runtime = Runtime::start_with_options(
        Arc::new(provider),
        workflow::activities(PACE, Arc::new(observer)),
        workflow::orchestrations(PACE),
        RuntimeOptions {
            dispatcher_min_poll_interval: Duration::from_millis(50),
            orchestrator_lock_timeout: LEASE,
            worker_lock_timeout: LEASE,
            ..RuntimeOptions::default()
        },
    )
    .await;
    println!("{READY}");

    tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await??;
    runtime.shutdown(None).await;
    Ok(())
}

/// The server's URL, with a name by which the server knows the sessions of this runtime.
fn url_of(name: &str) -> String {
    let url = server::url();
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}application_name={name}")
}
