//! Acknowledges a turn: its history, messages, work items and metadata become durable, and the
//! messages that it consumed and its lease go, all in one transaction or not at all.
//!
//! Whatever the size of the turn, each table is written by one statement.

use crate::clock::{Clock, timestamptz};
use crate::db::{Db, Planning, Statement, types::*};
use crate::error::{Error, Result};
use crate::pg::commit_check;
use crate::pg::json::{self, Form};
use crate::pg::values::{Jsonb, Text, Timestamptz};
use crate::queue::{instance_lease, kv};
use std::time::Instant;

/// What a dispatcher hands in.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) lock_token: Option<Text>,
    pub(crate) execution_id: Option<i64>,
    pub(crate) history: Option<Jsonb>,
    pub(crate) worker_items: Option<Jsonb>,
    pub(crate) orchestrator_items: Option<Jsonb>,
    pub(crate) metadata: Option<Jsonb>,
    pub(crate) cancelled_activities: Option<Jsonb>,
}

/// How much of each part there is, so that no statement runs for nothing.
struct Parts {
    history: bool,
    worker_items: bool,
    orchestrator_items: bool,
    cancelled_activities: bool,
    kv_mutations: bool,
    terminal: bool,
}

/// Acknowledges `turn`, whose caller's clock stands at `caller_ms` as the call begins.
pub(crate) fn acknowledge(db: &Db, turn: &Turn, clock: Clock, caller_ms: i64) -> Result<()> {
    let leased = instance_lease::find(db, turn.lock_token)
        .filter(|leased| clock.now_ms().is_ok_and(|now| leased.locked_until_ms > now))
        .ok_or(Error::InvalidLockToken)?;
    leased.key.lock();
    let (locked_until_ms, parts) = take_lease(db, turn, &leased.instance_id, clock)?;
    let instance = leased.instance_id.as_slice();
    let now = timestamptz(caller_ms)?;

    db.query(&CONSUME_MESSAGES, &[instance.into(), turn.lock_token.into()]);
    db.query(&WRITE_METADATA, &[instance.into(), turn.execution_id.into(), now.into(), turn.metadata.into()]);
    if parts.history {
        append_history(db, instance, turn, now)?;
    }
    if parts.kv_mutations {
        kv::apply_mutations(db, instance, turn.metadata, caller_ms);
    }
    if parts.terminal {
        kv::merge_delta(db, instance, turn.execution_id);
    }
    // In this order: an activity scheduled and cancelled in one turn never runs.
    if parts.worker_items {
        db.query(&ENQUEUE_WORK_ITEMS, &[turn.worker_items.into(), now.into()]);
    }
    if parts.cancelled_activities {
        db.query(&CANCEL_ACTIVITIES, &[turn.cancelled_activities.into()]);
    }
    if parts.orchestrator_items {
        db.query(&ENQUEUE_MESSAGES, &[turn.orchestrator_items.into(), now.into(), instance.into()]);
    }

    let left = clock.left_until(locked_until_ms)?.ok_or(Error::InvalidLockToken)?;
    commit_check::require_live_until_commit(Instant::now() + left);
    Ok(())
}

/// Deletes the lock row first of all: from here to the end of the transaction nobody can take the
/// instance over, not even a session that ignores the key. The parts are counted in the same
/// statement, so that a malformed argument is noticed only by a caller who holds the lease.
static TAKE_LEASE: Statement = Statement {
    text: "
WITH taken AS (
  DELETE FROM {q}.instance_locks l
  WHERE l.instance_id = $1 AND l.lock_token = $2 AND l.locked_until > $3
  RETURNING l.locked_until
)
SELECT taken.locked_until,
       coalesce(pg_catalog.jsonb_array_length($4), 0) > 0,
       coalesce(pg_catalog.jsonb_array_length($5), 0) > 0,
       coalesce(pg_catalog.jsonb_array_length($6), 0) > 0,
       coalesce(pg_catalog.jsonb_array_length($7), 0) > 0,
       coalesce(pg_catalog.jsonb_array_length(nullif($8->'kv_mutations', 'null')), 0) > 0,
       coalesce($8->>'status' IN ('Completed', 'ContinuedAsNew', 'Failed'), false)
FROM taken",
    parameters: &[TEXT, TEXT, INT8, JSONB, JSONB, JSONB, JSONB, JSONB],
    planning: Planning::ByIndex,
};

fn take_lease(db: &Db, turn: &Turn, instance: &[u8], clock: Clock) -> Result<(i64, Parts)> {
    let rows = db.query(
        &TAKE_LEASE,
        &[
            instance.into(),
            turn.lock_token.into(),
            clock.now_ms()?.into(),
            turn.history.into(),
            turn.worker_items.into(),
            turn.orchestrator_items.into(),
            turn.cancelled_activities.into(),
            turn.metadata.into(),
        ],
    );
    let row = rows.first().ok_or(Error::InvalidLockToken)?;
    let locked_until_ms = row.int8(1).ok_or(Error::InvalidLockToken)?;
    let has = |column| row.bool(column) == Some(true);
    Ok((
        locked_until_ms,
        Parts {
            history: has(2),
            worker_items: has(3),
            orchestrator_items: has(4),
            cancelled_activities: has(5),
            kv_mutations: has(6),
            terminal: has(7),
        },
    ))
}

