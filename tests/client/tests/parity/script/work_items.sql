Work items: claimed, renewed, given up, acknowledged.

--# work_item_claim
--: empty
SELECT * FROM fetch_work_item(:now, 30000);
--: empty_nulls nulls
SELECT * FROM fetch_work_item(
  p_now_ms => :now,
  p_lock_timeout_ms => 30000,
  p_owner_id => 'w',
  p_session_lock_timeout_ms => 60000,
  p_tag_filter => ARRAY['t'],
  p_tag_mode => 'any'
);
--!
SELECT enqueue_worker_work('{"n":1}', :now-3000);
SELECT enqueue_worker_work('{"n":2, "a": 1.00}', :now-2000);
SELECT enqueue_worker_work('{"n":3}', :now-1000, 'a', 1, 3, 's');
SELECT enqueue_worker_work('{"n":4}', :now-500, 'a', 1, 4, NULL, 't');
SELECT enqueue_worker_work('{"n":5}', :now+5000);
--: nulls nulls
SELECT * FROM fetch_work_item(
  p_now_ms => :now,
  p_lock_timeout_ms => 30000,
  p_owner_id => 'w',
  p_session_lock_timeout_ms => 60000,
  p_tag_filter => ARRAY['t'],
  p_tag_mode => 'any'
);
--: first > a
SELECT * FROM fetch_work_item(:now, 30000);
--: second_by_name > b
SELECT * FROM fetch_work_item(p_lock_timeout_ms => 60000, p_now_ms => :now);
--: no_session_without_an_owner
SELECT * FROM fetch_work_item(:now, 30000);
--: not_due
SELECT * FROM fetch_work_item(:now+4000, 20000);
--: due > c
SELECT * FROM fetch_work_item(:now+5000, 60000);
--: depths
SELECT * FROM get_queue_depths(:now+5000);
--: expired_again > d
SELECT * FROM fetch_work_item(:now+35000, 60000);
--: nothing_else
SELECT * FROM fetch_work_item(:now+35000, 60000);

--# work_item_order
--!
SELECT enqueue_worker_work('{"n":1}', :now-1000);
SELECT enqueue_worker_work('{"n":2}', :now-3000);
SELECT enqueue_worker_work('{"n":3}', :now-2000);
--: first
SELECT out_work_item FROM fetch_work_item(:now, 30000);
--: second
SELECT out_work_item FROM fetch_work_item(:now, 30000);
--: third
SELECT out_work_item FROM fetch_work_item(:now, 30000);

--# work_item_expired_in_order
--!
SELECT enqueue_worker_work('{"n":0}', :now-5000);
SELECT enqueue_worker_work('{"n":1}', :now) FROM generate_series(1, 9);
--: old
SELECT out_work_item FROM fetch_work_item(:now, 20000);
--: others
SELECT f.out_work_item FROM generate_series(1, 9) n, LATERAL fetch_work_item(:now + 0 * n, 10000) f;
--: old_again
SELECT out_work_item FROM fetch_work_item(:now+25000, 20000);

--# work_item_lengths
--!
SELECT enqueue_worker_work('{}', :now);
--: zero
SELECT out_work_item FROM fetch_work_item(:now, 0);
--: below_zero
SELECT out_work_item FROM fetch_work_item(:now+5000, -10000);
--: too_long
SELECT out_work_item FROM fetch_work_item(:now+5000, 9223372036854775807);
--: attempts
SELECT out_attempt_count FROM fetch_work_item(:now+5000, 30000);

--# work_item_renew
--!
SELECT enqueue_worker_work('{}', :now);
--: claim > a
SELECT * FROM fetch_work_item(:now, 30000);
--: nulls nulls
SELECT renew_work_item_lock(
  p_lock_token => :token(a),
  p_now_ms => :now+5000,
  p_extend_secs => 60
);
--: renew
SELECT renew_work_item_lock(:token(a), :now+5000, 60);
--: renew_again
SELECT renew_work_item_lock(:token(a), :now+5000, 60);
--: wrong_token
SELECT renew_work_item_lock('lock_nobody', :now, 60);
--: expired
SELECT renew_work_item_lock(:token(a), :now+70000, 60);
--: too_long
SELECT renew_work_item_lock(:token(a), :now, 9223372036854775807);
--: still_there
SELECT * FROM fetch_work_item(:now+30000, 30000);

--# work_item_renew_shorter
--!
SELECT enqueue_worker_work('{}', :now);
--: claim > a
SELECT * FROM fetch_work_item(:now, 600000);
--: shorter
SELECT renew_work_item_lock(:token(a), :now, 10);

