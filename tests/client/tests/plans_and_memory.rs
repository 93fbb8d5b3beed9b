//! The rules of plans and memory (M1, M3 to M5): right after any DDL, no growth, polling is free, long calls can be cancelled.

#[path = "plans_and_memory/cancel.rs"]
mod cancel;
#[path = "claim_rules/dispatcher.rs"]
mod dispatcher;
#[path = "plans_and_memory/every_function.rs"]
mod every_function;
#[path = "plans_and_memory/memory.rs"]
mod memory;
#[path = "plans_and_memory/names.rs"]
mod names;
#[path = "plans_and_memory/plans.rs"]
mod plans;
#[path = "plans_and_memory/polling.rs"]
mod polling;
#[path = "plans_and_memory/standby.rs"]
mod standby;
