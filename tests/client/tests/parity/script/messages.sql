To whom a turn's messages go, and when they are visible.

--# messages
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: every_kind
SELECT ack_orchestration_item(:token(a), :now+123, 1, '[]', '[]', '[
  {"StartOrchestration":{"instance":"child","orchestration":"C","parent_instance":"a"}},
  {"ContinueAsNew":{"instance":"a2","orchestration":"O"}},
  {"TimerFired":{"instance":"t","id":1,"fire_at_ms":2000000009876}},
  {"ActivityCompleted":{"instance":"b","id":1}},
  {"ActivityFailed":{"instance":"c","id":1}},
  {"ExternalRaised":{"instance":"d","name":"e"}},
  {"CancelInstance":{"instance":"e","reason":"r"}},
  {"SubOrchCompleted":{"parent_instance":"f","instance":"not","parent_id":1}},
  {"SubOrchFailed":{"parent_instance":"g","instance":"not","parent_id":1}},
  {"QueueMessage":{"instance":"h","name":"q"}},
  {"NobodyKnows":{"instance":"i"}},
  {"instance":"j"},
  {},
  null,
  5,
  "ContinueAsNew",
  ["TimerFired"]
]', :meta);

--# messages_odd_strings
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: nameless
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[7, null, true, {"x": 1}, []]', :meta);
--: claim_own > b
SELECT * FROM fetch_orchestration_item(:now, 30000);

--# messages_timers
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: timers
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[
  {"TimerFired":{"instance":"zero","fire_at_ms":0}},
  {"TimerFired":{"instance":"negative","fire_at_ms":-5000}},
  {"TimerFired":{"instance":"one","fire_at_ms":1}},
  {"TimerFired":{"instance":"null","fire_at_ms":null}},
  {"TimerFired":{"instance":"missing"}},
  {"ExternalRaised":{"instance":"after","fire_at_ms":2000000055555}},
  {"TimerFired":{"instance":"text","fire_at_ms":"2000000004321"}},
  {"TimerFired":{"instance":"past","fire_at_ms":1999999999999}},
  {"TimerFired":{"instance":"first","fire_at_ms":2000000001000}}
]', :meta);

--# messages_two_kinds
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: timer_and_another_kind
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[
  {"StartOrchestration":{"instance":"first"},"TimerFired":{"instance":"second","fire_at_ms":2000000060000}},
  {"ActivityFailed":{"instance":"third"},"ActivityCompleted":{"instance":"fourth"}}
]', :meta);

--# messages_far_timer
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: year_9999
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[{"TimerFired":{"instance":"t","fire_at_ms":253402300799999}}]', :meta);
--: out_of_the_calendar_claim > b
SELECT * FROM fetch_orchestration_item(:now+5000, 30000);

--# messages_timer_out_of_range
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: out_of_the_calendar
SELECT ack_orchestration_item(:token(a), :now, 1, '[]', '[]', '[{"TimerFired":{"instance":"t","fire_at_ms":9000000000000000000}}]', :meta);

--# messages_order
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: to_two_in_turns
SELECT ack_orchestration_item(:token(a), :now, 1, '[]',
  '[{"ActivityExecute":{"instance":"a","execution_id":1,"id":2}},{"ActivityExecute":{"instance":"a","execution_id":1,"id":1}},{"Other":1},7,{"ActivityExecute":null},{"ActivityExecute":{"instance":"a","execution_id":"3","id":"4","session_id":"s","tag":"t"}}]',
  '[{"ExternalRaised":{"instance":"x","n":1}},{"ExternalRaised":{"instance":"y","n":2}},{"ExternalRaised":{"instance":"x","n":3}}]', :meta);
--: x_in_order
SELECT out_instance_id, out_messages FROM fetch_orchestration_item(:now, 30000);
--: y
SELECT out_instance_id, out_messages FROM fetch_orchestration_item(:now, 30000);
--: first_work_item
SELECT out_work_item, out_attempt_count FROM fetch_work_item(:now, 30000);
--: second_work_item
SELECT out_work_item, out_attempt_count FROM fetch_work_item(:now, 30000);
--: third_work_item
SELECT out_work_item, out_attempt_count FROM fetch_work_item(:now, 30000);
