//! Reads what is left when all is over: tables and journals must tell the same story.

use crate::SCHEMA;
use crate::journal::{Entry, Journal};
use crate::payload::{Payload, completion_of};
use crate::producer::{Batch, Fate};
use duroxide_queue_tests::own_server::Server;
use serde_json::Value;
use sqlx::postgres::PgConnection;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Rows that no moment may show, one sentence each. `locked_until` may lie ahead by the clock that is
/// 2 s ahead and the longest lease or renewal, which is 1 s; a calm dispatcher's lease is 10 s.
pub const TORN: &str = "
SELECT format('message %s: token %s until %s at attempt %s', id, lock_token, locked_until, attempt_count)
FROM chaos.orchestrator_queue
WHERE (lock_token IS NULL) <> (locked_until IS NULL) OR attempt_count < 0
UNION ALL
SELECT format('work item %s: token %s until %s at attempt %s', id, lock_token, locked_until, attempt_count)
FROM chaos.worker_queue
WHERE (lock_token IS NULL) <> (locked_until IS NULL) OR attempt_count < 0
UNION ALL
SELECT format('lock of %s until %s', instance_id, locked_until)
FROM chaos.instance_locks l
WHERE locked_until > extract(epoch FROM clock_timestamp()) * 1000 + 11000
   OR NOT EXISTS (SELECT FROM chaos.orchestrator_queue q WHERE q.lock_token = l.lock_token)";

/// What the tables and journals come to.
#[derive(Debug, Default)]
pub struct Audit {
    pub faults: Vec<String>,
    messages: usize,
    in_doubt: usize,
    items: usize,
    turns: usize,
    events: usize,
    claims: usize,
    refusals: BTreeMap<String, usize>,
}

/// A payload, and how often a turn must have consumed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Once,
    AtMostOnce,
}

/// What the journals tell, all together.
#[derive(Debug, Default)]
struct Journals {
    claims: HashMap<String, i64>,
    item_claims: HashMap<String, i64>,
    item_acks: HashMap<String, i64>,
    uncounted: HashMap<String, i64>,
    fetches_in_doubt: i64,
    turns: usize,
}

/// What the history tells.
#[derive(Debug, Default)]
struct History {
    /// Where each message was consumed.
    consumed: HashMap<String, Vec<String>>,
    sent: Vec<String>,
    scheduled: Vec<String>,
    cancelled: Vec<String>,
    /// Instance, number of turns, and the last event as `execution.event`.
    instances: BTreeMap<String, (i32, String)>,
    /// The messages of each turn, with the attempt that it was handed out at.
    turns: Vec<(Vec<String>, i64)>,
}

/// Instance, version of its custom status, the status, current execution, and value of a key.
type InstanceRow = (String, i32, Option<String>, String, Option<String>);

impl Audit {
    /// Reads everything. `killed` is how many processes may have claimed something and not told.
    pub async fn of(server: &Server, batches: &[Batch], killed: usize) -> Audit {
        let mut audit = Audit::default();
        let mut session = server.connect().await;
        let journals = audit.journals(server);
        let history = audit.history(&mut session).await;
        let left = audit.left(&mut session).await;

        let due = audit.due(batches, &history);
        audit.deliveries(&due, &history, &left);
        audit.batches(batches, &history, &left);
        audit.attempts(&journals, &history, killed);
        audit.instances(&mut session, &history).await;
        if audit.turns < journals.turns {
            audit.fault(format!(
                "{} turns were acknowledged, {} are in the history",
                journals.turns, audit.turns
            ));
        }
        let torn: Vec<String> = sqlx::query_scalar(TORN).fetch_all(&mut session).await.expect("the tables");
        audit.faults.extend(torn);
        for table in ["orchestrator_queue", "worker_queue", "instance_locks", "dead_letters"] {
            let rows: i64 = sqlx::query_scalar(&format!("SELECT count(*) FROM {SCHEMA}.{table}"))
                .fetch_one(&mut session)
                .await
                .expect("the tables");
            if rows > 0 {
                audit.fault(format!("{rows} rows in {table} at the end"));
            }
        }
        audit
    }

    fn fault(&mut self, what: String) {
        self.faults.push(what);
    }