static CONSUME_MESSAGES: Statement = Statement {
    text: "DELETE FROM {q}.orchestrator_queue q WHERE q.instance_id = $1 AND q.lock_token = $2",
    parameters: &[TEXT, TEXT],
    planning: Planning::ByIndex,
};

/// Instance and execution in one statement. Without a name and a version the instance is not
/// created, only kept up to date.
static WRITE_METADATA: Statement = Statement {
    text: "
WITH m AS (
  SELECT $4->>'orchestration_name' AS name,
         $4->>'orchestration_version' AS version,
         $4->>'parent_instance_id' AS parent,
         $4->>'status' AS status,
         $4->>'output' AS output,
         CASE WHEN $4->>'pinned_duroxide_version' <> 'null' THEN $4->'pinned_duroxide_version' END AS pinned,
         $4->>'custom_status_value' AS custom_status,
         $4->>'custom_status_action' = 'set' AS sets_status,
         $4->>'custom_status_action' IN ('set', 'clear') AS changes_status
), created AS (
  INSERT INTO {q}.instances AS i
    (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id,
     created_at, updated_at, custom_status, custom_status_version)
  SELECT $1, m.name, m.version, $2, m.parent, $3, $3,
         CASE WHEN m.sets_status THEN m.custom_status END,
         CASE WHEN m.changes_status THEN 1 ELSE 0 END
  FROM m
  WHERE m.name IS NOT NULL AND m.version IS NOT NULL
  ON CONFLICT (instance_id) DO UPDATE
  SET orchestration_name = EXCLUDED.orchestration_name,
      orchestration_version = EXCLUDED.orchestration_version,
      parent_instance_id = coalesce(i.parent_instance_id, EXCLUDED.parent_instance_id),
      current_execution_id = GREATEST(i.current_execution_id, EXCLUDED.current_execution_id),
      updated_at = EXCLUDED.updated_at,
      custom_status = CASE WHEN EXCLUDED.custom_status_version > 0 THEN EXCLUDED.custom_status
                           ELSE i.custom_status END,
      custom_status_version = i.custom_status_version + EXCLUDED.custom_status_version
), kept AS (
  UPDATE {q}.instances i
  SET current_execution_id = GREATEST(i.current_execution_id, $2),
      updated_at = $3,
      custom_status = CASE WHEN m.sets_status THEN m.custom_status
                           WHEN m.changes_status THEN NULL
                           ELSE i.custom_status END,
      custom_status_version = i.custom_status_version + CASE WHEN m.changes_status THEN 1 ELSE 0 END
  FROM m
  WHERE i.instance_id = $1 AND (m.name IS NULL OR m.version IS NULL)
)
INSERT INTO {q}.executions AS e
  (instance_id, execution_id, status, output, started_at, completed_at,
   duroxide_version_major, duroxide_version_minor, duroxide_version_patch)
SELECT $1, $2, coalesce(m.status, 'Running'), CASE WHEN m.status IS NOT NULL THEN m.output END, $3,
       CASE WHEN m.status IN ('Completed', 'Failed') THEN $3 END,
       (m.pinned->>'major')::integer, (m.pinned->>'minor')::integer, (m.pinned->>'patch')::integer
FROM m
ON CONFLICT (instance_id, execution_id) DO UPDATE
SET status = CASE WHEN $4->>'status' IS NULL THEN e.status ELSE EXCLUDED.status END,
    output = CASE WHEN $4->>'status' IS NULL THEN e.output ELSE EXCLUDED.output END,
    completed_at = CASE WHEN $4->>'status' IS NULL THEN e.completed_at ELSE EXCLUDED.completed_at END,
    duroxide_version_major = CASE WHEN ($4->>'pinned_duroxide_version' <> 'null') IS NOT TRUE
                                  THEN e.duroxide_version_major ELSE EXCLUDED.duroxide_version_major END,
    duroxide_version_minor = CASE WHEN ($4->>'pinned_duroxide_version' <> 'null') IS NOT TRUE
                                  THEN e.duroxide_version_minor ELSE EXCLUDED.duroxide_version_minor END,
    duroxide_version_patch = CASE WHEN ($4->>'pinned_duroxide_version' <> 'null') IS NOT TRUE
                                  THEN e.duroxide_version_patch ELSE EXCLUDED.duroxide_version_patch END
WHERE $4->>'status' IS NOT NULL OR $4->>'pinned_duroxide_version' <> 'null'",
    parameters: &[TEXT, INT8, TIMESTAMPTZ, JSONB],
    planning: Planning::ByIndex,
};

