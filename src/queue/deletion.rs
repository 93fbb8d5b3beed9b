//! Deletes instances with everything that belongs to them.

use crate::db::{Db, Planning, Statement, types::*};
use crate::error::{Error, Result};
use crate::pg::advisory::Key;
use crate::pg::transaction;
use crate::pg::values::TextArray;
use crate::queue::snapshot_check;

/// What was deleted.
#[derive(Debug, Default)]
pub(crate) struct Deleted {
    pub(crate) instances: i64,
    pub(crate) executions: i64,
    pub(crate) events: i64,
    pub(crate) messages: i64,
}

static IDS: Statement = Statement {
    text: "SELECT DISTINCT i.id FROM pg_catalog.unnest($1) AS i (id) WHERE i.id IS NOT NULL",
    parameters: &[TEXTS],
    planning: Planning::ByStatistics,
};

static KEYS: Statement = Statement {
    text: "
SELECT DISTINCT pg_catalog.hashtext({key} || i.id)::bigint
FROM pg_catalog.unnest($1) AS i (id)
WHERE i.id IS NOT NULL",
    parameters: &[TEXTS],
    planning: Planning::ByStatistics,
};

static RUNNING: Statement = Statement {
    text: "
SELECT i.instance_id
FROM {q}.instances i
WHERE i.instance_id = ANY ($1)
  AND (SELECT e.status FROM {q}.executions e
       WHERE e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id) = 'Running'
LIMIT 1",
    parameters: &[TEXTS],
    planning: Planning::ByIndex,
};

/// NOT IN is looked up in a hash of the list, which a join could not be without reading other tables so too.
static ORPHAN: Statement = Statement {
    text: "
SELECT i.instance_id
FROM {q}.instances i
WHERE i.parent_instance_id = ANY ($1)
  AND i.instance_id NOT IN (SELECT d.id FROM pg_catalog.unnest($1) AS d (id) WHERE d.id IS NOT NULL)
LIMIT 1",
    parameters: &[TEXTS],
    planning: Planning::ByIndex,
};

static DELETE: Statement = Statement {
    text: "
WITH history AS (
  DELETE FROM {q}.history h WHERE h.instance_id = ANY ($1) RETURNING 1
), executions AS (
  DELETE FROM {q}.executions e WHERE e.instance_id = ANY ($1) RETURNING 1
), work_items AS (
  DELETE FROM {q}.worker_queue w WHERE w.instance_id = ANY ($1) RETURNING 1
), delta AS (
  DELETE FROM {q}.kv_delta d WHERE d.instance_id = ANY ($1)
), store AS (
  DELETE FROM {q}.kv_store s WHERE s.instance_id = ANY ($1)
), instances AS (
  DELETE FROM {q}.instances i WHERE i.instance_id = ANY ($1) RETURNING 1
)
SELECT (SELECT pg_catalog.count(*) FROM instances),
       (SELECT pg_catalog.count(*) FROM executions),
       (SELECT pg_catalog.count(*) FROM history),
       (SELECT pg_catalog.count(*) FROM work_items)",
    parameters: &[TEXTS],
    planning: Planning::ByIndex,
};

/// After the work items, in a statement of its own: who had one of them and was waited for may have sent its completion.
static DELETE_MESSAGES: Statement = Statement {
    text: "DELETE FROM {q}.orchestrator_queue q WHERE q.instance_id = ANY ($1)",
    parameters: &[TEXTS],
    planning: Planning::ByIndex,
};

/// After the messages, in a statement of its own: a session that ignores the keys may have had to be
/// waited for there, and what it has committed is in no earlier snapshot.
static DELETE_LOCKS: Statement = Statement {
    text: "DELETE FROM {q}.instance_locks l WHERE l.instance_id = ANY ($1)",
    parameters: &[TEXTS],
    planning: Planning::ByIndex,
};

/// Deletes the instances, all or none. Without `force`, none of them may be running; with or
/// without, no child may be left behind. The keys are taken in order, so that two deletions of the
/// same instances cannot deadlock.
pub(crate) fn delete(db: &Db, instance_ids: Option<TextArray>, force: bool) -> Result<Deleted> {
    let Some(instance_ids) = instance_ids else { return Ok(Deleted::default()) };
    let mut keys: Vec<Key> =
        db.query(&KEYS, &[instance_ids.into()]).iter().filter_map(|row| row.int8(1)).map(Key).collect();
    keys.sort_unstable();
    for key in keys {
        key.lock();
    }
    if transaction::keeps_one_snapshot() {
        for id in db.query(&IDS, &[instance_ids.into()]).iter().filter_map(|row| row.text(1)) {
            snapshot_check::require_current(db, id)?;
        }
    }
    if !force && let Some(id) = one_id(db, &RUNNING, instance_ids) {
        return Err(Error::InstanceRunning(id));
    }
    if let Some(id) = one_id(db, &ORPHAN, instance_ids) {
        return Err(Error::Orphan(id));
    }
    let rows = db.query(&DELETE, &[instance_ids.into()]);
    let messages = db.query(&DELETE_MESSAGES, &[instance_ids.into()]).affected() as i64;
    db.query(&DELETE_LOCKS, &[instance_ids.into()]);
    let row = rows.first().expect("a query without FROM returns one row");
    let count = |column| row.int8(column).unwrap_or(0);
    Ok(Deleted { instances: count(1), executions: count(2), events: count(3), messages: messages + count(4) })
}

fn one_id(db: &Db, statement: &'static Statement, instance_ids: TextArray) -> Option<Vec<u8>> {
    db.query(statement, &[instance_ids.into()]).first()?.text(1).map(<[u8]>::to_vec)
}
