//! What a turn starts from: messages, history, metadata and key-value snapshot of an instance.

use crate::db::{Db, Planning, Statement, types::*};
use crate::error::Result;
use crate::pg::encoding;
use crate::pg::json::{self, Unfit};
use crate::pg::spi::Rows;
use crate::pg::values::JsonbBuf;
use crate::queue::named_by::{Named, named_by};

/// The input of one turn.
#[derive(Debug)]
pub(crate) struct TurnInput {
    pub(crate) orchestration_name: Vec<u8>,
    pub(crate) orchestration_version: Vec<u8>,
    pub(crate) execution_id: i64,
    pub(crate) history: JsonbBuf,
    pub(crate) messages: JsonbBuf,
    pub(crate) kv_snapshot: JsonbBuf,
}

static METADATA: Statement = Statement {
    text: "
SELECT i.orchestration_name, i.orchestration_version, i.current_execution_id,
       EXISTS (SELECT FROM {q}.kv_store k WHERE k.instance_id = $1)
FROM (SELECT) one
LEFT JOIN {q}.instances i ON i.instance_id = $1",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// Loads the input of a turn whose messages, each one JSON value, are `messages` in order.
pub(crate) fn load(db: &Db, instance_id: &[u8], messages: &[&[u8]]) -> Result<TurnInput> {
    let array = match json::array_of(messages) {
        Ok(array) => array,
        Err(unfit) => explanation("messages", &unfit, None)?,
    };
    let rows = db.query(&METADATA, &[instance_id.into()]);
    let row = rows.first().expect("an outer join keeps the one row");
    let has_kv = row.bool(4) == Some(true);
    let kv_snapshot = if has_kv { kv_snapshot(db, instance_id) } else { JsonbBuf::empty_object() };
    let Some(execution_id) = row.int8(3) else {
        let first = messages.first().copied().unwrap_or_default();
        return without_metadata(db, instance_id, array, first, kv_snapshot);
    };
    let events = db.query(&HISTORY, &[instance_id.into(), execution_id.into()]);
    let (history, kv_snapshot) = history(&events, kv_snapshot)?;
    Ok(TurnInput {
        orchestration_name: shown_to_client(row.text(1).unwrap_or(b"Unknown")),
        orchestration_version: shown_to_client(row.text(2).unwrap_or(b"unknown")),
        execution_id,
        history,
        messages: array,
        kv_snapshot,
    })
}

/// A name, or what this client can be sent of it: it runs nothing of that name then.
fn shown_to_client(name: &[u8]) -> Vec<u8> {
    if encoding::reaches_client(name) {
        return name.to_vec();
    }
    name.iter().map(|&byte| if byte.is_ascii() { byte } else { b'?' }).collect()
}

static HISTORY: Statement = Statement {
    text: "
SELECT h.event_data, h.execution_id, h.event_id
FROM {q}.history h
WHERE h.instance_id = $1 AND h.execution_id = $2
ORDER BY h.event_id",
    parameters: &[TEXT, INT8],
    planning: Planning::ByIndex,
};

static HISTORY_OF_ALL_EXECUTIONS: Statement = Statement {
    text: "
SELECT h.event_data, h.execution_id, h.event_id
FROM {q}.history h
WHERE h.instance_id = $1
ORDER BY h.execution_id, h.event_id",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

/// The snapshot comes from the store alone: the delta is what the running execution has changed,
/// and its history tells that already. Sized before it is built, since a snapshot that jsonb cannot
/// hold must not make the claim fail again and again. A key takes some 70 bytes beside its own and those of its value.
static KV_SNAPSHOT: Statement = Statement {
    text: "
SELECT CASE WHEN s.bytes <= 200000000 THEN
         (SELECT coalesce(pg_catalog.jsonb_object_agg(
                   k.key,
                   pg_catalog.jsonb_build_object('value', k.value, 'last_updated_at_ms', k.last_updated_at_ms)),
                 '{}'::jsonb)
          FROM {q}.kv_store k WHERE k.instance_id = $1)
       ELSE
         pg_catalog.to_jsonb('the key-value store of this instance has ' || s.bytes
                             || ' bytes, more than a snapshot can hold')
       END
FROM (SELECT coalesce(pg_catalog.sum(pg_catalog.octet_length(k.key) + pg_catalog.octet_length(k.value) + 80), 0) AS bytes
      FROM {q}.kv_store k WHERE k.instance_id = $1
      OFFSET 0) s",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

static KV_TEXTS: Statement = Statement {
    text: "SELECT pg_catalog.concat(k.key, k.value) FROM {q}.kv_store k WHERE k.instance_id = $1",
    parameters: &[TEXT],
    planning: Planning::ByIndex,
};

fn kv_snapshot(db: &Db, instance_id: &[u8]) -> JsonbBuf {
    if encoding::is_converted() {
        let texts = db.query(&KV_TEXTS, &[instance_id.into()]);
        if !texts.iter().all(|row| row.text(1).is_none_or(encoding::reaches_client)) {
            let reason = json::quoted(&json::not_sendable().message);
            return json::of_text(&format!(r#"{{"undeliverable": "key-value store", "reason": {reason}}}"#));
        }
    }
    let rows = db.query(&KV_SNAPSHOT, &[instance_id.into()]);
    rows.first().and_then(|row| row.jsonb(1)).expect("an aggregate returns one row")
}

/// The events as one array; or, where that cannot be, an object that says why. A client cannot
/// read the object as a list of events, so it treats the instance as poisoned: attempts are
/// counted, and it fails in the end with this as the reason, while the others run on.
///
/// Of such an object duroxide-pg tells no more than that it is none of its lists; of a snapshot that
/// it cannot read, it tells the key. So the reason takes the place of the snapshot too: as a key.
fn history(events: &Rows<'_>, kv_snapshot: JsonbBuf) -> Result<(JsonbBuf, JsonbBuf)> {
    let texts: Vec<&[u8]> = events.iter().map(|row| row.text(1).unwrap_or_default()).collect();
    let array = match texts.iter().position(|text| !encoding::json_reaches_client(text)) {
        None => json::array_of(&texts),
        Some(index) => Err(Unfit::Element(index, json::not_sendable())),
    };
    match array {
        Ok(array) => Ok((array, kv_snapshot)),
        Err(unfit) => {
            let event = match unfit {
                Unfit::Element(index, _) => events.iter().nth(index).map(|row| (row.int8(2), row.int8(3))),
                Unfit::Whole(_) => None,
            };
            Ok((explanation("history", &unfit, event)?, reason_as_snapshot(&unfit, event)))
        }
    }
}

/// An execution id and an event id.
type Event = (Option<i64>, Option<i64>);

/// A key-value snapshot whose only key is the reason why the history cannot be delivered.
fn reason_as_snapshot(unfit: &Unfit, event: Option<Event>) -> JsonbBuf {
    let (Unfit::Element(_, refusal) | Unfit::Whole(refusal)) = unfit;
    let what = match event {
        Some((execution_id, event_id)) => {
            format!(
                "event {} of execution {}",
                event_id.unwrap_or_default(),
                execution_id.unwrap_or_default()
            )
        }
        None => "the history".into(),
    };
    let reason = json::quoted(&format!("{what} could never be delivered: {}", refusal.shown()));
    json::of_text(&format!("{{{reason}: null}}"))
}

/// A JSON object that says what cannot be delivered, and why.
fn explanation(what: &str, unfit: &Unfit, event: Option<Event>) -> Result<JsonbBuf> {
    let (Unfit::Element(_, refusal) | Unfit::Whole(refusal)) = unfit;
    let reason = json::quoted(&refusal.shown());
    let text = match event {
        Some((execution_id, event_id)) => format!(
            r#"{{"undeliverable": "{what}", "execution_id": {}, "event_id": {}, "reason": {reason}}}"#,
            execution_id.unwrap_or_default(),
            event_id.unwrap_or_default(),
        ),
        None => format!(r#"{{"undeliverable": "{what}", "reason": {reason}}}"#),
    };
    Ok(json::of_text(&text))
}

fn without_metadata(
    db: &Db,
    instance_id: &[u8],
    messages: JsonbBuf,
    first_message: &[u8],
    kv_snapshot: JsonbBuf,
) -> Result<TurnInput> {
    let events = db.query(&HISTORY_OF_ALL_EXECUTIONS, &[instance_id.into()]);
    let (history, kv_snapshot) = history(&events, kv_snapshot)?;
    let Named { orchestration_name, orchestration_version, execution_id } =
        named_by(db, &history, events.len() > 0, &messages, first_message);
    Ok(TurnInput { orchestration_name, orchestration_version, execution_id, history, messages, kv_snapshot })
}
