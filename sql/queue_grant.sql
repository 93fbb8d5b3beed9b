-- What a client needs, and nothing else: the functions run with their caller's rights, so it is
-- rights on tables that count.

GRANT USAGE ON SCHEMA {q} TO {role};
GRANT SELECT ON {q}._duroxide_migrations TO {role};
GRANT SELECT, INSERT, DELETE ON {q}.history TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON
  {q}.instances, {q}.executions, {q}.orchestrator_queue, {q}.worker_queue,
  {q}.instance_locks, {q}.sessions, {q}.kv_store, {q}.kv_delta TO {role};
GRANT INSERT ON {q}.dead_letters TO {role};
GRANT USAGE ON SEQUENCE
  {q}.orchestrator_queue_id_seq, {q}.worker_queue_id_seq TO {role};
GRANT EXECUTE ON FUNCTION
  {q}.abandon_orchestration_item(text, bigint, bigint, boolean),
  {q}.abandon_work_item(text, bigint, bigint, boolean),
  {q}.ack_orchestration_item(text, bigint, bigint, jsonb, jsonb, jsonb, jsonb, jsonb),
  {q}.ack_worker(text, text, text, bigint),
  {q}.append_history(text, bigint, jsonb),
  {q}.cleanup_orphaned_sessions(bigint),
  {q}.delete_instances_atomic(text[], boolean),
  {q}.enqueue_orchestrator_work(text, text, timestamp with time zone, text, text, bigint),
  {q}.enqueue_worker_work(text, bigint, text, bigint, bigint, text, text),
  {q}.fetch_history(text),
  {q}.fetch_history_with_execution(text, bigint),
  {q}.fetch_orchestration_item(bigint, bigint, bigint, bigint),
  {q}.fetch_work_item(bigint, bigint, text, bigint, text[], text),
  {q}.get_custom_status(text, bigint),
  {q}.get_execution_info(text, bigint),
  {q}.get_instance_info(text),
  {q}.get_instance_stats(text),
  {q}.get_kv_all_values(text),
  {q}.get_kv_value(text, text),
  {q}.get_parent_id(text),
  {q}.get_queue_depths(bigint),
  {q}.get_system_metrics(),
  {q}.latest_execution_id(text),
  {q}.list_children(text),
  {q}.list_executions(text),
  {q}.list_instances(),
  {q}.list_instances_by_status(text),
  {q}.prune_executions(text, integer, bigint),
  {q}.renew_orchestration_item_lock(text, bigint, bigint),
  {q}.renew_session_lock(text[], bigint, bigint, bigint),
  {q}.renew_work_item_lock(text, bigint, bigint)
TO {role};
