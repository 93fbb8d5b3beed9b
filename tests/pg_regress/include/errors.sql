\set ECHO none
-- What an error says, the same on every version: SQLSTATE, message and hint, without the line of the server's source.
CREATE FUNCTION pg_temp.error_of(statement text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
  state text;
  message text;
  hint text;
BEGIN
  EXECUTE statement;
  RETURN NEXT 'no error';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
  RETURN NEXT state || ': ' || message;
  IF hint <> '' THEN
    RETURN NEXT 'HINT: ' || hint;
  END IF;
END
$$;

-- Everything that a failed call must leave as it was: compare it before and after.
CREATE FUNCTION pg_temp.catalog() RETURNS text
LANGUAGE sql AS $$
  SELECT concat_ws(' ',
    (SELECT count(*) FROM pg_namespace WHERE nspname !~ '^pg_'),
    (SELECT count(*) FROM pg_class WHERE relnamespace <> 'pg_catalog'::regnamespace AND relpersistence <> 't'),
    (SELECT count(*) FROM pg_attribute),
    (SELECT count(*) FROM pg_proc),
    (SELECT count(*) FROM pg_type),
    (SELECT md5(string_agg(objid || ' ' || refobjid || ' ' || deptype::text, ',' ORDER BY classid, objid, objsubid, refclassid, refobjid, refobjsubid))
     FROM pg_depend),
    (SELECT count(*) FROM pg_description))
$$;
SELECT 1 AS ready \gset
\set ECHO all
