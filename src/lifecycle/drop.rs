//! Removes a queue that was created here.

use super::schema::Schema;
use crate::error::{Error, Result};

const SCRIPT: &str = include_str!("../../sql/queue_drop.sql");

/// Drops what `create` made, with all its data; and the schema, if `create` made it and nothing else
/// is in it. Objects of others that depend on the queue stop it (2BP01).
pub(crate) fn drop_queue(name: &[u8]) -> Result<()> {
    let schema = Schema::open(name)?;
    let registered = schema.require_queue()?;
    if registered.origin != "created" {
        return Err(Error::WrongOrigin { schema: schema.shown(), origin: registered.origin });
    }
    schema.run_script(SCRIPT);
    let emptied = registered.made_schema
        && schema.one_bool(
            "SELECT NOT EXISTS (SELECT FROM pg_depend d
                                WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid)
                    AND pg_has_role(n.nspowner, 'USAGE')
             FROM pg_namespace n WHERE n.nspname = $1",
        );
    if emptied {
        schema.run_script("DROP SCHEMA {q}");
    }
    Ok(())
}
