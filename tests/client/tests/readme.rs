//! What the README shows works as shown: the claim in psql, in Python and in Node.

use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::server;
use sqlx::Row;
use sqlx::postgres::PgConnection;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

const README: &str = include_str!("../../../README.md");

/// The `nth` block of the README that is fenced as `language`.
fn block(language: &str, nth: usize) -> &'static str {
    let fence = format!("\n```{language}\n");
    let body =
        README.split(&fence).nth(nth + 1).unwrap_or_else(|| panic!("README has no block {language} {nth}"));
    body.split("\n```").next().unwrap_or_default()
}

/// The block of the claim: the first statement enqueues, the second fetches.
fn claim_statements() -> (&'static str, String) {
    let (enqueue, fetch) =
        block("sql", 1).split_once("\\x on").expect("the README sets expanded output between the two");
    (enqueue, fetch.trim().trim_end_matches(';').to_owned())
}

/// The expanded record that follows the claim, by column.
fn shown_record() -> BTreeMap<String, String> {
    block("text", 0)
        .lines()
        .filter_map(|line| line.split_once(" | "))
        .map(|(column, value)| (column.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

async fn run(session: &mut PgConnection, statement: &str) {
    sqlx::raw_sql(statement).execute(session).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
}

/// A program with what it needs to talk to PostgreSQL, as `make test` sets it up.
fn from_environment(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .unwrap_or_else(|| panic!("{variable} is not set; `make test` sets it"))
}

fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[tokio::test]
async fn the_claim_is_as_shown_in_psql_python_and_node() {
    let database = Database::make().await;
    let mut session = database.connect().await;
    let url = server::url_of(database.name());
    run(&mut session, "CREATE EXTENSION duroxide_queue; SELECT duroxide_queue.create_queue('app')").await;

    // psql
    let (enqueue, fetch) = claim_statements();
    run(&mut session, enqueue).await;
    let columns = format!("SELECT c.key, c.value FROM ({fetch}) f, jsonb_each_text(to_jsonb(f)) c");
    let rows = sqlx::query(&columns).fetch_all(&mut session).await.expect("the README's claim runs");
    let mut claimed: BTreeMap<String, String> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let mut shown = shown_record();
    let token = claimed.remove("out_lock_token").expect("a claim has a token");
    let shown_token = shown.remove("out_lock_token").expect("the README shows the token");
    assert_eq!(claimed, shown);
    assert!(token.starts_with("lock_") && token.len() == shown_token.len(), "{token}");

    // Python, after the lease was given back
    run(&mut session, &format!("SELECT app.abandon_orchestration_item('{token}', 0)")).await;
    let python = output_of(
        Command::new(from_environment("DUROXIDE_QUEUE_TEST_PYTHON"))
            .args(["-c", block("python", 0)])
            .env("DATABASE_URL", &url),
    );
    assert_eq!(python.trim(), "claimed order-1: attempt 2, 1 message(s), 0 event(s)");

    // Node, on a second order; its modules are found beside the script
    run(&mut session, &enqueue.replace("order-1", "order-2")).await;
    let script = std::env::temp_dir().join(format!("{}.d", database.name()));
    std::fs::create_dir(&script).expect("a new folder");
    std::os::unix::fs::symlink(
        from_environment("DUROXIDE_QUEUE_TEST_NODE_MODULES"),
        script.join("node_modules"),
    )
    .expect("a new link");
    std::fs::write(script.join("claim.mjs"), block("js", 0)).expect("a new file");
    let node = output_of(Command::new("node").arg(script.join("claim.mjs")).env("DATABASE_URL", &url));
    std::fs::remove_dir_all(&script).expect("our own folder");
    assert_eq!(node.trim(), "claimed order-2: attempt 1, 1 message(s), 0 event(s)");

    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM app.orchestrator_queue")
        .fetch_one(&mut session)
        .await
        .expect("a count");
    let completed: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM app.executions WHERE status = 'Completed' AND output = 'done'",
    )
    .fetch_one(&mut session)
    .await
    .expect("a count");
    assert_eq!((left, completed), (0, 2), "both turns were acknowledged");
    drop(session);
    database.remove().await;
}
