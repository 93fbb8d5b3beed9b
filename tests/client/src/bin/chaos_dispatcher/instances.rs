//! The half of a dispatcher that runs turns of instances.

use crate::journal::Entry;
use crate::payload::{self, Payload};
use crate::session::Answer;
use crate::{Dispatcher, End};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Events after which an execution ends and the next begins, so that no history grows long.
const EVENTS_OF_AN_EXECUTION: usize = 40;

/// Claims and ends turns until the process is killed.
pub async fn dispatch(mut dispatcher: Dispatcher) {
    let mut turns = 0;
    loop {
        match dispatcher.claim().await {
            Some(claimed) => {
                turns += 1;
                dispatcher.run_turn(&claimed, turns).await;
            }
            None => dispatcher.pause(2, 25).await,
        }
    }
}

/// Instance, execution, history, messages, token and attempt.
type Row = (String, i64, String, String, String, i32);

/// A claimed instance.
struct Claimed {
    instance: String,
    execution_id: i64,
    history: Vec<Value>,
    messages: Vec<Payload>,
    token: String,
    attempt: i64,
    lease: Duration,
    answered: Instant,
}

/// The arguments of an acknowledgement.
struct Turn {
    execution_id: i64,
    history: Value,
    work_items: Value,
    messages: Value,
    metadata: Value,
    cancelled: Value,
}

impl Dispatcher {
    async fn claim(&mut self) -> Option<Claimed> {
        if self.is_wild && self.random.percent(2) {
            self.obstruct().await;
        }
        let given_up = self.is_wild && self.random.percent(2);
        if given_up && !self.session.begin_without_patience().await {
            return None;
        }
        let lease_ms = self.lease_ms();
        let now_ms = self.now_ms();
        let row: sqlx::Result<Option<Row>> = sqlx::query_as(
            "SELECT out_instance_id, out_execution_id, out_history::text, out_messages::text, \
                    out_lock_token, out_attempt_count \
             FROM fetch_orchestration_item($1, $2)",
        )
        .bind(now_ms)
        .bind(lease_ms)
        .fetch_optional(self.session.connection().await)
        .await;
        let row = match self.session.answer(row) {
            Answer::Done(row) => row,
            Answer::Refused { code, message } => {
                self.violation(format!("fetch_orchestration_item failed with {code}: {message}"));
                None
            }
            Answer::Lost => {
                self.journal.note(&Entry::FetchInDoubt);
                None
            }
        };
        if given_up {
            // Rolled back by the server, when it notices: this claim never was.
            self.session.cut();
            return None;
        }
        let (instance, execution_id, history, messages, token, attempt) = row?;
        self.audit(Claimed {
            messages: self.messages(&messages),
            history: serde_json::from_str(&history)
                .ok()
                .and_then(|history: Value| history.as_array().cloned())
                .unwrap_or_else(|| {
                    self.violation(format!("{instance}: a history that is no list: {history}"));
                    Vec::new()
                }),
            instance,
            execution_id,
            token,
            attempt: attempt.into(),
            lease: Duration::from_millis(lease_ms.unsigned_abs()),
            answered: Instant::now(),
        })
    }

    /// Holds for a while what others need for an instance, as no dispatcher should.
    async fn obstruct(&mut self) {
        const WAYS: [&str; 3] = [
            "SELECT pg_try_advisory_xact_lock(hashtext(current_schema() || '.' || $1))",
            "SELECT EXISTS (SELECT FROM orchestrator_queue WHERE instance_id = $1 FOR UPDATE SKIP LOCKED)",
            "SELECT EXISTS (SELECT FROM instance_locks WHERE instance_id = $1 FOR UPDATE SKIP LOCKED)",
        ];
        if !self.session.begin().await {
            return;
        }
        let way = self.random.pick(&WAYS);
        let instance = payload::instance(self.random.below(self.instances));
        let held = sqlx::query(way).bind(instance).execute(self.session.connection().await).await;
        if let Answer::Done(_) = self.session.answer(held) {
            self.pause(20, 300).await;
        }
        self.session.roll_back().await;
    }

    fn messages(&self, text: &str) -> Vec<Payload> {
        let messages: Value = serde_json::from_str(text).unwrap_or_default();
        let payloads: Option<Vec<Payload>> =
            messages.as_array().map_or(&[][..], Vec::as_slice).iter().map(Payload::of).collect();
        payloads.unwrap_or_else(|| {
            self.violation(format!("messages that nobody sent: {text}"));
            Vec::new()
        })
    }

