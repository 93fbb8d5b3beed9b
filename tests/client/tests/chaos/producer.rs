//! Sends messages and work items from outside, and remembers what became of each.

use crate::SCHEMA;
use crate::payload::{self, Payload};
use crate::random::Random;
use crate::session::{Answer, Session};
use duroxide_queue_tests::own_server::Server;
use duroxide_queue_tests::server::now_ms;
use std::cell::Cell;
use std::time::Duration;

/// Payloads that one of a producer's may lead to, one after the other.
const HOPS: u64 = 4;
/// A producer waits while more than this is in the queue.
const ENOUGH: i64 = 300;

/// Whether payloads that were sent in one transaction are in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The server said so.
    Committed,
    /// The session broke before the server said so: all are, or none.
    InDoubt,
    /// They are not.
    Failed,
}

/// What was sent in one transaction.
#[derive(Clone, Debug)]
pub struct Batch {
    pub payloads: Vec<Payload>,
    pub fate: Fate,
}

/// One producer. Nobody kills it: only its session and its server.
#[derive(Debug)]
pub struct Producer {
    name: String,
    random: Random,
    session: Session,
    instances: u64,
    sent: u64,
}

impl Producer {
    pub fn new(server: &Server, number: u32, instances: u64, random: Random) -> Producer {
        let name = format!("producer{number}");
        let options = server.options().application_name(&name).options([("search_path", SCHEMA)]);
        Producer { name, random, session: Session::new(options), instances, sent: 0 }
    }

    /// Sends until it is told to stop.
    pub async fn produce(mut self, stop: &Cell<bool>) -> Vec<Batch> {
        let mut batches = Vec::new();
        while !stop.get() {
            if self.random.percent(20) && self.has_enough().await {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
            let count = if self.random.percent(30) { self.random.between(2, 4) } else { 1 };
            let payloads: Vec<Payload> = (0..count).map(|_| self.next()).collect();
            let fate = self.send(&payloads).await;
            batches.push(Batch { payloads, fate });
            tokio::time::sleep(Duration::from_millis(self.random.below(40))).await;
        }
        batches
    }

    fn next(&mut self) -> Payload {
        self.sent += 1;
        let uid = format!("{}-{}", self.name, self.sent);
        let instance = payload::instance(self.random.below(self.instances));
        if self.random.percent(25) {
            // The ids of activities that turns schedule are small.
            let activity_id = 1_000_000 + self.sent.cast_signed();
            return Payload::activity(&instance, &uid, HOPS, 1, activity_id);
        }
        Payload::new("ExternalRaised", &instance, &uid, HOPS)
    }

    async fn has_enough(&mut self) -> bool {
        let depth: sqlx::Result<i64> =
            sqlx::query_scalar("SELECT orchestrator_queue + worker_queue FROM get_queue_depths($1)")
                .bind(now_ms())
                .fetch_one(self.session.connection().await)
                .await;
        match self.session.answer(depth) {
            Answer::Done(depth) => depth > ENOUGH,
            Answer::Lost => false,
            refused @ Answer::Refused { .. } => panic!("get_queue_depths: {refused:?}"),
        }
    }

    async fn send(&mut self, payloads: &[Payload]) -> Fate {
        if let [payload] = payloads {
            return match self.enqueue(payload).await {
                Answer::Done(()) => Fate::Committed,
                Answer::Lost => Fate::InDoubt,
                refused @ Answer::Refused { .. } => panic!("{payload:?}: {refused:?}"),
            };
        }
        if !self.session.begin().await {
            return Fate::Failed;
        }
        for payload in payloads {
            match self.enqueue(payload).await {
                Answer::Done(()) => {}
                Answer::Lost => return Fate::Failed,
                refused @ Answer::Refused { .. } => panic!("{payload:?}: {refused:?}"),
            }
        }
        match self.session.commit().await {
            Answer::Done(()) => Fate::Committed,
            Answer::Lost => Fate::InDoubt,
            refused @ Answer::Refused { .. } => panic!("COMMIT of {payloads:?}: {refused:?}"),
        }
    }

    async fn enqueue(&mut self, payload: &Payload) -> Answer<()> {
        let query = if payload.form == "ActivityExecute" {
            sqlx::query("SELECT enqueue_worker_work($1, $2, $3, 1, $4)")
                .bind(payload.json().to_string())
                .bind(now_ms())
                .bind(&payload.instance)
                .bind(payload.more["id"].as_i64())
        } else {
            sqlx::query("SELECT enqueue_orchestrator_work($1, $2, clock_timestamp() + $3 * interval '1 ms')")
                .bind(&payload.instance)
                .bind(payload.json().to_string())
                .bind(self.random.between(-100, 200) as f64)
        };
        let result = query.execute(self.session.connection().await).await;
        self.session.answer(result.map(drop))
    }
}
