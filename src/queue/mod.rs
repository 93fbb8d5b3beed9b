//! The operations on a queue: typed in, typed out, each with the SQL that it runs.

pub(crate) mod ack_turn;
pub(crate) mod ack_work_item;
pub(crate) mod claim_instance;
pub(crate) mod claim_work_item;
pub(crate) mod cleanup;
pub(crate) mod custom_status;
pub(crate) mod dead_letters;
pub(crate) mod deletion;
pub(crate) mod enqueue;
pub(crate) mod history;
pub(crate) mod inspect;
pub(crate) mod instance_lease;
pub(crate) mod kv;
pub(crate) mod metrics;
pub(crate) mod named_by;
pub(crate) mod pruning;
pub(crate) mod rounds;
pub(crate) mod scan_start;
pub(crate) mod sessions;
pub(crate) mod snapshot_check;
pub(crate) mod turn_input;
pub(crate) mod work_item_lease;

/// What a backend remembers of a queue from claim to claim, to spare work: a claim without it finds the same, or
/// what [`scan_start`] says is found a moment later.
#[derive(Default)]
pub(crate) struct Memories {
    pub(crate) messages: scan_start::Remembered,
    pub(crate) looks: rounds::Looks,
    pub(crate) work_items: scan_start::Remembered,
    pub(crate) tried: rounds::Tried,
    pub(crate) plain_claims: rounds::PlainClaims,
}
