What the acknowledgement of a turn writes, and what it refuses.

--# turn
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: nulls nulls
SELECT ack_orchestration_item(
  p_lock_token => :token(a),
  p_now_ms => :now+1234,
  p_execution_id => 1,
  p_history_delta => :events(1,2),
  p_worker_items => '[{"ActivityExecute":{"instance":"a","execution_id":1,"id":2,"name":"n","input":"i"}}]',
  p_orchestrator_items => '[{"ExternalRaised":{"instance":"b"}}]',
  p_metadata => '{"orchestration_name":"O","orchestration_version":"1.0.0","status":"Completed","output":"out"}',
  p_cancelled_activities => '[{"instance":"a","execution_id":1,"activity_id":2}]'
);
--: message_that_comes_too_late
SELECT enqueue_orchestrator_work('a', :raised(a,1), :at);
--: wrong_token
SELECT ack_orchestration_item('lock_nobody', :now, 1, '[]', '[]', '[]', :meta);
--: first_turn
SELECT ack_orchestration_item(:token(a), :now+1234, 1, :events(1,3), '[{"ActivityExecute":{"instance":"a","execution_id":1,"id":2,"name":"n","input":"i"}}]', '[]', '{"orchestration_name":"O","orchestration_version":"1.0.0","parent_instance_id":"p"}');
--: claim_second > b
SELECT * FROM fetch_orchestration_item(:now+5000, 30000);
--: second_turn_changes_name_and_keeps_parent
SELECT ack_orchestration_item(:token(b), :now+5000, 1, :events(4,4), NULL, NULL, '{"orchestration_name":"P","orchestration_version":"2.0.0","parent_instance_id":"q"}', NULL);
--!
SELECT enqueue_orchestrator_work('a', :raised(a,2), :at);
--: claim_third > c
SELECT * FROM fetch_orchestration_item(:now+10000, 30000);
--: third_turn_without_anything
SELECT ack_orchestration_item(:token(c), :now+10000, 1, '[]', '[]', '[]', '{}', '[]');
--: info
SELECT * FROM get_instance_info('a');

--# turn_status
--!
SELECT enqueue_orchestrator_work(i, :raised(x,1), :at) FROM unnest(ARRAY['completed','failed','continued','odd','empty','output','number']) i;
--: claim_completed > a
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: completed
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[]', '{"orchestration_name":"O","orchestration_version":"1","status":"Completed","output":"done"}');
--: claim_failed > b
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: failed
SELECT ack_orchestration_item(:token(b), :now+77, 1, '[]', '[]', '[]', '{"orchestration_name":"O","orchestration_version":"1","status":"Failed","output":"why"}');
--: claim_continued > c
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: continued
SELECT ack_orchestration_item(:token(c), :now, 1, '[]', '[]', '[{"ContinueAsNew":{"instance":"continued","orchestration":"O","input":"x","version":"2"}}]', '{"orchestration_name":"O","orchestration_version":"1","status":"ContinuedAsNew","output":"next"}');
--: claim_odd > d
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: status_of_no_known_name
SELECT ack_orchestration_item(:token(d), :now, 1, '[]', '[]', '[]', '{"orchestration_name":"O","orchestration_version":"1","status":"completed"}');
--: claim_empty > e
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: empty_status
SELECT ack_orchestration_item(:token(e), :now, 1, '[]', '[]', '[]', '{"orchestration_name":"","orchestration_version":"","status":""}');
--: claim_output > f
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: output_without_status
SELECT ack_orchestration_item(:token(f), :now, 1, '[]', '[]', '[]', '{"orchestration_name":"O","orchestration_version":"1","output":"lost"}');
--: claim_number > g
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: everything_of_another_type
SELECT ack_orchestration_item(:token(g), :now, 1, '[]', '[]', '[]', '{"orchestration_name":1,"orchestration_version":[2],"status":{"a":1},"output":true,"parent_instance_id":null}');
--: claim_next_execution > h
SELECT * FROM fetch_orchestration_item(:now+5000, 30000);
--: next_execution
SELECT ack_orchestration_item(:token(h), :now+5000, 2, :events(1,2), '[]', '[]', '{"orchestration_name":"O","orchestration_version":"2","status":"Completed","output":"finally"}');
--: both_executions
SELECT * FROM list_executions('continued');
--: first_execution
SELECT * FROM get_execution_info('continued', 1);
--: second_execution
SELECT * FROM get_execution_info('continued', 2);
--: info
SELECT * FROM get_instance_info('continued');
--!
SELECT enqueue_orchestrator_work('continued', :raised(x,1), :at);
--: claim_after_the_end > i
SELECT * FROM fetch_orchestration_item(:now+10000, 30000);
--: an_older_execution_does_not_turn_back
SELECT ack_orchestration_item(:token(i), :now+10000, 1, '[]', '[]', '[]', '{"status":"Failed","output":"late"}');
--: by_status
SELECT * FROM list_instances_by_status('Completed') ORDER BY 1;
--: by_status_of_no_known_name
SELECT * FROM list_instances_by_status('completed');

