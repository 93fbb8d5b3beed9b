//! The turn as a script of pgbench.

/// Fetch, and acknowledge what there was. Without a message there is nothing to acknowledge, and no failure.
pub const SCRIPT: &str = "\
\\set got false
SELECT true AS got, out_lock_token AS token, out_execution_id AS execution \
FROM fetch_orchestration_item((extract(epoch FROM clock_timestamp()) * 1000)::bigint, 30000, 0, 1000032) \\aset
\\if :got
SELECT ack_orchestration_item(:token, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, :execution, :events, :none, \
:none, :metadata, :none);
\\endif
";

/// The same round trips with the same parameters and results, and nothing behind them.
pub const ROUND_TRIPS: &str = "\
\\set got false
SELECT true AS got, 'lock_00000000-0000-4000-8000-000000000000' AS token, 1::bigint AS execution \
WHERE (extract(epoch FROM clock_timestamp()) * 1000)::bigint > 0 \\aset
\\if :got
SELECT '' FROM (SELECT :token::text, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, :execution::bigint, \
:events::jsonb, :none::jsonb, :none::jsonb, :metadata::jsonb, :none::jsonb) turn;
\\endif
";

/// What a first turn writes: one event, and the instance's name.
const EVENTS: &str = r#"[{"event_id":1,"event_type":"OrchestrationStarted","event_data":"{\"event_id\":1,\"source_event_id\":null,\"instance_id\":\"order-1\",\"execution_id\":1,\"timestamp_ms\":1764590400000,\"duroxide_version\":\"0.1.32\",\"type\":\"OrchestrationStarted\",\"name\":\"Order\",\"version\":\"1.0.0\",\"input\":\"{}\"}"}]"#;
const METADATA: &str = r#"{"orchestration_name":"Order","orchestration_version":"1.0.0","status":null,"output":null,"parent_instance_id":null,"pinned_duroxide_version":{"major":0,"minor":1,"patch":32},"custom_status_action":null,"custom_status_value":null,"kv_mutations":[]}"#;

/// What the statements get as parameters, as a client sends it: parsed anew in each call.
pub const fn parameters() -> [(&'static str, &'static str); 3] {
    [("events", EVENTS), ("none", "[]"), ("metadata", METADATA)]
}
