-- D8: ids are 64 bits wide from end to end, and where a sequence ends, what is queued already still flows.
\getenv here PG_ABS_SRCDIR
\set include :here '/include/errors.sql'
\i :include
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS duroxide_queue;
SELECT duroxide_queue.create_queue('ids');
SET search_path = ids;
\pset format unaligned
\pset tuples_only on
\pset null '<null>'
\set now 1000000000000
\set exact 9007199254740993
\set last 9223372036854775807
-- What is in both queues, and how many ids have been drawn.
CREATE VIEW queued AS
  SELECT 'message' AS kind, id, instance_id, execution_id, activity_id, work_item FROM (SELECT id, instance_id, NULL::bigint AS execution_id, NULL::bigint AS activity_id, work_item FROM orchestrator_queue) m
  UNION ALL SELECT 'work item', id, instance_id, execution_id, activity_id, work_item FROM worker_queue ORDER BY kind, id;
CREATE VIEW drawn AS SELECT o.last_value AS messages, w.last_value AS work_items FROM orchestrator_queue_id_seq o, worker_queue_id_seq w;

-- A cycle of both queues beyond 2^31, in order of id.
SELECT setval('orchestrator_queue_id_seq', 2999999998), setval('worker_queue_id_seq', 2999999998);
SELECT enqueue_orchestrator_work('i', '{"n": ' || n || '}', 'epoch') FROM generate_series(1, 3) n;
SELECT enqueue_worker_work('{"n": ' || n || '}', :now - 1, 'i', :exact, :last - n) FROM generate_series(1, 3) n;
SELECT * FROM queued;
SELECT out_lock_token AS token, out_messages AS messages FROM fetch_orchestration_item(:now, 60000) \gset
SELECT :'messages';
SELECT ack_orchestration_item(:'token', :now, :exact,
  '[{"event_id": 9007199254740993, "event_type": "E", "event_data": "1"}, {"event_id": 9223372036854775807, "event_type": "E", "event_data": "2"}]',
  '[{"ActivityExecute": {"instance": "i", "execution_id": 9007199254740993, "id": 9223372036854775807}}]', '[{"ExternalRaised": {"instance": "i"}}]',
  '{"orchestration_name": "O", "orchestration_version": "1", "status": "Running", "kv_mutations": [{"action": "set", "key": "k", "value": "v"}]}');
SELECT * FROM queued;
SELECT execution_id, event_id FROM history ORDER BY event_id;
SELECT out_execution_id, out_history, out_messages FROM fetch_orchestration_item(:now, 60000);
SELECT ack_orchestration_item(lock_token, :now, :last, '[{"event_id": 1, "event_type": "E", "event_data": "3"}]', '[]', '[]', '{"orchestration_name": "O", "orchestration_version": "1", "status": "Running"}',
  '[{"instance": "i", "execution_id": 9007199254740993, "activity_id": 9223372036854775807}]') FROM instance_locks;
SELECT latest_execution_id('i');
SELECT execution_id FROM executions ORDER BY 1;
SELECT * FROM queued;
SELECT f.out_work_item, ack_worker(f.out_lock_token, 'i', '{"n": "done"}', :now) FROM generate_series(1, 4) n, LATERAL fetch_work_item(:now + 0 * n, 60000) f;
SELECT * FROM queued;
SELECT count(*), bool_and(id > 3000000000) FROM orchestrator_queue;

-- Ids are drawn by what is queued, and by nothing else: not by fetches, with or without a result, not by turns that write rows again, nor by failures.
SELECT messages, work_items FROM drawn \gset
SELECT count(*) FROM generate_series(1, 5) n, LATERAL fetch_work_item(:now + 0 * n, 60000);
SELECT out_lock_token AS token FROM fetch_orchestration_item(:now, 60000) \gset
SELECT count(*) FROM generate_series(1, 5) n, LATERAL fetch_orchestration_item(:now + 0 * n, 60000);
SELECT pg_temp.error_of(format('SELECT ack_orchestration_item(''nobody'', %s, 1, ''[]'', ''[{}]'', ''[{"ExternalRaised": {"instance": "i"}}]'', ''{}'')', :now));
SELECT pg_temp.error_of(format('SELECT ack_worker(''nobody'', ''i'', ''{}'', %s)', :now));
SELECT renew_orchestration_item_lock(:'token', :now, 60);
SELECT ack_orchestration_item(:'token', :now, :last, '[]', '[]', '[]', '{"orchestration_name": "O", "orchestration_version": "1", "status": "Running", "kv_mutations": [{"action": "set", "key": "k", "value": "w"}]}');
SELECT drawn.messages - :messages AS messages, drawn.work_items - :work_items AS work_items FROM drawn;

-- The end: the last id is given, the next call is told so, and what is there goes on.
SELECT setval('orchestrator_queue_id_seq', :last, false), setval('worker_queue_id_seq', :last, false);
SELECT enqueue_orchestrator_work('end', '"last"', 'epoch'), enqueue_worker_work('"last"', :now - 1);
SELECT pg_temp.error_of('SELECT enqueue_orchestrator_work(''end'', ''"one more"'', ''epoch'')');
SELECT pg_temp.error_of(format('SELECT enqueue_worker_work(''"one more"'', %s)', :now));
SELECT * FROM queued;
SELECT out_lock_token AS token, out_messages AS messages FROM fetch_orchestration_item(:now, 60000) \gset
SELECT :'messages';
-- A turn or a worker that would send something fails whole, and can end without.
SELECT pg_temp.error_of(format('SELECT ack_orchestration_item(%L, %s, 1, ''[{"event_id": 1, "event_type": "E", "event_data": "1"}]'', ''[]'', ''[{"ExternalRaised": {"instance": "i"}}]'', ''{}'')', :'token', :now));
SELECT count(*) FROM history WHERE instance_id = 'end';
SELECT ack_orchestration_item(:'token', :now, 1, '[]', '[]', '[]', '{}');
SELECT out_lock_token AS token, out_work_item AS item FROM fetch_work_item(:now, 60000) \gset
SELECT :'item';
SELECT pg_temp.error_of(format('SELECT ack_worker(%L, ''end'', ''{}'', %s)', :'token', :now));
SELECT ack_worker(:'token');
SELECT count(*) FROM queued;
DROP VIEW queued, drawn;
RESET search_path;
SELECT duroxide_queue.drop_queue('ids');
