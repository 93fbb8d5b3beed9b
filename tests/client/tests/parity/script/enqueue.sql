Messages and work items come in by every form of the call, and what cannot be stored is refused.

--# enqueue
--: message
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: message_again
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: message_with_all_arguments
SELECT enqueue_orchestrator_work('b', :start(b), :at+1500, 'O', '1.0.0', 7);
--: message_by_name
SELECT enqueue_orchestrator_work(p_visible_at => :at-1, p_work_item => :raised(c,1), p_instance_id => 'c');
--: message_always_due
SELECT enqueue_orchestrator_work('d', :raised(d,1), '-infinity');
--: message_never_due
SELECT enqueue_orchestrator_work('e', :raised(e,1), 'infinity');
--: message_before_christ
SELECT enqueue_orchestrator_work('f', :raised(f,1), '0044-03-15 12:00:00+00 BC');
--: message_at_the_end_of_time
SELECT enqueue_orchestrator_work('g', :raised(g,1), '294276-12-31 23:59:59.999+00');
--: message_of_a_scalar
SELECT enqueue_orchestrator_work('h', '5', :at);
--: message_of_null
SELECT enqueue_orchestrator_work('h', 'null', :at);
--: message_of_an_array
SELECT enqueue_orchestrator_work('h', '[1,2]', :at);
--: message_to_nobody
SELECT enqueue_orchestrator_work('', :raised(,1), :at);
--: message_with_blanks
SELECT enqueue_orchestrator_work('i', E' \n{ "ExternalRaised" :\t{ "instance" : "i" } } ', :at);
--: message_with_a_long_id
SELECT enqueue_orchestrator_work(repeat('a', 9000), :raised(x,1), :at);
--: message_with_a_hostile_id
SELECT enqueue_orchestrator_work('a"b''c.d; drop table x;-- %I $1 日本/🙂', :raised(x,1), :at);
--: message_nulls nulls
SELECT enqueue_orchestrator_work(
  p_instance_id => 'n',
  p_work_item => :raised(n,1),
  p_visible_at => :at,
  p_orchestration_name => 'O',
  p_orchestration_version => '1.0.0',
  p_execution_id => 1
);
--: work_item
SELECT enqueue_worker_work(:execute(a,1), :now);
--: work_item_again
SELECT enqueue_worker_work(:execute(a,1), :now);
--: work_item_with_all_arguments
SELECT enqueue_worker_work(:execute(a,2), :now+250, 'a', 1, 2, 's', 'gpu');
--: work_item_by_name
SELECT enqueue_worker_work(p_now_ms => :now, p_work_item => :execute(a,3), p_tag => 'cpu');
--: work_item_with_large_ids
SELECT enqueue_worker_work('{}', :now, 'a', 9223372036854775807, 9007199254740993);
--: work_item_of_a_scalar
SELECT enqueue_worker_work('5', :now);
--: work_item_with_an_empty_tag
SELECT enqueue_worker_work('{}', :now, 'a', 1, 1, '', '');
--: work_item_long_ago
SELECT enqueue_worker_work('{}', -62135596800000);
--: work_item_nulls nulls
SELECT enqueue_worker_work(
  p_work_item => '{}',
  p_now_ms => :now,
  p_instance_id => 'n',
  p_execution_id => 1,
  p_activity_id => 1,
  p_session_id => 's',
  p_tag => 't'
);
--: depths
SELECT * FROM get_queue_depths(:now);
--: depths_a_little_later
SELECT * FROM get_queue_depths(:now+1500);

--# door
--: message_of_no_json
SELECT enqueue_orchestrator_work('a', 'not json', :at);
--: message_of_nothing
SELECT enqueue_orchestrator_work('a', '', :at);
--: message_of_two_values
SELECT enqueue_orchestrator_work('a', '1 2', :at);
--: message_of_a_list_without_brackets
SELECT enqueue_orchestrator_work('a', '{},{}', :at);
--: message_with_nul
SELECT enqueue_orchestrator_work('a', '{"x":"\u0000"}', :at);
--: message_with_half_a_pair
SELECT enqueue_orchestrator_work('a', '{"x":"\ud800"}', :at);
--: message_with_a_number_out_of_range
SELECT enqueue_orchestrator_work('a', '{"x":1e999999}', :at);
--: work_item_of_no_json
SELECT enqueue_worker_work('not json', :now);
--: work_item_of_nothing
SELECT enqueue_worker_work('', :now);
--: work_item_with_nul
SELECT enqueue_worker_work('{"x":"\u0000"}', :now);
--: work_item_with_half_a_pair
SELECT enqueue_worker_work('{"x":"\ud800"}', :now);
