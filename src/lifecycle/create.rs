//! Makes a queue.

use super::functions::{self, Existing};
use super::schema::{LAYOUT, Schema};
use crate::error::{Error, Result};

const LAYOUT_SCRIPT: &str = include_str!("../../sql/queue_tables.sql");
pub(super) const ADDITIONS: &str = include_str!("../../sql/queue_additions.sql");
pub(super) const COMMENTS: &str = include_str!("../../sql/queue_comments.sql");

/// Makes a queue in a schema that holds none, and the schema itself if it is missing and the caller
/// may make it.
pub(crate) fn create(name: &[u8]) -> Result<()> {
    let schema = Schema::open(name)?;
    let missing = !schema.exists();
    if missing {
        if !schema
            .one_bool("SELECT has_database_privilege(current_database(), 'CREATE') WHERE $1 IS NOT NULL")
        {
            return Err(Error::NoSchemaToCreate(schema.shown()));
        }
        schema.run_script("CREATE SCHEMA {q}");
    }
    schema.require_create()?;
    refuse_occupied(&schema)?;
    schema.run_script(LAYOUT_SCRIPT);
    schema.run_script(ADDITIONS);
    register(&schema, "created", missing, "'{}'");
    functions::declare(&schema, Existing::Refuse, schema.owner()?);
    schema.run_script(COMMENTS);
    Ok(())
}

/// Writes the queue's registry. `replaced` is an SQL expression.
pub(super) fn register(schema: &Schema, origin: &str, made_schema: bool, replaced: &str) {
    schema.run_script(&format!(
        "INSERT INTO {{q}}._duroxide_queue (origin, layout, made_schema, replaced_functions)
         VALUES ('{origin}', {LAYOUT}, {made_schema}, {replaced})"
    ));
}

fn refuse_occupied(schema: &Schema) -> Result<()> {
    if schema.has_table("_duroxide_queue") {
        return Err(Error::QueueExists(schema.shown()));
    }
    if schema.has_table("_duroxide_migrations") {
        return Err(Error::DuroxidePgExists(schema.shown()));
    }
    refuse_taken(schema, &[relations(LAYOUT_SCRIPT), relations(ADDITIONS)].join(" "), &functions::names())
}

/// Refuses a schema that holds a relation or a function of one of these names, a blank between two.
pub(super) fn refuse_taken(schema: &Schema, relations: &str, functions: &str) -> Result<()> {
    let rows = schema.query_with(
        "SELECT o.name::text
         FROM (SELECT c.relname AS name
               FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = $1 AND c.relname = ANY (string_to_array($2, ' '))
               UNION ALL
               SELECT p.proname
               FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
               WHERE n.nspname = $1 AND p.proname = ANY (string_to_array($3, ' '))) o
         ORDER BY 1 LIMIT 1",
        &[relations.as_bytes().into(), functions.as_bytes().into()],
    );
    match rows.first().and_then(|row| row.text(1)) {
        None => Ok(()),
        Some(taken) => Err(Error::NameTaken {
            schema: schema.shown(),
            name: String::from_utf8_lossy(taken).into_owned(),
        }),
    }
}

/// The names of the relations that a script makes, a blank between two. A serial column would
/// take another name for its sequence rather than fail, so those count too.
pub(super) fn relations(script: &str) -> String {
    let mut names = Vec::new();
    for line in script.lines() {
        if let Some(rest) = line.strip_prefix("CREATE TABLE {q}.") {
            let table = rest.split(' ').next().unwrap_or_default();
            names.extend([table.to_owned(), format!("{table}_pkey"), format!("{table}_id_seq")]);
        } else if let Some(rest) =
            line.strip_prefix("CREATE INDEX ").or(line.strip_prefix("CREATE UNIQUE INDEX "))
        {
            names.push(rest.split(' ').next().unwrap_or_default().to_owned());
        }
    }
    names.join(" ")
}