    fn journals(&mut self, server: &Server) -> Journals {
        let mut journals = Journals::default();
        let files = std::fs::read_dir(server.folder().join("journals")).expect("the journals");
        for entry in files.flat_map(|file| Journal::read(&file.expect("a file").path())) {
            match entry {
                Entry::Claim { messages, .. } => {
                    self.claims += 1;
                    for message in messages {
                        *journals.claims.entry(message).or_default() += 1;
                    }
                }
                Entry::ItemClaim { item, .. } => {
                    self.claims += 1;
                    *journals.item_claims.entry(item).or_default() += 1;
                }
                Entry::ItemAck { item, attempt } => {
                    if journals.item_acks.insert(item.clone(), attempt).is_some() {
                        self.fault(format!("work item {item} was acknowledged twice"));
                    }
                }
                Entry::Uncounted { names } => {
                    for name in names {
                        *journals.uncounted.entry(name).or_default() += 1;
                    }
                }
                Entry::Turn => journals.turns += 1,
                Entry::FetchInDoubt => journals.fetches_in_doubt += 1,
                Entry::Refused { message } => *self.refusals.entry(message).or_default() += 1,
                Entry::Violation { what } => self.fault(what),
            }
        }
        journals
    }

    async fn history(&mut self, session: &mut PgConnection) -> History {
        let rows: Vec<(String, i64, i64, String)> = sqlx::query_as(&format!(
            "SELECT instance_id, execution_id, event_id, event_data FROM {SCHEMA}.history ORDER BY 1, 2, 3"
        ))
        .fetch_all(session)
        .await
        .expect("the history");
        self.events = rows.len();
        let mut history = History::default();
        let mut before: Option<(String, i64, i64)> = None;
        for (instance, execution_id, event_id, data) in rows {
            let place = format!("{instance} {execution_id}.{event_id}");
            let expected = match &before {
                Some((same, execution, event)) if *same == instance && *execution == execution_id => {
                    (execution_id, event + 1)
                }
                Some((same, execution, _)) if *same == instance => (execution + 1, 1),
                _ => (1, 1),
            };
            if (execution_id, event_id) != expected {
                self.fault(format!("{place} in the history, where {expected:?} should be"));
            }
            before = Some((instance.clone(), execution_id, event_id));
            let instance = history.instances.entry(instance).or_default();
            instance.1 = format!("{execution_id}.{event_id}");

            let event: Value = serde_json::from_str(&data).unwrap_or_default();
            let uid = event["uid"].as_str().unwrap_or_default().to_owned();
            match event["kind"].as_str() {
                Some("Turn") => {
                    instance.0 += 1;
                    let consumed: Vec<String> =
                        serde_json::from_value(event["consumed"].clone()).unwrap_or_default();
                    for message in &consumed {
                        history.consumed.entry(message.clone()).or_default().push(place.clone());
                    }
                    history.turns.push((consumed, event["attempt"].as_i64().unwrap_or_default()));
                }
                Some("Sent" | "Continued") => history.sent.push(uid),
                Some("Scheduled") => history.scheduled.push(uid),
                Some("Cancelled") => history.cancelled.push(uid),
                _ => self.fault(format!("{place} is no event of ours: {data}")),
            }
        }
        self.turns = history.turns.len();
        history
    }

    /// How often each message is still in the queue, or in it as a work item.
    async fn left(&mut self, session: &mut PgConnection) -> HashMap<String, usize> {
        let rows: Vec<String> = sqlx::query_scalar(&format!(
            "SELECT work_item FROM {SCHEMA}.orchestrator_queue \
             UNION ALL SELECT work_item FROM {SCHEMA}.worker_queue"
        ))
        .fetch_all(session)
        .await
        .expect("the queues");
        let mut left: HashMap<String, usize> = HashMap::new();
        for row in rows {
            match Payload::parse(&row) {
                Some(payload) => *left.entry(message_of(&payload)).or_default() += 1,
                None => self.fault(format!("in the queue, from nobody: {row}")),
            }
        }
        left
    }

    /// Every message that there should be, or may be.
    fn due(&mut self, batches: &[Batch], history: &History) -> HashMap<String, Due> {
        let mut due = HashMap::new();
        let mut add = |uid: String, what| {
            if due.insert(uid.clone(), what).is_some() {
                self.faults.push(format!("{uid} was sent by two committed turns"));
            }
        };
        for batch in batches {
            let what = match batch.fate {
                Fate::Committed => Due::Once,
                Fate::InDoubt => Due::AtMostOnce,
                Fate::Failed => continue,
            };
            for payload in &batch.payloads {
                add(message_of(payload), what);
            }
            self.in_doubt += usize::from(what == Due::AtMostOnce) * batch.payloads.len();
            self.items += batch.payloads.iter().filter(|payload| is_item(payload)).count();
        }
        for uid in &history.sent {
            add(uid.clone(), Due::Once);
        }
        self.items += history.scheduled.len();
        for uid in &history.scheduled {
            let what = if history.cancelled.contains(uid) { Due::AtMostOnce } else { Due::Once };
            add(completion_of(uid), what);
        }
        self.messages = due.len();
        due
    }

