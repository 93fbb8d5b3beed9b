//! E4: whoever reads how a queue is doing costs no more than with duroxide-pg, holds nobody up, and
//! can be cancelled. At a tenth of the size that was reported.

use crate::cost::Cost;
use crate::dispatcher::{self, code, number, text};
use duroxide_queue_tests::outcome::{must, run};
use duroxide_queue_tests::queue::{Kind, Queue};
use sqlx::postgres::PgConnection;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const ROWS: usize = 100_000;
const WORKERS: usize = 8;
const READS: usize = 12;

const READERS: [(&str, &str); 4] = [
    (
        "get_queue_depths(2000000000000)",
        "SELECT orchestrator_queue || ' ' || worker_queue FROM get_queue_depths(2000000000000)",
    ),
    (
        "get_system_metrics()",
        "SELECT total_instances || ' ' || running_instances || ' ' || total_events FROM get_system_metrics()",
    ),
    (
        "get_instance_stats('x')",
        "SELECT out_history_event_count || ' ' || out_history_size_bytes FROM get_instance_stats('x')",
    ),
    (
        "list_instances_by_status('Running')",
        "SELECT count(*) || ' ' || min(instance_id) FROM list_instances_by_status('Running')",
    ),
];

async fn filled(kind: Kind) -> (Queue, PgConnection) {
    let queue = Queue::make(kind).await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        &format!(
            "INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at) SELECT 'i' || n, 'O', 'epoch', 'epoch' FROM generate_series(1, {ROWS}) n; \
             INSERT INTO executions (instance_id, execution_id, status, started_at) SELECT 'i' || n, 1, (ARRAY['Running', 'Completed'])[n % 2 + 1], 'epoch' FROM generate_series(1, {ROWS}) n; \
             INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at) VALUES ('x', 'O', 'epoch', 'epoch'); \
             INSERT INTO executions (instance_id, execution_id, started_at) VALUES ('x', 1, 'epoch'); \
             INSERT INTO history SELECT CASE WHEN n <= {ROWS} / 2 THEN 'x' ELSE 'i' || n / 50 END, 1, n, 'E', '{{}}', 'epoch' FROM generate_series(1, {ROWS}) n; \
             INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) SELECT 'i' || n, '1', to_timestamp(1000), 'epoch' FROM generate_series(1, {ROWS}) n; \
             INSERT INTO worker_queue (work_item, visible_at, created_at) SELECT '1', to_timestamp(1000), 'epoch' FROM generate_series(1, {ROWS}) n"
        ),
    )
    .await;
    for table in ["instances", "executions", "history", "orchestrator_queue", "worker_queue"] {
        must(&mut session, &format!("VACUUM ANALYZE {table}")).await;
    }
    (queue, session)
}

/// Pages of each reader, and what it says.
async fn read_all(session: &mut PgConnection, kind: Kind) -> Vec<(i64, String)> {
    let mut seen = Vec::new();
    for (name, reader) in READERS {
        let said = text(session, reader).await;
        let began = Instant::now();
        let cost = Cost::of(session, reader, &said).await;
        println!("{kind:?}: {name}: {said}, {cost:?}, {:?}", began.elapsed());
        seen.push((cost.pages, said));
    }
    seen
}

/// A whole turn and a whole work item.
async fn turn(session: &mut PgConnection) -> sqlx::Result<()> {
    let turn = dispatcher::fetch(session, 1_500_000, 600_000).await?.expect("an instance");
    dispatcher::ack(session, &turn.token, 1_500_000).await?;
    let item = dispatcher::take(session, 1_500_000, 600_000).await?.expect("a work item");
    dispatcher::done(session, &item.token, 1_500_000).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e4_metrics_cost_no_more_than_the_references_and_hold_nobody_up() {
    let (reference, mut theirs) = filled(Kind::Reference).await;
    let expected = read_all(&mut theirs, Kind::Reference).await;
    drop(theirs);
    reference.remove().await;
    let (queue, mut session) = filled(Kind::Created).await;

    for ((name, _), (ours, theirs)) in
        READERS.iter().zip(read_all(&mut session, Kind::Created).await.into_iter().zip(expected))
    {
        assert_eq!(ours.1, theirs.1, "{name}");
        assert!(ours.0 <= theirs.0 * 5 / 4 + 20, "{name}: {} pages, theirs {}", ours.0, theirs.0);
    }

    // Somebody reads and does not end the transaction: nobody is held up, not for a millisecond.
    let mut worker = queue.connect().await;
    must(&mut worker, "SET lock_timeout = 1").await;
    let strong = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid' AND mode <> 'AccessShareLock'";
    for (name, reader) in READERS {
        must(&mut session, "BEGIN").await;
        must(&mut session, reader).await;
        assert_eq!(number(&mut session, strong).await, 0, "{name} holds a lock");
        turn(&mut worker).await.unwrap_or_else(|error| panic!("a turn beside {name}: {error}"));
        must(&mut session, "COMMIT").await;
    }

    for (name, reader) in READERS {
        // On a busy machine the timer may come when a short one is over. The server then fails what its
        // session runs next, so each try has one of its own.
        let mut outcomes = Vec::new();
        while outcomes.len() < 50 && !outcomes.contains(&Some(code::QUERY_CANCELED.to_owned())) {
            let mut hurried = queue.connect().await;
            must(&mut hurried, "SET statement_timeout = 1").await;
            outcomes.push(run(&mut hurried, reader).await.code().map(str::to_owned));
        }
        assert!(outcomes.len() < 50, "{name} cannot be cancelled: {outcomes:?}");
    }

    // Both at once.
    let reading = Arc::new(AtomicBool::new(true));
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        let mut session = queue.connect().await;
        let reading = reading.clone();
        workers.push(tokio::spawn(async move {
            let mut turns = 0;
            while reading.load(Ordering::Relaxed) {
                turn(&mut session).await.expect("a turn while others read");
                turns += 1;
            }
            turns
        }));
    }
    for number in 0..READS {
        must(&mut session, READERS[number % READERS.len()].1).await;
    }
    reading.store(false, Ordering::Relaxed);
    let mut turns = READERS.len();
    for worker in workers {
        let of_one = worker.await.expect("a worker ends well");
        assert!(of_one > 0, "a worker has not come to a turn during {READS} reads");
        turns += of_one;
    }
    println!("{turns} turns beside {READS} reads");
    for table in ["orchestrator_queue", "worker_queue"] {
        assert_eq!(
            number(&mut session, &format!("SELECT count(*) FROM {table}")).await,
            (ROWS - turns) as i64
        );
    }
    queue.remove().await;
}
