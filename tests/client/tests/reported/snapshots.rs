//! A4: a call sees what has been committed, and what its own transaction has written, by the time it
//! runs; and it may be the first thing that a session does.

use crate::dispatcher::{self, number, text};
use duroxide_queue_tests::outcome::{must, must_fail, run, until_it_waits};
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

/// What a transaction of one snapshot reads is the past; what has changed since is an error there, as everywhere.
#[tokio::test]
async fn a4_a_transaction_with_an_old_snapshot_gets_no_old_turn_and_deletes_no_new_one() {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        for known_before in [true, false] {
            let queue = Queue::created().await;
            let mut old = queue.connect().await;
            let mut session = queue.connect().await;
            let turn = |event: u32| {
                format!(
                    r#"DO $$ DECLARE token text;
                       BEGIN
                         SELECT out_lock_token INTO STRICT token FROM fetch_orchestration_item(1000000 + {event}, 60000);
                         PERFORM ack_orchestration_item(token, 1000000 + {event}, 1,
                           '[{{"event_id": {event}, "event_type": "E", "event_data": "{{}}"}}]', '[]', '[]',
                           '{{"orchestration_name": "O", "orchestration_version": "1", "status": "Running"}}');
                       END $$"#
                )
            };
            let enqueue = "SELECT enqueue_orchestrator_work('i', '1', 'epoch')";
            if known_before {
                must(&mut session, enqueue).await;
                must(&mut session, &turn(1)).await;
            }
            // A timer that is due when all else has happened, and that nobody touches meanwhile.
            must(&mut session, "SELECT enqueue_orchestrator_work('i', '2', to_timestamp(2000))").await;
            must(&mut old, &format!("BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM history")).await;
            must(&mut session, enqueue).await;
            must(&mut session, &turn(2)).await;

            must(&mut old, "SAVEPOINT s").await;
            for call in [
                "SELECT * FROM fetch_orchestration_item(3000000, 60000)",
                "SELECT * FROM delete_instances_atomic(ARRAY['none', 'i'], true)",
            ] {
                let error = must_fail(&mut old, call).await;
                assert_eq!(error.code, "40001", "{level}, known before {known_before}, {call}: {error}");
                must(&mut old, "ROLLBACK TO s").await;
            }
            must(&mut old, "ROLLBACK").await;

            // A claim since the snapshot, of an instance that no turn has been acknowledged of.
            must(
                &mut session,
                "DELETE FROM orchestrator_queue; SELECT enqueue_orchestrator_work('new', '1', 'epoch')",
            )
            .await;
            must(&mut old, &format!("BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM history")).await;
            must(&mut session, "SELECT * FROM fetch_orchestration_item(1000000, 60000)").await;
            let error =
                must_fail(&mut old, "SELECT * FROM delete_instances_atomic(ARRAY['new'], true)").await;
            assert_eq!(error.code, "40001", "{level}: {error}");
            must(&mut old, "ROLLBACK").await;

            must(&mut old, &format!("BEGIN ISOLATION LEVEL {level}")).await;
            must(&mut old, "SELECT * FROM delete_instances_atomic(ARRAY['new', 'i'], true)").await;
            must(&mut old, "SELECT enqueue_orchestrator_work('i', '1', 'epoch')").await;
            let claimed =
                run(&mut old, "SELECT out_instance_id FROM fetch_orchestration_item(1000000, 60000)").await;
            assert_eq!(claimed.value(), "i", "{level}");
            must(&mut old, "COMMIT").await;
            queue.remove().await;
        }
    }
}

/// The execution that becomes the current one while a pruning waits is the current one for it, too.
#[tokio::test]
async fn a4_pruning_spares_what_has_become_current_while_it_waited() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let mut pruning = queue.connect().await;
    let pid = number(&mut pruning, "SELECT pg_backend_pid()").await;
    must(
        &mut session,
        "INSERT INTO instances (instance_id, orchestration_name, current_execution_id, created_at, updated_at) VALUES ('i', 'O', 1, 'epoch', 'epoch'); \
         INSERT INTO executions (instance_id, execution_id, status, started_at) VALUES ('i', 1, 'ContinuedAsNew', 'epoch')",
    )
    .await;
    must(
        &mut session,
        "BEGIN; LOCK TABLE executions; \
         UPDATE instances SET current_execution_id = 2; \
         INSERT INTO executions (instance_id, execution_id, status, started_at) VALUES ('i', 2, 'Completed', 'epoch')",
    )
    .await;
    let commit = async {
        until_it_waits(&mut queue.connect().await, pid).await;
        must(&mut session, "COMMIT").await;
    };
    tokio::join!(must(&mut pruning, "SELECT * FROM prune_executions('i', NULL, NULL)"), commit);
    assert_eq!(number(&mut pruning, "SELECT count(*) FROM executions WHERE execution_id = 2").await, 1);
    queue.remove().await;
}

/// Who acknowledges a work item while its instance is deleted sends its completion to nobody.
#[tokio::test]
async fn a4_a_deletion_that_has_waited_for_a_work_item_leaves_no_completion() {
    let queue = Queue::created().await;
    let mut worker = queue.connect().await;
    let mut deleting = queue.connect().await;
    let pid = number(&mut deleting, "SELECT pg_backend_pid()").await;
    must(
        &mut worker,
        "INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at) VALUES ('i', 'O', 'epoch', 'epoch'); \
         SELECT enqueue_worker_work('{}', 1, 'i', 1, 1)",
    )
    .await;
    let token = text(&mut worker, "SELECT out_lock_token FROM fetch_work_item(1000, 60000)").await;
    must(&mut worker, &format!("BEGIN; SELECT ack_worker('{token}', 'i', '{{}}', 2000)")).await;
    let commit = async {
        until_it_waits(&mut queue.connect().await, pid).await;
        must(&mut worker, "COMMIT").await;
    };
    tokio::join!(must(&mut deleting, "SELECT * FROM delete_instances_atomic(ARRAY['i'], true)"), commit);
    let left = "SELECT (SELECT count(*) FROM orchestrator_queue) + (SELECT count(*) FROM worker_queue) + (SELECT count(*) FROM instances)";
    assert_eq!(number(&mut deleting, left).await, 0);
    queue.remove().await;
}
