\echo Use "ALTER EXTENSION duroxide_queue UPDATE TO '0.2.0'" to load this file. \quit

/* From 0.1.0 to 0.2.0. Frozen once CHANGELOG.md gives 0.2.0 a date; until then it has to make of 0.1.0 what a fresh
   install of sql/duroxide_queue.sql makes. */

CREATE FUNCTION duroxide_queue.list_registries()
RETURNS TABLE (queue name, origin text, layout integer)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'list_registries_wrapper';
COMMENT ON FUNCTION duroxide_queue.list_registries() IS
  'What the registry of each queue says that the reader may read; nothing of one that is locked, or that could run its owner''s code.';

/* From the catalog, but for what only a queue's own registry says. A schema's owner decides what that is: it is read with the
   rights of its owner, and only where reading it runs nobody's code. */
CREATE OR REPLACE FUNCTION duroxide_queue.list_queues()
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

/* What a DBA watches: health, leases, stuck work and bloat of every queue that the reader may see. Plain
   CREATE throughout, and nothing from outside but duroxide_queue's own schema: the same text is the
   step that brings an older release here.

   Whose rights: a reader sees the queues on whose tables he has SELECT, and a member of pg_monitor sees
   all, though without lock tokens and without what PostgreSQL says of a payload. The rows are read with the
   rights of the owner of the tables and no others, as in src/observe/pass.rs, and only where the tables are
   such that reading them runs nobody's code; who reads is decided before that, with the reader's.

   Which clock: what is visible or expired is held against `at`, by default the server's clock. Leases are
   written by the callers' clocks (milliseconds of the Unix epoch). Where these disagree with the
   server's, ages and times left are off by as much; pass their time as `at` to see what they see. */

/* Runs no owner's code: catalogs only. What lacks the registry's plain table is no queue. */
CREATE FUNCTION duroxide_queue.readable_queues(one_schema oid DEFAULT NULL)
RETURNS TABLE (queue name, schema oid, owner oid, has_select boolean)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
  SELECT r.queue, r.schema, r.owner, r.has_select
  FROM (SELECT n.nspname AS queue, n.oid AS schema, registry.relowner AS owner,
               has_schema_privilege(n.oid, 'USAGE') IS TRUE
               AND coalesce((SELECT bool_and(has_table_privilege(c.oid, 'SELECT'))
                             FROM pg_class c
                             WHERE c.relnamespace = n.oid
                               AND c.relname IN ('orchestrator_queue', 'worker_queue', 'instance_locks', 'instances',
                                                 'executions', 'history', 'sessions')), false) AS has_select
        FROM pg_class registry
        JOIN pg_namespace n ON n.oid = registry.relnamespace
        WHERE registry.relname = '_duroxide_queue' AND registry.relkind = 'r'
          AND ($1 IS NULL OR registry.relnamespace = $1)) r
  WHERE r.has_select OR pg_has_role('pg_monitor', 'USAGE')
$$;
COMMENT ON FUNCTION duroxide_queue.readable_queues(oid) IS
  'The queues that the reader may see, or that of one schema: by SELECT on their tables, or as a member of pg_monitor.';

/* Every way in which an owner could have his own code run by a plain SELECT: views, foreign tables, row
   security, generated columns, columns of his own types, and functions of his own in an index or in
   statistics, which the planner evaluates. And the owner of the schema: he may rename it at any moment, which
   no lock keeps him from, and put another in its place, so he must have the rights that a reader's look has. */
