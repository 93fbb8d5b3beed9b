//! The calls of a dispatcher and of a worker, by hand, so that a test sees each error code and
//! chooses each time. Sessions find the queue by their search_path.

#![allow(dead_code, reason = "each test binary uses its part of these")]

use duroxide_queue_tests::outcome::must;
use sqlx::postgres::{PgConnection, PgDatabaseError};

/// Error codes by their names in PostgreSQL's manual.
pub mod code {
    pub const RAISE_EXCEPTION: &str = "P0001";
    pub const READ_ONLY_SQL_TRANSACTION: &str = "25006";
    pub const QUERY_CANCELED: &str = "57014";
    pub const UNDEFINED_FUNCTION: &str = "42883";
}

/// The SQLSTATE of an error that the server raised.
pub fn sqlstate(error: &sqlx::Error) -> &str {
    match error {
        sqlx::Error::Database(error) => error.downcast_ref::<PgDatabaseError>().code(),
        other => panic!("{other}"),
    }
}

/// A claimed instance.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Turn {
    #[sqlx(rename = "out_instance_id")]
    pub instance: String,
    #[sqlx(rename = "out_messages")]
    pub messages: String,
    #[sqlx(rename = "out_lock_token")]
    pub token: String,
    #[sqlx(rename = "out_attempt_count")]
    pub attempts: i32,
}

/// A claimed work item.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct WorkItem {
    #[sqlx(rename = "out_work_item")]
    pub item: String,
    #[sqlx(rename = "out_lock_token")]
    pub token: String,
    #[sqlx(rename = "out_attempt_count")]
    pub attempts: i32,
}

pub async fn fetch(session: &mut PgConnection, now_ms: i64, lease_ms: i64) -> sqlx::Result<Option<Turn>> {
    sqlx::query_as(
        "SELECT out_instance_id, out_messages::text, out_lock_token, out_attempt_count \
         FROM fetch_orchestration_item($1, $2)",
    )
    .bind(now_ms)
    .bind(lease_ms)
    .fetch_optional(session)
    .await
}

pub async fn ack(session: &mut PgConnection, token: &str, now_ms: i64) -> sqlx::Result<()> {
    sqlx::query("SELECT ack_orchestration_item($1, $2, 1, '[]', '[]', '[]', '{}')")
        .bind(token)
        .bind(now_ms)
        .execute(session)
        .await
        .map(drop)
}

pub async fn renew(session: &mut PgConnection, token: &str, now_ms: i64) -> sqlx::Result<()> {
    sqlx::query("SELECT renew_orchestration_item_lock($1, $2, 60)")
        .bind(token)
        .bind(now_ms)
        .execute(session)
        .await
        .map(drop)
}

pub async fn abandon(session: &mut PgConnection, token: &str, now_ms: i64) -> sqlx::Result<()> {
    sqlx::query("SELECT abandon_orchestration_item($1, $2)")
        .bind(token)
        .bind(now_ms)
        .execute(session)
        .await
        .map(drop)
}

/// Enqueues a message that is visible since 1970.
pub async fn enqueue(session: &mut PgConnection, instance: &str, message: &str) -> sqlx::Result<()> {
    sqlx::query("SELECT enqueue_orchestrator_work($1, $2, 'epoch')")
        .bind(instance)
        .bind(message)
        .execute(session)
        .await
        .map(drop)
}

pub async fn delete(session: &mut PgConnection, instances: &[&str]) -> sqlx::Result<()> {
    sqlx::query("SELECT delete_instances_atomic($1, true)").bind(instances).execute(session).await.map(drop)
}

pub async fn take(session: &mut PgConnection, now_ms: i64, lease_ms: i64) -> sqlx::Result<Option<WorkItem>> {
    sqlx::query_as("SELECT * FROM fetch_work_item($1, $2)")
        .bind(now_ms)
        .bind(lease_ms)
        .fetch_optional(session)
        .await
}

pub async fn done(session: &mut PgConnection, token: &str, now_ms: i64) -> sqlx::Result<()> {
    sqlx::query("SELECT ack_worker($1, p_now_ms => $2)")
        .bind(token)
        .bind(now_ms)
        .execute(session)
        .await
        .map(drop)
}

/// Runs one statement. Unlike `must`, in a task of its own too.
pub async fn perform(session: &mut PgConnection, statement: &str) -> sqlx::Result<()> {
    sqlx::query(statement).execute(session).await.map(drop)
}

/// The one number that a query gives.
pub async fn number(session: &mut PgConnection, query: &str) -> i64 {
    text(session, query).await.parse().unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// The one text that a query gives; empty for NULL.
pub async fn text(session: &mut PgConnection, query: &str) -> String {
    let mut rows = must(session, query).await;
    assert_eq!((rows.len(), rows.first().map(Vec::len)), (1, Some(1)), "{query}: {rows:?}");
    rows.remove(0).remove(0).unwrap_or_default()
}
