The key-value store: what mutations leave in delta and store, in every order, and what readers see.

--# kv
--!
SELECT enqueue_orchestrator_work('a', :raised(a,1), :at), enqueue_orchestrator_work('a', :raised(a,2), :at+10000), enqueue_orchestrator_work('a', :raised(a,3), :at+20000), enqueue_orchestrator_work('a', :raised(a,4), :at+30000), enqueue_orchestrator_work('a', :raised(a,5), :at+40000);
--: claim_1 > a
SELECT out_kv_snapshot, out_lock_token FROM fetch_orchestration_item(:now, 5000);
--: set
SELECT ack_orchestration_item(:token(a), :now+1000, 1, '[]', '[]', '[]', '{"orchestration_name":"O","orchestration_version":"1","kv_mutations":[
  {"action":"set","key":"k1","value":"v1","last_updated_at_ms":11},
  {"action":"set","key":"k2","value":"v2"},
  {"action":"set","key":"k1","value":"v1b","last_updated_at_ms":12},
  {"action":"set","key":"","value":""},
  {"action":"set","key":"null","value":null},
  {"action":"set","key":"number","value":7},
  {"action":"set","key":"object","value":{"b":1,"a":2}},
  {"action":"set","key":"null time","value":"x","last_updated_at_ms":null}]}');
--: nulls nulls
SELECT * FROM get_kv_value(
  p_instance => 'a',
  p_key => 'k1'
);
--: all_nulls nulls
SELECT * FROM get_kv_all_values(
  p_instance => 'a'
);
--: value_of_delta
SELECT * FROM get_kv_value('a', 'k1');
--: value_of_empty_key
SELECT * FROM get_kv_value('a', '');
--: value_of_null
SELECT * FROM get_kv_value('a', 'null');
--: value_of_no_key
SELECT * FROM get_kv_value('a', 'nothing');
--: value_of_no_instance
SELECT * FROM get_kv_value('nobody', 'k1');
--: all unordered
SELECT * FROM get_kv_all_values('a');
--: stats
SELECT * FROM get_instance_stats('a');
--: claim_2 > b
SELECT out_kv_snapshot, out_lock_token FROM fetch_orchestration_item(:now+10000, 5000);
--: end_of_execution_merges
SELECT ack_orchestration_item(:token(b), :now+10000, 1, '[]', '[]', '[]', '{"status":"ContinuedAsNew","kv_mutations":[
  {"action":"clear_key","key":"k2"},{"action":"set","key":"k3","value":"v3","last_updated_at_ms":13}]}');
--: value_of_store
SELECT * FROM get_kv_value('a', 'k1');
--: all_of_store unordered
SELECT * FROM get_kv_all_values('a');
--: claim_3 > c
SELECT out_kv_snapshot, out_lock_token FROM fetch_orchestration_item(:now+20000, 5000);
--: change_over_the_store
SELECT ack_orchestration_item(:token(c), :now+20000, 2, '[]', '[]', '[]', '{"kv_mutations":[
  {"action":"set","key":"k1","value":"changed"},{"action":"clear_key","key":"k3"},{"action":"clear_key","key":"never there"}]}');
--: value_of_delta_over_store
SELECT * FROM get_kv_value('a', 'k1');
--: value_cleared_in_delta
SELECT * FROM get_kv_value('a', 'k3');
--: all_of_both unordered
SELECT * FROM get_kv_all_values('a');
--: stats_of_both
SELECT * FROM get_instance_stats('a');
--: claim_4_snapshot_is_the_store > d
SELECT out_kv_snapshot, out_lock_token FROM fetch_orchestration_item(:now+30000, 5000);
--: terminal_turn_merges
SELECT ack_orchestration_item(:token(d), :now+30000, 2, '[]', '[]', '[]', '{"status":"Completed","kv_mutations":[{"action":"set","key":"last","value":"1"}]}');
--: all_after_the_end unordered
SELECT * FROM get_kv_all_values('a');
--: claim_5 > e
SELECT out_kv_snapshot, out_lock_token FROM fetch_orchestration_item(:now+40000, 5000);
--: failure_merges_too
SELECT ack_orchestration_item(:token(e), :now+40000, 3, '[]', '[]', '[]', '{"status":"Failed","kv_mutations":[{"action":"clear_all"},{"action":"set","key":"only","value":"1"}]}');
--: all_after_the_failure unordered
SELECT * FROM get_kv_all_values('a');

