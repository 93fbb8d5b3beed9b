//! A7: calls that write the same instances do not deadlock among themselves; a deadlock that callers
//! bring about with several calls in one transaction reaches them as 40P01 and leaves nothing half done.

use crate::dispatcher::{self, code, number, sqlstate, text};
use duroxide_queue_tests::outcome::{must, must_fail};
use duroxide_queue_tests::queue::Queue;
use duroxide_queue_tests::server::now_ms;
use sqlx::Row;
use sqlx::postgres::PgConnection;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PAIRS: usize = 4;
const ACKNOWLEDGEMENTS: i64 = 400;
const FAN_OUT: i64 = 50;
const LEASE_MS: i64 = 30_000;
/// How far the clocks of some dispatchers are ahead: live leases of others are over for them.
const AHEAD_MS: i64 = 60_000;

/// What all sessions of the test share.
#[derive(Default)]
struct Fight {
    /// Tokens of claims, for those who renew and abandon what is not theirs.
    tokens: Mutex<Vec<String>>,
    acknowledged: AtomicI64,
    sent: AtomicI64,
    consumed: AtomicI64,
    deleted: AtomicI64,
    over: AtomicBool,
}

/// The value, or `None` if another call has taken the lease away. Anything else is a failure: above
/// all a deadlock.
fn unless_lost<T>(result: sqlx::Result<T>, call: &str) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if sqlstate(&error) == code::RAISE_EXCEPTION => None,
        Err(error) => panic!("{call}: {} {error}", sqlstate(&error)),
    }
}

/// Claims, and acknowledges with fifty messages to the partner of what it has claimed.
async fn acknowledge(mut session: PgConnection, fight: Arc<Fight>, ahead_ms: i64) {
    while fight.acknowledged.load(Relaxed) < ACKNOWLEDGEMENTS {
        let now_ms = now_ms() + ahead_ms;
        let claim = sqlx::query(
            "SELECT out_instance_id, jsonb_array_length(out_messages)::bigint, out_lock_token \
             FROM fetch_orchestration_item($1, $2)",
        );
        let claim = claim.bind(now_ms).bind(LEASE_MS).fetch_optional(&mut session).await;
        let Some(turn) = unless_lost(claim, "fetch").flatten() else {
            // Deleted with all their messages: they begin again.
            for pair in 0..PAIRS {
                dispatcher::enqueue(&mut session, &format!("a{pair}"), "1").await.expect("enqueue");
                fight.sent.fetch_add(1, Relaxed);
            }
            continue;
        };
        let (instance, messages, token): (String, i64, String) = (turn.get(0), turn.get(1), turn.get(2));
        fight.tokens.lock().expect("nobody panics with it").push(token.clone());
        let partner = if instance.starts_with('a') { 'b' } else { 'a' };
        let partner = format!("{partner}{}", &instance[1..]);
        let ack = sqlx::query(
            "SELECT ack_orchestration_item($1, $2, 1, '[]', '[]', \
               (SELECT jsonb_agg(jsonb_build_object('ExternalRaised', jsonb_build_object('instance', $3::text))) FROM generate_series(1, $4)), \
               '{\"orchestration_name\": \"O\", \"orchestration_version\": \"1\"}')",
        );
        let ack = ack.bind(&token).bind(now_ms).bind(&partner).bind(FAN_OUT).execute(&mut session).await;
        if unless_lost(ack, "ack").is_some() {
            fight.acknowledged.fetch_add(1, Relaxed);
            fight.consumed.fetch_add(messages, Relaxed);
            fight.sent.fetch_add(FAN_OUT, Relaxed);
        }
    }
    fight.over.store(true, Relaxed);
}

/// Renews and abandons whatever has been claimed lately, by whomever.
async fn meddle(mut session: PgConnection, fight: Arc<Fight>) {
    let mut round = 0;
    while !fight.over.load(Relaxed) {
        let token = fight.tokens.lock().expect("nobody panics with it").last().cloned();
        let Some(token) = token else {
            tokio::task::yield_now().await;
            continue;
        };
        round += 1;
        if round % 5 == 0 {
            unless_lost(dispatcher::abandon(&mut session, &token, now_ms()).await, "abandon");
        } else {
            unless_lost(dispatcher::renew(&mut session, &token, now_ms()).await, "renew");
        }
    }
}

