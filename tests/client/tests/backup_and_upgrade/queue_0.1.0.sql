-- A queue as version 0.1.0 of the extension made it, with a live load (fill.sql), as pg_dump 15 wrote it: without the
-- extension itself and without pg_dump's own comments. Never to be changed: queues like it exist.


SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE SCHEMA made;

CREATE FUNCTION made.abandon_orchestration_item(p_lock_token text, p_now_ms bigint, p_delay_ms bigint DEFAULT NULL::bigint, p_ignore_attempt boolean DEFAULT false) RETURNS text
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'abandon_orchestration_item_wrapper';
ALTER FUNCTION made.abandon_orchestration_item(p_lock_token text, p_now_ms bigint, p_delay_ms bigint, p_ignore_attempt boolean) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.abandon_orchestration_item(p_lock_token text, p_now_ms bigint, p_delay_ms bigint, p_ignore_attempt boolean) IS 'Gives a claimed instance back, at once or visible again after a delay; returns its id.';

CREATE FUNCTION made.abandon_work_item(p_lock_token text, p_now_ms bigint, p_delay_ms bigint DEFAULT NULL::bigint, p_ignore_attempt boolean DEFAULT false) RETURNS void
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'abandon_work_item_wrapper';
ALTER FUNCTION made.abandon_work_item(p_lock_token text, p_now_ms bigint, p_delay_ms bigint, p_ignore_attempt boolean) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.abandon_work_item(p_lock_token text, p_now_ms bigint, p_delay_ms bigint, p_ignore_attempt boolean) IS 'Gives a claimed work item back, visible again now or after a delay.';

CREATE FUNCTION made.ack_orchestration_item(p_lock_token text, p_now_ms bigint, p_execution_id bigint, p_history_delta jsonb, p_worker_items jsonb, p_orchestrator_items jsonb, p_metadata jsonb, p_cancelled_activities jsonb DEFAULT '[]'::jsonb) RETURNS void
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'ack_orchestration_item_wrapper';
ALTER FUNCTION made.ack_orchestration_item(p_lock_token text, p_now_ms bigint, p_execution_id bigint, p_history_delta jsonb, p_worker_items jsonb, p_orchestrator_items jsonb, p_metadata jsonb, p_cancelled_activities jsonb) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.ack_orchestration_item(p_lock_token text, p_now_ms bigint, p_execution_id bigint, p_history_delta jsonb, p_worker_items jsonb, p_orchestrator_items jsonb, p_metadata jsonb, p_cancelled_activities jsonb) IS 'Acknowledges a turn: writes its outcome and consumes its messages and its lease, all or nothing.';

CREATE FUNCTION made.ack_worker(p_lock_token text, p_instance_id text DEFAULT NULL::text, p_completion_json text DEFAULT NULL::text, p_now_ms bigint DEFAULT NULL::bigint) RETURNS void
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'ack_worker_wrapper';
ALTER FUNCTION made.ack_worker(p_lock_token text, p_instance_id text, p_completion_json text, p_now_ms bigint) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.ack_worker(p_lock_token text, p_instance_id text, p_completion_json text, p_now_ms bigint) IS 'Acknowledges a work item and sends its completion.';

CREATE FUNCTION made.append_history(p_instance_id text, p_execution_id bigint, p_events jsonb) RETURNS void
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'append_history_wrapper';
ALTER FUNCTION made.append_history(p_instance_id text, p_execution_id bigint, p_events jsonb) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.append_history(p_instance_id text, p_execution_id bigint, p_events jsonb) IS 'Appends events to the history of an execution; an event that is there already is left as it was.';

CREATE FUNCTION made.cleanup_orphaned_sessions(p_now_ms bigint) RETURNS bigint
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'cleanup_orphaned_sessions_wrapper';
ALTER FUNCTION made.cleanup_orphaned_sessions(p_now_ms bigint) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.cleanup_orphaned_sessions(p_now_ms bigint) IS 'Removes expired sessions without work items; returns how many.';

CREATE FUNCTION made.cleanup_schema() RETURNS void
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'cleanup_schema_wrapper';
ALTER FUNCTION made.cleanup_schema() DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.cleanup_schema() IS 'Drops the tables and functions of the queue.';

