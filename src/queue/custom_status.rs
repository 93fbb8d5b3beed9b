//! The custom status that an orchestration shows to the outside.

use crate::db::{Db, Planning, Statement, types::*};
use crate::pg::values::{Text, TextBuf};

static SINCE: Statement = Statement {
    text: "
SELECT i.custom_status, i.custom_status_version::bigint
FROM {q}.instances i
WHERE i.instance_id = $1 AND i.custom_status_version > $2",
    parameters: &[TEXT, INT8],
    planning: Planning::ByIndex,
};

/// The status and its version, if it has changed since `last_seen_version`.
pub(crate) fn since(
    db: &Db,
    instance: Option<Text>,
    last_seen_version: Option<i64>,
) -> Option<(Option<TextBuf>, Option<i64>)> {
    let rows = db.query(&SINCE, &[instance.into(), last_seen_version.into()]);
    rows.first().map(|row| (row.text_buf(1), row.int8(2)))
}
