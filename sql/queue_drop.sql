-- Drops a queue's tables and functions, by name and only by name.

DROP TABLE IF EXISTS
  {q}.sessions, {q}.kv_delta, {q}.kv_store, {q}.instances, {q}.executions, {q}.history,
  {q}.orchestrator_queue, {q}.worker_queue, {q}.instance_locks, {q}._duroxide_migrations,
  {q}.dead_letters, {q}._duroxide_queue;

DROP FUNCTION IF EXISTS {q}.abandon_orchestration_item(text, bigint, bigint, boolean);
DROP FUNCTION IF EXISTS {q}.abandon_work_item(text, bigint, bigint, boolean);
DROP FUNCTION IF EXISTS {q}.ack_orchestration_item(text, bigint, bigint, jsonb, jsonb, jsonb, jsonb, jsonb);
DROP FUNCTION IF EXISTS {q}.ack_worker(text, text, text, bigint);
DROP FUNCTION IF EXISTS {q}.append_history(text, bigint, jsonb);
DROP FUNCTION IF EXISTS {q}.cleanup_orphaned_sessions(bigint);
DROP FUNCTION IF EXISTS {q}.cleanup_schema();
DROP FUNCTION IF EXISTS {q}.delete_instances_atomic(text[], boolean);
DROP FUNCTION IF EXISTS {q}.enqueue_orchestrator_work(text, text, timestamp with time zone, text, text, bigint);
DROP FUNCTION IF EXISTS {q}.enqueue_worker_work(text, bigint, text, bigint, bigint, text, text);
DROP FUNCTION IF EXISTS {q}.fetch_history(text);
DROP FUNCTION IF EXISTS {q}.fetch_history_with_execution(text, bigint);
DROP FUNCTION IF EXISTS {q}.fetch_orchestration_item(bigint, bigint, bigint, bigint);
DROP FUNCTION IF EXISTS {q}.fetch_work_item(bigint, bigint, text, bigint, text[], text);
DROP FUNCTION IF EXISTS {q}.get_custom_status(text, bigint);
DROP FUNCTION IF EXISTS {q}.get_execution_info(text, bigint);
DROP FUNCTION IF EXISTS {q}.get_instance_info(text);
DROP FUNCTION IF EXISTS {q}.get_instance_stats(text);
DROP FUNCTION IF EXISTS {q}.get_kv_all_values(text);
DROP FUNCTION IF EXISTS {q}.get_kv_value(text, text);
DROP FUNCTION IF EXISTS {q}.get_parent_id(text);
DROP FUNCTION IF EXISTS {q}.get_queue_depths(bigint);
DROP FUNCTION IF EXISTS {q}.get_system_metrics();
DROP FUNCTION IF EXISTS {q}.latest_execution_id(text);
DROP FUNCTION IF EXISTS {q}.list_children(text);
DROP FUNCTION IF EXISTS {q}.list_executions(text);
DROP FUNCTION IF EXISTS {q}.list_instances();
DROP FUNCTION IF EXISTS {q}.list_instances_by_status(text);
DROP FUNCTION IF EXISTS {q}.prune_executions(text, integer, bigint);
DROP FUNCTION IF EXISTS {q}.renew_orchestration_item_lock(text, bigint, bigint);
DROP FUNCTION IF EXISTS {q}.renew_session_lock(text[], bigint, bigint, bigint);
DROP FUNCTION IF EXISTS {q}.renew_work_item_lock(text, bigint, bigint);
