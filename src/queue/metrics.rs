//! Counts over a whole queue.

use crate::clock::visible_until;
use crate::db::{Db, Planning, Statement, types::*};
use crate::pg::result_set::ResultSet;

static DEPTHS: Statement = Statement {
    text: "
SELECT (SELECT pg_catalog.count(*) FROM {q}.orchestrator_queue q
        WHERE q.visible_at <= $1 AND (q.lock_token IS NULL OR q.locked_until <= $2)),
       (SELECT pg_catalog.count(*) FROM {q}.worker_queue w
        WHERE w.visible_at <= $1 AND (w.lock_token IS NULL OR w.locked_until <= $2))",
    parameters: &[TIMESTAMPTZ, INT8],
    planning: Planning::ByStatistics,
};

/// Messages and work items that are visible and not under a live lease.
pub(crate) fn depths(db: &Db, result: &ResultSet, now_ms: Option<i64>) {
    db.query_into(result, &DEPTHS, &[now_ms.map(visible_until).into(), now_ms.into()]);
}

static SYSTEM: Statement = Statement {
    text: "
SELECT (SELECT pg_catalog.count(*) FROM {q}.instances),
       (SELECT pg_catalog.count(*) FROM {q}.executions),
       s.running, s.completed, s.failed,
       (SELECT pg_catalog.count(*) FROM {q}.history)
FROM (SELECT pg_catalog.count(*) FILTER (WHERE e.status = 'Running') AS running,
             pg_catalog.count(*) FILTER (WHERE e.status = 'Completed') AS completed,
             pg_catalog.count(*) FILTER (WHERE e.status = 'Failed') AS failed
      FROM {q}.instances i
      JOIN {q}.executions e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id) s",
    parameters: &[],
    planning: Planning::ByStatistics,
};

/// Instances, executions, running, completed and failed instances, events.
pub(crate) fn system(db: &Db, result: &ResultSet) {
    db.query_into(result, &SYSTEM, &[]);
}