CREATE FUNCTION made.delete_instances_atomic(p_instance_ids text[], p_force boolean) RETURNS TABLE(instances_deleted bigint, executions_deleted bigint, events_deleted bigint, queue_messages_deleted bigint)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'delete_instances_atomic_wrapper';
ALTER FUNCTION made.delete_instances_atomic(p_instance_ids text[], p_force boolean) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.delete_instances_atomic(p_instance_ids text[], p_force boolean) IS 'Deletes instances with everything that belongs to them, all or none.';

CREATE FUNCTION made.enqueue_orchestrator_work(p_instance_id text, p_work_item text, p_visible_at timestamp with time zone, p_orchestration_name text DEFAULT NULL::text, p_orchestration_version text DEFAULT NULL::text, p_execution_id bigint DEFAULT NULL::bigint) RETURNS void
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'enqueue_orchestrator_work_wrapper';
ALTER FUNCTION made.enqueue_orchestrator_work(p_instance_id text, p_work_item text, p_visible_at timestamp with time zone, p_orchestration_name text, p_orchestration_version text, p_execution_id bigint) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.enqueue_orchestrator_work(p_instance_id text, p_work_item text, p_visible_at timestamp with time zone, p_orchestration_name text, p_orchestration_version text, p_execution_id bigint) IS 'Enqueues a message for an instance.';

CREATE FUNCTION made.enqueue_worker_work(p_work_item text, p_now_ms bigint, p_instance_id text DEFAULT NULL::text, p_execution_id bigint DEFAULT NULL::bigint, p_activity_id bigint DEFAULT NULL::bigint, p_session_id text DEFAULT NULL::text, p_tag text DEFAULT NULL::text) RETURNS void
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'enqueue_worker_work_wrapper';
ALTER FUNCTION made.enqueue_worker_work(p_work_item text, p_now_ms bigint, p_instance_id text, p_execution_id bigint, p_activity_id bigint, p_session_id text, p_tag text) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.enqueue_worker_work(p_work_item text, p_now_ms bigint, p_instance_id text, p_execution_id bigint, p_activity_id bigint, p_session_id text, p_tag text) IS 'Enqueues a work item.';

CREATE FUNCTION made.fetch_history(p_instance_id text) RETURNS TABLE(out_event_data text)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'fetch_history_wrapper';
ALTER FUNCTION made.fetch_history(p_instance_id text) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.fetch_history(p_instance_id text) IS 'The events of the latest execution of an instance, in order.';

CREATE FUNCTION made.fetch_history_with_execution(p_instance_id text, p_execution_id bigint) RETURNS TABLE(out_event_data text)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'fetch_history_with_execution_wrapper';
ALTER FUNCTION made.fetch_history_with_execution(p_instance_id text, p_execution_id bigint) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.fetch_history_with_execution(p_instance_id text, p_execution_id bigint) IS 'The events of one execution, in order.';

CREATE FUNCTION made.fetch_orchestration_item(p_now_ms bigint, p_lock_timeout_ms bigint, p_min_version_packed bigint DEFAULT NULL::bigint, p_max_version_packed bigint DEFAULT NULL::bigint) RETURNS TABLE(out_instance_id text, out_orchestration_name text, out_orchestration_version text, out_execution_id bigint, out_history jsonb, out_messages jsonb, out_lock_token text, out_attempt_count integer, out_kv_snapshot jsonb)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'fetch_orchestration_item_wrapper';
ALTER FUNCTION made.fetch_orchestration_item(p_now_ms bigint, p_lock_timeout_ms bigint, p_min_version_packed bigint, p_max_version_packed bigint) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.fetch_orchestration_item(p_now_ms bigint, p_lock_timeout_ms bigint, p_min_version_packed bigint, p_max_version_packed bigint) IS 'Claims the first free instance with all its visible messages under a lease; no row when there is none.';

CREATE FUNCTION made.fetch_work_item(p_now_ms bigint, p_lock_timeout_ms bigint, p_owner_id text DEFAULT NULL::text, p_session_lock_timeout_ms bigint DEFAULT NULL::bigint, p_tag_filter text[] DEFAULT NULL::text[], p_tag_mode text DEFAULT 'default_only'::text) RETURNS TABLE(out_work_item text, out_lock_token text, out_attempt_count integer)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'fetch_work_item_wrapper';
ALTER FUNCTION made.fetch_work_item(p_now_ms bigint, p_lock_timeout_ms bigint, p_owner_id text, p_session_lock_timeout_ms bigint, p_tag_filter text[], p_tag_mode text) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.fetch_work_item(p_now_ms bigint, p_lock_timeout_ms bigint, p_owner_id text, p_session_lock_timeout_ms bigint, p_tag_filter text[], p_tag_mode text) IS 'Claims the first free work item under a lease; no row when there is none.';

