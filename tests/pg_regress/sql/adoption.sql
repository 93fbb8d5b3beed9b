-- A duroxide-pg 0.1.38 schema is adopted with its data and released again; one that is not whole is refused.
\getenv here PG_ABS_SRCDIR
\set include :here '/include/errors.sql'
\i :include
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS duroxide_queue;
\pset format unaligned
\pset tuples_only on
\pset null '<null>'

-- A schema of that shape whose functions are somebody's PL/pgSQL: a created queue without what the extension adds.
CREATE FUNCTION pg_temp.make_foreign(queue text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  f record;
BEGIN
  PERFORM duroxide_queue.create_queue(queue);
  FOR f IN
    SELECT p.oid::regprocedure AS signature, p.proname, pg_get_function_arguments(p.oid) AS arguments,
           pg_get_function_result(p.oid) AS result
    FROM pg_proc p WHERE p.pronamespace = quote_ident(queue)::regnamespace
  LOOP
    EXECUTE format('ALTER FUNCTION %s NO DEPENDS ON EXTENSION duroxide_queue', f.signature);
    EXECUTE format('CREATE OR REPLACE FUNCTION %I.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L',
                   queue, f.proname, f.arguments, f.result, 'BEGIN RAISE ''the old ' || f.proname || '''; END');
  END LOOP;
  EXECUTE format('DROP TABLE %I.dead_letters, %1$I._duroxide_queue', queue);
  EXECUTE format('DROP INDEX %I.orchestrator_queue_ready_idx, %1$I.orchestrator_queue_leased_idx,
                  %1$I.worker_queue_ready_idx, %1$I.worker_queue_leased_idx', queue);
END
$$;
CREATE FUNCTION pg_temp.shape(queue text) RETURNS text
LANGUAGE sql AS $$
  SELECT md5(string_agg(line, ',' ORDER BY line))
  FROM (SELECT relkind::text || relname || relowner || coalesce(relacl::text, '') FROM pg_class WHERE relnamespace = quote_ident(queue)::regnamespace
        UNION ALL
        SELECT 'f' || pg_get_functiondef(oid) || proowner || coalesce(proacl::text, '') || coalesce(obj_description(oid, 'pg_proc'), '')
        FROM pg_proc WHERE pronamespace = quote_ident(queue)::regnamespace) AS s (line)
$$;

SELECT pg_temp.make_foreign('Live.1');
GRANT EXECUTE ON FUNCTION "Live.1".list_instances() TO pg_monitor;
INSERT INTO "Live.1".instances (instance_id, orchestration_name, created_at, updated_at) VALUES ('a', 'O', 'epoch', 'epoch');
INSERT INTO "Live.1".history (instance_id, execution_id, event_id, event_type, event_data, created_at)
  VALUES ('a', 1, 1, 'E', '{"n": 1}', 'epoch');
INSERT INTO "Live.1".orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES ('a', '{"m": 1}', 'epoch', 'epoch');
SELECT pg_temp.shape('Live.1') AS before \gset
SELECT pg_temp.error_of('SELECT "Live.1".list_instances()');
SELECT count(*) FROM duroxide_queue.queues;
SELECT pg_temp.error_of('SELECT duroxide_queue.create_queue(''Live.1'')');

SELECT duroxide_queue.adopt_queue('Live.1');
SELECT queue, owner, origin, layout, own_functions, intact FROM duroxide_queue.queues;
SELECT * FROM "Live.1".list_instances();
SELECT out_instance_id, out_history, out_messages, out_attempt_count FROM "Live.1".fetch_orchestration_item(1000, 60000);
SELECT has_function_privilege('pg_monitor', '"Live.1".list_instances()', 'EXECUTE'), obj_description('"Live.1".list_instances()'::regprocedure, 'pg_proc');
SELECT pg_temp.error_of('SELECT duroxide_queue.adopt_queue(''Live.1'')');
SELECT pg_temp.error_of('SELECT duroxide_queue.drop_queue(''Live.1'')');

-- A later migration puts one of its own back: the view says so, and adopting again repairs it.
CREATE OR REPLACE FUNCTION "Live.1".list_instances() RETURNS TABLE(instance_id text) LANGUAGE sql AS 'SELECT ''theirs''';
SELECT origin, own_functions, intact FROM duroxide_queue.queues;
SELECT duroxide_queue.adopt_queue('Live.1');
SELECT origin, own_functions, intact FROM duroxide_queue.queues;
SELECT * FROM "Live.1".list_instances();

-- With a dead letter it cannot be released: the letter would be lost.
INSERT INTO "Live.1".orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES ('b', 'not json', 'epoch', 'epoch');
SELECT out_instance_id FROM "Live.1".fetch_orchestration_item(1000, 60000);
SELECT pg_temp.error_of('SELECT duroxide_queue.release_queue(''Live.1'')');
DELETE FROM "Live.1".dead_letters;
SELECT duroxide_queue.release_queue('Live.1');
SELECT 'as it was', pg_temp.shape('Live.1') = :'before';
SELECT pg_temp.error_of('SELECT "Live.1".list_instances()');
SELECT (SELECT count(*) FROM "Live.1".instances), (SELECT count(*) FROM "Live.1".history), (SELECT count(*) FROM "Live.1".orchestrator_queue);
SELECT pg_temp.error_of('SELECT duroxide_queue.release_queue(''Live.1'')');
SELECT count(*) FROM duroxide_queue.queues;

-- What is not a whole duroxide-pg 0.1.38 schema is refused, and left as it is.
CREATE FUNCTION pg_temp.adopt_after(change text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
  before text;
BEGIN
  RETURN NEXT change;
  EXECUTE change;
  before := pg_temp.shape('Live.1');
  RETURN QUERY SELECT pg_temp.error_of('SELECT duroxide_queue.adopt_queue(''Live.1'')');
  RETURN NEXT CASE WHEN before = pg_temp.shape('Live.1') THEN 'left as it is' ELSE 'CHANGED' END;
  RAISE EXCEPTION SQLSTATE 'UNDO1';
EXCEPTION WHEN SQLSTATE 'UNDO1' THEN
  RETURN;
END
$$;
SELECT pg_temp.adopt_after(change) FROM unnest(ARRAY[
  'DELETE FROM "Live.1"._duroxide_migrations WHERE version > 24',
  'DELETE FROM "Live.1"._duroxide_migrations',
  'INSERT INTO "Live.1"._duroxide_migrations (version, name) VALUES (27, ''0027_later.sql'')',
  'UPDATE "Live.1"._duroxide_migrations SET name = ''0026_other.sql'' WHERE version = 26',
  'DROP TABLE "Live.1"._duroxide_migrations',
  'DROP TABLE "Live.1".kv_delta',
  'ALTER TABLE "Live.1".worker_queue DROP COLUMN tag',
  'ALTER TABLE "Live.1".history ALTER COLUMN event_data TYPE varchar',
  'DROP FUNCTION "Live.1".get_instance_stats(text)',
  'CREATE TABLE "Live.1".dead_letters (a integer)',
  'CREATE SEQUENCE "Live.1".worker_queue_ready_idx']) AS change;
CREATE SCHEMA empty;
SELECT pg_temp.error_of('SELECT duroxide_queue.adopt_queue(''empty'')');
DROP SCHEMA empty;

-- Nor may anybody adopt it whose objects these are not.
CREATE ROLE regress_dq_adopter;
GRANT USAGE, CREATE ON SCHEMA "Live.1" TO regress_dq_adopter;
GRANT SELECT ON "Live.1"._duroxide_migrations TO regress_dq_adopter;
SET ROLE regress_dq_adopter;
SELECT pg_temp.error_of('SELECT duroxide_queue.adopt_queue(''Live.1'')');
RESET ROLE;
DROP OWNED BY regress_dq_adopter;
DROP ROLE regress_dq_adopter;

-- A client that had its rights before has them after, whatever lies in the queue.
CREATE ROLE regress_dq_old_client;
GRANT USAGE ON SCHEMA "Live.1" TO regress_dq_old_client;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "Live.1" TO regress_dq_old_client;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA "Live.1" TO regress_dq_old_client;
BEGIN;
SELECT duroxide_queue.adopt_queue('Live.1');
TRUNCATE "Live.1".orchestrator_queue, "Live.1".instance_locks;
INSERT INTO "Live.1".orchestrator_queue (instance_id, work_item, visible_at, created_at)
  VALUES ('bad', 'not json', 'epoch', 'epoch'), ('good', '{"n": 1}', to_timestamp(1), 'epoch');
SET LOCAL ROLE regress_dq_old_client;
SELECT out_instance_id FROM "Live.1".fetch_orchestration_item(5000, 60000);
ROLLBACK;
DROP OWNED BY regress_dq_old_client;
DROP ROLE regress_dq_old_client;

-- DROP EXTENSION takes the functions and leaves the rows; adopting gives the functions back.
SELECT duroxide_queue.adopt_queue('Live.1');
SELECT duroxide_queue.create_queue('made');
SELECT made.enqueue_orchestrator_work('m', '{"m": 2}', 'epoch');
SELECT pg_temp.error_of('DROP EXTENSION duroxide_queue');
SELECT count(*) FROM pg_proc WHERE pronamespace IN ('made'::regnamespace, '"Live.1"'::regnamespace);
SELECT pg_temp.error_of('SELECT made.list_instances()');
SELECT (SELECT count(*) FROM "Live.1".orchestrator_queue), (SELECT count(*) FROM made.orchestrator_queue);
CREATE EXTENSION duroxide_queue;
SELECT queue, origin, own_functions, intact FROM duroxide_queue.queues;
SELECT duroxide_queue.adopt_queue('made');
SELECT duroxide_queue.adopt_queue('Live.1');
SELECT queue, origin, own_functions, intact FROM duroxide_queue.queues;
SELECT out_instance_id, out_messages FROM made.fetch_orchestration_item(1000, 60000);
SELECT out_instance_id, out_messages, out_attempt_count FROM "Live.1".fetch_orchestration_item(900000, 60000);

SELECT duroxide_queue.drop_queue('made');
SELECT duroxide_queue.release_queue('Live.1');
SELECT pg_temp.error_of('SELECT "Live.1".list_instances()');
SELECT count(*) FROM pg_proc WHERE pronamespace = '"Live.1"'::regnamespace AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql');
DROP SCHEMA "Live.1" CASCADE;
SELECT 'left', * FROM duroxide_queue.queues;
