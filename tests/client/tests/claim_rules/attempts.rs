//! A claim counts once it is one: attempts go up by one with each, are told as the highest among the
//! messages, and a claim that is taken back, or that had nothing to claim, leaves no trace.

use crate::dispatcher::{self, Turn, number};
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::Queue;
use sqlx::postgres::PgConnection;

/// Any moment will do: the caller's epoch is the only one.
const NOW_MS: i64 = 1_000_000_000_000;
const MINUTE_MS: i64 = 60_000;

async fn claimed(session: &mut PgConnection, now_ms: i64, lease_ms: i64) -> Turn {
    dispatcher::fetch(session, now_ms, lease_ms).await.expect("fetch").expect("an instance")
}

#[tokio::test]
async fn b4_attempts_are_counted_until_somebody_finishes() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    dispatcher::enqueue(&mut session, "i", "1").await.expect("enqueue");

    // Five dispatchers that crash: their leases run out.
    for attempt in 1..=5 {
        let turn = claimed(&mut session, NOW_MS + i64::from(attempt) * MINUTE_MS, 50).await;
        assert_eq!(turn.attempts, attempt);
    }
    let now_ms = NOW_MS + 10 * MINUTE_MS;
    let sixth = claimed(&mut session, now_ms, MINUTE_MS).await;
    assert_eq!(sixth.attempts, 6);
    dispatcher::abandon(&mut session, &sixth.token, now_ms).await.expect("abandon");

    // Claims that do not count take one off each, and never more than there is.
    for _ in 0..10 {
        let turn = claimed(&mut session, now_ms, MINUTE_MS).await;
        must(
            &mut session,
            &format!("SELECT abandon_orchestration_item('{}', {now_ms}, NULL, true)", turn.token),
        )
        .await;
    }
    assert_eq!(number(&mut session, "SELECT attempt_count FROM orchestrator_queue").await, 6);
    must(&mut session, "UPDATE orchestrator_queue SET attempt_count = 0; ").await;
    let turn = claimed(&mut session, now_ms, MINUTE_MS).await;
    must(&mut session, "UPDATE orchestrator_queue SET attempt_count = 0").await;
    must(&mut session, &format!("SELECT abandon_orchestration_item('{}', {now_ms}, NULL, true)", turn.token))
        .await;
    assert_eq!(number(&mut session, "SELECT attempt_count FROM orchestrator_queue").await, 0);

    // A message that joins has its own count; the highest is told.
    must(&mut session, "UPDATE orchestrator_queue SET attempt_count = 7").await;
    dispatcher::enqueue(&mut session, "i", "2").await.expect("enqueue");
    let turn = claimed(&mut session, now_ms, MINUTE_MS).await;
    assert_eq!((turn.messages.as_str(), turn.attempts), ("[1, 2]", 8));
    let counts = "SELECT sum(attempt_count) FROM orchestrator_queue";
    assert_eq!(number(&mut session, counts).await, 8 + 1);
    queue.remove().await;
}

#[tokio::test]
async fn b4_attempts_of_a_work_item_are_counted_in_the_same_way() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    must(&mut session, "SELECT enqueue_worker_work('1', 0)").await;
    for attempt in 1..=3 {
        let now_ms = NOW_MS + i64::from(attempt) * MINUTE_MS;
        let item = dispatcher::take(&mut session, now_ms, 50).await.expect("fetch").expect("the item");
        assert_eq!(item.attempts, attempt);
    }
    let now_ms = NOW_MS + 10 * MINUTE_MS;
    for ignored in [4, 4] {
        let item = dispatcher::take(&mut session, now_ms, MINUTE_MS).await.expect("fetch").expect("the item");
        assert_eq!(item.attempts, ignored);
        must(&mut session, &format!("SELECT abandon_work_item('{}', {now_ms}, NULL, true)", item.token))
            .await;
    }
    must(&mut session, "BEGIN").await;
    dispatcher::take(&mut session, now_ms, MINUTE_MS).await.expect("fetch").expect("the item");
    must(&mut session, "ROLLBACK").await;
    let trace = "SELECT count(*) FROM worker_queue WHERE attempt_count <> 3 OR lock_token IS NOT NULL";
    assert_eq!(number(&mut session, trace).await, 0);
    queue.remove().await;
}

#[tokio::test]
async fn b4_a_claim_that_is_none_leaves_no_trace() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let trace = "SELECT (SELECT count(*) FROM instance_locks) \
                        + (SELECT count(*) FROM orchestrator_queue WHERE attempt_count > 0 OR lock_token IS NOT NULL)";
    dispatcher::enqueue(&mut session, "i", "1").await.expect("enqueue");

    must(&mut session, "BEGIN").await;
    claimed(&mut session, NOW_MS, MINUTE_MS).await;
    must(&mut session, "ROLLBACK").await;
    assert_eq!(number(&mut session, trace).await, 0, "after a rollback");

    must(&mut session, "BEGIN; SAVEPOINT s").await;
    claimed(&mut session, NOW_MS, MINUTE_MS).await;
    must(&mut session, "ROLLBACK TO s").await;
    let again = claimed(&mut session, NOW_MS, MINUTE_MS).await;
    assert_eq!(again.attempts, 1, "after a rollback to a savepoint");
    must(&mut session, "ROLLBACK").await;

    // An instance that another dispatcher finishes between the look at the candidates and the key:
    // the key is free again, but there is nothing left to claim.
    let mut competitor = queue.connect().await;
    must(&mut competitor, "BEGIN; DELETE FROM orchestrator_queue").await;
    assert_eq!(dispatcher::fetch(&mut session, NOW_MS, MINUTE_MS).await.expect("fetch"), None);
    must(&mut competitor, "COMMIT").await;
    assert_eq!(dispatcher::fetch(&mut session, NOW_MS, MINUTE_MS).await.expect("fetch"), None);
    assert_eq!(number(&mut session, trace).await, 0, "without a message");
    assert_eq!(
        number(
            &mut session,
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        )
        .await,
        0
    );
    queue.remove().await;
}

/// A trigger of the owner's can keep messages from being claimed: then the instance is leased to nobody.
#[tokio::test]
async fn b4_a_claim_that_a_trigger_prevents_leaves_no_lease() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
         CREATE TRIGGER keep BEFORE UPDATE ON orchestrator_queue FOR EACH ROW EXECUTE FUNCTION keep(); \
         SELECT enqueue_orchestrator_work('i', '1', 'epoch')",
    )
    .await;
    assert!(must(&mut session, "SELECT * FROM fetch_orchestration_item(1000, 60000)").await.is_empty());
    assert_eq!(dispatcher::number(&mut session, "SELECT count(*) FROM instance_locks").await, 0);
    must(&mut session, "DROP TRIGGER keep ON orchestrator_queue; DROP FUNCTION keep").await;
    assert_eq!(must(&mut session, "SELECT * FROM fetch_orchestration_item(1000, 60000)").await.len(), 1);
    queue.remove().await;
}
