//! Polling is free: a fetch that finds nothing, and every read, assigns no transaction id and writes
//! no WAL; both work in a read-only transaction, where a fetch that would claim fails as such.

use crate::dispatcher::{code, number, text};
use duroxide_queue_tests::outcome::{must, run};
use duroxide_queue_tests::own_server::Server;
use duroxide_queue_tests::queue::Queue;
use sqlx::postgres::PgConnection;

pub(crate) const FETCHES: [&str; 2] = [
    "SELECT * FROM fetch_orchestration_item(1000, 60000)",
    "SELECT * FROM fetch_work_item(1000, 60000, 'w')",
];

pub(crate) const READS: [&str; 16] = [
    "SELECT * FROM fetch_history('i')",
    "SELECT * FROM fetch_history_with_execution('i', 1)",
    "SELECT * FROM get_custom_status('i', -1)",
    "SELECT * FROM get_execution_info('i', 1)",
    "SELECT * FROM get_instance_info('i')",
    "SELECT * FROM get_instance_stats('i')",
    "SELECT * FROM get_kv_all_values('i')",
    "SELECT * FROM get_kv_value('i', 'k')",
    "SELECT get_parent_id('i')",
    "SELECT * FROM get_queue_depths(1000)",
    "SELECT * FROM get_system_metrics()",
    "SELECT latest_execution_id('i')",
    "SELECT * FROM list_children('i')",
    "SELECT * FROM list_executions('i')",
    "SELECT * FROM list_instances()",
    "SELECT * FROM list_instances_by_status('Running')",
];

async fn with_nothing_to_claim() -> (Queue, PgConnection) {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    fill_with_nothing_to_claim(&mut session).await;
    (queue, session)
}

/// A running instance with everything that there is to read, and nothing to claim at `1000`: one
/// instance and one work item are leased, others lie in the future.
pub(crate) async fn fill_with_nothing_to_claim(session: &mut PgConnection) {
    must(
        session,
        "INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at) VALUES ('i', 'O', 'epoch', 'epoch'); \
         INSERT INTO executions (instance_id, execution_id, started_at) VALUES ('i', 1, 'epoch'); \
         INSERT INTO history VALUES ('i', 1, 1, 'E', '{}', 'epoch'); \
         INSERT INTO kv_store VALUES ('i', 'k', 'v', 1, 0); INSERT INTO kv_delta VALUES ('i', 'l', 'w', 0); \
         INSERT INTO instance_locks VALUES ('leased', 't', 9000000, 0); \
         INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at, lock_token, locked_until) VALUES ('leased', '1', 'epoch', 'epoch', 't', 9000000); \
         INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) VALUES ('leased', '2', 'epoch', 'epoch'), ('future', '1', 'infinity', 'epoch'); \
         INSERT INTO worker_queue (work_item, visible_at, created_at, lock_token, locked_until) VALUES ('1', 'epoch', 'epoch', 't', 9000000); \
         INSERT INTO worker_queue (work_item, visible_at, created_at) VALUES ('2', 'infinity', 'epoch'); \
         INSERT INTO worker_queue (work_item, visible_at, created_at, session_id) VALUES ('3', 'epoch', 'epoch', 's'); \
         INSERT INTO sessions VALUES ('s', 'another', 9000000, 0)",
    )
    .await;
    // What would be written is hint bits of the filling, not of the calls.
    must(session, "VACUUM").await;
}

pub(crate) async fn has_xid(session: &mut PgConnection) -> bool {
    text(session, "SELECT pg_current_xact_id_if_assigned() IS NOT NULL").await == "t"
}

#[tokio::test]
async fn empty_polls_and_reads_assign_no_transaction_id() {
    let (queue, mut session) = with_nothing_to_claim().await;
    must(&mut session, "BEGIN").await;
    for _ in 0..1_000 {
        for fetch in FETCHES {
            assert_eq!(must(&mut session, fetch).await.len(), 0, "{fetch}");
        }
    }
    assert!(!has_xid(&mut session).await, "a thousand empty polls of each kind");
    for read in READS {
        must(&mut session, read).await;
        assert!(!has_xid(&mut session).await, "{read}");
    }
    must(&mut session, "COMMIT").await;

    // An instance whose key another session holds is nothing to claim either.
    let mut competitor = queue.connect().await;
    must(&mut session, "SELECT enqueue_orchestrator_work('busy', '1', 'epoch')").await;
    must(
        &mut competitor,
        &format!("BEGIN; SELECT pg_advisory_xact_lock(hashtext('{}.busy'))", queue.schema()),
    )
    .await;
    must(&mut session, "BEGIN").await;
    assert_eq!(must(&mut session, FETCHES[0]).await.len(), 0, "a contended instance");
    assert!(!has_xid(&mut session).await, "a contended instance");
    must(&mut session, "COMMIT").await;
    must(&mut competitor, "COMMIT").await;

    // The look itself is right: a claim has an id.
    must(&mut session, "BEGIN").await;
    assert_eq!(must(&mut session, FETCHES[0]).await.len(), 1);
    assert!(has_xid(&mut session).await, "a claim");
    must(&mut session, "ROLLBACK").await;
    queue.remove().await;
}