--# work_item_renew_below_zero
--!
SELECT enqueue_worker_work('{}', :now);
--: claim > a
SELECT * FROM fetch_work_item(:now, 600000);
--: below_zero
SELECT renew_work_item_lock(:token(a), :now, -10);

--# work_item_abandon
--!
SELECT enqueue_worker_work('{"n":1}', :now-5000);
--: claim > a
SELECT * FROM fetch_work_item(:now, 30000);
--: nulls nulls
SELECT abandon_work_item(
  p_lock_token => :token(a),
  p_now_ms => :now+5000,
  p_delay_ms => 10000,
  p_ignore_attempt => true
);
--: wrong_token
SELECT abandon_work_item('lock_nobody', :now);
--: wrong_token_without_a_time
SELECT abandon_work_item('lock_nobody', NULL);
--: at_once
SELECT abandon_work_item(:token(a), :now+123);
--: twice
SELECT abandon_work_item(:token(a), :now+123);
--: claim_again > b
SELECT * FROM fetch_work_item(:now+123, 30000);
--: with_delay
SELECT abandon_work_item(:token(b), :now, 60000);
--: too_early
SELECT * FROM fetch_work_item(:now+55000, 30000);
--: after_the_delay > c
SELECT * FROM fetch_work_item(:now+60000, 30000);
--: ignoring_the_attempt
SELECT abandon_work_item(:token(c), :now+60000, NULL, true);
--: claim_uncounted > d
SELECT * FROM fetch_work_item(:now+60000, 30000);
--: ignoring_and_delaying
SELECT abandon_work_item(p_ignore_attempt => true, p_delay_ms => 5000, p_now_ms => :now+60000, p_lock_token => :token(d));
--: claim_for_a_negative_delay > e
SELECT * FROM fetch_work_item(:now+65000, 30000);
--: negative_delay
SELECT abandon_work_item(:token(e), :now+65000, -5000);
--: claim_to_expire > f
SELECT * FROM fetch_work_item(:now+65000, 30000);
--: expired_is_still_given_up
SELECT abandon_work_item(:token(f), :now+600000, NULL, NULL);
--: claim_for_a_long_delay > g
SELECT * FROM fetch_work_item(:now+600000, 30000);
--: delay_too_long
SELECT abandon_work_item(:token(g), :now, 9223372036854775807);

--# work_item_ack
--!
SELECT enqueue_worker_work('{"n":1}', :now, 'a', 1, 1);
SELECT enqueue_worker_work('{"n":2}', :now, 'a', 1, 2);
SELECT enqueue_worker_work('{"n":3}', :now, 'a', 1, 3);
SELECT enqueue_worker_work('{"n":4}', :now, 'a', 1, 4);
SELECT enqueue_worker_work('{"n":5}', :now, 'a', 1, 5);
--: claim_1 > a
SELECT * FROM fetch_work_item(:now, 30000);
--: nulls nulls
SELECT ack_worker(
  p_lock_token => :token(a),
  p_instance_id => 'a',
  p_completion_json => '{"ActivityCompleted":{"instance":"a","id":1,"result":"r"}}',
  p_now_ms => :now+123
);
--: wrong_token
SELECT ack_worker('lock_nobody', 'a', '{}', :now);
--: wrong_token_alone
SELECT ack_worker('lock_nobody');
--: completed
SELECT ack_worker(:token(a), 'a', '{"ActivityCompleted":{"instance":"a","id":1,"result":"r"}}', :now+123);
--: twice
SELECT ack_worker(:token(a), 'a', '{"ActivityCompleted":{"instance":"a","id":1,"result":"r"}}', :now+123);
--: claim_2 > b
SELECT * FROM fetch_work_item(:now, 30000);
--: without_instance
SELECT ack_worker(:token(b), NULL, '{}', :now);
--: without_time
SELECT ack_worker(:token(b), 'a', '{}');
--: without_completion
SELECT ack_worker(:token(b));
--: claim_3 > c
SELECT * FROM fetch_work_item(:now, 30000);
--: expired
SELECT ack_worker(:token(c), 'a', '{}', :now+35000);
--: expired_without_time_and_completion
SELECT ack_worker(p_lock_token => :token(c));
--: claim_4 > d
SELECT * FROM fetch_work_item(:now, 30000);
--: no_completion_with_time
SELECT ack_worker(:token(d), 'a', NULL, :now);
--: claim_5 > e
SELECT * FROM fetch_work_item(:now, 30000);
--: completion_of_a_scalar
SELECT ack_worker(:token(e), '', '5', :now);

