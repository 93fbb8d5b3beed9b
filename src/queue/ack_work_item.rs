//! Acknowledges a work item: it goes, and its completion is sent to its instance.

use crate::clock::{Clock, timestamptz};
use crate::db::{Db, Planning, Statement, types::*};
use crate::error::{Error, Result};
use crate::pg::json::{self, Form};
use crate::pg::values::Text;

/// What a completion is stored with.
#[derive(Clone, Copy)]
pub(crate) struct Completion {
    pub(crate) instance_id: Option<Text>,
    pub(crate) json: Text,
}

/// The item goes only while its lease lives, if the caller tells the time; without a time its
/// token is enough. The session that it belongs to has been active.
static ACKNOWLEDGE: Statement = Statement {
    text: "
WITH done AS (
  DELETE FROM {q}.worker_queue w
  WHERE w.lock_token = $1 AND ($2 IS NULL OR w.locked_until > $2)
  RETURNING w.session_id, w.locked_until
), completion AS (
  INSERT INTO {q}.orchestrator_queue (instance_id, work_item, visible_at, created_at)
  SELECT $3, $4, $5, $5 FROM done WHERE $4 IS NOT NULL
), active AS (
  UPDATE {q}.sessions s
  SET last_activity_at = $6
  FROM done
  WHERE s.session_id = done.session_id AND s.locked_until > $6
)
SELECT done.locked_until FROM done",
    parameters: &[TEXT, INT8, TEXT, TEXT, TIMESTAMPTZ, INT8],
    planning: Planning::ByIndex,
};

/// Acknowledges the item of `lock_token`; without `completion`, as for a cancelled activity, nothing
/// is sent.
pub(crate) fn acknowledge(
    db: &Db,
    lock_token: Option<Text>,
    completion: Option<Completion>,
    caller_ms: Option<i64>,
    clock: Option<Clock>,
) -> Result<()> {
    let now_ms = clock.map(|clock| clock.now_ms()).transpose()?;
    let visible_at = match caller_ms {
        Some(ms) if completion.is_some() => Some(timestamptz(ms)?),
        _ => None,
    };
    // Without all that it is stored with there is nothing to send, but whether the item was there
    // at all is told first.
    let sendable = completion.filter(|completion| completion.instance_id.is_some() && visible_at.is_some());
    if let Some(completion) = sendable {
        json::guard("p_completion_json", completion.json.bytes(), Form::Jsonb)?;
    }
    let rows = db.query(
        &ACKNOWLEDGE,
        &[
            lock_token.into(),
            now_ms.into(),
            sendable.and_then(|completion| completion.instance_id).into(),
            sendable.map(|completion| completion.json).into(),
            visible_at.into(),
            caller_ms.into(),
        ],
    );
    let Some(done) = rows.first() else { return Err(Error::WorkItemGone) };
    // The row may have been waited for, and the lease have ended meanwhile.
    if let (Some(clock), Some(locked_until_ms)) = (clock, done.int8(1)) {
        clock.left_until(locked_until_ms)?.ok_or(Error::WorkItemGone)?;
    }
    match completion {
        Some(completion) if completion.instance_id.is_none() => Err(Error::CompletionNeeds("p_instance_id")),
        Some(_) if caller_ms.is_none() => Err(Error::CompletionNeeds("p_now_ms")),
        _ => Ok(()),
    }
}
