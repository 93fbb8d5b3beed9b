//! The acknowledgement of a large turn.

use super::Row;
use crate::bench::Bench;
use crate::calls::{self, FETCH};
use crate::line::{Goal, Line, Unit};
use crate::load;
use crate::own_cost::{CALLS, Probe, measure};
use crate::report::Report;
use crate::side::Side;
use async_trait::async_trait;
use duroxide_queue_tests::server;
use serde_json::{Value, json};
use sqlx::postgres::PgConnection;
use std::time::Instant;

const EVENTS: u64 = 1_000;
const WORK_ITEMS: u64 = 200;
const MESSAGES: u64 = 50;

const ACK: &str = "SELECT ack_orchestration_item($1, $2, 1, $3, $4, $5, $6, '[]')";
/// The same arguments sent and parsed, and nothing done with them.
const ECHO: &str = "SELECT num_nulls($1::text, $2::bigint, $3::jsonb, $4::jsonb, $5::jsonb, $6::jsonb)";

/// The row.
pub struct LargeAck;

#[async_trait(?Send)]
impl Row for LargeAck {
    fn name(&self) -> &'static str {
        "large-ack"
    }

    async fn run(&self, bench: &Bench) -> Report {
        bench.load(&[load::ready(1..=CALLS)]).await;
        let costs = measure::<Ack>(bench).await;
        let what = "ack of 1,000 events, 200 worker items and 50 messages: own cost";
        let goal = Goal::Ratio(3.0, None);
        Line::new("large-ack", what, costs.map(|cost| cost.own), Unit::Milliseconds, goal).into()
    }
}

/// Fetches an instance, not counted, and acknowledges it.
struct Ack {
    session: PgConnection,
    turn: Turn,
}

/// What a turn writes.
struct Turn {
    events: Value,
    work_items: Value,
    messages: Value,
    metadata: Value,
}

#[async_trait(?Send)]
impl Probe for Ack {
    async fn open(bench: &Bench, side: Side) -> Ack {
        Ack { session: bench.session(side).await, turn: Turn::large() }
    }

    async fn call(&mut self) -> f64 {
        let token = calls::fetch(&mut self.session, FETCH).await.token();
        self.send(ACK, &token).await
    }

    async fn round_trip(&mut self) -> f64 {
        self.send(ECHO, "lock_00000000-0000-0000-0000-000000000000").await
    }
}

impl Ack {
    async fn send(&mut self, statement: &str, token: &str) -> f64 {
        let begin = Instant::now();
        sqlx::query(statement)
            .bind(token)
            .bind(server::now_ms())
            .bind(&self.turn.events)
            .bind(&self.turn.work_items)
            .bind(&self.turn.messages)
            .bind(&self.turn.metadata)
            .execute(&mut self.session)
            .await
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
        calls::ms(begin)
    }
}

impl Turn {
    /// Activities that are scheduled, some for workers, and starts of sub-orchestrations.
    fn large() -> Turn {
        let event = |id: u64| {
            let data = json!({
                "event_id": id, "source_event_id": null, "instance_id": "order", "execution_id": 1,
                "timestamp_ms": 1_764_590_400_000u64, "duroxide_version": "0.1.32", "type": "ActivityScheduled",
                "name": "charge", "input": format!("{{\"order\":{id},\"amount\":36.00}}"),
            });
            json!({ "event_id": id, "event_type": "ActivityScheduled", "event_data": data.to_string() })
        };
        let work_item = |id: u64| {
            json!({ "ActivityExecute": {
                "instance": "order", "execution_id": 1, "id": id, "name": "charge",
                "input": format!("{{\"order\":{id},\"amount\":36.00}}"),
            }})
        };
        let message = |id: u64| {
            json!({ "StartOrchestration": {
                "instance": format!("shipping-{id}"), "orchestration": "Shipping", "input": "{}", "version": "1.0.0",
                "parent_instance": "order", "parent_id": id, "parent_execution_id": 1, "execution_id": 1,
            }})
        };
        Turn {
            events: (1..=EVENTS).map(event).collect(),
            work_items: (1..=WORK_ITEMS).map(work_item).collect(),
            messages: (1..=MESSAGES).map(message).collect(),
            metadata: json!({
                "orchestration_name": "Order", "orchestration_version": "1.0.0", "status": null, "output": null,
                "parent_instance_id": null, "pinned_duroxide_version": { "major": 0, "minor": 1, "patch": 32 },
                "custom_status_action": null, "custom_status_value": null, "kv_mutations": [],
            }),
        }
    }
}
