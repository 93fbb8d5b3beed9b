-- One orchestration by hand, from its start to its deletion: every row that a turn writes, with a clock that stands still.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS duroxide_queue;
\pset null '<null>'
\pset footer off
SELECT duroxide_queue.create_queue('turn');
SET search_path = turn;
SET timezone = 'UTC';
-- A moment in September 2001; the callers' epoch is the only one.
\set now 1000000000000

-- The start arrives, and is visible from its millisecond on.
SELECT enqueue_orchestrator_work('order', '{"StartOrchestration": {"instance": "order", "orchestration": "Order", "input": "3 books", "version": "1.2.0", "execution_id": 1}}', to_timestamp(:now::numeric / 1000), 'Order', '1.2.0', 1);
SELECT * FROM get_queue_depths(:now - 1);
SELECT * FROM get_queue_depths(:now);
SELECT count(*) FROM fetch_orchestration_item(:now - 60000, 30000);
CREATE TEMP TABLE claimed AS SELECT * FROM fetch_orchestration_item(:now, 30000);
\x on
SELECT out_instance_id, out_orchestration_name, out_orchestration_version, out_execution_id, out_history, out_messages,
       out_attempt_count, out_kv_snapshot, out_lock_token ~ '^lock_[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$' AS token
FROM claimed;
\x off
-- The lease is as long as asked for, in both places.
SELECT l.instance_id, l.lock_token = c.out_lock_token AS lease, l.locked_until - :now BETWEEN 30000 AND 40000 AS until,
       q.lock_token = c.out_lock_token AS message, q.locked_until = l.locked_until AS same_end, q.attempt_count
FROM instance_locks l, orchestrator_queue q, claimed c;
SELECT * FROM get_queue_depths(:now);
SELECT count(*) FROM fetch_orchestration_item(:now, 30000);
-- Nothing is known of the instance before its first turn is acknowledged.
SELECT count(*) FROM list_instances();
SELECT count(*) FROM get_instance_info('order');

-- The first turn: history, two activities, a timer and a child.
SELECT ack_orchestration_item(out_lock_token, :now, 1,
  '[{"event_id": 1, "event_type": "OrchestrationStarted", "event_data": "{\"event_id\": 1, \"name\": \"Order\"}"},
    {"event_id": 2, "event_type": "ActivityScheduled", "event_data": "{\"event_id\": 2, \"n\": 12345678901234567890}"}]',
  '[{"ActivityExecute": {"instance": "order", "execution_id": 1, "id": 2, "name": "reserve", "input": "3 books"}},
    {"ActivityExecute": {"instance": "order", "execution_id": 1, "id": 3, "name": "render", "input": "", "tag": "gpu", "session_id": "s-1"}}]',
  '[{"TimerFired": {"instance": "order", "execution_id": 1, "id": 4, "fire_at_ms": 1000000600123}},
    {"StartOrchestration": {"instance": "child", "orchestration": "Child", "input": "", "parent_instance": "order", "execution_id": 1}}]',
  '{"orchestration_name": "Order", "orchestration_version": "1.2.0", "status": "Running", "pinned_duroxide_version": {"major": 0, "minor": 1, "patch": 32},
    "custom_status_action": "set", "custom_status_value": "reserving",
    "kv_mutations": [{"action": "set", "key": "books", "value": "3"}, {"action": "set", "key": "gone", "value": "x"}, {"action": "clear_key", "key": "gone"}]}')
FROM claimed;
SELECT count(*) FROM instance_locks;
SELECT instance_id, work_item, round(extract(epoch FROM visible_at) * 1000 - :now) AS visible_in_ms, lock_token, attempt_count
FROM orchestrator_queue ORDER BY id;
SELECT work_item, instance_id, execution_id, activity_id, session_id, tag, lock_token, attempt_count FROM worker_queue ORDER BY id;
SELECT execution_id, event_id, event_type, event_data FROM history ORDER BY event_id;
SELECT instance_id, orchestration_name, orchestration_version, current_execution_id, created_at, updated_at, parent_instance_id, custom_status, custom_status_version FROM instances;
SELECT * FROM executions;
SELECT * FROM kv_delta ORDER BY key;
SELECT count(*) FROM kv_store;

