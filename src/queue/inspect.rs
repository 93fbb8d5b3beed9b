//! Looks at instances and executions.

use crate::db::{Db, Planning, Statement, types::*};
use crate::error::{Error, Result};
use crate::pg::result_set::ResultSet;
use crate::pg::values::{Text, TextBuf};

static LIST_INSTANCES: Statement = Statement {
    text: "SELECT i.instance_id FROM {q}.instances i ORDER BY i.created_at DESC",
    parameters: &[],
    planning: Planning::ByStatistics,
};

/// All instances, the youngest first.
pub(crate) fn list_instances(db: &Db, result: &ResultSet) {
    db.query_into(result, &LIST_INSTANCES, &[]);
}

static LIST_BY_STATUS: Statement = Statement {
    text: "
SELECT i.instance_id
FROM {q}.instances i
JOIN {q}.executions e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE e.status = $1
ORDER BY i.created_at DESC",
    parameters: &[TEXT],
    planning: Planning::ByStatistics,
};

/// The instances whose current execution has this status, the youngest first.
pub(crate) fn list_instances_by_status(db: &Db, result: &ResultSet, status: Option<Text>) {
    db.query_into(result, &LIST_BY_STATUS, &[status.into()]);
}

static LIST_EXECUTIONS: Statement = Statement {
    text: "SELECT e.execution_id FROM {q}.executions e WHERE e.instance_id = $1 ORDER BY e.execution_id",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// The executions of an instance, in order.
pub(crate) fn list_executions(db: &Db, result: &ResultSet, instance: Option<Text>) {
    db.query_into(result, &LIST_EXECUTIONS, &[instance.into()]);
}

static LIST_CHILDREN: Statement = Statement {
    text: "SELECT i.instance_id FROM {q}.instances i WHERE i.parent_instance_id = $1 ORDER BY i.created_at",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// The sub-orchestrations of an instance, the eldest first.
pub(crate) fn list_children(db: &Db, result: &ResultSet, instance: Option<Text>) {
    db.query_into(result, &LIST_CHILDREN, &[instance.into()]);
}

static PARENT: Statement = Statement {
    text: "SELECT i.parent_instance_id FROM {q}.instances i WHERE i.instance_id = $1",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// The parent of an instance that exists; `None` for one at the top.
pub(crate) fn parent(db: &Db, instance: Option<Text>) -> Result<Option<TextBuf>> {
    let rows = db.query(&PARENT, &[instance.into()]);
    match rows.first() {
        Some(row) => Ok(row.text_buf(1)),
        None => Err(Error::InstanceNotFound(
            instance.map_or_else(|| b"<NULL>".to_vec(), |id| id.bytes().to_vec()),
        )),
    }
}

static LATEST_EXECUTION: Statement = Statement {
    text: "SELECT i.current_execution_id FROM {q}.instances i WHERE i.instance_id = $1",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// The current execution of an instance.
pub(crate) fn latest_execution(db: &Db, instance: Option<Text>) -> Option<i64> {
    db.query(&LATEST_EXECUTION, &[instance.into()]).first()?.int8(1)
}

static INSTANCE: Statement = Statement {
    text: "
SELECT i.instance_id, i.orchestration_name, coalesce(i.orchestration_version, 'unknown'),
       i.current_execution_id, i.created_at, i.updated_at, e.status, e.output, i.parent_instance_id
FROM {q}.instances i
LEFT JOIN {q}.executions e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE i.instance_id = $1",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// What is known of an instance, with the state of its current execution.
pub(crate) fn instance(db: &Db, result: &ResultSet, instance: Option<Text>) {
    db.query_into(result, &INSTANCE, &[instance.into()]);
}

static EXECUTION: Statement = Statement {
    text: "
SELECT e.execution_id, e.status, e.output, e.started_at, e.completed_at,
       (SELECT pg_catalog.count(*) FROM {q}.history h
        WHERE h.instance_id = e.instance_id AND h.execution_id = e.execution_id)
FROM {q}.executions e
WHERE e.instance_id = $1 AND e.execution_id = $2",
    parameters: &[TEXT, INT8],
    planning: Planning::ByIndex,
};

/// What is known of an execution, with the number of its events.
pub(crate) fn execution(db: &Db, result: &ResultSet, instance: Option<Text>, execution_id: Option<i64>) {
    db.query_into(result, &EXECUTION, &[instance.into(), execution_id.into()]);
}

/// Sizes of an instance.
#[derive(Default)]
pub(crate) struct InstanceStats {
    pub(crate) found: bool,
    pub(crate) history_events: i64,
    pub(crate) history_bytes: i64,
    pub(crate) carried_forward: i64,
    pub(crate) kv_keys: i64,
    pub(crate) kv_bytes: i64,
}

/// Keys are counted as a reader sees them, bytes as they are stored: a key in both tables counts
/// once, its values twice. A key that the delta has cleared but the store still holds counts.
static STATS: Statement = Statement {
    text: "
SELECT h.events, h.bytes,
       (SELECT pg_catalog.count(*) FROM (
          SELECT s.key FROM {q}.kv_store s WHERE s.instance_id = $1
          UNION
          SELECT d.key FROM {q}.kv_delta d WHERE d.instance_id = $1 AND d.value IS NOT NULL) k),
       (SELECT coalesce(pg_catalog.sum(pg_catalog.octet_length(s.value)), 0)
        FROM {q}.kv_store s WHERE s.instance_id = $1)
       + (SELECT coalesce(pg_catalog.sum(pg_catalog.octet_length(d.value)), 0)
          FROM {q}.kv_delta d WHERE d.instance_id = $1),
       (SELECT f.event_data FROM {q}.history f
        WHERE f.instance_id = $1 AND f.execution_id = i.current_execution_id AND f.event_id = 1)
FROM {q}.instances i,
     LATERAL (SELECT pg_catalog.count(*) AS events,
                     coalesce(pg_catalog.sum(pg_catalog.octet_length(a.event_data)), 0)::bigint AS bytes
              FROM {q}.history a
              WHERE a.instance_id = $1 AND a.execution_id = i.current_execution_id) h
WHERE i.instance_id = $1",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// Events that an earlier execution carried forward are listed in the first event.
static CARRIED_FORWARD: Statement = Statement {
    text: "
SELECT CASE WHEN pg_catalog.jsonb_typeof(e.carried) = 'array'
            THEN pg_catalog.jsonb_array_length(e.carried) ELSE 0 END::bigint
FROM (SELECT $1::jsonb->'carry_forward_events' AS carried) e",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// Sizes of an instance: events and bytes of history, carried-forward events, keys and their bytes.
pub(crate) fn stats(db: &Db, instance: Option<Text>) -> InstanceStats {
    let rows = db.query(&STATS, &[instance.into()]);
    let Some(row) = rows.first() else { return InstanceStats::default() };
    let carried_forward = row
        .text(5)
        .and_then(|event| db.query(&CARRIED_FORWARD, &[event.into()]).first().and_then(|row| row.int8(1)));
    InstanceStats {
        found: true,
        history_events: row.int8(1).unwrap_or(0),
        history_bytes: row.int8(2).unwrap_or(0),
        kv_keys: row.int8(3).unwrap_or(0),
        kv_bytes: row.int8(4).unwrap_or(0),
        carried_forward: carried_forward.unwrap_or(0),
    }
}
