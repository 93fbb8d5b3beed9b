//! Declares a queue's functions: the one step with more rights than the caller's.
//!
//! C is not a trusted language, so only a superuser may declare its functions. The script is fixed,
//! each statement names its schema, and what may be replaced has been checked to be the caller's.

use super::schema::Schema;
use crate::pg::identity;
use crate::pg::spi::Rows;

const DECLARATIONS: &str = include_str!("../../sql/queue_functions.sql");

/// Whether functions of these names may be there already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    /// An object in the way is an error.
    Refuse,
    /// Replaced in place: they keep their OID, owner, privileges and comment.
    Replace,
}

/// The names of the functions, a blank between two.
pub(super) fn names() -> String {
    DECLARATIONS
        .lines()
        .filter_map(|line| line.strip_prefix("CREATE FUNCTION {q}.")?.split('(').next())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Declares the functions, makes new ones the caller's, and ties all to the extension, so that DROP
/// EXTENSION removes them and nothing else of the queue.
pub(super) fn declare(schema: &Schema, existing: Existing) {
    let caller = schema.query("SELECT quote_ident(current_user) WHERE $1 IS NOT NULL");
    let caller = caller.first().and_then(|row| row.text(1)).unwrap_or_default();
    let there: Vec<i64> = in_schema(schema).iter().filter_map(|row| row.int8(2)).collect();
    identity::as_superuser(|| {
        match existing {
            Existing::Refuse => schema.run_script(DECLARATIONS),
            Existing::Replace => {
                schema.run_script(&DECLARATIONS.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"));
            }
        }
        for function in in_schema(schema).iter().filter(|function| function.bool(3) == Some(true)) {
            let signature = function.text(1).unwrap_or_default();
            if !function.int8(2).is_some_and(|oid| there.contains(&oid)) {
                alter(schema, signature, &[b"OWNER TO ", caller].concat());
            }
            if function.bool(4) == Some(false) {
                alter(schema, signature, b"DEPENDS ON EXTENSION duroxide_queue");
            }
        }
    });
}

/// Unties functions from the extension, before they are replaced by others.
pub(super) fn untie(schema: &Schema) {
    identity::as_superuser(|| {
        for function in in_schema(schema).iter().filter(|function| function.bool(4) == Some(true)) {
            alter(schema, function.text(1).unwrap_or_default(), b"NO DEPENDS ON EXTENSION duroxide_queue");
        }
    });
}

fn alter(schema: &Schema, signature: &[u8], action: &[u8]) {
    schema.run_verbatim(&[b"ALTER FUNCTION ", signature, b" ", action].concat());
}

/// The schema's functions by the names of the contract: signature, OID, whether this library's, and
/// whether tied to the extension.
fn in_schema(schema: &Schema) -> Rows<'_> {
    schema.query_with(
        "SELECT p.oid::regprocedure::text, p.oid::bigint,
                coalesce(p.probin = '$libdir/duroxide_queue', false),
                EXISTS (SELECT FROM pg_depend d JOIN pg_extension x ON x.oid = d.refobjid
                        WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'x'
                          AND d.refclassid = 'pg_extension'::regclass AND x.extname = 'duroxide_queue')
         FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
         WHERE n.nspname = $1 AND p.proname = ANY (string_to_array($2, ' '))",
        &[names().as_bytes().into()],
    )
}