/// Deletes pairs, in the order given.
async fn delete(mut session: PgConnection, fight: Arc<Fight>, order: [&'static str; 2]) {
    let mut round = 0;
    while !fight.over.load(Relaxed) {
        let pair = round % PAIRS;
        round += 1;
        let pair = order.map(|half| format!("{half}{pair}"));
        let deleted =
            sqlx::query_scalar("SELECT queue_messages_deleted FROM delete_instances_atomic($1, true)")
                .bind(&pair[..])
                .fetch_one(&mut session)
                .await;
        fight.deleted.fetch_add(unless_lost(deleted, "delete").unwrap_or(0), Relaxed);
        // Rarer than turns, or there would be none.
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a7_pairs_that_send_to_each_other_do_not_deadlock() {
    let queue = Queue::created().await;
    let fight = Arc::new(Fight::default());
    let mut session = queue.connect().await;

    let mut sessions = Vec::new();
    for number in 0..2 * PAIRS {
        let ahead_ms = if number % 4 == 3 { AHEAD_MS } else { 0 };
        sessions.push(tokio::spawn(acknowledge(queue.connect().await, fight.clone(), ahead_ms)));
    }
    for _ in 0..2 {
        sessions.push(tokio::spawn(meddle(queue.connect().await, fight.clone())));
    }
    for order in [["a", "b"], ["b", "a"]] {
        sessions.push(tokio::spawn(delete(queue.connect().await, fight.clone(), order)));
    }
    for session in sessions {
        session.await.expect("no deadlock, and no other error");
    }

    let [sent, consumed, deleted] =
        [&fight.sent, &fight.consumed, &fight.deleted].map(|count| count.load(Relaxed));
    let left = number(&mut session, "SELECT count(*) FROM orchestrator_queue").await;
    println!("{sent} messages sent, {consumed} consumed, {deleted} deleted, {left} left");
    assert!(deleted > 0, "no deletion has met a message");
    assert_eq!(
        sent,
        consumed + deleted + left,
        "sent = consumed {consumed} + deleted {deleted} + left {left}"
    );
    queue.remove().await;
}

#[tokio::test]
async fn a7_a_deadlock_of_the_callers_making_is_40p01_and_leaves_nothing() {
    let queue = Queue::created().await;
    let mut winner = queue.connect().await;
    let mut loser = queue.connect().await;
    let mut eye = queue.connect().await;
    let now_ms = now_ms();
    let mut tokens = Vec::new();
    for instance in ["a", "b"] {
        dispatcher::enqueue(&mut eye, instance, "1").await.expect("enqueue");
        let turn = dispatcher::fetch(&mut eye, now_ms, LEASE_MS).await.expect("fetch").expect("it");
        tokens.push(turn.token);
    }
    let ack = |token: &str, who: &str| {
        format!(
            "SELECT ack_orchestration_item('{token}', {now_ms}, 1, '[{{\"event_id\": 1, \"event_type\": \"{who}\", \"event_data\": \"1\"}}]', \
             '[{{}}]', '[{{\"ExternalRaised\": {{\"instance\": \"c\"}}}}]', '{{\"orchestration_name\": \"O\", \"orchestration_version\": \"1\"}}')"
        )
    };
    // Only the loser looks for a deadlock.
    must(&mut winner, "SET deadlock_timeout = '100s'; BEGIN").await;
    must(&mut loser, "SET deadlock_timeout = '10ms'; BEGIN").await;
    must(&mut winner, &ack(&tokens[0], "winner")).await;
    must(&mut loser, &ack(&tokens[1], "loser")).await;
    let pid = number(&mut winner, "SELECT pg_backend_pid()").await;
    let waits =
        format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type = 'Lock'");

    let second_of_winner = ack(&tokens[1], "winner");
    let deadlock = async {
        while number(&mut eye, &waits).await == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let error = must_fail(&mut loser, &ack(&tokens[0], "loser")).await;
        must(&mut loser, "ROLLBACK").await;
        error
    };
    let (_, error) = tokio::join!(must(&mut winner, &second_of_winner), deadlock);
    must(&mut winner, "COMMIT").await;

    assert_eq!((error.code.as_str(), error.message.as_str()), ("40P01", "deadlock detected"));
    let history =
        "SELECT string_agg(instance_id || ' ' || event_type, ', ' ORDER BY instance_id) FROM history";
    assert_eq!(text(&mut eye, history).await, "a winner, b winner");
    let sent = "SELECT (SELECT count(*) FROM orchestrator_queue WHERE instance_id = 'c') * 10 + (SELECT count(*) FROM worker_queue)";
    assert_eq!(number(&mut eye, sent).await, 22);
    queue.remove().await;
}

/// A heartbeat locks a worker's sessions one after the other, and so does whoever removes them, in an order of his own.
#[tokio::test]
async fn a7_heartbeats_and_the_removal_of_sessions_wait_for_none_that_is_over() {
    let queue = Queue::created().await;
    let mut holder = queue.connect().await;
    let mut session = queue.connect().await;
    must(
        &mut session,
        "INSERT INTO sessions VALUES ('b', 'w', 1000, 0), ('a', 'w', 1000, 0), ('live', 'w', 9000, 0), ('gone', 'w', 1000, 0)",
    )
    .await;
    must(&mut holder, "BEGIN; SELECT FROM sessions WHERE session_id IN ('a', 'b') FOR UPDATE").await;
    must(&mut session, "SET lock_timeout = '1ms'").await;

    assert_eq!(number(&mut session, "SELECT renew_session_lock(ARRAY['w'], 5000, 30000, 9000)").await, 1);
    assert_eq!(number(&mut session, "SELECT cleanup_orphaned_sessions(5000)").await, 1);

    must(&mut holder, "COMMIT").await;
    assert_eq!(number(&mut session, "SELECT cleanup_orphaned_sessions(5000)").await, 2);
    assert_eq!(text(&mut session, "SELECT session_id FROM sessions").await, "live");
    queue.remove().await;
}
