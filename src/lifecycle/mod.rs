//! How queues come to be and end: created, adopted, released, dropped; and who may use them.
//!
//! Every step runs with the caller's rights but one, the declaration of the C functions
//! (`functions`), and checks come before the first change.

mod adopt;
mod create;
mod dead_letters;
mod drop;
mod functions;
mod grant;
mod release;
mod schema;
mod standstill;

pub(crate) use adopt::adopt;
pub(crate) use create::create;
pub(crate) use dead_letters::{discard, redrive};
pub(crate) use drop::drop_queue;
pub(crate) use grant::{grant, revoke};
pub(crate) use release::release;
