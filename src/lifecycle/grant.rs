//! Rights of a client.

use super::schema::Schema;
use crate::error::Result;

/// Gives a role exactly the rights that a client of the queue needs. PostgreSQL checks that the
/// caller may give them.
pub(crate) fn grant(name: &[u8], role: &[u8]) -> Result<()> {
    let schema = Schema::open(name)?;
    schema.require_queue()?;
    schema.with_role(role).run_script(include_str!("../../sql/queue_grant.sql"));
    Ok(())
}

/// Takes back what `grant` gave.
pub(crate) fn revoke(name: &[u8], role: &[u8]) -> Result<()> {
    let schema = Schema::open(name)?;
    schema.require_queue()?;
    schema.with_role(role).run_script(include_str!("../../sql/queue_revoke.sql"));
    Ok(())
}
