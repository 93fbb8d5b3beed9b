JSON comes back as it went in, or as jsonb prints it.

--# json
--!
SELECT enqueue_orchestrator_work('a', '{"z":12345678901234567890123,"a":18446744073709551615,"b":1.00,"c":-0,"d":0.1234567890123456789012345678901234567890,"dup":1,"dup":2,"e":1e2,"\u00e9":"\u00e9é","nested":{"b":1,"aa":2,"a":3},"t":true,"n":null,"s":"\"\\\/\b\f\n\r\t"}', :at);
SELECT enqueue_orchestrator_work('a', '  [ 1 , 2.50 , { } , [ ] , "" ]  ', :at);
SELECT enqueue_orchestrator_work('a', '{"pair":"\ud83d\ude42","big":1e400,"small":1e-400,"neg":-1.50e-3}', :at);
SELECT enqueue_worker_work('  {"z": 1.00,  "a": 12345678901234567890123, "dup":1, "dup":2, "x":"\u0041\/"}  ', :now);
--: messages > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: work_item_as_it_was > w
SELECT * FROM fetch_work_item(:now, 30000);
--: completion_as_it_was
SELECT ack_worker(:token(w), 'b', ' {"z": 1.00, "a" :12345678901234567890123} ', :now);
--: turn
SELECT ack_orchestration_item(:token(a), :now, 1,
  '[{"event_id":1,"event_type":"T","event_data":" {\"z\": 1.00,  \"a\": 12345678901234567890123, \"dup\":1, \"dup\":2, \"x\":\"\\u0041\\/\", \"e\":1e400} "},{"event_id":9223372036854775807,"event_type":"é\"\n","event_data":"[1.0e3]"}]',
  '[{"ActivityExecute":{"z":1.00,"instance":"a","execution_id":9007199254740993,"id":9223372036854775807,"a":12345678901234567890123,"dup":1,"dup":2}}]',
  '[{"ExternalRaised":{"z":1.00,"instance":"a","aa":18446744073709551615}}]',
  '{"orchestration_name":"O\u00e9","orchestration_version":"1.00","output":"{\"z\": 1.00}","status":"Running","kv_mutations":[{"action":"set","key":"k\u00e9","value":" {\"z\": 1.00} "}]}');
--: history_as_it_was
SELECT * FROM fetch_history('a');
--: value_as_it_was
SELECT * FROM get_kv_all_values('a');
--: history_and_messages_as_jsonb > b
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: completion_as_jsonb > c
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: work_item_as_jsonb > d
SELECT * FROM fetch_work_item(:now, 30000);
--: info
SELECT * FROM get_instance_info('a');

--# json_depth
--!
SELECT enqueue_orchestrator_work('a', repeat('[', 1000) || repeat(']', 1000), :at);
--: a_thousand_deep
SELECT md5(out_messages::text) FROM fetch_orchestration_item(:now, 30000);

--# json_size
--!
SELECT enqueue_orchestrator_work('a', '"' || repeat('x', 1000000) || '"', :at) FROM generate_series(1, 5);
INSERT INTO instances VALUES ('a', 'O', '1', 1, :at, :at);
INSERT INTO history SELECT 'a', 1, n, 'T', '{"n": ' || n || ', "pad": "' || repeat('p', n % 300) || '"}', :at FROM generate_series(1, 2000) n;
--: large
SELECT md5(out_messages::text), md5(out_history::text), jsonb_array_length(out_history) FROM fetch_orchestration_item(:now, 30000);
