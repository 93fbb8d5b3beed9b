-- D1: What got into a queue past its functions and could never be delivered stops nobody: it is put aside with its reason.
\getenv here PG_ABS_SRCDIR
\set include :here '/include/errors.sql'
\i :include
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS duroxide_queue;
SELECT duroxide_queue.create_queue('letters');
SET search_path = letters;
\pset format unaligned
\pset null '<null>'
\pset footer off
\set now 1000000000000

-- Older than any other work: rows that no function of the queue would have taken.
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at, attempt_count) VALUES
  ('none', 'not json', 'epoch', 'epoch', 3), ('empty', '', 'epoch', 'epoch', 0), ('nul', '{"a": "\u0000"}', 'epoch', 'epoch', 0),
  ('lone', '"\ud800"', 'epoch', 'epoch', 0), ('two', '1,2', 'epoch', 'epoch', 0), ('split', '[1', 'epoch', 'epoch', 0), ('split', '2]', 'epoch', 'epoch', 0),
  ('huge', '1e200000', 'epoch', 'epoch', 0), ('blank', E' \n', 'epoch', 'epoch', 0), ('deep', repeat('[', 100000), 'epoch', 'epoch', 0);
SELECT enqueue_orchestrator_work('good', '{"n": 1}', to_timestamp(1));
CREATE TEMP TABLE claimed AS SELECT * FROM fetch_orchestration_item(:now, 60000);
SELECT out_instance_id, out_messages, out_attempt_count FROM claimed;
SELECT instance_id, sqlstate, CASE sqlstate WHEN '54001' THEN 'stack depth' ELSE reason END AS reason, left(work_item, 20) AS work_item, attempt_count, visible_at = 'epoch' AS visible_at,
       created_at = 'epoch' AS created_at, extract(epoch FROM buried_at)::bigint - :now / 1000 BETWEEN 0 AND 10 AS buried_now
FROM dead_letters ORDER BY message_id;
SELECT instance_id, attempt_count FROM orchestrator_queue;
SELECT count(*) FROM instance_locks;
SELECT count(*) FROM fetch_orchestration_item(:now, 60000);

-- Within one instance the good messages are delivered, in their order, and the bad ones are not counted as claimed.
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES
  ('mixed', '{"n": 1}', 'epoch', 'epoch'), ('mixed', '{"n": 2', 'epoch', 'epoch'), ('mixed', '{"n": 3}', 'epoch', 'epoch'), ('mixed', '"\udc00"', 'epoch', 'epoch');
SELECT out_instance_id, out_messages, out_attempt_count FROM fetch_orchestration_item(:now, 60000);
SELECT instance_id, work_item FROM dead_letters WHERE instance_id = 'mixed' ORDER BY message_id;
SELECT instance_id, work_item, attempt_count FROM orchestrator_queue WHERE instance_id = 'mixed' ORDER BY id;

-- A claim that its caller takes back leaves the letters where they were.
TRUNCATE orchestrator_queue, instance_locks, dead_letters;
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES ('undone', 'not json', 'epoch', 'epoch');
BEGIN;
SELECT count(*) FROM fetch_orchestration_item(:now, 60000);
SELECT count(*) FROM dead_letters WHERE instance_id = 'undone';
ROLLBACK;
SELECT (SELECT count(*) FROM dead_letters WHERE instance_id = 'undone') AS buried, (SELECT count(*) FROM orchestrator_queue WHERE instance_id = 'undone') AS queued;
-- Nor does it matter what time the caller's clock tells.
SELECT enqueue_orchestrator_work('after', '{}', to_timestamp(1));
SELECT out_instance_id FROM fetch_orchestration_item(9224318016000000, 1000);
SELECT count(*) FROM dead_letters WHERE instance_id = 'undone';
TRUNCATE orchestrator_queue, instance_locks, dead_letters;
-- A letter that is not due yet waits as any message does.
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES ('later', 'not json', 'infinity', 'epoch');
SELECT count(*) FROM fetch_orchestration_item(:now, 60000);
SELECT instance_id FROM orchestrator_queue;
TRUNCATE orchestrator_queue, instance_locks, dead_letters;

