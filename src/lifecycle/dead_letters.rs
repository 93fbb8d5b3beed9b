//! What an operator does with a dead letter: puts it back, or removes it; with the rights of the
//! tables' owner, since the tables may have triggers of the owner's.

use super::schema::Schema;
use crate::error::{Error, Result};
use crate::pg::json::{self, Form};

/// Puts a dead letter back into its queue, in its old place, once its text can be delivered. To
/// repair the text, UPDATE `work_item` in the table first.
pub(crate) fn redrive(name: &[u8], id: i64) -> Result<()> {
    let schema = Schema::open(name)?;
    schema.require_queue()?;
    schema.as_owner(|| {
        let letters = schema.query_with(
            "SELECT d.work_item FROM {q}.dead_letters d WHERE $1 IS NOT NULL AND d.id = $2 FOR UPDATE",
            &[id.into()],
        );
        let letter = letters.first().ok_or_else(|| missing(&schema, id))?;
        json::guard("the work item of the dead letter", letter.text(1).unwrap_or_default(), Form::Jsonb)?;
        schema.query_with(
            "WITH letter AS (DELETE FROM {q}.dead_letters d WHERE $1 IS NOT NULL AND d.id = $2 RETURNING d.*)
             INSERT INTO {q}.orchestrator_queue (id, instance_id, work_item, visible_at, created_at, attempt_count)
             SELECT l.message_id, l.instance_id, l.work_item, l.visible_at, l.created_at, l.attempt_count
             FROM letter l",
            &[id.into()],
        );
        Ok(())
    })
}

/// Removes a dead letter for good.
pub(crate) fn discard(name: &[u8], id: i64) -> Result<()> {
    let schema = Schema::open(name)?;
    schema.require_queue()?;
    schema.as_owner(|| {
        let gone = schema.query_with(
            "DELETE FROM {q}.dead_letters d WHERE $1 IS NOT NULL AND d.id = $2 RETURNING d.id",
            &[id.into()],
        );
        if gone.len() == 0 { Err(missing(&schema, id)) } else { Ok(()) }
    })
}

fn missing(schema: &Schema, id: i64) -> Error {
    Error::NoDeadLetter { schema: schema.shown(), id }
}