CREATE FUNCTION duroxide_queue.queue_problem(schema oid)
RETURNS text
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
  WITH expected (table_name, column_name, type) AS (
    VALUES ('orchestrator_queue'::name, 'id'::name, 'bigint'::regtype), ('orchestrator_queue', 'instance_id', 'text'),
           ('orchestrator_queue', 'work_item', 'text'), ('orchestrator_queue', 'visible_at', 'timestamptz'),
           ('orchestrator_queue', 'lock_token', 'text'), ('orchestrator_queue', 'locked_until', 'bigint'),
           ('orchestrator_queue', 'created_at', 'timestamptz'), ('orchestrator_queue', 'attempt_count', 'integer'),
           ('worker_queue', 'id', 'bigint'), ('worker_queue', 'work_item', 'text'),
           ('worker_queue', 'visible_at', 'timestamptz'), ('worker_queue', 'lock_token', 'text'),
           ('worker_queue', 'locked_until', 'bigint'), ('worker_queue', 'created_at', 'timestamptz'),
           ('worker_queue', 'attempt_count', 'integer'), ('worker_queue', 'instance_id', 'text'),
           ('worker_queue', 'session_id', 'text'), ('worker_queue', 'tag', 'text'),
           ('instance_locks', 'instance_id', 'text'), ('instance_locks', 'lock_token', 'text'),
           ('instance_locks', 'locked_until', 'bigint'), ('instance_locks', 'locked_at', 'bigint'),
           ('instances', 'instance_id', 'text'), ('instances', 'current_execution_id', 'bigint'),
           ('executions', 'instance_id', 'text'), ('executions', 'execution_id', 'bigint'),
           ('executions', 'duroxide_version_major', 'integer'), ('executions', 'duroxide_version_minor', 'integer'),
           ('executions', 'duroxide_version_patch', 'integer'),
           ('history', 'instance_id', 'text'), ('history', 'execution_id', 'bigint'), ('history', 'event_id', 'bigint'),
           ('history', 'event_data', 'text'),
           ('sessions', 'session_id', 'text'), ('sessions', 'worker_id', 'text'), ('sessions', 'locked_until', 'bigint'),
           ('dead_letters', 'id', 'bigint'), ('_duroxide_migrations', 'applied_at', 'timestamptz')
  ), tables AS (
    SELECT e.table_name, c.oid, c.relowner, c.relkind, c.relrowsecurity
    FROM (SELECT DISTINCT table_name FROM expected) e
    LEFT JOIN pg_class c ON c.relname = e.table_name AND c.relnamespace = queue_problem.schema
  ), problems (rank, problem) AS (
    SELECT 1, 'table ' || t.table_name || ' is missing' FROM tables t WHERE t.oid IS NULL
    UNION ALL
    SELECT 2, t.table_name || ' is not a plain table' FROM tables t WHERE t.relkind <> 'r'
    UNION ALL
    SELECT 3, 'its tables belong to different owners'
    FROM tables t
    JOIN pg_class registry ON registry.relname = '_duroxide_queue' AND registry.relnamespace = queue_problem.schema
    WHERE t.relowner <> registry.relowner
    UNION ALL
    SELECT 3, 'the owner of the schema has not the rights of the owner of its tables'
    FROM pg_class registry
    JOIN pg_namespace n ON n.oid = registry.relnamespace
    JOIN pg_database d ON d.datname = current_database()
    WHERE registry.relname = '_duroxide_queue' AND n.oid = queue_problem.schema
      AND NOT pg_has_role(CASE WHEN n.nspowner = 'pg_database_owner'::regrole THEN d.datdba ELSE n.nspowner END,
                          registry.relowner, 'USAGE')
    UNION ALL
    SELECT 4, 'table ' || t.table_name || ' has row security' FROM tables t WHERE t.relrowsecurity
    UNION ALL
    SELECT 5, 'column ' || e.column_name || ' of ' || e.table_name || ' is missing, or not a plain column of type ' || e.type
    FROM expected e
    JOIN tables t USING (table_name)
    LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = e.column_name AND NOT a.attisdropped
                            AND a.atttypid = e.type AND a.attgenerated = ''
    WHERE t.relkind = 'r' AND a.attname IS NULL
    UNION ALL
    SELECT 6, 'an index of ' || t.table_name || ' uses functions that are not PostgreSQL''s own'
    FROM tables t
    JOIN pg_index i ON i.indrelid = t.oid
    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                    AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass)
    UNION ALL
    SELECT 7, 'statistics of ' || t.table_name || ' use functions that are not PostgreSQL''s own'
    FROM tables t
    JOIN pg_statistic_ext x ON x.stxrelid = t.oid
    JOIN pg_depend d ON d.classid = 'pg_statistic_ext'::regclass AND d.objid = x.oid
                    AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass)
  )
  SELECT p.problem FROM problems p ORDER BY p.rank, p.problem COLLATE "C" LIMIT 1
$$;
COMMENT ON FUNCTION duroxide_queue.queue_problem(oid) IS
  'Why the rows of a queue cannot be read safely, as far as the catalog tells; NULL if they can. Takes the schema''s OID.';

CREATE FUNCTION duroxide_queue.why_undeliverable(work_item text)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'why_undeliverable_wrapper';
COMMENT ON FUNCTION duroxide_queue.why_undeliverable(text) IS
  'Why a text could never be delivered as a message: what redrive would refuse it for. NULL if it can be.';

