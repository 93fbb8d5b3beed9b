-- The view duroxide_queue.queues tells of each queue what it is, to anybody, and runs nobody's code.
\getenv here PG_ABS_SRCDIR
\set include :here '/include/errors.sql'
\i :include
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS duroxide_queue;
\pset null '<null>'
\pset footer off
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = 'duroxide_queue.queues'::regclass AND attnum > 0 ORDER BY attnum;
SELECT * FROM duroxide_queue.queues;

CREATE ROLE regress_dq_view_owner;
CREATE ROLE regress_dq_view_reader;
CREATE SCHEMA "Second Queue" AUTHORIZATION regress_dq_view_owner;
SELECT duroxide_queue.create_queue('first');
SET ROLE regress_dq_view_owner;
SELECT duroxide_queue.create_queue('Second Queue');
RESET ROLE;
SELECT * FROM duroxide_queue.queues ORDER BY queue::text COLLATE "C";

-- Whoever may not look into a queue sees that it is there, and no more.
SET ROLE regress_dq_view_reader;
SELECT * FROM duroxide_queue.queues ORDER BY queue::text COLLATE "C";
RESET ROLE;
SET ROLE regress_dq_view_owner;
SELECT * FROM duroxide_queue.queues ORDER BY queue::text COLLATE "C";
RESET ROLE;

-- A function that is gone, or not the extension's any more; another of the same name beside it counts neither way.
CREATE FUNCTION first.list_instances(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
SELECT queue, own_functions, intact FROM duroxide_queue.queues WHERE queue = 'first';
DROP FUNCTION first.get_parent_id(text);
CREATE OR REPLACE FUNCTION first.cleanup_schema() RETURNS void LANGUAGE sql AS '';
SELECT queue, own_functions, intact FROM duroxide_queue.queues WHERE queue = 'first';
SELECT duroxide_queue.adopt_queue('first');
SELECT queue, origin, own_functions, intact FROM duroxide_queue.queues WHERE queue = 'first';
-- Renamed, it is the same queue.
ALTER SCHEMA first RENAME TO renamed;
SELECT queue, origin, own_functions, intact FROM duroxide_queue.queues WHERE queue IN ('first', 'renamed');

-- What an owner makes of the registry runs no code of theirs in the reader's name.
CREATE SCHEMA trap;
GRANT USAGE ON SCHEMA trap TO PUBLIC;
CREATE FUNCTION trap.spring() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'sprung'; END $$;
CREATE VIEW trap._duroxide_queue AS SELECT 'created'::text AS origin, 1 AS layout WHERE trap.spring();
SELECT count(*) FROM duroxide_queue.queues WHERE queue = 'trap';
DROP VIEW trap._duroxide_queue;
CREATE TABLE trap._duroxide_queue (origin text, layout integer);
INSERT INTO trap._duroxide_queue VALUES ('created', 1);
GRANT SELECT ON trap._duroxide_queue TO PUBLIC;
ALTER TABLE trap._duroxide_queue ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON trap._duroxide_queue USING (trap.spring());
SET ROLE regress_dq_view_reader;
SELECT * FROM duroxide_queue.queues WHERE queue = 'trap';
RESET ROLE;
DROP TABLE trap._duroxide_queue;
CREATE TABLE trap._duroxide_queue (origin varchar, layout bigint);
SELECT origin, layout, own_functions, intact FROM duroxide_queue.queues WHERE queue = 'trap';
DROP TABLE trap._duroxide_queue;
CREATE TABLE trap._duroxide_queue (origin text, layout integer);
SELECT origin, layout, own_functions, intact FROM duroxide_queue.queues WHERE queue = 'trap';
DROP SCHEMA trap CASCADE;

-- The reader's search_path and temporary objects are of no account.
CREATE TEMP TABLE pg_class (relname text);
CREATE SCHEMA shadow;
CREATE FUNCTION shadow.pg_get_userbyid(oid) RETURNS name LANGUAGE sql AS 'SELECT ''nobody''::name';
SET search_path = shadow, pg_temp, pg_catalog;
SELECT * FROM duroxide_queue.queues ORDER BY queue::text COLLATE pg_catalog."C";
SET search_path = '';
SELECT * FROM duroxide_queue.queues ORDER BY queue::text COLLATE pg_catalog."C";
RESET search_path;
DROP SCHEMA shadow CASCADE;

SELECT duroxide_queue.drop_queue(queue) FROM unnest(ARRAY['renamed', 'Second Queue']) AS queue;
SELECT count(*) FROM duroxide_queue.queues;
SELECT count(*) FROM pg_proc WHERE pronamespace = 'renamed'::regnamespace;
DROP SCHEMA renamed CASCADE;
DROP SCHEMA "Second Queue";
DROP ROLE regress_dq_view_owner, regress_dq_view_reader;
