//! What the demo and the client tests share: a server, a queue, a workflow.

pub mod queue;
pub mod server;
pub mod workflow;
