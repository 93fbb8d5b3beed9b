//! The calls whose own cost is measured.

use crate::bench::Bench;
use crate::calls::{self, FETCH, FETCH_WORK};
use crate::own_cost::Probe;
use crate::side::Side;
use async_trait::async_trait;
use duroxide_queue_tests::outcome::must;
use sqlx::Row;
use sqlx::postgres::PgConnection;

/// The row that stands in for a fetch's result. Not compressed, since the server does not keep its results so.
const INSTANCE_ECHO: &str = "SELECT * FROM pg_temp.echo WHERE least($1::bigint, $2::bigint, $3::bigint, $4::bigint) \
                             IS NOT NULL";
const WORK_ECHO: &str = "SELECT * FROM pg_temp.echo WHERE least($1::bigint, $2::bigint) IS NOT NULL";

/// `fetch_orchestration_item`; each claimed instance is acknowledged.
pub struct Fetch(Session);

/// `fetch_orchestration_item`; the claimed instance is given back, and what that leaves is vacuumed away.
pub struct FetchAgain(Session);

/// `fetch_work_item`; each claimed item is acknowledged.
pub struct FetchWork(Session);

/// A session, and whether its echo is there yet.
struct Session {
    connection: PgConnection,
    has_echo: bool,
}

impl Session {
    async fn open(bench: &Bench, side: Side) -> Session {
        Session { connection: bench.session(side).await, has_echo: false }
    }

    /// Keeps a result of the call as the echo, by making the call once more. Gives the token of what it claimed.
    async fn keep_echo(&mut self, call: &str, arguments: &[&str]) -> Option<String> {
        self.has_echo = true;
        let call = arguments
            .iter()
            .enumerate()
            .fold(call.to_owned(), |call, (n, argument)| call.replace(&format!("${}", n + 1), argument));
        let session = &mut self.connection;
        must(session, &format!("CREATE TEMP TABLE echo AS {call} LIMIT 0")).await;
        for column in ["out_history", "out_messages"] {
            let exists = format!(
                "SELECT FROM pg_attribute WHERE attrelid = 'echo'::regclass AND attname = '{column}'"
            );
            if !must(session, &exists).await.is_empty() {
                must(session, &format!("ALTER TABLE echo ALTER {column} SET STORAGE EXTERNAL")).await;
            }
        }
        must(session, &format!("INSERT INTO echo {call}")).await;
        sqlx::query("SELECT out_lock_token FROM echo")
            .fetch_optional(session)
            .await
            .expect("the echo")
            .map(|row| row.get(0))
    }
}

/// The arguments of [`FETCH`] as texts.
const ARGUMENTS: [&str; 4] =
    ["(extract(epoch FROM clock_timestamp()) * 1000)::bigint", "30000", "0", "1000032"];

#[async_trait(?Send)]
impl Probe for Fetch {
    async fn open(bench: &Bench, side: Side) -> Fetch {
        Fetch(Session::open(bench, side).await)
    }

    async fn call(&mut self) -> f64 {
        let answer = calls::fetch(&mut self.0.connection, FETCH).await;
        if answer.row.is_some() {
            calls::ack_nothing(&mut self.0.connection, &answer.token()).await;
        }
        answer.took
    }

    async fn round_trip(&mut self) -> f64 {
        if !self.0.has_echo
            && let Some(token) = self.0.keep_echo(FETCH, &ARGUMENTS).await
        {
            calls::ack_nothing(&mut self.0.connection, &token).await;
        }
        calls::fetch(&mut self.0.connection, INSTANCE_ECHO).await.took
    }
}

#[async_trait(?Send)]
impl Probe for FetchAgain {
    async fn open(bench: &Bench, side: Side) -> FetchAgain {
        FetchAgain(Session::open(bench, side).await)
    }

    async fn call(&mut self) -> f64 {
        let session = &mut self.0.connection;
        let answer = calls::fetch(session, FETCH).await;
        calls::abandon(session, &answer.token()).await;
        must(session, "VACUUM orchestrator_queue, instance_locks").await;
        answer.took
    }

    async fn round_trip(&mut self) -> f64 {
        if !self.0.has_echo {
            let token = self.0.keep_echo(FETCH, &ARGUMENTS).await.expect("a claim");
            calls::abandon(&mut self.0.connection, &token).await;
        }
        calls::fetch(&mut self.0.connection, INSTANCE_ECHO).await.took
    }
}

#[async_trait(?Send)]
impl Probe for FetchWork {
    async fn open(bench: &Bench, side: Side) -> FetchWork {
        FetchWork(Session::open(bench, side).await)
    }

    async fn call(&mut self) -> f64 {
        let answer = calls::fetch_work(&mut self.0.connection, FETCH_WORK).await;
        if answer.row.is_some() {
            calls::ack_work(&mut self.0.connection, &answer.token()).await;
        }
        answer.took
    }

    async fn round_trip(&mut self) -> f64 {
        if !self.0.has_echo
            && let Some(token) = self.0.keep_echo(FETCH_WORK, &ARGUMENTS[..2]).await
        {
            calls::ack_work(&mut self.0.connection, &token).await;
        }
        calls::fetch_work(&mut self.0.connection, WORK_ECHO).await.took
    }
}
