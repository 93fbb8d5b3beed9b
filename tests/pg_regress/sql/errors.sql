-- Every error that a client can meet: SQLSTATE, text and hint; and that nothing has changed after it.
\getenv here PG_ABS_SRCDIR
\set include :here '/include/errors.sql'
\i :include
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS duroxide_queue;
SELECT duroxide_queue.create_queue('errors');
SET search_path = errors;
\pset format unaligned
\pset tuples_only on
\pset null '<null>'
\set now 1000000000000

CREATE FUNCTION pg_temp.rows() RETURNS text
LANGUAGE sql AS $$
  SELECT md5(concat_ws(' ',
    (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM errors.instances t), (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM errors.executions t),
    (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM errors.history t), (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM errors.orchestrator_queue t),
    (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM errors.worker_queue t), (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM errors.instance_locks t),
    (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM errors.sessions t), (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM errors.kv_store t),
    (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM errors.kv_delta t), (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM errors.dead_letters t)))
$$;

-- A family, a leased instance under the token 'held', an expired one under 'late', and two work items likewise.
INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at, parent_instance_id)
VALUES ('root', 'O', 'epoch', 'epoch', NULL), ('child', 'O', 'epoch', 'epoch', 'root'), ('done', 'O', 'epoch', 'epoch', NULL);
INSERT INTO executions (instance_id, execution_id, status, started_at)
VALUES ('root', 1, 'Running', 'epoch'), ('child', 1, 'Completed', 'epoch'), ('done', 1, 'Completed', 'epoch');
INSERT INTO instance_locks VALUES ('held', 'held', :now + 600000, :now), ('late', 'late', :now - 1, :now - 1000);
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at, lock_token, locked_until, attempt_count)
VALUES ('held', '{"n": 1}', 'epoch', 'epoch', 'held', :now + 600000, 1), ('late', '{"n": 2}', 'epoch', 'epoch', 'late', :now - 1, 1);
INSERT INTO worker_queue (work_item, visible_at, created_at, lock_token, locked_until, attempt_count)
VALUES ('"held"', 'epoch', 'epoch', 'w-held', :now + 600000, 1), ('"late"', 'epoch', 'epoch', 'w-late', :now - 1, 1);
INSERT INTO history VALUES ('held', 1, 1, 'E', '{}', 'epoch');
SELECT pg_temp.rows() AS before \gset

-- A lease that is not there, has expired, or was never known.
SELECT token, pg_temp.error_of(format('SELECT ack_orchestration_item(%L, %s, 1, ''[]'', ''[]'', ''[]'', ''{}'')', token, :now))
FROM unnest(ARRAY['nobody', 'late', '', NULL]) AS token;
SELECT pg_temp.error_of('SELECT ack_orchestration_item(''held'', NULL, 1, ''[]'', ''[]'', ''[]'', ''{}'')');
SELECT pg_temp.error_of(format('SELECT ack_orchestration_item(''held'', %s + 600001, 1, ''[]'', ''[]'', ''[]'', ''{}'')', :now));
SELECT token, pg_temp.error_of(format('SELECT abandon_orchestration_item(%L, %s)', token, :now)) FROM unnest(ARRAY['nobody', NULL]) AS token;
SELECT token, pg_temp.error_of(format('SELECT renew_orchestration_item_lock(%L, %s, 30)', token, :now))
FROM unnest(ARRAY['nobody', 'late', NULL]) AS token;
SELECT pg_temp.error_of('SELECT renew_orchestration_item_lock(''held'', NULL, 30)');
SELECT token, pg_temp.error_of(format('SELECT ack_worker(%L, ''i'', ''{}'', %s)', token, :now))
FROM unnest(ARRAY['nobody', 'w-late', NULL]) AS token;
SELECT pg_temp.error_of('SELECT ack_worker(''nobody'')');
SELECT token, pg_temp.error_of(format('SELECT renew_work_item_lock(%L, %s, 30)', token, :now)) FROM unnest(ARRAY['nobody', 'w-late', NULL]) AS token;
SELECT token, pg_temp.error_of(format('SELECT abandon_work_item(%L, %s)', token, :now)) FROM unnest(ARRAY['nobody', NULL]) AS token;
SELECT 'unchanged', pg_temp.rows() = :'before';

-- A completion without what it is stored with; whether the item is there is told first.
SELECT pg_temp.error_of(format('SELECT ack_worker(''w-held'', NULL, ''{}'', %s)', :now));
SELECT pg_temp.error_of('SELECT ack_worker(''w-held'', ''i'', ''{}'', NULL)');
SELECT pg_temp.error_of('SELECT ack_worker(''nobody'', NULL, ''{}'', NULL)');

-- Instances.
SELECT pg_temp.error_of('SELECT get_parent_id(''nobody'')');
SELECT pg_temp.error_of('SELECT * FROM prune_executions(''nobody'')');
SELECT pg_temp.error_of('SELECT * FROM delete_instances_atomic(ARRAY[''done'', ''root'', ''child''], false)');
SELECT pg_temp.error_of('SELECT * FROM delete_instances_atomic(ARRAY[''done'', ''root''], true)');
SELECT 'unchanged', pg_temp.rows() = :'before';

