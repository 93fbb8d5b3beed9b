//! Reported failures of an extension's life (group C of tests/README.md) that no other binary has:
//! creation by many at once, and in odd places.

#[path = "claim_rules/dispatcher.rs"]
mod dispatcher;
#[path = "plans_and_memory/every_function.rs"]
#[allow(dead_code, reason = "each test binary uses its part of these")]
mod every_function;

use dispatcher::{number, perform, sqlstate};
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::catalog::{self, snapshot};
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::{must, must_fail};
use duroxide_queue_tests::queue;
use every_function::{assert_same, reference};
use sqlx::postgres::PgConnection;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const AT_ONCE: usize = 6;
const PATIENCE: Duration = Duration::from_secs(60);

/// What sessions that begin at the same moment come to: an SQLSTATE each, "done" without an error.
async fn at_once(database: &Database, statement: &'static str) -> Vec<String> {
    let mut gate = database.connect().await;
    must(&mut gate, "SELECT pg_advisory_lock(1)").await;
    let mut sessions = Vec::new();
    for _ in 0..AT_ONCE {
        let mut session = database.connect().await;
        sessions.push(tokio::spawn(async move {
            perform(&mut session, "SELECT pg_advisory_lock_shared(1)").await.expect("the gate");
            match perform(&mut session, statement).await {
                Ok(()) => "done".to_owned(),
                Err(error) => sqlstate(&error).to_owned(),
            }
        }));
    }
    let at_the_gate = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let limit = Instant::now() + PATIENCE;
    while number(&mut gate, at_the_gate).await != AT_ONCE as i64 {
        assert!(Instant::now() < limit, "not all of the {AT_ONCE} sessions have come to the gate");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    must(&mut gate, "SELECT pg_advisory_unlock(1)").await;
    let mut outcomes = Vec::new();
    for session in sessions {
        outcomes.push(session.await.expect("a session ends well"));
    }
    outcomes.sort();
    outcomes
}

/// Everything that belongs to the extension's schema and to a queue's, but for what time and chance give.
async fn shape(session: &mut PgConnection, schemas: &[&str]) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for schema in schemas {
        lines.extend(snapshot(session, schema).await);
    }
    lines
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c6_six_sessions_create_extension_and_queue_at_once() {
    // What one session alone makes of it.
    let alone = Database::make().await;
    let mut session = alone.connect().await;
    must(&mut session, "CREATE EXTENSION duroxide_queue; SELECT duroxide_queue.create_queue('app')").await;
    let members = "SELECT count(*) FROM pg_depend WHERE refclassid = 'pg_extension'::regclass \
                   AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'duroxide_queue') AND deptype = 'e'";
    let expected_members = number(&mut session, members).await;
    let expected =
        (shape(&mut session, &["duroxide_queue"]).await.len(), shape(&mut session, &["app"]).await.len());

    for round in 0..3 {
        let database = Database::make().await;
        let created = at_once(&database, "CREATE EXTENSION IF NOT EXISTS duroxide_queue").await;
        // Who loses may be told so in PostgreSQL's own ways, and no other.
        println!("round {round}: CREATE EXTENSION {created:?}");
        assert!(created.contains(&"done".to_owned()), "{created:?}");
        for outcome in &created {
            assert!(["done", "23505", "42710", "42P06"].contains(&outcome.as_str()), "{created:?}");
        }
        let mut session = database.connect().await;
        must(&mut session, "CREATE EXTENSION IF NOT EXISTS duroxide_queue").await;
        assert_eq!(number(&mut session, members).await, expected_members, "one whole installation");

        let made = at_once(&database, "SELECT duroxide_queue.create_queue('app')").await;
        println!("round {round}: create_queue {made:?}");
        assert_eq!(made.iter().filter(|outcome| *outcome == "done").count(), 1, "{made:?}");
        for outcome in &made {
            assert!(["done", "42710", "42P06", "42P07", "23505"].contains(&outcome.as_str()), "{made:?}");
        }
        let error = must_fail(&mut session, "SELECT duroxide_queue.create_queue('app')").await;
        assert_eq!(error.code, "42710", "who tries again is told that it is there: {error}");
        let whole =
            (shape(&mut session, &["duroxide_queue"]).await.len(), shape(&mut session, &["app"]).await.len());
        assert_eq!(whole, expected, "one whole queue");
        let round_of_calls = reference(&mut session, "app").await;
        assert_same(&mut session, "app", &round_of_calls, "after all that").await;
        drop(session);
        database.remove().await;
    }
    alone.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c6_six_runtimes_open_a_queue_at_once() {
    let database = Database::make().await;
    let mut session = database.connect().await;
    must(&mut session, "CREATE EXTENSION duroxide_queue; SELECT duroxide_queue.create_queue('app')").await;
    let before = shape(&mut session, &["app"]).await;

    let mut pods = Vec::new();
    for number in 0..AT_ONCE {
        let url = database.url();
        let policy = if number % 2 == 0 { MigrationPolicy::ApplyAll } else { MigrationPolicy::VerifyOnly };
        pods.push(tokio::spawn(async move { queue::open(&url, "app", policy).await.pool().close().await }));
    }
    for pod in pods {
        pod.await.expect("each of them opens it");
    }

    catalog::assert_same("six clients", &before, &shape(&mut session, &["app"]).await);
    database.remove().await;
}

#[tokio::test]
async fn c6_queues_of_odd_names_work_under_any_search_path() {
    let database = Database::make().await;
    let mut session = database.connect().await;
    // Tables of the same names, in a schema that comes first.
    must(
        &mut session,
        "CREATE SCHEMA first; CREATE TABLE first.orchestrator_queue (id bigint); CREATE TABLE first.instance_locks (instance_id text); \
         CREATE TABLE first.worker_queue (id bigint); CREATE TABLE first.history (id bigint)",
    )
    .await;
    let odd = ["it's \"ours\"", "$1 %I %s", "日本", "{q}"];
    for (path, another) in
        ["''", "pg_catalog", "first, pg_temp, pg_catalog", "\"My Queue.1\""].into_iter().zip(odd)
    {
        must(&mut session, &format!("SET search_path = {path}")).await;
        must(&mut session, "CREATE EXTENSION duroxide_queue").await;
        for name in ["My Queue.1", another] {
            let literal = name.replace('\'', "''");
            must(&mut session, &format!("SELECT duroxide_queue.create_queue('{literal}')")).await;
            let quoted = name.replace('"', "\"\"");
            let expected = reference(&mut session, &quoted).await;
            assert_same(&mut session, &quoted, &expected, path).await;
            must(&mut session, &format!("SELECT duroxide_queue.drop_queue('{literal}')")).await;
        }
        let error = must_fail(&mut session, "ALTER EXTENSION duroxide_queue SET SCHEMA first").await;
        assert_eq!(error.code, "0A000", "{path}: {error}");
        must(&mut session, "DROP EXTENSION duroxide_queue").await;
    }
    let strays = "SELECT count(*) FROM pg_catalog.pg_class WHERE relnamespace = 'first'::pg_catalog.regnamespace AND relkind <> 'r'";
    must(&mut session, "RESET search_path").await;
    assert_eq!(number(&mut session, strays).await, 0);
    database.remove().await;
}
