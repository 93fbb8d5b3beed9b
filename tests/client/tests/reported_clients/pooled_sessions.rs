//! G1: a pooler gives each call another session, and a call leaves nothing in the session that it had.

use crate::dispatcher::{self, code, number};
use duroxide_queue_tests::catalog;
use duroxide_queue_tests::outcome::{must, run, until_it_waits};
use duroxide_queue_tests::queue::{Kind, Queue};
use sqlx::postgres::PgConnection;
use std::collections::BTreeSet;

const BACKENDS: usize = 4;

/// All that a session can keep beyond a transaction, one thing a row. Locks that the question itself
/// takes are not worth telling.
const KEPT: &str = "\
    SELECT 'lock ' || locktype || ' ' || mode FROM pg_locks \
      WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid' AND mode <> 'AccessShareLock' \
    UNION ALL SELECT 'statement ' || name FROM pg_prepared_statements \
    UNION ALL SELECT 'cursor ' || name FROM pg_cursors \
    UNION ALL SELECT 'channel ' || channel FROM pg_listening_channels() AS channel \
    UNION ALL SELECT 'temporary schema' WHERE pg_my_temp_schema() <> 0 \
    UNION ALL SELECT 'setting ' || name || ' = ' || setting FROM pg_settings \
    UNION ALL SELECT concat_ws(' ', 'role', session_user, current_user)";

async fn kept(session: &mut PgConnection) -> BTreeSet<String> {
    must(session, KEPT).await.into_iter().map(|mut row| row.remove(0).expect("a text")).collect()
}

/// A call that comes back as it should, or as an error; `{token}` stands for the lease's.
type Call = (&'static str, Option<&'static str>);

const INSTANCE_CALLS: [&[Call]; 3] = [
    &[
        ("SELECT renew_orchestration_item_lock('{token}', 1000, 60)", None),
        (
            "SELECT ack_orchestration_item('{token}', 1000, 1, '[{\"event_id\": 1, \"event_type\": \"E\", \"event_data\": \"nope\"}]', '[]', '[]', '{}')",
            Some("22P02"),
        ),
        (
            "SELECT ack_orchestration_item('{token}', 1000, 1, '[{\"event_id\": 1, \"event_type\": \"E\", \"event_data\": \"1\"}]', '[\"w\"]', '[]', '{}')",
            None,
        ),
    ],
    &[
        ("SELECT renew_orchestration_item_lock('{token}', 1000, 60)", None),
        ("SELECT abandon_orchestration_item('{token}', 1000, 5)", None),
        ("SELECT abandon_orchestration_item('{token}', 1000)", Some(code::RAISE_EXCEPTION)),
    ],
    &[
        ("SELECT ack_orchestration_item('{token}', 1000, 1, '[]', '[]', '[]', '{}')", None),
        ("SELECT renew_orchestration_item_lock('{token}', 1000, 60)", Some(code::RAISE_EXCEPTION)),
        (
            "SELECT ack_orchestration_item('{token}', 1000, 1, '[]', '[]', '[]', '{}')",
            Some(code::RAISE_EXCEPTION),
        ),
    ],
];

const WORK_ITEM_CALLS: [&[Call]; 3] = [
    &[
        ("SELECT renew_work_item_lock('{token}', 1000, 60)", None),
        ("SELECT ack_worker('{token}', 'i', 'nope', 1000)", Some("22P02")),
        ("SELECT ack_worker('{token}', 'i', '1', 1000)", None),
    ],
    &[
        ("SELECT renew_work_item_lock('{token}', 1000, 60)", None),
        ("SELECT abandon_work_item('{token}', 1000, 5)", None),
        ("SELECT abandon_work_item('{token}', 1000)", Some(code::RAISE_EXCEPTION)),
    ],
    &[
        ("SELECT ack_worker('{token}')", None),
        ("SELECT renew_work_item_lock('{token}', 1000, 60)", Some(code::RAISE_EXCEPTION)),
        ("SELECT ack_worker('{token}')", Some(code::RAISE_EXCEPTION)),
    ],
];

/// Sessions of one queue, each with what it has kept since its beginning.
struct Pool {
    sessions: Vec<(PgConnection, BTreeSet<String>)>,
    discards: bool,
}

impl Pool {
    async fn on(queue: &Queue, discards: bool) -> Pool {
        let mut sessions = Vec::new();
        for _ in 0..BACKENDS {
            let mut session = queue.connect().await;
            // With the library come its settings.
            must(&mut session, "SELECT get_queue_depths(1000)").await;
            let kept = kept(&mut session).await;
            sessions.push((session, kept));
        }
        Pool { sessions, discards }
    }

    /// Runs a call in one of the sessions and looks at what it has left there.
    async fn call(&mut self, number: usize, call: &str, expected: Option<&str>) -> Vec<Vec<Option<String>>> {
        let (session, before) = &mut self.sessions[number];
        let outcome = run(session, call).await;
        assert_eq!(outcome.code(), expected, "{call} on backend {number}: {outcome:?}");
        catalog::assert_same(call, before, &kept(session).await);
        if self.discards {
            must(session, "DISCARD ALL").await;
        }
        if expected.is_none() { outcome.rows() } else { Vec::new() }
    }

