-- What the views show of a queue: its health, its leases, what is stuck and why, its bloat. Times are arguments.
\getenv here PG_ABS_SRCDIR
\set include :here '/include/errors.sql'
\i :include
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS duroxide_queue;
SET TimeZone = 'UTC';
SET IntervalStyle = 'postgres';
\pset null '<null>'
\pset footer off
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = 'duroxide_queue'::regnamespace AND c.relkind = 'v' AND c.relname <> 'queues' AND a.attnum > 0
ORDER BY c.relname, a.attnum;

-- No queue, no row.
SELECT * FROM duroxide_queue.queue_health;
SELECT * FROM duroxide_queue.leases;
SELECT * FROM duroxide_queue.stuck;
SELECT * FROM duroxide_queue.bloat;

SELECT duroxide_queue.create_queue('seen');
SET search_path = seen;
-- The clock stands at noon; the queue was made before, so that a rate can be told.
\set noon '''2030-01-01 12:00+00'''
\set noon_ms '1893499200000'
ALTER TABLE orchestrator_queue SET (autovacuum_enabled = off);
UPDATE _duroxide_migrations SET applied_at = '2030-01-01 10:00+00';
SELECT queue, kind, ready, waiting, scheduled, leased, expired, oldest_claimable_age, highest_attempt, dead_letters, problem
FROM duroxide_queue.list_queue_health(:noon);

-- Two ready, one for the future, one parked for good.
SELECT enqueue_orchestrator_work('ready', '{}', timestamptz :noon - interval '7 minutes'),
       enqueue_orchestrator_work('fresh', '{}', timestamptz :noon - interval '1 second'),
       enqueue_orchestrator_work('timer', '{}', timestamptz :noon + interval '1 day'),
       enqueue_orchestrator_work('parked', '{}', 'infinity');
SELECT enqueue_worker_work('{"plain": 1}', :noon_ms - 600000),
       enqueue_worker_work('{"later": 1}', :noon_ms + 600000),
       enqueue_worker_work('{"session": 1}', :noon_ms - 500000, 'ready', 1, 1, 's1', NULL),
       enqueue_worker_work('{"tag": 1}', :noon_ms - 400000, 'ready', 1, 2, NULL, 'gpu');
SELECT queue, kind, ready, waiting, scheduled, leased, expired, oldest_claimable_age, highest_attempt, dead_letters, problem
FROM duroxide_queue.list_queue_health(:noon);
SELECT kind, instance_id, id, messages, ready_since, age, highest_attempt, reason, detail
FROM duroxide_queue.stuck(at => :noon);
-- Nothing is ready before it is visible.
SELECT kind, ready, scheduled, oldest_claimable_age FROM duroxide_queue.list_queue_health('2020-01-01 00:00+00');
SELECT * FROM duroxide_queue.stuck('0', 5, '2020-01-01 00:00+00');

-- A lease that lasts, with a message that waits behind it; one that is over.
SELECT out_instance_id, out_attempt_count FROM fetch_orchestration_item(:noon_ms - 360000, 1000000);
SELECT enqueue_orchestrator_work('ready', '{}', timestamptz :noon - interval '6 minutes');
SELECT out_instance_id, out_attempt_count FROM fetch_orchestration_item(:noon_ms, 1000);
SELECT out_work_item, out_attempt_count FROM fetch_work_item(:noon_ms - 400000, 100000);
SELECT out_work_item, out_attempt_count FROM fetch_work_item(:noon_ms, 600000, 'worker', 700000, NULL, 'any');
-- Leases are counted from when they are written; without the milliseconds of that, the figures are the same each time.
UPDATE instance_locks SET locked_until = locked_until / 1000 * 1000, locked_at = locked_at / 1000 * 1000;
UPDATE orchestrator_queue SET locked_until = locked_until / 1000 * 1000;
UPDATE worker_queue SET locked_until = locked_until / 1000 * 1000;
SELECT queue, kind, ready, waiting, scheduled, leased, expired, oldest_claimable_age, highest_attempt, dead_letters, problem
FROM duroxide_queue.list_queue_health(timestamptz :noon + interval '1 minute');
SELECT queue, kind, instance_id, work_item_id, left(lock_token, 5) AS lock_token, date_trunc('second', claimed_at) AS claimed_at,
       date_trunc('second', ends_at) AS ends_at, date_trunc('second', time_left) AS time_left, attempt
