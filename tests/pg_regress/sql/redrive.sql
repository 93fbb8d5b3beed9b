-- A dead letter is put back where it was once its text is repaired, or removed for good.
\getenv here PG_ABS_SRCDIR
\set include :here '/include/errors.sql'
\i :include
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS duroxide_queue;
SELECT duroxide_queue.create_queue('Lost & Found');
SET search_path = "Lost & Found";
\pset format unaligned
\pset tuples_only on
\pset null '<null>'

INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at, attempt_count)
VALUES ('a', '{"n": 1', 'epoch', 'epoch', 2), ('a', '{"n": 2}', 'epoch', 'epoch', 0), ('b', 'not json', to_timestamp(5000), 'epoch', 0);
SELECT out_instance_id, out_messages FROM fetch_orchestration_item(10000000, 60000);
SELECT count(*) FROM fetch_orchestration_item(10000000, 60000);
SELECT id, message_id, instance_id, work_item, attempt_count FROM dead_letters ORDER BY id;

-- Not before it can be delivered, not one that is not there, not by just anybody.
SELECT pg_temp.error_of('SELECT duroxide_queue.redrive(''Lost & Found'', 1)');
SELECT pg_temp.error_of('SELECT duroxide_queue.redrive(''Lost & Found'', 7)');
SELECT pg_temp.error_of('SELECT duroxide_queue.discard(''Lost & Found'', 7)');
SELECT pg_temp.error_of('SELECT duroxide_queue.redrive(''Lost & Found'', NULL)');
SELECT pg_temp.error_of('SELECT duroxide_queue.discard(NULL, 1)');
SELECT pg_temp.error_of('SELECT duroxide_queue.redrive(''public'', 1)');
SELECT pg_temp.error_of('SELECT duroxide_queue.discard(''missing'', 1)');
CREATE ROLE regress_dq_finder;
SELECT duroxide_queue.grant_client('Lost & Found', 'regress_dq_finder');
SET ROLE regress_dq_finder;
SELECT pg_temp.error_of('SELECT duroxide_queue.discard(''Lost & Found'', 1)');
RESET ROLE;
SELECT duroxide_queue.revoke_client('Lost & Found', 'regress_dq_finder');
DROP ROLE regress_dq_finder;
SELECT count(*) FROM dead_letters;

-- Repaired, it comes in its old place and with its old count, at the next turn of its instance.
UPDATE dead_letters SET work_item = '{"n": 1}' WHERE id = 1;
SELECT duroxide_queue.redrive('Lost & Found', 1);
SELECT pg_temp.error_of('SELECT duroxide_queue.redrive(''Lost & Found'', 1)');
SELECT id, instance_id, work_item, attempt_count, lock_token IS NULL AS free, visible_at = 'epoch' AS visible_at FROM orchestrator_queue WHERE work_item LIKE '%1%';
SELECT count(*) FROM fetch_orchestration_item(10000000, 60000);
SELECT out_instance_id, out_messages, out_attempt_count FROM fetch_orchestration_item(20000000, 60000);
SELECT duroxide_queue.discard('Lost & Found', 2);
SELECT count(*) FROM dead_letters;
RESET search_path;
SELECT duroxide_queue.drop_queue('Lost & Found');
