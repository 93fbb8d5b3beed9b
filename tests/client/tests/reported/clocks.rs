//! B1 to B3: callers whose clocks are behind or ahead, and what comes after the end of a lease.

use crate::dispatcher::{self, number, text};
use duroxide_queue_tests::outcome::{must, must_fail};
use duroxide_queue_tests::queue::{Kind, Queue};
use duroxide_queue_tests::server::now_ms;
use sqlx::postgres::PgConnection;

const LEASE_MS: i64 = 30_000;

/// A queue with one message and one work item that have been visible since 1970, whose leases count
/// from the later clock, as those of the reference do.
async fn filled(kind: Kind) -> (Queue, PgConnection) {
    let queue = Queue::make(kind).await;
    let mut session = queue.connect().await;
    must(&mut session, "SELECT enqueue_orchestrator_work('i', '1', 'epoch'), enqueue_worker_work('1', 0)")
        .await;
    if kind != Kind::Reference {
        must(&mut session, "SET duroxide_queue.lease_clock = latest").await;
    }
    (queue, session)
}

#[tokio::test]
async fn b1_a_caller_that_is_behind_gets_a_lease_that_is_alive() {
    for kind in Kind::ALL {
        let (queue, mut session) = filled(kind).await;
        let server_ms = now_ms();

        let turn = dispatcher::fetch(&mut session, server_ms - 120_000, LEASE_MS).await.expect("fetch");
        let turn = turn.expect("the instance");
        let until = number(&mut session, "SELECT locked_until FROM instance_locks").await;
        let second = dispatcher::fetch(&mut session, server_ms, LEASE_MS).await.expect("fetch");
        dispatcher::ack(&mut session, &turn.token, server_ms).await.expect("ack");

        assert!(until >= server_ms + LEASE_MS, "{kind:?}: {until} is {} ms from now", until - server_ms);
        assert_eq!(second, None, "{kind:?}");
        queue.remove().await;
    }
}

#[tokio::test]
async fn b1_a_worker_that_is_behind_gets_a_lease_that_is_alive() {
    for kind in Kind::OURS {
        let (queue, mut session) = filled(kind).await;
        let server_ms = now_ms();

        let item = dispatcher::take(&mut session, server_ms - 60_000, LEASE_MS).await.expect("fetch");
        let item = item.expect("the item");
        let until = number(&mut session, "SELECT locked_until FROM worker_queue").await;
        let second = dispatcher::take(&mut session, server_ms, LEASE_MS).await.expect("fetch");
        dispatcher::done(&mut session, &item.token, server_ms).await.expect("ack_worker");

        assert!(until >= server_ms + LEASE_MS, "{kind:?}: {until} is {} ms from now", until - server_ms);
        assert_eq!(second, None, "{kind:?}");
        queue.remove().await;
    }
}

#[tokio::test]
async fn b1_the_reference_hands_out_a_dead_lease_to_a_worker_that_is_behind() {
    let (queue, mut session) = filled(Kind::Reference).await;
    let server_ms = now_ms();

    let first = dispatcher::take(&mut session, server_ms - 60_000, LEASE_MS).await.expect("fetch");
    let second = dispatcher::take(&mut session, server_ms, LEASE_MS).await.expect("fetch");

    assert_eq!(first.expect("the item").attempts, 1);
    assert_eq!(second.expect("the same item").attempts, 2);
    queue.remove().await;
}

#[tokio::test]
async fn b1_by_default_a_caller_that_is_behind_sees_what_is_visible_at_its_own_time() {
    let queue = Queue::created().await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        "SELECT enqueue_orchestrator_work('old', '1', to_timestamp(1)), enqueue_orchestrator_work('new', '1', to_timestamp(1000))",
    )
    .await;

    // All that counts is the caller's clock, and in it the first lease has not begun to expire.
    let turns = [
        dispatcher::fetch(&mut session, 500_000, LEASE_MS).await.expect("fetch"),
        dispatcher::fetch(&mut session, 500_000, LEASE_MS).await.expect("fetch"),
        dispatcher::fetch(&mut session, 500_000 + LEASE_MS / 2, LEASE_MS).await.expect("fetch"),
        dispatcher::fetch(&mut session, 1_000_000, LEASE_MS).await.expect("fetch"),
    ];

    let instances = turns.map(|turn| turn.map(|turn| turn.instance));
    let instances = instances.each_ref().map(Option::as_deref);
    assert_eq!(instances, [Some("old"), None, None, Some("old")]);
    queue.remove().await;
}

