//! Declares a queue's functions: the one step with more rights than the caller's.
//!
//! C is not a trusted language, so only a superuser may declare its functions. The script is fixed,
//! each statement names its schema, and what may be replaced has been checked to be the caller's.

use super::schema::Schema;
use crate::pg::identity;
use crate::pg::spi::Rows;
use pgrx::pg_sys;

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
    contract().map(|function| function.name).collect::<Vec<_>>().join(" ")
}

/// One function of the contract; arguments and result as pg_get_function_arguments and
/// pg_get_function_result print them, without blanks.
pub(super) struct Contract {
    pub(super) name: &'static str,
    pub(super) arguments: String,
    pub(super) result: String,
}

/// The contract, read off the declarations.
pub(super) fn contract() -> impl Iterator<Item = Contract> {
    let dense = |text: &str| text.split_whitespace().collect::<String>();
    DECLARATIONS.split("CREATE FUNCTION {q}.").skip(1).filter_map(move |declaration| {
        let (head, rest) = declaration.split_once("\nRETURNS ")?;
        let (name, arguments) = head.split_once('(')?;
        let (result, _) = rest.split_once("\nLANGUAGE ")?;
        let arguments = dense(arguments.trim_end().strip_suffix(')')?);
        Some(Contract { name, arguments, result: dense(result) })
    })
}

/// Declares the functions, makes new ones `owner`'s, and ties all to the extension, so that DROP
/// EXTENSION removes them and nothing else of the queue.
pub(super) fn declare(schema: &Schema, existing: Existing, owner: pg_sys::Oid) {
    let owner = i64::from(owner.to_u32());
    let owner = schema
        .query_with("SELECT quote_ident(pg_get_userbyid($2::oid)) WHERE $1 IS NOT NULL", &[owner.into()]);
    let owner = owner.first().and_then(|row| row.text(1)).unwrap_or_default();
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
                alter(schema, signature, &[b"OWNER TO ", owner].concat());
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

#[cfg(test)]
mod tests {
    #[test]
    fn the_contract_has_32_functions() {
        let contract: Vec<_> = super::contract().collect();

        assert_eq!(contract.len(), 32);
        let last = contract.last().expect("32 functions");
        assert_eq!(last.name, "renew_work_item_lock");
        assert_eq!(last.arguments, "p_lock_tokentext,p_now_msbigint,p_extend_secsbigint");
        assert_eq!(last.result, "void");
    }
}