FROM duroxide_queue.list_leases(timestamptz :noon + interval '1 minute') ORDER BY kind, instance_id, work_item_id;
SELECT kind, instance_id, id, messages, date_trunc('second', ready_since) AS ready_since, reason, left(detail, 39) AS detail
FROM duroxide_queue.stuck('30 seconds', 5, timestamptz :noon + interval '1 minute');

-- Attempts count wherever a message is; what was given back with a delay is not ready yet.
UPDATE orchestrator_queue SET attempt_count = 7 WHERE instance_id = 'timer';
UPDATE worker_queue SET attempt_count = 9 WHERE tag = 'gpu';
SELECT kind, highest_attempt FROM duroxide_queue.list_queue_health(:noon);
SELECT kind, instance_id, age, highest_attempt, reason, detail FROM duroxide_queue.stuck('1 year', 7, :noon);

-- An instance pinned to a version that nobody runs, passed over while a younger one is claimed.
INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at) VALUES ('pinned', 'O', now(), now());
INSERT INTO executions VALUES ('pinned', 1, 'Running', NULL, now(), NULL, 9, 8, 7);
SELECT enqueue_orchestrator_work('pinned', '{}', timestamptz :noon - interval '9 minutes');
SELECT instance_id, reason, detail FROM duroxide_queue.stuck('8 minutes', 100, :noon) WHERE kind = 'orchestration';

-- Poisoned: a message that is no JSON, and a history with an event that is none. A lock without an end.
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES
  ('bad message', 'no json', timestamptz :noon - interval '1 hour', now());
INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at) VALUES ('bad history', 'O', now(), now());
INSERT INTO history VALUES ('bad history', 1, 1, 'E', '{}', now()), ('bad history', 1, 2, 'E', '"\u0000"', now());
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at, attempt_count) VALUES
  ('bad history', '{}', timestamptz :noon - interval '1 hour', now(), 20);
INSERT INTO worker_queue (work_item, visible_at, created_at, lock_token, attempt_count) VALUES
  ('{}', timestamptz :noon - interval '1 hour', now(), 'for ever', 1);
SELECT kind, instance_id, highest_attempt, reason, detail FROM duroxide_queue.stuck('30 minutes', 20, :noon);
SELECT t AS text, duroxide_queue.why_undeliverable(t) FROM (VALUES ('{}'), ('"\u0000"'), ('1,2'), (''), (NULL)) v (t);

-- Any number may stand in a lease, and any time in a message.
TRUNCATE orchestrator_queue, worker_queue, instance_locks;
INSERT INTO instance_locks VALUES ('never', 'a', 9223372036854775807, -9223372036854775808), ('ever', 'b', -9223372036854775808, 0);
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at, lock_token, locked_until, attempt_count) VALUES
  ('never', '{}', '-infinity', '-infinity', 'a', 9223372036854775807, 2147483647), ('ever', '{}', '-infinity', '-infinity', 'b', -9223372036854775808, 1),
  ('old', '{}', '-infinity', '2030-01-01 11:00+00', NULL, NULL, 0), ('older', '{}', '4713-01-01 00:00+00 BC', 'infinity', NULL, NULL, 0);
INSERT INTO worker_queue (work_item, visible_at, created_at, lock_token, locked_until, attempt_count) VALUES
  ('{}', '-infinity', 'infinity', 'c', -9223372036854775808, 0), ('{}', 'infinity', 'infinity', 'd', 9223372036854775807, 0);
SELECT kind, ready, waiting, scheduled, leased, expired, oldest_claimable_age, highest_attempt FROM duroxide_queue.list_queue_health(:noon);
SELECT kind, instance_id, claimed_at, ends_at, attempt FROM duroxide_queue.list_leases(:noon) ORDER BY ends_at, kind;
SELECT kind, instance_id, ready_since, highest_attempt, reason FROM duroxide_queue.stuck('0', 100, :noon) ORDER BY kind, ready_since;
SELECT pg_temp.error_of($$SELECT * FROM duroxide_queue.list_queue_health(NULL)$$);
SELECT pg_temp.error_of($$SELECT * FROM duroxide_queue.list_leases('infinity')$$);
SELECT pg_temp.error_of($$SELECT * FROM duroxide_queue.stuck(NULL)$$);
SELECT pg_temp.error_of($$SELECT * FROM duroxide_queue.stuck('1 minute', NULL)$$);
SELECT pg_temp.error_of($$SELECT * FROM duroxide_queue.stuck('178000000 years')$$);