-- What could never be delivered is refused at the door, with the argument's name.
CREATE TEMP TABLE bad (id serial, text text);
INSERT INTO bad (text) VALUES ('not json'), (''), (' '), ('{"a":1'), ('1,2'), ('{} {}'), ('"\u0000"'), ('{"a\u0000b": 1}'),
  ('"\ud800"'), ('"\udc00\ud800"'), ('"\ud83d\ud83d"'), ('1e200000'), ('[01]'), ('nul'), ('''a''');
SELECT text, pg_temp.error_of(format('SELECT enqueue_orchestrator_work(''i'', %L, now())', text)) FROM bad ORDER BY id;
SELECT text, pg_temp.error_of(format('SELECT ack_worker(''w-held'', ''i'', %L, %s)', text, :now)) FROM bad ORDER BY id;
SELECT text, pg_temp.error_of(format('SELECT append_history(''i'', 1, %L)', jsonb_build_array(jsonb_build_object('event_id', 1, 'event_type', 'E', 'event_data', text))))
FROM bad ORDER BY id;
SELECT text, pg_temp.error_of(format('SELECT ack_orchestration_item(''held'', %s, 1, %L, ''[{}]'', ''[{}]'', ''{"orchestration_name": "O", "orchestration_version": "1"}'')', :now,
  jsonb_build_array(jsonb_build_object('event_id', 7, 'event_type', 'E', 'event_data', '{}'), jsonb_build_object('event_id', 8, 'event_type', 'E', 'event_data', text))))
FROM bad ORDER BY id;
SELECT 'unchanged', pg_temp.rows() = :'before';
-- A work item is delivered as text, so the escapes that only jsonb cannot hold pass; what is no JSON does not.
SELECT text, pg_temp.error_of(format('SELECT enqueue_worker_work(%L, %s)', text, :now)) FROM bad ORDER BY id;
SELECT work_item FROM worker_queue WHERE lock_token IS NULL ORDER BY id;
DELETE FROM worker_queue WHERE lock_token IS NULL;
-- What looks odd and is fine.
SELECT text, pg_temp.error_of(format('SELECT enqueue_orchestrator_work(''fine'', %L, ''infinity'')', text))
FROM unnest(ARRAY['[1,2]', ' {} ', '"\ud83d\ude42"', 'null', '-0', '1e400', '"\\u0000"', '{"a":1,"a":2}']) AS text;
SELECT work_item FROM orchestrator_queue WHERE instance_id = 'fine' ORDER BY id;
DELETE FROM orchestrator_queue WHERE instance_id = 'fine';

-- Arguments of an ack that are of the wrong shape; events without what they are stored with.
SELECT part, pg_temp.error_of(format('SELECT ack_orchestration_item(''held'', %s, 1, %s)', :now, part)) FROM unnest(ARRAY[
  $$'{}', '[]', '[]', '{}'$$, $$'[]', '1', '[]', '{}'$$, $$'[]', '[]', '"a"', '{}'$$, $$'[]', '[]', '[]', '{}', '{}'$$,
  $$'[{"event_id": 2, "event_type": "E"}]', '[]', '[]', '{}'$$, $$'[{"event_id": 2, "event_data": "{}"}]', '[]', '[]', '{}'$$,
  $$'[{"event_type": "E", "event_data": "{}"}]', '[]', '[]', '{}'$$, $$'[{"event_id": "x", "event_type": "E", "event_data": "{}"}]', '[]', '[]', '{}'$$,
  $$'[{"event_id": 9223372036854775808, "event_type": "E", "event_data": "{}"}]', '[]', '[]', '{}'$$,
  $$'[{"event_id": 1, "event_type": "E", "event_data": "{}"}]', '[]', '[]', '{}'$$,
  $$'[]', '[]', '[{"TimerFired": {"instance": "i", "fire_at_ms": 9223372036854775807}}]', '{}'$$,
  $$'[]', '[]', '[{"StartOrchestration": {}}]', '{}'$$]) AS part;
SELECT pg_temp.error_of(format('SELECT append_history(''i'', 1, %L)', events)) FROM unnest(ARRAY[
  '[{"event_id": 0, "event_type": "E", "event_data": "{}"}]', '[{"event_id": -1, "event_type": "E", "event_data": "{}"}]', '[{"event_type": "E", "event_data": "{}"}]',
  '{}', '[{"event_id": 1, "event_type": "E"}]']) AS events;
SELECT 'unchanged', pg_temp.rows() = :'before';

-- A thousand errors in one session, and it goes on.
DO $$
BEGIN
  FOR i IN 1..1000 LOOP
    BEGIN
      PERFORM errors.ack_worker('nobody');
    EXCEPTION WHEN raise_exception THEN
    END;
  END LOOP;
END
$$;
BEGIN;
SAVEPOINT s;
SELECT ack_worker('nobody');
ROLLBACK TO s;
SELECT ack_orchestration_item('held', :now, 1, '[]', '[]', '[]', '{}');
COMMIT;
SELECT count(*) FROM instance_locks WHERE lock_token = 'held';
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
RESET search_path;
SELECT duroxide_queue.drop_queue('errors');
