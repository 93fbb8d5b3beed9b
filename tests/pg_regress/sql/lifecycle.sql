-- A queue comes to be and goes, in a schema of any name; what cannot be is refused, with the reason and a way out.
\getenv here PG_ABS_SRCDIR
\set include :here '/include/errors.sql'
\i :include
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS duroxide_queue;
\pset format unaligned
\pset tuples_only on
\pset null '<null>'

-- Created, used and dropped, the schema with it; nothing is left.
SELECT pg_temp.catalog() AS before \gset
CREATE FUNCTION pg_temp.life_of(queue text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  got record;
  shown record;
BEGIN
  PERFORM duroxide_queue.create_queue(queue);
  SELECT q.queue, q.origin, q.layout, q.intact INTO shown FROM duroxide_queue.queues q WHERE q.queue = life_of.queue;
  EXECUTE format('SELECT %I.enqueue_orchestrator_work(''a'', ''{"StartOrchestration":{}}'', ''epoch'')', queue);
  EXECUTE format('SELECT * FROM %I.fetch_orchestration_item(1000, 600000)', queue) INTO got;
  EXECUTE format('SELECT %I.ack_orchestration_item($1, 1000, 1, ''[]'', ''[]'', ''[]'', ''{}'')', queue)
    USING got.out_lock_token;
  PERFORM duroxide_queue.drop_queue(queue);
  RETURN concat_ws(' | ', shown.queue, shown.origin, shown.layout, shown.intact, 'claimed ' || got.out_instance_id,
                   'schema left: ' || (to_regnamespace(quote_ident(queue)) IS NOT NULL));
END
$$;
SELECT pg_temp.life_of(name) FROM unnest(ARRAY[
  'plain', 'My Queue.1', 'it''s', '"quoted"', 'a\b', 'select', 'user', '{q}', '%I %s $1', ' ', 'a"; DROP TABLE x; --',
  U&'na\00EFve \65E5\672C \+01F642', repeat('x', 63)]) AS name;
DROP FUNCTION pg_temp.life_of(text);
SELECT 'unchanged', pg_temp.catalog() = :'before';

-- A name is told from one that only looks like it: bytes decide.
SELECT duroxide_queue.create_queue(name) FROM unnest(ARRAY['Case', 'case', U&'caf\00E9', U&'cafe\0301']) AS name;
SELECT queue, length(queue::text) FROM duroxide_queue.queues ORDER BY queue::text COLLATE "C";
SELECT duroxide_queue.drop_queue(queue::text) FROM duroxide_queue.queues ORDER BY queue::text COLLATE "C";
SELECT 'unchanged', pg_temp.catalog() = :'before';

-- What is in a queue.
SELECT duroxide_queue.create_queue('life');
SELECT relkind, relname FROM pg_class WHERE relnamespace = 'life'::regnamespace AND relkind IN ('r', 'S')
ORDER BY relkind, relname COLLATE "C";
SELECT count(*), count(DISTINCT proname), bool_and(prosrc = proname || '_wrapper'), bool_and(proowner = 'postgres'::regrole),
       bool_and(proconfig = '{"search_path=pg_catalog, pg_temp"}'), bool_and(NOT prosecdef), bool_and(NOT proisstrict),
       bool_and(obj_description(oid, 'pg_proc') IS NOT NULL)
FROM pg_proc WHERE pronamespace = 'life'::regnamespace;
SELECT count(*), max(version), bool_and(applied_at IS NOT NULL) FROM life._duroxide_migrations;

-- Names that no queue can have.
SELECT pg_temp.catalog() AS before \gset
SELECT pg_temp.error_of('SELECT duroxide_queue.create_queue(NULL)');
SELECT pg_temp.error_of('SELECT duroxide_queue.create_queue('''')');
SELECT pg_temp.error_of(format('SELECT duroxide_queue.create_queue(%L)', repeat('x', 64)));
SELECT pg_temp.error_of(format('SELECT duroxide_queue.create_queue(%L)', repeat(U&'\00E9', 32)));
SELECT pg_temp.error_of(format('SELECT duroxide_queue.create_queue(%L)', name))
FROM unnest(ARRAY['pg_', 'pg_catalog', 'pg_toast', 'pg_temp_1', 'information_schema', 'duroxide_queue']) AS name;

-- A queue that is there already, and one whose name the hint has to quote.
SELECT pg_temp.error_of('SELECT duroxide_queue.create_queue(''life'')');
SELECT pg_temp.error_of('SELECT duroxide_queue.adopt_queue(''life'')');
SELECT 'unchanged', pg_temp.catalog() = :'before';
SELECT duroxide_queue.create_queue('it''s');
SELECT pg_temp.error_of('SELECT duroxide_queue.create_queue(''it''''s'')');
SELECT duroxide_queue.drop_queue('it''s');

-- Something in the way: named, and left alone.
CREATE SCHEMA occupied;
CREATE FUNCTION pg_temp.create_in_the_way_of(obstacle text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE obstacle;
  RETURN NEXT obstacle;
  RETURN QUERY SELECT pg_temp.error_of('SELECT duroxide_queue.create_queue(''occupied'')');
  DROP SCHEMA occupied CASCADE;
  CREATE SCHEMA occupied;
END
$$;
SELECT pg_temp.catalog() AS before \gset
SELECT pg_temp.create_in_the_way_of(obstacle) FROM unnest(ARRAY[
  'CREATE TABLE occupied.instances (a integer)',
  'CREATE VIEW occupied.history AS SELECT 1',
  'CREATE MATERIALIZED VIEW occupied.dead_letters AS SELECT 1',
  'CREATE SEQUENCE occupied.sessions',
  'CREATE TYPE occupied.kv_store AS (a integer)',
  'CREATE VIEW occupied._duroxide_queue AS SELECT 1',
  'CREATE TABLE occupied._duroxide_migrations (version bigint, name text)',
  'CREATE FUNCTION occupied.fetch_work_item() RETURNS integer LANGUAGE sql AS ''SELECT 1''',
  'CREATE FUNCTION occupied.list_instances() RETURNS integer LANGUAGE sql AS ''SELECT 1''',
  'CREATE SEQUENCE occupied.orchestrator_queue_id_seq',
  'CREATE TABLE occupied.mine (a integer, CONSTRAINT orchestrator_queue_ready_idx UNIQUE (a))']) AS obstacle;
SELECT 'unchanged but for the schema itself', split_part(pg_temp.catalog(), ' ', n) = split_part(:'before', ' ', n)
FROM generate_series(1, 5) AS n;
DROP FUNCTION pg_temp.create_in_the_way_of(text);

-- Anything else is not in the way, and stays when the queue goes.
CREATE TABLE occupied.mine AS SELECT 42 AS a;
SELECT duroxide_queue.create_queue('occupied');
SELECT duroxide_queue.drop_queue('occupied');
SELECT a FROM occupied.mine;
SELECT relname FROM pg_class WHERE relnamespace = 'occupied'::regnamespace;
DROP SCHEMA occupied CASCADE;

-- Calls for a schema that is not there, or holds no queue.
SELECT pg_temp.error_of(format('SELECT duroxide_queue.%s', call)) FROM unnest(ARRAY[
  'drop_queue(''missing'')', 'adopt_queue(''missing'')', 'release_queue(''missing'')',
  'grant_client(''missing'', ''postgres'')', 'revoke_client(''missing'', ''postgres'')',
  'drop_queue(''public'')', 'adopt_queue(''public'')', 'release_queue(''public'')',
  'grant_client(''public'', ''postgres'')', 'revoke_client(''public'', ''postgres'')',
  'drop_queue(''pg_catalog'')', 'adopt_queue(NULL)', 'release_queue('''')', 'grant_client(''life'', NULL)']) AS call;

-- Objects of others that depend on a queue keep it.
CREATE VIEW public.on_life AS SELECT instance_id FROM life.instances;
SELECT pg_temp.error_of('SELECT duroxide_queue.drop_queue(''life'')');
SELECT own_functions, intact FROM duroxide_queue.queues WHERE queue = 'life';
DROP VIEW public.on_life;

-- Others than the owner.
CREATE ROLE regress_dq_owner;
CREATE ROLE regress_dq_other;
CREATE SCHEMA theirs AUTHORIZATION regress_dq_owner;
SET ROLE regress_dq_owner;
SELECT duroxide_queue.create_queue('theirs');
SELECT count(*) FROM pg_class WHERE relnamespace = 'theirs'::regnamespace AND relowner <> 'regress_dq_owner'::regrole;
SELECT count(*) FROM pg_proc WHERE pronamespace = 'theirs'::regnamespace AND proowner <> 'regress_dq_owner'::regrole;
SELECT pg_temp.error_of('SELECT duroxide_queue.create_queue(''brand_new'')');
SELECT pg_temp.error_of('SELECT duroxide_queue.drop_queue(''life'')');
SET ROLE regress_dq_other;
SELECT pg_temp.error_of('SELECT duroxide_queue.create_queue(''theirs'')');
SELECT pg_temp.error_of('SELECT duroxide_queue.drop_queue(''theirs'')');
SELECT pg_temp.error_of('SELECT duroxide_queue.adopt_queue(''theirs'')');
SELECT pg_temp.error_of('SELECT duroxide_queue.release_queue(''theirs'')');
SELECT pg_temp.error_of('SELECT duroxide_queue.grant_client(''theirs'', ''regress_dq_other'')');
RESET ROLE;
GRANT USAGE, CREATE ON SCHEMA theirs TO regress_dq_other;
SET ROLE regress_dq_other;
SELECT pg_temp.error_of('SELECT duroxide_queue.drop_queue(''theirs'')');
SET ROLE regress_dq_owner;
SELECT duroxide_queue.drop_queue('theirs');
RESET ROLE;
SELECT count(*) FROM pg_class WHERE relnamespace = 'theirs'::regnamespace;
DROP SCHEMA theirs;
DROP ROLE regress_dq_owner, regress_dq_other;

SELECT duroxide_queue.drop_queue('life');
SELECT 'left', * FROM duroxide_queue.queues;