-- Dead letters, and turnover, which the statistics have once a transaction is over.
TRUNCATE orchestrator_queue, worker_queue, instance_locks;
SELECT pg_stat_force_next_flush();
SELECT pg_stat_reset_single_table_counters('orchestrator_queue'::regclass), pg_stat_reset_single_table_counters('worker_queue'::regclass);
INSERT INTO dead_letters (message_id, instance_id, work_item, visible_at, created_at, attempt_count, buried_at, sqlstate, reason)
VALUES (1, 'i', 'x', now(), now(), 1, now(), '22P02', 'x');
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) SELECT 'i', '{}', :noon, now() FROM generate_series(1, 7200);
DELETE FROM orchestrator_queue WHERE id % 2 = 0;
SELECT pg_stat_force_next_flush();
SELECT kind, dead_letters, enqueued_total, removed_total, removed_per_second, counted_since FROM duroxide_queue.list_queue_health(:noon);

-- Bloat says for each table what is dead, and who keeps it so: here nobody but ourselves.
SELECT pg_stat_force_next_flush();
SELECT queue, table_name, live_rows, dead_rows FROM duroxide_queue.bloat ORDER BY table_name::text COLLATE "C";

-- Queues that cannot be read say so and are in nobody's way.
SELECT duroxide_queue.create_queue('broken');
ALTER TABLE broken.instance_locks RENAME TO gone;
SELECT queue, kind, ready, problem FROM duroxide_queue.queue_health ORDER BY queue, kind;
CREATE VIEW broken.instance_locks AS SELECT * FROM broken.gone;
SELECT DISTINCT problem FROM duroxide_queue.queue_health WHERE queue = 'broken';
DROP VIEW broken.instance_locks;
ALTER TABLE broken.gone RENAME TO instance_locks;
ALTER TABLE broken.worker_queue ALTER attempt_count TYPE bigint;
SELECT DISTINCT problem FROM duroxide_queue.queue_health WHERE queue = 'broken';
ALTER TABLE broken.worker_queue ALTER attempt_count TYPE integer;
ALTER TABLE broken.sessions ENABLE ROW LEVEL SECURITY;
SELECT DISTINCT problem FROM duroxide_queue.queue_health WHERE queue = 'broken';
ALTER TABLE broken.sessions DISABLE ROW LEVEL SECURITY;
CREATE FUNCTION broken.f(bigint) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT $1';
CREATE INDEX by_f ON broken.history (broken.f(event_id));
SELECT DISTINCT problem FROM duroxide_queue.queue_health WHERE queue = 'broken';
DROP INDEX broken.by_f;
CREATE STATISTICS broken.s ON (broken.f(event_id)) FROM broken.history;
SELECT DISTINCT problem FROM duroxide_queue.queue_health WHERE queue = 'broken';
DROP STATISTICS broken.s;
-- Whoever owns the schema may rename it under a reader who looks with the rights of the tables' owner.
CREATE ROLE regress_dq_schema_owner;
ALTER SCHEMA broken OWNER TO regress_dq_schema_owner;
SELECT DISTINCT problem FROM duroxide_queue.queue_health WHERE queue = 'broken';
ALTER SCHEMA broken OWNER TO CURRENT_USER;
-- An owner who was only given CREATE on a superuser's schema, or on public, is none of that.
GRANT CREATE, USAGE ON SCHEMA public TO regress_dq_schema_owner;
CREATE SCHEMA given;
GRANT CREATE, USAGE ON SCHEMA given TO regress_dq_schema_owner;
SET ROLE regress_dq_schema_owner;
SELECT duroxide_queue.create_queue('given'), duroxide_queue.create_queue('public');
SELECT queue, kind, ready, problem FROM duroxide_queue.queue_health WHERE queue <> 'seen' ORDER BY queue, kind;
SELECT duroxide_queue.drop_queue('given'), duroxide_queue.drop_queue('public');
RESET ROLE;
DROP SCHEMA given;
REVOKE ALL ON SCHEMA public FROM regress_dq_schema_owner;
DROP ROLE regress_dq_schema_owner;
-- An index of PostgreSQL's own functions is no problem, nor is one that is gone: that only takes longer.
CREATE INDEX by_lower ON broken.history (lower(instance_id));
DROP INDEX broken.orchestrator_queue_ready_idx, broken.worker_queue_leased_idx;
SELECT DISTINCT problem FROM duroxide_queue.queue_health WHERE queue = 'broken';
SELECT queue, kind, ready FROM duroxide_queue.list_queue_health(:noon) WHERE queue = 'seen' ORDER BY kind;

RESET search_path;
SELECT duroxide_queue.drop_queue('seen');
DROP SCHEMA broken CASCADE;
DROP SCHEMA IF EXISTS seen CASCADE;
