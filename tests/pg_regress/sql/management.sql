-- The calls that manage a queue: only its own kind, only its owner; and a client gets the rights it needs and no more.
\getenv here PG_ABS_SRCDIR
\set include :here '/include/errors.sql'
\i :include
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS duroxide_queue;
\pset format unaligned
\pset tuples_only on
\pset null '<null>'
SELECT duroxide_queue.create_queue('My App');
CREATE ROLE "regress Client.1";
CREATE ROLE regress_dq_stranger;

-- The wrong call for a created queue.
SELECT pg_temp.catalog() AS before \gset
SELECT pg_temp.error_of(format('SELECT duroxide_queue.%s', call)) FROM unnest(ARRAY[
  'release_queue(''My App'')', 'adopt_queue(''My App'')', 'create_queue(''My App'')', 'drop_queue(''my app'')', 'drop_queue(''"My App"'')',
  'grant_client(''My App'', ''regress_dq_missing'')', 'revoke_client(''My App'', ''regress_dq_missing'')', 'grant_client(''My App'', '''')',
  'grant_client(''My App'', ''"regress Client.1"'')', 'grant_client(NULL, ''postgres'')']) AS call;
SELECT 'unchanged', pg_temp.catalog() = :'before';

-- A role without rights can do nothing; with a client's, a whole turn; afterwards nothing again.
CREATE FUNCTION pg_temp.turn() RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
  got record;
BEGIN
  PERFORM "My App".enqueue_orchestrator_work('i', '{"StartOrchestration": {}}', 'epoch');
  SELECT * INTO got FROM "My App".fetch_orchestration_item(1000, 60000);
  PERFORM "My App".renew_orchestration_item_lock(got.out_lock_token, 1000, 90);
  PERFORM "My App".ack_orchestration_item(got.out_lock_token, 1000, 1, '[{"event_id": 1, "event_type": "E", "event_data": "{}"}]',
    '[{"ActivityExecute": {"instance": "i", "execution_id": 1, "id": 1, "session_id": "s"}}]', '[]',
    '{"orchestration_name": "O", "orchestration_version": "1", "status": "Completed", "kv_mutations": [{"action": "set", "key": "k", "value": "v"}]}');
  SELECT * INTO got FROM "My App".fetch_work_item(1000, 60000, 'w');
  PERFORM "My App".renew_work_item_lock(got.out_lock_token, 1000, 90);
  PERFORM "My App".renew_session_lock(ARRAY['w'], 1000, 60000, 60000);
  PERFORM "My App".ack_worker(got.out_lock_token, 'i', '{}', 1000);
  SELECT * INTO got FROM "My App".fetch_orchestration_item(2000, 60000);
  PERFORM "My App".abandon_orchestration_item(got.out_lock_token, 2000);
  PERFORM "My App".append_history('i', 1, '[{"event_id": 2, "event_type": "E", "event_data": "{}"}]');
  PERFORM "My App".enqueue_worker_work('{}', 0);
  SELECT * INTO got FROM "My App".fetch_work_item(1000, 60000);
  PERFORM "My App".abandon_work_item(got.out_lock_token, 1000);
  PERFORM "My App".fetch_history('i'), "My App".fetch_history_with_execution('i', 1), "My App".get_custom_status('i', -1), "My App".get_execution_info('i', 1),
    "My App".get_instance_info('i'), "My App".get_instance_stats('i'), "My App".get_kv_all_values('i'), "My App".get_kv_value('i', 'k'), "My App".get_parent_id('i'),
    "My App".get_queue_depths(1000), "My App".get_system_metrics(), "My App".latest_execution_id('i'), "My App".list_children('i'), "My App".list_executions('i'),
    "My App".list_instances(), "My App".list_instances_by_status('Running'), "My App".prune_executions('i', 1), "My App".cleanup_orphaned_sessions(900000);
  PERFORM "My App".delete_instances_atomic(ARRAY['i'], true);
  DELETE FROM "My App".worker_queue;
  RETURN NEXT 'whole';
END
$$;
SET ROLE "regress Client.1";
SELECT pg_temp.error_of('SELECT pg_temp.turn()');
RESET ROLE;
GRANT USAGE ON SCHEMA "My App" TO "regress Client.1";
SET ROLE "regress Client.1";
SELECT pg_temp.error_of('SELECT pg_temp.turn()');
SELECT pg_temp.error_of('SELECT "My App".list_instances()');
RESET ROLE;
SELECT duroxide_queue.grant_client('My App', 'regress Client.1');
SELECT duroxide_queue.grant_client('My App', 'regress Client.1');
SET ROLE "regress Client.1";
SELECT pg_temp.turn();
SELECT count(*) FROM "My App"._duroxide_migrations;
SELECT pg_temp.error_of(statement) FROM unnest(ARRAY[
  'UPDATE "My App".history SET event_data = event_data', 'DELETE FROM "My App"._duroxide_migrations', 'SELECT * FROM "My App".dead_letters', 'DELETE FROM "My App".dead_letters',
  'SELECT * FROM "My App"._duroxide_queue', 'CREATE TABLE "My App".mine (a integer)', 'SELECT "My App".cleanup_schema()', 'TRUNCATE "My App".worker_queue',
  'SELECT duroxide_queue.drop_queue(''My App'')', 'SELECT duroxide_queue.grant_client(''My App'', ''regress_dq_stranger'')']) AS statement;
RESET ROLE;
-- In the same session, kept plans and all: rights are looked at anew in each call.
SET ROLE regress_dq_stranger;
SELECT pg_temp.error_of('SELECT "My App".list_instances()');
RESET ROLE;
SELECT duroxide_queue.revoke_client('My App', 'regress Client.1');
SET ROLE "regress Client.1";
SELECT pg_temp.error_of('SELECT pg_temp.turn()');
RESET ROLE;
SELECT pg_temp.turn();
-- Nothing of the roles is left in the queue.
DROP ROLE "regress Client.1";
DROP ROLE regress_dq_stranger;

-- cleanup_schema() takes the queue's objects from inside; the extension and its other queues stay.
SELECT duroxide_queue.create_queue('inside');
CREATE TABLE inside.mine (a integer);
SELECT inside.list_instances();
SELECT inside.cleanup_schema();
SELECT relname FROM pg_class WHERE relnamespace = 'inside'::regnamespace;
SELECT count(*) FROM pg_proc WHERE pronamespace = 'inside'::regnamespace;
SELECT queue, intact FROM duroxide_queue.queues;
SELECT pg_temp.error_of('SELECT duroxide_queue.drop_queue(''inside'')');
SELECT duroxide_queue.create_queue('inside');
SELECT count(*) FROM inside.fetch_orchestration_item(0, 1000);
SELECT duroxide_queue.drop_queue('inside');
DROP SCHEMA inside CASCADE;

-- All of it in one transaction, or none.
BEGIN;
SELECT duroxide_queue.create_queue('brief');
SELECT brief.enqueue_orchestrator_work('i', '{}', 'epoch');
SELECT out_instance_id FROM brief.fetch_orchestration_item(1000, 1000);
SELECT duroxide_queue.drop_queue('My App');
ROLLBACK;
SELECT queue, intact FROM duroxide_queue.queues;
SELECT pg_temp.turn();
SELECT pg_temp.error_of('SELECT brief.list_instances()');
BEGIN;
SAVEPOINT s;
SELECT duroxide_queue.create_queue('brief');
ROLLBACK TO s;
SELECT duroxide_queue.create_queue('brief');
SELECT brief.enqueue_orchestrator_work('i', '{}', 'epoch');
COMMIT;
SELECT out_instance_id FROM brief.fetch_orchestration_item(1000, 1000);
SELECT duroxide_queue.drop_queue(queue) FROM unnest(ARRAY['brief', 'My App']) AS queue;
SELECT count(*) FROM duroxide_queue.queues;

-- The extension is found wherever the session looks, and cannot be moved.
SELECT pg_temp.error_of('ALTER EXTENSION duroxide_queue SET SCHEMA public');
SELECT pg_temp.error_of('CREATE EXTENSION duroxide_queue');
SELECT extrelocatable, extnamespace::regnamespace FROM pg_extension WHERE extname = 'duroxide_queue';
DROP EXTENSION duroxide_queue;
SELECT count(*) FROM pg_namespace WHERE nspname = 'duroxide_queue';
SELECT pg_temp.error_of('CREATE EXTENSION duroxide_queue SCHEMA public');
SET search_path = '';
CREATE EXTENSION duroxide_queue;
SELECT duroxide_queue.create_queue('blind');
SELECT blind.enqueue_orchestrator_work('i', '{}', 'epoch');
SELECT out_instance_id FROM blind.fetch_orchestration_item(1000, 1000);
SELECT duroxide_queue.drop_queue('blind');
RESET search_path;
