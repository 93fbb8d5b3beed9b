//! What the catalog holds of a schema, whole, so that two moments can be compared.

use sqlx::postgres::PgConnection;
use std::collections::BTreeSet;

/// Every row of the catalog that belongs to a schema, one a line: the schema itself, relations with
/// columns, defaults, constraints, indexes, triggers, rules and policies, types, functions with
/// their definitions, comments, privileges, and all dependencies from and to these. OIDs included,
/// statistics left out.
///
/// # Panics
///
/// If the catalog cannot be read.
pub async fn snapshot(session: &mut PgConnection, schema: &str) -> BTreeSet<String> {
    let lines: Vec<String> = sqlx::query_scalar(include_str!("catalog/snapshot.sql"))
        .bind(schema)
        .fetch_all(session)
        .await
        .expect("the catalog can be read");
    lines.into_iter().collect()
}

/// Everything that the catalog holds of the extension, one fact a line, by names: equal for two databases whose extension
/// is the same.
///
/// # Panics
///
/// If the catalog cannot be read.
pub async fn extension(session: &mut PgConnection) -> BTreeSet<String> {
    let lines: Vec<String> = sqlx::query_scalar(include_str!("catalog/extension.sql"))
        .fetch_all(session)
        .await
        .expect("the catalog can be read");
    lines.into_iter().collect()
}

/// Compares two snapshots.
///
/// # Panics
///
/// With what is only in one of them.
pub fn assert_same(what: &str, before: &BTreeSet<String>, after: &BTreeSet<String>) {
    let gone: Vec<_> = before.difference(after).collect();
    let new: Vec<_> = after.difference(before).collect();
    assert!(
        gone.is_empty() && new.is_empty(),
        "{what}: the catalog is not as before\nonly before: {gone:#?}\nonly after: {new:#?}"
    );
}