-- A worker takes what it may: no session without an owner, no tag without a filter.
CREATE TEMP TABLE worked AS SELECT 'plain' AS worker, * FROM fetch_work_item(:now, 30000);
INSERT INTO worked SELECT 'none left', * FROM fetch_work_item(:now, 30000);
INSERT INTO worked SELECT 'tag, no owner', * FROM fetch_work_item(:now, 30000, p_tag_filter => ARRAY['gpu'], p_tag_mode => 'tags');
INSERT INTO worked SELECT 'mode none', * FROM fetch_work_item(:now, 30000, 'w', 60000, ARRAY['gpu'], 'none');
INSERT INTO worked SELECT 'owner', * FROM fetch_work_item(:now, 30000, 'w', 60000, ARRAY['gpu'], 'default_and');
SELECT worker, out_work_item, out_attempt_count FROM worked;
SELECT session_id, worker_id, locked_until - :now BETWEEN 60000 AND 70000 AS until, last_activity_at - :now BETWEEN 0 AND 10000 AS active FROM sessions;
-- A lease of an item is renewed to a later end, never an earlier one.
SELECT renew_work_item_lock(out_lock_token, :now, 60) FROM worked WHERE worker = 'plain';
SELECT renew_work_item_lock(out_lock_token, :now, 1) FROM worked WHERE worker = 'plain';
SELECT locked_until - :now BETWEEN 60000 AND 70000 AS until FROM worker_queue WHERE session_id IS NULL;
SELECT renew_session_lock(ARRAY['w', 'other'], :now, 90000, 1000000), renew_session_lock(ARRAY['other'], :now, 90000, 1000000);
SELECT locked_until - :now BETWEEN 90000 AND 100000 AS until FROM sessions;
SELECT renew_session_lock(ARRAY['w'], :now + 60000, 90000, 1000) AS idle;
-- Both are done; one completion is sent, the other activity was cancelled.
SELECT ack_worker(out_lock_token, 'order', '{"ActivityCompleted": {"instance": "order", "execution_id": 1, "id": 2, "result": "reserved"}}', :now + 1000)
FROM worked WHERE worker = 'plain';
SELECT ack_worker(out_lock_token) FROM worked WHERE worker = 'owner';
SELECT count(*) FROM worker_queue;
SELECT cleanup_orphaned_sessions(:now + 80000), cleanup_orphaned_sessions(:now + 200000);

-- The child runs in between, pinned to a version that the first dispatcher does not run.
TRUNCATE claimed;
INSERT INTO claimed SELECT * FROM fetch_orchestration_item(:now, 30000);
SELECT out_instance_id, out_orchestration_name, out_orchestration_version, out_execution_id, out_messages FROM claimed;
SELECT ack_orchestration_item(out_lock_token, :now + 1, 1, '[{"event_id": 1, "event_type": "OrchestrationStarted", "event_data": "{}"}]', '[]',
  '[{"SubOrchCompleted": {"parent_instance": "order", "parent_execution_id": 1, "parent_id": 5, "result": "ok"}}]',
  '{"orchestration_name": "Child", "orchestration_version": "1", "parent_instance_id": "order", "status": "Completed", "output": "ok",
    "pinned_duroxide_version": {"major": 9, "minor": 0, "patch": 0}}')
FROM claimed;
SELECT * FROM list_children('order');
SELECT get_parent_id('child'), get_parent_id('order');
SELECT enqueue_orchestrator_work('child', '{"ExternalRaised": {"instance": "child", "name": "e", "data": "1"}}', 'epoch');
SELECT out_instance_id FROM fetch_orchestration_item(:now, 30000, 1000, 8999999);
SELECT count(*) FROM orchestrator_queue WHERE instance_id = 'child' AND lock_token IS NULL AND attempt_count = 0;
DELETE FROM orchestrator_queue WHERE instance_id = 'child';

-- The second turn, as soon as the first dispatcher's clock sees the completions: the timer is still to come.
SELECT count(*) FROM fetch_orchestration_item(:now + 600123, 1);
SELECT abandon_orchestration_item(lock_token, :now + 600123, p_ignore_attempt => true) FROM instance_locks;
SELECT instance_id, lock_token, attempt_count FROM orchestrator_queue ORDER BY id;
TRUNCATE claimed;
INSERT INTO claimed SELECT * FROM fetch_orchestration_item(:now + 3000, 30000, 1000, 8999999);
\x on
SELECT out_instance_id, out_orchestration_name, out_orchestration_version, out_execution_id, out_history, out_messages,
       out_attempt_count, out_kv_snapshot
FROM claimed;
\x off
SELECT renew_orchestration_item_lock(out_lock_token, :now + 3000, 60) FROM claimed;
SELECT l.locked_until - :now BETWEEN 63000 AND 73000 AS until, count(*), bool_and(q.locked_until = l.locked_until) AS same_end
FROM instance_locks l, orchestrator_queue q WHERE q.lock_token = l.lock_token GROUP BY 1;
-- What comes while the turn runs is not part of it.
SELECT enqueue_orchestrator_work('order', '{"ExternalRaised": {"instance": "order", "name": "late", "data": "1"}}', 'epoch');
SELECT ack_orchestration_item(out_lock_token, :now + 4000, 1,
  '[{"event_id": 3, "event_type": "ActivityCompleted", "event_data": "{\"event_id\": 3}"}]', '[]', '[]',
  '{"orchestration_name": "Order", "orchestration_version": "1.2.0", "status": "ContinuedAsNew", "output": "next",
    "custom_status_action": "clear", "kv_mutations": [{"action": "set", "key": "paid", "value": "yes"}, {"action": "clear_key", "key": "books"}]}')
