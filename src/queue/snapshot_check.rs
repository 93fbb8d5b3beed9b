//! Isolation levels above read committed, where a call sees the past.
//!
//! The snapshot of such a transaction can be older than the key of an instance: what others have committed in
//! between is there, and not seen. PostgreSQL notices a write to a row that has changed since (40001), but a claim need
//! not write any of those: an acknowledged turn changes the instance's own row, and a claim its lock row.

use crate::db::{Db, Planning, Statement, types::*};
use crate::error::{Error, Result};
use crate::pg::{probe, transaction};

/// Raises 40001 by itself for a row that has changed since the snapshot.
static LOCK_INSTANCE: Statement = Statement {
    text: "SELECT i.instance_id FROM {q}.instances i WHERE i.instance_id = $1 FOR UPDATE SKIP LOCKED",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

static LOCK_LEASE: Statement = Statement {
    text: "SELECT l.instance_id FROM {q}.instance_locks l WHERE l.instance_id = $1 FOR UPDATE SKIP LOCKED",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// Fails (40001) if the instance, whose key is held, or its lease has changed since the transaction's snapshot was taken.
pub(crate) fn require_current(db: &Db, instance_id: &[u8]) -> Result<()> {
    if !transaction::keeps_one_snapshot() {
        return Ok(());
    }
    for (table, lock) in [(c"instances", &LOCK_INSTANCE), (c"instance_locks", &LOCK_LEASE)] {
        let is_seen = db.query(lock, &[instance_id.into()]).len() > 0;
        if !is_seen && probe::exists(db.schema(), table, instance_id) {
            return Err(Error::OldSnapshot(instance_id.to_vec()));
        }
    }
    Ok(())
}
