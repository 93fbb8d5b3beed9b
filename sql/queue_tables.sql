-- The tables of a queue. Columns, types, defaults and keys are those of a duroxide-pg 0.1.38 schema,
-- which its client checks and reads; indexes are ours. Read by src/lifecycle/create.rs, which
-- fills in the schema's name.
--
--   instances            one row an orchestration, with its current execution and custom status
--   executions           one row a run of it: continue-as-new starts another
--   history              the events of each execution
--   orchestrator_queue   messages to instances; claimed together, under the lease of the instance
--   instance_locks       the lease of each claimed instance, and nothing else
--   worker_queue         activities to run; each claimed under a lease of its own
--   sessions             which worker a group of activities is bound to
--   kv_store, kv_delta   the key-value store as of the last execution's end, and what changed since
--   _duroxide_migrations what the client takes the schema for
--
-- Rows of the queues and of the leases live for moments, and what is left of them lies at the head of
-- the indexes that every claim starts at. So these tables are vacuumed early, with their indexes each time,
-- and not truncated: that takes a lock that a claim would wait for. Rows of instances and executions are
-- updated in place, for which their pages keep room.
--
-- Keys are compared byte by byte, whatever the database's collation: they are names, not words. One turn compares
-- keys some hundreds of times on its way through the indexes, and those outlive an upgrade of the C library.

CREATE TABLE {q}.instances (
  instance_id text COLLATE pg_catalog."C" NOT NULL PRIMARY KEY,
  orchestration_name text NOT NULL,
  orchestration_version text,
  current_execution_id bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  parent_instance_id text COLLATE pg_catalog."C",
  custom_status text,
  custom_status_version integer NOT NULL DEFAULT 0
) WITH (fillfactor = 80);

CREATE INDEX instances_parent_idx ON {q}.instances (parent_instance_id)
  WHERE parent_instance_id IS NOT NULL;

CREATE TABLE {q}.executions (
  instance_id text COLLATE pg_catalog."C" NOT NULL,
  execution_id bigint NOT NULL,
  status text NOT NULL DEFAULT 'Running',
  output text,
  started_at timestamptz NOT NULL,
  completed_at timestamptz,
  duroxide_version_major integer,
  duroxide_version_minor integer,
  duroxide_version_patch integer,
  PRIMARY KEY (instance_id, execution_id)
) WITH (fillfactor = 80);

CREATE TABLE {q}.history (
  instance_id text COLLATE pg_catalog."C" NOT NULL,
  execution_id bigint NOT NULL,
  event_id bigint NOT NULL,
  event_type text NOT NULL,
  event_data text NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (instance_id, execution_id, event_id)
);

CREATE TABLE {q}.orchestrator_queue (
  id bigserial NOT NULL PRIMARY KEY,
  instance_id text COLLATE pg_catalog."C" NOT NULL,
  work_item text NOT NULL,
  visible_at timestamptz NOT NULL,
  lock_token text COLLATE pg_catalog."C",
  locked_until bigint,
  created_at timestamptz NOT NULL,
  attempt_count integer NOT NULL DEFAULT 0
) WITH (vacuum_truncate = off, toast.vacuum_truncate = off, vacuum_index_cleanup = on,
  autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.01);

CREATE INDEX orchestrator_queue_instance_idx ON {q}.orchestrator_queue (instance_id);

CREATE TABLE {q}.worker_queue (
  id bigserial NOT NULL PRIMARY KEY,
  work_item text NOT NULL,
  visible_at timestamptz NOT NULL,
  lock_token text COLLATE pg_catalog."C",
  locked_until bigint,
  created_at timestamptz NOT NULL,
  attempt_count integer NOT NULL DEFAULT 0,
  instance_id text COLLATE pg_catalog."C",
  execution_id bigint,
  activity_id bigint,
  session_id text COLLATE pg_catalog."C",
  tag text
) WITH (vacuum_truncate = off, toast.vacuum_truncate = off, vacuum_index_cleanup = on,
  autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.01);

CREATE INDEX worker_queue_lock_token_idx ON {q}.worker_queue (lock_token)
  WHERE lock_token IS NOT NULL;
CREATE INDEX worker_queue_activity_idx ON {q}.worker_queue (instance_id, execution_id, activity_id);
CREATE INDEX worker_queue_session_idx ON {q}.worker_queue (session_id)
  WHERE session_id IS NOT NULL;

CREATE TABLE {q}.instance_locks (
  instance_id text COLLATE pg_catalog."C" NOT NULL PRIMARY KEY,
  lock_token text COLLATE pg_catalog."C" NOT NULL,
  locked_until bigint NOT NULL,
  locked_at bigint NOT NULL
) WITH (vacuum_truncate = off, toast.vacuum_truncate = off, vacuum_index_cleanup = on,
  autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.01);

CREATE UNIQUE INDEX instance_locks_lock_token_idx ON {q}.instance_locks (lock_token);

CREATE TABLE {q}.sessions (
  session_id text COLLATE pg_catalog."C" NOT NULL PRIMARY KEY,
  worker_id text NOT NULL,
  locked_until bigint NOT NULL,
  last_activity_at bigint NOT NULL
) WITH (vacuum_truncate = off, toast.vacuum_truncate = off, vacuum_index_cleanup = on,
  autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.01);

CREATE TABLE {q}.kv_store (
  instance_id text COLLATE pg_catalog."C" NOT NULL,
  key text COLLATE pg_catalog."C" NOT NULL,
  value text NOT NULL,
  execution_id bigint NOT NULL,
  last_updated_at_ms bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (instance_id, key)
);

CREATE TABLE {q}.kv_delta (
  instance_id text COLLATE pg_catalog."C" NOT NULL,
  key text COLLATE pg_catalog."C" NOT NULL,
  value text,
  last_updated_at_ms bigint NOT NULL,
  PRIMARY KEY (instance_id, key)
);

CREATE TABLE {q}._duroxide_migrations (
  version bigint NOT NULL PRIMARY KEY,
  name text NOT NULL,
  applied_at timestamptz DEFAULT CURRENT_TIMESTAMP
);

INSERT INTO {q}._duroxide_migrations (version, name) VALUES
  (1, '0001_initial_schema.sql'),
  (2, '0002_create_stored_procedures.sql'),
  (3, '0003_add_attempt_count.sql'),
  (4, '0004_update_stored_procedures_for_attempt_count.sql'),
  (5, '0005_add_visible_at_to_worker_queue.sql'),
  (6, '0006_use_rust_timestamps.sql'),
  (7, '0007_add_execution_state_support.sql'),
  (8, '0008_remove_execution_state.sql'),
  (9, '0009_add_activity_cancellation_support.sql'),
  (10, '0010_add_deletion_and_pruning_support.sql'),
  (11, '0011_fix_cancellation_ordering.sql'),
  (12, '0012_require_timestamps.sql'),
  (13, '0013_add_capability_filtering.sql'),
  (14, '0014_add_session_support.sql'),
  (15, '0015_add_custom_status.sql'),
  (16, '0016_add_activity_tags.sql'),
  (17, '0017_retry_orchestration_fetch_on_contention.sql'),
  (18, '0018_add_kv_store.sql'),
  (19, '0019_add_kv_last_updated.sql'),
  (20, '0020_add_kv_delta.sql'),
  (21, '0021_add_get_instance_stats.sql'),
  (23, '0023_partial_secondary_indexes.sql'),
  (25, '0025_fetch_orchestration_lease_at_claim.sql'),
  (26, '0026_serialize_orchestration_lock_mutations.sql');
