Which instance a claim takes, with which messages, and what it is called.

--# claim
--: empty
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: nulls_empty nulls
SELECT * FROM fetch_orchestration_item(
  p_now_ms => :now,
  p_lock_timeout_ms => 30000,
  p_min_version_packed => NULL,
  p_max_version_packed => NULL
);
--!
SELECT enqueue_orchestrator_work('late', :start(late), :at+5000);
SELECT enqueue_orchestrator_work('two', :raised(two,2), :at-1000);
SELECT enqueue_orchestrator_work('one', :start(one), :at-2000);
SELECT enqueue_orchestrator_work('two', :start(two), :at-3000);
SELECT enqueue_orchestrator_work('one', :raised(one,1), :at);
SELECT enqueue_orchestrator_work('one', :raised(one,2), :at+1000);
--: nulls nulls
SELECT * FROM fetch_orchestration_item(
  p_now_ms => :now,
  p_lock_timeout_ms => 30000,
  p_min_version_packed => 0,
  p_max_version_packed => 999999999
);
--: first_is_the_oldest_message > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: depths_under_a_lease
SELECT * FROM get_queue_depths(:now);
--: second_with_visible_messages_only > b
SELECT * FROM fetch_orchestration_item(p_lock_timeout_ms => 60000, p_now_ms => :now);
--: third_is_not_due
SELECT * FROM fetch_orchestration_item(:now+4000, 30000);
--: message_for_a_leased_instance
SELECT enqueue_orchestrator_work('one', :raised(one,3), :at);
--: leased_with_a_new_message
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: third_is_due > c
SELECT * FROM fetch_orchestration_item(:now+5000, 30000);
--: expired_is_claimed_again > d
SELECT * FROM fetch_orchestration_item(:now+40000, 30000);
--: next_expires > e
SELECT * FROM fetch_orchestration_item(:now+65000, 30000);
--: and_the_next > f
SELECT * FROM fetch_orchestration_item(:now+65000, 30000);
--: nothing_else
SELECT * FROM fetch_orchestration_item(:now+65000, 30000);

--# claim_names
--!
SELECT enqueue_orchestrator_work('start', '{"StartOrchestration":{"instance":"start","orchestration":"Named","version":null,"execution_id":5}}', :at-20000);
SELECT enqueue_orchestrator_work('start2', '{"StartOrchestration":{"instance":"start2","orchestration":"Named"}}', :at-19000);
SELECT enqueue_orchestrator_work('again', '{"ContinueAsNew":{"instance":"again","orchestration":"Next","version":"2.1.0","execution_id":9}}', :at-18000);
SELECT enqueue_orchestrator_work('again2', '{"ContinueAsNew":{"instance":"again2","orchestration":"Next"}}', :at-17000);
SELECT enqueue_orchestrator_work('event', :raised(event,1), :at-16000);
SELECT enqueue_orchestrator_work('later', :raised(later,1), :at-15000);
SELECT enqueue_orchestrator_work('later', :start(later), :at-15000);
SELECT enqueue_orchestrator_work('scalar', '5', :at-14000);
SELECT enqueue_orchestrator_work('text', '"StartOrchestration"', :at-13000);
SELECT enqueue_orchestrator_work('array', '["ContinueAsNew"]', :at-12000);
SELECT enqueue_orchestrator_work('empty', '{"StartOrchestration":{}}', :at-11000);
SELECT enqueue_orchestrator_work('none', '{"StartOrchestration":null}', :at-10000);
SELECT enqueue_orchestrator_work('textid', '{"StartOrchestration":{"orchestration":"Named","execution_id":"7"}}', :at-9000);
SELECT enqueue_orchestrator_work('large', '{"StartOrchestration":{"orchestration":"Named","execution_id":9007199254740993}}', :at-8000);
SELECT enqueue_orchestrator_work('old', :raised(old,1), :at-5000);
INSERT INTO history VALUES
  ('old', 1, 1, 'T', '{"OrchestrationStarted":{"name":"FromHistory","version":"3.0.0"}}', :at),
  ('old', 2, 1, 'T', '{"Second":{}}', :at),
  ('old', 1, 2, 'T', '{"Third":{}}', :at);
SELECT enqueue_orchestrator_work('bare', :start(bare), :at-4000);
INSERT INTO history VALUES ('bare', 3, 1, 'T', '{"OrchestrationStarted":{}}', :at);
SELECT enqueue_orchestrator_work('unversioned', :start(x), :at-3000);
INSERT INTO instances VALUES ('unversioned', 'FromInstance', NULL, 4, :at, :at);
INSERT INTO history VALUES ('unversioned', 3, 1, 'T', '{"of":"another execution"}', :at),
  ('unversioned', 4, 2, 'T', '{"b": 2, "a": 1.00}', :at), ('unversioned', 4, 1, 'T', '[true]', :at);