#[tokio::test]
async fn b2_of_two_owners_one_turn_commits_and_no_timer_is_lost_or_fires_twice() {
    for kind in Kind::ALL {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        let now_ms = now_ms();
        let ack = |token: &str, now_ms: i64, who: &str| {
            format!(
                "SELECT ack_orchestration_item('{token}', {now_ms}, 1, '[{{\"event_id\": 1, \"event_type\": \"{who}\", \"event_data\": \"1\"}}]', \
                 '[{{\"ActivityExecute\": {{\"instance\": \"i\", \"execution_id\": 1, \"id\": 1}}}}]', \
                 '[{{\"ExternalRaised\": {{\"instance\": \"other\"}}}}]', '{{\"orchestration_name\": \"O\", \"orchestration_version\": \"1\"}}')"
            )
        };
        must(
            &mut session,
            &format!(
                "SELECT enqueue_orchestrator_work('i', '\"start\"', 'epoch'), enqueue_orchestrator_work('i', '\"timer\"', to_timestamp({now_ms} / 1000.0) + interval '30 s')"
            ),
        )
        .await;

        let slow = dispatcher::fetch(&mut session, now_ms, LEASE_MS).await.expect("fetch").expect("i");
        // A minute ahead: the lease is over, and the timer is due.
        let ahead_ms = now_ms + 60_000;
        let fast = dispatcher::fetch(&mut session, ahead_ms, LEASE_MS).await.expect("fetch").expect("i");
        let lost = must_fail(&mut session, &ack(&slow.token, now_ms, "slow")).await;
        let traces = "SELECT (SELECT count(*) FROM history) + (SELECT count(*) FROM instances) + (SELECT count(*) FROM worker_queue) \
                             + (SELECT count(*) FROM orchestrator_queue WHERE instance_id = 'other')";
        let traces = number(&mut session, traces).await;
        must(&mut session, &ack(&fast.token, ahead_ms, "fast")).await;

        assert_eq!(slow.messages, "[\"start\"]", "{kind:?}");
        assert_eq!(fast.messages, "[\"start\", \"timer\"]", "{kind:?}");
        assert_eq!((lost.code.as_str(), lost.message.as_str()), ("P0001", "Invalid lock token"), "{kind:?}");
        assert_eq!(traces, 0, "{kind:?}: rows that the lost acknowledgement has left");
        let left = "SELECT concat_ws(', ', (SELECT string_agg(event_type, ' ') FROM history), (SELECT count(*) FROM worker_queue), \
                                           (SELECT string_agg(instance_id, ' ') FROM orchestrator_queue), (SELECT count(*) FROM instance_locks))";
        assert_eq!(text(&mut session, left).await, "fast, 1, other, 0", "{kind:?}");
        queue.remove().await;
    }
}

