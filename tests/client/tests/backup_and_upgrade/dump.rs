//! pg_dump and restore, in each form, of queues that came to be in each way.

use super::{FIRST, QUEUES, live_queues, update};
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::calls;
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::live_queue;
use duroxide_queue_tests::outcome::{must, must_fail, run};
use duroxide_queue_tests::programs::{Programs, must_run_silently};
use duroxide_queue_tests::queue;
use sqlx::postgres::PgConnection;
use std::path::{Path, PathBuf};

/// How to dump, and how to restore that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    Custom,
    SchemaOnly,
}

/// Takes away what `calls` leaves.
const TRUNCATE: &str = "TRUNCATE {q}.history, {q}.orchestrator_queue, {q}.instance_locks, {q}.worker_queue";

#[tokio::test]
async fn c1_dump_and_restore_keep_every_row() {
    let (database, session) = live_queues(None).await;
    every_form(database, session).await;
}

#[tokio::test]
async fn c1_dump_and_restore_keep_every_row_after_an_update() {
    let (database, mut session) = live_queues(Some(FIRST)).await;
    update(&mut session).await;
    every_form(database, session).await;
}

#[tokio::test]
async fn c1_dump_and_restore_keep_every_row_of_an_old_version() {
    let (database, session) = live_queues(Some(FIRST)).await;
    every_form(database, session).await;
}

/// A dump holds the queues, and nothing of the extension but its name: the restored one is the newest.
async fn every_form(mut database: Database, mut session: PgConnection) {
    let client = database.role("client").await;
    must(&mut session, &format!("SELECT duroxide_queue.grant_client('made', '{client}')")).await;
    let programs = Programs::of(&mut session).await;
    let script = sql_of(&dump(&programs, &database, Form::Plain));
    assert!(!script.contains("SCHEMA duroxide_queue"), "the extension's own objects stay out of a dump");

    for form in [Form::Plain, Form::Custom, Form::SchemaOnly] {
        let restored = Database::make().await;
        restore(&programs, &restored, form, &dump(&programs, &database, form));
        let mut copy = restored.connect().await;

        let newest = "SELECT extversion = default_version FROM pg_extension JOIN pg_available_extensions ON extname = name
                      WHERE extname = 'duroxide_queue'";
        assert_eq!(run(&mut copy, newest).await.value(), "t", "{form:?}");
        for queue in QUEUES {
            as_the_original(&mut session, &mut copy, queue, form).await;
        }
        if form != Form::SchemaOnly {
            let again = sql_of(&dump(&programs, &restored, Form::Plain));
            assert_eq!(again, script, "{form:?}: a dump of the restored database is the same text");
            goes_on(&mut copy).await;
        } else {
            goes_on_without_data(&mut copy, &restored).await;
        }
        restored.remove().await;
    }
    drop(session);
    database.remove().await;
}

async fn as_the_original(original: &mut PgConnection, copy: &mut PgConnection, queue: &str, form: Form) {
    let rows = live_queue::rows(copy, queue).await;
    let mut expected = live_queue::rows(original, queue).await;
    if form == Form::SchemaOnly {
        expected.values_mut().for_each(Vec::clear);
    } else {
        let sequences = live_queue::sequences(original, queue).await;
        assert_eq!(live_queue::sequences(copy, queue).await, sequences, "{queue}, {form:?}");
    }
    assert_eq!(rows, expected, "{queue}, {form:?}");

    let seen =
        format!("SELECT own_functions || ' ' || intact FROM duroxide_queue.queues WHERE queue = '{queue}'");
    assert_eq!(run(copy, &seen).await.value(), "32 true", "{queue}, {form:?}");
}

async fn goes_on(session: &mut PgConnection) {
    for queue in QUEUES {
        live_queue::go_on(session, queue).await;
    }
    must(session, "SELECT duroxide_queue.release_queue('adopted')").await;
    must(session, "SELECT duroxide_queue.adopt_queue('adopted')").await;
    for queue in QUEUES {
        calls::call_each(session, queue).await;
    }
}

/// The rows that say what a queue is are data too. Its functions do not need them; adopt_queue writes them again, for
/// the management functions and the client.
async fn goes_on_without_data(session: &mut PgConnection, database: &Database) {
    for queue in QUEUES {
        calls::call_each_but_the_last(session, queue).await;
        must(session, &TRUNCATE.replace("{q}", queue)).await;
        let unknown = must_fail(session, &format!("SELECT duroxide_queue.drop_queue('{queue}')")).await;
        assert_eq!(unknown.code, "42704", "{unknown}");

        must(session, &format!("SELECT duroxide_queue.adopt_queue('{queue}')")).await;
        let seen = format!(
            "SELECT concat_ws(' ', origin, layout, intact) FROM duroxide_queue.queues WHERE queue = '{queue}'"
        );
        assert_eq!(run(session, &seen).await.value(), "created 1 t", "{queue}");
        live_queue::fill(session, queue).await;
        live_queue::go_on(session, queue).await;
        for policy in [MigrationPolicy::VerifyOnly, MigrationPolicy::ApplyAll] {
            queue::open(&database.url(), queue, policy).await.pool().close().await;
        }
        must(session, &format!("SELECT duroxide_queue.drop_queue('{queue}')")).await;
    }
}

fn dump(programs: &Programs, database: &Database, form: Form) -> PathBuf {
    let file = std::env::temp_dir().join(format!("dq_{}_{form:?}.dump", database.name()));
    let mut dump = programs.on(database, "pg_dump");
    dump.arg("--file").arg(&file);
    match form {
        Form::Plain => {}
        Form::Custom => _ = dump.arg("--format=custom"),
        Form::SchemaOnly => _ = dump.arg("--schema-only"),
    }
    must_run_silently(&mut dump);
    file
}

fn restore(programs: &Programs, database: &Database, form: Form, file: &Path) {
    let mut restore = if form == Form::Custom {
        let mut restore = programs.on(database, "pg_restore");
        restore.arg("--exit-on-error").arg(file);
        restore
    } else {
        programs.psql(database, file)
    };
    must_run_silently(&mut restore);
    std::fs::remove_file(file).expect("pg_dump has written it");
}

/// The script, which is removed, without its keys: a plain dump begins and ends with a word of its own against psql's commands in data.
fn sql_of(file: &Path) -> String {
    let script = std::fs::read_to_string(file).expect("pg_dump has written it");
    std::fs::remove_file(file).expect("it was there");
    script.lines().filter(|line| !line.contains("restrict ")).collect::<Vec<_>>().join("\n")
}
