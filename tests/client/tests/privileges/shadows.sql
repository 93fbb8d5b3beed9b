-- Tables in pg_temp, functions and operators in a schema of the caller's, under names that the queue
-- functions use. Whatever of it runs says so by failing.
CREATE SCHEMA mine;

CREATE TEMP TABLE orchestrator_queue (id bigint, instance_id text, work_item text, visible_at timestamptz,
  lock_token text, locked_until bigint, created_at timestamptz, attempt_count integer);
CREATE TEMP TABLE worker_queue (LIKE orchestrator_queue);
CREATE TEMP TABLE instance_locks (instance_id text, lock_token text, locked_until bigint, locked_at bigint);
CREATE TEMP TABLE instances (instance_id text);
CREATE TEMP TABLE executions (instance_id text);
CREATE TEMP TABLE history (instance_id text);
CREATE TEMP TABLE sessions (session_id text);
CREATE TEMP TABLE kv_store (instance_id text);
CREATE TEMP TABLE kv_delta (instance_id text);
CREATE TEMP TABLE dead_letters (id bigint);
CREATE TEMP TABLE _duroxide_queue (origin text);
CREATE TEMP TABLE _duroxide_migrations (version bigint, name text);
CREATE TEMP TABLE pg_namespace (oid oid, nspname name);
CREATE TEMP TABLE pg_class (oid oid, relname name);
CREATE TEMP TABLE pg_proc (oid oid, proname name);

DO $do$
DECLARE
  f record;
  body text := $body$BEGIN RAISE EXCEPTION 'a function of the caller''s has run'; END$body$;
BEGIN
  -- The functions of pg_catalog that statements and scripts call, under their own signatures.
  FOR f IN
    SELECT p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid) AS arguments,
           pg_catalog.pg_get_function_result(p.oid) AS result
    FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace AND p.prokind = 'f'
      AND pg_catalog.pg_get_function_identity_arguments(p.oid) NOT LIKE '%"any"%'
      AND p.proname IN ('hashtext', 'gen_random_uuid', 'to_timestamp', 'now', 'clock_timestamp', 'jsonb_array_length',
                        'jsonb_array_elements', 'jsonb_typeof', 'jsonb_build_object', 'to_jsonb', 'octet_length',
                        'array_remove', 'string_to_array', 'quote_ident', 'format_type', 'pg_get_functiondef',
                        'has_schema_privilege', 'has_database_privilege', 'has_table_privilege', 'pg_has_role',
                        'pg_get_userbyid', 'nextval', 'current_database')
  LOOP
    EXECUTE pg_catalog.format('CREATE FUNCTION mine.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L',
                              f.proname, f.arguments, f.result, body);
  END LOOP;
END
$do$;

DO $do$
DECLARE
  o record;
  n integer := 0;
BEGIN
  -- The operators on the types of a queue.
  FOR o IN
    SELECT p.oprname, p.oprleft::pg_catalog.regtype AS l, p.oprright::pg_catalog.regtype AS r,
           p.oprresult::pg_catalog.regtype AS result
    FROM pg_catalog.pg_operator p
    WHERE p.oprnamespace = 'pg_catalog'::pg_catalog.regnamespace AND p.oprkind = 'b'
      AND p.oprleft IN ('text'::pg_catalog.regtype, 'bigint'::pg_catalog.regtype, 'integer'::pg_catalog.regtype,
                        'jsonb'::pg_catalog.regtype, 'timestamptz'::pg_catalog.regtype, 'name'::pg_catalog.regtype,
                        'oid'::pg_catalog.regtype, 'interval'::pg_catalog.regtype, '"char"'::pg_catalog.regtype)
  LOOP
    n := n + 1;
    EXECUTE pg_catalog.format(
      'CREATE FUNCTION mine.op_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L', n, o.l, o.r, o.result,
      $body$BEGIN RAISE EXCEPTION 'an operator of the caller''s has run'; END$body$);
    EXECUTE pg_catalog.format(
      'CREATE OPERATOR mine.%s (FUNCTION = mine.op_%s, LEFTARG = %s, RIGHTARG = %s)', o.oprname, n, o.l, o.r);
  END LOOP;
END
$do$;
