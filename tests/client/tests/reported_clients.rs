//! Reported failures of clients and poolers (group G of tests/README.md): calls of one lease from
//! many sessions, isolation levels, killed calls, errors from inside.

#[path = "claim_rules/dispatcher.rs"]
mod dispatcher;
#[path = "reported_clients/inner_errors.rs"]
mod inner_errors;
#[path = "reported_clients/isolation_levels.rs"]
mod isolation_levels;
#[path = "reported_clients/killed_calls.rs"]
mod killed_calls;
#[path = "reported_clients/pooled_sessions.rs"]
mod pooled_sessions;

use dispatcher::number;
use sqlx::postgres::PgConnection;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// Looks from another session, outside a transaction, until a backend waits for a lock.
async fn until_it_waits(watcher: &mut PgConnection, pid: i64) {
    let waits =
        format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type = 'Lock'");
    let limit = Instant::now() + PATIENCE;
    while number(watcher, &waits).await == 0 {
        assert!(Instant::now() < limit, "backend {pid} does not wait for a lock");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
