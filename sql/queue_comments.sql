-- One sentence on each function and table of a created queue, for \df+ and \d+. An adopted queue
-- keeps its own.

COMMENT ON FUNCTION {q}.abandon_orchestration_item(text, bigint, bigint, boolean) IS
  'Gives a claimed instance back, at once or visible again after a delay; returns its id.';
COMMENT ON FUNCTION {q}.abandon_work_item(text, bigint, bigint, boolean) IS
  'Gives a claimed work item back, visible again now or after a delay.';
COMMENT ON FUNCTION {q}.ack_orchestration_item(text, bigint, bigint, jsonb, jsonb, jsonb, jsonb, jsonb) IS
  'Acknowledges a turn: writes its outcome and consumes its messages and its lease, all or nothing.';
COMMENT ON FUNCTION {q}.ack_worker(text, text, text, bigint) IS
  'Acknowledges a work item and sends its completion.';
COMMENT ON FUNCTION {q}.append_history(text, bigint, jsonb) IS
  'Appends events to the history of an execution; an event that is there already is left as it was.';
COMMENT ON FUNCTION {q}.cleanup_orphaned_sessions(bigint) IS
  'Removes expired sessions without work items; returns how many.';
COMMENT ON FUNCTION {q}.cleanup_schema() IS
  'Drops the tables and functions of the queue.';
COMMENT ON FUNCTION {q}.delete_instances_atomic(text[], boolean) IS
  'Deletes instances with everything that belongs to them, all or none.';
COMMENT ON FUNCTION {q}.enqueue_orchestrator_work(text, text, timestamp with time zone, text, text, bigint) IS
  'Enqueues a message for an instance.';
COMMENT ON FUNCTION {q}.enqueue_worker_work(text, bigint, text, bigint, bigint, text, text) IS
  'Enqueues a work item.';
COMMENT ON FUNCTION {q}.fetch_history(text) IS
  'The events of the latest execution of an instance, in order.';
COMMENT ON FUNCTION {q}.fetch_history_with_execution(text, bigint) IS
  'The events of one execution, in order.';
COMMENT ON FUNCTION {q}.fetch_orchestration_item(bigint, bigint, bigint, bigint) IS
  'Claims the first free instance with all its visible messages under a lease; no row when there is none.';
COMMENT ON FUNCTION {q}.fetch_work_item(bigint, bigint, text, bigint, text[], text) IS
  'Claims the first free work item under a lease; no row when there is none.';
COMMENT ON FUNCTION {q}.get_custom_status(text, bigint) IS
  'The custom status of an instance, if it has changed since the version last seen.';
COMMENT ON FUNCTION {q}.get_execution_info(text, bigint) IS
  'One execution, with the number of its events.';
COMMENT ON FUNCTION {q}.get_instance_info(text) IS
  'One instance, with the state of its current execution.';
COMMENT ON FUNCTION {q}.get_instance_stats(text) IS
  'Sizes of an instance: history, carried-forward events, key-value store.';
COMMENT ON FUNCTION {q}.get_kv_all_values(text) IS
  'Every key of an instance with its value.';
COMMENT ON FUNCTION {q}.get_kv_value(text, text) IS
  'The value of one key of an instance, and whether there is one.';
COMMENT ON FUNCTION {q}.get_parent_id(text) IS
  'The parent of an instance, NULL for one at the top.';
COMMENT ON FUNCTION {q}.get_queue_depths(bigint) IS
  'Messages and work items that are visible and not under a live lease.';
COMMENT ON FUNCTION {q}.get_system_metrics() IS
  'Counts of instances, executions and events over the whole queue.';
COMMENT ON FUNCTION {q}.latest_execution_id(text) IS
  'The current execution of an instance.';
COMMENT ON FUNCTION {q}.list_children(text) IS
  'The sub-orchestrations of an instance, the eldest first.';
COMMENT ON FUNCTION {q}.list_executions(text) IS
  'The executions of an instance, in order.';
COMMENT ON FUNCTION {q}.list_instances() IS
  'All instances, the youngest first.';
COMMENT ON FUNCTION {q}.list_instances_by_status(text) IS
  'The instances whose current execution has a status, the youngest first.';
COMMENT ON FUNCTION {q}.prune_executions(text, integer, bigint) IS
  'Deletes old executions of an instance with their history, never the current one or one that runs.';
COMMENT ON FUNCTION {q}.renew_orchestration_item_lock(text, bigint, bigint) IS
  'Extends the lease of a claimed instance, never to an earlier end.';
COMMENT ON FUNCTION {q}.renew_session_lock(text[], bigint, bigint, bigint) IS
  'Extends the live sessions of some owners; returns how many.';
COMMENT ON FUNCTION {q}.renew_work_item_lock(text, bigint, bigint) IS
  'Extends the lease of a claimed work item, never to an earlier end.';

COMMENT ON TABLE {q}.instances IS 'One row an orchestration, with its current execution and custom status.';
COMMENT ON TABLE {q}.executions IS 'One row a run of an orchestration; continue-as-new starts another.';
COMMENT ON TABLE {q}.history IS 'The events of each execution, in order of event_id.';
COMMENT ON TABLE {q}.orchestrator_queue IS 'Messages to instances, claimed together under the lease of the instance.';
COMMENT ON TABLE {q}.instance_locks IS 'The lease of each claimed instance; locked_until in ms of the Unix epoch.';
COMMENT ON TABLE {q}.worker_queue IS 'Work items, each claimed under a lease of its own.';
COMMENT ON TABLE {q}.sessions IS 'Which worker a session of work items is bound to, and until when.';
COMMENT ON TABLE {q}.kv_store IS 'The key-value store of each instance, as of the end of its last execution.';
COMMENT ON TABLE {q}.kv_delta IS 'What the running execution has changed in the store; a NULL value is a cleared key.';
COMMENT ON TABLE {q}._duroxide_migrations IS 'The migration level that clients of duroxide-pg take the schema for.';
