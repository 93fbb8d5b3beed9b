//! D3: values beyond what jsonb or a text can hold fail alone, with an explanation, and release what
//! they held.

#[path = "claim_rules/dispatcher.rs"]
mod dispatcher;

use dispatcher::{number, text};
use duroxide_queue_tests::outcome::{must, must_fail, run};
use duroxide_queue_tests::queue::Queue;
use duroxide_queue_tests::server::now_ms;
use sqlx::postgres::PgConnection;

const LEASE_MS: i64 = 600_000;

/// An instance whose 260 events of 1 MB are more than one jsonb can hold, and a younger one.
const LARGE_HISTORY: &str = "
    INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at) VALUES ('big', 'O', 'epoch', 'epoch');
    INSERT INTO history SELECT 'big', 1, n, 'E', '\"' || repeat('x', 1048576) || '\"', 'epoch' FROM generate_series(1, 260) n;
    SELECT enqueue_orchestrator_work('big', '1', 'epoch'), enqueue_orchestrator_work('ok', '1', to_timestamp(1))";

/// Most of the time goes into compressing the values; lz4 takes a third of it where the server has it.
async fn compress_quickly(session: &mut PgConnection) {
    run(session, "SET default_toast_compression = lz4").await;
}

#[tokio::test]
async fn d3_a_history_beyond_jsonb_is_explained_counted_and_hides_nothing() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    compress_quickly(&mut session).await;
    must(&mut session, LARGE_HISTORY).await;
    let claim = |now_ms: i64| {
        format!(
            "SELECT concat_ws('|', out_instance_id, out_attempt_count, out_history->>'undeliverable', out_history->>'reason') \
             FROM fetch_orchestration_item({now_ms}, {LEASE_MS})"
        )
    };

    let first = text(&mut session, &claim(now_ms())).await;
    let second = text(&mut session, &claim(now_ms())).await;

    assert!(first.starts_with("big|1|history|"), "{first}");
    assert!(first.contains("268435455"), "the reason names the limit: {first}");
    assert_eq!(second, "ok|1");
    queue.remove().await;
}

#[tokio::test]
async fn d3_it_stops_every_fetch_on_the_reference() {
    let queue = Queue::reference().await;
    let mut session = queue.connect().await;
    compress_quickly(&mut session).await;
    must(&mut session, LARGE_HISTORY).await;

    let fetch = format!("SELECT * FROM fetch_orchestration_item({}, {LEASE_MS})", now_ms());
    let outcome = run(&mut session, &fetch).await;

    assert_eq!(outcome.code(), Some("54000"), "{outcome:?}");
    assert_eq!(number(&mut session, "SELECT sum(attempt_count) FROM orchestrator_queue").await, 0);
    queue.remove().await;
}

#[tokio::test]
async fn d3_a_large_work_item_comes_intact_and_its_completion_is_refused() {
    const BYTES: i64 = 300_000_000;
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    compress_quickly(&mut session).await;
    let json = format!("'\"' || repeat('x', {BYTES}) || '\"'");
    must(&mut session, &format!("SELECT enqueue_worker_work({json}, 0)")).await;
    let take = format!("SELECT octet_length(out_work_item) FROM fetch_work_item({}, {LEASE_MS})", now_ms());
    assert_eq!(number(&mut session, &take).await, BYTES + 2);
    let token = text(&mut session, "SELECT lock_token FROM worker_queue").await;

    let refused =
        must_fail(&mut session, &format!("SELECT ack_worker('{token}', 'i', {json}, {})", now_ms())).await;

    assert_eq!(refused.code, "54000", "{refused}");
    assert_eq!(number(&mut session, "SELECT count(*) FROM orchestrator_queue").await, 0);
    dispatcher::done(&mut session, &token, now_ms()).await.expect("the item is still its worker's");
    queue.remove().await;
}

#[tokio::test]
async fn d3_two_messages_of_600_mb_hide_nothing() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    compress_quickly(&mut session).await;
    must(
        &mut session,
        "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
           SELECT 'big', '\"' || repeat('x', 600000000) || '\"', 'epoch', 'epoch' FROM generate_series(1, 2); \
         SELECT enqueue_orchestrator_work('ok', '1', to_timestamp(1))",
    )
    .await;

    let mut turns = Vec::new();
    for _ in 0..3 {
        turns.extend(dispatcher::fetch(&mut session, now_ms(), LEASE_MS).await.expect("fetch"));
    }

    assert_eq!(turns.iter().map(|turn| turn.instance.as_str()).collect::<Vec<_>>(), ["ok"]);
    let letters = "SELECT string_agg(sqlstate || ' ' || octet_length(work_item), ', ') FROM dead_letters WHERE instance_id = 'big'";
    assert_eq!(text(&mut session, letters).await, "54000 600000002, 54000 600000002");
    queue.remove().await;
}