#[tokio::test]
async fn empty_polls_and_reads_write_no_wal() {
    let (queue, mut session) = with_nothing_to_claim().await;
    for call in FETCHES.iter().chain(&READS) {
        // The first may set hint bits of the catalog's rows.
        must(&mut session, call).await;
        let wal = wal_of(&mut session, call).await;
        assert_eq!(wal, None, "{call}");
    }
    must(&mut session, "SELECT enqueue_orchestrator_work('free', '1', 'epoch')").await;
    assert!(wal_of(&mut session, FETCHES[0]).await.is_some(), "a claim writes WAL");
    queue.remove().await;
}

#[tokio::test]
async fn empty_polls_leave_an_idle_server_where_it_was() {
    const BATCH: usize = 500;
    let polls = crate::memory::figure("DUROXIDE_QUEUE_FIGURES_CALLS", 2_000);
    let server = Server::start().await;
    // Nobody else writes: no vacuum, no checkpoint, no running transactions told to a standby.
    server
        .set(&["autovacuum = off", "wal_level = minimal", "max_wal_senders = 0", "checkpoint_timeout = '1d'"])
        .await;
    server.stop_immediately().await;
    server.start_again().await;
    let mut session = server.connect().await;
    must(
        &mut session,
        "CREATE EXTENSION duroxide_queue; SELECT duroxide_queue.create_queue('q'); SET search_path = q",
    )
    .await;
    fill_with_nothing_to_claim(&mut session).await;
    for fetch in FETCHES {
        must(&mut session, fetch).await;
    }
    must(&mut session, "VACUUM").await;
    must(&mut session, "CHECKPOINT").await;
    let state = "SELECT pg_snapshot_xmax(pg_current_snapshot()) || ' ' || pg_current_wal_insert_lsn()";
    text(&mut session, state).await;

    for fetch in FETCHES {
        let before = text(&mut session, state).await;
        let batch = format!("BEGIN; {fetch}; COMMIT; ").repeat(BATCH);
        for _ in 0..polls / BATCH {
            assert_eq!(must(&mut session, &batch).await.len(), 0);
        }
        let after = text(&mut session, state).await;
        println!(
            "figure: {polls} times {fetch}: next transaction id and end of the WAL from {before} to {after}"
        );
        assert_eq!(after, before, "{polls} times {fetch}");
    }
    // The look itself is right.
    let before = text(&mut session, state).await;
    must(&mut session, "SELECT enqueue_worker_work('1', 0)").await;
    assert_ne!(text(&mut session, state).await, before);
}

/// What this session wrote to the WAL during a call; `None` for nothing.
async fn wal_of(session: &mut PgConnection, call: &str) -> Option<String> {
    let plan =
        must(session, &format!("EXPLAIN (ANALYZE, WAL, COSTS off, TIMING off, SUMMARY off) {call}")).await;
    plan.into_iter().flatten().flatten().find(|line| line.contains("WAL:"))
}

#[tokio::test]
async fn g3_readers_and_empty_polls_work_in_a_read_only_transaction() {
    let (queue, mut session) = with_nothing_to_claim().await;
    for has_claimed in [false, true] {
        if has_claimed {
            must(
                &mut session,
                "SELECT enqueue_orchestrator_work('free', '1', 'epoch'), enqueue_worker_work('1', 0)",
            )
            .await;
            for fetch in FETCHES {
                assert_eq!(must(&mut session, fetch).await.len(), 1, "{fetch}");
            }
        }
        must(&mut session, "BEGIN READ ONLY").await;
        for read in READS {
            must(&mut session, read).await;
        }
        for fetch in FETCHES {
            assert_eq!(must(&mut session, fetch).await.len(), 0, "{fetch}, has claimed: {has_claimed}");
        }
        must(&mut session, "COMMIT").await;
    }

    must(&mut session, "SELECT enqueue_orchestrator_work('new', '1', 'epoch'), enqueue_worker_work('1', 0)")
        .await;
    for call in [
        FETCHES[0],
        FETCHES[1],
        "SELECT enqueue_orchestrator_work('free', '1', 'epoch')",
        "SELECT enqueue_worker_work('1', 0)",
        "SELECT delete_instances_atomic(ARRAY['i'], true)",
    ] {
        must(&mut session, "BEGIN READ ONLY").await;
        let outcome = run(&mut session, call).await;
        assert_eq!(outcome.code(), Some(code::READ_ONLY_SQL_TRANSACTION), "{call}: {outcome:?}");
        must(&mut session, "ROLLBACK").await;
    }
    let untouched = "SELECT count(*) FROM orchestrator_queue WHERE instance_id = 'new' AND attempt_count > 0";
    assert_eq!(number(&mut session, untouched).await, 0);
    queue.remove().await;
}
