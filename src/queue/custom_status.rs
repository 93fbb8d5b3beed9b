//! The custom status that an orchestration shows to the outside.

use crate::db::{Db, Planning, Statement, types::*};
use crate::pg::result_set::ResultSet;
use crate::pg::values::Text;

static SINCE: Statement = Statement {
    text: "
SELECT i.custom_status, i.custom_status_version::bigint
FROM {q}.instances i
WHERE i.instance_id = $1 AND i.custom_status_version > $2",
    parameters: &[TEXT, INT8],
    planning: Planning::ByIndex,
};

/// The status and its version, if it has changed since `last_seen_version`.
pub(crate) fn since(db: &Db, result: &ResultSet, instance: Option<Text>, last_seen_version: Option<i64>) {
    db.query_into(result, &SINCE, &[instance.into(), last_seen_version.into()]);
}
