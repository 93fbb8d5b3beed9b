-- One round of a worker for a duroxide_queue, in plain SQL: it takes one turn of the orchestration "Greet" and runs one
-- activity "greet", if there are any, and ends. Run it again until it says that there is nothing to do:
--
--     psql "$DATABASE_URL" -v queue=app -f worker.sql
--
-- What it shows is what every worker does, in any language. Everything that has to survive a crash is in the database;
-- a worker only holds leases: the right to be the only one who works on something, here for 30 seconds. Kill psql in
-- between, and whoever comes when the lease has ended goes on.
\set ON_ERROR_STOP on
\set QUIET on
\pset tuples_only on
\pset format unaligned
\if :{?queue}
\else
  \set queue app
\endif
\set lease_ms 30000
-- The queue goes by its callers' clocks: each call says what time it is, in milliseconds of the Unix epoch.
\set now '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

-- 1. Claim an instance that has messages. The token is the proof of the claim, and names it from here on. The LEFT JOIN
-- gives a row of NULLs where there is nothing to do, for \gset.
SELECT f.out_lock_token AS token, f.out_instance_id AS instance, f.out_execution_id AS execution,
       f.out_orchestration_name = 'Greet' AND jsonb_typeof(f.out_history) = 'array' AS ours,
       jsonb_path_query_first(f.out_history, '$.size()')::int AS happened,
       coalesce(jsonb_path_query_first(f.out_messages, '$[*].StartOrchestration') ->> 'input', '') AS input,
       coalesce(jsonb_path_query_first(f.out_messages, '$[*].ActivityCompleted') ->> 'result', '') AS result,
       jsonb_path_exists(f.out_messages, '$[*].StartOrchestration') AS started,
       jsonb_path_exists(f.out_messages, '$[*].ActivityCompleted') AS done
FROM (SELECT) one LEFT JOIN :"queue".fetch_orchestration_item(:now, :lease_ms) f ON true \gset

\if :{?token}
\if :ours
-- 2. Decide what comes next, from what has happened (the history) and what is new (the messages), and acknowledge the
-- turn: the history grows, the activity is sent, the messages and the lease go, all in one transaction or not at all.
-- Events have the form that duroxide gives them, so that its client can read them and its runtime could take over. A
-- message that says nothing new (a second start, say) is consumed without a trace.
WITH turn (now, instance, execution, starts, input, ends, result) AS (
  SELECT :now, :'instance', :execution::bigint, :'started'::boolean AND :happened = 0, :'input',
         :'done'::boolean AND :happened = 2, :'result'
), event (id, type, data) AS (
  SELECT id, type, jsonb_build_object('event_id', id, 'source_event_id', source, 'instance_id', instance, 'execution_id',
           execution, 'timestamp_ms', now, 'duroxide_version', '0.1.32', 'type', type) || body
  FROM turn, LATERAL (VALUES
    (starts, 1, NULL, 'OrchestrationStarted', jsonb_build_object('name', 'Greet', 'version', '1.0.0', 'input', input,
                                                                 'parent_instance', NULL, 'parent_id', NULL)),
    (starts, 2, NULL, 'ActivityScheduled', jsonb_build_object('name', 'greet', 'input', input)),
    (ends, 3, 2, 'ActivityCompleted', jsonb_build_object('result', result)),
    (ends, 4, NULL, 'OrchestrationCompleted', jsonb_build_object('output', result))
  ) e (happened, id, source, type, body)
  WHERE happened
), new (events, kinds) AS (
  SELECT coalesce(jsonb_agg(jsonb_build_object('event_id', id, 'event_type', type, 'event_data', data::text)), '[]'),
         coalesce(string_agg(type, ' and ' ORDER BY id), 'nothing new')
  FROM event
), acknowledged AS MATERIALIZED (
  SELECT :"queue".ack_orchestration_item(
    :'token', now, execution, new.events,
    -- work items
    CASE WHEN starts THEN jsonb_build_array(jsonb_build_object('ActivityExecute', jsonb_build_object(
      'instance', instance, 'execution_id', execution, 'id', 2, 'name', 'greet', 'input', input))) ELSE '[]' END,
    -- messages to other instances
    '[]',
    -- what becomes of the execution
    jsonb_build_object('orchestration_name', 'Greet', 'orchestration_version', '1.0.0')
    || CASE WHEN starts THEN jsonb '{"pinned_duroxide_version": {"major": 0, "minor": 1, "patch": 32}}' ELSE '{}' END
    || CASE WHEN ends THEN jsonb_build_object('status', 'Completed', 'output', result) ELSE '{}' END)
  FROM turn, new
)
SELECT instance || ': ' || kinds FROM turn, new, acknowledged;
\else
-- Another's, or a history that nobody can read: back it goes, to be looked at in a second at the earliest.
SELECT :"queue".abandon_orchestration_item(:'token', :now, 1000) \g /dev/null
\endif
\else
\echo no turn to take
\endif

-- 3. Claim a work item: an activity to run.
SELECT f.out_lock_token AS work_token, f.out_work_item AS work_item, f.out_attempt_count AS attempt,
       f.out_work_item::jsonb -> 'ActivityExecute' ->> 'instance' AS instance,
       coalesce(f.out_work_item::jsonb -> 'ActivityExecute' ->> 'name' = 'greet', false) AS ours
FROM (SELECT) one LEFT JOIN :"queue".fetch_work_item(:now, :lease_ms) f ON true \gset

\if :{?work_token}
\if :ours
\echo :instance: greet, attempt :attempt
-- 4. Run it. What takes long renews its lease now and then (by seconds, from now), or another worker begins the same.
SELECT pg_sleep(0.2) \g /dev/null
SELECT :"queue".renew_work_item_lock(:'work_token', :now, :lease_ms / 1000) \g /dev/null

-- 5. Send the result to the instance; the work item goes, in the same transaction.
SELECT :"queue".ack_worker(:'work_token', a ->> 'instance', jsonb_build_object('ActivityCompleted',
         (a - 'name' - 'input') || jsonb_build_object('result', 'Hello, ' || (a ->> 'input') || '!'))::text, :now)
FROM (SELECT :'work_item'::jsonb -> 'ActivityExecute' AS a) work \g /dev/null
\else
SELECT :"queue".abandon_work_item(:'work_token', :now, 1000) \g /dev/null
\endif
\else
\echo no activity to run
\endif
