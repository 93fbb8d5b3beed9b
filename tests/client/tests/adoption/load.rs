//! Dispatchers and workers that pass messages round, and leave a trace by which it can be told
//! whether each message was consumed by one committed turn and no more.
//!
//! A chain is a message that goes from hop to hop, directly or by way of a work item. A turn writes
//! an event for each hop that it consumes and sends the next in the same acknowledgement, so a lost
//! message breaks its chain and one that counts twice is found twice in the history.

use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::server::now_ms;
use serde_json::{Value, json};
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgDatabaseError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

const CHAINS: u64 = 24;
const INSTANCES: u64 = 16;
const DISPATCHERS: u64 = 5;
const WORKERS: u64 = 3;
const LEASE_MS: i64 = 400;
/// Longer than a lease: the turn is taken over, or its acknowledgement comes too late.
const STALL: Duration = Duration::from_millis(450);
const PATIENCE: Duration = Duration::from_secs(60);

/// What the clients were told beside success, and how often.
pub type Refusals = BTreeMap<String, u64>;

/// Clients at work.
pub struct Load {
    winding_down: Arc<AtomicBool>,
    done: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Refusals>>,
}

impl Load {
    /// Sends the first message of each chain and sets the clients to work on the queue `app`.
    pub async fn start(database: &Database) -> Load {
        let mut session = session(database).await;
        for chain in 0..CHAINS {
            let hop = Hop { chain, number: 0, last: false };
            sqlx::query("SELECT enqueue_orchestrator_work($1, $2, now())")
                .bind(hop.instance())
                .bind(hop.message().to_string())
                .execute(&mut session)
                .await
                .expect("enqueue");
        }
        let winding_down = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicBool::new(false));
        let mut clients = Vec::new();
        for number in 0..DISPATCHERS + WORKERS {
            let client = Client {
                session: self::session(database).await,
                chance: Chance(number + 1),
                winding_down: winding_down.clone(),
                done: done.clone(),
                refusals: Refusals::new(),
            };
            clients.push(if number < DISPATCHERS {
                tokio::spawn(client.dispatch())
            } else {
                tokio::spawn(client.work())
            });
        }
        Load { winding_down, done, clients }
    }

    /// Lets every chain come to its end.
    pub async fn finish(self, session: &mut PgConnection) -> Refusals {
        self.winding_down.store(true, Ordering::Relaxed);
        let begin = Instant::now();
        while waiting(session).await > 0 {
            assert!(
                begin.elapsed() < PATIENCE,
                "{} messages and work items are stuck",
                waiting(session).await
            );
            assert!(self.clients.iter().all(|client| !client.is_finished()), "a client has given up");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.done.store(true, Ordering::Relaxed);
        let mut refusals = Refusals::new();
        for client in self.clients {
            for (refusal, count) in client.await.expect("no client panics") {
                *refusals.entry(refusal).or_default() += count;
            }
        }
        refusals
    }
}

/// Turns that have been committed so far.
pub async fn hops(session: &mut PgConnection) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM app.history").fetch_one(session).await.expect("history")
}

/// Every chain has each of its hops once, from the first to the one that ends it.
pub async fn nothing_is_lost_or_doubled(session: &mut PgConnection) {
    let rows = must(session, "SELECT event_data FROM app.history").await;
    let mut chains: BTreeMap<u64, Vec<Hop>> = BTreeMap::new();
    for row in rows {
        let event: Value = serde_json::from_str(row[0].as_deref().expect("an event")).expect("JSON");
        let hop = Hop::read(event["hop"].as_str().expect("a hop"));
        chains.entry(hop.chain).or_default().push(hop);
    }
    assert_eq!(chains.len() as u64, CHAINS);
    for (chain, mut hops) in chains {
        hops.sort_by_key(|hop| hop.number);
        let numbers: Vec<_> = hops.iter().map(|hop| hop.number).collect();
        assert_eq!(numbers, (0..hops.len() as u64).collect::<Vec<_>>(), "the hops of chain {chain}");
        assert!(hops.iter().rev().skip(1).all(|hop| !hop.last), "chain {chain} went on after its end");
        assert!(hops.last().is_some_and(|hop| hop.last), "chain {chain} ends with a message that was lost");
    }
}

async fn waiting(session: &mut PgConnection) -> i64 {
    sqlx::query_scalar(
        "SELECT (SELECT count(*) FROM app.orchestrator_queue) + (SELECT count(*) FROM app.worker_queue)",
    )
    .fetch_one(session)
    .await
    .expect("the queues")
}

/// A change of hands gives up before anybody looks for deadlocks, however slow the machine is: a real one is
/// found ten seconds late.
pub const LONG_DEADLOCKS: &str = "SET deadlock_timeout = '10s'";

async fn session(database: &Database) -> PgConnection {
    let mut session = database.connect().await;
    must(&mut session, &format!("SET search_path = app; {LONG_DEADLOCKS}")).await;
    session
}

#[derive(Clone, Copy, Debug)]
struct Hop {
    chain: u64,
    number: u64,
    last: bool,
}

impl Hop {
    fn instance(&self) -> String {
        format!("i{}", (self.chain * 7 + self.number) % INSTANCES)
    }

    fn written(&self) -> String {
        format!("{} {} {}", self.chain, self.number, self.last)
    }

    fn read(text: &str) -> Hop {
        let parts: Vec<_> = text.split(' ').collect();
        Hop {
            chain: parts[0].parse().expect("a chain"),
            number: parts[1].parse().expect("a number"),
            last: parts[2] == "true",
        }
    }

    fn message(&self) -> Value {
        json!({"ExternalRaised": {"instance": self.instance(), "name": "hop", "data": self.written()}})
    }

