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

/// What a turn comes to, as told by the statement that takes its lease.
struct Taken {
    locked_until_ms: i64,
    parts: Parts,
    metadata: Metadata,
}

/// How much of each part there is, so that no statement runs for nothing.
struct Parts {
    history: bool,
    worker_items: bool,
    orchestrator_items: bool,
    cancelled_activities: bool,
    kv_mutations: bool,
}

/// The turn's metadata, texts as they are stored.
struct Metadata {
    orchestration_name: Option<Vec<u8>>,
    orchestration_version: Option<Vec<u8>>,
    parent_instance_id: Option<Vec<u8>>,
    status: Option<Vec<u8>>,
    output: Option<Vec<u8>>,
    custom_status: Option<Vec<u8>>,
    /// Whether the custom status is set or cleared.
    changes_custom_status: bool,
    is_pinned: bool,
    /// Major, minor and patch number of the duroxide that the execution is pinned to.
    pinned_version: [Option<i32>; 3],
}

impl Metadata {
    fn has_status(&self, any_of: &[&str]) -> bool {
        self.status.as_deref().is_some_and(|status| any_of.iter().any(|name| name.as_bytes() == status))
    }
}

/// Acknowledges `turn`, whose caller's clock stands at `caller_ms` as the call begins.
pub(crate) fn acknowledge(db: &Db, turn: &Turn, clock: Clock, caller_ms: i64) -> Result<()> {
    let leased = instance_lease::find(db, turn.lock_token)
        .filter(|leased| clock.now_ms().is_ok_and(|now| leased.locked_until_ms > now))
        .ok_or(Error::InvalidLockToken)?;
    leased.key.lock();
    let Taken { locked_until_ms, parts, metadata } = take_lease(db, turn, &leased.instance_id, clock)?;
    let instance = leased.instance_id.as_slice();
    let now = timestamptz(caller_ms)?;

    db.query(&CONSUME_MESSAGES, &[instance.into(), turn.lock_token.into()]);
    write_instance(db, instance, turn.execution_id, now, &metadata);
    write_execution(db, instance, turn.execution_id, now, &metadata);
    if parts.history {
        append_history(db, instance, turn, now)?;
    }
    if parts.kv_mutations {
        kv::apply_mutations(db, instance, turn.metadata, caller_ms);
    }
    if metadata.has_status(&["Completed", "ContinuedAsNew", "Failed"]) {
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
    // What has waited behind the lease is free now.
    db.memories().messages.forget_emptiness();
    Ok(())
}

/// Deletes the lock row first of all: from here to the end of the transaction nobody can take the
/// instance over, not even a session that ignores the key. The parts are counted and the metadata is read in the same
/// statement, so that a malformed argument is noticed only by a caller who holds the lease.
static TAKE_LEASE: Statement = Statement {
    text: "
DELETE FROM {q}.instance_locks l
WHERE l.instance_id = $1 AND l.lock_token = $2 AND l.locked_until > $3
RETURNING
       l.locked_until,
       pg_catalog.jsonb_array_length($4) > 0,
       pg_catalog.jsonb_array_length($5) > 0,
       pg_catalog.jsonb_array_length($6) > 0,
       pg_catalog.jsonb_array_length($7) > 0,
       pg_catalog.jsonb_array_length(nullif($8->'kv_mutations', 'null')) > 0,
       $8->>'orchestration_name',
       $8->>'orchestration_version',
       $8->>'parent_instance_id',
       $8->>'status',
       $8->>'output',
       $8->>'custom_status_action',
       $8->>'custom_status_value',
       $8->>'pinned_duroxide_version' <> 'null',
       ($8->'pinned_duroxide_version'->>'major')::integer,
       ($8->'pinned_duroxide_version'->>'minor')::integer,
       ($8->'pinned_duroxide_version'->>'patch')::integer",
    parameters: &[TEXT, TEXT, INT8, JSONB, JSONB, JSONB, JSONB, JSONB],
    planning: Planning::ByIndex,
};

fn take_lease(db: &Db, turn: &Turn, instance: &[u8], clock: Clock) -> Result<Taken> {
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
    let is = |column| row.bool(column) == Some(true);
    let text = |column| row.text(column).map(<[u8]>::to_vec);
    let sets_custom_status = row.text(12) == Some(b"set");
    Ok(Taken {
        locked_until_ms: row.int8(1).ok_or(Error::InvalidLockToken)?,
        parts: Parts {
            history: is(2),
            worker_items: is(3),
            orchestrator_items: is(4),
            cancelled_activities: is(5),
            kv_mutations: is(6),
        },
        metadata: Metadata {
            orchestration_name: text(7),
            orchestration_version: text(8),
            parent_instance_id: text(9),
            status: text(10),
            output: text(11),
            custom_status: text(13).filter(|_| sets_custom_status),
            changes_custom_status: sets_custom_status || row.text(12) == Some(b"clear"),
            is_pinned: is(14),
            pinned_version: [15, 16, 17].map(|column| row.int4(column)),
        },
    })
}

static CONSUME_MESSAGES: Statement = Statement {
    text: "DELETE FROM {q}.orchestrator_queue q WHERE q.instance_id = $1 AND q.lock_token = $2",
    parameters: &[TEXT, TEXT],
    planning: Planning::ByIndex,
};

/// $8 counts the changes of the custom status, none or one.
static CREATE_INSTANCE: Statement = Statement {
    text: "
INSERT INTO {q}.instances AS i
  (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id,
   created_at, updated_at, custom_status, custom_status_version)
VALUES ($1, $4, $5, $2, $6, $3, $3, $7, $8)
ON CONFLICT (instance_id) DO UPDATE
SET orchestration_name = EXCLUDED.orchestration_name,
    orchestration_version = EXCLUDED.orchestration_version,
    parent_instance_id = coalesce(i.parent_instance_id, EXCLUDED.parent_instance_id),
    current_execution_id = GREATEST(i.current_execution_id, EXCLUDED.current_execution_id),
    updated_at = EXCLUDED.updated_at,
    custom_status = CASE WHEN $8 > 0 THEN $7 ELSE i.custom_status END,
    custom_status_version = i.custom_status_version + $8",
    parameters: &[TEXT, INT8, TIMESTAMPTZ, TEXT, TEXT, TEXT, TEXT, INT4],
    planning: Planning::ByIndex,
};

static KEEP_INSTANCE: Statement = Statement {
    text: "
UPDATE {q}.instances i
SET current_execution_id = GREATEST(i.current_execution_id, $2),
    updated_at = $3,
    custom_status = CASE WHEN $5 > 0 THEN $4 ELSE i.custom_status END,
    custom_status_version = i.custom_status_version + $5
WHERE i.instance_id = $1",
    parameters: &[TEXT, INT8, TIMESTAMPTZ, TEXT, INT4],
    planning: Planning::ByIndex,
};

/// Without a name and a version the instance is not created, only kept up to date.
fn write_instance(
    db: &Db,
    instance: &[u8],
    execution_id: Option<i64>,
    now: Timestamptz,
    metadata: &Metadata,
) {
    let changes = i32::from(metadata.changes_custom_status);
    let custom_status = metadata.custom_status.as_ref();
    match (&metadata.orchestration_name, &metadata.orchestration_version) {
        (Some(name), Some(version)) => db.query(
            &CREATE_INSTANCE,
            &[
                instance.into(),
                execution_id.into(),
                now.into(),
                name.into(),
                version.into(),
                metadata.parent_instance_id.as_ref().into(),
                custom_status.into(),
                changes.into(),
            ],
        ),
        _ => db.query(
            &KEEP_INSTANCE,
            &[instance.into(), execution_id.into(), now.into(), custom_status.into(), changes.into()],
        ),
    };
}

/// What the turn says nothing of stays as it is.
static WRITE_EXECUTION: Statement = Statement {
    text: "
INSERT INTO {q}.executions AS e
  (instance_id, execution_id, status, output, started_at, completed_at,
   duroxide_version_major, duroxide_version_minor, duroxide_version_patch)
VALUES ($1, $2, coalesce($4, 'Running'), $5, $3, $6, $8, $9, $10)
ON CONFLICT (instance_id, execution_id) DO UPDATE
SET status = coalesce($4, e.status),
    output = CASE WHEN $4 IS NULL THEN e.output ELSE $5 END,
    completed_at = CASE WHEN $4 IS NULL THEN e.completed_at ELSE $6 END,
    duroxide_version_major = CASE WHEN $7 THEN $8 ELSE e.duroxide_version_major END,
    duroxide_version_minor = CASE WHEN $7 THEN $9 ELSE e.duroxide_version_minor END,
    duroxide_version_patch = CASE WHEN $7 THEN $10 ELSE e.duroxide_version_patch END
WHERE $4 IS NOT NULL OR $7",
    parameters: &[TEXT, INT8, TIMESTAMPTZ, TEXT, TEXT, TIMESTAMPTZ, BOOL, INT4, INT4, INT4],
    planning: Planning::ByIndex,
};

fn write_execution(
    db: &Db,
    instance: &[u8],
    execution_id: Option<i64>,
    now: Timestamptz,
    metadata: &Metadata,
) {
    let output = metadata.output.as_ref().filter(|_| metadata.status.is_some());
    let completed_at = metadata.has_status(&["Completed", "Failed"]).then_some(now);
    let [major, minor, patch] = metadata.pinned_version;
    db.query(
        &WRITE_EXECUTION,
        &[
            instance.into(),
            execution_id.into(),
            now.into(),
            metadata.status.as_ref().into(),
            output.into(),
            completed_at.into(),
            metadata.is_pinned.into(),
            major.into(),
            minor.into(),
            patch.into(),
        ],
    );
}

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