CREATE FUNCTION made.get_custom_status(p_instance_id text, p_last_seen_version bigint) RETURNS TABLE(out_custom_status text, out_custom_status_version bigint)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'get_custom_status_wrapper';
ALTER FUNCTION made.get_custom_status(p_instance_id text, p_last_seen_version bigint) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.get_custom_status(p_instance_id text, p_last_seen_version bigint) IS 'The custom status of an instance, if it has changed since the version last seen.';

CREATE FUNCTION made.get_execution_info(p_instance_id text, p_execution_id bigint) RETURNS TABLE(execution_id bigint, status text, output text, started_at timestamp with time zone, completed_at timestamp with time zone, event_count bigint)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'get_execution_info_wrapper';
ALTER FUNCTION made.get_execution_info(p_instance_id text, p_execution_id bigint) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.get_execution_info(p_instance_id text, p_execution_id bigint) IS 'One execution, with the number of its events.';

CREATE FUNCTION made.get_instance_info(p_instance_id text) RETURNS TABLE(instance_id text, orchestration_name text, orchestration_version text, current_execution_id bigint, created_at timestamp with time zone, updated_at timestamp with time zone, status text, output text, parent_instance_id text)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'get_instance_info_wrapper';
ALTER FUNCTION made.get_instance_info(p_instance_id text) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.get_instance_info(p_instance_id text) IS 'One instance, with the state of its current execution.';

CREATE FUNCTION made.get_instance_stats(p_instance text) RETURNS TABLE(out_found boolean, out_history_event_count bigint, out_history_size_bytes bigint, out_queue_pending_count bigint, out_kv_user_key_count bigint, out_kv_total_value_bytes bigint)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'get_instance_stats_wrapper';
ALTER FUNCTION made.get_instance_stats(p_instance text) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.get_instance_stats(p_instance text) IS 'Sizes of an instance: history, carried-forward events, key-value store.';

CREATE FUNCTION made.get_kv_all_values(p_instance text) RETURNS TABLE(out_key text, out_value text)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'get_kv_all_values_wrapper';
ALTER FUNCTION made.get_kv_all_values(p_instance text) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.get_kv_all_values(p_instance text) IS 'Every key of an instance with its value.';

CREATE FUNCTION made.get_kv_value(p_instance text, p_key text) RETURNS TABLE(out_value text, out_found boolean)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'get_kv_value_wrapper';
ALTER FUNCTION made.get_kv_value(p_instance text, p_key text) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.get_kv_value(p_instance text, p_key text) IS 'The value of one key of an instance, and whether there is one.';

CREATE FUNCTION made.get_parent_id(p_instance_id text) RETURNS text
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'get_parent_id_wrapper';
ALTER FUNCTION made.get_parent_id(p_instance_id text) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.get_parent_id(p_instance_id text) IS 'The parent of an instance, NULL for one at the top.';

CREATE FUNCTION made.get_queue_depths(p_now_ms bigint) RETURNS TABLE(orchestrator_queue bigint, worker_queue bigint)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'get_queue_depths_wrapper';
ALTER FUNCTION made.get_queue_depths(p_now_ms bigint) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.get_queue_depths(p_now_ms bigint) IS 'Messages and work items that are visible and not under a live lease.';

CREATE FUNCTION made.get_system_metrics() RETURNS TABLE(total_instances bigint, total_executions bigint, running_instances bigint, completed_instances bigint, failed_instances bigint, total_events bigint)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'get_system_metrics_wrapper';
ALTER FUNCTION made.get_system_metrics() DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.get_system_metrics() IS 'Counts of instances, executions and events over the whole queue.';

CREATE FUNCTION made.latest_execution_id(p_instance_id text) RETURNS bigint
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'latest_execution_id_wrapper';
ALTER FUNCTION made.latest_execution_id(p_instance_id text) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.latest_execution_id(p_instance_id text) IS 'The current execution of an instance.';

CREATE FUNCTION made.list_children(p_instance_id text) RETURNS TABLE(child_instance_id text)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'list_children_wrapper';
ALTER FUNCTION made.list_children(p_instance_id text) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.list_children(p_instance_id text) IS 'The sub-orchestrations of an instance, the eldest first.';

