-- The 32 functions of a queue, each an entry point of the library. Names, arguments, defaults and
-- results are those that clients of duroxide-pg 0.1.38 call; they are the contract and never change.
-- Read by src/lifecycle/functions.rs, which fills in the schema's name.

CREATE FUNCTION {q}.abandon_orchestration_item(
  p_lock_token text,
  p_now_ms bigint,
  p_delay_ms bigint DEFAULT NULL::bigint,
  p_ignore_attempt boolean DEFAULT false
)
RETURNS text
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'abandon_orchestration_item_wrapper';

CREATE FUNCTION {q}.abandon_work_item(
  p_lock_token text,
  p_now_ms bigint,
  p_delay_ms bigint DEFAULT NULL::bigint,
  p_ignore_attempt boolean DEFAULT false
)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'abandon_work_item_wrapper';

CREATE FUNCTION {q}.ack_orchestration_item(
  p_lock_token text,
  p_now_ms bigint,
  p_execution_id bigint,
  p_history_delta jsonb,
  p_worker_items jsonb,
  p_orchestrator_items jsonb,
  p_metadata jsonb,
  p_cancelled_activities jsonb DEFAULT '[]'::jsonb
)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'ack_orchestration_item_wrapper';

CREATE FUNCTION {q}.ack_worker(
  p_lock_token text,
  p_instance_id text DEFAULT NULL::text,
  p_completion_json text DEFAULT NULL::text,
  p_now_ms bigint DEFAULT NULL::bigint
)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'ack_worker_wrapper';

CREATE FUNCTION {q}.append_history(
  p_instance_id text,
  p_execution_id bigint,
  p_events jsonb
)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'append_history_wrapper';

CREATE FUNCTION {q}.cleanup_orphaned_sessions(p_now_ms bigint)
RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'cleanup_orphaned_sessions_wrapper';

CREATE FUNCTION {q}.cleanup_schema()
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'cleanup_schema_wrapper';

