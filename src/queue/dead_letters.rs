//! Where messages go that can never be delivered: a table beside the queue, with the reason.

use crate::clock::timestamptz;
use crate::db::{Db, Planning, Statement, types::*};
use crate::error::Result;
use crate::pg::json::Refusal;

static BURY: Statement = Statement {
    text: "
WITH gone AS (
  DELETE FROM {q}.orchestrator_queue q WHERE q.id = $1
  RETURNING q.instance_id, q.work_item, q.visible_at, q.created_at, q.attempt_count
)
INSERT INTO {q}.dead_letters
  (message_id, instance_id, work_item, visible_at, created_at, attempt_count, buried_at, sqlstate, reason)
SELECT $1, gone.instance_id, gone.work_item, gone.visible_at, gone.created_at, gone.attempt_count, $2, $3, $4
FROM gone",
    parameters: &[INT8, TIMESTAMPTZ, TEXT, TEXT],
    planning: Planning::ByIndex,
};

/// Moves messages out of the queue in the caller's transaction. Their rows are locked by it.
pub(crate) fn bury_messages(db: &Db, now_ms: i64, messages: &[(i64, Refusal)]) -> Result<()> {
    for (id, refusal) in messages {
        db.query(
            &BURY,
            &[
                (*id).into(),
                timestamptz(now_ms)?.into(),
                refusal.sqlstate().as_bytes().into(),
                refusal.message.as_bytes().into(),
            ],
        );
    }
    Ok(())
}