CREATE FUNCTION made.list_executions(p_instance_id text) RETURNS TABLE(execution_id bigint)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'list_executions_wrapper';
ALTER FUNCTION made.list_executions(p_instance_id text) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.list_executions(p_instance_id text) IS 'The executions of an instance, in order.';

CREATE FUNCTION made.list_instances() RETURNS TABLE(instance_id text)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'list_instances_wrapper';
ALTER FUNCTION made.list_instances() DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.list_instances() IS 'All instances, the youngest first.';

CREATE FUNCTION made.list_instances_by_status(p_status text) RETURNS TABLE(instance_id text)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'list_instances_by_status_wrapper';
ALTER FUNCTION made.list_instances_by_status(p_status text) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.list_instances_by_status(p_status text) IS 'The instances whose current execution has a status, the youngest first.';

CREATE FUNCTION made.prune_executions(p_instance_id text, p_keep_last integer DEFAULT NULL::integer, p_completed_before_ms bigint DEFAULT NULL::bigint) RETURNS TABLE(instances_processed bigint, executions_deleted bigint, events_deleted bigint)
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'prune_executions_wrapper';
ALTER FUNCTION made.prune_executions(p_instance_id text, p_keep_last integer, p_completed_before_ms bigint) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.prune_executions(p_instance_id text, p_keep_last integer, p_completed_before_ms bigint) IS 'Deletes old executions of an instance with their history, never the current one or one that runs.';

CREATE FUNCTION made.renew_orchestration_item_lock(p_lock_token text, p_now_ms bigint, p_extend_secs bigint) RETURNS void
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'renew_orchestration_item_lock_wrapper';
ALTER FUNCTION made.renew_orchestration_item_lock(p_lock_token text, p_now_ms bigint, p_extend_secs bigint) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.renew_orchestration_item_lock(p_lock_token text, p_now_ms bigint, p_extend_secs bigint) IS 'Extends the lease of a claimed instance, never to an earlier end.';

CREATE FUNCTION made.renew_session_lock(p_owner_ids text[], p_now_ms bigint, p_extend_ms bigint, p_idle_timeout_ms bigint) RETURNS bigint
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'renew_session_lock_wrapper';
ALTER FUNCTION made.renew_session_lock(p_owner_ids text[], p_now_ms bigint, p_extend_ms bigint, p_idle_timeout_ms bigint) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.renew_session_lock(p_owner_ids text[], p_now_ms bigint, p_extend_ms bigint, p_idle_timeout_ms bigint) IS 'Extends the live sessions of some owners; returns how many.';

CREATE FUNCTION made.renew_work_item_lock(p_lock_token text, p_now_ms bigint, p_extend_secs bigint) RETURNS void
    LANGUAGE c
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS '$libdir/duroxide_queue', 'renew_work_item_lock_wrapper';
ALTER FUNCTION made.renew_work_item_lock(p_lock_token text, p_now_ms bigint, p_extend_secs bigint) DEPENDS ON EXTENSION duroxide_queue;

COMMENT ON FUNCTION made.renew_work_item_lock(p_lock_token text, p_now_ms bigint, p_extend_secs bigint) IS 'Extends the lease of a claimed work item, never to an earlier end.';

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE made._duroxide_migrations (
    version bigint NOT NULL,
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP
);

COMMENT ON TABLE made._duroxide_migrations IS 'The migration level that clients of duroxide-pg take the schema for.';

CREATE TABLE made._duroxide_queue (
    origin text NOT NULL,
    layout integer NOT NULL,
    made_schema boolean NOT NULL,
    replaced_functions text[] NOT NULL,
    CONSTRAINT _duroxide_queue_origin_check CHECK ((origin = ANY (ARRAY['created'::text, 'adopted'::text])))
);

COMMENT ON TABLE made._duroxide_queue IS 'One row: how the extension duroxide_queue came to serve this schema, and what it replaced here.';

CREATE TABLE made.dead_letters (
    id bigint NOT NULL,
    message_id bigint NOT NULL,
    instance_id text NOT NULL,
    work_item text NOT NULL,
    visible_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    attempt_count integer NOT NULL,
    buried_at timestamp with time zone NOT NULL,
    sqlstate text NOT NULL,
    reason text NOT NULL
);

COMMENT ON TABLE made.dead_letters IS 'Messages that could never be delivered, taken out of the queue with the reason.';

