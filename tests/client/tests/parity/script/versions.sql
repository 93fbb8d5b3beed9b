Pinned versions, and dispatchers that run only some.

--# versions
--!
SELECT enqueue_orchestrator_work('a', :raised(x,1), :at-3000), enqueue_orchestrator_work('b', :raised(x,1), :at-2000), enqueue_orchestrator_work('c', :raised(x,1), :at-1000);
--: claim_a > a
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: pin
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[{"ExternalRaised":{"instance":"a"}}]', '{"orchestration_name":"O","orchestration_version":"1","pinned_duroxide_version":{"major":1,"minor":2,"patch":3}}');
--: claim_b > b
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: pin_in_a_second_turn_first
SELECT ack_orchestration_item(:token(b), :now, 1, '[]', '[]', '[{"ExternalRaised":{"instance":"b"}}]', '{"orchestration_name":"O","orchestration_version":"1","pinned_duroxide_version":null}');
--: claim_c > c
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: pin_in_part
SELECT ack_orchestration_item(:token(c), :now, 1, '[]', '[]', '[{"ExternalRaised":{"instance":"c"}}]', '{"orchestration_name":"O","orchestration_version":"1","pinned_duroxide_version":{"major":9}}');
--: below
SELECT out_instance_id FROM fetch_orchestration_item(:now-2000, 10000, 0, 1002002);
--: nobody_runs_it_but_the_unpinned_goes > b
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:now, 10000, 0, 1002002);
--: above
SELECT out_instance_id FROM fetch_orchestration_item(:now, 10000, 1002004, 9999999);
--: only_a_minimum
SELECT out_instance_id FROM fetch_orchestration_item(:now, 10000, 1002003);
--: only_a_minimum_by_name
SELECT out_instance_id FROM fetch_orchestration_item(:now, 10000, p_min_version_packed => 1002004);
--: empty_range
SELECT out_instance_id FROM fetch_orchestration_item(:now, 10000, 2000000, 1000000);
--: exactly > a
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:now, 10000, 1002003, 1002003);
--: only_a_maximum_is_no_filter > c
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:now, 10000, NULL, 0);
--: pin_again_unpins_nothing
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[{"ExternalRaised":{"instance":"a"}}]', '{"status":"Running"}');
--: change_the_pin
SELECT ack_orchestration_item(:token(b), :now, 1, '[]', '[]', '[{"ExternalRaised":{"instance":"b"}}]', '{"pinned_duroxide_version":{"major":2,"minor":0,"patch":0}}');
--: pin_of_nothing
SELECT ack_orchestration_item(:token(c), :now, 1, '[]', '[]', '[{"ExternalRaised":{"instance":"c"}}]', '{"pinned_duroxide_version":{}}');
--: claim_a_again > a
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:now, 10000, 1002003, 1002003);
--: next_execution_is_not_pinned
SELECT ack_orchestration_item(:token(a), :now, 2, '[]', '[]', '[{"ExternalRaised":{"instance":"a"}}]', '{}');
--: claim_a_of_execution_2 > a
SELECT out_instance_id, out_execution_id, out_lock_token FROM fetch_orchestration_item(:now, 10000, 7, 7);
--: pin_as_text_of_numbers
SELECT ack_orchestration_item(:token(a), :now, 2, '[]', '[]', '[{"ExternalRaised":{"instance":"a"}}]', '{"pinned_duroxide_version":{"major":"3","minor":"0","patch":"1"}}');
--: claim_a_of_version_3 > a
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:now, 10000, 3000001, 3000001);
--: pin_as_scalar
SELECT ack_orchestration_item(:token(a), :now, 2, '[]', '[]', '[]', '{"pinned_duroxide_version":7}');

--# versions_null_text
--!
SELECT enqueue_orchestrator_work('a', :raised(x,1), :at-3000);
INSERT INTO instances VALUES ('a', 'O', '1', 1, :at, :at);
INSERT INTO executions VALUES ('a', 1, 'Running', NULL, :at, NULL, 1, 2, 3);
--: claim > a
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: the_word_null
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[]', '{"pinned_duroxide_version":"null"}');

--# versions_too_large_to_pack
--!
SELECT enqueue_orchestrator_work('a', :raised(x,1), :at-3000), enqueue_orchestrator_work('b', :raised(x,1), :at);
INSERT INTO instances VALUES ('a', 'O', '1', 1, :at, :at);
INSERT INTO executions VALUES ('a', 1, 'Running', NULL, :at, NULL, 2147483647, 0, 0);
--: filtered
SELECT out_instance_id FROM fetch_orchestration_item(:now, 30000, 0, 9999999);