--# turn_without_metadata
--!
SELECT enqueue_orchestrator_work(i, :raised(x,1), :at) FROM unnest(ARRAY['a','b','c','d','e','f']) i;
--: claim_a > a
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: no_metadata
SELECT ack_orchestration_item(:token(a), :now, 1, :events(1,1), '[]', '[]', NULL);
--: claim_b > b
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: metadata_null
SELECT ack_orchestration_item(:token(b), :now, 1, '[]', '[]', '[]', 'null');
--: claim_c > c
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: metadata_of_a_scalar
SELECT ack_orchestration_item(:token(c), :now, 1, '[]', '[]', '[]', '"pinned_duroxide_version"');
--: claim_d > d
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: metadata_of_an_array
SELECT ack_orchestration_item(:token(d), :now, 1, '[]', '[]', '[]', '["status"]');
--: claim_e > e
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: name_without_version
SELECT ack_orchestration_item(:token(e), :now, 1, '[]', '[]', '[]', '{"orchestration_name":"O","status":"Completed"}');
--: claim_f > f
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: version_without_name
SELECT ack_orchestration_item(:token(f), :now, 3, '[]', '[]', '[]', '{"orchestration_version":"1","custom_status_action":"set","custom_status_value":"x"}');

--# turn_refused
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--!
INSERT INTO history VALUES ('a', 1, 1, 'T', '{}', :at);
--: event_that_is_there
SELECT ack_orchestration_item(:token(a), :now, 1, :events(1,2), '[]', '[]', :meta);
--: event_twice_in_one_turn
SELECT ack_orchestration_item(:token(a), :now, 1, '[{"event_id":5,"event_type":"T","event_data":"{}"},{"event_id":5,"event_type":"T","event_data":"{}"}]', '[]', '[]', :meta);
--: event_without_id
SELECT ack_orchestration_item(:token(a), :now, 1, '[{"event_type":"T","event_data":"{}"}]', '[]', '[]', :meta);
--: event_without_type
SELECT ack_orchestration_item(:token(a), :now, 1, '[{"event_id":5,"event_data":"{}"}]', '[]', '[]', :meta);
--: event_without_data
SELECT ack_orchestration_item(:token(a), :now, 1, '[{"event_id":5,"event_type":"T"}]', '[]', '[]', :meta);
--: event_id_of_text
SELECT ack_orchestration_item(:token(a), :now, 1, '[{"event_id":"x","event_type":"T","event_data":"{}"}]', '[]', '[]', :meta);
--: event_id_of_a_fraction
SELECT ack_orchestration_item(:token(a), :now, 1, '[{"event_id":1.5,"event_type":"T","event_data":"{}"}]', '[]', '[]', :meta);
--: event_id_too_large
SELECT ack_orchestration_item(:token(a), :now, 1, '[{"event_id":9223372036854775808,"event_type":"T","event_data":"{}"}]', '[]', '[]', :meta);
--: event_of_a_scalar
SELECT ack_orchestration_item(:token(a), :now, 1, '[5]', '[]', '[]', :meta);
--: history_null
SELECT ack_orchestration_item(:token(a), :now, 1, 'null', '[]', '[]', :meta);
--: history_of_a_scalar
SELECT ack_orchestration_item(:token(a), :now, 1, '5', '[]', '[]', :meta);
--: history_of_an_object
SELECT ack_orchestration_item(:token(a), :now, 1, '{}', '[]', '[]', :meta);
--: worker_items_null
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', 'null', '[]', :meta);
--: worker_items_of_an_object
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '{"a":1}', '[]', :meta);
--: messages_of_a_scalar
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '"x"', :meta);
--: messages_of_an_object
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '{}', :meta);
--: cancelled_of_an_object
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[]', :meta, '{}');
--: cancelled_with_a_bad_id
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[]', :meta, '[{"instance":"a","execution_id":"x","activity_id":1}]');
--: activity_with_a_bad_id
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[{"ActivityExecute":{"instance":"a","execution_id":1,"id":"x"}}]', '[]', :meta);
--: mutations_of_an_object
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[]', '{"kv_mutations":{}}');
--: mutations_of_a_scalar
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[]', '{"kv_mutations":7}');
--: mutation_without_key
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[]', '{"kv_mutations":[{"action":"set","value":"v"}]}');
--: clear_without_key
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[]', '{"kv_mutations":[{"action":"clear_key"}]}');
--: mutation_with_a_bad_time
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[]', '{"kv_mutations":[{"action":"set","key":"k","value":"v","last_updated_at_ms":"x"}]}');
--: pinned_version_of_text
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[]', '{"pinned_duroxide_version":{"major":"x","minor":0,"patch":0}}');
--: pinned_version_too_large
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[]', '{"pinned_duroxide_version":{"major":2147483648,"minor":0,"patch":0}}');
--: timer_of_text
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[{"TimerFired":{"instance":"a","fire_at_ms":"soon"}}]', :meta);
--: message_without_target
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[{"ExternalRaised":{"name":"e"}}]', :meta);
--: still_held_after_all_that > x
SELECT * FROM fetch_orchestration_item(:now, 30000);

