//! The lease protocol, checked in every interleaving at small size: at most one turn commits per
//! claim, no message is lost, and none is consumed twice.
//!
//! The model is of `src/queue` and `src/pg` as they run on PostgreSQL under READ COMMITTED, with no
//! server: sessions whose clients' clocks disagree make calls, a call is a transaction, and each of
//! its statements a step with a snapshot, row locks and the instance's key. In between come ticks
//! of the clock, messages that are being enqueued, commits and aborts, and in some fleets a stranger
//! who writes leases under no key of ours. What it leaves out: work items and sessions, whose
//! protocol is one row each; messages that are buried; transactions of more than one call; and
//! other isolation levels, where PostgreSQL itself refuses what has changed since the snapshot.
//!
//! | model | implementation |
//! |---|---|
//! | `calls::claim` | src/queue/claim_instance.rs, turn_input.rs; src/pg/probe.rs |
//! | `calls::ack` | src/queue/ack_turn.rs; src/pg/commit_check.rs |
//! | `calls::abandon`, `calls::renew` | src/queue/instance_lease.rs |
//! | `calls::delete` | src/queue/deletion.rs |
//! | `Action::Enqueue` and its end | src/queue/enqueue.rs |
//! | `State::keys` | src/pg/advisory.rs |
//! | `Action::Tick`, `Caller::now` | src/clock.rs |
//! | `row` | PostgreSQL |
//! | `calls::steal` | fetch_orchestration_item of duroxide-pg, as a stranger |
//!
//! `src/queue/scan_start.rs` and `rounds.rs` decide only in which order candidates are tried.
//!
//! The tests: `fleets` checks that everything in `properties` holds, and says how many states that
//! takes; `taken_out` takes out each guard and names the property that is broken then; `strangers`
//! is about sessions that keep to row locks only.

mod calls;
mod check;
mod fleet;
mod guards;
mod properties;
mod protocol;
mod row;
mod sets;
mod state;

mod fleets;
mod strangers;
mod taken_out;
