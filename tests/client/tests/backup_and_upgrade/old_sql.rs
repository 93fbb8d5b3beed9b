//! The SQL of an older version on the newest library, which is what a package upgrade leaves behind.

use super::{FIRST, QUEUES, live_queues, make_queues, update};
use duroxide_queue_tests::calls;
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::live_queue;
use duroxide_queue_tests::outcome::{must, must_fail};
use duroxide_queue_tests::programs::{Programs, must_run_silently};
use sqlx::postgres::PgConnection;
use std::path::Path;

#[tokio::test]
async fn c3_old_sql_works_on_the_new_library() {
    let (database, mut session) = live_queues(Some(FIRST)).await;
    // It has the library loaded and plans kept, before, during and after the update.
    let mut bystander = database.connect().await;
    all_works(&mut bystander, "before").await;
    make_queues(&database, &mut session).await;
    all_works(&mut session, "on the old version").await;
    make_queues(&database, &mut session).await;

    update(&mut session).await;

    for queue in QUEUES {
        live_queue::go_on(&mut bystander, queue).await;
    }
    all_works(&mut bystander, "in a session that has the library since before the update").await;
    make_queues(&database, &mut session).await;
    all_works(&mut session, "in the session of the update").await;
    make_queues(&database, &mut session).await;
    all_works(&mut database.connect().await, "in a new session").await;
    drop(bystander);
    drop(session);
    database.remove().await;
}

/// Not only the SQL of its functions but the whole queue as the old library has made it.
#[tokio::test]
async fn c3_a_queue_that_an_old_version_made_works_on_the_new_library() {
    for updated in [false, true] {
        let database = Database::make().await;
        let mut session = database.connect().await;
        must(&mut session, &format!("CREATE EXTENSION duroxide_queue VERSION '{FIRST}'")).await;
        let file = format!("{}/tests/backup_and_upgrade/queue_{FIRST}.sql", env!("CARGO_MANIFEST_DIR"));
        let programs = Programs::of(&mut session).await;
        must_run_silently(&mut programs.psql(&database, Path::new(&file)));
        if updated {
            update(&mut session).await;
        }

        live_queue::go_on(&mut session, "made").await;
        management(&mut session, "made").await;
        calls::call_each(&mut session, "made").await;
        must(&mut session, "SELECT duroxide_queue.create_queue('made')").await;
        drop(session);
        database.remove().await;
    }
}

/// The symbols of the install script and of a queue's functions. PostgreSQL looks for one when a function is declared.
#[tokio::test]
async fn c3_the_library_has_every_symbol_that_a_release_has_named() {
    let database = Database::make().await;
    let mut session = database.connect().await;
    let queue = include_str!("queue_0.1.0.sql");
    let mut symbols = symbols(queue, "'$libdir/duroxide_queue', '");
    assert_eq!(symbols.len(), 32, "the functions of a queue");
    for script in super::releases::install_scripts() {
        symbols.extend(self::symbols(&script, "'MODULE_PATHNAME', '"));
    }
    assert!(symbols.len() >= 32 + 8, "{symbols:?}");

    for symbol in &symbols {
        declare(&mut session, symbol).await;
    }
    let missing = must_fail(&mut session, &declaration("no_such_wrapper")).await;
    assert_eq!(missing.code, "42883", "a missing one is seen: {missing}");
    drop(session);
    database.remove().await;
}

async fn declare(session: &mut PgConnection, symbol: &str) {
    must(session, &declaration(symbol)).await;
}

fn declaration(symbol: &str) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION pg_temp.f() RETURNS void LANGUAGE c AS '$libdir/duroxide_queue', '{symbol}'"
    )
}

fn symbols(script: &str, before: &str) -> Vec<String> {
    script.split(before).skip(1).filter_map(|rest| rest.split('\'').next()).map(str::to_owned).collect()
}

/// Both queues and all of management; the queues are gone afterwards.
async fn all_works(session: &mut PgConnection, when: &str) {
    for queue in QUEUES {
        management(session, queue).await;
        calls::call_each(session, queue).await;
        let left =
            must(session, &format!("SELECT 1 FROM duroxide_queue.queues WHERE queue = '{queue}'")).await;
        assert!(left.is_empty(), "{when}: cleanup_schema has dropped {queue}");
    }
    for call in ["SELECT duroxide_queue.create_queue('other')", "SELECT duroxide_queue.drop_queue('other')"] {
        must(session, call).await;
    }
}

/// What can be called on a queue that stays.
async fn management(session: &mut PgConnection, queue: &str) {
    for call in [
        "grant_client('{q}', 'pg_monitor')",
        "revoke_client('{q}', 'pg_monitor')",
        "redrive('{q}', {bad})",
        "discard('{q}', {bad})",
    ] {
        let bad = format!(
            "INSERT INTO {queue}.dead_letters (message_id, instance_id, work_item, visible_at, created_at,
                                               attempt_count, buried_at, sqlstate, reason)
             VALUES (9223372036854775807, 'repaired', '1', 'epoch', 'epoch', 1, 'epoch', '22P02', 'a test')
             RETURNING id"
        );
        let id = must(session, &bad).await.concat().remove(0).expect("an id");
        must(session, &format!("SELECT duroxide_queue.{}", call.replace("{q}", queue).replace("{bad}", &id)))
            .await;
    }
    must(session, "SELECT * FROM duroxide_queue.queues").await;
    must(session, "SELECT * FROM duroxide_queue.list_queues()").await;
}
