//! Reported failures that have no better place: tests named for their case in tests/README.md.

#[path = "reported/clocks.rs"]
mod clocks;
#[path = "reported/deadlocks.rs"]
mod deadlocks;
#[path = "claim_rules/dispatcher.rs"]
mod dispatcher;
#[path = "reported/due.rs"]
mod due;
#[path = "reported/encodings.rs"]
mod encodings;
#[path = "reported/head_of_queue.rs"]
mod head_of_queue;
#[path = "reported/ids.rs"]
mod ids;
#[path = "reported/json.rs"]
mod json;
#[path = "reported/snapshots.rs"]
mod snapshots;
#[path = "reported/undecodable.rs"]
mod undecodable;
