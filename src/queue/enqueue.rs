//! Puts messages and work items into the queues.

use crate::clock::timestamptz;
use crate::db::{Db, Planning, Statement, types::*};
use crate::error::Result;
use crate::pg::json::{self, Form};
use crate::pg::values::{Text, Timestamptz};

static MESSAGE: Statement = Statement {
    text: "
INSERT INTO {q}.orchestrator_queue (instance_id, work_item, visible_at, created_at)
VALUES ($1, $2, $3, pg_catalog.now())",
    parameters: &[TEXT, TEXT, TIMESTAMPTZ],
    planning: Planning::ByIndex,
};

/// Enqueues a message for an instance. It is refused if no fetch could ever deliver it.
pub(crate) fn message(
    db: &Db,
    instance_id: Option<Text>,
    work_item: Option<Text>,
    visible_at: Option<Timestamptz>,
) -> Result<()> {
    if let Some(work_item) = work_item {
        json::guard("p_work_item", work_item.bytes(), Form::Jsonb)?;
    }
    db.query(&MESSAGE, &[instance_id.into(), work_item.into(), visible_at.into()]);
    Ok(())
}

/// A work item, as it is enqueued.
#[derive(Clone, Copy)]
pub(crate) struct NewWorkItem {
    pub(crate) work_item: Option<Text>,
    pub(crate) now_ms: Option<i64>,
    pub(crate) instance_id: Option<Text>,
    pub(crate) execution_id: Option<i64>,
    pub(crate) activity_id: Option<i64>,
    pub(crate) session_id: Option<Text>,
    pub(crate) tag: Option<Text>,
}

static WORK_ITEM: Statement = Statement {
    text: "
INSERT INTO {q}.worker_queue
  (work_item, visible_at, created_at, instance_id, execution_id, activity_id, session_id, tag)
VALUES ($1, $2, $2, $3, $4, $5, $6, $7)",
    parameters: &[TEXT, TIMESTAMPTZ, TEXT, INT8, INT8, TEXT, TEXT],
    planning: Planning::ByIndex,
};

/// Enqueues a work item. It is delivered as text, so it need only be JSON, not fit for jsonb.
pub(crate) fn work_item(db: &Db, item: &NewWorkItem) -> Result<()> {
    if let Some(work_item) = item.work_item {
        json::guard("p_work_item", work_item.bytes(), Form::Json)?;
    }
    let now = item.now_ms.map(timestamptz).transpose()?;
    db.query(
        &WORK_ITEM,
        &[
            item.work_item.into(),
            now.into(),
            item.instance_id.into(),
            item.execution_id.into(),
            item.activity_id.into(),
            item.session_id.into(),
            item.tag.into(),
        ],
    );
    Ok(())
}