ALTER TABLE made.dead_letters ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME made.dead_letters_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE made.executions (
    instance_id text NOT NULL,
    execution_id bigint NOT NULL,
    status text DEFAULT 'Running'::text NOT NULL,
    output text,
    started_at timestamp with time zone NOT NULL,
    completed_at timestamp with time zone,
    duroxide_version_major integer,
    duroxide_version_minor integer,
    duroxide_version_patch integer
);

COMMENT ON TABLE made.executions IS 'One row a run of an orchestration; continue-as-new starts another.';

CREATE TABLE made.history (
    instance_id text NOT NULL,
    execution_id bigint NOT NULL,
    event_id bigint NOT NULL,
    event_type text NOT NULL,
    event_data text NOT NULL,
    created_at timestamp with time zone NOT NULL
);

COMMENT ON TABLE made.history IS 'The events of each execution, in order of event_id.';

CREATE TABLE made.instance_locks (
    instance_id text NOT NULL,
    lock_token text NOT NULL,
    locked_until bigint NOT NULL,
    locked_at bigint NOT NULL
);

COMMENT ON TABLE made.instance_locks IS 'The lease of each claimed instance; locked_until in ms of the Unix epoch.';

CREATE TABLE made.instances (
    instance_id text NOT NULL,
    orchestration_name text NOT NULL,
    orchestration_version text,
    current_execution_id bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    parent_instance_id text,
    custom_status text,
    custom_status_version integer DEFAULT 0 NOT NULL
);

COMMENT ON TABLE made.instances IS 'One row an orchestration, with its current execution and custom status.';

CREATE TABLE made.kv_delta (
    instance_id text NOT NULL,
    key text NOT NULL,
    value text,
    last_updated_at_ms bigint NOT NULL
);

COMMENT ON TABLE made.kv_delta IS 'What the running execution has changed in the store; a NULL value is a cleared key.';

CREATE TABLE made.kv_store (
    instance_id text NOT NULL,
    key text NOT NULL,
    value text NOT NULL,
    execution_id bigint NOT NULL,
    last_updated_at_ms bigint DEFAULT 0 NOT NULL
);

COMMENT ON TABLE made.kv_store IS 'The key-value store of each instance, as of the end of its last execution.';

CREATE TABLE made.orchestrator_queue (
    id bigint NOT NULL,
    instance_id text NOT NULL,
    work_item text NOT NULL,
    visible_at timestamp with time zone NOT NULL,
    lock_token text,
    locked_until bigint,
    created_at timestamp with time zone NOT NULL,
    attempt_count integer DEFAULT 0 NOT NULL
);

COMMENT ON TABLE made.orchestrator_queue IS 'Messages to instances, claimed together under the lease of the instance.';

CREATE SEQUENCE made.orchestrator_queue_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE made.orchestrator_queue_id_seq OWNED BY made.orchestrator_queue.id;

CREATE TABLE made.sessions (
    session_id text NOT NULL,
    worker_id text NOT NULL,
    locked_until bigint NOT NULL,
    last_activity_at bigint NOT NULL
);

COMMENT ON TABLE made.sessions IS 'Which worker a session of work items is bound to, and until when.';

CREATE TABLE made.worker_queue (
    id bigint NOT NULL,
    work_item text NOT NULL,
    visible_at timestamp with time zone NOT NULL,
    lock_token text,
    locked_until bigint,
    created_at timestamp with time zone NOT NULL,
    attempt_count integer DEFAULT 0 NOT NULL,
    instance_id text,
    execution_id bigint,
    activity_id bigint,
    session_id text,
    tag text
);

COMMENT ON TABLE made.worker_queue IS 'Work items, each claimed under a lease of its own.';

CREATE SEQUENCE made.worker_queue_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE made.worker_queue_id_seq OWNED BY made.worker_queue.id;

ALTER TABLE ONLY made.orchestrator_queue ALTER COLUMN id SET DEFAULT nextval('made.orchestrator_queue_id_seq'::regclass);

ALTER TABLE ONLY made.worker_queue ALTER COLUMN id SET DEFAULT nextval('made.worker_queue_id_seq'::regclass);

