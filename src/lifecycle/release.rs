//! Gives an adopted queue back.

use super::functions;
use super::schema::Schema;
use super::standstill::stand_still;
use crate::error::{Error, Result};

const ADDITIONS_DROP: &str = include_str!("../../sql/queue_additions_drop.sql");

/// Puts back the functions that `adopt` replaced, in place, and takes away what it added. The data
/// stays; dead letters would be lost with their table, so while there are any this is refused.
pub(crate) fn release(name: &[u8]) -> Result<()> {
    let schema = Schema::open(name)?;
    let registered = schema.require_queue()?;
    if registered.origin != "adopted" {
        return Err(Error::WrongOrigin { schema: schema.shown(), origin: registered.origin });
    }
    schema.as_owner(|| {
        require_name_of_adoption(&schema)?;
        stand_still(
            &schema,
            "{q}.instance_locks, {q}.orchestrator_queue, {q}.worker_queue, {q}.sessions, {q}.dead_letters",
        );
        let letters = schema.query("SELECT count(*) FROM {q}.dead_letters WHERE $1 IS NOT NULL");
        match letters.first().and_then(|row| row.int8(1)) {
            Some(count) if count > 0 => Err(Error::DeadLettersLeft { schema: schema.shown(), count }),
            _ => Ok(()),
        }
    })?;
    functions::untie(&schema);
    schema.as_owner(|| {
        put_back(&schema);
        schema.run_script(ADDITIONS_DROP);
        Ok(())
    })
}

/// The definitions name their schema, in their bodies too. Where it has another name by now they would come to be
/// in whatever schema has the old one.
fn require_name_of_adoption(schema: &Schema) -> Result<()> {
    let begins_so = schema.one_bool(
        "SELECT NOT EXISTS (
           SELECT FROM {q}._duroxide_queue q CROSS JOIN unnest(q.replaced_functions) d (definition)
           WHERE starts_with(d.definition, 'CREATE OR REPLACE FUNCTION ')
             AND NOT starts_with(d.definition, format('CREATE OR REPLACE FUNCTION %I.', $1))
             AND NOT starts_with(d.definition, 'CREATE OR REPLACE FUNCTION \"' || replace($1, '\"', '\"\"') || '\".'))",
    );
    if begins_so { Ok(()) } else { Err(Error::AdoptedUnderAnotherName(schema.shown())) }
}

/// The definitions are text that the owner could have changed, so this runs with the owner's rights.
fn put_back(schema: &Schema) {
    let rows = schema.query(
        "SELECT d.definition
         FROM {q}._duroxide_queue q CROSS JOIN unnest(q.replaced_functions) d (definition)
         WHERE $1 IS NOT NULL",
    );
    for definition in rows.iter().filter_map(|row| row.text(1)) {
        schema.run_verbatim(definition);
    }
}
