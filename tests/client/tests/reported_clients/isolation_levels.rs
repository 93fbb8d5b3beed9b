//! G4: whatever the default isolation, nothing is delivered twice or done by half, and a conflict
//! comes to the client as 40001. What one frozen snapshot comes to is told step by step in
//! tests/isolation/specs/two_dispatchers.spec.

use crate::dispatcher::{self, number, perform, sqlstate};
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::Queue;
use sqlx::postgres::PgConnection;
use std::time::{Duration, Instant};

const LEVELS: [&str; 3] = ["read committed", "repeatable read", "serializable"];
const SERIALIZATION_FAILURE: &str = "40001";
const SESSIONS: usize = 8;
/// Messages that are under way, and how often each of them is passed on.
const MESSAGES: usize = 60;
const HOPS: usize = 4;
const LEASE_MS: i64 = 600_000;
/// A call that tries again for ever on its old snapshot does not end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Whether a call went through; what other sessions have done may stop it, and nothing else.
fn went_through<T>(result: sqlx::Result<T>, conflicts: &mut usize) -> Option<T> {
    match result {
        Ok(done) => Some(done),
        Err(error) => {
            assert_eq!(sqlstate(&error), SERIALIZATION_FAILURE, "{error}");
            *conflicts += 1;
            None
        }
    }
}

/// Takes turns and work items until there are none. Returns how many work items it has done, and how often
/// a call met a conflict.
async fn work(mut session: PgConnection, limit: Instant) -> (usize, usize) {
    let (mut items, mut conflicts) = (0, 0);
    loop {
        assert!(Instant::now() < limit, "work is left after {PATIENCE:?}, {conflicts} conflicts");
        let turn = dispatcher::fetch(&mut session, 1_000, LEASE_MS).await;
        if let Some(turn) = went_through(turn, &mut conflicts).flatten() {
            // Each message leaves an event and a work item, and is passed on.
            let ack = format!(
                "SELECT ack_orchestration_item('{token}', 1000, 1, \
                   (SELECT jsonb_agg(jsonb_build_object('event_id', m::bigint + 1, 'event_type', 'E', 'event_data', m)) FROM m), \
                   (SELECT jsonb_agg(m::bigint) FROM m), \
                   (SELECT coalesce(jsonb_agg(jsonb_build_object('QueueMessage', jsonb_build_object('instance', 'i' || m::bigint * 7 % 10, 'next', m::bigint + {MESSAGES}))) \
                      FILTER (WHERE m::bigint < {MESSAGES} * ({HOPS} - 1)), '[]') FROM m), '{{}}') \
                 FROM (SELECT 1) one",
                token = turn.token,
            );
            let messages = format!(
                "WITH m AS MATERIALIZED (SELECT coalesce(e #>> '{{QueueMessage,next}}', e #>> '{{}}') AS m FROM jsonb_array_elements('{}') e) {ack}",
                turn.messages
            );
            // The lease is long, so a conflict leaves it as it was.
            while went_through(perform(&mut session, &messages).await, &mut conflicts).is_none() {}
        }
        let item = dispatcher::take(&mut session, 1_000, LEASE_MS).await;
        if let Some(item) = went_through(item, &mut conflicts).flatten() {
            items += 1;
            while went_through(dispatcher::done(&mut session, &item.token, 1_000).await, &mut conflicts)
                .is_none()
            {}
        } else if went_through(all_done(&mut session).await, &mut conflicts) == Some(true) {
            return (items, conflicts);
        }
    }
}

async fn all_done(session: &mut PgConnection) -> sqlx::Result<bool> {
    let done = "SELECT NOT EXISTS (SELECT FROM orchestrator_queue) AND NOT EXISTS (SELECT FROM worker_queue)";
    sqlx::query_scalar(done).fetch_one(session).await
}

/// Has that many sessions work a queue empty. Returns how often a call met a conflict.
async fn conflicts(level: &str, sessions: usize) -> usize {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        &format!(
            "SELECT enqueue_orchestrator_work('i' || n % 10, n || '', 'epoch') FROM generate_series(0, {MESSAGES} - 1) n"
        ),
    )
    .await;
    let limit = Instant::now() + PATIENCE;
    let mut workers = Vec::new();
    for _ in 0..sessions {
        let mut session = queue.connect().await;
        must(&mut session, &format!("SET default_transaction_isolation = '{level}'")).await;
        workers.push(tokio::spawn(work(session, limit)));
    }
    let (mut items, mut conflicts) = (0, 0);
    for worker in workers {
        let (items_here, conflicts_here) = worker.await.expect("a worker ends well");
        items += items_here;
        conflicts += conflicts_here;
    }

    // A message that is done by half, or twice, would have left another number of events.
    assert_eq!(
        number(&mut session, "SELECT count(*) FROM history").await,
        (MESSAGES * HOPS) as i64,
        "{level}"
    );
    assert_eq!(items, MESSAGES * HOPS, "{level}");
    assert_eq!(number(&mut session, "SELECT count(*) FROM instance_locks").await, 0, "{level}");
    queue.remove().await;
    println!("{level}, {sessions} sessions: {conflicts} conflicts");
    conflicts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_eight_sessions_under_each_isolation_level_lose_and_double_nothing() {
    for level in LEVELS {
        let conflicts = conflicts(level, SESSIONS).await;
        assert!(level != "read committed" || conflicts == 0, "{conflicts} conflicts under {level}");
    }
}

#[tokio::test]
async fn g4_a_session_on_its_own_meets_no_conflict_under_any_isolation_level() {
    for level in LEVELS {
        assert_eq!(conflicts(level, 1).await, 0, "{level}");
    }
}