#[tokio::test]
async fn b3_nothing_is_accepted_after_the_end_of_a_lease_but_an_ack_that_names_no_time() {
    for kind in Kind::ALL {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        let now_ms = now_ms();
        must(
            &mut session,
            "SELECT enqueue_orchestrator_work('i', '1', 'epoch'), enqueue_worker_work('1', 0)",
        )
        .await;
        let turn = dispatcher::fetch(&mut session, now_ms, 200).await.expect("fetch").expect("i").token;
        let item = dispatcher::take(&mut session, now_ms, 200).await.expect("fetch").expect("it").token;
        // Nobody has fetched again; time is an argument.
        let late_ms = now_ms + 60_000;

        for (call, expected) in [
            (
                format!("ack_orchestration_item('{turn}', {late_ms}, 1, '[]', '[]', '[]', '{{}}')"),
                "Invalid lock token",
            ),
            (
                format!("renew_orchestration_item_lock('{turn}', {late_ms}, 30)"),
                "Lock token invalid, expired, or already released",
            ),
            (
                format!("ack_worker('{item}', 'i', '{{}}', {late_ms})"),
                "Worker queue item not found or already processed",
            ),
            (
                format!("renew_work_item_lock('{item}', {late_ms}, 30)"),
                "Lock token invalid, expired, or already acked",
            ),
        ] {
            let error = must_fail(&mut session, &format!("SELECT {call}")).await;
            assert_eq!(
                (error.code.as_str(), error.message.as_str()),
                ("P0001", expected),
                "{kind:?}: {call}"
            );
        }
        let untouched =
            "SELECT (SELECT count(*) FROM orchestrator_queue) * 10 + (SELECT count(*) FROM worker_queue)";
        assert_eq!(number(&mut session, untouched).await, 11, "{kind:?}");
        let timeless = must_fail(&mut session, &format!("SELECT ack_worker('{item}', 'i', '{{}}')")).await;
        assert_eq!(timeless.message, "p_now_ms is required when p_completion_json is provided", "{kind:?}");
        must(&mut session, &format!("SELECT ack_worker('{item}')")).await;
        assert_eq!(number(&mut session, untouched).await, 10, "{kind:?}");
        queue.remove().await;
    }
}

#[tokio::test]
async fn b3_a_renewal_of_an_instance_moves_lock_row_and_messages_together_and_never_back() {
    for kind in Kind::OURS {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        let now_ms = now_ms();
        for message in ["1", "2"] {
            dispatcher::enqueue(&mut session, "i", message).await.expect("enqueue");
        }
        let token = dispatcher::fetch(&mut session, now_ms, 60_000).await.expect("fetch").expect("i").token;
        let ends = "SELECT string_agg(DISTINCT locked_until::text, ' ') FROM (SELECT locked_until FROM instance_locks UNION ALL SELECT locked_until FROM orchestrator_queue) ends";
        let claimed = text(&mut session, ends).await;

        must(
            &mut session,
            &format!("SELECT renew_orchestration_item_lock('{token}', {}, 1)", now_ms - 50_000),
        )
        .await;
        let after_a_short_one = text(&mut session, ends).await;
        must(&mut session, &format!("SELECT renew_orchestration_item_lock('{token}', {now_ms}, 600)")).await;
        let after_a_long_one = text(&mut session, ends).await;

        assert_eq!(after_a_short_one, claimed, "{kind:?}");
        let end: i64 = after_a_long_one.parse().expect("one end for the lock row and both messages");
        assert!(end >= now_ms + 600_000, "{kind:?}: {end}");
        queue.remove().await;
    }
}

#[tokio::test]
async fn b3_sessions_are_renewed_while_they_live_and_are_used() {
    for kind in Kind::ALL {
        let queue = Queue::make(kind).await;
        let mut session = queue.connect().await;
        let now_ms = now_ms();
        must(
            &mut session,
            &format!(
                "INSERT INTO sessions VALUES ('s1', 'live', {now_ms} + 20000, {now_ms}), ('s2', 'expired', {now_ms} - 1, {now_ms}), \
                 ('s3', 'idle', {now_ms} + 20000, {now_ms} - 600000), ('s4', 'not asked for', {now_ms} + 20000, {now_ms})"
            ),
        )
        .await;

        let renewed = number(
            &mut session,
            &format!(
                "SELECT renew_session_lock(ARRAY['live', 'expired', 'idle', NULL], {now_ms}, 30000, 300000)"
            ),
        )
        .await;

        let ends = format!(
            "SELECT string_agg(worker_id, ', ') FROM sessions WHERE locked_until >= {now_ms} + 30000"
        );
        assert_eq!(renewed, 1, "{kind:?}");
        assert_eq!(text(&mut session, &ends).await, "live", "{kind:?}");
        queue.remove().await;
    }
}