-- A history with a bad event is delivered as an object that names it; the attempts count, and others flow on.
-- The client tells which key of a snapshot it cannot read, and of a history only that it is no list: so the key is the reason.
INSERT INTO instances (instance_id, orchestration_name, orchestration_version, created_at, updated_at) VALUES ('hist', 'O', '1', 'epoch', 'epoch');
INSERT INTO history VALUES ('hist', 1, 1, 'E', '{}', 'epoch'), ('hist', 1, 7, 'E', '{"text": "\u0000"}', 'epoch'), ('hist', 1, 8, 'E', 'nor this', 'epoch');
INSERT INTO kv_store VALUES ('hist', 'k', 'v', 1, 0);
SELECT enqueue_orchestrator_work('hist', '{"n": 1}', 'epoch'), enqueue_orchestrator_work('next', '{"n": 2}', to_timestamp(1));
SELECT out_instance_id, out_orchestration_name, out_execution_id, out_history, out_messages, out_attempt_count, out_kv_snapshot FROM fetch_orchestration_item(:now, 30000);
SELECT out_instance_id, out_history FROM fetch_orchestration_item(:now, 30000);
SELECT out_instance_id, out_history->'event_id' AS event_id, out_attempt_count FROM fetch_orchestration_item(:now + 120000, 30000) WHERE out_instance_id = 'hist';
UPDATE history SET event_data = '1, 2' WHERE event_id = 7;
SELECT out_history FROM fetch_orchestration_item(:now + 240000, 30000) WHERE out_instance_id = 'hist';
-- Once it is repaired, all is well.
DELETE FROM history WHERE event_id > 1;
SELECT out_history, out_attempt_count, out_kv_snapshot FROM fetch_orchestration_item(:now + 360000, 30000) WHERE out_instance_id = 'hist';
-- An instance of which nothing else is known.
TRUNCATE orchestrator_queue, instance_locks, instances;
INSERT INTO history VALUES ('orphan', 1, 1, 'E', '[', 'epoch');
SELECT enqueue_orchestrator_work('orphan', '{"ExternalRaised": {}}', 'epoch');
SELECT out_instance_id, out_orchestration_name, out_orchestration_version, out_execution_id, out_history FROM fetch_orchestration_item(:now, 30000);
-- Names as they come: an execution id that is no number hurts nobody.
TRUNCATE orchestrator_queue, instance_locks, history;
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES
  ('odd', '{"StartOrchestration": {"orchestration": 5, "version": null, "execution_id": "many"}}', 'epoch', 'epoch'),
  ('odder', '{"StartOrchestration": "?"}', 'epoch', 'epoch'), ('oddest', '[]', 'epoch', 'epoch'),
  ('big', '{"StartOrchestration": {"orchestration": "O", "execution_id": 99999999999999999999}}', 'epoch', 'epoch');
SELECT f.* FROM generate_series(1, 5) g, LATERAL (SELECT out_instance_id, out_orchestration_name, out_orchestration_version, out_execution_id FROM fetch_orchestration_item(:now + 0 * g, 60000)) f;

-- Readers show what is there; the one that must look into an event says what is wrong with it, and only for this instance.
INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at) VALUES ('hist', 'O', 'epoch', 'epoch');
INSERT INTO history VALUES ('hist', 1, 1, 'E', 'no event', 'epoch');
SELECT * FROM fetch_history('hist');
\pset tuples_only on
SELECT pg_temp.error_of('SELECT * FROM get_instance_stats(''hist'')');

-- A work item is text: whatever it is, it is delivered as it is.
INSERT INTO worker_queue (work_item, visible_at, created_at) VALUES ('not json', 'epoch', 'epoch'), ('"\u0000"', 'epoch', 'epoch'), ('', 'epoch', 'epoch');
SELECT f.out_work_item FROM generate_series(1, 3) g, LATERAL fetch_work_item(:now + 0 * g, 60000) f;

-- A client without rights on the letters puts them aside all the same.
CREATE ROLE regress_dq_client;
SELECT duroxide_queue.grant_client('letters', 'regress_dq_client');
TRUNCATE orchestrator_queue, instance_locks, dead_letters;
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES ('bad', '}', 'epoch', 'epoch'), ('fine', '{}', to_timestamp(1), 'epoch');
SET ROLE regress_dq_client;
SELECT out_instance_id FROM fetch_orchestration_item(:now, 60000);
SELECT pg_temp.error_of('SELECT * FROM dead_letters');
RESET ROLE;
SELECT instance_id, work_item, reason FROM dead_letters;
SELECT duroxide_queue.revoke_client('letters', 'regress_dq_client');
DROP ROLE regress_dq_client;
RESET search_path;
SELECT duroxide_queue.drop_queue('letters');