INSERT INTO kv_store VALUES ('unversioned', 'k', 'v', 3, 17), ('unversioned', 'a', '', 3, 0);
INSERT INTO kv_delta VALUES ('unversioned', 'k', 'changed', 18);
--: start
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: start_without_version_and_execution
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: continue_as_new
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: continue_as_new_without_version
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: event_for_nobody
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: event_before_the_start
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: scalar
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: text_that_reads_like_a_start
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: array_that_reads_like_a_continuation
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: start_without_a_name
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: start_of_null
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: execution_as_text
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: execution_beyond_a_double
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: name_from_history
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: history_without_a_name
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: name_from_the_instance
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: nothing_left
SELECT * FROM fetch_orchestration_item(:now, 30000);

--# claim_executions
--!
SELECT enqueue_orchestrator_work('largest', '{"StartOrchestration":{"orchestration":"Named","execution_id":9223372036854775807}}', :at-7000);
SELECT enqueue_orchestrator_work('negative', '{"StartOrchestration":{"orchestration":"Named","execution_id":-3}}', :at-6000);
--: execution_of_64_bits
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: execution_below_zero
SELECT * FROM fetch_orchestration_item(:now, 30000);

--# claim_bad_execution
--!
SELECT enqueue_orchestrator_work('bad', '{"StartOrchestration":{"orchestration":"Named","execution_id":"x"}}', :at-6000);
--: execution_that_is_no_number
SELECT * FROM fetch_orchestration_item(:now, 30000);

--# claim_lengths
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
SELECT enqueue_orchestrator_work('b', :start(b), :at);
SELECT enqueue_orchestrator_work('c', :start(c), :at);
--: no_time_at_all > a
SELECT * FROM fetch_orchestration_item(:now, 0);
--: again_at_once
SELECT * FROM fetch_orchestration_item(:now+5000, 600000);
--: below_zero > b
SELECT * FROM fetch_orchestration_item(:now+5000, -10000);
--: a_year > c
SELECT * FROM fetch_orchestration_item(:now+5000, 4000000000);
--: too_long
SELECT * FROM fetch_orchestration_item(:now+5000, 9223372036854775807);

--# claim_expired_in_order
--!
SELECT enqueue_orchestrator_work('old', '{"n":0}', :at-5000);
SELECT enqueue_orchestrator_work('busy', '{"n":1}', :at) FROM generate_series(1, 9);
--: old
SELECT out_instance_id FROM fetch_orchestration_item(:now, 20000);
--: busy
SELECT out_instance_id FROM fetch_orchestration_item(:now, 10000);
--: old_again
SELECT out_instance_id FROM fetch_orchestration_item(:now+25000, 20000);
--: busy_again
SELECT out_instance_id FROM fetch_orchestration_item(:now+25000, 20000);

--# claim_infinity
--!
SELECT enqueue_orchestrator_work('never', :start(never), 'infinity');
SELECT enqueue_orchestrator_work('always', :start(always), '-infinity');
SELECT enqueue_orchestrator_work('millisecond', :start(millisecond), :at+123);
--: nulls nulls
SELECT * FROM get_queue_depths(
  p_now_ms => :now
);
--: depths
SELECT * FROM get_queue_depths(:now);
--: depths_before
SELECT * FROM get_queue_depths(:now+122);
--: depths_at
SELECT * FROM get_queue_depths(:now+123);
--: depths_long_ago
SELECT * FROM get_queue_depths(-62135596800000);
--: always_due
SELECT * FROM fetch_orchestration_item(-62135596800000, 30000);
--: due_at_the_millisecond
SELECT * FROM fetch_orchestration_item(:now+123, 30000);
--: never_due
SELECT * FROM fetch_orchestration_item(:now+1000000000000, 30000);

--# claim_bad_rows
--!
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES ('bad', 'not json', :at-9000, :at), ('bad', '{"x":"\u0000"}', :at-8000, :at);
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES ('good', :raised(good,1), :at, :at);
--: good_behind_bad
SELECT * FROM fetch_orchestration_item(:now, 30000);

--# claim_bad_history
--!
SELECT enqueue_orchestrator_work('bad', :raised(bad,1), :at);
INSERT INTO instances VALUES ('bad', 'O', '1', 1, :at, :at);
INSERT INTO history VALUES ('bad', 1, 1, 'T', '{}', :at), ('bad', 1, 2, 'T', 'not json', :at);
--: bad_event
SELECT * FROM fetch_orchestration_item(:now, 30000);