    /// Looks at what was handed out, and notes it.
    fn audit(&self, claimed: Claimed) -> Option<Claimed> {
        let Claimed { instance, history, messages, .. } = &claimed;
        let names: Vec<String> = messages.iter().map(|message| message.uid.clone()).collect();
        self.journal.note(&Entry::Claim { messages: names.clone(), attempt: claimed.attempt });

        let mut wrong = Vec::new();
        if names.is_empty() {
            wrong.push("no message".to_owned());
        }
        if claimed.attempt < 1 {
            wrong.push(format!("attempt {}", claimed.attempt));
        }
        if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
            wrong.push("a message twice".to_owned());
        }
        for message in messages.iter().filter(|message| message.instance != *instance) {
            wrong.push(format!("a message for {}", message.instance));
        }
        let ids: Vec<i64> = history.iter().filter_map(|event| event["event_id"].as_i64()).collect();
        if !ids.iter().copied().eq(1..=history.len() as i64) {
            wrong.push(format!("history with events {ids:?}"));
        }
        for event in history.iter().filter(|event| event["kind"] == "Turn") {
            for consumed in event["consumed"].as_array().map_or(&[][..], Vec::as_slice) {
                if names.iter().any(|name| consumed == name) {
                    wrong.push(format!("{consumed} again, which event {} consumed", event["event_id"]));
                }
            }
        }
        if wrong.is_empty() {
            return Some(claimed);
        }
        self.violation(format!("{instance} was handed out with {}", wrong.join("; ")));
        None
    }

    async fn run_turn(&mut self, claimed: &Claimed, number: u64) {
        let turn = self.turn(claimed, number);
        match self.next_end() {
            End::Ack => {
                self.ack(claimed, &turn).await;
            }
            End::AckTwice => {
                if self.ack(claimed, &turn).await && self.ack(claimed, &turn).await {
                    self.violation(format!("{} was acknowledged twice", claimed.token));
                }
            }
            End::AckInTransaction => {
                if self.ack_in_transaction(claimed, &turn).await {
                    self.pause(0, 60).await;
                    self.commit().await;
                }
            }
            End::DieInTransaction => {
                self.ack_in_transaction(claimed, &turn).await;
                std::process::exit(crate::DIED);
            }
            End::CommitLate => {
                let began = Instant::now();
                if self.ack_in_transaction(claimed, &turn).await {
                    // The server's clock stands where ours was when the call set out.
                    claimed.outlive_lease(began.elapsed()).await;
                    if self.commit().await {
                        self.violation(format!("{}: a turn was committed after its lease", claimed.token));
                    }
                }
            }
            End::AckLate => {
                claimed.outlive_lease(Duration::ZERO).await;
                if self.ack(claimed, &turn).await {
                    self.violation(format!("{} was acknowledged after its lease", claimed.token));
                }
            }
            End::Renew => {
                if self.renew(claimed).await {
                    self.pause(0, 900).await;
                    self.ack(claimed, &turn).await;
                }
            }
            End::Abandon => self.abandon(claimed).await,
            End::Forget => {}
        }
    }

    /// What the toy orchestration does with its messages.
    fn turn(&mut self, claimed: &Claimed, number: u64) -> Turn {
        let Claimed { instance, history, messages, .. } = claimed;
        let begins = messages.iter().any(|message| message.form == "ContinueAsNew");
        let execution_id = claimed.execution_id + i64::from(begins);
        let first_event = if begins { 1 } else { history.len() as i64 + 1 };
        let consumed: Vec<&str> = messages.iter().map(|message| message.uid.as_str()).collect();
        let mut events = vec![json!({
            "kind": "Turn", "consumed": consumed, "attempt": claimed.attempt, "token": claimed.token,
        })];
        let mut work_items = Vec::new();
        let mut sent = Vec::new();
        let mut cancelled = Vec::new();
        let mut made = 0;
        let mut new_uid = || {
            made += 1;
            format!("{}-{number}-{made}", self.name)
        };

        for hops in messages.iter().filter_map(|message| message.hops.checked_sub(1)) {
            let uid = new_uid();
            let event_id = first_event + events.len() as i64;
            match self.random.below(10) {
                0..4 => {
                    let to = payload::instance(self.random.below(self.instances));
                    sent.push(Payload::new("ExternalRaised", &to, &uid, hops).json());
                    events.push(json!({"kind": "Sent", "uid": uid}));
                }
                4..6 => {
                    let fires_ms = self.now_ms() + self.random.between(0, 600);
                    let timer = Payload::new("TimerFired", instance, &uid, hops).with("fire_at_ms", fires_ms);
                    sent.push(timer.json());
                    events.push(json!({"kind": "Sent", "uid": uid}));
                }
                6..9 => {
                    let mut item = Payload::activity(instance, &uid, hops, execution_id, event_id);
                    if self.random.percent(30) {
                        item = item.with("session_id", format!("session {}", self.random.below(6)));
                    }
                    work_items.push(item.json());
                    events.push(json!({"kind": "Scheduled", "uid": uid}));
                }
                _ => {}
            }
        }
        if !begins && self.random.percent(5) {
            let scheduled: Vec<&Value> =
                history.iter().filter(|event| event["kind"] == "Scheduled").collect();
            if !scheduled.is_empty() {
                let event = self.random.pick(&scheduled);
                cancelled.push(json!({
                    "instance": instance, "execution_id": execution_id, "activity_id": event["event_id"],
                }));
                events.push(json!({"kind": "Cancelled", "uid": event["uid"]}));
            }
        }
        let is_over = history.iter().any(|event| event["kind"] == "Continued");
        let ends = !begins && !is_over && history.len() > EVENTS_OF_AN_EXECUTION;
        if ends {
            let uid = new_uid();
            sent.push(Payload::new("ContinueAsNew", instance, &uid, 0).json());
            events.push(json!({"kind": "Continued", "uid": uid}));
        }
        self.arguments(execution_id, first_event, events, work_items, sent, cancelled, ends)
    }

    #[expect(clippy::too_many_arguments, reason = "an acknowledgement has that many parts")]
    fn arguments(
        &self,
        execution_id: i64,
        first_event: i64,
        events: Vec<Value>,
        work_items: Vec<Value>,
        messages: Vec<Value>,
        cancelled: Vec<Value>,
        ends: bool,
    ) -> Turn {
        let last = format!("{execution_id}.{}", first_event + events.len() as i64 - 1);
        let mut metadata = json!({
            "orchestration_name": "Chaos",
            "orchestration_version": "1.0.0",
            "custom_status_action": "set",
            "custom_status_value": last,
            "kv_mutations": [{
                "action": "set", "key": "last", "value": last, "last_updated_at_ms": self.now_ms(),
            }],
        });
        if ends {
            metadata["status"] = "ContinuedAsNew".into();
        }
        let history = (first_event..)
            .zip(events)
            .map(|(id, mut event)| {
                event["event_id"] = id.into();
                json!({"event_id": id, "event_type": event["kind"], "event_data": event.to_string()})
            })
            .collect();
        Turn {
            execution_id,
            history: Value::Array(history),
            work_items: work_items.into(),
            messages: messages.into(),
            metadata,
            cancelled: cancelled.into(),
        }
    }

    /// Acknowledges. False if the server refused, or may have.
    async fn ack(&mut self, claimed: &Claimed, turn: &Turn) -> bool {
        let done = self.send_ack(claimed, turn).await;
        if done {
            self.journal.note(&Entry::Turn);
        }
        done
    }

    async fn send_ack(&mut self, claimed: &Claimed, turn: &Turn) -> bool {
        let now_ms = self.now_ms();
        let result = sqlx::query(
            "SELECT ack_orchestration_item($1, $2, $3, $4::jsonb, $5::jsonb, $6::jsonb, $7::jsonb, $8::jsonb)",
        )
        .bind(&claimed.token)
        .bind(now_ms)
        .bind(turn.execution_id)
        .bind(turn.history.to_string())
        .bind(turn.work_items.to_string())
        .bind(turn.messages.to_string())
        .bind(turn.metadata.to_string())
        .bind(turn.cancelled.to_string())
        .execute(self.session.connection().await)
        .await;
        let answer = self.session.answer(result);
        self.is_done("ack_orchestration_item", answer)
    }

    /// Acknowledges and leaves the transaction open, if nothing was refused.
    async fn ack_in_transaction(&mut self, claimed: &Claimed, turn: &Turn) -> bool {
        if !self.session.begin().await {
            return false;
        }
        let done = self.send_ack(claimed, turn).await;
        if !done {
            self.session.roll_back().await;
        }
        done
    }

    async fn commit(&mut self) -> bool {
        let answer = self.session.commit().await;
        let done = self.is_done("COMMIT", answer);
        if done {
            self.journal.note(&Entry::Turn);
        }
        done
    }

    async fn renew(&mut self, claimed: &Claimed) -> bool {
        let now_ms = self.now_ms();
        let result = sqlx::query("SELECT renew_orchestration_item_lock($1, $2, 1)")
            .bind(&claimed.token)
            .bind(now_ms)
            .execute(self.session.connection().await)
            .await;
        let answer = self.session.answer(result);
        self.is_done("renew_orchestration_item_lock", answer)
    }

    async fn abandon(&mut self, claimed: &Claimed) {
        let delay_ms = self.random.percent(60).then(|| self.random.between(0, 300));
        let uncounted = self.random.percent(40);
        if uncounted {
            // Before the call: the process may not live to tell of it after.
            let names = claimed.messages.iter().map(|message| message.uid.clone()).collect();
            self.journal.note(&Entry::Uncounted { names });
        }
        let now_ms = self.now_ms();
        let result = sqlx::query("SELECT abandon_orchestration_item($1, $2, $3, $4)")
            .bind(&claimed.token)
            .bind(now_ms)
            .bind(delay_ms)
            .bind(uncounted)
            .execute(self.session.connection().await)
            .await;
        let answer = self.session.answer(result);
        self.is_done("abandon_orchestration_item", answer);
    }

    /// Whether a call is done for certain.
    pub fn is_done<T>(&self, call: &str, answer: Answer<T>) -> bool {
        match answer {
            Answer::Done(_) => true,
            Answer::Refused { code, message } => {
                self.refused(call, &code, message);
                false
            }
            Answer::Lost => false,
        }
    }
}

impl Claimed {
    /// Waits until the lease is over by the clock that it was claimed with, and a little longer.
    async fn outlive_lease(&self, longer: Duration) {
        tokio::time::sleep_until((self.answered + self.lease + longer + Duration::from_millis(2)).into())
            .await;
    }
}
