//! What is ready and is not taken, or is taken again and again, and why.

use super::pass::{self, Observation};
use crate::clock;
use crate::error::{Error, Result};
use crate::pg::result_set::ResultSet;
use crate::pg::values::Timestamptz;

/// Each of the ways to a candidate goes along an index and ends after some thousands, so that what it
/// costs to look at a queue does not grow with what is wrong with it; then come the reasons, for the
/// first thousand. Locks of other sessions tell who is in the way: the key of an instance (as in
/// `pg::advisory`), and the transaction that a row's `xmax` names. Which versions a dispatcher runs is
/// not stored; but an instance that is pinned to one, and older than one that is claimed now, has been
/// passed over. `$4` is the time before which it must have become ready, `$5` the same in
/// milliseconds, `$6` the number of attempts.
static STUCK: Observation = Observation {
    text: "
WITH held AS MATERIALIZED (
  SELECT l.pid, l.transactionid, (l.classid::bigint << 32) | l.objid::bigint AS key
  FROM pg_locks l
  WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
    AND (l.locktype = 'transactionid'
         OR l.locktype = 'advisory' AND l.objsubid = 1
            AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
), messages AS (
  (SELECT q.id, q.instance_id, q.visible_at, q.created_at, q.attempt_count, q.lock_token, q.locked_until, q.xmax
   FROM ONLY {q}.orchestrator_queue q
   WHERE q.lock_token IS NULL AND q.visible_at <= LEAST($4, $1)
   ORDER BY q.visible_at, q.id LIMIT 10000)
  UNION
  (SELECT q.id, q.instance_id, q.visible_at, q.created_at, q.attempt_count, q.lock_token, q.locked_until, q.xmax
   FROM ONLY {q}.orchestrator_queue q
   WHERE q.lock_token IS NOT NULL AND q.locked_until <= LEAST($5, $2)
   ORDER BY q.locked_until, q.id LIMIT 10000)
  UNION
  (SELECT q.id, q.instance_id, q.visible_at, q.created_at, q.attempt_count, q.lock_token, q.locked_until, q.xmax
   FROM ONLY {q}.orchestrator_queue q
   WHERE q.lock_token IS NOT NULL AND (q.attempt_count >= $6 OR q.locked_until IS NULL)
   ORDER BY q.locked_until, q.id LIMIT 10000)
  UNION
  SELECT a.*
  FROM ((SELECT q.id, q.instance_id, q.visible_at, q.created_at, q.attempt_count, q.lock_token, q.locked_until, q.xmax
         FROM ONLY {q}.orchestrator_queue q
         WHERE q.lock_token IS NULL AND q.visible_at <= $1 ORDER BY q.visible_at, q.id LIMIT 1000)
        UNION ALL
        (SELECT q.id, q.instance_id, q.visible_at, q.created_at, q.attempt_count, q.lock_token, q.locked_until, q.xmax
         FROM ONLY {q}.orchestrator_queue q
         WHERE q.lock_token IS NULL AND q.visible_at <= $1 ORDER BY q.visible_at DESC, q.id DESC LIMIT 1000)
        UNION ALL
        (SELECT q.id, q.instance_id, q.visible_at, q.created_at, q.attempt_count, q.lock_token, q.locked_until, q.xmax
         FROM ONLY {q}.orchestrator_queue q
         WHERE q.lock_token IS NULL AND q.visible_at > $1 ORDER BY q.visible_at, q.id LIMIT 1000)) a
  WHERE a.attempt_count >= $6
), instances AS (
  SELECT m.instance_id, count(*) AS messages, min(m.since) AS since, max(m.attempt_count) AS attempts,
         (array_agg(m.id ORDER BY m.since, m.id))[1] AS id, bool_or(m.endless) AS endless, bool_or(m.expired) AS expired,
         array_agg(m.xmax) AS xmax
  FROM (SELECT m.id, m.instance_id, m.attempt_count, m.xmax,
               CASE WHEN m.lock_token IS NOT NULL AND m.locked_until <= $2
                    THEN timestamptz 'epoch' + GREATEST(m.locked_until, -62135596800000) * interval '1 ms'
                    WHEN isfinite(m.visible_at) THEN m.visible_at
                    WHEN isfinite(m.created_at) THEN m.created_at END AS since,
               m.lock_token IS NOT NULL AND m.locked_until IS NULL AS endless,
               m.lock_token IS NOT NULL AND (m.locked_until <= $2) IS TRUE AS expired
        FROM messages m) m
  GROUP BY m.instance_id
  ORDER BY min(m.since), m.instance_id
  LIMIT 1000
), items AS (
  (SELECT w.id, w.instance_id, w.visible_at, w.created_at, w.attempt_count, w.lock_token,
          w.locked_until, w.session_id, w.tag, w.xmax
   FROM ONLY {q}.worker_queue w
   WHERE w.lock_token IS NULL AND w.visible_at <= LEAST($4, $1)
   ORDER BY w.visible_at, w.id LIMIT 10000)
  UNION
  (SELECT w.id, w.instance_id, w.visible_at, w.created_at, w.attempt_count, w.lock_token,
          w.locked_until, w.session_id, w.tag, w.xmax
   FROM ONLY {q}.worker_queue w
   WHERE w.lock_token IS NOT NULL AND w.locked_until <= LEAST($5, $2)
   ORDER BY w.locked_until, w.id LIMIT 10000)
  UNION
  (SELECT w.id, w.instance_id, w.visible_at, w.created_at, w.attempt_count, w.lock_token,
          w.locked_until, w.session_id, w.tag, w.xmax
   FROM ONLY {q}.worker_queue w
   WHERE w.lock_token IS NOT NULL AND (w.attempt_count >= $6 OR w.locked_until IS NULL)
   ORDER BY w.locked_until, w.id LIMIT 10000)
  UNION
  SELECT a.*
  FROM ((SELECT w.id, w.instance_id, w.visible_at, w.created_at, w.attempt_count, w.lock_token,
                w.locked_until, w.session_id, w.tag, w.xmax
         FROM ONLY {q}.worker_queue w
         WHERE w.lock_token IS NULL AND w.visible_at <= $1
         ORDER BY w.visible_at, w.id LIMIT 1000)
        UNION ALL
        (SELECT w.id, w.instance_id, w.visible_at, w.created_at, w.attempt_count, w.lock_token,
                w.locked_until, w.session_id, w.tag, w.xmax
         FROM ONLY {q}.worker_queue w
         WHERE w.lock_token IS NULL AND w.visible_at <= $1
         ORDER BY w.visible_at DESC, w.id DESC LIMIT 1000)
        UNION ALL
        (SELECT w.id, w.instance_id, w.visible_at, w.created_at, w.attempt_count, w.lock_token,
                w.locked_until, w.session_id, w.tag, w.xmax
         FROM ONLY {q}.worker_queue w
         WHERE w.lock_token IS NULL AND w.visible_at > $1
         ORDER BY w.visible_at, w.id LIMIT 1000)) a
  WHERE a.attempt_count >= $6
)
SELECT {name}::name, s.kind, s.instance_id, s.id, s.messages, s.since,
       CASE WHEN s.since <= $1 THEN $1 - s.since END, s.attempts, s.reason, s.detail
FROM (
  SELECT 'orchestration' AS kind, i.instance_id, i.id, i.messages, i.since, i.attempts,
         CASE WHEN f.poison IS NOT NULL THEN 'poisoned'
              WHEN f.leased_until IS NOT NULL THEN 'leased'
              WHEN f.holder IS NOT NULL THEN 'contended'
              WHEN i.endless THEN 'endless lease'
              WHEN i.since > $1 THEN 'scheduled'
              WHEN f.version IS NOT NULL AND f.passed_over THEN 'version'
              WHEN i.expired THEN 'expired'
              ELSE 'unclaimed' END AS reason,
         CASE WHEN f.poison IS NOT NULL THEN CASE WHEN $3 THEN f.poison END
              WHEN f.leased_until IS NOT NULL
              THEN 'under a lease until ' || f.leased_until || coalesce('; process ' || f.holder || ' is at it', '')
              WHEN f.holder IS NOT NULL THEN 'process ' || f.holder || ' holds its key or one of its messages'
              WHEN i.endless THEN 'a lock token without an end of the lease'
              WHEN i.since > $1 THEN 'given back, to be visible later'
              WHEN f.version IS NOT NULL AND f.passed_over
              THEN 'pinned to duroxide ' || f.version || ', and passed over'
              WHEN i.expired THEN 'its holder let the lease run out'
              ELSE CASE WHEN f.passed_over THEN 'passed over: younger ones are claimed now'
                        ELSE 'nothing younger is claimed now' END
                   || coalesce('; pinned to duroxide ' || f.version, '') END AS detail
  FROM instances i
  CROSS JOIN LATERAL (
    SELECT coalesce(
             (SELECT p.why
              FROM (SELECT duroxide_queue.why_undeliverable(m.work_item) AS why
                    FROM (SELECT q.work_item FROM ONLY {q}.orchestrator_queue q
                          WHERE q.instance_id = i.instance_id AND octet_length(q.work_item) <= 65536 LIMIT 100) m) p
              WHERE p.why IS NOT NULL LIMIT 1),
             CASE WHEN i.attempts >= $6 THEN
               (SELECT 'event ' || p.event_id || ': ' || p.why
                FROM (SELECT h.event_id, duroxide_queue.why_undeliverable(h.event_data) AS why
                      FROM (SELECT h.event_id, h.event_data FROM ONLY {q}.history h
                            WHERE h.instance_id = i.instance_id
                              AND h.execution_id = (SELECT n.current_execution_id FROM ONLY {q}.instances n
                                                    WHERE n.instance_id = i.instance_id)
                              AND octet_length(h.event_data) <= 65536
                            ORDER BY h.event_id LIMIT 1000) h) p
                WHERE p.why IS NOT NULL LIMIT 1) END) AS poison,
           (SELECT timestamptz 'epoch' + LEAST(l.locked_until, 253402300799000) * interval '1 ms'
            FROM ONLY {q}.instance_locks l
            WHERE l.instance_id = i.instance_id AND l.locked_until > $2) AS leased_until,
           (SELECT min(h.pid) FROM held h
            WHERE h.transactionid = ANY (i.xmax)
               OR h.transactionid IS NULL AND h.key = hashtext({key} || i.instance_id)::bigint) AS holder,
           (SELECT concat_ws('.', e.duroxide_version_major, e.duroxide_version_minor, e.duroxide_version_patch)
            FROM ONLY {q}.instances n
            JOIN ONLY {q}.executions e ON e.instance_id = n.instance_id AND e.execution_id = n.current_execution_id
            WHERE n.instance_id = i.instance_id AND e.duroxide_version_major IS NOT NULL) AS version,
           (SELECT max(y.since)
            FROM (SELECT min(q.visible_at) AS since FROM ONLY {q}.orchestrator_queue q
                  WHERE q.lock_token IS NOT NULL AND q.locked_until > $2
                  GROUP BY q.instance_id) y) > i.since AS passed_over
    OFFSET 0) f
  UNION ALL
  SELECT 'work item', w.instance_id, w.id, 1, w.since, w.attempt_count,
         CASE WHEN f.poison IS NOT NULL THEN 'poisoned'
              WHEN w.leased THEN 'leased'
              WHEN f.holder IS NOT NULL THEN 'contended'
              WHEN w.endless THEN 'endless lease'
              WHEN w.since > $1 THEN 'scheduled'
              WHEN w.session_id IS NOT NULL THEN 'session'
              WHEN w.tag IS NOT NULL THEN 'tag'
              WHEN w.lock_token IS NOT NULL THEN 'expired'
              ELSE 'unclaimed' END,
         CASE WHEN f.poison IS NOT NULL THEN CASE WHEN $3 THEN f.poison END
              WHEN w.leased
              THEN 'under a lease until ' || timestamptz 'epoch' + LEAST(w.locked_until, 253402300799000) * interval '1 ms'
              WHEN f.holder IS NOT NULL THEN 'process ' || f.holder || ' holds it or the key of its session'
              WHEN w.endless THEN 'a lock token without an end of the lease'
              WHEN w.since > $1 THEN 'given back, to be visible later'
              WHEN w.session_id IS NOT NULL
              THEN coalesce('only worker ' || f.worker || ' may take it, which has session ',
                            'only a worker with sessions may take it, of session ') || w.session_id
                   || coalesce('; only for tag ' || w.tag, '')
              WHEN w.tag IS NOT NULL THEN 'only a worker that asks for tag ' || w.tag || ' may take it'
              WHEN w.lock_token IS NOT NULL THEN 'its holder let the lease run out' END
  FROM (SELECT w.*,
               CASE WHEN w.lock_token IS NOT NULL AND w.locked_until <= $2
                    THEN timestamptz 'epoch' + GREATEST(w.locked_until, -62135596800000) * interval '1 ms'
                    WHEN isfinite(w.visible_at) THEN w.visible_at
                    WHEN isfinite(w.created_at) THEN w.created_at END AS since,
               w.lock_token IS NOT NULL AND (w.locked_until > $2) IS TRUE AS leased,
               w.lock_token IS NOT NULL AND w.locked_until IS NULL AS endless
        FROM items w
        ORDER BY since, w.id
        LIMIT 1000) w
  CROSS JOIN LATERAL (
    SELECT CASE WHEN w.attempt_count >= $6 THEN
             (SELECT duroxide_queue.why_undeliverable(t.work_item) FROM ONLY {q}.worker_queue t
              WHERE t.id = w.id AND octet_length(t.work_item) <= 65536) END AS poison,
           (SELECT min(h.pid) FROM held h
            WHERE h.transactionid = w.xmax
               OR h.transactionid IS NULL AND h.key = hashtext({key} || 'session.' || w.session_id)::bigint) AS holder,
           (SELECT s.worker_id FROM ONLY {q}.sessions s
            WHERE s.session_id = w.session_id AND s.locked_until > $2) AS worker
    OFFSET 0) f) s
ORDER BY s.kind, s.since, s.id",
    problem: None,
};

/// What became ready before a time or was claimed at least so many times; scheduled work only for the latter.
pub(crate) fn stuck(
    result: &ResultSet,
    at: Timestamptz,
    ready_before: Timestamptz,
    attempts: i32,
) -> Result<()> {
    let ready_before_ms = clock::unix_ms(ready_before).ok_or(Error::NumberOutOfRange("ready_before"))?;
    pass::over_queues(result, &STUCK, at, &[ready_before.into(), ready_before_ms.into(), attempts.into()])
}
