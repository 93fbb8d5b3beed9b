//! A session that is opened again whenever it broke.
#![allow(dead_code, reason = "part of two programs, and each needs a part of it")]

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use std::time::Duration;

/// What became of a call.
#[derive(Debug)]
pub enum Answer<T> {
    /// It is done, and committed unless in an open transaction.
    Done(T),
    /// The server refused it; nothing is done.
    Refused { code: String, message: String },
    /// The session broke: it is done or not.
    Lost,
}

/// One session of a dispatcher.
#[derive(Debug)]
pub struct Session {
    options: PgConnectOptions,
    connection: Option<PgConnection>,
}

impl Session {
    /// One that is opened when it is first used.
    pub fn new(options: PgConnectOptions) -> Session {
        Session { options: options.disable_statement_logging(), connection: None }
    }

    /// The connection. Waits for a server that is away or starting.
    pub async fn connection(&mut self) -> &mut PgConnection {
        while self.connection.is_none() {
            match PgConnection::connect_with(&self.options).await {
                Ok(connection) => self.connection = Some(connection),
                Err(_) => tokio::time::sleep(Duration::from_millis(25)).await,
            }
        }
        self.connection.as_mut().expect("it has just been opened")
    }

    /// Closes the connection without a word, in the middle of whatever it does.
    pub fn cut(&mut self) {
        self.connection = None;
    }

    /// Tells what a result says, and lets a broken connection go.
    pub fn answer<T>(&mut self, result: sqlx::Result<T>) -> Answer<T> {
        match result {
            Ok(value) => Answer::Done(value),
            Err(sqlx::Error::Database(error)) if !ends_session(error.code().as_deref()) => Answer::Refused {
                code: error.code().unwrap_or_default().into_owned(),
                message: error.message().to_owned(),
            },
            Err(sqlx::Error::Database(_) | sqlx::Error::Io(_) | sqlx::Error::Protocol(_)) => {
                self.cut();
                Answer::Lost
            }
            Err(error) => panic!("not an answer of the server: {error}"),
        }
    }

    /// Begins a transaction. False if the session broke instead.
    pub async fn begin(&mut self) -> bool {
        self.begin_with("BEGIN").await
    }

    /// Begins a transaction in which nothing may wait for a lock.
    pub async fn begin_without_patience(&mut self) -> bool {
        self.begin_with("BEGIN; SET LOCAL lock_timeout = '1ms'").await
    }

    async fn begin_with(&mut self, sql: &str) -> bool {
        let result = sqlx::raw_sql(sql).execute(self.connection().await).await;
        matches!(self.answer(result), Answer::Done(_))
    }

    /// Ends a transaction in which everything went well.
    pub async fn commit(&mut self) -> Answer<()> {
        let Some(connection) = &mut self.connection else { return Answer::Lost };
        let result = sqlx::raw_sql("COMMIT").execute(connection).await;
        self.answer(result.map(drop))
    }

    /// Ends a transaction in which something was refused, unless it went with the session.
    pub async fn roll_back(&mut self) {
        if let Some(connection) = &mut self.connection {
            let result = sqlx::raw_sql("ROLLBACK").execute(connection).await;
            self.answer(result);
        }
    }
}

/// Terminated, crashed, starting: what comes before such an error may be committed.
fn ends_session(code: Option<&str>) -> bool {
    code.is_none_or(|code| code.starts_with("57P") || code.starts_with("08"))
}
