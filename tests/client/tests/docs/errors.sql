-- One way to each error that the reference tells of. A paragraph is run in a transaction that is rolled back; its last
-- statement must fail, with a SQLSTATE and a text that the function's table has. {role} may log in and nothing else; somebody is
-- writing to held and to kept all the time.

-- setup
SELECT duroxide_queue.create_queue('app');
SELECT duroxide_queue.create_queue('others');
SELECT duroxide_queue.adopt_queue('shop');
SELECT duroxide_queue.adopt_queue('kept');
GRANT USAGE ON SCHEMA app TO {role};
SELECT app.enqueue_orchestrator_work('i', '{}', 'epoch');
INSERT INTO app.instance_locks VALUES ('i', 'live', 100000, 0), ('ended', 'ended', 1, 0);
UPDATE app.orchestrator_queue SET lock_token = 'live', locked_until = 100000;
INSERT INTO app.worker_queue (work_item, visible_at, created_at, lock_token, locked_until)
VALUES ('{}', 'epoch', 'epoch', 'item', 100000), ('{}', 'epoch', 'epoch', NULL, NULL);
INSERT INTO app.sessions VALUES ('s', 'w', 100000, 0);
INSERT INTO app.instances VALUES ('i', 'O', '1', 1, 'epoch', 'epoch', NULL), ('child', 'C', '1', 1, 'epoch', 'epoch', 'i');
INSERT INTO app.executions (instance_id, execution_id, started_at, completed_at, status)
VALUES ('i', 1, 'epoch', NULL, 'Running'), ('i', 0, 'epoch', 'epoch', 'Completed');
INSERT INTO app.history VALUES ('i', 1, 1, 'E', '{}', 'epoch');
INSERT INTO app.orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES ('free', '{}', 'epoch', 'epoch');
INSERT INTO app.dead_letters (message_id, instance_id, work_item, visible_at, created_at, attempt_count, buried_at, sqlstate, reason)
VALUES (99, 'i', 'not json', 'epoch', 'epoch', 0, 'epoch', '22P02', 'no JSON');

-- enqueue_orchestrator_work
SELECT app.enqueue_orchestrator_work('i', '{', 'epoch');

SELECT app.enqueue_orchestrator_work(NULL, '{}', 'epoch');

SELECT app.enqueue_orchestrator_work('i', NULL, 'epoch');

SELECT app.enqueue_orchestrator_work('i', '{}', NULL);

-- fetch_orchestration_item
SELECT app.fetch_orchestration_item(1000, NULL);

SELECT app.fetch_orchestration_item(1000, 9223372036854775807);

-- ack_orchestration_item
SELECT app.ack_orchestration_item('nobody''s', 1000, 1, '[]', '[]', '[]', '{}');

SELECT app.ack_orchestration_item('ended', 1000, 1, '[]', '[]', '[]', '{}');

SELECT app.ack_orchestration_item(NULL, 1000, 1, '[]', '[]', '[]', '{}');

SELECT app.ack_orchestration_item('live', NULL, 1, '[]', '[]', '[]', '{}');

SELECT app.ack_orchestration_item('live', 1000, 1, '[{"event_id": 2, "event_type": "E", "event_data": "not json"}]', '[]', '[]', '{}');

SELECT app.ack_orchestration_item('live', 1000, 1, '[{"event_id": 1, "event_type": "E", "event_data": "{}"}]', '[]', '[]', '{}');

SELECT app.ack_orchestration_item('live', 1000, NULL, '[]', '[]', '[]', '{}');

SELECT app.ack_orchestration_item('live', 1000, 1, '[{"event_type": "E", "event_data": "{}"}]', '[]', '[]', '{}');

SELECT app.ack_orchestration_item('live', 1000, 1, '{}', '[]', '[]', '{}');

SELECT app.ack_orchestration_item('live', 1000, 1, '[]', '7', '[]', '{}');

