-- Each line is a row of a catalog as JSON, without what changes by itself. The defaults of arguments
-- are trees with positions in a text that nobody sees; pg_get_functiondef shows them.
WITH schema AS (
  SELECT n.oid FROM pg_namespace n WHERE n.nspname = $1
), relation AS (
  SELECT c.oid FROM pg_class c JOIN schema s ON s.oid = c.relnamespace
), function AS (
  SELECT p.oid FROM pg_proc p JOIN schema s ON s.oid = p.pronamespace
), object (classid, objid) AS (
  SELECT 'pg_namespace'::regclass::oid, oid FROM schema
  UNION ALL SELECT 'pg_class'::regclass, oid FROM relation
  UNION ALL SELECT 'pg_proc'::regclass, oid FROM function
  UNION ALL SELECT 'pg_type'::regclass, t.oid FROM pg_type t JOIN schema s ON s.oid = t.typnamespace
  UNION ALL SELECT 'pg_constraint'::regclass, c.oid FROM pg_constraint c JOIN schema s ON s.oid = c.connamespace
  UNION ALL SELECT 'pg_attrdef'::regclass, d.oid FROM pg_attrdef d JOIN relation r ON r.oid = d.adrelid
  UNION ALL SELECT 'pg_trigger'::regclass, t.oid FROM pg_trigger t JOIN relation r ON r.oid = t.tgrelid
  UNION ALL SELECT 'pg_rewrite'::regclass, w.oid FROM pg_rewrite w JOIN relation r ON r.oid = w.ev_class
  UNION ALL SELECT 'pg_policy'::regclass, p.oid FROM pg_policy p JOIN relation r ON r.oid = p.polrelid
  UNION ALL SELECT 'pg_operator'::regclass, o.oid FROM pg_operator o JOIN schema s ON s.oid = o.oprnamespace
)
SELECT 'schema ' || to_jsonb(n)::text FROM pg_namespace n JOIN schema USING (oid)
UNION ALL
SELECT 'relation ' || (to_jsonb(c) - ARRAY['relpages', 'reltuples', 'relallvisible', 'relallfrozen', 'relfrozenxid', 'relminmxid'])::text
FROM pg_class c JOIN relation USING (oid)
UNION ALL
SELECT 'column ' || to_jsonb(a)::text FROM pg_attribute a JOIN relation r ON r.oid = a.attrelid
UNION ALL
SELECT 'index ' || pg_get_indexdef(i.indexrelid) || ' ' || to_jsonb(i)::text FROM pg_index i JOIN relation r ON r.oid = i.indrelid
UNION ALL
SELECT 'sequence ' || to_jsonb(q)::text FROM pg_sequence q JOIN relation r ON r.oid = q.seqrelid
UNION ALL
SELECT 'constraint ' || to_jsonb(c)::text FROM pg_constraint c JOIN schema s ON s.oid = c.connamespace
UNION ALL
SELECT 'default ' || to_jsonb(d)::text FROM pg_attrdef d JOIN relation r ON r.oid = d.adrelid
UNION ALL
SELECT 'trigger ' || to_jsonb(t)::text FROM pg_trigger t JOIN relation r ON r.oid = t.tgrelid
UNION ALL
SELECT 'rule ' || to_jsonb(w)::text FROM pg_rewrite w JOIN relation r ON r.oid = w.ev_class
UNION ALL
SELECT 'policy ' || to_jsonb(p)::text FROM pg_policy p JOIN relation r ON r.oid = p.polrelid
UNION ALL
SELECT 'type ' || to_jsonb(t)::text FROM pg_type t JOIN schema s ON s.oid = t.typnamespace
UNION ALL
SELECT 'function ' || CASE WHEN p.prokind IN ('f', 'p') THEN pg_get_functiondef(p.oid) ELSE '' END
       || ' ' || (to_jsonb(p) - 'proargdefaults')::text
FROM pg_proc p JOIN function USING (oid)
UNION ALL
SELECT 'default privileges ' || to_jsonb(d)::text FROM pg_default_acl d JOIN schema s ON s.oid = d.defaclnamespace
UNION ALL
SELECT 'comment ' || to_jsonb(d)::text FROM pg_description d JOIN object o ON (o.classid, o.objid) = (d.classoid, d.objoid)
UNION ALL
SELECT 'initial privileges ' || to_jsonb(i)::text FROM pg_init_privs i JOIN object o ON (o.classid, o.objid) = (i.classoid, i.objoid)
UNION ALL
SELECT 'dependency ' || to_jsonb(d)::text FROM pg_depend d
WHERE (d.classid, d.objid) IN (SELECT o.classid, o.objid FROM object o)
   OR (d.refclassid, d.refobjid) IN (SELECT o.classid, o.objid FROM object o)
UNION ALL
SELECT 'shared dependency ' || to_jsonb(d)::text FROM pg_shdepend d
JOIN object o ON (o.classid, o.objid) = (d.classid, d.objid)
WHERE d.dbid = (SELECT b.oid FROM pg_database b WHERE b.datname = current_database())