FROM claimed;
SELECT instance_id, work_item::jsonb ? 'TimerFired' AS timer, lock_token, attempt_count FROM orchestrator_queue ORDER BY id;
SELECT * FROM kv_store ORDER BY key;
SELECT count(*) FROM kv_delta;

-- The third, in the next execution: the late event first, the timer when it is due.
TRUNCATE claimed;
SELECT (get_queue_depths(:now + 600122)).orchestrator_queue AS early, (get_queue_depths(:now + 600123)).orchestrator_queue AS due;
INSERT INTO claimed SELECT * FROM fetch_orchestration_item(:now + 4000, 30000);
SELECT out_instance_id, out_execution_id, out_history, out_messages, out_attempt_count, out_kv_snapshot FROM claimed;
SELECT abandon_orchestration_item(out_lock_token, :now + 5122, 3600000) FROM claimed;
SELECT (get_queue_depths(:now + 3605121)).orchestrator_queue AS early, (get_queue_depths(:now + 3605122)).orchestrator_queue AS due;
TRUNCATE claimed;
INSERT INTO claimed SELECT * FROM fetch_orchestration_item(:now + 600123, 30000);
SELECT out_messages, out_attempt_count FROM claimed;
SELECT ack_orchestration_item(out_lock_token, :now + 600123, 2,
  '[{"event_id": 1, "event_type": "OrchestrationStarted", "event_data": "{\"event_id\": 1, \"carry_forward_events\": [1, 2]}"}]', '[]', '[]',
  '{"orchestration_name": "Order", "orchestration_version": "1.2.0", "status": "Running", "kv_mutations": [{"action": "set", "key": "paid", "value": "twice"}]}')
FROM claimed;
TRUNCATE claimed;
INSERT INTO claimed SELECT * FROM fetch_orchestration_item(:now + 3605122, 30000);
SELECT out_execution_id, out_history, out_messages, out_attempt_count, out_kv_snapshot FROM claimed;
SELECT get_kv_value('order', 'paid'), get_kv_value('order', 'books');
SELECT * FROM get_instance_stats('order');
SELECT ack_orchestration_item(out_lock_token, :now + 3605122, 2, '[]', '[]', '[]',
  '{"orchestration_name": "Order", "orchestration_version": "1.2.0", "status": "Completed", "output": "done", "kv_mutations": [{"action": "clear_all"}, {"action": "set", "key": "end", "value": "1"}]}')
FROM claimed;

-- What readers see.
SELECT count(*) FROM orchestrator_queue;
SELECT count(*) FROM instance_locks;
\x on
SELECT * FROM get_instance_info('order');
SELECT * FROM get_execution_info('order', 1);
SELECT * FROM get_execution_info('order', 2);
\x off
SELECT * FROM list_executions('order');
SELECT latest_execution_id('order'), latest_execution_id('nobody');
SELECT * FROM list_instances() ORDER BY 1;
SELECT * FROM list_instances_by_status('Completed') ORDER BY 1;
SELECT * FROM fetch_history('order');
SELECT * FROM fetch_history_with_execution('order', 1);
-- Once for each row of a query, in its select list.
SELECT e AS execution_id, fetch_history_with_execution('order', e) AS event FROM list_executions('order') l (e);
SELECT * FROM get_kv_all_values('order') ORDER BY 1;
SELECT * FROM get_custom_status('order', 0);
SELECT * FROM get_custom_status('order', 2);
SELECT * FROM get_system_metrics();

-- And the end.
SELECT * FROM prune_executions('order', 1, NULL);
SELECT * FROM list_executions('order');
SELECT * FROM delete_instances_atomic(ARRAY['order', 'child'], false);
SELECT * FROM get_system_metrics();
SELECT (SELECT count(*) FROM kv_store), (SELECT count(*) FROM history), (SELECT count(*) FROM executions), (SELECT count(*) FROM sessions);

-- A turn of 10,000 events and 1,000 work items is a turn as any other.
SELECT enqueue_orchestrator_work('large', '1', 'epoch');
SELECT out_lock_token AS token FROM fetch_orchestration_item(:now, 60000) \gset
SELECT ack_orchestration_item(:'token', :now, 1,
  (SELECT jsonb_agg(jsonb_build_object('event_id', n, 'event_type', 'E', 'event_data', json_build_object('n', n)::text)) FROM generate_series(1, 10000) n),
  (SELECT jsonb_agg(jsonb_build_object('ActivityExecute', jsonb_build_object('instance', 'large', 'execution_id', 1, 'id', n))) FROM generate_series(1, 1000) n),
  '[]', '{"orchestration_name": "O", "orchestration_version": "1"}');
SELECT (SELECT count(*) FROM history), (SELECT count(*) FROM worker_queue), (SELECT min(activity_id) || ' to ' || max(activity_id) FROM worker_queue);
RESET search_path;
SELECT duroxide_queue.drop_queue('turn');