COPY made._duroxide_migrations (version, name, applied_at) FROM stdin;
1	0001_initial_schema.sql	2026-12-01 12:54:21.219678+00
2	0002_create_stored_procedures.sql	2026-12-01 12:54:21.219678+00
3	0003_add_attempt_count.sql	2026-12-01 12:54:21.219678+00
4	0004_update_stored_procedures_for_attempt_count.sql	2026-12-01 12:54:21.219678+00
5	0005_add_visible_at_to_worker_queue.sql	2026-12-01 12:54:21.219678+00
6	0006_use_rust_timestamps.sql	2026-12-01 12:54:21.219678+00
7	0007_add_execution_state_support.sql	2026-12-01 12:54:21.219678+00
8	0008_remove_execution_state.sql	2026-12-01 12:54:21.219678+00
9	0009_add_activity_cancellation_support.sql	2026-12-01 12:54:21.219678+00
10	0010_add_deletion_and_pruning_support.sql	2026-12-01 12:54:21.219678+00
11	0011_fix_cancellation_ordering.sql	2026-12-01 12:54:21.219678+00
12	0012_require_timestamps.sql	2026-12-01 12:54:21.219678+00
13	0013_add_capability_filtering.sql	2026-12-01 12:54:21.219678+00
14	0014_add_session_support.sql	2026-12-01 12:54:21.219678+00
15	0015_add_custom_status.sql	2026-12-01 12:54:21.219678+00
16	0016_add_activity_tags.sql	2026-12-01 12:54:21.219678+00
17	0017_retry_orchestration_fetch_on_contention.sql	2026-12-01 12:54:21.219678+00
18	0018_add_kv_store.sql	2026-12-01 12:54:21.219678+00
19	0019_add_kv_last_updated.sql	2026-12-01 12:54:21.219678+00
20	0020_add_kv_delta.sql	2026-12-01 12:54:21.219678+00
21	0021_add_get_instance_stats.sql	2026-12-01 12:54:21.219678+00
23	0023_partial_secondary_indexes.sql	2026-12-01 12:54:21.219678+00
25	0025_fetch_orchestration_lease_at_claim.sql	2026-12-01 12:54:21.219678+00
26	0026_serialize_orchestration_lock_mutations.sql	2026-12-01 12:54:21.219678+00
\.

COPY made._duroxide_queue (origin, layout, made_schema, replaced_functions) FROM stdin;
created	1	t	{}
\.

COPY made.dead_letters (id, message_id, instance_id, work_item, visible_at, created_at, attempt_count, buried_at, sqlstate, reason) FROM stdin;
1	3	bad	not JSON	1970-01-01 00:00:00+00	1970-01-01 00:00:00+00	0	2033-05-18 03:33:20+00	22P02	invalid input syntax for type json: Token "not" is invalid.
\.

COPY made.executions (instance_id, execution_id, status, output, started_at, completed_at, duroxide_version_major, duroxide_version_minor, duroxide_version_patch) FROM stdin;
done	1	Completed	done	2033-05-18 03:33:20+00	2033-05-18 03:33:20+00	\N	\N	\N
runs	1	Running	\N	2033-05-18 03:33:20+00	\N	\N	\N	\N
\.

COPY made.history (instance_id, execution_id, event_id, event_type, event_data, created_at) FROM stdin;
done	1	1	Started	{"n": 1.50}	2033-05-18 03:33:20+00
done	1	2	Completed	"é"	2033-05-18 03:33:20+00
runs	1	1	Started	{}	2033-05-18 03:33:20+00
\.

COPY made.instance_locks (instance_id, lock_token, locked_until, locked_at) FROM stdin;
leased	lock_8f7c8b61-0c5a-4d72-89e0-b03abfea5fb2	2000000060000	2000000000000
\.

COPY made.instances (instance_id, orchestration_name, orchestration_version, current_execution_id, created_at, updated_at, parent_instance_id, custom_status, custom_status_version) FROM stdin;
done	Order	1.0.0	1	2033-05-18 03:33:20+00	2033-05-18 03:33:20+00	\N	\N	0
runs	Order	1.0.0	1	2033-05-18 03:33:20+00	2033-05-18 03:33:20+00	\N	packing	1
\.

COPY made.kv_delta (instance_id, key, value, last_updated_at_ms) FROM stdin;
runs	gone	\N	2000000000000
runs	step	1	2000000000000
\.

COPY made.kv_store (instance_id, key, value, execution_id, last_updated_at_ms) FROM stdin;
done	total	36.00	1	2000000000000
\.

