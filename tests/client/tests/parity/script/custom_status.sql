The custom status: set, cleared, left alone, and read by version.

--# custom_status
--!
SELECT enqueue_orchestrator_work('a', :raised(a,1), :at), enqueue_orchestrator_work('a', :raised(a,2), :at+10000), enqueue_orchestrator_work('a', :raised(a,3), :at+20000), enqueue_orchestrator_work('a', :raised(a,4), :at+30000), enqueue_orchestrator_work('a', :raised(a,5), :at+40000), enqueue_orchestrator_work('a', :raised(a,6), :at+50000);
--: claim_1 > a
SELECT out_lock_token FROM fetch_orchestration_item(:now, 5000);
--: set_by_the_first_turn
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[]', '{"orchestration_name":"O","orchestration_version":"1","custom_status_action":"set","custom_status_value":"hello"}');
--: nulls nulls
SELECT * FROM get_custom_status(
  p_instance_id => 'a',
  p_last_seen_version => 0
);
--: read
SELECT * FROM get_custom_status('a', 0);
--: read_seen
SELECT * FROM get_custom_status('a', 1);
--: read_from_before
SELECT * FROM get_custom_status('a', -1);
--: read_nobody
SELECT * FROM get_custom_status('nobody', 0);
--: claim_2 > b
SELECT out_lock_token FROM fetch_orchestration_item(:now+10000, 5000);
--: left_alone
SELECT ack_orchestration_item(:token(b), :now+10000, 1, '[]', '[]', '[]', '{"custom_status_value":"ignored"}');
--: read_left_alone
SELECT * FROM get_custom_status('a', 0);
--: claim_3 > c
SELECT out_lock_token FROM fetch_orchestration_item(:now+20000, 5000);
--: cleared
SELECT ack_orchestration_item(:token(c), :now+20000, 1, '[]', '[]', '[]', '{"custom_status_action":"clear","custom_status_value":"ignored"}');
--: read_cleared
SELECT * FROM get_custom_status('a', 1);
--: claim_4 > d
SELECT out_lock_token FROM fetch_orchestration_item(:now+30000, 5000);
--: set_without_name_in_metadata
SELECT ack_orchestration_item(:token(d), :now+30000, 1, '[]', '[]', '[]', '{"custom_status_action":"set","custom_status_value":{"a": [1.0]}}');
--: read_object
SELECT * FROM get_custom_status('a', 2);
--: claim_5 > e
SELECT out_lock_token FROM fetch_orchestration_item(:now+40000, 5000);
--: set_to_nothing
SELECT ack_orchestration_item(:token(e), :now+40000, 1, '[]', '[]', '[]', '{"orchestration_name":"O","orchestration_version":"1","custom_status_action":"set"}');
--: read_nothing
SELECT * FROM get_custom_status('a', 3);
--: claim_6 > f
SELECT out_lock_token FROM fetch_orchestration_item(:now+50000, 5000);
--: action_of_no_known_name
SELECT ack_orchestration_item(:token(f), :now+50000, 1, '[]', '[]', '[]', '{"custom_status_action":"Set","custom_status_value":"x"}');
--: read_after_all
SELECT * FROM get_custom_status('a', 0);
