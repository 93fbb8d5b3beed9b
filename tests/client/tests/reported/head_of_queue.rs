//! A1: what somebody else holds at the head of the queue stops nobody.

use crate::dispatcher::{self, text};
use duroxide_queue_tests::outcome::{must, run};
use duroxide_queue_tests::queue::{Kind, Queue};
use duroxide_queue_tests::server::now_ms;
use sqlx::postgres::PgConnection;

const LEASE_MS: i64 = 30_000;
/// Longer than any lease of these tests: for a caller that much ahead they are over.
const AHEAD_MS: i64 = 600_000;

/// What the holder of the oldest instance does in a transaction that stays open.
#[derive(Clone, Copy, Debug)]
enum Holding {
    AClaim,
    ARowOfItsMessages,
    AnAbandonPastItsLease,
}

impl Holding {
    const ALL: [Holding; 3] = [Holding::AClaim, Holding::ARowOfItsMessages, Holding::AnAbandonPastItsLease];

    async fn begin(self, session: &mut PgConnection) {
        match self {
            Holding::AClaim => {
                must(session, "BEGIN").await;
                let turn = dispatcher::fetch(session, now_ms(), LEASE_MS).await.expect("fetch");
                assert_eq!(turn.expect("the oldest").instance, "a");
            }
            Holding::ARowOfItsMessages => {
                must(session, "BEGIN; SELECT FROM orchestrator_queue WHERE instance_id = 'a' FOR UPDATE")
                    .await;
            }
            Holding::AnAbandonPastItsLease => {
                let now_ms = now_ms();
                let turn = dispatcher::fetch(session, now_ms, LEASE_MS).await.expect("fetch");
                must(session, "BEGIN").await;
                let token = turn.expect("the oldest").token;
                dispatcher::abandon(session, &token, now_ms).await.expect("abandon");
            }
        }
    }
}

/// Puts two instances into an empty queue, and lets another session hold the older.
async fn held(queue: &Queue, holding: Holding) -> PgConnection {
    let mut holder = queue.connect().await;
    must(
        &mut holder,
        "TRUNCATE orchestrator_queue, instance_locks; \
         SELECT enqueue_orchestrator_work('a', '1', to_timestamp(1)), enqueue_orchestrator_work('b', '1', to_timestamp(2))",
    )
    .await;
    holding.begin(&mut holder).await;
    holder
}

/// A session that does not wait for ever.
async fn with_timeout(queue: &Queue, timeout: &str) -> PgConnection {
    let mut session = queue.connect().await;
    must(&mut session, &format!("SET statement_timeout = '{timeout}'")).await;
    session
}

#[tokio::test]
async fn a1_somebody_elses_lock_at_the_head_stops_nobody() {
    let held_rows = "SELECT string_agg(q::text, ',') FROM orchestrator_queue q WHERE instance_id = 'a'";
    for kind in Kind::OURS {
        let queue = Queue::make(kind).await;
        for holding in Holding::ALL {
            let mut holder = held(&queue, holding).await;
            let mut session = with_timeout(&queue, "20s").await;
            let before = text(&mut session, held_rows).await;

            let later = now_ms() + AHEAD_MS;
            let first = dispatcher::fetch(&mut session, later, LEASE_MS).await.expect("fetch");
            // With nothing else to claim, a fetch comes back instead of trying until it is stopped.
            let second = dispatcher::fetch(&mut session, later, LEASE_MS).await.expect("fetch");

            assert_eq!(first.expect("the free one").instance, "b", "{kind:?}, {holding:?}");
            assert_eq!(second, None, "{kind:?}, {holding:?}");
            assert_eq!(text(&mut session, held_rows).await, before, "{kind:?}, {holding:?}");
            must(&mut holder, "ROLLBACK").await;
            let third = dispatcher::fetch(&mut session, later, LEASE_MS).await.expect("fetch");
            assert_eq!(third.expect("free again").instance, "a", "{kind:?}, {holding:?}");
        }
        queue.remove().await;
    }
}

#[tokio::test]
async fn a1_it_stops_everybody_on_the_reference() {
    let queue = Queue::reference().await;
    for holding in Holding::ALL {
        let mut holder = held(&queue, holding).await;
        let mut session = with_timeout(&queue, "500ms").await;
        let fetch = format!("SELECT * FROM fetch_orchestration_item({}, {LEASE_MS})", now_ms() + AHEAD_MS);

        let outcome = run(&mut session, &fetch).await;

        assert_eq!(outcome.code(), Some(dispatcher::code::QUERY_CANCELED), "{holding:?}: {outcome:?}");
        must(&mut holder, "ROLLBACK").await;
    }
    queue.remove().await;
}
