//! Who holds what, since when and until when.

use super::pass::{self, Observation};
use crate::error::Result;
use crate::pg::result_set::ResultSet;
use crate::pg::values::Timestamptz;

/// A lease may end at any bigint of milliseconds; what timestamptz and interval cannot hold, or nobody
/// can read, is shown as the first or the last second of four-digit years.
static LEASES: Observation = Observation {
    text: "
SELECT {name}::name, l.kind, l.instance_id, l.work_item_id, CASE WHEN $3 THEN l.lock_token END,
       l.claimed_at, l.ends_at, l.ends_at - $1, l.attempt
FROM (
  SELECT 'orchestration' AS kind, l.instance_id, NULL::bigint AS work_item_id, l.lock_token,
         timestamptz 'epoch' + LEAST(GREATEST(l.locked_at, -62135596800000), 253402300799000) * interval '1 ms' AS claimed_at,
         timestamptz 'epoch' + LEAST(GREATEST(l.locked_until, -62135596800000), 253402300799000) * interval '1 ms' AS ends_at,
         (SELECT max(q.attempt_count) FROM ONLY {q}.orchestrator_queue q
          WHERE q.instance_id = l.instance_id AND (q.lock_token = l.lock_token) IS TRUE) AS attempt
  FROM ONLY {q}.instance_locks l
  UNION ALL
  SELECT 'work item', w.instance_id, w.id, w.lock_token, NULL,
         CASE WHEN w.locked_until IS NOT NULL
              THEN timestamptz 'epoch' + LEAST(GREATEST(w.locked_until, -62135596800000), 253402300799000) * interval '1 ms' END,
         w.attempt_count
  FROM ONLY {q}.worker_queue w
  WHERE w.lock_token IS NOT NULL) l
WHERE $2 IS NOT NULL",
    problem: None,
};

/// One row a lease, the dead ones included.
pub(crate) fn leases(result: &ResultSet, at: Timestamptz) -> Result<()> {
    pass::over_queues(result, &LEASES, at, &[])
}