SELECT app.ack_orchestration_item('live', 1000, 1, '[{"event_id": "one", "event_type": "E", "event_data": "{}"}]', '[]', '[]', '{}');

SELECT app.ack_orchestration_item('live', 1000, 1, '[]', '[]', '[{"TimerFired": {"instance": "i", "fire_at_ms": 9223372036854775807}}]', '{}');

-- abandon_orchestration_item
SELECT app.abandon_orchestration_item('nobody''s', 1000);

SELECT app.abandon_orchestration_item(NULL, 1000);

SELECT app.abandon_orchestration_item('live', NULL, 1);

SELECT app.abandon_orchestration_item('live', 1, 9223372036854775807);

SELECT app.abandon_orchestration_item('live', 1, 9224318016000000);

-- renew_orchestration_item_lock
SELECT app.renew_orchestration_item_lock('ended', 1000, 1);

SELECT app.renew_orchestration_item_lock(NULL, 1000, 1);

SELECT app.renew_orchestration_item_lock('live', NULL, 1);

SELECT app.renew_orchestration_item_lock('live', 1000, NULL);

SELECT app.renew_orchestration_item_lock('live', 1000, 9223372036854775807);

SELECT app.renew_orchestration_item_lock('live', 1000, 9223372036854775);

-- enqueue_worker_work
SELECT app.enqueue_worker_work('not json', 1000);

SELECT app.enqueue_worker_work(NULL, 1000);

SELECT app.enqueue_worker_work('{}', NULL);

SELECT app.enqueue_worker_work('{}', 9223372036854775807);

-- fetch_work_item
SELECT app.fetch_work_item(1000, NULL);

SELECT app.fetch_work_item(1000, 9223372036854775807);

-- ack_worker
SELECT app.ack_worker('nobody''s');

SELECT app.ack_worker(NULL);

SELECT app.ack_worker('item', p_now_ms => 200000);

SELECT app.ack_worker('item', p_completion_json => '{}', p_now_ms => 1000);

SELECT app.ack_worker('item', 'i', '{}');

SELECT app.ack_worker('nobody''s', 'i', 'not json', 1000);

SELECT app.ack_worker('item', 'i', '{}', 9223372036854775000);

-- renew_work_item_lock
SELECT app.renew_work_item_lock('item', 200000, 1);

SELECT app.renew_work_item_lock(NULL, 1000, 1);

SELECT app.renew_work_item_lock('item', NULL, 1);

SELECT app.renew_work_item_lock('item', 1000, NULL);

SELECT app.renew_work_item_lock('item', 1000, 9223372036854775807);

SELECT app.renew_work_item_lock('item', 1000, 9223372036854775);

-- abandon_work_item
SELECT app.abandon_work_item('nobody''s', 1000);

SELECT app.abandon_work_item(NULL, 1000);

SELECT app.abandon_work_item('item', NULL);

SELECT app.abandon_work_item('item', 1, 9223372036854775807);

SELECT app.abandon_work_item('item', 1, 9224318016000000);

-- renew_session_lock
SELECT app.renew_session_lock('{w}', 1000, NULL, 1);

SELECT app.renew_session_lock('{w}', 1000, 9223372036854775807, 1);

SELECT app.renew_session_lock('{w}', -9223372036854775000, 1, 9223372036854775807);

-- get_parent_id
SELECT app.get_parent_id('nobody');

SELECT app.get_parent_id(NULL);

-- append_history
SELECT app.append_history('i', 1, '[{"event_id": 0, "event_type": "E", "event_data": "{}"}]');

SELECT app.append_history('i', 1, '[{"event_id": 2, "event_type": "E", "event_data": "not json"}]');

SELECT app.append_history(NULL, 1, '[{"event_id": 2, "event_type": "E", "event_data": "{}"}]');

SELECT app.append_history('i', NULL, '[{"event_id": 2, "event_type": "E", "event_data": "{}"}]');

SELECT app.append_history('i', 1, '[{"event_id": 2, "event_data": "{}"}]');

SELECT app.append_history('i', 1, '{}');

