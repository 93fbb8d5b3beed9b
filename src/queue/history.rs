//! History: read and appended.

use crate::db::{Db, Planning, Statement, types::*};
use crate::error::{Error, Result};
use crate::pg::json::{self, Form};
use crate::pg::result_set::ResultSet;
use crate::pg::values::{Jsonb, Text};

static OF_EXECUTION: Statement = Statement {
    text: "
SELECT h.event_data FROM {q}.history h
WHERE h.instance_id = $1 AND h.execution_id = $2
ORDER BY h.event_id",
    parameters: &[TEXT, INT8],
    planning: Planning::ByIndex,
};

static OF_LATEST_EXECUTION: Statement = Statement {
    text: "
SELECT h.event_data FROM {q}.history h
WHERE h.instance_id = $1
  AND h.execution_id = coalesce((SELECT e.execution_id FROM {q}.executions e
                                 WHERE e.instance_id = $1
                                 ORDER BY e.execution_id DESC LIMIT 1), 1)
ORDER BY h.event_id",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// The events of one execution, as they were stored, in order.
pub(crate) fn of_execution(db: &Db, result: &ResultSet, instance: Option<Text>, execution_id: Option<i64>) {
    db.query_into(result, &OF_EXECUTION, &[instance.into(), execution_id.into()]);
}

/// The events of the latest execution.
pub(crate) fn of_latest_execution(db: &Db, result: &ResultSet, instance: Option<Text>) {
    db.query_into(result, &OF_LATEST_EXECUTION, &[instance.into()]);
}

static HAS_INVALID_ID: Statement = Statement {
    text: "
SELECT coalesce(pg_catalog.jsonb_array_length($1), 0) > 0
       AND EXISTS (SELECT FROM pg_catalog.jsonb_array_elements($1) AS e (value)
                   WHERE coalesce((e.value->>'event_id')::bigint, 0) <= 0)",
    parameters: &[JSONB],
    planning: Planning::ByIndex,
};

static APPEND: Statement = Statement {
    text: "
INSERT INTO {q}.history (instance_id, execution_id, event_id, event_type, event_data, created_at)
SELECT $1, $2, (e.value->>'event_id')::bigint, e.value->>'event_type', e.value->>'event_data',
       pg_catalog.clock_timestamp()
FROM pg_catalog.jsonb_array_elements($3) AS e (value)
ON CONFLICT (instance_id, execution_id, event_id) DO NOTHING
RETURNING event_data",
    parameters: &[TEXT, INT8, JSONB],
    planning: Planning::ByIndex,
};

/// Appends events to an execution; one whose id is there already is left as it was.
pub(crate) fn append(
    db: &Db,
    instance: Option<Text>,
    execution_id: Option<i64>,
    events: Option<Jsonb>,
) -> Result<()> {
    let Some(events) = events else { return Ok(()) };
    if db.query(&HAS_INVALID_ID, &[events.into()]).first().and_then(|row| row.bool(1)) == Some(true) {
        return Err(Error::InvalidEventId);
    }
    let stored = db.query(&APPEND, &[instance.into(), execution_id.into(), events.into()]);
    for row in stored.iter() {
        pgrx::check_for_interrupts!();
        json::guard("p_events", row.text(1).unwrap_or_default(), Form::Jsonb)?;
    }
    Ok(())
}
