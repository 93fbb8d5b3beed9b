//! Ten thousand calls of each kind leave a session's memory where it was.

use crate::dispatcher::number;
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::{must, run};

use sqlx::postgres::PgConnection;

const CALLS: usize = 10_000;
/// Calls before memory is looked at first: catalogs and plans come to be cached.
const WARM_UP: usize = 500;
/// Transactions that go to the server as one text.
const BATCH: usize = 100;
const MAX_GROWTH: i64 = 1 << 20;

/// PostgreSQL's memory contexts, and what the process has of its own; shared buffers, which grow
/// into the process as it touches them, are in neither.
async fn memory(session: &mut PgConnection) -> [(&'static str, i64); 2] {
    let contexts = "SELECT sum(total_bytes) FROM pg_backend_memory_contexts";
    let process =
        "SELECT (regexp_match(pg_read_file('/proc/self/status'), 'RssAnon:\\s+(\\d+)'))[1]::bigint * 1024";
    [("memory contexts", number(session, contexts).await), ("process", number(session, process).await)]
}

/// A queue in a database of its own, so that no DDL of other tests makes caches anew.
async fn queue_alone() -> (Database, PgConnection) {
    let database = Database::make().await;
    let mut session = database.connect().await;
    must(
        &mut session,
        "CREATE EXTENSION duroxide_queue; SELECT duroxide_queue.create_queue('q'); SET search_path = q",
    )
    .await;
    (database, session)
}

/// Runs a call, a transaction of its own, `count` times.
async fn repeat(session: &mut PgConnection, call: &str, count: usize) {
    let batch = format!("BEGIN; {call}; COMMIT; ").repeat(BATCH);
    for _ in 0..count / BATCH {
        must(session, &batch).await;
    }
}

async fn assert_no_growth(session: &mut PgConnection, kind: &str, before: [(&'static str, i64); 2]) {
    let after = memory(session).await;
    for ((what, before), (_, after)) in before.into_iter().zip(after) {
        println!("{kind}: {what} from {before} to {after}");
        assert!(after - before < MAX_GROWTH, "{kind}: {what} grew from {before} to {after} in {CALLS} calls");
    }
}

#[tokio::test]
async fn e5_ten_thousand_calls_of_each_kind_leave_memory_where_it_was() {
    let (database, mut session) = queue_alone().await;
    for (kind, call) in [
        (
            "empty poll",
            "SELECT * FROM fetch_orchestration_item(1000, 60000); SELECT * FROM fetch_work_item(1000, 60000)",
        ),
        (
            "turn",
            r#"SELECT enqueue_orchestrator_work('i', '{"n": 1}', 'epoch'); SELECT * FROM fetch_orchestration_item(1000, 60000);
               SELECT ack_orchestration_item((SELECT lock_token FROM instance_locks WHERE instance_id = 'i'), 1000, 1, '[]', '[]', '[]',
                 '{"orchestration_name": "O", "orchestration_version": "1", "kv_mutations": [{"action": "set", "key": "k", "value": "v"}]}')"#,
        ),
        (
            "work item",
            "SELECT enqueue_worker_work('1', 0, p_session_id => 's'); \
             SELECT ack_worker(out_lock_token, p_now_ms => 1000) FROM fetch_work_item(1000, 60000, 'w')",
        ),
        (
            "caught error",
            "DO 'BEGIN PERFORM ack_worker(''nobody''); EXCEPTION WHEN raise_exception THEN END'; \
             DO 'BEGIN PERFORM enqueue_orchestrator_work(''i'', ''not json'', now()); EXCEPTION WHEN invalid_text_representation THEN END'",
        ),
    ] {
        repeat(&mut session, call, WARM_UP).await;
        let before = memory(&mut session).await;
        repeat(&mut session, call, CALLS).await;
        assert_no_growth(&mut session, kind, before).await;
    }
    drop(session);
    database.remove().await;
}

#[tokio::test]
async fn e5_ten_thousand_failing_acknowledgements_leave_memory_where_it_was() {
    let (database, mut session) = queue_alone().await;
    must(
        &mut session,
        "INSERT INTO instance_locks VALUES ('i', 'held', 9000000, 0); INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at, lock_token) \
         VALUES ('i', '1', 'epoch', 'epoch', 'held')",
    )
    .await;
    // Fails at the start, and in the middle of a turn: the second event is not JSON.
    let calls = [
        "SELECT ack_orchestration_item('nobody', 1000, 1, '[]', '[]', '[]', '{}')",
        r#"SELECT ack_orchestration_item('held', 1000, 1, '[{"event_id": 1, "event_type": "E", "event_data": "1"},
             {"event_id": 2, "event_type": "E", "event_data": "nope"}]', '["w"]', '["m"]', '{}')"#,
    ];
    let mut before = [("", 0); 2];
    for number in 0..WARM_UP + CALLS {
        if number == WARM_UP {
            before = memory(&mut session).await;
        }
        assert!(run(&mut session, calls[number % 2]).await.code().is_some());
    }
    assert_no_growth(&mut session, "failing ack", before).await;
    drop(session);
    database.remove().await;
}
