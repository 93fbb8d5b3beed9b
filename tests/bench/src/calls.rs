//! Single calls as the client makes them: prepared once in a session, arguments bound, the result read to its end.

use duroxide_queue_tests::server;
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use std::time::Instant;

/// How long a claim holds.
const LEASE_MS: i64 = 30_000;
/// The versions of the runtime that a dispatcher says it can serve.
const VERSIONS: (i64, i64) = (0, 1_000_032);

/// A fetch, with the arguments of [`fetch`].
pub const FETCH: &str = "SELECT * FROM fetch_orchestration_item($1, $2, $3, $4)";
/// A worker's fetch, with the arguments of [`fetch_work`].
pub const FETCH_WORK: &str =
    "SELECT * FROM fetch_work_item($1, $2, NULL::text, NULL::bigint, '{}'::text[], 'default_only')";

/// What a call took, in milliseconds, and the row that it gave.
pub struct Answer {
    /// Milliseconds until the result was read.
    pub took: f64,
    /// The row, if there was one.
    pub row: Option<PgRow>,
}

impl Answer {
    /// The lock token of a claim.
    ///
    /// # Panics
    ///
    /// If nothing was claimed.
    pub fn token(&self) -> String {
        self.row.as_ref().expect("a claim").get("out_lock_token")
    }
}

/// Claims an instance, by [`FETCH`] or by a statement of the same arguments.
pub async fn fetch(session: &mut PgConnection, statement: &str) -> Answer {
    let begin = Instant::now();
    let row = sqlx::query(statement)
        .bind(server::now_ms())
        .bind(LEASE_MS)
        .bind(VERSIONS.0)
        .bind(VERSIONS.1)
        .fetch_optional(session)
        .await
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
    Answer { took: ms(begin), row }
}

/// Claims a work item, by [`FETCH_WORK`] or by a statement of the same arguments.
pub async fn fetch_work(session: &mut PgConnection, statement: &str) -> Answer {
    let begin = Instant::now();
    let row = sqlx::query(statement)
        .bind(server::now_ms())
        .bind(LEASE_MS)
        .fetch_optional(session)
        .await
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
    Answer { took: ms(begin), row }
}

/// Acknowledges a turn that came to nothing.
pub async fn ack_nothing(session: &mut PgConnection, token: &str) {
    sqlx::query("SELECT ack_orchestration_item($1, $2, 1, '[]', '[]', '[]', '{}', '[]')")
        .bind(token)
        .bind(server::now_ms())
        .execute(session)
        .await
        .unwrap_or_else(|error| panic!("ack_orchestration_item: {error}"));
}

/// Gives an instance back.
pub async fn abandon(session: &mut PgConnection, token: &str) {
    sqlx::query("SELECT abandon_orchestration_item($1, $2, NULL::bigint, true)")
        .bind(token)
        .bind(server::now_ms())
        .execute(session)
        .await
        .unwrap_or_else(|error| panic!("abandon_orchestration_item: {error}"));
}

/// Acknowledges a work item whose completion nobody waits for.
pub async fn ack_work(session: &mut PgConnection, token: &str) {
    sqlx::query("SELECT ack_worker($1, NULL, NULL, $2)")
        .bind(token)
        .bind(server::now_ms())
        .execute(session)
        .await
        .unwrap_or_else(|error| panic!("ack_worker: {error}"));
}

/// Milliseconds since then.
pub fn ms(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1000.0
}
