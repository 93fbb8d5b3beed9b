//! A fetch waits for nobody, whatever many other sessions do to the same instances; and dispatchers
//! that start at once are all served in their first call.

use crate::dispatcher::{self, Turn, code, sqlstate};
use crate::old_snapshot::{on_queue, queue_alone};
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::{Kind, Queue};
use duroxide_queue_tests::server::now_ms;
use sqlx::postgres::PgConnection;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Barrier;

const SESSIONS: usize = 64;
const ROUNDS: usize = 20;
const INSTANCES: usize = 8;
const LEASE_MS: i64 = 30_000;
/// How far the clock of some dispatchers is ahead: live leases of others are over for them.
const AHEAD_MS: i64 = 60_000;

/// In a database of its own: where another test makes schemas, sessions read the catalogs again and may meet a
/// vacuum that cuts one short, for which everybody waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a7_no_fetch_waits_and_nothing_deadlocks_while_64_sessions_fight_for_8_instances() {
    let database = Arc::new(queue_alone(Kind::Created).await);
    let over = Arc::new(AtomicBool::new(false));
    let sampler = tokio::spawn(sample_waits(database.clone(), over.clone()));

    let fighters: Vec<_> =
        (0..SESSIONS).map(|number| tokio::spawn(fight(database.clone(), Dice::of(number)))).collect();
    let mut claims = 0;
    for fighter in fighters {
        claims += fighter.await.expect("a fighter ends well");
    }
    over.store(true, Ordering::Relaxed);
    let seen = sampler.await.expect("the sampler ends well");

    println!("{claims} claims; {seen:?}");
    assert!(claims > SESSIONS * ROUNDS / 10, "only {claims} claims: nothing was fought for");
    assert!(seen.fetches > 0 && seen.waiting_writers > 0, "the sampler is blind: {seen:?}");
    assert_eq!(seen.waiting_fetches, Vec::<String>::new(), "fetches that waited for a lock");
    assert!(seen.chained_fetches * 100 <= seen.fetches, "a row that is passed over is waited for: {seen:?}");
    drained(&database).await;
    Arc::into_inner(database).expect("all others are done").remove().await;
}

