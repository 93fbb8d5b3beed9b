//! What the views of `sql/views.sql` show of the rows in queues: over all queues that the reader may
//! see, waiting for nobody, stopped by no queue that is broken.

mod health;
mod leases;
mod pass;
mod registries;
mod stuck;

pub(crate) use health::health;
pub(crate) use leases::leases;
pub(crate) use registries::registries;
pub(crate) use stuck::stuck;