--# work_item_door
--!
SELECT enqueue_worker_work('{"n":1}', :now);
SELECT enqueue_worker_work('{"n":2}', :now);
--: claim_1 > a
SELECT * FROM fetch_work_item(:now, 30000);
--: completion_of_no_json
SELECT ack_worker(:token(a), 'a', 'not json', :now);
--: claim_2 > b
SELECT * FROM fetch_work_item(:now, 30000);
--: completion_with_nul
SELECT ack_worker(:token(b), 'a', '{"x":"\u0000"}', :now);
--: wrong_token_and_no_json
SELECT ack_worker('lock_nobody', 'a', 'not json', :now);

--# work_item_takeover
--!
SELECT enqueue_worker_work('{"n":1}', :now);
--: claim > a
SELECT * FROM fetch_work_item(:now, 10000);
--: takeover > b
SELECT * FROM fetch_work_item(:now+15000, 30000);
--: old_owner_acknowledges
SELECT ack_worker(:token(a), 'a', '{}', :now+5000);
--: old_owner_acknowledges_without_time
SELECT ack_worker(:token(a));
--: old_owner_renews
SELECT renew_work_item_lock(:token(a), :now+5000, 60);
--: old_owner_gives_up
SELECT abandon_work_item(:token(a), :now+5000);
--: new_owner_acknowledges
SELECT ack_worker(:token(b), 'a', '{}', :now+20000);

--# tags
--!
SELECT enqueue_worker_work('{"n":1}', :now-9000, p_tag => 'gpu');
SELECT enqueue_worker_work('{"n":2}', :now-8000, p_tag => 'cpu');
SELECT enqueue_worker_work('{"n":3}', :now-7000);
SELECT enqueue_worker_work('{"n":4}', :now-6000, p_tag => '');
SELECT enqueue_worker_work('{"n":5}', :now-5000, p_tag => 'gpu', p_session_id => 's');
--: none
SELECT out_work_item FROM fetch_work_item(:now, 30000, NULL, NULL, NULL, 'none');
--: none_with_tags
SELECT out_work_item FROM fetch_work_item(:now, 30000, 'w', NULL, ARRAY['gpu'], 'none');
--: no_known_mode
SELECT out_work_item FROM fetch_work_item(:now, 30000, 'w', NULL, ARRAY['gpu'], 'Any');
--: tags_without_tags
SELECT out_work_item FROM fetch_work_item(:now, 30000, NULL, NULL, NULL, 'tags');
--: tags_of_nothing
SELECT out_work_item FROM fetch_work_item(:now, 30000, NULL, NULL, '{}', 'tags');
--: tags_of_null
SELECT out_work_item FROM fetch_work_item(:now, 30000, NULL, NULL, ARRAY[NULL]::text[], 'tags');
--: tags_of_others
SELECT out_work_item FROM fetch_work_item(:now, 30000, NULL, NULL, ARRAY['tpu','GPU'], 'tags');
--: tags_with_a_null > a
SELECT * FROM fetch_work_item(:now, 30000, NULL, NULL, ARRAY[NULL,'cpu'], 'tags');
--: tags_of_two_dimensions > b
SELECT * FROM fetch_work_item(:now, 30000, NULL, NULL, ARRAY[['x','y'],['gpu','z']], 'tags');
--: the_empty_tag > c
SELECT * FROM fetch_work_item(:now, 30000, NULL, NULL, ARRAY[''], 'tags');
--: default_and_nothing > d
SELECT * FROM fetch_work_item(:now, 30000, NULL, NULL, NULL, 'default_and');
--: default_and_tags_of_a_session
SELECT out_work_item FROM fetch_work_item(:now, 30000, NULL, NULL, ARRAY['gpu'], 'default_and');
--: default_and_tags_of_my_session > e
SELECT * FROM fetch_work_item(:now, 30000, 'w', NULL, ARRAY['gpu'], 'default_and');
--!
SELECT abandon_work_item(:token(a), :now+1), abandon_work_item(:token(b), :now), abandon_work_item(:token(c), :now+2), abandon_work_item(:token(d), :now+3);
--: default_only_is_the_default > d
SELECT * FROM fetch_work_item(:now+5000, 30000);
--: any_1
SELECT out_work_item FROM fetch_work_item(:now+5000, 30000, NULL, NULL, NULL, 'any');
--: any_2
SELECT out_work_item FROM fetch_work_item(:now+5000, 30000, p_tag_mode => 'any', p_tag_filter => ARRAY['tpu']);
--: any_3
SELECT out_work_item FROM fetch_work_item(:now+5000, 30000, NULL, NULL, NULL, 'any');
--: any_4
SELECT out_work_item FROM fetch_work_item(:now+5000, 30000, NULL, NULL, NULL, 'any');