COPY made.orchestrator_queue (id, instance_id, work_item, visible_at, lock_token, locked_until, created_at, attempt_count) FROM stdin;
4	leased	"start"	1970-01-01 00:00:00+00	lock_8f7c8b61-0c5a-4d72-89e0-b03abfea5fb2	2000000060000	2026-12-01 12:54:21.275252+00	1
5	waits	1	1970-01-01 00:00:00+00	\N	\N	2026-12-01 12:54:21.27552+00	0
6	waits	2	1970-01-01 00:00:00+00	\N	\N	2026-12-01 12:54:21.27552+00	0
7	waits	3	1970-01-01 00:00:00+00	\N	\N	2026-12-01 12:54:21.27552+00	0
8	later	"start"	2100-01-01 00:00:00+00	\N	\N	2026-12-01 12:54:21.275645+00	0
\.

COPY made.sessions (session_id, worker_id, locked_until, last_activity_at) FROM stdin;
s	worker	2000000060000	2000000000000
\.

COPY made.worker_queue (id, work_item, visible_at, lock_token, locked_until, created_at, attempt_count, instance_id, execution_id, activity_id, session_id, tag) FROM stdin;
1	"an activity"	2033-05-18 03:33:20+00	\N	\N	2033-05-18 03:33:20+00	0	\N	\N	\N	\N	\N
2	"in a session"	1970-01-01 00:00:00+00	lock_39e0ac03-5786-4c9b-a19d-d7e9be9de9bd	2000000060000	1970-01-01 00:00:00+00	1	\N	\N	\N	s	t
\.

SELECT pg_catalog.setval('made.dead_letters_id_seq', 1, true);

SELECT pg_catalog.setval('made.orchestrator_queue_id_seq', 8, true);

SELECT pg_catalog.setval('made.worker_queue_id_seq', 2, true);

ALTER TABLE ONLY made._duroxide_migrations
    ADD CONSTRAINT _duroxide_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY made.dead_letters
    ADD CONSTRAINT dead_letters_pkey PRIMARY KEY (id);

ALTER TABLE ONLY made.executions
    ADD CONSTRAINT executions_pkey PRIMARY KEY (instance_id, execution_id);

ALTER TABLE ONLY made.history
    ADD CONSTRAINT history_pkey PRIMARY KEY (instance_id, execution_id, event_id);

ALTER TABLE ONLY made.instance_locks
    ADD CONSTRAINT instance_locks_pkey PRIMARY KEY (instance_id);

ALTER TABLE ONLY made.instances
    ADD CONSTRAINT instances_pkey PRIMARY KEY (instance_id);

ALTER TABLE ONLY made.kv_delta
    ADD CONSTRAINT kv_delta_pkey PRIMARY KEY (instance_id, key);

ALTER TABLE ONLY made.kv_store
    ADD CONSTRAINT kv_store_pkey PRIMARY KEY (instance_id, key);

ALTER TABLE ONLY made.orchestrator_queue
    ADD CONSTRAINT orchestrator_queue_pkey PRIMARY KEY (id);

ALTER TABLE ONLY made.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (session_id);

ALTER TABLE ONLY made.worker_queue
    ADD CONSTRAINT worker_queue_pkey PRIMARY KEY (id);

CREATE UNIQUE INDEX instance_locks_lock_token_idx ON made.instance_locks USING btree (lock_token);

CREATE INDEX instances_parent_idx ON made.instances USING btree (parent_instance_id) WHERE (parent_instance_id IS NOT NULL);

CREATE INDEX orchestrator_queue_instance_idx ON made.orchestrator_queue USING btree (instance_id);

CREATE INDEX orchestrator_queue_leased_idx ON made.orchestrator_queue USING btree (locked_until, id) WHERE (lock_token IS NOT NULL);

CREATE INDEX orchestrator_queue_ready_idx ON made.orchestrator_queue USING btree (visible_at, id) WHERE (lock_token IS NULL);

CREATE INDEX worker_queue_activity_idx ON made.worker_queue USING btree (instance_id, execution_id, activity_id);

CREATE INDEX worker_queue_leased_idx ON made.worker_queue USING btree (locked_until, id) WHERE (lock_token IS NOT NULL);

CREATE INDEX worker_queue_lock_token_idx ON made.worker_queue USING btree (lock_token) WHERE (lock_token IS NOT NULL);

CREATE INDEX worker_queue_ready_idx ON made.worker_queue USING btree (visible_at, id) WHERE (lock_token IS NULL);

CREATE INDEX worker_queue_session_idx ON made.worker_queue USING btree (session_id) WHERE (session_id IS NOT NULL);

