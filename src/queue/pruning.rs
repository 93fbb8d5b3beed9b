//! Prunes old executions of an instance; never the current one, never one that runs.

use crate::clock::timestamptz;
use crate::db::{Db, Planning, Statement, types::*};
use crate::error::{Error, Result};
use crate::pg::values::Text;

/// What was pruned.
#[derive(Debug)]
pub(crate) struct Pruned {
    pub(crate) executions: i64,
    pub(crate) events: i64,
}

static CURRENT: Statement = Statement {
    text: "SELECT i.current_execution_id FROM {q}.instances i WHERE i.instance_id = $1",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// What is current is asked again: it may have changed while the statement waited to begin.
static PRUNE: Statement = Statement {
    text: "
WITH old AS (
  DELETE FROM {q}.executions e
  WHERE e.instance_id = $1 AND e.execution_id <> $2 AND e.status <> 'Running'
    AND e.execution_id IS DISTINCT FROM (SELECT i.current_execution_id FROM {q}.instances i WHERE i.instance_id = $1)
    AND ($4::timestamptz IS NULL OR e.completed_at < $4)
    AND ($3::integer IS NULL
         OR e.execution_id NOT IN (SELECT k.execution_id FROM {q}.executions k
                                   WHERE k.instance_id = $1
                                   ORDER BY k.execution_id DESC
                                   LIMIT $3))
  RETURNING e.execution_id
), events AS (
  DELETE FROM {q}.history h USING old
  WHERE h.instance_id = $1 AND h.execution_id = old.execution_id
  RETURNING 1
)
SELECT (SELECT pg_catalog.count(*) FROM old), (SELECT pg_catalog.count(*) FROM events)",
    parameters: &[TEXT, INT8, INT4, TIMESTAMPTZ],
    planning: Planning::ByIndex,
};

/// Deletes the executions before the last `keep_last` (the current one counts as one of them) that
/// were completed before `completed_before_ms`, with their history.
pub(crate) fn prune(
    db: &Db,
    instance: Option<Text>,
    keep_last: Option<i32>,
    completed_before_ms: Option<i64>,
) -> Result<Pruned> {
    let current =
        db.query(&CURRENT, &[instance.into()]).first().and_then(|row| row.int8(1)).ok_or_else(|| {
            Error::PruneInstanceNotFound(
                instance.map_or_else(|| b"<NULL>".to_vec(), |id| id.bytes().to_vec()),
            )
        })?;
    let before = completed_before_ms.map(timestamptz).transpose()?;
    let rows = db.query(&PRUNE, &[instance.into(), current.into(), keep_last.into(), before.into()]);
    let row = rows.first().expect("a query without FROM returns one row");
    Ok(Pruned { executions: row.int8(1).unwrap_or(0), events: row.int8(2).unwrap_or(0) })
}
