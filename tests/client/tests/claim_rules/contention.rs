//! A fetch waits for nobody, whatever many other sessions do to the same instances; and dispatchers
//! that start at once are all served in their first call.

use crate::dispatcher::{self, Turn, code, sqlstate};
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::Queue;
use duroxide_queue_tests::server::now_ms;
use sqlx::postgres::PgConnection;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Barrier;

const SESSIONS: usize = 32;
const ROUNDS: usize = 30;
const INSTANCES: usize = 8;
const LEASE_MS: i64 = 30_000;
/// How far the clock of some dispatchers is ahead: live leases of others are over for them.
const AHEAD_MS: i64 = 60_000;
const FETCHING: &str = "duroxide_queue test: fetching";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_fetch_waits_while_sessions_fight_for_a_few_instances() {
    let queue = Arc::new(Queue::created().await);
    let over = Arc::new(AtomicBool::new(false));
    let sampler = tokio::spawn(sample_waits(queue.clone(), over.clone()));

    let fighters: Vec<_> =
        (0..SESSIONS).map(|number| tokio::spawn(fight(queue.clone(), Dice::of(number)))).collect();
    let mut claims = 0;
    for fighter in fighters {
        claims += fighter.await.expect("a fighter ends well");
    }
    over.store(true, Ordering::Relaxed);
    let (samples, waits) = sampler.await.expect("the sampler ends well");

    println!("{claims} claims; {samples} looks at the fetching sessions");
    assert!(claims > SESSIONS * ROUNDS / 10, "only {claims} claims: nothing was fought for");
    assert_eq!(waits, Vec::<String>::new(), "fetching sessions that waited for a lock");
    drained(&queue).await;
    Arc::into_inner(queue).expect("all others are done").remove().await;
}

/// Fetches under a lock_timeout that any wait for another session would exceed; writes on a
/// connection of its own, since writers may wait for the key. Returns how many claims it had.
async fn fight(queue: Arc<Queue>, mut dice: Dice) -> usize {
    let mut fetching = queue.connect().await;
    for setting in ["SET lock_timeout = '1ms'".to_owned(), format!("SET application_name = '{FETCHING}'")] {
        ok(dispatcher::perform(&mut fetching, &setting).await, &setting);
    }
    let mut writing = queue.connect().await;
    let mut claims = 0;
    for round in 0..ROUNDS {
        let instance = format!("i{}", dice.throw(INSTANCES));
        ok(dispatcher::enqueue(&mut writing, &instance, &format!("{round}")).await, "enqueue");
        let item =
            format!("SELECT enqueue_worker_work('{round}', {}, p_session_id => 's{}')", now_ms(), round % 3);
        ok(dispatcher::perform(&mut writing, &item).await, "enqueue_worker_work");

        let now = now_ms() + if dice.throw(5) == 0 { AHEAD_MS } else { 0 };
        if let Some(turn) = ok(dispatcher::fetch(&mut fetching, now, LEASE_MS).await, "fetch").flatten() {
            claims += 1;
            finish(&mut writing, &turn, now, &mut dice).await;
        }
        let take =
            format!("SELECT out_lock_token FROM fetch_work_item({now}, {LEASE_MS}, 'w{}', 5)", dice.throw(4));
        let taken: sqlx::Result<Option<String>> =
            sqlx::query_scalar(&take).fetch_optional(&mut fetching).await;
        if let Some(token) = ok(taken, "fetch_work_item").flatten() {
            ok(dispatcher::done(&mut writing, &token, now).await, "ack_worker");
        }
        if dice.throw(20) == 0 {
            let (one, other) = (dice.throw(INSTANCES), dice.throw(INSTANCES));
            let doomed = [format!("i{one}"), format!("i{other}")];
            ok(dispatcher::delete(&mut writing, &[&doomed[0], &doomed[1]]).await, "delete");
        }
    }
    claims
}

async fn finish(session: &mut PgConnection, turn: &Turn, now: i64, dice: &mut Dice) {
    match dice.throw(4) {
        0 => {
            ok(dispatcher::abandon(session, &turn.token, now).await, "abandon");
        }
        1 => {
            ok(dispatcher::renew(session, &turn.token, now).await, "renew");
            ok(dispatcher::ack(session, &turn.token, now).await, "ack");
        }
        2 => {
            ok(dispatcher::ack(session, &turn.token, now).await, "ack");
        }
        // Left to whoever is ahead.
        _ => {}
    }
}

