-- Arguments at their limits: NULL in each place, times and leases that overflow, infinite times, ids of every kind.
\getenv here PG_ABS_SRCDIR
\set include :here '/include/errors.sql'
\i :include
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS duroxide_queue;
SELECT duroxide_queue.create_queue('args');
SET search_path = args;
\pset format unaligned
\pset tuples_only on
\pset null '<null>'
\set now 1000000000000

-- A running instance that is leased under 'held', another that waits; a work item leased under 'w-held', another that waits.
INSERT INTO instances (instance_id, orchestration_name, current_execution_id, created_at, updated_at) VALUES ('i', 'O', 2, 'epoch', 'epoch');
INSERT INTO executions (instance_id, execution_id, status, started_at) VALUES ('i', 1, 'Completed', 'epoch'), ('i', 2, 'Running', 'epoch');
INSERT INTO history VALUES ('i', 1, 1, 'E', '{}', 'epoch'), ('i', 2, 1, 'E', '{}', 'epoch');
INSERT INTO kv_store VALUES ('i', 'k', 'v', 1, 0);
INSERT INTO instance_locks VALUES ('i', 'held', :now + 600000, :now);
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at, lock_token, locked_until, attempt_count)
VALUES ('i', '{"n": 1}', 'epoch', 'epoch', 'held', :now + 600000, 1), ('j', '{"n": 2}', 'epoch', 'epoch', NULL, NULL, 0);
INSERT INTO worker_queue (work_item, visible_at, created_at, lock_token, locked_until, attempt_count)
VALUES ('"held"', 'epoch', 'epoch', 'w-held', :now + 600000, 1), ('"free"', 'epoch', 'epoch', NULL, NULL, 0);
INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at, parent_instance_id) VALUES ('parent', 'O', 'epoch', 'epoch', NULL), ('child', 'O', 'epoch', 'epoch', 'parent');
INSERT INTO sessions VALUES ('s', 'w', :now + 600000, :now);

-- D6: Every function with each of its arguments NULL in turn; what a call did is undone after it was seen.
CREATE TEMP TABLE good (argument text, value text);
INSERT INTO good VALUES
  ('p_lock_token', '''held'''), ('p_now_ms', '1000000000000'), ('p_delay_ms', '1000'), ('p_ignore_attempt', 'true'), ('p_execution_id', '1'),
  ('p_history_delta', '''[]'''), ('p_worker_items', '''[]'''), ('p_orchestrator_items', '''[]'''), ('p_metadata', '''{}'''), ('p_cancelled_activities', '''[]'''),
  ('p_instance_id', '''i'''), ('p_completion_json', '''{}'''), ('p_events', '''[]'''), ('p_instance_ids', 'ARRAY[''i'']'), ('p_force', 'true'),
  ('p_work_item', '''{}'''), ('p_visible_at', '''epoch'''), ('p_orchestration_name', '''O'''), ('p_orchestration_version', '''1'''), ('p_activity_id', '1'),
  ('p_session_id', '''s'''), ('p_tag', '''t'''), ('p_lock_timeout_ms', '1000'), ('p_min_version_packed', '0'), ('p_max_version_packed', '10000000'),
  ('p_owner_id', '''w'''), ('p_session_lock_timeout_ms', '1000'), ('p_tag_filter', 'ARRAY[''t'']'), ('p_tag_mode', '''any'''), ('p_last_seen_version', '-1'),
  ('p_instance', '''i'''), ('p_key', '''k'''), ('p_keep_last', '1'), ('p_completed_before_ms', '1000000000000'), ('p_extend_secs', '30'),
  ('p_owner_ids', 'ARRAY[''w'']'), ('p_extend_ms', '1000'), ('p_idle_timeout_ms', '1000000000'), ('p_status', '''Running''');
