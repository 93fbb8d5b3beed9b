-- Rows that no call may leave behind. {q} is the schema of the queue.

SELECT 'message', id::text, lock_token, locked_until::text, attempt_count::text
FROM {q}.orchestrator_queue
WHERE (lock_token IS NULL) <> (locked_until IS NULL) OR attempt_count < 0
UNION ALL
SELECT 'work item', id::text, lock_token, locked_until::text, attempt_count::text
FROM {q}.worker_queue
WHERE (lock_token IS NULL) <> (locked_until IS NULL) OR attempt_count < 0
UNION ALL
SELECT 'lock without messages', l.instance_id, l.lock_token, l.locked_until::text, NULL
FROM {q}.instance_locks l
WHERE NOT EXISTS (SELECT FROM {q}.orchestrator_queue q
                  WHERE q.instance_id = l.instance_id AND q.lock_token = l.lock_token)