CREATE FUNCTION duroxide_queue.list_queue_health(at timestamptz DEFAULT clock_timestamp())
RETURNS TABLE (
  queue name, kind text, ready bigint, waiting bigint, scheduled bigint, leased bigint, expired bigint,
  oldest_claimable_age interval, highest_attempt integer, dead_letters bigint, enqueued_total bigint,
  removed_total bigint, removed_per_second double precision, counted_since timestamptz, problem text
)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'list_queue_health_wrapper';
COMMENT ON FUNCTION duroxide_queue.list_queue_health(timestamptz) IS
  'What the view queue_health shows, as of a time: the server''s unless another is given.';

CREATE FUNCTION duroxide_queue.list_leases(at timestamptz DEFAULT clock_timestamp())
RETURNS TABLE (
  queue name, kind text, instance_id text, work_item_id bigint, lock_token text, claimed_at timestamptz,
  ends_at timestamptz, time_left interval, attempt integer
)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'list_leases_wrapper';
COMMENT ON FUNCTION duroxide_queue.list_leases(timestamptz) IS
  'What the view leases shows, as of a time: the server''s unless another is given.';

CREATE FUNCTION duroxide_queue.list_stuck(ready_before timestamptz, attempts integer, at timestamptz)
RETURNS TABLE (
  queue name, kind text, instance_id text, id bigint, messages bigint, ready_since timestamptz, age interval,
  highest_attempt integer, reason text, detail text
)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'list_stuck_wrapper';
COMMENT ON FUNCTION duroxide_queue.list_stuck(timestamptz, integer, timestamptz) IS
  'What the function stuck shows, with a time in place of an age.';

CREATE FUNCTION duroxide_queue.stuck(
  older_than interval DEFAULT '5 minutes', attempts integer DEFAULT 5, at timestamptz DEFAULT clock_timestamp()
)
RETURNS TABLE (
  queue name, kind text, instance_id text, id bigint, messages bigint, ready_since timestamptz, age interval,
  highest_attempt integer, reason text, detail text
)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT s.* FROM duroxide_queue.list_stuck($3 - $1, $2, $3) s $$;
COMMENT ON FUNCTION duroxide_queue.stuck(interval, integer, timestamptz) IS
  'What has been ready for longer than an interval, or claimed at least so many times, with the reason if it can be told.';

CREATE VIEW duroxide_queue.queue_health AS
SELECT h.queue, h.kind, h.ready, h.waiting, h.scheduled, h.leased, h.expired, h.oldest_claimable_age, h.highest_attempt,
       h.dead_letters, h.enqueued_total, h.removed_total, h.removed_per_second, h.counted_since, h.problem
FROM duroxide_queue.list_queue_health() h;
COMMENT ON VIEW duroxide_queue.queue_health IS
  'Two rows for each queue that the reader may see: how its messages and its work items stand.';
COMMENT ON COLUMN duroxide_queue.queue_health.queue IS 'The schema that the queue lives in.';
COMMENT ON COLUMN duroxide_queue.queue_health.kind IS 'orchestration: messages to instances. work item: activities to run.';
COMMENT ON COLUMN duroxide_queue.queue_health.ready IS 'Could be claimed now and never was, or was given back.';
COMMENT ON COLUMN duroxide_queue.queue_health.waiting IS 'Visible messages of an instance that is under a live lease: they come with its next turn. 0 for work items.';
COMMENT ON COLUMN duroxide_queue.queue_health.scheduled IS 'Not visible before some time in the future, and so not old either.';
COMMENT ON COLUMN duroxide_queue.queue_health.leased IS 'Claimed, under a lease that lasts.';
COMMENT ON COLUMN duroxide_queue.queue_health.expired IS 'Claimed, under a lease that is over: to be claimed again.';
COMMENT ON COLUMN duroxide_queue.queue_health.oldest_claimable_age IS 'How long the first of what is ready or expired has been so: since it became visible, or since its lease ended. NULL if there is none.';
COMMENT ON COLUMN duroxide_queue.queue_health.highest_attempt IS 'The most times that one has been claimed, among the claimed and, of the unclaimed, the thousand first and the thousand last that are visible and the thousand next that will be.';
COMMENT ON COLUMN duroxide_queue.queue_health.dead_letters IS 'Messages that could never be delivered. 0 for work items, which are delivered as text.';
COMMENT ON COLUMN duroxide_queue.queue_health.enqueued_total IS 'Rows inserted since counted_since, as PostgreSQL''s statistics have it.';
COMMENT ON COLUMN duroxide_queue.queue_health.removed_total IS 'Rows deleted since counted_since: acknowledged, for the most part.';
COMMENT ON COLUMN duroxide_queue.queue_health.removed_per_second IS 'removed_total over the time since counted_since: the mean turnover. NULL if that time is not known.';
COMMENT ON COLUMN duroxide_queue.queue_health.counted_since IS 'When the statistics were last reset, or the queue was made if that is later. A crash empties them without leaving a time.';
COMMENT ON COLUMN duroxide_queue.queue_health.problem IS 'Why there are no figures of this queue; NULL if there are.';
GRANT SELECT ON duroxide_queue.queue_health TO PUBLIC;

