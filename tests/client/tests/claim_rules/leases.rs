//! A lease ends as long after the moment that it is written as was asked for, however long the call
//! has waited before, by the clock that the setting names; and a renewal never moves the end earlier.

use crate::dispatcher::{self, number};
use duroxide_queue_tests::outcome::{must, must_fail};
use duroxide_queue_tests::queue::Queue;
use duroxide_queue_tests::server::now_ms;
use sqlx::postgres::PgConnection;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Any moment will do: the caller's epoch is the only one.
const NOW_MS: i64 = 1_000_000_000_000;
const LEASE_MS: i64 = 30_000;
/// How long a table is kept from the call.
const HELD: Duration = Duration::from_millis(400);

/// Where the end of a lease of `length_ms` may lie that was written after a wait of `HELD` and
/// before the call that began at `began` came back.
fn expected(length_ms: i64, began: Instant) -> RangeInclusive<i64> {
    let most = i64::try_from(began.elapsed().as_millis()).expect("seconds");
    let least = i64::try_from(HELD.as_millis()).expect("seconds");
    NOW_MS + least + length_ms..=NOW_MS + most + 1 + length_ms
}

#[tokio::test]
async fn b1_a_lease_is_counted_from_when_it_is_written() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    dispatcher::enqueue(&mut session, "i", "1").await.expect("enqueue");
    must(&mut session, "SELECT enqueue_worker_work('1', 0, p_session_id => 's')").await;
    let instance_lease = "SELECT locked_until FROM instance_locks";
    let message_lease = "SELECT max(locked_until) FROM orchestrator_queue";
    let item_lease = "SELECT locked_until FROM worker_queue";
    let session_lease = "SELECT locked_until FROM sessions";
    let claim = format!("SELECT count(*) FROM fetch_orchestration_item({NOW_MS}, {LEASE_MS})");
    let renewal =
        format!("SELECT count(renew_orchestration_item_lock(lock_token, {NOW_MS}, 60)) FROM instance_locks");
    let take = format!("SELECT count(*) FROM fetch_work_item({NOW_MS}, {LEASE_MS}, 'w', 45000)");
    let take_renewal =
        format!("SELECT count(renew_work_item_lock(lock_token, {NOW_MS}, 60)) FROM worker_queue");
    let beat = format!("SELECT renew_session_lock(ARRAY['w'], {NOW_MS}, 90000, 60000)");

    for (call, ends, length_ms) in [
        (&claim, vec![instance_lease, message_lease], LEASE_MS),
        (&renewal, vec![instance_lease, message_lease], 60_000),
        (&take, vec![item_lease], LEASE_MS),
        (&take_renewal, vec![item_lease], 60_000),
        (&beat, vec![session_lease], 90_000),
    ] {
        let began = held_up(&queue, &mut session, call).await;
        for end in ends {
            let end = number(&mut session, end).await;
            let expected = expected(length_ms, began);
            assert!(expected.contains(&end), "{call}: {end} is not in {expected:?}");
        }
    }
    queue.remove().await;
}

/// Runs a call that finds the tables it writes locked for `HELD`; returns when it began.
async fn held_up(queue: &Queue, session: &mut PgConnection, call: &str) -> Instant {
    let pid = number(session, "SELECT pg_backend_pid()").await;
    let waits =
        format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type = 'Lock'");
    let mut holder = queue.connect().await;
    let mut watcher = queue.connect().await;
    // Readers pass, so that the call is kept from its writes alone.
    must(
        &mut holder,
        "BEGIN; LOCK TABLE instance_locks, orchestrator_queue, worker_queue, sessions IN EXCLUSIVE MODE",
    )
    .await;
    let began = Instant::now();
    let release = async {
        while number(&mut watcher, &waits).await == 0 {
            assert!(began.elapsed() < Duration::from_secs(10), "{call} does not wait");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(HELD).await;
        must(&mut holder, "COMMIT").await;
    };
    let (count, ()) = tokio::join!(number(session, call), release);
    assert_eq!(count, 1, "{call}");
    began
}

#[tokio::test]
async fn b1_the_setting_latest_counts_leases_from_the_later_clock() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    let behind_ms = now_ms() - 120_000;
    let ahead_ms = now_ms() + 120_000;
    // The library makes the setting known, and comes with the first call.
    assert_eq!(dispatcher::fetch(&mut session, behind_ms, LEASE_MS).await.expect("fetch"), None);
    let refused = must_fail(&mut session, "SET duroxide_queue.lease_clock = 'server'").await;
    assert_eq!(refused.code, "22023");
    for (clock, caller_ms, start_ms) in [
        ("caller", behind_ms, behind_ms),
        ("latest", behind_ms, now_ms()),
        ("caller", ahead_ms, ahead_ms),
        ("latest", ahead_ms, ahead_ms),
    ] {
        must(&mut session, &format!("SET duroxide_queue.lease_clock = {clock}; TRUNCATE orchestrator_queue, instance_locks, worker_queue, sessions")).await;
        dispatcher::enqueue(&mut session, "i", "1").await.expect("enqueue");
        must(&mut session, "SELECT enqueue_worker_work('1', 0, p_session_id => 's')").await;

        for (call, end, length_ms) in [
            (
                format!("SELECT count(*) FROM fetch_orchestration_item({caller_ms}, {LEASE_MS})"),
                "SELECT locked_until FROM instance_locks",
                LEASE_MS,
            ),
            (
                format!(
                    "SELECT count(renew_orchestration_item_lock(lock_token, {caller_ms}, 60)) FROM instance_locks"
                ),
                "SELECT locked_until FROM instance_locks",
                60_000,
            ),
            (
                format!("SELECT count(*) FROM fetch_work_item({caller_ms}, {LEASE_MS}, 'w', 45000)"),
                "SELECT locked_until FROM worker_queue",
                LEASE_MS,
            ),
            (
                format!("SELECT count(renew_work_item_lock(lock_token, {caller_ms}, 60)) FROM worker_queue"),
                "SELECT locked_until FROM worker_queue",
                60_000,
            ),
            (
                format!("SELECT renew_session_lock(ARRAY['w'], {caller_ms}, 90000, 200000)"),
                "SELECT locked_until FROM sessions",
                90_000,
            ),
        ] {
            assert_eq!(number(&mut session, &call).await, 1, "{clock}: {call}");
            let late_ms = number(&mut session, end).await - start_ms - length_ms;
            assert!((0..10_000).contains(&late_ms), "{clock}: {call}: the end is off by {late_ms} ms");
        }
    }
    queue.remove().await;
}

