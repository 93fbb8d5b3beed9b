//! pg_upgrade from one version of PostgreSQL to a later one, with work under leases.

use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::live_queue;
use duroxide_queue_tests::outcome::{must, run};
use duroxide_queue_tests::own_server::Server;
use duroxide_queue_tests::{calls, catalog, queue};
use sqlx::postgres::PgConnection;

/// One queue of each kind.
const QUEUES: [&str; 2] = ["made", "adopted"];

/// The extension as old as can be: after the upgrade it is that still, on the new server's library.
const FIRST: &str = "0.1.0";

#[tokio::test]
async fn c5_pg_upgrade_keeps_leased_work() {
    let old = Server::start_of(&version("DUROXIDE_QUEUE_TEST_OLD_PG")).await;
    let new = Server::start_of(&version("DUROXIDE_QUEUE_TEST_PG")).await;
    let mut session = old.connect().await;
    must(&mut session, &format!("CREATE EXTENSION duroxide_queue VERSION '{FIRST}'")).await;
    must(&mut session, "SELECT duroxide_queue.create_queue('made')").await;
    open_with(&old, MigrationPolicy::ApplyAll, "adopted").await;
    must(&mut session, "SELECT duroxide_queue.adopt_queue('adopted')").await;
    let mut before = Vec::new();
    for queue in QUEUES {
        live_queue::fill(&mut session, queue).await;
        before.push(contents(&mut session, queue).await);
    }
    drop(session);
    old.stop().await;
    new.stop().await;

    let checked = new.upgrade_from(&old, &["--check"]).await;
    assert!(checked.contains("*Clusters are compatible*"), "{checked}");
    new.upgrade_from(&old, &[]).await;
    new.start_again().await;

    let mut session = new.connect().await;
    for (queue, before) in QUEUES.into_iter().zip(before) {
        assert_eq!(contents(&mut session, queue).await, before, "{queue}");
        live_queue::go_on(&mut session, queue).await;
        calls::call_each_but_the_last(&mut session, queue).await;
    }
    let version = "SELECT extversion FROM pg_extension WHERE extname = 'duroxide_queue'";
    assert_eq!(run(&mut session, version).await.value(), FIRST);

    must(&mut session, "ALTER EXTENSION duroxide_queue UPDATE").await;

    as_a_fresh_install(&new, &mut session).await;
    for queue in QUEUES {
        let seen = format!(
            "SELECT own_functions || ' ' || intact FROM duroxide_queue.queues WHERE queue = '{queue}'"
        );
        assert_eq!(run(&mut session, &seen).await.value(), "32 true", "{queue}");
        open_with(&new, MigrationPolicy::VerifyOnly, queue).await;
        calls::call_each(&mut new.connect().await, queue).await;
    }
    must(&mut session, "SELECT duroxide_queue.create_queue('made')").await;
}

/// Rows and sequences.
async fn contents(session: &mut PgConnection, queue: &str) -> impl PartialEq + std::fmt::Debug + use<> {
    (live_queue::rows(session, queue).await, live_queue::sequences(session, queue).await)
}

async fn as_a_fresh_install(server: &Server, updated: &mut PgConnection) {
    must(updated, "CREATE DATABASE fresh TEMPLATE template0").await;
    let mut fresh = duroxide_queue_tests::server::open(server.options().database("fresh")).await;
    must(&mut fresh, "CREATE EXTENSION duroxide_queue").await;
    let expected = catalog::extension(&mut fresh).await;
    let extension = catalog::extension(updated).await;
    catalog::assert_same("a fresh install, and pg_upgrade with an update", &expected, &extension);
}

async fn open_with(server: &Server, policy: MigrationPolicy, queue: &str) {
    queue::open(server.url(), queue, policy).await.pool().close().await;
}

fn version(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!(
            "{variable} is not set. pg_upgrade goes from the version of PostgreSQL in DUROXIDE_QUEUE_TEST_OLD_PG \
             to that in DUROXIDE_QUEUE_TEST_PG, for example from 16 to 17; both servers need the extension's \
             files. `make test KINDS=upgrade` sets them."
        )
    })
}
