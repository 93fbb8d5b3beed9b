/* The extension's own schema. Plain CREATE throughout: an object that somebody else has put in the
   way stops the script instead of becoming part of the extension. */

CREATE SCHEMA duroxide_queue;
GRANT USAGE ON SCHEMA duroxide_queue TO PUBLIC;
COMMENT ON SCHEMA duroxide_queue IS 'Management of work queues; the queues themselves live in schemas of their own.';

CREATE FUNCTION duroxide_queue.create_queue(schema_name text)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'create_queue_wrapper';
COMMENT ON FUNCTION duroxide_queue.create_queue(text) IS
  'Makes a queue in a schema, and the schema itself if it is missing.';

CREATE FUNCTION duroxide_queue.drop_queue(schema_name text)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'drop_queue_wrapper';
COMMENT ON FUNCTION duroxide_queue.drop_queue(text) IS
  'Removes what create_queue made, with all its data.';

CREATE FUNCTION duroxide_queue.adopt_queue(schema_name text)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'adopt_queue_wrapper';
COMMENT ON FUNCTION duroxide_queue.adopt_queue(text) IS
  'Takes over a live duroxide-pg 0.1.38 schema, or gives a queue its functions back.';

CREATE FUNCTION duroxide_queue.release_queue(schema_name text)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'release_queue_wrapper';
COMMENT ON FUNCTION duroxide_queue.release_queue(text) IS
  'Undoes adopt_queue: duroxide-pg''s own functions are back, the data stays.';

CREATE FUNCTION duroxide_queue.grant_client(schema_name text, role_name text)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'grant_client_wrapper';
COMMENT ON FUNCTION duroxide_queue.grant_client(text, text) IS
  'Gives a role exactly the rights that a client of the queue needs.';

CREATE FUNCTION duroxide_queue.revoke_client(schema_name text, role_name text)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'revoke_client_wrapper';
COMMENT ON FUNCTION duroxide_queue.revoke_client(text, text) IS
  'Takes back what grant_client gave.';

CREATE FUNCTION duroxide_queue.redrive(schema_name text, id bigint)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'redrive_wrapper';
COMMENT ON FUNCTION duroxide_queue.redrive(text, bigint) IS
  'Puts a dead letter back into its queue, once its text has been repaired.';

CREATE FUNCTION duroxide_queue.discard(schema_name text, id bigint)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'discard_wrapper';
COMMENT ON FUNCTION duroxide_queue.discard(text, bigint) IS
  'Removes a dead letter for good.';

CREATE FUNCTION duroxide_queue.list_registries()
RETURNS TABLE (queue name, origin text, layout integer)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'list_registries_wrapper';
COMMENT ON FUNCTION duroxide_queue.list_registries() IS
  'What the registry of each queue says that the reader may read; nothing of one that is locked, or that could run its owner''s code.';

/* From the catalog, but for what only a queue's own registry says. A schema's owner decides what that is: it is read with the
   rights of its owner, and only where reading it runs nobody's code. */
CREATE FUNCTION duroxide_queue.list_queues()
RETURNS TABLE (queue name, owner name, origin text, layout integer, own_functions integer, intact boolean)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT n.nspname, pg_get_userbyid(c.relowner), r.origin, r.layout, own.functions, own.functions = 32
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  CROSS JOIN LATERAL (
    SELECT count(DISTINCT p.proname)::integer AS functions FROM pg_proc p
    WHERE p.pronamespace = n.oid AND p.probin = '$libdir/duroxide_queue' AND p.prosrc = p.proname || '_wrapper') own
  LEFT JOIN duroxide_queue.list_registries() r ON r.queue = n.nspname
  WHERE c.relname = '_duroxide_queue' AND c.relkind = 'r'
  ORDER BY n.nspname
$$;
COMMENT ON FUNCTION duroxide_queue.list_queues() IS 'What the view queues shows.';

CREATE VIEW duroxide_queue.queues AS
SELECT q.queue, q.owner, q.origin, q.layout, q.own_functions, q.intact
FROM duroxide_queue.list_queues() q;
GRANT SELECT ON duroxide_queue.queues TO PUBLIC;
COMMENT ON VIEW duroxide_queue.queues IS 'Every queue of the database: how it came to be, and whether all its functions are this extension''s.';
COMMENT ON COLUMN duroxide_queue.queues.queue IS 'The schema that the queue lives in.';
COMMENT ON COLUMN duroxide_queue.queues.owner IS 'The owner of its tables.';
COMMENT ON COLUMN duroxide_queue.queues.origin IS 'created or adopted; NULL if the reader may not know.';
COMMENT ON COLUMN duroxide_queue.queues.layout IS 'Version of what the extension has added to the schema; NULL if the reader may not know.';
COMMENT ON COLUMN duroxide_queue.queues.own_functions IS 'How many of the 32 functions are this extension''s.';
COMMENT ON COLUMN duroxide_queue.queues.intact IS 'Whether all of them are; a later migration of duroxide-pg can put its own back.';
