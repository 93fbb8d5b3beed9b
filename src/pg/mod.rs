//! The fence: every `unsafe` block and every use of `pg_sys` of this crate is below here.

pub(crate) mod advisory;
pub(crate) mod buffers;
pub(crate) mod commit_check;
pub(crate) mod encoding;
pub(crate) mod guc;
pub(crate) mod hidden_indexes;
pub(crate) mod identity;
pub(crate) mod json;
pub(crate) mod lock_timeout;
pub(crate) mod namespace;
pub(crate) mod planner;
pub(crate) mod probe;
pub(crate) mod relation_lock;
pub(crate) mod result_set;
pub(crate) mod server_clock;
pub(crate) mod spi;
pub(crate) mod subtransaction;
pub(crate) mod transaction;
pub(crate) mod values;
