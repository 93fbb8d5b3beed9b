//! What the demo and the client tests share: a server, a queue, a workflow; and ways to look at
//! what a statement came to and at what the catalog holds.

pub mod calls;
pub mod catalog;
pub mod database;
pub mod live_queue;
pub mod outcome;
pub mod own_server;
pub mod pooler;
pub mod programs;
pub mod queue;
pub mod server;
pub mod workflow;
