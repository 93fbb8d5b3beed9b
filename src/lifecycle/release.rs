//! Gives an adopted queue back.

use super::functions;
use super::schema::Schema;
use crate::error::{Error, Result};
use crate::pg::identity;

const ADDITIONS_DROP: &str = include_str!("../../sql/queue_additions_drop.sql");

/// Puts back the functions that `adopt` replaced, in place, and takes away what it added. The data
/// stays; dead letters would be lost with their table, so while there are any this is refused.
pub(crate) fn release(name: &[u8]) -> Result<()> {
    let schema = Schema::open(name)?;
    let registered = schema.require_queue()?;
    if registered.origin != "adopted" {
        return Err(Error::WrongOrigin { schema: schema.shown(), origin: registered.origin });
    }
    schema.run_script(
        "LOCK TABLE {q}.instance_locks, {q}.orchestrator_queue, {q}.worker_queue, {q}.sessions, {q}.dead_letters
         IN SHARE ROW EXCLUSIVE MODE",
    );
    let letters = schema.query("SELECT count(*) FROM {q}.dead_letters WHERE $1 IS NOT NULL");
    let count = letters.first().and_then(|row| row.int8(1)).unwrap_or(0);
    if count > 0 {
        return Err(Error::DeadLettersLeft { schema: schema.shown(), count });
    }
    functions::untie(&schema);
    put_back(&schema);
    schema.run_script(ADDITIONS_DROP);
    Ok(())
}

/// The definitions are text that the owner of the registry could have changed, so they run with
/// that role's rights, whoever calls.
fn put_back(schema: &Schema) {
    let rows = schema.query(
        "SELECT d.definition
         FROM {q}._duroxide_queue q CROSS JOIN unnest(q.replaced_functions) d (definition)
         WHERE $1 IS NOT NULL",
    );
    identity::as_role(schema.owner(), || {
        for definition in rows.iter().filter_map(|row| row.text(1)) {
            schema.run_verbatim(definition);
        }
    });
}