/// What a call gave; `None` if another had taken the lease over. Any other error is a failure: a
/// wait that was cut short (55P03), a deadlock (40P01), and whatever else.
fn ok<T>(result: sqlx::Result<T>, call: &str) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if sqlstate(&error) == code::RAISE_EXCEPTION => None,
        Err(error) => panic!("{call}: {} {error}", sqlstate(&error)),
    }
}

/// Looks at what fetching sessions wait for, until all is over. Sessions that make one table's file
/// longer take turns (`extend`), a matter of microseconds that ends by itself: no session holds that
/// lock while it does anything else.
async fn sample_waits(queue: Arc<Queue>, over: Arc<AtomicBool>) -> (usize, Vec<String>) {
    let mut session = queue.connect().await;
    let look = format!(
        "SELECT wait_event || ': ' || query FROM pg_stat_activity \
         WHERE application_name = '{FETCHING}' AND state = 'active' AND wait_event_type = 'Lock' AND wait_event <> 'extend'"
    );
    let mut waits = Vec::new();
    let mut samples = 0;
    while !over.load(Ordering::Relaxed) {
        waits.extend(
            sqlx::query_scalar::<_, String>(&look).fetch_all(&mut session).await.expect("pg_stat_activity"),
        );
        samples += 1;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    (samples, waits)
}

/// Whatever is left can be claimed and acknowledged by one dispatcher, and then nothing is left.
async fn drained(queue: &Queue) {
    let mut session = queue.connect().await;
    let later = now_ms() + 10 * AHEAD_MS;
    while let Some(turn) = dispatcher::fetch(&mut session, later, LEASE_MS).await.expect("fetch") {
        dispatcher::ack(&mut session, &turn.token, later).await.expect("ack");
    }
    let left = "SELECT (SELECT count(*) FROM orchestrator_queue) + (SELECT count(*) FROM instance_locks WHERE locked_until > 0 \
                AND EXISTS (SELECT FROM orchestrator_queue q WHERE q.instance_id = instance_locks.instance_id))";
    assert_eq!(dispatcher::number(&mut session, left).await, 0, "messages that nobody can claim");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dispatchers_that_start_at_once_all_get_an_instance_in_their_first_call() {
    const DISPATCHERS: usize = 64;
    for messages in [1, 3] {
        let queue = Queue::created().await;
        let mut sessions = Vec::new();
        for _ in 0..DISPATCHERS {
            let mut session = queue.connect().await;
            // Finds nothing, but makes the plans.
            assert_eq!(dispatcher::fetch(&mut session, now_ms(), LEASE_MS).await.expect("fetch"), None);
            sessions.push(session);
        }
        must(
            &mut queue.connect().await,
            &format!(
                "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
                 SELECT 'i' || i, '1', 'epoch', 'epoch' \
                 FROM generate_series(1, {DISPATCHERS}) i, generate_series(1, {messages})"
            ),
        )
        .await;
        let start = Arc::new(Barrier::new(DISPATCHERS));
        let mut dispatchers = Vec::new();
        for mut session in sessions {
            let start = start.clone();
            dispatchers.push(tokio::spawn(async move {
                start.wait().await;
                dispatcher::fetch(&mut session, now_ms(), LEASE_MS).await.expect("fetch")
            }));
        }
        let mut got = Vec::new();
        for dispatcher in dispatchers {
            got.push(dispatcher.await.expect("a dispatcher ends well"));
        }

        let empty_handed = got.iter().filter(|turn| turn.is_none()).count();
        assert_eq!(
            empty_handed, 0,
            "of {DISPATCHERS} dispatchers on as many instances with {messages} messages"
        );
        let instances: BTreeSet<_> = got.iter().flatten().map(|turn| &turn.instance).collect();
        assert_eq!(instances.len(), DISPATCHERS, "each has an instance of its own");
        queue.remove().await;
    }
}

/// Choices that are the same in each run.
struct Dice(u64);

impl Dice {
    fn of(number: usize) -> Dice {
        Dice(number as u64 + 1)
    }

    /// One of `sides`, from zero on.
    fn throw(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}