CREATE VIEW duroxide_queue.leases AS
SELECT l.queue, l.kind, l.instance_id, l.work_item_id, l.lock_token, l.claimed_at, l.ends_at, l.time_left, l.attempt
FROM duroxide_queue.list_leases() l;
COMMENT ON VIEW duroxide_queue.leases IS
  'Every lease of the queues that the reader may see, also those that are over and have not been claimed again.';
COMMENT ON COLUMN duroxide_queue.leases.queue IS 'The schema that the queue lives in.';
COMMENT ON COLUMN duroxide_queue.leases.kind IS 'orchestration: of an instance with its messages. work item: of an activity.';
COMMENT ON COLUMN duroxide_queue.leases.instance_id IS 'The instance that is leased, or that the work item belongs to; NULL where the item does not say.';
COMMENT ON COLUMN duroxide_queue.leases.work_item_id IS 'Id of the work item; NULL for an instance.';
COMMENT ON COLUMN duroxide_queue.leases.lock_token IS 'The name of the claim; NULL for a reader without SELECT on the queue''s tables.';
COMMENT ON COLUMN duroxide_queue.leases.claimed_at IS 'When it was claimed, by the holder''s clock. NULL for work items, which do not say.';
COMMENT ON COLUMN duroxide_queue.leases.ends_at IS 'When the lease ends, by the holder''s clock. Beyond the year 9999 it is shown as that year; NULL if it never ends.';
COMMENT ON COLUMN duroxide_queue.leases.time_left IS 'From now, by the server''s clock, to ends_at; negative when the lease is over.';
COMMENT ON COLUMN duroxide_queue.leases.attempt IS 'How many times it has been claimed, this time included; NULL for an instance without messages.';
GRANT SELECT ON duroxide_queue.leases TO PUBLIC;

CREATE VIEW duroxide_queue.stuck AS
SELECT s.queue, s.kind, s.instance_id, s.id, s.messages, s.ready_since, s.age, s.highest_attempt, s.reason, s.detail
FROM duroxide_queue.stuck() s;
COMMENT ON VIEW duroxide_queue.stuck IS
  'What has been ready for more than 5 minutes or claimed at least 5 times, up to a thousand of each kind a queue. The function stuck takes other limits.';
COMMENT ON COLUMN duroxide_queue.stuck.queue IS 'The schema that the queue lives in.';
COMMENT ON COLUMN duroxide_queue.stuck.kind IS 'orchestration: an instance with its messages. work item: an activity.';
COMMENT ON COLUMN duroxide_queue.stuck.instance_id IS 'The instance, or the one that the work item belongs to.';
COMMENT ON COLUMN duroxide_queue.stuck.id IS 'Id of the work item, or of the instance''s message that became ready first.';
COMMENT ON COLUMN duroxide_queue.stuck.messages IS 'How many messages of the instance are stuck; 1 for a work item.';
COMMENT ON COLUMN duroxide_queue.stuck.ready_since IS 'When the first became visible, or its lease ended if that is why it is ready. In the future for one that was given back with a delay.';
COMMENT ON COLUMN duroxide_queue.stuck.age IS 'From ready_since to now by the server''s clock; NULL if that is in the future.';
COMMENT ON COLUMN duroxide_queue.stuck.highest_attempt IS 'The most times that one of them has been claimed.';
COMMENT ON COLUMN duroxide_queue.stuck.reason IS 'poisoned, leased, contended, endless lease, scheduled, version, session, tag, expired or unclaimed, the first that applies: see docs/monitoring.md.';
COMMENT ON COLUMN duroxide_queue.stuck.detail IS 'What the reason rests on: a holder, a time, a version, a session, a tag.';
GRANT SELECT ON duroxide_queue.stuck TO PUBLIC;

/* From the catalog and the statistics alone, so that no lock on a table is in the way: sizes are those that
   the last VACUUM or ANALYZE found. */
