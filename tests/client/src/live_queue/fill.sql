-- A live queue, {q}: something in each of its tables, one instance and one work item under a lease. Times are those of
-- the callers, so that the leases end when a test says so: at 2000000060000.

-- 'done' has come to its end, with a value in the store.
SELECT {q}.enqueue_orchestrator_work('done', '"start"', 'epoch', 'Order', '1.0.0', 1);
SELECT {q}.fetch_orchestration_item(2000000000000, 60000);
SELECT {q}.ack_orchestration_item(lock_token, 2000000000000, 1,
         '[{"event_id": 1, "event_type": "Started", "event_data": "{\"n\": 1.50}"},
           {"event_id": 2, "event_type": "Completed", "event_data": "\"\u00e9\""}]', '[]', '[]',
         '{"orchestration_name": "Order", "orchestration_version": "1.0.0", "status": "Completed", "output": "done",
           "kv_mutations": [{"action": "set", "key": "total", "value": "36.00"}]}')
  FROM {q}.instance_locks WHERE instance_id = 'done';

-- 'runs' has done its first turn: history, status, a change of the store, and an activity.
SELECT {q}.enqueue_orchestrator_work('runs', '"start"', 'epoch', 'Order', '1.0.0', 1);
SELECT {q}.fetch_orchestration_item(2000000000000, 60000);
SELECT {q}.ack_orchestration_item(lock_token, 2000000000000, 1,
         '[{"event_id": 1, "event_type": "Started", "event_data": "{}"}]', '["an activity"]', '[]',
         '{"orchestration_name": "Order", "orchestration_version": "1.0.0", "status": "Running",
           "custom_status_action": "set", "custom_status_value": "packing",
           "kv_mutations": [{"action": "set", "key": "step", "value": "1"}, {"action": "clear_key", "key": "gone"}]}')
  FROM {q}.instance_locks WHERE instance_id = 'runs';

-- One work item under a lease, in a session; the activity of 'runs' stays behind it.
SELECT {q}.enqueue_worker_work('"in a session"', 0, p_session_id => 's', p_tag => 't');
SELECT {q}.fetch_work_item(2000000000000, 60000, 'worker', 60000, ARRAY['t'], 'tags');

-- What cannot be delivered, and got in by the back door.
INSERT INTO {q}.orchestrator_queue (instance_id, work_item, visible_at, created_at)
  VALUES ('bad', 'not JSON', 'epoch', 'epoch');
SELECT {q}.fetch_orchestration_item(2000000000000, 60000);

-- One instance under a lease, one that waits with three messages, one message of the future.
SELECT {q}.enqueue_orchestrator_work('leased', '"start"', 'epoch', 'Order', '1.0.0', 1);
SELECT {q}.fetch_orchestration_item(2000000000000, 60000);
SELECT {q}.enqueue_orchestrator_work('waits', to_json(n)::text, 'epoch', 'Order', '1.0.0', 1) FROM generate_series(1, 3) n;
SELECT {q}.enqueue_orchestrator_work('later', '"start"', '2100-01-01 00:00:00+00');
