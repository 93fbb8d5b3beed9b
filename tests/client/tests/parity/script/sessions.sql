Sessions: bound to a worker by its first item, kept alive, let go.

--# sessions
--!
SELECT enqueue_worker_work('{"n":1}', :now-9000, p_session_id => 's1');
SELECT enqueue_worker_work('{"n":2}', :now-8000, p_session_id => 's1');
SELECT enqueue_worker_work('{"n":3}', :now-7000, p_session_id => 's2');
SELECT enqueue_worker_work('{"n":4}', :now-6000);
SELECT enqueue_worker_work('{"n":5}', :now-5000, p_session_id => 's1');
--: first_of_session_1 > a
SELECT * FROM fetch_work_item(:now, 30000, 'w1', 60000);
--: another_worker_gets_session_2 > b
SELECT * FROM fetch_work_item(:now, 30000, 'w2', 60000);
--: another_worker_gets_no_more_of_session_1 > c
SELECT * FROM fetch_work_item(:now, 30000, 'w2', 60000);
--: the_first_gets_the_second_of_session_1 > d
SELECT * FROM fetch_work_item(:now, 30000, 'w1', 60000);
--: nothing_for_the_second
SELECT * FROM fetch_work_item(:now, 30000, 'w2');
--: nothing_for_those_without_a_name
SELECT * FROM fetch_work_item(:now, 30000);
--: the_first_goes_on_without_a_length > e
SELECT * FROM fetch_work_item(:now+5000, 90000, 'w1');
--: activity_of_an_ack
SELECT ack_worker(:token(a), 'i', '{}', :now+10000);
--: activity_of_a_renewal
SELECT renew_work_item_lock(:token(b), :now+15000, 60);
--: no_activity_without_a_time
SELECT ack_worker(:token(e));
--: expired_goes_to_another > f
SELECT * FROM fetch_work_item(:now+200000, 30000, 'w3', 60000);
--: and_the_rest_too > g
SELECT * FROM fetch_work_item(:now+200000, 30000, 'w3', 60000);

--# sessions_abandon
--!
SELECT enqueue_worker_work('{"n":1}', :now, p_session_id => 's1');
--: claim > a
SELECT * FROM fetch_work_item(:now, 30000, 'w1', 60000);
--: no_activity
SELECT abandon_work_item(:token(a), :now+20000);
--: the_session_stays_with_its_owner
SELECT * FROM fetch_work_item(:now+20000, 30000, 'w2', 60000);
--: who_may_go_on > b
SELECT * FROM fetch_work_item(:now+20000, 30000, 'w1', 60000);

--# sessions_expired_activity
--!
SELECT enqueue_worker_work('{"n":1}', :now, p_session_id => 's1');
--: claim > a
SELECT * FROM fetch_work_item(:now, 600000, 'w1', 10000);
--: renewal_of_an_item_whose_session_is_over
SELECT renew_work_item_lock(:token(a), :now+60000, 600);
--: ack_of_an_item_whose_session_is_over
SELECT ack_worker(:token(a), 'i', '{}', :now+60000);

--# sessions_shorter
--!
SELECT enqueue_worker_work('{"n":1}', :now, p_session_id => 's1');
SELECT enqueue_worker_work('{"n":2}', :now, p_session_id => 's1');
--: long > a
SELECT * FROM fetch_work_item(:now, 30000, 'w1', 600000);
--: short > b
SELECT * FROM fetch_work_item(:now, 30000, 'w1', 10000);

--# sessions_lengths
--!
SELECT enqueue_worker_work('{"n":1}', :now, p_session_id => 's1');
SELECT enqueue_worker_work('{"n":2}', :now, p_session_id => 's2');
SELECT enqueue_worker_work('{"n":3}', :now, p_session_id => '');
--: zero
SELECT out_work_item FROM fetch_work_item(:now, 30000, 'w1', 0);
--: below_zero
SELECT out_work_item FROM fetch_work_item(:now, 30000, 'w1', -10000);
--: no_name_is_a_name
SELECT out_work_item FROM fetch_work_item(:now, 30000, '', 60000);

--# sessions_renew
--!
INSERT INTO sessions VALUES ('live', 'w1', :now+30000, :now-5000), ('idle', 'w1', :now+30000, :now-600000), ('over', 'w1', :now, :now-5000), ('other', 'w2', :now+30000, :now-5000), ('third', 'w3', :now+30000, :now-5000);
--: nulls nulls
SELECT renew_session_lock(
  p_owner_ids => ARRAY['w1','w2'],
  p_now_ms => :now,
  p_extend_ms => 60000,
  p_idle_timeout_ms => 300000
);
--: two_owners
SELECT renew_session_lock(ARRAY['w1','w2','nobody'], :now, 60000, 300000);
--: with_a_null
SELECT renew_session_lock(ARRAY[NULL,'w3'], :now, 90000, 300000);
--: of_nobody
SELECT renew_session_lock('{}', :now, 60000, 300000);
--: of_null
SELECT renew_session_lock(ARRAY[NULL]::text[], :now, 60000, 300000);
--: of_two_dimensions
SELECT renew_session_lock(ARRAY[['w1','x'],['y','w2']], :now, 120000, 300000);
--: idle_by_a_millisecond
SELECT renew_session_lock(ARRAY['w1'], :now, 120000, 5000);
--: just_not_idle
SELECT renew_session_lock(ARRAY['w1'], :now, 120000, 10000);
--: never_idle
SELECT renew_session_lock(ARRAY['w1'], :now, 120000, 9000000000000);
--: too_long
SELECT renew_session_lock(ARRAY['w1'], :now, 9223372036854775807, 300000);
--: idle_out_of_range
SELECT renew_session_lock(ARRAY['w1'], :now, 120000, -9223372036854775807);

--# sessions_renew_shorter
--!
INSERT INTO sessions VALUES ('live', 'w1', :now+600000, :now);
--: shorter
SELECT renew_session_lock(ARRAY['w1'], :now, 10000, 300000);
--: below_zero
SELECT renew_session_lock(ARRAY['w1'], :now, -10000, 300000);

--# sessions_clean_up
--!
INSERT INTO sessions VALUES ('live', 'w1', :now+30000, :now), ('over', 'w1', :now-1, :now), ('over_with_work', 'w1', :now-1, :now), ('at', 'w1', :now, :now);
SELECT enqueue_worker_work('{}', :now, p_session_id => 'over_with_work');
--: nulls nulls
SELECT cleanup_orphaned_sessions(
  p_now_ms => :now
);
--: clean_up
SELECT cleanup_orphaned_sessions(:now);
--: again
SELECT cleanup_orphaned_sessions(:now);
--: later
SELECT cleanup_orphaned_sessions(:now+1);