    fn deliveries(&mut self, due: &HashMap<String, Due>, history: &History, left: &HashMap<String, usize>) {
        for (uid, what) in due {
            let places = history.consumed.get(uid).map_or(&[][..], Vec::as_slice);
            let count = places.len() + left.get(uid).copied().unwrap_or(0);
            match (count, what) {
                (1, _) | (0, Due::AtMostOnce) => {}
                (0, Due::Once) => self.fault(format!("{uid} is lost")),
                _ => self.fault(format!("{uid} was consumed {count} times: {places:?}")),
            }
        }
        for uid in history.consumed.keys().chain(left.keys()).filter(|uid| !due.contains_key(*uid)) {
            self.fault(format!("{uid} was delivered, and no call that was committed sent it"));
        }
    }

    /// A transaction in doubt is there as a whole or not at all.
    fn batches(&mut self, batches: &[Batch], history: &History, left: &HashMap<String, usize>) {
        for batch in batches.iter().filter(|batch| batch.fate == Fate::InDoubt) {
            let names: Vec<String> = batch.payloads.iter().map(message_of).collect();
            let there = names
                .iter()
                .filter(|uid| history.consumed.contains_key(*uid) || left.contains_key(*uid))
                .count();
            if there != 0 && there != names.len() {
                self.fault(format!("of one transaction with {names:?}, {there} are there"));
            }
        }
    }

    /// Every claim is counted unless it was given back uncounted, and no more than were made.
    fn attempts(&mut self, journals: &Journals, history: &History, killed: usize) {
        let of = |counts: &HashMap<String, i64>, uid: &str| counts.get(uid).copied().unwrap_or(0);
        for (consumed, attempt) in &history.turns {
            let known = consumed.iter().map(|uid| of(&journals.claims, uid) - of(&journals.uncounted, uid));
            let least = known.max().unwrap_or(0).max(1);
            if *attempt < least {
                self.fault(format!("a turn with {consumed:?} at attempt {attempt}, after {least} claims"));
            }
        }
        for (uid, attempt) in &journals.item_acks {
            let least = of(&journals.item_claims, uid) - of(&journals.uncounted, uid);
            if *attempt < least {
                self.fault(format!("work item {uid} at attempt {attempt}, after {least} claims"));
            }
        }
        let counted: i64 = journals.item_acks.values().sum();
        let made: i64 = journals.item_acks.keys().map(|uid| of(&journals.item_claims, uid)).sum();
        let untold = journals.fetches_in_doubt + killed as i64;
        if counted > made + untold {
            self.fault(format!("work items have {counted} attempts, of {made} claims and {untold} in doubt"));
        }
    }

    /// What each turn wrote beside the history is as the last turn left it.
    async fn instances(&mut self, session: &mut PgConnection, history: &History) {
        let rows: Vec<InstanceRow> = sqlx::query_as(&format!(
            "SELECT i.instance_id, i.custom_status_version, i.custom_status, i.current_execution_id::text, \
                    (SELECT k.out_value FROM {SCHEMA}.get_kv_value(i.instance_id, 'last') k) \
             FROM {SCHEMA}.instances i"
        ))
        .fetch_all(session)
        .await
        .expect("the instances");
        if rows.len() != history.instances.len() {
            self.fault(format!("{} instances, {} with a history", rows.len(), history.instances.len()));
        }
        for (instance, version, status, execution, value) in rows {
            let Some((turns, last)) = history.instances.get(&instance) else { continue };
            let execution_of_last = last.split('.').next().unwrap_or_default();
            let same = version == *turns
                && status.as_ref() == Some(last)
                && value.as_ref() == Some(last)
                && execution == execution_of_last;
            if !same {
                self.fault(format!(
                    "{instance} after {turns} turns up to {last}: status {status:?} of version {version}, \
                     value {value:?}, execution {execution}"
                ));
            }
        }
    }
}

fn is_item(payload: &Payload) -> bool {
    payload.form == "ActivityExecute"
}

/// The name of the message that a payload is, or becomes.
fn message_of(payload: &Payload) -> String {
    if is_item(payload) { completion_of(&payload.uid) } else { payload.uid.clone() }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} messages ({} of them in doubt when sent), {} work items, {} claims, {} turns with {} events",
            self.messages, self.in_doubt, self.items, self.claims, self.turns, self.events
        )?;
        for (message, count) in &self.refusals {
            write!(f, "\nrefused: {count} times {message}")?;
        }
        Ok(())
    }
}
