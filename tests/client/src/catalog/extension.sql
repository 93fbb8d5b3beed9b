-- The extension duroxide_queue, its members and what is inside them (columns, types of rows, rules of views), with no
-- OID: what is to be equal after an update and after a fresh install.
WITH RECURSIVE part (classid, objid) AS (
  SELECT d.classid, d.objid
  FROM pg_depend d JOIN pg_extension x ON x.oid = d.refobjid
  WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND x.extname = 'duroxide_queue'
  UNION
  SELECT d.classid, d.objid
  FROM pg_depend d JOIN part p ON (d.refclassid, d.refobjid) = (p.classid, p.objid)
  WHERE d.deptype IN ('i', 'a')
), relation AS (
  SELECT c.* FROM pg_class c JOIN part p ON (p.classid, p.objid) = ('pg_class'::regclass, c.oid)
)
SELECT 'extension ' || (to_jsonb(x) - ARRAY['oid', 'extowner', 'extnamespace'])::text || ' in ' || x.extnamespace::regnamespace
FROM pg_extension x WHERE x.extname = 'duroxide_queue'
UNION ALL
SELECT concat_ws(' ', 'part', i.type, i.identity)
FROM part p CROSS JOIN LATERAL pg_identify_object(p.classid, p.objid, 0) i
UNION ALL
SELECT concat_ws(' ', 'schema', n.nspname, pg_get_userbyid(n.nspowner), (SELECT array_agg(a ORDER BY a::text) FROM unnest(n.nspacl) a))
FROM pg_namespace n JOIN part p ON (p.classid, p.objid) = ('pg_namespace'::regclass, n.oid)
UNION ALL
SELECT concat_ws(' ', 'function', pg_get_functiondef(f.oid), pg_get_userbyid(f.proowner), f.prosupport, f.prosqlbody IS NULL,
                 f.procost, f.prorows, (SELECT array_agg(a ORDER BY a::text) FROM unnest(f.proacl) a))
FROM pg_proc f JOIN part p ON (p.classid, p.objid) = ('pg_proc'::regclass, f.oid)
UNION ALL
SELECT concat_ws(' ', 'relation', r.oid::regclass, r.relkind, r.relpersistence, r.relrowsecurity, r.relforcerowsecurity,
                 pg_get_userbyid(r.relowner), r.reloptions, (SELECT array_agg(a ORDER BY a::text) FROM unnest(r.relacl) a),
                 CASE WHEN r.relkind IN ('v', 'm') THEN pg_get_viewdef(r.oid) END,
                 CASE WHEN r.relkind IN ('i', 'I') THEN pg_get_indexdef(r.oid) END)
FROM relation r
UNION ALL
SELECT concat_ws(' ', 'column', a.attrelid::regclass, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
                 a.attidentity, a.attgenerated, a.attcollation::regcollation, a.attacl, pg_get_expr(d.adbin, d.adrelid))
FROM pg_attribute a JOIN relation r ON r.oid = a.attrelid
LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
WHERE a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT concat_ws(' ', 'comment', i.type, i.identity, c.description)
FROM pg_description c JOIN part p ON (p.classid, p.objid) = (c.classoid, c.objoid)
CROSS JOIN LATERAL pg_identify_object(c.classoid, c.objoid, c.objsubid) i
UNION ALL
SELECT 'comment extension ' || c.description
FROM pg_description c JOIN pg_extension x ON (c.classoid, c.objoid) = ('pg_extension'::regclass, x.oid)
WHERE x.extname = 'duroxide_queue'
UNION ALL
SELECT concat_ws(' ', 'initial privileges', i.type, i.identity, v.privtype, (SELECT array_agg(a ORDER BY a::text) FROM unnest(v.initprivs) a))
FROM pg_init_privs v JOIN part p ON (p.classid, p.objid) = (v.classoid, v.objoid)
CROSS JOIN LATERAL pg_identify_object(v.classoid, v.objoid, v.objsubid) i
UNION ALL
SELECT DISTINCT concat_ws(' ', 'dependency', i.type, i.identity, d.deptype, r.type, r.identity)
FROM pg_depend d JOIN part p ON (p.classid, p.objid) = (d.classid, d.objid)
CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, d.objsubid) i
CROSS JOIN LATERAL pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid) r
