//! How the messages and the work items of each queue stand.

use super::pass::{self, Observation};
use crate::error::Result;
use crate::pg::result_set::ResultSet;
use crate::pg::values::Timestamptz;

/// Counts go by the indexes of the claim, without a look at the table where its visibility map allows.
/// Messages behind a lease are counted instance by instance and taken off the visible ones, since the
/// index of these does not know instances. No index knows attempts, so those of the unclaimed are
/// looked for where a message that was given back is to be found: at the head, where one without a
/// delay stays; at the tail, where one with a delay comes when it is due; and next to come.
static HEALTH: Observation = Observation {
    text: "
WITH counted AS (
  SELECT c.oid, c.relname,
         GREATEST(pg_stat_get_db_stat_reset_time((SELECT d.oid FROM pg_database d WHERE d.datname = current_database())),
                  (SELECT min(m.applied_at) FROM ONLY {q}._duroxide_migrations m WHERE isfinite(m.applied_at))) AS since
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = {name} AND c.relname IN ('orchestrator_queue', 'worker_queue')
)
SELECT {name}::name, h.kind, h.visible - h.waiting, h.waiting, h.scheduled, h.leased, h.expired,
       $1 - LEAST(h.first_ready,
                  CASE WHEN h.first_expired_ms IS NOT NULL
                       THEN timestamptz 'epoch' + GREATEST(h.first_expired_ms, -62135596800000) * interval '1 ms' END),
       h.attempts, h.dead, pg_stat_get_tuples_inserted(s.oid), pg_stat_get_tuples_deleted(s.oid),
       CASE WHEN s.since < $1
            THEN pg_stat_get_tuples_deleted(s.oid) / extract(epoch FROM $1 - s.since)::double precision END,
       s.since, NULL::text
FROM (
  SELECT 'orchestration' AS kind, 'orchestrator_queue'::name AS relname,
         (SELECT count(*) FROM ONLY {q}.orchestrator_queue q
          WHERE q.lock_token IS NULL AND q.visible_at <= $1) AS visible,
         (SELECT coalesce(sum((SELECT count(*) FROM ONLY {q}.orchestrator_queue q
                               WHERE q.instance_id = l.instance_id AND (q.lock_token IS NULL) IS TRUE
                                 AND (q.visible_at <= $1) IS TRUE)), 0)::bigint
          FROM ONLY {q}.instance_locks l WHERE l.locked_until > $2) AS waiting,
         (SELECT count(*) FROM ONLY {q}.orchestrator_queue q
          WHERE q.lock_token IS NULL AND q.visible_at > $1) AS scheduled,
         (SELECT count(*) FROM ONLY {q}.orchestrator_queue q
          WHERE q.lock_token IS NOT NULL AND q.locked_until > $2)
         + (SELECT count(*) FROM ONLY {q}.orchestrator_queue q
            WHERE q.lock_token IS NOT NULL AND q.locked_until IS NULL) AS leased,
         (SELECT count(*) FROM ONLY {q}.orchestrator_queue q
          WHERE q.lock_token IS NOT NULL AND q.locked_until <= $2) AS expired,
         (SELECT CASE WHEN isfinite(q.visible_at) THEN q.visible_at WHEN isfinite(q.created_at) THEN q.created_at END
          FROM ONLY {q}.orchestrator_queue q
          WHERE q.lock_token IS NULL AND q.visible_at <= $1
            AND (SELECT l.locked_until > $2 FROM ONLY {q}.instance_locks l
                 WHERE l.instance_id = q.instance_id) IS NOT TRUE
          ORDER BY q.visible_at, q.id LIMIT 1) AS first_ready,
         (SELECT q.locked_until FROM ONLY {q}.orchestrator_queue q
          WHERE q.lock_token IS NOT NULL AND q.locked_until <= $2
          ORDER BY q.locked_until, q.id LIMIT 1) AS first_expired_ms,
         GREATEST((SELECT max(q.attempt_count) FROM ONLY {q}.orchestrator_queue q WHERE q.lock_token IS NOT NULL),
                  (SELECT max(a.attempt_count)
                   FROM (SELECT q.attempt_count FROM ONLY {q}.orchestrator_queue q
                         WHERE q.lock_token IS NULL AND q.visible_at <= $1
                         ORDER BY q.visible_at, q.id LIMIT 1000) a),
                  (SELECT max(a.attempt_count)
                   FROM (SELECT q.attempt_count FROM ONLY {q}.orchestrator_queue q
                         WHERE q.lock_token IS NULL AND q.visible_at <= $1
                         ORDER BY q.visible_at DESC, q.id DESC LIMIT 1000) a),
                  (SELECT max(a.attempt_count)
                   FROM (SELECT q.attempt_count FROM ONLY {q}.orchestrator_queue q
                         WHERE q.lock_token IS NULL AND q.visible_at > $1
                         ORDER BY q.visible_at, q.id LIMIT 1000) a)) AS attempts,
         (SELECT count(*) FROM ONLY {q}.dead_letters) AS dead
  UNION ALL
  SELECT 'work item', 'worker_queue',
         (SELECT count(*) FROM ONLY {q}.worker_queue w WHERE w.lock_token IS NULL AND w.visible_at <= $1),
         0,
         (SELECT count(*) FROM ONLY {q}.worker_queue w WHERE w.lock_token IS NULL AND w.visible_at > $1),
         (SELECT count(*) FROM ONLY {q}.worker_queue w WHERE w.lock_token IS NOT NULL AND w.locked_until > $2)
         + (SELECT count(*) FROM ONLY {q}.worker_queue w WHERE w.lock_token IS NOT NULL AND w.locked_until IS NULL),
         (SELECT count(*) FROM ONLY {q}.worker_queue w WHERE w.lock_token IS NOT NULL AND w.locked_until <= $2),
         (SELECT CASE WHEN isfinite(w.visible_at) THEN w.visible_at WHEN isfinite(w.created_at) THEN w.created_at END
          FROM ONLY {q}.worker_queue w
          WHERE w.lock_token IS NULL AND w.visible_at <= $1
          ORDER BY w.visible_at, w.id LIMIT 1),
         (SELECT w.locked_until FROM ONLY {q}.worker_queue w
          WHERE w.lock_token IS NOT NULL AND w.locked_until <= $2
          ORDER BY w.locked_until, w.id LIMIT 1),
         GREATEST((SELECT max(w.attempt_count) FROM ONLY {q}.worker_queue w WHERE w.lock_token IS NOT NULL),
                  (SELECT max(a.attempt_count)
                   FROM (SELECT w.attempt_count FROM ONLY {q}.worker_queue w
                         WHERE w.lock_token IS NULL AND w.visible_at <= $1
                         ORDER BY w.visible_at, w.id LIMIT 1000) a),
                  (SELECT max(a.attempt_count)
                   FROM (SELECT w.attempt_count FROM ONLY {q}.worker_queue w
                         WHERE w.lock_token IS NULL AND w.visible_at <= $1
                         ORDER BY w.visible_at DESC, w.id DESC LIMIT 1000) a),
                  (SELECT max(a.attempt_count)
                   FROM (SELECT w.attempt_count FROM ONLY {q}.worker_queue w
                         WHERE w.lock_token IS NULL AND w.visible_at > $1
                         ORDER BY w.visible_at, w.id LIMIT 1000) a)),
         0) h
JOIN counted s USING (relname)
WHERE $3 IS NOT NULL",
    problem: Some(
        c"SELECT $1::name, k.kind, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::interval,
       NULL::integer, NULL::bigint, NULL::bigint, NULL::bigint, NULL::double precision, NULL::timestamptz, $2
FROM (VALUES ('orchestration'), ('work item')) k (kind)",
    ),
};

/// Two rows a queue, also of one that cannot be read.
pub(crate) fn health(result: &ResultSet, at: Timestamptz) -> Result<()> {
    pass::over_queues(result, &HEALTH, at, &[])
}