CREATE FUNCTION pg_temp.outcome(statement text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  result text;
  state text;
  message text;
BEGIN
  EXECUTE 'SELECT count(*) || '' row: '' || coalesce(string_agg(regexp_replace(r::text, ''lock_[0-9a-f-]+'', ''lock_...''), '' ''), '''') FROM (' || statement || ') r'
    INTO result;
  RAISE EXCEPTION SQLSTATE 'UNDO1';
EXCEPTION
  WHEN SQLSTATE 'UNDO1' THEN
    RETURN result;
  WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
    RETURN state || ': ' || message;
END
$$;
CREATE TEMP VIEW calls AS
SELECT p.proname::text AS function, n.place, n.argument,
       format('SELECT * FROM args.%I(%s)', p.proname,
              (SELECT string_agg(format('%s => %s', a.argument,
                        CASE WHEN a.place = n.place THEN 'NULL'
                             WHEN a.argument = 'p_lock_token' AND p.proname ~ 'work' THEN '''w-held'''
                             ELSE g.value END), ', ' ORDER BY a.place)
               FROM unnest(p.proargnames[:p.pronargs]) WITH ORDINALITY AS a (argument, place)
               LEFT JOIN good g USING (argument))) AS statement
FROM pg_proc p, LATERAL (SELECT 0 AS place, 'nothing' AS argument
                         UNION ALL SELECT place, argument FROM unnest(p.proargnames[:p.pronargs]) WITH ORDINALITY AS u (argument, place)) AS n
WHERE p.pronamespace = 'args'::regnamespace AND p.pronargs > 0;
SELECT count(*), count(DISTINCT function) FROM calls;
SELECT function || ', NULL: ' || argument || ' -> ' || pg_temp.outcome(statement) FROM calls ORDER BY function COLLATE "C", place;
SELECT pg_temp.outcome('SELECT * FROM args.get_system_metrics()');

-- D6: NULLs inside arrays match nothing and hurt nobody; neither do arrays of other shapes.
SELECT call || ' -> ' || pg_temp.outcome('SELECT * FROM args.' || call) FROM unnest(ARRAY[
  'fetch_work_item(1000000000000, 1000, ''w'', 1000, ARRAY[NULL, ''gpu''], ''tags'')',
  'fetch_work_item(1000000000000, 1000, ''w'', 1000, ARRAY[NULL, ''gpu''], ''default_and'')',
  'fetch_work_item(1000000000000, 1000, ''w'', 1000, ''{}'', ''tags'')',
  'fetch_work_item(1000000000000, 1000, ''w'', 1000, ''{}'', ''default_and'')',
  'fetch_work_item(1000000000000, 1000, ''w'', 1000, ''{{gpu,a},{b,c}}'', ''default_and'')',
  'fetch_work_item(1000000000000, 1000, ''w'', 1000, NULL, ''any'')',
  'fetch_work_item(1000000000000, 1000, ''w'', 1000, NULL, ''surprise'')',
  'delete_instances_atomic(ARRAY[NULL, ''i''], true)',
  'delete_instances_atomic(ARRAY[NULL]::text[], true)',
  'delete_instances_atomic(''{}'', true)',
  'delete_instances_atomic(''{{i,j},{k,l}}'', true)',
  'delete_instances_atomic(''{{i,j},{parent,child}}'', true)',
  'delete_instances_atomic(''{{i,j},{k,parent}}'', true)',
  'delete_instances_atomic(ARRAY[''i'', ''i''], true)',
  'renew_session_lock(ARRAY[NULL, ''w''], 1000000000000, 1000, 1000000)',
  'renew_session_lock(''{}'', 1000000000000, 1000, 1000000)',
  'enqueue_worker_work(p_now_ms => 5, p_work_item => ''{}'', p_tag => ''t'')',
  'ack_worker(''w-held'', p_now_ms => 1000000000000)']) AS call;

-- Times and leases that do not fit are errors, never wrapped around.
SELECT call || ' -> ' || pg_temp.outcome('SELECT * FROM args.' || call) FROM unnest(ARRAY[
  'fetch_orchestration_item(9223372036854775807, 1000)', 'fetch_orchestration_item(-9223372036854775808, 1000)',
  'fetch_orchestration_item(1000000000000, 9223372036854775807)',
  'fetch_work_item(9223372036854775807, 1000)', 'fetch_work_item(-9223372036854775808, 1000)',
  'fetch_work_item(1000000000000, 9223372036854775807)',
  'renew_orchestration_item_lock(''held'', 1000000000000, 9223372036854775807)',
  'renew_orchestration_item_lock(''held'', 1000000000000, 9223372036854775)',
  'renew_orchestration_item_lock(''held'', 1000000000000, -9223372036854775807)',
  'renew_work_item_lock(''w-held'', 1000000000000, 9223372036854775807)',
  'renew_work_item_lock(''w-held'', 1000000000000, 9223372036854775)',
  'renew_session_lock(ARRAY[''w''], 1000000000000, 9223372036854775807, 1000000)',
  'renew_session_lock(ARRAY[''w''], 1000000000000, 1000, -9223372036854775808)',
  'abandon_orchestration_item(''held'', 1000000000000, 9223372036854775807)',
  'abandon_orchestration_item(''held'', 9223372036854775807, 1)',
  'abandon_orchestration_item(''held'', 9223372036854775807)',
  'abandon_work_item(''w-held'', 1000000000000, 9223372036854775807)', 'abandon_work_item(''w-held'', 9223372036854775807)',
  'enqueue_worker_work(''{}'', 9223372036854775807)', 'enqueue_worker_work(''{}'', -9223372036854775808)',
  'enqueue_worker_work(''{}'', 9224318016000000)', 'enqueue_worker_work(''{}'', -210866803200001)',
  'ack_worker(''w-held'', ''i'', ''{}'', -9223372036854775808)',
  'ack_orchestration_item(''held'', -9223372036854775808, 1, ''[]'', ''[]'', ''[]'', ''{}'')',
  'prune_executions(''i'', 1, 9223372036854775807)', 'prune_executions(''i'', 1, -9223372036854775808)',
  'get_queue_depths(9223372036854775807)', 'get_queue_depths(-9223372036854775808)',
  'cleanup_orphaned_sessions(9223372036854775807)', 'get_custom_status(''i'', -9223372036854775808)',
  'prune_executions(''i'', -1)', 'prune_executions(''i'', 0)']) AS call;

-- Leases of no length or less are over at once; ids are 64 bits wide.
BEGIN;
SELECT out_instance_id FROM fetch_orchestration_item(:now, 0);
SELECT out_instance_id, out_attempt_count FROM fetch_orchestration_item(:now + 10000, -5000);
SELECT out_instance_id, out_attempt_count FROM fetch_orchestration_item(:now + 10000, 9007199254740993);
SELECT locked_until - :now BETWEEN 9007199254750993 AND 9007199254760993 FROM instance_locks WHERE instance_id = 'j';
SELECT ack_orchestration_item('held', :now, 9223372036854775807, '[{"event_id": 9007199254740993, "event_type": "E", "event_data": "{}"}]', '[]', '[]', '{}');
SELECT execution_id, event_id FROM history ORDER BY 1;
SELECT setval('worker_queue_id_seq', 3000000000), setval('orchestrator_queue_id_seq', 9223372036854775806);
SELECT enqueue_worker_work('"big"', :now - 1, 'i', 9007199254740993, 9223372036854775807);
SELECT id, execution_id, activity_id FROM worker_queue WHERE work_item = '"big"';
SELECT enqueue_orchestrator_work('last', '{}', 'epoch');
SELECT pg_temp.error_of('SELECT enqueue_orchestrator_work(''one too many'', ''{}'', ''epoch'')');
SELECT out_instance_id FROM fetch_orchestration_item(:now, 1000);
ROLLBACK;
SELECT setval('worker_queue_id_seq', 1000), setval('orchestrator_queue_id_seq', 1000);

-- D5: Infinite times: never due, due at once, refused; the millisecond is exact, whatever the session's time zone and style.
DELETE FROM orchestrator_queue;
DELETE FROM instance_locks;
SET timezone = 'Pacific/Auckland';
SET datestyle = 'SQL, DMY';
DELETE FROM worker_queue;
SELECT enqueue_orchestrator_work('never', '{}', 'infinity'), enqueue_orchestrator_work('always', '{}', '-infinity'),
       enqueue_orchestrator_work('far', '{}', '294276-12-31 23:59:59.999999+00'), enqueue_orchestrator_work('ancient', '{}', '4714-11-24 00:00:00+00 BC');
SELECT pg_temp.error_of('SELECT enqueue_orchestrator_work(''null'', ''{}'', NULL)');
SELECT ms, (get_queue_depths(ms)).orchestrator_queue FROM unnest(ARRAY[-9223372036854775808, -210866803200001, -210866803200000, 0, :now, 9224318015999999, 9224318016000000, 9223372036854775807]) AS ms;
SELECT string_agg(out_instance_id, ', ') FROM generate_series(1, 4) g, LATERAL fetch_orchestration_item(:now + 0 * g, 60000) f;
SELECT (get_instance_stats('never')).out_found;
DELETE FROM orchestrator_queue;
-- D5: The night when Auckland's clocks went back, with odd milliseconds.
SELECT enqueue_orchestrator_work('dst', '{}', timestamptz '2001-03-17 14:00:00.123+00');
SELECT ms, (get_queue_depths(ms)).orchestrator_queue FROM unnest(ARRAY[984837600122, 984837600123]) AS ms;
SELECT enqueue_orchestrator_work('between', '{}', timestamptz '2001-03-17 14:00:00.123001+00');
SELECT ms, (get_queue_depths(ms)).orchestrator_queue FROM unnest(ARRAY[984837600123, 984837600124]) AS ms;
SELECT enqueue_worker_work('{}', 984837600123);
SELECT ms, (get_queue_depths(ms)).worker_queue FROM unnest(ARRAY[984837600122, 984837600123]) AS ms;
DELETE FROM orchestrator_queue;
DELETE FROM worker_queue;
RESET timezone;
RESET datestyle;

-- D4: Ids of every kind come back as they went in, and none is taken for another.
CREATE TEMP TABLE ids (id text);
INSERT INTO ids VALUES (''), (' '), ('a'), ('a '), ('A'), ('a"b''c.d; drop table x;--'), ('%I %s $1 $$ {q} {key} \'), (E'a\nb\tc'), (U&'\65E5\672C/\+01F642'),
  (U&'caf\00E9'), (U&'cafe\0301'), ('null'), (repeat('a', 9000));
SELECT count(enqueue_orchestrator_work(id, jsonb_build_object('id', id)::text, 'epoch')), count(enqueue_worker_work(to_json(id)::text, 0, id, p_session_id => id, p_tag => id))
FROM ids;
CREATE TEMP TABLE got AS SELECT f.* FROM generate_series(1, 20) g, LATERAL fetch_orchestration_item(:now + 0 * g, 60000) f;
SELECT count(*), count(DISTINCT out_instance_id), bool_and(out_messages = jsonb_build_array(jsonb_build_object('id', out_instance_id))) FROM got;
SELECT count(*) FROM (SELECT id FROM ids EXCEPT SELECT out_instance_id FROM got) missing;
SELECT count(ack_orchestration_item(out_lock_token, :now, 1, '[]', '[]', '[]',
  jsonb_build_object('orchestration_name', out_instance_id, 'orchestration_version', '1',
                     'kv_mutations', jsonb_build_array(jsonb_build_object('action', 'set', 'key', out_instance_id, 'value', out_instance_id)))))
FROM got;
SELECT count(*), count(*) FILTER (WHERE i.orchestration_name = id), count(*) FILTER (WHERE k.out_value = id) FROM ids, get_instance_info(id) i, get_kv_value(id, id) k;
SELECT count(*), bool_and(f.out_work_item = to_json(i.id)::text) FROM ids i, LATERAL (SELECT * FROM fetch_work_item(:now, 60000, i.id, 60000, ARRAY[i.id], 'tags')) f;
SELECT count(*) FROM sessions WHERE session_id = worker_id AND session_id IN (SELECT id FROM ids);
SELECT count(*), sum(d.instances_deleted), sum(d.queue_messages_deleted) FROM ids, delete_instances_atomic(ARRAY[id], true) d;
-- D4: One that is too long for the index is an error of that call alone, which can be made again.
SELECT string_agg(md5(n::text), '') AS long FROM generate_series(1, 300) n \gset
SELECT split_part(pg_temp.error_of(format('SELECT enqueue_orchestrator_work(%L, ''{}'', ''epoch'')', :'long')), ':', 1);
SELECT enqueue_orchestrator_work('sender', '{}', 'epoch');
CREATE TEMP TABLE sender AS SELECT * FROM fetch_orchestration_item(:now, 60000);
SELECT split_part(pg_temp.error_of(format('SELECT ack_orchestration_item(%L, %s, 1, ''[{"event_id": 1, "event_type": "E", "event_data": "{}"}]'', ''[]'', %L, ''{}'')',
  out_lock_token, :now, jsonb_build_array(jsonb_build_object('ExternalRaised', jsonb_build_object('instance', :'long'))))), ':', 1)
FROM sender, generate_series(1, 2);
SELECT count(*) FROM history WHERE instance_id = 'sender';
SELECT ack_orchestration_item(out_lock_token, :now, 1, '[]', '[]', '[]', '{}') FROM sender;
RESET search_path;
SELECT duroxide_queue.drop_queue('args');