#[tokio::test]
async fn b3_a_renewal_never_moves_the_end_of_a_lease_earlier() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    dispatcher::enqueue(&mut session, "i", "1").await.expect("enqueue");
    must(&mut session, "SELECT enqueue_worker_work('1', 0, p_session_id => 's')").await;
    let turn = dispatcher::fetch(&mut session, NOW_MS, 600_000).await.expect("fetch").expect("the instance");
    let item = format!("SELECT out_lock_token FROM fetch_work_item({NOW_MS}, 600000, 'w', 600000)");
    let item = dispatcher::text(&mut session, &item).await;
    let ends = "SELECT sum(locked_until) FROM (SELECT locked_until FROM instance_locks UNION ALL SELECT locked_until FROM orchestrator_queue \
                UNION ALL SELECT locked_until FROM worker_queue UNION ALL SELECT locked_until FROM sessions) ends";
    let before = number(&mut session, ends).await;

    for (now_ms, extend_secs) in [(NOW_MS, 1), (NOW_MS - 50_000, 1), (NOW_MS, 0), (NOW_MS, -5)] {
        must(
            &mut session,
            &format!(
                "SELECT renew_orchestration_item_lock('{}', {now_ms}, {extend_secs}); \
                 SELECT renew_work_item_lock('{item}', {now_ms}, {extend_secs}); \
                 SELECT renew_session_lock(ARRAY['w'], {now_ms}, {extend_secs} * 1000, 600000)",
                turn.token
            ),
        )
        .await;
        assert_eq!(number(&mut session, ends).await, before, "at {now_ms} for {extend_secs} s");
    }
    queue.remove().await;
}

/// A transaction that is prepared commits at any time, also when its lease is long over.
#[tokio::test]
async fn a_turn_is_not_prepared_for_a_later_commit() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    dispatcher::enqueue(&mut session, "i", "1").await.expect("enqueue");
    let turn = dispatcher::fetch(&mut session, NOW_MS, 600_000).await.expect("fetch").expect("the instance");
    let ack =
        format!("SELECT ack_orchestration_item('{}', {NOW_MS}, 1, '[]', '[]', '[]', '{{}}')", turn.token);
    let prepare = format!("PREPARE TRANSACTION '{}'", queue.schema());

    must(&mut session, &format!("BEGIN; {ack}")).await;
    let error = must_fail(&mut session, &prepare).await;
    assert_eq!(error.code, "0A000", "{error}");
    assert_eq!(number(&mut session, "SELECT count(*) FROM instance_locks").await, 1);

    // An acknowledgement that was taken back is none, and other calls are as good as any.
    must(
        &mut session,
        &format!("BEGIN; SAVEPOINT s; {ack}; ROLLBACK TO s; SELECT enqueue_orchestrator_work('j', '1', 'epoch'); {prepare}"),
    )
    .await;
    must(&mut session, &format!("COMMIT PREPARED '{}'", queue.schema())).await;
    assert_eq!(number(&mut session, "SELECT count(*) FROM orchestrator_queue").await, 2);
    queue.remove().await;
}

/// Loading the history takes longer than the lease is.
#[tokio::test]
async fn b1_a_lease_lasts_whatever_the_turn_took_to_load() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    dispatcher::enqueue(&mut session, "i", "1").await.expect("enqueue");
    must(
        &mut session,
        "INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at) VALUES ('i', 'O', 'epoch', 'epoch'); \
         INSERT INTO history VALUES ('i', 1, 1, 'T', '{}', 'epoch'); \
         ALTER TABLE history RENAME TO plain; \
         CREATE VIEW history AS SELECT p.* FROM plain p, LATERAL (SELECT pg_sleep(1.5) WHERE p.instance_id <> '' OFFSET 0) slow",
    )
    .await;
    let began = Instant::now();
    let turn = dispatcher::fetch(&mut session, NOW_MS, 1_000).await.expect("fetch").expect("the instance");
    let ended_ms = NOW_MS + i64::try_from(began.elapsed().as_millis()).expect("seconds");

    // The answer has taken some of the time from where the lease begins to here.
    let ends = "SELECT min(locked_until) FROM (SELECT locked_until FROM instance_locks UNION ALL SELECT locked_until FROM orchestrator_queue) ends";
    let end_ms = number(&mut session, ends).await;
    assert!(end_ms >= NOW_MS + 2_500, "counted from before the turn was loaded: {}", end_ms - NOW_MS);
    assert!(end_ms <= ended_ms + 1_001, "{}", end_ms - ended_ms);
    must(&mut session, "DROP VIEW history; ALTER TABLE plain RENAME TO history").await;
    let ack = format!(
        "SELECT ack_orchestration_item('{}', {}, 1, '[]', '[]', '[]', '{{}}')",
        turn.token,
        NOW_MS + 2_000
    );
    must(&mut session, &ack).await;
    queue.remove().await;
}
