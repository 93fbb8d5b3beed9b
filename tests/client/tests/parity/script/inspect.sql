What operators see.

--# inspect
--: no_instances
SELECT * FROM list_instances();
--: empty_metrics
SELECT * FROM get_system_metrics();
--: empty_depths
SELECT * FROM get_queue_depths(:now);
--!
INSERT INTO instances VALUES
  ('parent', 'P', '1', 1, :at, :at+1, NULL, NULL, 0), ('child1', 'C', '1', 2, :at+3000, :at, 'parent', 'status', 4), ('child2', 'C', NULL, 1, :at+2000, :at+123, 'parent', NULL, 0),
  ('bare', 'B', '1', 7, :at+1000, :at, NULL, NULL, 0), ('', 'E', '', 1, '-infinity', 'infinity', '', NULL, 0);
INSERT INTO executions VALUES
  ('parent', 1, 'Running', NULL, :at, NULL), ('child1', 1, 'ContinuedAsNew', 'o', :at, NULL), ('child1', 2, 'Completed', 'out', :at, :at+123), ('child2', 1, 'Failed', '', :at, :at), ('nobody', 1, 'Running', NULL, :at, NULL), ('', 1, 'Odd', NULL, :at, NULL);
INSERT INTO history VALUES ('child1', 1, 1, 'T', '{}', :at), ('child1', 2, 1, 'T', '{"carry_forward_events":[1,2,3]}', :at), ('child1', 2, 2, 'T', 'äöü', :at), ('parent', 1, 1, 'T', '{"carry_forward_events":{"a":1}}', :at), ('bare', 7, 2, 'T', '{"carry_forward_events":[1]}', :at), ('', 1, 1, 'T', '[]', :at);
INSERT INTO kv_store VALUES ('child1', 'a', 'äö', 1, 1), ('child1', 'b', 'x', 1, 1), ('child1', 'c', '', 1, 1);
INSERT INTO kv_delta VALUES ('child1', 'a', 'longer', 1), ('child1', 'b', NULL, 1), ('child1', 'd', 'd', 1), ('child1', 'e', NULL, 1);
--: instances
SELECT * FROM list_instances();
--: metrics
SELECT * FROM get_system_metrics();
--: running
SELECT * FROM list_instances_by_status('Running');
--: completed
SELECT * FROM list_instances_by_status('Completed');
--: failed
SELECT * FROM list_instances_by_status('Failed');
--: continued
SELECT * FROM list_instances_by_status('ContinuedAsNew');
--: status_nulls nulls
SELECT * FROM list_instances_by_status(
  p_status => 'Running'
);
--: executions
SELECT * FROM list_executions('child1');
--: executions_of_nobody
SELECT * FROM list_executions('no');
--: executions_nulls nulls
SELECT * FROM list_executions(
  p_instance_id => 'child1'
);
--: latest
SELECT latest_execution_id('child1');
--: latest_without_execution
SELECT latest_execution_id('bare');
--: latest_of_nobody
SELECT latest_execution_id('no');
--: latest_nulls nulls
SELECT latest_execution_id(
  p_instance_id => 'child1'
);
--: info
SELECT * FROM get_instance_info('child1');
--: info_without_version
SELECT * FROM get_instance_info('child2');
--: info_without_execution
SELECT * FROM get_instance_info('bare');
--: info_of_the_nameless
SELECT * FROM get_instance_info('');
--: info_of_nobody
SELECT * FROM get_instance_info('no');
--: info_nulls nulls
SELECT * FROM get_instance_info(
  p_instance_id => 'child1'
);
--: execution
SELECT * FROM get_execution_info('child1', 2);
--: execution_without_events
SELECT * FROM get_execution_info('child2', 1);
--: execution_without_instance
SELECT * FROM get_execution_info('nobody', 1);
--: execution_of_nobody
SELECT * FROM get_execution_info('child1', 3);
--: execution_nulls nulls
SELECT * FROM get_execution_info(
  p_instance_id => 'child1',
  p_execution_id => 2
);
--: stats
SELECT * FROM get_instance_stats('child1');
--: stats_of_an_object_carried_forward
SELECT * FROM get_instance_stats('parent');
--: stats_without_first_event
SELECT * FROM get_instance_stats('bare');
--: stats_without_anything
SELECT * FROM get_instance_stats('child2');
--: stats_of_an_array
SELECT * FROM get_instance_stats('');
--: stats_of_nobody
SELECT * FROM get_instance_stats('no');
--: stats_nulls nulls
SELECT * FROM get_instance_stats(
  p_instance => 'child1'
);
--: children
SELECT * FROM list_children('parent');
--: children_of_the_childless
SELECT * FROM list_children('bare');
--: children_of_the_nameless
SELECT * FROM list_children('');
--: children_nulls nulls
SELECT * FROM list_children(
  p_instance_id => 'parent'
);
--: parent
SELECT get_parent_id('child1');
--: parent_of_the_orphan
SELECT get_parent_id('bare');
--: parent_of_nobody
SELECT get_parent_id('no');
--: parent_of_a_hostile_name
SELECT get_parent_id('%s " 日本');
--: parent_nulls nulls
SELECT get_parent_id(
  p_instance_id => 'child1'
);
--: values_of_the_child unordered
SELECT * FROM get_kv_all_values('child1');
--: in_a_join
SELECT i.instance_id, e.status FROM list_instances() i LEFT JOIN LATERAL get_execution_info(i.instance_id, latest_execution_id(i.instance_id)) e ON true ORDER BY 1;
--: called_like_a_value
SELECT list_executions('child1');

--# inspect_bad_event
--!
INSERT INTO instances VALUES ('a', 'A', '1', 1, :at, :at);
INSERT INTO history VALUES ('a', 1, 1, 'T', 'not json', :at);
--: stats
SELECT * FROM get_instance_stats('a');
