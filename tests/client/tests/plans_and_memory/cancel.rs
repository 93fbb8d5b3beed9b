//! A long call can be cancelled: it ends within a second, as 57014, and nothing has changed.

use crate::dispatcher::{code, number};
use duroxide_queue_tests::outcome::{must, run};
use duroxide_queue_tests::queue::Queue;
use sqlx::postgres::PgConnection;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_millis(200);
/// How long after its timeout a call may go on, unless the machine is so busy that the whole call
/// takes many times as long.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many times a call is cancelled that goes on for longer.
const TRIES: usize = 5;

/// Runs a call to its end, to know how long it takes, and takes it back.
async fn duration(session: &mut PgConnection, call: &str) -> Duration {
    must(session, "BEGIN").await;
    let start = Instant::now();
    must(session, call).await;
    let whole = start.elapsed();
    must(session, "ROLLBACK").await;
    whole
}

/// Cancels a call early, in the middle, and near its end.
async fn assert_cancellable(session: &mut PgConnection, call: &str, trace: &str) {
    let before = number(session, trace).await;
    // The first run is slower than the next, which have the rows in memory.
    let whole = duration(session, call).await.min(duration(session, call).await);
    let early = TIMEOUT.min(whole / 4);
    assert!(early > Duration::from_millis(10), "over after {whole:?}: it needs more to do");

    // A timeout runs by the server's clock, from when it has the statement.
    let timed = format!(
        "WITH called AS MATERIALIZED ({call}) \
         SELECT (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000)::bigint FROM called"
    );
    let patience = PATIENCE.max(whole / 4);
    for timeout in [early, whole / 2, whole * 4 / 5] {
        // A machine that stands still for a while does so once; a call that does not listen never listens.
        let mut late = Vec::new();
        while late.len() < TRIES {
            must(session, &format!("BEGIN; SET LOCAL statement_timeout = {}", timeout.as_millis())).await;
            let start = Instant::now();
            let outcome = run(session, &timed).await;
            let took = start.elapsed();
            roll_back(session).await;
            println!("of {whole:?}, cancelled at {timeout:?}: over after {took:?}");
            if outcome.code() != Some(code::QUERY_CANCELED) {
                // Late in the call, another run may be faster than the first.
                let served = Duration::from_micros(outcome.clone().value().parse().expect("microseconds"));
                assert!(
                    timeout > early && served < timeout,
                    "at {timeout:?}, over after {took:?}: {outcome:?}"
                );
            }
            assert_eq!(number(session, trace).await, before, "the cancelled call has left something");
            if took < timeout + patience {
                break;
            }
            late.push(took);
        }
        assert!(late.len() < TRIES, "{call}: cancelled at {timeout:?}, over only after {late:?}");
    }
}

/// Ends a transaction whose statement may have ended as its time did: then the cancel is for what comes next.
async fn roll_back(session: &mut PgConnection) {
    if run(session, "ROLLBACK").await.code() == Some(code::QUERY_CANCELED) {
        must(session, "ROLLBACK").await;
    }
}

const TRACE: &str = "SELECT (SELECT count(*) FROM history) + (SELECT sum(attempt_count) FROM orchestrator_queue) \
                     + (SELECT count(*) FROM orchestrator_queue WHERE lock_token IS NULL) + (SELECT count(*) FROM instance_locks)";

#[tokio::test]
async fn g5_a_fetch_of_many_large_messages_can_be_cancelled() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
         SELECT 'big', (SELECT json_agg(n || ' some text')::text FROM generate_series(1, 1000) n), 'epoch', 'epoch' FROM generate_series(1, 6000)",
    )
    .await;
    let fetch = "SELECT out_instance_id, out_attempt_count FROM fetch_orchestration_item(1000, 60000)";
    assert_cancellable(&mut session, fetch, TRACE).await;
    queue.remove().await;
}

