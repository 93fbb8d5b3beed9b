Deletion of instances, all or none.

--# delete
--!
INSERT INTO instances SELECT i, 'O', '1', 1, :at, :at FROM unnest(ARRAY['done','failed','running','bare','parent','kept']) i;
INSERT INTO instances VALUES ('child', 'C', '1', 1, :at, :at, 'parent'), ('grandchild', 'C', '1', 1, :at, :at, 'child');
INSERT INTO executions SELECT i, 1, 'Completed', NULL, :at FROM unnest(ARRAY['done','parent','child','grandchild','kept']) i;
INSERT INTO executions VALUES ('failed', 1, 'Failed', NULL, :at), ('running', 1, 'Running', NULL, :at), ('done', 2, 'Running', NULL, :at);
INSERT INTO history SELECT i, e, n, 'T', '{}', :at FROM unnest(ARRAY['done','failed','running','kept']) i, generate_series(1, 2) e, generate_series(1, 3) n;
INSERT INTO kv_store SELECT i, 'k', 'v', 1, 1 FROM unnest(ARRAY['done','kept']) i;
INSERT INTO kv_delta SELECT i, 'k', 'v', 1 FROM unnest(ARRAY['done','kept']) i;
SELECT enqueue_orchestrator_work(i, '{}', :at) FROM unnest(ARRAY['done','done','running','kept','nobody']) i;
SELECT enqueue_worker_work('{}', :now, i, 1, 1) FROM unnest(ARRAY['done','running','kept']) i;
INSERT INTO instance_locks VALUES ('done', 'lock_done', :now, :now), ('kept', 'lock_kept', :now, :now);
INSERT INTO sessions VALUES ('done', 'w', :now, :now);
--: nulls nulls
SELECT * FROM delete_instances_atomic(
  p_instance_ids => ARRAY['done'],
  p_force => false
);
--: running_is_kept
SELECT * FROM delete_instances_atomic(ARRAY['done','running'], false);
--: nobody_with_null_for_force
SELECT * FROM delete_instances_atomic('{}', NULL);
--: parent_alone
SELECT * FROM delete_instances_atomic(ARRAY['parent'], false);
--: parent_alone_by_force
SELECT * FROM delete_instances_atomic(ARRAY['parent'], true);
--: parent_and_child
SELECT * FROM delete_instances_atomic(ARRAY['parent','child'], false);
--: none
SELECT * FROM delete_instances_atomic('{}', false);
--: none_by_null
SELECT * FROM delete_instances_atomic(NULL, true);
--: null_among_nobody
SELECT * FROM delete_instances_atomic(ARRAY[NULL]::text[], true);
--: nobody
SELECT * FROM delete_instances_atomic(ARRAY['no such instance'], false);
--: messages_of_nobody
SELECT * FROM delete_instances_atomic(ARRAY['nobody'], false);
--: done
SELECT * FROM delete_instances_atomic(ARRAY['done','done'], false);
--: done_twice
SELECT * FROM delete_instances_atomic(ARRAY['done'], false);
--: with_a_null
SELECT * FROM delete_instances_atomic(ARRAY['failed',NULL,'bare'], false);
--: family
SELECT * FROM delete_instances_atomic(ARRAY['parent','child','grandchild','x'], false);
--: running_by_force
SELECT * FROM delete_instances_atomic(p_force => true, p_instance_ids => ARRAY['running']);

--# delete_two_dimensions
--!
INSERT INTO instances VALUES ('parent', 'O', '1', 1, :at, :at, NULL), ('child', 'C', '1', 1, :at, :at, 'parent');
--: of_two_dimensions
SELECT * FROM delete_instances_atomic(ARRAY[['parent','child'],['grandchild','x']], false);

--# delete_running_and_null
--!
INSERT INTO instances VALUES ('running', 'O', '1', 1, :at, :at);
INSERT INTO executions VALUES ('running', 1, 'Running', NULL, :at);
--: running_with_null_for_force
SELECT * FROM delete_instances_atomic(ARRAY['running'], NULL);

--# delete_orphan_and_null
--!
INSERT INTO instances VALUES ('parent', 'O', '1', 1, :at, :at, NULL), ('child', 'C', '1', 1, :at, :at, 'parent');
--: parent_and_a_null
SELECT * FROM delete_instances_atomic(ARRAY['parent', NULL], true);

--# delete_leased
--!
SELECT enqueue_orchestrator_work('a', :start(a), :at);
--: claim > a
SELECT * FROM fetch_orchestration_item(:now, 30000);
--: deleted_under_a_lease
SELECT * FROM delete_instances_atomic(ARRAY['a'], true);
--: acknowledged_after_it
SELECT ack_orchestration_item(:token(a), :now, 1, :events(1,1), '[]', '[]', :meta);
--: renewed_after_it
SELECT renew_orchestration_item_lock(:token(a), :now, 60);
--: given_up_after_it
SELECT abandon_orchestration_item(:token(a), :now);