--# turn_door
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
SELECT enqueue_orchestrator_work('b', :start(b), :at);
SELECT enqueue_orchestrator_work('c', :start(c), :at);
SELECT enqueue_orchestrator_work('d', :start(d), :at);
--: claim_a > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: event_with_nul
SELECT ack_orchestration_item(:token(a), :now, 1, '[{"event_id":1,"event_type":"T","event_data":"\"\\u0000\""}]', '[]', '[]', :meta);
--: claim_b > b
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: event_of_two_values
SELECT ack_orchestration_item(:token(b), :now, 1, '[{"event_id":1,"event_type":"T","event_data":"1,2"}]', '[]', '[]', :meta);
--: claim_c > c
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: event_of_an_object
SELECT ack_orchestration_item(:token(c), :now, 1, '[{"event_id":1,"event_type":"T","event_data":{"a": 1.00}}]', '[]', '[]', :meta);
--: claim_d > d
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: event_that_is_no_json
SELECT ack_orchestration_item(:token(d), :now, 1, '[{"event_id":5,"event_type":"T","event_data":"not json"}]', '[]', '[]', :meta);

--# turn_cancels
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
SELECT enqueue_worker_work(:execute(a,1), :now, 'a', 1, 1);
SELECT enqueue_worker_work(:execute(a,2), :now, 'a', 1, 2);
SELECT enqueue_worker_work(:execute(a,2), :now, 'a', 2, 2);
SELECT enqueue_worker_work(:execute(b,2), :now, 'b', 1, 2);
SELECT enqueue_worker_work(:execute(a,3), :now, 'a', 1, 3);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: a_worker_has_the_first > w
SELECT * FROM fetch_work_item(:now, 30000);
--: cancelled
SELECT ack_orchestration_item(:token(a), :now, 1, '[]',
  '[{"ActivityExecute":{"instance":"a","execution_id":1,"id":9,"name":"n"}},{"ActivityExecute":{"instance":"a","execution_id":1,"id":8,"name":"n"}}]',
  '[]', :meta,
  '[{"instance":"a","execution_id":1,"activity_id":1},{"instance":"a","execution_id":1,"activity_id":2},{"instance":"a","execution_id":1,"activity_id":9},{"instance":"nobody","execution_id":1,"activity_id":1},{"instance":"a"},{},null,5]');
--: the_worker_finds_nothing
SELECT ack_worker(:token(w), 'a', '{"ActivityCompleted":{"instance":"a","id":1,"result":"r"}}', :now);
--: nor_to_renew
SELECT renew_work_item_lock(:token(w), :now, 60);
--: nor_to_give_up
SELECT abandon_work_item(:token(w), :now);
