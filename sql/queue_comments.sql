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

-- Columns whose name does not say it all. Times in bigint are milliseconds of the Unix epoch.
COMMENT ON COLUMN {q}.instances.current_execution_id IS 'The execution that runs, or ran last.';
COMMENT ON COLUMN {q}.instances.custom_status IS 'What the orchestration shows to the outside.';
COMMENT ON COLUMN {q}.instances.custom_status_version IS 'Goes up by one with each change of custom_status.';
COMMENT ON COLUMN {q}.executions.status IS 'Running, Completed, Failed or ContinuedAsNew.';
COMMENT ON COLUMN {q}.executions.output IS 'The result, or the error of a failed execution.';
COMMENT ON COLUMN {q}.executions.duroxide_version_major IS
  'With minor and patch: the version of duroxide that the execution is pinned to; NULL lets every dispatcher claim it.';
COMMENT ON COLUMN {q}.history.event_data IS 'The event, one JSON value.';
COMMENT ON COLUMN {q}.orchestrator_queue.work_item IS 'The message, one JSON value.';
COMMENT ON COLUMN {q}.orchestrator_queue.visible_at IS 'Not claimed before this moment. Claims go by visible_at, then id.';
COMMENT ON COLUMN {q}.orchestrator_queue.lock_token IS 'The claim that has taken the message; NULL if none has.';
COMMENT ON COLUMN {q}.orchestrator_queue.locked_until IS 'End of the lease of that claim, in ms of the Unix epoch.';
COMMENT ON COLUMN {q}.orchestrator_queue.attempt_count IS 'How often the message has been claimed.';
COMMENT ON COLUMN {q}.worker_queue.work_item IS 'The activity to run, one JSON value.';
COMMENT ON COLUMN {q}.worker_queue.visible_at IS 'Not claimed before this moment. Claims go by visible_at, then id.';
COMMENT ON COLUMN {q}.worker_queue.lock_token IS 'The claim that has taken the item; NULL if none has.';
COMMENT ON COLUMN {q}.worker_queue.locked_until IS 'End of the lease of that claim, in ms of the Unix epoch.';
COMMENT ON COLUMN {q}.worker_queue.attempt_count IS 'How often the item has been claimed.';
COMMENT ON COLUMN {q}.worker_queue.session_id IS 'Only the worker that has this session may claim the item.';
COMMENT ON COLUMN {q}.worker_queue.tag IS 'Only workers that take this tag may claim the item.';
COMMENT ON COLUMN {q}.instance_locks.lock_token IS 'The name of the claim, which its owner shows to acknowledge, renew or abandon.';
COMMENT ON COLUMN {q}.instance_locks.locked_until IS 'End of the lease, in ms of the Unix epoch; from then on it counts for nothing.';
COMMENT ON COLUMN {q}.instance_locks.locked_at IS 'When the instance was claimed, in ms of the Unix epoch.';
COMMENT ON COLUMN {q}.sessions.worker_id IS 'The owner that the worker names in fetch_work_item.';
COMMENT ON COLUMN {q}.sessions.locked_until IS 'Until when the session is that worker''s, in ms of the Unix epoch.';
COMMENT ON COLUMN {q}.sessions.last_activity_at IS 'When an item of it was last claimed, renewed or acknowledged, in ms of the Unix epoch.';
COMMENT ON COLUMN {q}.sessions.session_id IS 'What the work items name that belong together.';
COMMENT ON COLUMN {q}.kv_store.execution_id IS 'The execution that has written the value.';
COMMENT ON COLUMN {q}.kv_store.last_updated_at_ms IS 'When it was written, in ms of the Unix epoch.';
COMMENT ON COLUMN {q}.kv_delta.value IS 'NULL if the key has been cleared.';
COMMENT ON COLUMN {q}.kv_delta.last_updated_at_ms IS 'When it was written or cleared, in ms of the Unix epoch.';
