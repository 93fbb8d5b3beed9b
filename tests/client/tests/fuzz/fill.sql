-- A queue in the middle of its work. {q} is its schema.

INSERT INTO {q}.instances (instance_id, orchestration_name, orchestration_version, current_execution_id,
                           created_at, updated_at, parent_instance_id, custom_status, custom_status_version)
VALUES ('i1', 'O', '1.0.0', 2, now(), now(), NULL, 'busy', 3),
       ('i2', 'O', '1.0.0', 1, now(), now(), 'i1', NULL, 0),
       ('i3', 'O', NULL, 1, now(), now(), NULL, NULL, 1),
       ('i4', 'O', '1.0.0', 3, now(), now(), 'i2', NULL, 0),
       ('i''6" \ %s $1', 'O', '2.0.0', 1, now(), now(), NULL, NULL, 0);

INSERT INTO {q}.executions (instance_id, execution_id, status, output, started_at, completed_at,
                            duroxide_version_major, duroxide_version_minor, duroxide_version_patch)
VALUES ('i1', 1, 'ContinuedAsNew', 'o', now(), now(), 0, 1, 32),
       ('i1', 2, 'Running', NULL, now(), NULL, 0, 1, 32),
       ('i2', 1, 'Completed', 'o', now(), now(), NULL, NULL, NULL),
       ('i3', 1, 'Failed', 'o', now(), now(), 1, 0, 0),
       ('i4', 1, 'Completed', 'o', now(), now(), 0, 0, 1),
       ('i4', 2, 'Completed', 'o', now(), now(), 0, 0, 1),
       ('i4', 3, 'Running', NULL, now(), NULL, 0, 0, 1),
       ('i''6" \ %s $1', 1, 'Running', NULL, now(), NULL, NULL, NULL, NULL);

INSERT INTO {q}.history (instance_id, execution_id, event_id, event_type, event_data, created_at)
SELECT e.instance_id, e.execution_id, n, 'T', format('{"event_id":%s}', n), now()
FROM {q}.executions e, generate_series(1, 6) n;

INSERT INTO {q}.orchestrator_queue (instance_id, work_item, visible_at, created_at, attempt_count)
SELECT i, format('{"ExternalRaised":{"instance":%s,"name":"e"}}', to_json(i)), now() - interval '5 s', now(), 0
FROM unnest(ARRAY['i1', 'i1', 'i3', 'i5', 'i''6" \ %s $1', 'i7']) i;

INSERT INTO {q}.orchestrator_queue (instance_id, work_item, visible_at, created_at, attempt_count, lock_token, locked_until)
SELECT i, '{"CancelInstance":{"instance":"x"}}', now() - interval '9 s', now(), 2, 'lock_' || i,
       (extract(epoch FROM now()) * 1000)::bigint + off
FROM (VALUES ('i2', 3600000), ('i4', 3600000), ('c1', 3600000), ('c2', 3600000), ('c3', -1000)) v (i, off),
     generate_series(1, 2);

INSERT INTO {q}.instance_locks (instance_id, lock_token, locked_until, locked_at)
SELECT DISTINCT instance_id, lock_token, locked_until, (extract(epoch FROM now()) * 1000)::bigint
FROM {q}.orchestrator_queue WHERE lock_token IS NOT NULL;

INSERT INTO {q}.worker_queue (work_item, visible_at, created_at, instance_id, execution_id, activity_id, session_id, tag,
                              attempt_count, lock_token, locked_until)
SELECT format('{"ActivityExecute":{"id":%s}}', n), now() - interval '5 s', now(), 'i' || n % 4, 1, n,
       CASE WHEN n % 3 = 0 THEN 's' || n % 2 END, CASE WHEN n % 5 = 0 THEN 'gpu' END,
       n % 2, CASE WHEN n > 6 THEN 'item_' || n END,
       CASE WHEN n > 6 THEN (extract(epoch FROM now()) * 1000)::bigint + CASE WHEN n = 12 THEN -1000 ELSE 3600000 END END
FROM generate_series(1, 12) n;

INSERT INTO {q}.sessions (session_id, worker_id, locked_until, last_activity_at)
SELECT 's' || n, 'w', (extract(epoch FROM now()) * 1000)::bigint + 100000 * n, (extract(epoch FROM now()) * 1000)::bigint
FROM generate_series(-1, 2) n;

INSERT INTO {q}.kv_store (instance_id, key, value, execution_id, last_updated_at_ms)
SELECT 'i1', 'key ' || n, 'v', 1, 5 FROM generate_series(1, 3) n;
INSERT INTO {q}.kv_delta (instance_id, key, value, last_updated_at_ms)
VALUES ('i1', 'key 1', NULL, 6), ('i2', 'key 2', 'v2', 7);

INSERT INTO {q}.dead_letters (message_id, instance_id, work_item, visible_at, created_at, attempt_count, buried_at, sqlstate, reason)
VALUES (1, 'i1', 'not json', now(), now(), 0, now(), '22P02', 'r'),
       (2, 'i1', '{"ExternalRaised":{"instance":"i1"}}', now(), now(), 4, now(), '22P02', 'r');