    fn work_item(&self) -> Value {
        json!({"ActivityExecute": {
            "instance": self.instance(), "execution_id": 1, "id": self.number, "name": "hop", "input": self.written()
        }})
    }
}

/// Chance that is the same in each run.
struct Chance(u64);

impl Chance {
    fn percent(&mut self, percent: u64) -> bool {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % 100 < percent
    }
}

struct Client {
    session: PgConnection,
    chance: Chance,
    winding_down: Arc<AtomicBool>,
    done: Arc<AtomicBool>,
    refusals: Refusals,
}

impl Client {
    async fn dispatch(mut self) -> Refusals {
        while !self.done.load(Ordering::Relaxed) {
            let turn = self.turn().await;
            self.note(turn).await;
        }
        self.refusals
    }

    async fn work(mut self) -> Refusals {
        while !self.done.load(Ordering::Relaxed) {
            let item = self.work_item().await;
            self.note(item).await;
        }
        self.refusals
    }

    /// Counts what a client survives; anything else is a failure.
    async fn note(&mut self, outcome: sqlx::Result<bool>) {
        match outcome {
            Ok(true) => {}
            Ok(false) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(sqlx::Error::Database(error)) => {
                let error = error.downcast::<PgDatabaseError>();
                let lost = error.code() == "P0001"
                    && ["Invalid lock token", "not found or already processed", "Lock token invalid"]
                        .iter()
                        .any(|phrase| error.message().contains(phrase));
                // The client tries again after a deadlock.
                assert!(lost || error.code() == "40P01", "{} {}", error.code(), error.message());
                *self.refusals.entry(format!("{} {}", error.code(), error.message())).or_default() += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// One turn; whether there was one to do.
    async fn turn(&mut self) -> sqlx::Result<bool> {
        let claim = sqlx::query(
            "SELECT out_lock_token, out_messages::text, jsonb_array_length(out_history) \
             FROM fetch_orchestration_item($1, $2)",
        )
        .bind(now_ms())
        .bind(LEASE_MS)
        .fetch_optional(&mut self.session)
        .await?;
        let Some(claim) = claim else { return Ok(false) };
        let (token, messages, events): (String, String, i32) = (claim.get(0), claim.get(1), claim.get(2));
        if self.chance.percent(3) {
            sqlx::query("SELECT abandon_orchestration_item($1, $2, 10)")
                .bind(&token)
                .bind(now_ms())
                .execute(&mut self.session)
                .await?;
            return Ok(true);
        }
        if self.chance.percent(5) {
            sqlx::query("SELECT renew_orchestration_item_lock($1, $2, 1)")
                .bind(&token)
                .bind(now_ms())
                .execute(&mut self.session)
                .await?;
        }
        if self.chance.percent(2) {
            tokio::time::sleep(STALL).await;
        }
        let (mut history, mut work_items, mut sent) = (Vec::new(), Vec::new(), Vec::new());
        let messages: Vec<Value> = serde_json::from_str(&messages).expect("a list");
        for (message, event_id) in messages.iter().zip(events + 1..) {
            let hop = Hop::read(message["ExternalRaised"]["data"].as_str().expect("a hop"));
            history.push(json!({"event_id": event_id, "event_type": "Consumed",
                                "event_data": json!({"hop": hop.written()}).to_string()}));
            if hop.last {
                continue;
            }
            let last = self.winding_down.load(Ordering::Relaxed);
            let next = Hop { number: hop.number + 1, last, ..hop };
            if self.chance.percent(50) {
                sent.push(next.message());
            } else {
                work_items.push(next.work_item());
            }
        }
        sqlx::query("SELECT ack_orchestration_item($1, $2, 1, $3::jsonb, $4::jsonb, $5::jsonb, $6::jsonb)")
            .bind(&token)
            .bind(now_ms())
            .bind(Value::from(history).to_string())
            .bind(Value::from(work_items).to_string())
            .bind(Value::from(sent).to_string())
            .bind(r#"{"orchestration_name": "O", "orchestration_version": "1.0.0"}"#)
            .execute(&mut self.session)
            .await?;
        Ok(true)
    }

    /// One work item; whether there was one to do.
    async fn work_item(&mut self) -> sqlx::Result<bool> {
        let claim = sqlx::query("SELECT out_work_item, out_lock_token FROM fetch_work_item($1, $2)")
            .bind(now_ms())
            .bind(LEASE_MS)
            .fetch_optional(&mut self.session)
            .await?;
        let Some(claim) = claim else { return Ok(false) };
        let (item, token): (String, String) = (claim.get(0), claim.get(1));
        let item: Value = serde_json::from_str(&item).expect("a work item");
        let hop = Hop::read(item["ActivityExecute"]["input"].as_str().expect("a hop"));
        if self.chance.percent(3) {
            sqlx::query("SELECT abandon_work_item($1, $2, 10)")
                .bind(&token)
                .bind(now_ms())
                .execute(&mut self.session)
                .await?;
            return Ok(true);
        }
        if self.chance.percent(5) {
            sqlx::query("SELECT renew_work_item_lock($1, $2, 1)")
                .bind(&token)
                .bind(now_ms())
                .execute(&mut self.session)
                .await?;
        }
        if self.chance.percent(2) {
            tokio::time::sleep(STALL).await;
        }
        sqlx::query("SELECT ack_worker($1, $2, $3, $4)")
            .bind(&token)
            .bind(hop.instance())
            .bind(hop.message().to_string())
            .bind(now_ms())
            .execute(&mut self.session)
            .await?;
        Ok(true)
    }
}