#[tokio::test]
async fn the_sampler_sees_a_fetch_that_waits() {
    let queue = Queue::reference().await;
    let mut fetching = queue.connect().await;
    give_name(&mut fetching, queue.schema()).await;
    let mut competitor = queue.connect().await;
    let mut eye = queue.connect().await;
    dispatcher::enqueue(&mut competitor, "i", "1").await.expect("enqueue");
    // The key under which the reference claims, and for which it waits.
    must(&mut competitor, "BEGIN; SELECT pg_advisory_xact_lock(hashtext('i'))").await;

    let seen = async {
        let began = Instant::now();
        let mut seen = Seen::default();
        while seen.waiting_fetches.is_empty() {
            assert!(began.elapsed() < Duration::from_secs(30), "no wait in {} looks", seen.looks);
            seen.look(&mut eye, queue.schema()).await;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        must(&mut competitor, "COMMIT").await;
        seen
    };
    let (turn, seen) = tokio::join!(dispatcher::fetch(&mut fetching, now_ms(), LEASE_MS), seen);

    assert_eq!(turn.expect("fetch").expect("free at last").instance, "i");
    assert!(seen.waiting_fetches[0].starts_with("advisory: "), "{seen:?}");
    queue.remove().await;
}

/// Lets the sampler know a session.
async fn give_name(session: &mut PgConnection, name: &str) {
    let name = format!("SET application_name = '{name}'");
    ok(dispatcher::perform(session, &name).await, &name);
}

/// Does all that dispatchers and workers do, and fetches under a lock_timeout that any wait for
/// another session would exceed. Returns how many claims it had.
async fn fight(database: Arc<Database>, mut dice: Dice) -> usize {
    let mut session = database.connect().await;
    ok(dispatcher::perform(&mut session, "SET search_path = q").await, "SET");
    give_name(&mut session, database.name()).await;
    let mut claims = 0;
    for round in 0..ROUNDS {
        let instance = format!("i{}", dice.throw(INSTANCES));
        ok(dispatcher::enqueue(&mut session, &instance, &format!("{round}")).await, "enqueue");
        let item =
            format!("SELECT enqueue_worker_work('{round}', {}, p_session_id => 's{}')", now_ms(), round % 3);
        ok(dispatcher::perform(&mut session, &item).await, "enqueue_worker_work");

        let now = now_ms() + if dice.throw(5) == 0 { AHEAD_MS } else { 0 };
        let take =
            format!("SELECT out_lock_token FROM fetch_work_item({now}, {LEASE_MS}, 'w{}', 5)", dice.throw(4));
        ok(dispatcher::perform(&mut session, "SET lock_timeout = '1ms'").await, "SET");
        let turn = ok(dispatcher::fetch(&mut session, now, LEASE_MS).await, "fetch").flatten();
        let taken: sqlx::Result<Option<String>> =
            sqlx::query_scalar(&take).fetch_optional(&mut session).await;
        let taken = ok(taken, "fetch_work_item").flatten();
        ok(dispatcher::perform(&mut session, "RESET lock_timeout").await, "RESET");

        if let Some(turn) = turn {
            claims += 1;
            finish(&mut session, &turn, now, &mut dice).await;
        }
        if let Some(token) = taken {
            ok(dispatcher::done(&mut session, &token, now).await, "ack_worker");
        }
        if dice.throw(6) == 0 {
            let (one, other) = (dice.throw(INSTANCES), dice.throw(INSTANCES));
            let doomed = [format!("i{one}"), format!("i{other}")];
            ok(dispatcher::delete(&mut session, &[&doomed[0], &doomed[1]]).await, "delete");
        }
    }
    claims
}

/// Ends a claim in a transaction that holds the instance's key from one call to the next.
async fn finish(session: &mut PgConnection, turn: &Turn, now: i64, dice: &mut Dice) {
    let end = dice.throw(4);
    if end == 3 {
        return; // left to whoever is ahead
    }
    ok(dispatcher::perform(session, "BEGIN").await, "BEGIN");
    if ok(dispatcher::renew(session, &turn.token, now).await, "renew").is_some() {
        match end {
            0 => ok(dispatcher::abandon(session, &turn.token, now).await, "abandon"),
            _ => ok(dispatcher::ack(session, &turn.token, now).await, "ack"),
        };
    }
    ok(dispatcher::perform(session, "COMMIT").await, "COMMIT");
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

/// What a sampler has seen of the sessions of a queue that are at work.
#[derive(Debug, Default)]
struct Seen {
    looks: usize,
    /// Fetches, waiting or not.
    fetches: usize,
    /// What a fetch waited for, and its text.
    waiting_fetches: Vec<String>,
    /// Fetches that had to wait their turn to make a table's file longer: a matter of microseconds
    /// that ends by itself, since no session holds that lock while it does anything else.
    extending_fetches: usize,
    /// Fetches that waited for the next writer of a row whose writer had ended just as it was to be passed over:
    /// PostgreSQL locks the versions of a row one after the other (`heap_lock_updated_tuple_rec`), whatever
    /// SKIP LOCKED says.
    chained_fetches: usize,
    waiting_writers: usize,
}

impl Seen {
    async fn look(&mut self, eye: &mut PgConnection, name: &str) {
        const LOOK: &str = "SELECT query LIKE '%fetch%', CASE WHEN wait_event_type = 'Lock' THEN wait_event END, query, \
                    pid || ' ' || query_start \
             FROM pg_stat_activity WHERE application_name = $1 AND state = 'active'";
        type Active = Vec<(bool, Option<String>, String, String)>;
        let active: Active =
            sqlx::query_as(LOOK).bind(name).fetch_all(&mut *eye).await.expect("pg_stat_activity");
        // Waits are read later than queries. Who is at the same query after the look was at it all the while.
        let again: Active = if active.iter().any(|(is_fetch, waits_for, ..)| *is_fetch && waits_for.is_some())
        {
            sqlx::query_as(LOOK).bind(name).fetch_all(eye).await.expect("pg_stat_activity")
        } else {
            Vec::new()
        };
        self.looks += 1;
        for (is_fetch, waits_for, query, run) in active {
            self.fetches += usize::from(is_fetch);
            match waits_for {
                Some(_) if !is_fetch => self.waiting_writers += 1,
                Some(_) if !again.iter().any(|(.., now)| *now == run) => {}
                Some(lock) if lock == "extend" => self.extending_fetches += 1,
                Some(lock) if lock == "transactionid" => self.chained_fetches += 1,
                Some(lock) => self.waiting_fetches.push(format!("{lock}: {query}")),
                None => {}
            }
        }
    }
}

async fn sample_waits(database: Arc<Database>, over: Arc<AtomicBool>) -> Seen {
    let mut eye = database.connect().await;
    let mut seen = Seen::default();
    while !over.load(Ordering::Relaxed) {
        seen.look(&mut eye, database.name()).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    seen
}

/// Whatever is left can be claimed and acknowledged by one dispatcher, and then nothing is left.
async fn drained(database: &Database) {
    let mut session = on_queue(database).await;
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

/// Messages of as many instances, `i1` the first in line.
fn one_after_another(instances: i64) -> String {
    format!(
        "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at) \
         SELECT 'i' || i, '1', 'epoch'::timestamptz + i * interval '1 ms', 'epoch' \
         FROM generate_series(1, {instances}) i"
    )
}

/// A scan that took keys of rows which it does not return would keep others from them, and fill the lock table.
#[tokio::test]
async fn a_fetch_takes_the_key_of_what_it_claims_and_no_other() {
    const INSTANCES: i64 = 5_000;
    const HELD: i64 = 20;
    let queue = Queue::created().await;
    let mut competitor = queue.connect().await;
    let mut session = queue.connect().await;
    must(&mut competitor, &one_after_another(INSTANCES)).await;
    must(
        &mut competitor,
        &format!("INSERT INTO instance_locks SELECT 'i' || {HELD} + 1, 't', 9000000000000000, 0"),
    )
    .await;
    let hold_keys = format!(
        "BEGIN; SELECT pg_advisory_xact_lock(hashtext('{}.i' || i)::bigint) FROM generate_series(1, {HELD}) i",
        queue.schema()
    );
    // The second time no index gives the order: whatever the plan is, the first free row is looked for one by one.
    for change in ["SELECT 1", "DROP INDEX orchestrator_queue_ready_idx"] {
        must(&mut competitor, change).await;
        must(&mut competitor, &hold_keys).await;
        must(&mut session, "BEGIN").await;
        let turn = dispatcher::fetch(&mut session, now_ms(), LEASE_MS).await.expect("fetch");
        assert_eq!(turn.expect("free instances").instance, format!("i{}", HELD + 2), "{change}");
        let keys = "SELECT string_agg(((classid::bigint << 32) | objid::bigint = hashtext(current_schema() || '.i22')::bigint)::text, ' ') \
                    FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()";
        assert_eq!(dispatcher::text(&mut session, keys).await, "true", "{change}");
        must(&mut session, "ROLLBACK").await;
        must(&mut competitor, "ROLLBACK").await;
    }

    must(&mut session, &format!("DELETE FROM orchestrator_queue WHERE instance_id <> ALL (ARRAY(SELECT 'i' || i FROM generate_series(1, {HELD} + 1) i))")).await;
    must(&mut competitor, &hold_keys).await;
    must(&mut session, "BEGIN").await;
    for _ in 0..3 {
        assert_eq!(dispatcher::fetch(&mut session, now_ms(), LEASE_MS).await.expect("fetch"), None);
    }
    let keys = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()";
    assert_eq!(dispatcher::number(&mut session, keys).await, 0, "a fetch that finds nothing keeps nothing");
    must(&mut session, "COMMIT").await;
    must(&mut competitor, "ROLLBACK").await;
    queue.remove().await;
}

/// Not one of them is known to be taken before its rows are tried: whoever holds those does not keep to the keys.
#[tokio::test]
async fn a_fetch_gets_past_thousands_of_instances_whose_messages_somebody_holds() {
    const HELD: i64 = 3_000;
    let queue = Queue::created().await;
    let mut competitor = queue.connect().await;
    let mut session = queue.connect().await;
    must(&mut competitor, &one_after_another(HELD + 1)).await;
    must(&mut competitor, "BEGIN; SELECT FROM orchestrator_queue WHERE id < (SELECT max(id) FROM orchestrator_queue) FOR UPDATE")
        .await;

    let turn = dispatcher::fetch(&mut session, now_ms(), LEASE_MS).await.expect("fetch");

    assert_eq!(turn.expect("one is free").instance, format!("i{}", HELD + 1));
    must(&mut competitor, "ROLLBACK").await;
    queue.remove().await;
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
