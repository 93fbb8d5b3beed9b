-- Everything in the schema app, one object a line. Row types, arrays and NOT NULL, which not every
-- version counts as objects of their own, are left out; so are primary keys, whose index is there.
SELECT CASE c.relkind WHEN 'r' THEN 'table ' WHEN 'S' THEN 'sequence ' ELSE 'relation of kind ' || c.relkind::text || ' ' END
       || c.relname
FROM pg_class c
WHERE c.relnamespace = 'app'::regnamespace AND c.relkind <> 'i'
UNION ALL
SELECT 'column ' || c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
       || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
       || coalesce(' default ' || replace(pg_get_expr(d.adbin, d.adrelid), 'app.', ''), '')
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'app'::regnamespace AND c.relkind = 'r'
UNION ALL
SELECT replace(i.indexdef, 'app.', '') FROM pg_indexes i WHERE i.schemaname = 'app'
UNION ALL
SELECT 'constraint ' || k.conname || ' ' || pg_get_constraintdef(k.oid)
FROM pg_constraint k
WHERE k.connamespace = 'app'::regnamespace AND k.contype NOT IN ('p', 'n')
UNION ALL
SELECT 'trigger ' || t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = 'app'::regnamespace
UNION ALL
SELECT 'function ' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' FROM pg_proc p
WHERE p.pronamespace = 'app'::regnamespace
UNION ALL
SELECT 'type ' || t.typname FROM pg_type t
WHERE t.typnamespace = 'app'::regnamespace AND t.typrelid = 0 AND t.typelem = 0