#[tokio::test]
async fn g5_a_fetch_of_a_long_history_can_be_cancelled() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        "SELECT enqueue_orchestrator_work('long', '1', 'epoch'); \
         INSERT INTO history SELECT 'long', 1, n, 'E', (SELECT json_agg(n || ' some text')::text FROM generate_series(1, 500) n), 'epoch' FROM generate_series(1, 10000) n",
    )
    .await;
    let fetch = "SELECT out_instance_id, out_attempt_count FROM fetch_orchestration_item(1000, 60000)";
    assert_cancellable(&mut session, fetch, TRACE).await;
    queue.remove().await;
}

/// PostgreSQL's parser would be at work on this one text for seconds, and not look for a cancel.
#[tokio::test]
async fn a_fetch_of_one_large_event_can_be_cancelled() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        r#"SELECT enqueue_orchestrator_work('long', '1', 'epoch');
           INSERT INTO history SELECT 'long', 1, 1, 'E',
             '[' || repeat('{"event_id": 12345, "text": "' || repeat('some text ', 10) || '"},', 400000) || 'null]', 'epoch'"#,
    )
    .await;
    let fetch = "SELECT out_instance_id, out_attempt_count FROM fetch_orchestration_item(1000, 60000)";
    assert_cancellable(&mut session, fetch, TRACE).await;
    queue.remove().await;
}

#[tokio::test]
async fn g5_an_acknowledgement_with_ten_thousand_events_can_be_cancelled() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        "CREATE TABLE delta AS SELECT jsonb_agg(jsonb_build_object('event_id', n, 'event_type', 'E', 'event_data', to_json(repeat('0123456789', 1000))::text)) AS events \
         FROM generate_series(1, 10000) n; \
         SELECT enqueue_orchestrator_work('long', '1', 'epoch'); SELECT out_instance_id FROM fetch_orchestration_item(1000, 600000)",
    )
    .await;
    let ack = "SELECT ack_orchestration_item((SELECT lock_token FROM instance_locks), 1000, 1, (SELECT events FROM delta), '[]', '[]', '{}')";
    assert_cancellable(&mut session, ack, "SELECT (SELECT count(*) FROM history) + (SELECT count(*) FROM orchestrator_queue) + (SELECT count(*) FROM instance_locks)").await;
    must(&mut session, ack).await;
    assert_eq!(number(&mut session, "SELECT count(*) FROM history").await, 10_000);
    must(&mut session, "DROP TABLE delta").await;
    queue.remove().await;
}

#[tokio::test]
async fn g5_a_call_that_waits_for_a_key_can_be_cancelled() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let mut holder = queue.connect().await;
    must(&mut session, "SELECT enqueue_orchestrator_work('i', '1', 'epoch'); SELECT out_instance_id FROM fetch_orchestration_item(1000, 600000)").await;
    must(&mut holder, &format!("BEGIN; SELECT pg_advisory_xact_lock(hashtext('{}.i'))", queue.schema()))
        .await;
    must(&mut session, "SET statement_timeout = 200").await;
    for call in [
        "SELECT ack_orchestration_item((SELECT lock_token FROM instance_locks), 1000, 1, '[]', '[]', '[]', '{}')",
        "SELECT renew_orchestration_item_lock((SELECT lock_token FROM instance_locks), 1000, 60)",
        "SELECT abandon_orchestration_item((SELECT lock_token FROM instance_locks), 1000)",
        "SELECT delete_instances_atomic(ARRAY['i'], true)",
    ] {
        let mut late = Vec::new();
        while late.len() < TRIES {
            let start = Instant::now();
            let outcome = run(&mut session, call).await;
            let took = start.elapsed();
            assert_eq!(outcome.code(), Some(code::QUERY_CANCELED), "{call}: {outcome:?}");
            if took < TIMEOUT + PATIENCE {
                break;
            }
            late.push(took);
        }
        assert!(late.len() < TRIES, "{call}: cancelled only after {late:?}");
    }
    must(&mut session, "SET statement_timeout = 0").await;
    must(&mut holder, "COMMIT").await;
    let kept = "SELECT count(*) FROM instance_locks JOIN orchestrator_queue USING (instance_id, lock_token)";
    assert_eq!(number(&mut session, kept).await, 1, "the lease is as it was");
    let keys = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()";
    assert_eq!(number(&mut session, keys).await, 0);
    queue.remove().await;
}
