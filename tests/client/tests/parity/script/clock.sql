Callers whose clocks differ from the server's, and times at the ends of what can be told.

--# clock_behind
--!
SELECT enqueue_orchestrator_work('a', :start(a), '2020-01-01');
--: claim > a
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:server-120000, 60000);
--: second_claim
SELECT out_instance_id FROM fetch_orchestration_item(:server, 60000);
--: renew
SELECT renew_orchestration_item_lock(:token(a), :server-120000, 600);
--: acknowledge
SELECT ack_orchestration_item(:token(a), :server, 1, '[]', '[]', '[]', '{}');

--# clock_behind_kept
--!
SELECT enqueue_orchestrator_work('a', :start(a), '2020-01-01');
--: claim > a
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:server-120000, 60000);
--: renew
SELECT renew_orchestration_item_lock(:token(a), :server-120000, 600);

--# clock_behind_work_item
--!
SELECT enqueue_worker_work('{}', 0);
--: claim > a
SELECT out_work_item, out_lock_token FROM fetch_work_item(:server-120000, 60000);

--# clock_behind_session
--!
SELECT enqueue_worker_work('{}', 0, p_session_id => 's');
--: claim > a
SELECT out_work_item, out_lock_token FROM fetch_work_item(:server-120000, 600000, 'w', 900000);

--# clock_callers
--!
SET duroxide_queue.lease_clock = caller;
SELECT enqueue_orchestrator_work('a', :start(a), '2020-01-01');
--: claim_behind
SELECT out_instance_id FROM fetch_orchestration_item(:server-120000, 60000);
--!
SET duroxide_queue.lease_clock = latest;

--# clock_callers_work_item
--!
SET duroxide_queue.lease_clock = caller;
SELECT enqueue_worker_work('{}', 0);
--: claim_behind
SELECT out_work_item FROM fetch_work_item(:server-120000, 60000);
--!
SET duroxide_queue.lease_clock = latest;

--# clock_ahead
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: claim > a
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:now, 60000);
--: taken_by_one_ahead > b
SELECT out_instance_id, out_lock_token FROM fetch_orchestration_item(:now+90000, 60000);
--: the_first_acknowledges
SELECT ack_orchestration_item(:token(a), :now+5000, 1, :events(1,1), '[]', '[]', :meta);

--# clock_range
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at), enqueue_worker_work('{}', :now);
--: claim_at_the_end
SELECT * FROM fetch_orchestration_item(9223372036854765807, 30000);
--: claim_at_the_beginning
SELECT * FROM fetch_orchestration_item(-9223372036854775807, 30000);
--: work_item_at_the_end
SELECT * FROM fetch_work_item(9223372036854765807, 30000);
--: depths_at_the_end
SELECT * FROM get_queue_depths(9223372036854775807);
--: depths_beyond_the_calendar
SELECT * FROM get_queue_depths(9300000000000000);
--: enqueue_at_the_end
SELECT enqueue_worker_work('{}', 9223372036854775807);
--: renew_sessions_at_the_end
SELECT renew_session_lock(ARRAY['w'], 9223372036854765807, 30000, 30000);
--: renew_at_the_end
SELECT renew_orchestration_item_lock('lock_x', 9223372036854775807, 30);
--: renew_work_item_at_the_end
SELECT renew_work_item_lock('lock_x', 9223372036854775807, 30);
--: abandon_at_the_end
SELECT abandon_orchestration_item('lock_x', 9223372036854775807, 30);
--: abandon_work_item_at_the_end
SELECT abandon_work_item('lock_x', 9223372036854775807, 30);
--: ack_at_the_end
SELECT ack_orchestration_item('lock_x', 9223372036854775807, 1, '[]', '[]', '[]', '{}');
--: ack_work_item_at_the_end
SELECT ack_worker('lock_x', 'a', '{}', 9223372036854775807);
--: clean_up_at_the_end
SELECT cleanup_orphaned_sessions(9223372036854775807);

--# clock_milliseconds
--!
SELECT enqueue_worker_work('{}', 1000000000001), enqueue_worker_work('{}', 1), enqueue_worker_work('{}', -1), enqueue_worker_work('{}', 4102444799999);
--: visible_to_the_millisecond
SELECT (extract(epoch FROM visible_at) * 1000)::numeric(30, 3) FROM worker_queue WHERE visible_at < '3000-01-01' ORDER BY visible_at;

--# clock_year_9999
--: work_item
SELECT enqueue_worker_work('{}', 253402300799999);