CREATE FUNCTION {q}.delete_instances_atomic(
  p_instance_ids text[],
  p_force boolean
)
RETURNS TABLE (
  instances_deleted bigint,
  executions_deleted bigint,
  events_deleted bigint,
  queue_messages_deleted bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'delete_instances_atomic_wrapper';

CREATE FUNCTION {q}.enqueue_orchestrator_work(
  p_instance_id text,
  p_work_item text,
  p_visible_at timestamp with time zone,
  p_orchestration_name text DEFAULT NULL::text,
  p_orchestration_version text DEFAULT NULL::text,
  p_execution_id bigint DEFAULT NULL::bigint
)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'enqueue_orchestrator_work_wrapper';

CREATE FUNCTION {q}.enqueue_worker_work(
  p_work_item text,
  p_now_ms bigint,
  p_instance_id text DEFAULT NULL::text,
  p_execution_id bigint DEFAULT NULL::bigint,
  p_activity_id bigint DEFAULT NULL::bigint,
  p_session_id text DEFAULT NULL::text,
  p_tag text DEFAULT NULL::text
)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'enqueue_worker_work_wrapper';

CREATE FUNCTION {q}.fetch_history(p_instance_id text)
RETURNS TABLE (out_event_data text)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'fetch_history_wrapper';

CREATE FUNCTION {q}.fetch_history_with_execution(
  p_instance_id text,
  p_execution_id bigint
)
RETURNS TABLE (out_event_data text)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'fetch_history_with_execution_wrapper';

CREATE FUNCTION {q}.fetch_orchestration_item(
  p_now_ms bigint,
  p_lock_timeout_ms bigint,
  p_min_version_packed bigint DEFAULT NULL::bigint,
  p_max_version_packed bigint DEFAULT NULL::bigint
)
RETURNS TABLE (
  out_instance_id text,
  out_orchestration_name text,
  out_orchestration_version text,
  out_execution_id bigint,
  out_history jsonb,
  out_messages jsonb,
  out_lock_token text,
  out_attempt_count integer,
  out_kv_snapshot jsonb
)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'fetch_orchestration_item_wrapper';

CREATE FUNCTION {q}.fetch_work_item(
  p_now_ms bigint,
  p_lock_timeout_ms bigint,
  p_owner_id text DEFAULT NULL::text,
  p_session_lock_timeout_ms bigint DEFAULT NULL::bigint,
  p_tag_filter text[] DEFAULT NULL::text[],
  p_tag_mode text DEFAULT 'default_only'::text
)
RETURNS TABLE (
  out_work_item text,
  out_lock_token text,
  out_attempt_count integer
)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'fetch_work_item_wrapper';

CREATE FUNCTION {q}.get_custom_status(
  p_instance_id text,
  p_last_seen_version bigint
)
RETURNS TABLE (
  out_custom_status text,
  out_custom_status_version bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'get_custom_status_wrapper';

CREATE FUNCTION {q}.get_execution_info(
  p_instance_id text,
  p_execution_id bigint
)
RETURNS TABLE (
  execution_id bigint,
  status text,
  output text,
  started_at timestamp with time zone,
  completed_at timestamp with time zone,
  event_count bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'get_execution_info_wrapper';

CREATE FUNCTION {q}.get_instance_info(p_instance_id text)
RETURNS TABLE (
  instance_id text,
  orchestration_name text,
  orchestration_version text,
  current_execution_id bigint,
  created_at timestamp with time zone,
  updated_at timestamp with time zone,
  status text,
  output text,
  parent_instance_id text
)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'get_instance_info_wrapper';

CREATE FUNCTION {q}.get_instance_stats(p_instance text)
RETURNS TABLE (
  out_found boolean,
  out_history_event_count bigint,
  out_history_size_bytes bigint,
  out_queue_pending_count bigint,
  out_kv_user_key_count bigint,
  out_kv_total_value_bytes bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'get_instance_stats_wrapper';

CREATE FUNCTION {q}.get_kv_all_values(p_instance text)
RETURNS TABLE (
  out_key text,
  out_value text
)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'get_kv_all_values_wrapper';

CREATE FUNCTION {q}.get_kv_value(
  p_instance text,
  p_key text
)
RETURNS TABLE (
  out_value text,
  out_found boolean
)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'get_kv_value_wrapper';

CREATE FUNCTION {q}.get_parent_id(p_instance_id text)
RETURNS text
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'get_parent_id_wrapper';

CREATE FUNCTION {q}.get_queue_depths(p_now_ms bigint)
RETURNS TABLE (
  orchestrator_queue bigint,
  worker_queue bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'get_queue_depths_wrapper';

CREATE FUNCTION {q}.get_system_metrics()
RETURNS TABLE (
  total_instances bigint,
  total_executions bigint,
  running_instances bigint,
  completed_instances bigint,
  failed_instances bigint,
  total_events bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'get_system_metrics_wrapper';

CREATE FUNCTION {q}.latest_execution_id(p_instance_id text)
RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'latest_execution_id_wrapper';

CREATE FUNCTION {q}.list_children(p_instance_id text)
RETURNS TABLE (child_instance_id text)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'list_children_wrapper';

CREATE FUNCTION {q}.list_executions(p_instance_id text)
RETURNS TABLE (execution_id bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'list_executions_wrapper';

CREATE FUNCTION {q}.list_instances()
RETURNS TABLE (instance_id text)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'list_instances_wrapper';

CREATE FUNCTION {q}.list_instances_by_status(p_status text)
RETURNS TABLE (instance_id text)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'list_instances_by_status_wrapper';

CREATE FUNCTION {q}.prune_executions(
  p_instance_id text,
  p_keep_last integer DEFAULT NULL::integer,
  p_completed_before_ms bigint DEFAULT NULL::bigint
)
RETURNS TABLE (
  instances_processed bigint,
  executions_deleted bigint,
  events_deleted bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'prune_executions_wrapper';

CREATE FUNCTION {q}.renew_orchestration_item_lock(
  p_lock_token text,
  p_now_ms bigint,
  p_extend_secs bigint
)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'renew_orchestration_item_lock_wrapper';

CREATE FUNCTION {q}.renew_session_lock(
  p_owner_ids text[],
  p_now_ms bigint,
  p_extend_ms bigint,
  p_idle_timeout_ms bigint
)
RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'renew_session_lock_wrapper';

CREATE FUNCTION {q}.renew_work_item_lock(
  p_lock_token text,
  p_now_ms bigint,
  p_extend_secs bigint
)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS '$libdir/duroxide_queue', 'renew_work_item_lock_wrapper';