    /// The life of one lease, each call on the backend that `backends` names.
    async fn lease(&mut self, fetch: &str, calls: &[Call], backends: [usize; 4]) {
        let claimed = self.call(backends[0], fetch, None).await;
        let token = claimed[0][0].clone().expect("a token");
        for ((call, expected), backend) in calls.iter().zip(&backends[1..]) {
            self.call(*backend, &call.replace("{token}", &token), *expected).await;
        }
    }
}

#[tokio::test]
async fn g1_each_call_of_a_lease_may_come_from_another_session() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    for discards in [false, true] {
        let mut pool = Pool::on(&queue, discards).await;
        // Ways to spread four calls over four backends, the first one's name apart. What is
        // discarded is made anew by each call, so fewer of them have to do.
        for spread in (0..BACKENDS.pow(3)).step_by(if discards { 5 } else { 1 }) {
            let backends = [0, spread / BACKENDS.pow(2), spread / BACKENDS % BACKENDS, spread % BACKENDS];
            let (instance, item) = (
                INSTANCE_CALLS[spread % INSTANCE_CALLS.len()],
                WORK_ITEM_CALLS[spread % WORK_ITEM_CALLS.len()],
            );
            must(
                &mut session,
                "SELECT enqueue_orchestrator_work('i', '1', 'epoch'), enqueue_worker_work('1', 0)",
            )
            .await;
            pool.lease(
                "SELECT out_lock_token FROM fetch_orchestration_item(1000, 60000)",
                instance,
                backends,
            )
            .await;
            pool.lease("SELECT out_lock_token FROM fetch_work_item(1000, 60000, 'w')", item, backends).await;
            must(&mut session, "TRUNCATE orchestrator_queue, worker_queue, instance_locks, history").await;
        }
    }
    queue.remove().await;
}

#[tokio::test]
async fn g1_a_call_leaves_nothing_in_its_session_when_it_is_cancelled_or_rolled_back() {
    for kind in Kind::OURS {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        let mut holder = queue.connect().await;
        let mut watcher = queue.connect().await;
        must(&mut session, "SELECT get_queue_depths(1000)").await;
        let before = kept(&mut session).await;
        let pid = number(&mut session, "SELECT pg_backend_pid()").await;
        must(&mut holder, "SELECT enqueue_orchestrator_work('i', '1', 'epoch'), enqueue_worker_work('1', 0)")
            .await;
        let token = dispatcher::fetch(&mut holder, 1_000, 60_000).await.expect("fetch").expect("i").token;
        must(&mut holder, &format!("BEGIN; SELECT pg_advisory_xact_lock(hashtext('{}.i'))", queue.schema()))
            .await;

        for in_transaction in [false, true] {
            for call in [
                format!("SELECT ack_orchestration_item('{token}', 1000, 1, '[]', '[]', '[]', '{{}}')"),
                format!("SELECT renew_orchestration_item_lock('{token}', 1000, 60)"),
                format!("SELECT abandon_orchestration_item('{token}', 1000)"),
                "SELECT delete_instances_atomic(ARRAY['i'], true)".to_owned(),
            ] {
                if in_transaction {
                    must(&mut session, "BEGIN").await;
                }
                let (outcome, ()) = tokio::join!(run(&mut session, &call), async {
                    until_it_waits(&mut watcher, pid).await;
                    must(&mut watcher, &format!("SELECT pg_cancel_backend({pid})")).await;
                });
                assert_eq!(outcome.code(), Some(code::QUERY_CANCELED), "{call}: {outcome:?}");
                if in_transaction {
                    must(&mut session, "ROLLBACK").await;
                }
                catalog::assert_same(&call, &before, &kept(&mut session).await);
            }
        }
        must(&mut holder, "ROLLBACK; UPDATE instance_locks SET locked_until = 1; UPDATE orchestrator_queue SET locked_until = 1").await;

        let claim =
            "SELECT * FROM fetch_orchestration_item(1000, 60000); SELECT * FROM fetch_work_item(1000, 60000)";
        for (begin, end) in
            [("BEGIN", "ROLLBACK"), ("BEGIN; SAVEPOINT s", "ROLLBACK TO s; COMMIT"), ("BEGIN", "COMMIT")]
        {
            must(&mut session, &format!("{begin}; {claim}")).await;
            must(&mut session, end).await;
            catalog::assert_same(end, &before, &kept(&mut session).await);
        }

        // What a call could leave would be seen.
        for left in [
            "SELECT pg_advisory_lock(1)",
            "PREPARE p AS SELECT 1",
            "CREATE TEMP TABLE t (a integer)",
            "SET lock_timeout = 1",
            "LISTEN c",
        ] {
            let before = kept(&mut session).await;
            must(&mut session, left).await;
            assert_ne!(kept(&mut session).await, before, "{left}");
        }
        queue.remove().await;
    }
}
