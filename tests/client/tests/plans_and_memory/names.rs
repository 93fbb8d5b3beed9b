//! A schema that loses its name while a session knows it: no call reads or writes another queue that
//! has the name by then.

use crate::dispatcher::{code, number};
use crate::plans::{claimed, database_with, enqueue};
use duroxide_queue_tests::outcome::{must, must_fail, run, until_it_waits};

#[tokio::test]
async fn c2_a_look_at_the_names_that_fails_is_repeated() {
    let (database, mut session) = database_with(&["a", "b"]).await;
    let mut other = database.connect().await;
    enqueue(&mut session, "a", "of the first").await;
    assert_eq!(claimed(&mut session, "a").await, "of the first");
    assert_eq!(claimed(&mut session, "b").await, "none");
    must(&mut other, "ALTER SCHEMA a RENAME TO old; SELECT duroxide_queue.create_queue('a')").await;
    enqueue(&mut other, "a", "of the second").await;

    must(&mut other, "BEGIN; LOCK TABLE pg_catalog.pg_namespace IN ACCESS EXCLUSIVE MODE").await;
    must(&mut session, "SET lock_timeout = '50ms'").await;
    let error = must_fail(&mut session, "SELECT b.latest_execution_id('x')").await;
    assert_eq!(error.code, "55P03", "{error}");
    must(&mut other, "ROLLBACK").await;
    must(&mut session, "SET lock_timeout = 0").await;

    assert_eq!(claimed(&mut session, "old").await, "of the first");
    assert_eq!(claimed(&mut session, "a").await, "of the second");
    database.remove().await;
}

#[tokio::test]
async fn c2_a_turn_does_not_go_to_two_queues_when_its_own_is_renamed_meanwhile() {
    let (database, mut session) = database_with(&["a"]).await;
    let mut holder = database.connect().await;
    let mut other = database.connect().await;
    let ack = |schema: &str, token: &str, event: u32| {
        format!(
            r#"SELECT {schema}.ack_orchestration_item('{token}', 1000000, 1, '[{{"event_id": {event}, "event_type": "E", "event_data": "{{}}"}}]',
                 '[]', '[]', '{{"orchestration_name": "O", "orchestration_version": "1", "status": "Running"}}')"#
        )
    };
    let fetch = |schema: &str| {
        format!("SELECT out_lock_token FROM {schema}.fetch_orchestration_item(1000000, 600000)")
    };
    enqueue(&mut session, "a", "i").await;
    let token = run(&mut session, &fetch("a")).await.value();
    must(&mut session, &ack("a", &token, 1)).await;
    enqueue(&mut session, "a", "i").await;
    let token = run(&mut session, &fetch("a")).await.value();

    must(&mut holder, "BEGIN; UPDATE a.instances SET updated_at = updated_at WHERE instance_id = 'i'").await;
    let pid = number(&mut session, "SELECT pg_backend_pid()").await;
    let text = ack("a", &token, 2);
    let rename_meanwhile = async {
        until_it_waits(&mut other, pid).await;
        must(&mut other, "ALTER SCHEMA a RENAME TO old; SELECT duroxide_queue.create_queue('a')").await;
        must(&mut holder, "COMMIT").await;
    };
    let (outcome, ()) = tokio::join!(run(&mut session, &text), rename_meanwhile);

    assert_eq!(outcome.code(), Some("40001"), "{outcome:?}");
    let rows = |schema: &str| {
        format!(
            "SELECT (SELECT count(*) FROM {schema}.history) || ' events, ' || (SELECT count(*) FROM {schema}.instance_locks) || ' leases'"
        )
    };
    assert_eq!(run(&mut other, &rows("old")).await.value(), "1 events, 1 leases");
    assert_eq!(run(&mut other, &rows("a")).await.value(), "0 events, 0 leases");
    must(&mut session, &ack("old", &token, 2)).await;
    assert_eq!(run(&mut other, &rows("old")).await.value(), "2 events, 0 leases");
    database.remove().await;
}

#[tokio::test]
async fn c2_a_function_that_goes_while_a_query_calls_it_is_missed_by_name() {
    let (database, mut session) = database_with(&["a"]).await;
    let error = must_fail(&mut session, "SELECT a.cleanup_schema() FROM generate_series(1, 2)").await;
    assert_eq!(error.code, code::UNDEFINED_FUNCTION, "{error}");
    must(&mut session, "SELECT a.get_queue_depths(1)").await;
    database.remove().await;
}
