//! A4: a call sees what has been committed, and what its own transaction has written, by the time it
//! runs; and it may be the first thing that a session does.

use crate::dispatcher;
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::{Kind, Queue};
use duroxide_queue_tests::server::now_ms;

const LEASE_MS: i64 = 30_000;

#[tokio::test]
async fn a4_the_first_statement_of_a_session_may_be_a_fetch() {
    for kind in Kind::OURS {
        let queue = Queue::make(kind).await;
        must(
            &mut queue.connect().await,
            "SELECT enqueue_orchestrator_work('i', '1', 'epoch'), enqueue_worker_work('1', 0)",
        )
        .await;

        let turn = dispatcher::fetch(&mut queue.connect().await, now_ms(), LEASE_MS).await.expect("fetch");
        let item = dispatcher::take(&mut queue.connect().await, now_ms(), LEASE_MS).await.expect("fetch");

        assert_eq!(turn.map(|turn| turn.instance).as_deref(), Some("i"), "{kind:?}");
        assert_eq!(item.map(|item| item.item).as_deref(), Some("1"), "{kind:?}");
        queue.remove().await;
    }
}

#[tokio::test]
async fn a4_a_transaction_sees_what_it_has_written_itself() {
    for isolation in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let queue = Queue::created().await;
        let mut session = queue.connect().await;
        let now_ms = now_ms();
        must(&mut session, &format!("BEGIN ISOLATION LEVEL {isolation}")).await;

        for turns in 1..=3 {
            dispatcher::enqueue(&mut session, "i", &turns.to_string()).await.expect("enqueue");
            let turn = dispatcher::fetch(&mut session, now_ms, LEASE_MS).await.expect("fetch");
            let turn = turn.unwrap_or_else(|| panic!("{isolation}: turn {turns} is not seen"));
            assert_eq!(turn.messages, format!("[{turns}]"), "{isolation}");
            must(
                &mut session,
                &format!(
                    "SELECT ack_orchestration_item('{}', {now_ms}, 1, '[{{\"event_id\": {turns}, \"event_type\": \"E\", \"event_data\": \"{turns}\"}}]', \
                     '[]', '[]', '{{\"orchestration_name\": \"O\", \"orchestration_version\": \"1\"}}')",
                    turn.token
                ),
            )
            .await;
            let history = "SELECT count(*) FROM fetch_history('i')";
            assert_eq!(dispatcher::number(&mut session, history).await, turns, "{isolation}");
        }

        must(&mut session, "COMMIT").await;
        let left = "SELECT (SELECT count(*) FROM orchestrator_queue) + (SELECT count(*) FROM instance_locks)";
        assert_eq!(dispatcher::number(&mut session, left).await, 0, "{isolation}");
        queue.remove().await;
    }
}