CREATE VIEW duroxide_queue.bloat AS
WITH horizon AS (
  SELECT h.holder, h.detail, h.since, h.age
  FROM (SELECT CASE WHEN w.pid IS NULL THEN 'session' ELSE 'standby' END AS holder,
               concat_ws(' ', 'pid', a.pid, a.usename, a.application_name) AS detail,
               a.xact_start AS since,
               greatest(age(a.backend_xmin), age(a.backend_xid)) AS age
        FROM pg_stat_activity a
        LEFT JOIN pg_stat_get_wal_senders() w ON w.pid = a.pid
        WHERE (a.datid = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()) OR a.datid IS NULL)
          AND a.pid <> pg_backend_pid()
          AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum v WHERE v.pid = a.pid)
        UNION ALL
        SELECT 'prepared transaction', p.gid, p.prepared, age(p.transaction)
        FROM pg_prepared_xacts p WHERE p.database = current_database()
        UNION ALL
        SELECT 'replication slot', s.slot_name, NULL, age(s.xmin)
        FROM pg_replication_slots s) h
  WHERE h.age IS NOT NULL
  ORDER BY h.age DESC, h.since
  LIMIT 1
)
SELECT q.queue, c.relname AS table_name,
       pg_stat_get_live_tuples(c.oid) AS live_rows,
       pg_stat_get_dead_tuples(c.oid) AS dead_rows,
       c.relpages::bigint * current_setting('block_size')::bigint AS table_bytes,
       (SELECT coalesce(sum(i.relpages), 0)::bigint * current_setting('block_size')::bigint
        FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid WHERE x.indrelid = c.oid) AS index_bytes,
       pg_stat_get_last_vacuum_time(c.oid) AS last_vacuum,
       pg_stat_get_last_autovacuum_time(c.oid) AS last_autovacuum,
       pg_stat_get_autovacuum_count(c.oid) AS autovacuum_count,
       h.age AS oldest_xmin_age, h.holder AS oldest_holder, h.detail AS oldest_holder_detail, h.since AS oldest_holder_since
FROM duroxide_queue.readable_queues() q
JOIN pg_class c ON c.relnamespace = q.schema AND c.relkind = 'r'
  AND c.relname IN ('orchestrator_queue', 'worker_queue', 'instance_locks', 'instances', 'executions', 'history',
                    'sessions', 'kv_store', 'kv_delta', 'dead_letters')
LEFT JOIN horizon h ON true;
COMMENT ON VIEW duroxide_queue.bloat IS
  'The dead rows of each table of the queues that the reader may see, and the oldest transaction that keeps VACUUM from removing them.';
COMMENT ON COLUMN duroxide_queue.bloat.queue IS 'The schema that the queue lives in.';
COMMENT ON COLUMN duroxide_queue.bloat.table_name IS 'The table.';
COMMENT ON COLUMN duroxide_queue.bloat.live_rows IS 'Rows that are there, as PostgreSQL''s statistics estimate them.';
COMMENT ON COLUMN duroxide_queue.bloat.dead_rows IS 'Rows that are gone and still take space, likewise.';
COMMENT ON COLUMN duroxide_queue.bloat.table_bytes IS 'Size of the table without TOAST and indexes when VACUUM or ANALYZE last looked.';
COMMENT ON COLUMN duroxide_queue.bloat.index_bytes IS 'Size of its indexes, likewise.';
COMMENT ON COLUMN duroxide_queue.bloat.last_vacuum IS 'When somebody last ran VACUUM on it.';
COMMENT ON COLUMN duroxide_queue.bloat.last_autovacuum IS 'When autovacuum last did.';
COMMENT ON COLUMN duroxide_queue.bloat.autovacuum_count IS 'How often autovacuum did.';
COMMENT ON COLUMN duroxide_queue.bloat.oldest_xmin_age IS 'How many transactions ago the oldest began that may still see dead rows of this database; the same for every table. NULL if there is none but the reader''s own.';
COMMENT ON COLUMN duroxide_queue.bloat.oldest_holder IS 'What it is: session, standby, prepared transaction or replication slot.';
COMMENT ON COLUMN duroxide_queue.bloat.oldest_holder_detail IS 'Which one: process id, role and application, or name.';
COMMENT ON COLUMN duroxide_queue.bloat.oldest_holder_since IS 'When its transaction began. NULL for a replication slot, and for a reader who may not see other sessions.';
GRANT SELECT ON duroxide_queue.bloat TO PUBLIC;
