//! The rules of the claim (C1 to C8) and of its clock (L1 to L3), under many sessions and large queues.

#[path = "claim_rules/attempts.rs"]
mod attempts;
#[path = "claim_rules/contention.rs"]
mod contention;
#[path = "claim_rules/cost.rs"]
mod cost;
#[path = "claim_rules/dispatcher.rs"]
mod dispatcher;
#[path = "claim_rules/leases.rs"]
mod leases;
#[path = "claim_rules/metrics.rs"]
mod metrics;
#[path = "claim_rules/old_snapshot.rs"]
mod old_snapshot;
#[path = "claim_rules/once.rs"]
mod once;
#[path = "claim_rules/starvation.rs"]
mod starvation;
