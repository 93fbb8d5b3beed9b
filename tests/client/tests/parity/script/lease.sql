Leases of instances: renewed, given up, expired, taken over.

--# lease_renew
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
SELECT enqueue_orchestrator_work('a', :raised(a,1), :at);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: nulls nulls
SELECT renew_orchestration_item_lock(
  p_lock_token => :token(a),
  p_now_ms => :now+5000,
  p_extend_secs => 60
);
--: renew
SELECT renew_orchestration_item_lock(:token(a), :now+5000, 60);
--: renew_again
SELECT renew_orchestration_item_lock(:token(a), :now+5000, 60);
--: does_not_shorten
SELECT renew_orchestration_item_lock(:token(a), :now+10000, 1);
--: zero
SELECT renew_orchestration_item_lock(:token(a), :now+10000, 0);
--: below_zero
SELECT renew_orchestration_item_lock(:token(a), :now+10000, -600);
--: wrong_token
SELECT renew_orchestration_item_lock('lock_nobody', :now+5000, 60);
--: empty_token
SELECT renew_orchestration_item_lock('', :now+5000, 60);
--: token_of_another_case
SELECT renew_orchestration_item_lock(upper(:token(a)), :now+5000, 60);
--: too_long
SELECT renew_orchestration_item_lock(:token(a), :now+5000, 9223372036854775807);
--: end_out_of_range
SELECT renew_orchestration_item_lock(:token(a), :now+5000, 9223372036854775);
--: expired
SELECT renew_orchestration_item_lock(:token(a), :now+120000, 60);
--: new_message_stays_out
SELECT enqueue_orchestrator_work('a', :raised(a,2), :at);
--: renew_with_a_new_message
SELECT renew_orchestration_item_lock(:token(a), :now+10000, 600);

--# lease_abandon
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
SELECT enqueue_orchestrator_work('a', :raised(a,1), :at-5000);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--!
SELECT enqueue_orchestrator_work('a', :raised(a,2), :at);
--: nulls_with_delay nulls
SELECT abandon_orchestration_item(
  p_lock_token => :token(a),
  p_now_ms => :now+5000,
  p_delay_ms => 10000,
  p_ignore_attempt => true
);
--: nulls_without_delay nulls
SELECT abandon_orchestration_item(
  p_lock_token => :token(a),
  p_now_ms => :now+5000,
  p_delay_ms => 0,
  p_ignore_attempt => true
);
--: wrong_token
SELECT abandon_orchestration_item('lock_nobody', :now);
--: at_once
SELECT abandon_orchestration_item(:token(a), :now);
--: twice
SELECT abandon_orchestration_item(:token(a), :now);
--: claim_again > b
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: with_delay
SELECT abandon_orchestration_item(:token(b), :now, 60000);
--: too_early_but_for_the_others > x
SELECT * FROM fetch_orchestration_item(:now+55000, 30000);
--: nothing_before_the_delay
SELECT abandon_orchestration_item(:token(x), :now+55000, 1, false);
--: after_the_delay > c
SELECT * FROM fetch_orchestration_item(:now+60000, 30000);
--: ignoring_the_attempt
SELECT abandon_orchestration_item(:token(c), :now+60000, NULL, true);
--: claim_uncounted > d
SELECT * FROM fetch_orchestration_item(:now+60000, 30000);
--: ignoring_and_delaying
SELECT abandon_orchestration_item(p_ignore_attempt => true, p_delay_ms => 5000, p_now_ms => :now+60000, p_lock_token => :token(d));
--: negative_delay_claim > e
SELECT * FROM fetch_orchestration_item(:now+65000, 30000);
--: negative_delay
SELECT abandon_orchestration_item(:token(e), :now+65000, -5000);
--: claim_before_expiry > f
SELECT * FROM fetch_orchestration_item(:now+65000, 30000);
--: expired_is_still_given_up
SELECT abandon_orchestration_item(:token(f), :now+600000);
--: delay_too_long_claim > g
SELECT * FROM fetch_orchestration_item(:now+65000, 30000);
--: delay_too_long
SELECT abandon_orchestration_item(:token(g), :now+65000, 9223372036854775807);
--: delay_beyond_the_calendar
SELECT abandon_orchestration_item(:token(g), :now+65000, 9300000000000000);

--# lease_abandon_for_ages
--!
SELECT enqueue_orchestrator_work('a', '{}', :at);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: until_the_year_9999
SELECT abandon_orchestration_item(:token(a), 0, 253402300799999);

--# lease_attempts
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: first
SELECT out_attempt_count FROM fetch_orchestration_item(:now, 30000);
--: second
SELECT out_attempt_count FROM fetch_orchestration_item(:now+35000, 30000);
--: third
SELECT out_attempt_count FROM fetch_orchestration_item(:now+70000, 30000);
--!
SELECT enqueue_orchestrator_work('a', :raised(a,1), :at);
--: fourth_with_a_new_message > a
SELECT out_attempt_count, out_lock_token, out_messages FROM fetch_orchestration_item(:now+105000, 30000);
--: uncounted
SELECT abandon_orchestration_item(:token(a), :now+105000, NULL, true);
--: fifth_is_the_highest
SELECT out_attempt_count FROM fetch_orchestration_item(:now+105000, 30000);
--: never_below_zero
UPDATE orchestrator_queue SET attempt_count = 0 WHERE lock_token IS NOT NULL RETURNING attempt_count;
--: sixth > b
SELECT out_attempt_count, out_lock_token FROM fetch_orchestration_item(:now+200000, 30000);
--!
UPDATE orchestrator_queue SET attempt_count = 0;
--: uncounted_at_zero
SELECT abandon_orchestration_item(:token(b), :now+200000, NULL, true);

--# lease_takeover
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 10000);
--: takeover > b
SELECT * FROM fetch_orchestration_item(:now+15000, 30000);
--: old_owner_acknowledges
SELECT ack_orchestration_item(:token(a), :now+15000, 1, :events(1,1), '[]', '[]', :meta);
--: old_owner_renews
SELECT renew_orchestration_item_lock(:token(a), :now+15000, 60);
--: old_owner_gives_up
SELECT abandon_orchestration_item(:token(a), :now+15000, NULL, true);
--: new_owner_acknowledges
SELECT ack_orchestration_item(:token(b), :now+15000, 1, :events(1,1), '[]', '[]', :meta);
--: new_owner_acknowledges_twice
SELECT ack_orchestration_item(:token(b), :now+15000, 1, :events(1,1), '[]', '[]', :meta);

--# lease_lost
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 10000);
--: acknowledged_too_late
SELECT ack_orchestration_item(:token(a), :now+15000, 1, :events(1,1), :execute(a,1), '[]', :meta);
--: acknowledged_in_the_last_moment
SELECT ack_orchestration_item(:token(a), :now+5000, 1, :events(1,1), '[]', '[]', :meta);
