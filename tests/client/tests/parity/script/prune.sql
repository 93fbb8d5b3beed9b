Pruning of executions, by every filter; each call is undone, so that all see the same rows.

--# prune
--!
INSERT INTO instances VALUES ('a', 'O', '1', 6, :at, :at), ('b', 'O', '1', 2, :at, :at), ('bare', 'O', '1', 1, :at, :at);
INSERT INTO executions VALUES ('a', 1, 'ContinuedAsNew', NULL, :at, NULL), ('a', 2, 'Completed', NULL, :at, :at-5000), ('a', 3, 'Failed', NULL, :at, :at), ('a', 4, 'Running', NULL, :at, NULL), ('a', 5, 'Completed', NULL, :at, :at+5000), ('a', 6, 'Completed', NULL, :at, :at-9000), ('a', 7, 'Completed', NULL, :at, :at-9000),
  ('b', 1, 'Completed', NULL, :at, :at), ('b', 2, 'Running', NULL, :at, NULL);
INSERT INTO history SELECT i, e, n, 'T', '{}', :at FROM unnest(ARRAY['a','b']) i, generate_series(1, 8) e, generate_series(1, 2) n;
--: nulls nulls
SELECT * FROM prune_executions(
  p_instance_id => 'a',
  p_keep_last => 3,
  p_completed_before_ms => :now+1000
);
--: nulls_without_a_time nulls
SELECT * FROM prune_executions(
  p_instance_id => 'a',
  p_keep_last => 4
);
--: nobody
SELECT * FROM prune_executions('nobody');
--: negative
SELECT * FROM prune_executions('a', -1);
--: time_out_of_range
SELECT * FROM prune_executions('a', NULL, 9223372036854775807);
--: bare
SELECT * FROM prune_executions('bare');
--: before_a_time
SELECT * FROM prune_executions('a', NULL, :now);
--: before_a_time_again
SELECT * FROM prune_executions('a', NULL, :now);
--: before_the_next_millisecond
SELECT * FROM prune_executions('a', p_completed_before_ms => :now+1);
--: keep_more_than_there_are
SELECT * FROM prune_executions('a', 100);
--: keep_four
SELECT * FROM prune_executions('a', 4);
--: keep_two_before_a_time
SELECT * FROM prune_executions('a', 2, :now+5001);
--: keep_one
SELECT * FROM prune_executions('a', 1);
--: keep_none
SELECT * FROM prune_executions(p_instance_id => 'b', p_keep_last => 0);

--# prune_all
--!
INSERT INTO instances VALUES ('a', 'O', '1', 2, :at, :at);
INSERT INTO executions SELECT 'a', e, 'Completed', NULL, :at, NULL FROM generate_series(1, 4) e;
--: everything_but_the_current
SELECT * FROM prune_executions('a');