--# kv_orders
--!
SELECT enqueue_orchestrator_work(i, :raised(x,1), :at) FROM unnest(ARRAY['a','b','c','d','e','f','g','h','i','j']) i;
INSERT INTO kv_store SELECT i, k, 'stored', 1, 5 FROM unnest(ARRAY['a','b','c','d','e','f','g','h','i','j']) i, unnest(ARRAY['s1','s2']) k;
INSERT INTO kv_delta SELECT i, k, v, 6 FROM unnest(ARRAY['a','b','c','d','e','f','g','h','i','j']) i, (VALUES ('d1','delta'), ('s2',NULL), ('d2',NULL)) d (k, v);
--: claim_a > a
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: clear_all
SELECT ack_orchestration_item(:token(a), :now+7, 1, '[]', '[]', '[]', '{"kv_mutations":[{"action":"clear_all"}]}');
--: claim_b > b
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: set_then_clear_all
SELECT ack_orchestration_item(:token(b), :now+7, 1, '[]', '[]', '[]', '{"kv_mutations":[{"action":"set","key":"n","value":"1","last_updated_at_ms":3},{"action":"set","key":"s1","value":"1","last_updated_at_ms":3},{"action":"clear_all"}]}');
--: claim_c > c
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: clear_all_then_set
SELECT ack_orchestration_item(:token(c), :now+7, 1, '[]', '[]', '[]', '{"kv_mutations":[{"action":"clear_all"},{"action":"set","key":"n","value":"1","last_updated_at_ms":3},{"action":"set","key":"s1","value":"1","last_updated_at_ms":3}]}');
--: claim_d > d
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: set_clear_set
SELECT ack_orchestration_item(:token(d), :now+7, 1, '[]', '[]', '[]', '{"kv_mutations":[{"action":"set","key":"n","value":"1"},{"action":"clear_key","key":"n"},{"action":"set","key":"n","value":"2","last_updated_at_ms":3},{"action":"clear_key","key":"d1"}]}');
--: claim_e > e
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: clear_set_clear
SELECT ack_orchestration_item(:token(e), :now+7, 1, '[]', '[]', '[]', '{"kv_mutations":[{"action":"clear_key","key":"s1"},{"action":"set","key":"s1","value":"1"},{"action":"clear_key","key":"s1","last_updated_at_ms":3}]}');
--: claim_f > f
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: clear_all_twice_with_sets_between
SELECT ack_orchestration_item(:token(f), :now+7, 1, '[]', '[]', '[]', '{"kv_mutations":[{"action":"clear_all"},{"action":"set","key":"n","value":"1"},{"action":"clear_all"},{"action":"set","key":"m","value":"2","last_updated_at_ms":4}]}');
--: claim_g > g
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: clear_key_then_clear_all
SELECT ack_orchestration_item(:token(g), :now+7, 1, '[]', '[]', '[]', '{"kv_mutations":[{"action":"clear_key","key":"fresh"},{"action":"clear_all"}]}');
--: claim_h > h
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: clear_all_and_end
SELECT ack_orchestration_item(:token(h), :now+7, 1, '[]', '[]', '[]', '{"status":"Completed","kv_mutations":[{"action":"clear_all"},{"action":"set","key":"s2","value":"kept","last_updated_at_ms":3}]}');
--: claim_i > i
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: end_without_mutations
SELECT ack_orchestration_item(:token(i), :now+7, 4, '[]', '[]', '[]', '{"status":"Failed","kv_mutations":[]}');
--: claim_j > j
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: actions_of_no_known_name
SELECT ack_orchestration_item(:token(j), :now+7, 1, '[]', '[]', '[]', '{"kv_mutations":[{"action":"SET","key":"k","value":"v"},{"key":"k"},null,5,"clear_all",["clear_all"],{"action":null}]}');

--# kv_null_mutations
--!
SELECT enqueue_orchestrator_work('a', :raised(x,1), :at);
--: claim > a
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: mutations_null
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[]', '{"kv_mutations":null}');

--# kv_unused_time
--!
SELECT enqueue_orchestrator_work('a', :raised(x,1), :at);
--: claim > a
SELECT out_lock_token FROM fetch_orchestration_item(:now, 30000);
--: bad_time_of_a_clear
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[]', '{"kv_mutations":[{"action":"clear_key","key":"k","last_updated_at_ms":"x"}]}');