SELECT app.append_history('i', 1, '[{"event_id": "two"}]');

-- prune_executions
SELECT app.prune_executions('nobody');

SELECT app.prune_executions(NULL);

SELECT app.prune_executions('i', -1);

SELECT app.prune_executions('i', 1, 9223372036854775807);

-- delete_instances_atomic
SELECT app.delete_instances_atomic('{i, child}', false);

SELECT app.delete_instances_atomic('{i}', true);

SELECT app.delete_instances_atomic('{i}', NULL);

-- cleanup_schema
SET LOCAL ROLE {role};
SELECT app.cleanup_schema();

CREATE VIEW public.theirs AS SELECT * FROM app.history;
SELECT app.cleanup_schema();

-- create_queue
CREATE SCHEMA theirs AUTHORIZATION {role};
SELECT duroxide_queue.create_queue('theirs');

SELECT duroxide_queue.create_queue(NULL);

SELECT duroxide_queue.create_queue('');

SELECT duroxide_queue.create_queue(repeat('q', 64));

SELECT duroxide_queue.create_queue('pg_queue');

SELECT duroxide_queue.create_queue('information_schema');

SELECT duroxide_queue.create_queue('duroxide_queue');

SET LOCAL ROLE {role};
SELECT duroxide_queue.create_queue('missing');

SET LOCAL ROLE {role};
SELECT duroxide_queue.create_queue('others');

SELECT duroxide_queue.create_queue('app');

SELECT duroxide_queue.create_queue('held');

CREATE TABLE public.history ();
SELECT duroxide_queue.create_queue('public');

-- drop_queue
CREATE SCHEMA given;
SELECT duroxide_queue.create_queue('given');
ALTER SCHEMA given OWNER TO {role};
SELECT duroxide_queue.drop_queue('given');

SELECT duroxide_queue.drop_queue(NULL);

SELECT duroxide_queue.drop_queue('');

SELECT duroxide_queue.drop_queue('pg_catalog');

SELECT duroxide_queue.drop_queue('missing');

SELECT duroxide_queue.drop_queue('public');

SET LOCAL ROLE {role};
SELECT duroxide_queue.drop_queue('others');

SET LOCAL ROLE {role};
SELECT duroxide_queue.drop_queue('app');

SELECT duroxide_queue.drop_queue('shop');

CREATE VIEW public.theirs AS SELECT * FROM app.history;
SELECT duroxide_queue.drop_queue('app');

-- adopt_queue
SELECT duroxide_queue.adopt_queue('shop');

CREATE TABLE held.dead_letters ();
SELECT duroxide_queue.adopt_queue('held');

SELECT duroxide_queue.adopt_queue('public');

DROP FUNCTION held.list_instances();
SELECT duroxide_queue.adopt_queue('held');

SET LOCAL lock_timeout = '1ms';
SELECT duroxide_queue.adopt_queue('held');

-- release_queue
ALTER SCHEMA shop RENAME TO renamed;
SELECT duroxide_queue.release_queue('renamed');

SELECT duroxide_queue.release_queue('app');

INSERT INTO shop.dead_letters (message_id, instance_id, work_item, visible_at, created_at, attempt_count, buried_at, sqlstate, reason)
VALUES (99, 'i', 'not json', 'epoch', 'epoch', 0, 'epoch', '22P02', 'no JSON');
SELECT duroxide_queue.release_queue('shop');

SET LOCAL lock_timeout = '1ms';
SELECT duroxide_queue.release_queue('kept');

-- grant_client
SELECT duroxide_queue.grant_client('app', 'nobody there');

SELECT duroxide_queue.grant_client('app', NULL);

-- revoke_client
SELECT duroxide_queue.revoke_client('app', 'nobody there');

-- redrive
SELECT duroxide_queue.redrive('app', 2);

SELECT duroxide_queue.redrive('app', 1);

-- discard
SELECT duroxide_queue.discard('app', 2);

SELECT duroxide_queue.discard('app', NULL);
