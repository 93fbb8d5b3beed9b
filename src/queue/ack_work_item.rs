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
/// token is enough.
static TAKE_AWAY: Statement = Statement {
    text: "
DELETE FROM {q}.worker_queue w
WHERE w.lock_token = $1 AND ($2 IS NULL OR w.locked_until > $2)
RETURNING w.session_id, w.locked_until",
    parameters: &[TEXT, INT8],
    planning: Planning::ByIndex,
};

static SEND_COMPLETION: Statement = Statement {
    text: "
INSERT INTO {q}.orchestrator_queue (instance_id, work_item, visible_at, created_at)
VALUES ($1, $2, $3, $3)",
    parameters: &[TEXT, TEXT, TIMESTAMPTZ],
    planning: Planning::ByIndex,
};

/// The session that the item belonged to has been active.
static NOTE_ACTIVITY: Statement = Statement {
    text: "
UPDATE {q}.sessions s
SET last_activity_at = $2
WHERE s.session_id = $1 AND s.locked_until > $2",
    parameters: &[TEXT, INT8],
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
    let rows = db.query(&TAKE_AWAY, &[lock_token.into(), now_ms.into()]);
    let Some(taken) = rows.first() else { return Err(Error::WorkItemGone) };
    if let Some(Completion { instance_id, json }) = sendable {
        db.query(&SEND_COMPLETION, &[instance_id.into(), json.into(), visible_at.into()]);
    }
    if let Some((session_id, caller_ms)) = taken.text(1).zip(caller_ms) {
        db.query(&NOTE_ACTIVITY, &[session_id.into(), caller_ms.into()]);
    }
    // Rows may have been waited for, and the lease have ended meanwhile.
    if let (Some(clock), Some(locked_until_ms)) = (clock, taken.int8(2)) {
        clock.left_until(locked_until_ms)?.ok_or(Error::WorkItemGone)?;
    }
    match completion {
        Some(completion) if completion.instance_id.is_none() => Err(Error::CompletionNeeds("p_instance_id")),
        Some(_) if caller_ms.is_none() => Err(Error::CompletionNeeds("p_now_ms")),
        _ => Ok(()),
    }
}
