//! What a statement came to, as a client sees it: rows in PostgreSQL's own text form, or an error.

use sqlx::postgres::{PgConnection, PgDatabaseError, PgRow};
use sqlx::{Row, ValueRef};
use std::fmt;
use std::time::{Duration, Instant};

/// The rows of a statement, or the error that it raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Each row with its columns; `None` is NULL.
    Rows(Vec<Vec<Option<String>>>),
    /// What the server said.
    Error(ServerError),
}

/// An error of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// The SQLSTATE.
    pub code: String,
    /// The message.
    pub message: String,
    /// The detail, if there is one.
    pub detail: Option<String>,
    /// The hint, if there is one.
    pub hint: Option<String>,
}

impl Outcome {
    /// The rows.
    ///
    /// # Panics
    ///
    /// If there was an error.
    pub fn rows(self) -> Vec<Vec<Option<String>>> {
        match self {
            Outcome::Rows(rows) => rows,
            Outcome::Error(error) => panic!("unexpected {error}"),
        }
    }

    /// The only column of the only row.
    ///
    /// # Panics
    ///
    /// If there is anything else.
    pub fn value(self) -> String {
        let mut rows = self.rows();
        assert_eq!((rows.len(), rows.first().map(Vec::len)), (1, Some(1)), "not one value: {rows:?}");
        rows.remove(0).remove(0).expect("a value, not NULL")
    }

    /// The SQLSTATE of the error, `None` without one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Outcome::Rows(_) => None,
            Outcome::Error(error) => Some(&error.code),
        }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}: {}", self.code, self.message)
    }
}

/// Runs one or more statements as a text, so that nothing is decoded on the way back.
///
/// # Panics
///
/// If the connection breaks: no statement may take its session down.
pub async fn run(session: &mut PgConnection, sql: &str) -> Outcome {
    match sqlx::raw_sql(sql).fetch_all(&mut *session).await {
        Ok(rows) => Outcome::Rows(rows.iter().map(texts).collect()),
        Err(sqlx::Error::Database(error)) => {
            let error = error.downcast_ref::<PgDatabaseError>();
            Outcome::Error(ServerError {
                code: error.code().to_owned(),
                message: error.message().to_owned(),
                detail: error.detail().map(str::to_owned),
                hint: error.hint().map(str::to_owned),
            })
        }
        Err(error) => panic!("{sql}: {error}"),
    }
}

/// Runs statements that must succeed and gives their rows.
///
/// # Panics
///
/// If the server refuses one.
pub async fn must(session: &mut PgConnection, sql: &str) -> Vec<Vec<Option<String>>> {
    match run(session, sql).await {
        Outcome::Rows(rows) => rows,
        Outcome::Error(error) => panic!("{sql}: {error}"),
    }
}

/// Runs a statement that must fail and gives its error.
///
/// # Panics
///
/// If it succeeds.
pub async fn must_fail(session: &mut PgConnection, sql: &str) -> ServerError {
    match run(session, sql).await {
        Outcome::Rows(rows) => panic!("{sql} succeeded: {rows:?}"),
        Outcome::Error(error) => error,
    }
}

/// Looks from another session, outside a transaction, until a backend waits for a lock.
///
/// # Panics
///
/// If it does not within a minute.
pub async fn until_it_waits(watcher: &mut PgConnection, pid: i64) {
    let waits =
        format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type = 'Lock'");
    let limit = Instant::now() + Duration::from_secs(60);
    while run(watcher, &waits).await.value() == "0" {
        assert!(Instant::now() < limit, "backend {pid} does not wait for a lock");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn texts(row: &PgRow) -> Vec<Option<String>> {
    (0..row.len())
        .map(|column| {
            let value = row.try_get_raw(column).expect("a column of this row");
            if value.is_null() {
                return None;
            }
            Some(value.as_str().expect("text in UTF-8").to_owned())
        })
        .collect()
}