static APPEND_HISTORY: Statement = Statement {
    text: "
INSERT INTO {q}.history (instance_id, execution_id, event_id, event_type, event_data, created_at)
SELECT $1, $2, (e.value->>'event_id')::bigint, e.value->>'event_type', e.value->>'event_data', $4
FROM pg_catalog.jsonb_array_elements($3) AS e (value)
RETURNING event_data",
    parameters: &[TEXT, INT8, JSONB, TIMESTAMPTZ],
    planning: Planning::ByIndex,
};

/// What is stored is looked at once more: an event's data is a text inside the JSON, and one that
/// is not JSON itself would poison the instance at its next turn.
fn append_history(db: &Db, instance: &[u8], turn: &Turn, now: Timestamptz) -> Result<()> {
    let stored = db.query(
        &APPEND_HISTORY,
        &[instance.into(), turn.execution_id.into(), turn.history.into(), now.into()],
    );
    for row in stored.iter() {
        pgrx::check_for_interrupts!();
        json::guard("p_history_delta", row.text(1).unwrap_or_default(), Form::Jsonb)?;
    }
    Ok(())
}

static ENQUEUE_WORK_ITEMS: Statement = Statement {
    text: "
INSERT INTO {q}.worker_queue
  (work_item, visible_at, created_at, instance_id, execution_id, activity_id, session_id, tag)
SELECT e.value::text, $2, $2,
       e.value->'ActivityExecute'->>'instance',
       (e.value->'ActivityExecute'->>'execution_id')::bigint,
       (e.value->'ActivityExecute'->>'id')::bigint,
       e.value->'ActivityExecute'->>'session_id',
       e.value->'ActivityExecute'->>'tag'
FROM pg_catalog.jsonb_array_elements($1) WITH ORDINALITY AS e (value, place)
ORDER BY e.place",
    parameters: &[JSONB, TIMESTAMPTZ],
    planning: Planning::ByIndex,
};

/// Takes work items away even from a worker that holds them: its acknowledgement will find nothing.
/// OFFSET 0 keeps the planner from a join that reads the whole queue.
static CANCEL_ACTIVITIES: Statement = Statement {
    text: "
DELETE FROM {q}.worker_queue w
WHERE w.id = ANY (ARRAY(
  SELECT a.id
  FROM pg_catalog.jsonb_array_elements($1) AS e (value),
       LATERAL (SELECT c.id FROM {q}.worker_queue c
                WHERE c.instance_id = e.value->>'instance'
                  AND c.execution_id = (e.value->>'execution_id')::bigint
                  AND c.activity_id = (e.value->>'activity_id')::bigint
                OFFSET 0) a))",
    parameters: &[JSONB],
    planning: Planning::ByIndex,
};

/// A message goes to the instance that its kind names; one of another kind comes back to the
/// sender. A timer is visible when it fires, to the millisecond: an interval is multiplied as a
/// double, but whole hours (3515625 * 2^10 microseconds) and less than an hour in milliseconds both
/// are exact in 53 bits over the whole range of timestamptz.
static ENQUEUE_MESSAGES: Statement = Statement {
    text: "
INSERT INTO {q}.orchestrator_queue (instance_id, work_item, visible_at, created_at)
SELECT CASE
         WHEN e.value ? 'StartOrchestration' THEN e.value->'StartOrchestration'->>'instance'
         WHEN e.value ? 'ContinueAsNew' THEN e.value->'ContinueAsNew'->>'instance'
         WHEN e.value ? 'TimerFired' THEN e.value->'TimerFired'->>'instance'
         WHEN e.value ? 'ActivityCompleted' THEN e.value->'ActivityCompleted'->>'instance'
         WHEN e.value ? 'ActivityFailed' THEN e.value->'ActivityFailed'->>'instance'
         WHEN e.value ? 'ExternalRaised' THEN e.value->'ExternalRaised'->>'instance'
         WHEN e.value ? 'CancelInstance' THEN e.value->'CancelInstance'->>'instance'
         WHEN e.value ? 'SubOrchCompleted' THEN e.value->'SubOrchCompleted'->>'parent_instance'
         WHEN e.value ? 'SubOrchFailed' THEN e.value->'SubOrchFailed'->>'parent_instance'
         WHEN e.value ? 'QueueMessage' THEN e.value->'QueueMessage'->>'instance'
         ELSE $3
       END,
       e.value::text,
       CASE WHEN t.fire_at_ms > 0
            THEN timestamptz '1970-01-01 00:00:00+00'
                 + ((t.fire_at_ms / 3600000) * interval '1 hour'
                    + (t.fire_at_ms % 3600000) * interval '1 millisecond')
            ELSE $2 END,
       $2
FROM pg_catalog.jsonb_array_elements($1) WITH ORDINALITY AS e (value, place),
     LATERAL (SELECT CASE WHEN NOT (e.value ? 'StartOrchestration' OR e.value ? 'ContinueAsNew')
                           THEN (e.value->'TimerFired'->>'fire_at_ms')::bigint END AS fire_at_ms) t
ORDER BY e.place",
    parameters: &[JSONB, TIMESTAMPTZ, TEXT],
    planning: Planning::ByIndex,
};
