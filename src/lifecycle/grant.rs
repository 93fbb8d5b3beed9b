//! Rights of a client.

use super::schema::Schema;
use crate::error::{Error, Result};

/// Gives a role exactly the rights that a client of the queue needs. PostgreSQL checks that the
/// caller may give them.
pub(crate) fn grant(name: &[u8], role: &[u8]) -> Result<()> {
    let schema = Schema::open(name)?;
    schema.require_owned_queue()?;
    require_role(&schema, role)?;
    let schema = schema.with_role(role);
    schema.run_script(include_str!("../../sql/queue_grant.sql"));
    // Who may not grant it gets a warning, and no more than that.
    let has_usage = schema.query_with("SELECT has_schema_privilege($2::name, $1, 'USAGE')", &[role.into()]);
    if has_usage.first().and_then(|row| row.bool(1)) == Some(true) {
        return Ok(());
    }
    Err(Error::NotAllowed { schema: schema.shown(), needs: "the right to grant USAGE is" })
}

/// Takes back what `grant` gave.
pub(crate) fn revoke(name: &[u8], role: &[u8]) -> Result<()> {
    let schema = Schema::open(name)?;
    schema.require_owned_queue()?;
    require_role(&schema, role)?;
    schema.with_role(role).run_script(include_str!("../../sql/queue_revoke.sql"));
    Ok(())
}

fn require_role(schema: &Schema, role: &[u8]) -> Result<()> {
    let found = schema.query_with(
        "SELECT EXISTS (SELECT FROM pg_roles r WHERE $1 IS NOT NULL AND r.rolname = $2)",
        &[role.into()],
    );
    match found.first().and_then(|row| row.bool(1)) {
        Some(true) => Ok(()),
        _ => Err(Error::NoSuchRole(String::from_utf8_lossy(role).into_owned())),
    }
}
