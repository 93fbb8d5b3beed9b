//! Where messages go that can never be delivered: a table beside the queue, with the reason.

use crate::clock::visible_until;
use crate::db::{Db, Planning, Statement, types::*};
use crate::error::Result;
use crate::pg::encoding;
use crate::pg::json::Refusal;
use crate::pg::lock_timeout;

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

static MAY_BURY: Statement = Statement {
    text: "
SELECT pg_catalog.has_table_privilege(d.letters, 'INSERT') AND NOT pg_catalog.row_security_active(d.letters)
FROM (SELECT pg_catalog.to_regclass({dead_letters}) AS letters OFFSET 0) d",
    parameters: &[],
    planning: Planning::ByIndex,
};

/// Moves messages out of the queue in the caller's transaction. Their rows are locked by it. A caller
/// who may not write dead letters leaves the messages where they are: passed over at each claim, but
/// in nobody's way.
pub(crate) fn bury_messages(db: &Db, now_ms: i64, messages: &[(i64, Refusal)]) -> Result<()> {
    let may_bury = || db.query(&MAY_BURY, &[]).first().and_then(|row| row.bool(1)) == Some(true);
    if messages.is_empty() || !may_bury() {
        return Ok(());
    }
    let tables = [c"orchestrator_queue", c"dead_letters"];
    for (id, refusal) in messages {
        let reason = encoding::sendable(refusal.shown().into());
        lock_timeout::at_least_a_second(db.schema(), &tables, || {
            db.query(
                &BURY,
                &[
                    (*id).into(),
                    visible_until(now_ms).into(),
                    refusal.sqlstate().as_bytes().into(),
                    reason.as_bytes().into(),
                ],
            )
        });
    }
    Ok(())
}
