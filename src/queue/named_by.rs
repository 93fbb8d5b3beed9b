//! What an instance is called that has no row of its own yet: by its first event, else by its first message.

use crate::db::{Db, Planning, Statement, types::*};
use crate::pg::values::JsonbBuf;
use serde::Deserialize;

/// Name and version of an orchestration, and the execution that runs.
pub(crate) struct Named {
    pub(crate) orchestration_name: Vec<u8>,
    pub(crate) orchestration_version: Vec<u8>,
    pub(crate) execution_id: i64,
}

/// Tells it from the instance's events and messages, arrays both, and the text of the first message.
pub(crate) fn named_by(
    db: &Db,
    history: &JsonbBuf,
    has_events: bool,
    messages: &JsonbBuf,
    first_message: &[u8],
) -> Named {
    if !has_events && let Some(named) = by_start(first_message) {
        return named;
    }
    let rows = db.query(&NAMED_BY, &[history.into(), messages.into()]);
    let row = rows.first().expect("a query without FROM returns one row");
    Named {
        orchestration_name: row.text(1).unwrap_or_default().to_vec(),
        orchestration_version: row.text(2).unwrap_or_default().to_vec(),
        execution_id: row.int8(3).unwrap_or(1),
    }
}

/// The message that starts an instance, in the form that it has as good as always: no key twice, no escapes in
/// what is read here (which would be characters in UTF-8, whatever the database's encoding).
#[derive(Deserialize)]
enum Start<'a> {
    StartOrchestration {
        orchestration: &'a str,
        #[serde(default)]
        version: Option<&'a str>,
        #[serde(default)]
        execution_id: Option<i64>,
    },
}

/// Spares the query for a message in that form, a tenth of a fetch; `None` for any other.
fn by_start(message: &[u8]) -> Option<Named> {
    // To serde a list of the values would do as well.
    let inner = &message[message.iter().position(|&byte| byte == b':')? + 1..];
    if inner.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let Start::StartOrchestration { orchestration, version, execution_id } =
        serde_json::from_slice(message).ok()?;
    Some(Named {
        orchestration_name: orchestration.as_bytes().to_vec(),
        orchestration_version: version.unwrap_or("unknown").as_bytes().to_vec(),
        execution_id: execution_id.unwrap_or(1),
    })
}

static NAMED_BY: Statement = Statement {
    text: "
SELECT coalesce(CASE n.source WHEN 'history' THEN h->>'name'
                          WHEN 'nothing' THEN NULL
                          ELSE m->>'orchestration' END, 'Unknown'),
       coalesce(CASE n.source WHEN 'history' THEN h->>'version'
                          WHEN 'nothing' THEN NULL
                          ELSE m->>'version' END, 'unknown'),
       CASE WHEN n.source <> 'start' OR m->>'execution_id' !~ '^-?[0-9]{1,19}$' THEN 1
            WHEN (m->>'execution_id')::numeric BETWEEN -9223372036854775808 AND 9223372036854775807
            THEN coalesce((m->>'execution_id')::bigint, 1)
            ELSE 1 END
FROM (SELECT CASE WHEN $1->0 ? 'OrchestrationStarted' THEN 'history'
                  WHEN $2->0 ? 'StartOrchestration' THEN 'start'
                  WHEN $2->0 ? 'ContinueAsNew' THEN 'continue'
                  ELSE 'nothing' END AS source,
             $1->0->'OrchestrationStarted' AS h,
             coalesce($2->0->'StartOrchestration', $2->0->'ContinueAsNew') AS m) n",
    parameters: &[JSONB, JSONB],
    planning: Planning::ByIndex,
};

#[cfg(test)]
mod tests {
    use super::by_start;

    fn told(message: &str) -> Option<(String, String, i64)> {
        let named = by_start(message.as_bytes())?;
        let text = |bytes| String::from_utf8(bytes).expect("texts here are UTF-8");
        Some((text(named.orchestration_name), text(named.orchestration_version), named.execution_id))
    }

    #[test]
    fn the_usual_message_needs_no_query() {
        let message = r#"{"StartOrchestration":{"instance":"a","orchestration":"Order","input":"{\"a\":1}",
            "version":"1.0.0","parent_instance":null,"parent_id":null,"execution_id":7}}"#;
        assert_eq!(told(message), Some(("Order".into(), "1.0.0".into(), 7)));

        let short = r#"{"StartOrchestration":{"orchestration":"Order","version":null}}"#;
        assert_eq!(told(short), Some(("Order".into(), "unknown".into(), 1)));
    }

    #[test]
    fn what_jsonb_could_read_otherwise_is_left_to_it() {
        for message in [
            r#"{"StartOrchestration":{"orchestration":"a","orchestration":"b"}}"#,
            r#"{"StartOrchestration":{"orchestration":"a"},"StartOrchestration":{"orchestration":"b"}}"#,
            r#"{"StartOrchestration":{"orchestration":"a"},"more":1}"#,
            r#"{"StartOrchestration":{"orchestration":"\u0041"}}"#,
            r#"{"StartOrchestration":{"orchestration":5}}"#,
            r#"{"StartOrchestration":{"orchestration":"a","execution_id":1.0}}"#,
            r#"{"StartOrchestration":{"orchestration":"a","execution_id":99999999999999999999}}"#,
            r#"{"StartOrchestration":{}}"#,
            r#"{"StartOrchestration":["a","1.0.0",7]}"#,
            r#"{"StartOrchestration": ["a","1.0.0",7]}"#,
            r#"{"ContinueAsNew":{"orchestration":"a"}}"#,
            "null",
            "",
        ] {
            assert_eq!(told(message), None, "{message}");
        }
        assert!(by_start(b"{\"StartOrchestration\":{\"orchestration\":\"\xe9\"}}").is_none(), "LATIN1");
    }
}
