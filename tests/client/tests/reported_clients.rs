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

use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
