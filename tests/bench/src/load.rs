//! Statements that fill a queue in bulk, and bring its statistics up to date as autovacuum would.

use duroxide_queue_tests::outcome::must;
use sqlx::postgres::PgConnection;
use std::ops::RangeInclusive;

/// Empties every table.
pub const CLEAR: &str = "TRUNCATE orchestrator_queue, instance_locks, worker_queue, history, instances, executions, \
                         kv_store, kv_delta, sessions";

/// How long the leases of loaded rows hold, in milliseconds of the Unix epoch: beyond any run.
const FAR: &str = "(extract(epoch FROM now()) * 1000)::bigint + 86400000";

/// The order of the claim among rows of one kind.
const STEP: &str = "g * interval '1 ms'";

/// Messages that start instances: those with these numbers, the lowest first in the order of the claim.
pub fn ready(numbers: RangeInclusive<u64>) -> String {
    messages("order", numbers, "now() - interval '1 hour'", "NULL", "NULL")
}

/// The same with messages that become visible tomorrow.
pub fn future(numbers: RangeInclusive<u64>) -> String {
    messages("order", numbers, "now() + interval '1 day'", "NULL", "NULL")
}

/// Instances that somebody has leased, each with one message, older than those of [`ready`].
pub fn leased(count: u64) -> [String; 2] {
    let locks = format!(
        "INSERT INTO instance_locks (instance_id, lock_token, locked_until, locked_at)
         SELECT 'leased-' || g, 'token-' || g, {FAR}, 0 FROM generate_series(1, {count}) g"
    );
    [locks, messages("leased", 1..=count, "now() - interval '2 hours'", "'token-' || g", FAR)]
}

fn messages(
    prefix: &str,
    numbers: RangeInclusive<u64>,
    visible_at: &str,
    token: &str,
    locked_until: &str,
) -> String {
    format!(
        r#"INSERT INTO orchestrator_queue
             (instance_id, work_item, visible_at, created_at, lock_token, locked_until, attempt_count)
           SELECT '{prefix}-' || g,
                  '{{"StartOrchestration":{{"instance":"{prefix}-' || g || '","orchestration":"Order","input":"{{}}",'
                  || '"version":"1.0.0","parent_instance":null,"parent_id":null,"execution_id":1}}}}',
                  {visible_at} + {STEP}, now(), {token}, {locked_until}, ({token} IS NOT NULL)::integer
           FROM generate_series({}, {}) g"#,
        numbers.start(),
        numbers.end()
    )
}

/// Messages that came for the first instance of [`leased`] since it was claimed, older than those of [`ready`].
pub fn waiting_for_leased(count: u64) -> String {
    completions("leased-1", count, "now() - interval '90 minutes'")
}

fn completions(instance: &str, count: u64, visible_at: &str) -> String {
    format!(
        r#"INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at)
           SELECT '{instance}',
                  '{{"ActivityCompleted":{{"instance":"{instance}","execution_id":1,"id":' || g || ',"result":"\"done\""}}}}',
                  {visible_at} + {STEP}, now()
           FROM generate_series(1, {count}) g"#
    )
}

/// Work items that are free.
pub fn ready_work(count: u64) -> String {
    work(count, "now() - interval '1 hour'", "NULL", "NULL")
}

/// Work items that become visible tomorrow.
pub fn future_work(count: u64) -> String {
    work(count, "now() + interval '1 day'", "NULL", "NULL")
}

/// Work items that somebody has leased, older than those of [`ready_work`].
pub fn leased_work(count: u64) -> String {
    work(count, "now() - interval '2 hours'", "'token-' || g", FAR)
}

fn work(count: u64, visible_at: &str, token: &str, locked_until: &str) -> String {
    format!(
        r#"INSERT INTO worker_queue
             (work_item, visible_at, created_at, lock_token, locked_until, attempt_count,
              instance_id, execution_id, activity_id)
           SELECT '{{"ActivityExecute":{{"instance":"order-' || g || '","execution_id":1,"id":2,"name":"charge","input":"{{}}"}}}}',
                  {visible_at} + {STEP}, now(), {token}, {locked_until}, ({token} IS NOT NULL)::integer,
                  'order-' || g, 1, 2
           FROM generate_series(1, {count}) g"#
    )
}

/// One running instance of so many events, with so many messages.
pub fn long_instance(events: u64, messages: u64) -> Vec<String> {
    vec![
        "INSERT INTO instances (instance_id, orchestration_name, orchestration_version, current_execution_id,
                                created_at, updated_at)
         VALUES ('long', 'Order', '1.0.0', 1, now(), now())"
            .to_owned(),
        "INSERT INTO executions (instance_id, execution_id, status, started_at) VALUES ('long', 1, 'Running', now())"
            .to_owned(),
        format!(
            r#"INSERT INTO history (instance_id, execution_id, event_id, event_type, event_data, created_at)
               SELECT 'long', 1, g, kind,
                      '{{"event_id":' || g || ',"source_event_id":' || source || ',"instance_id":"long","execution_id":1,'
                      || '"timestamp_ms":1764590400000,"duroxide_version":"0.1.32","type":"' || kind || '",' || rest || '}}',
                      now()
               FROM generate_series(1, {events}) g,
                    LATERAL (SELECT CASE g % 2
                               WHEN 1 THEN 'ActivityScheduled' ELSE 'ActivityCompleted' END) k (kind),
                    LATERAL (SELECT CASE g % 2 WHEN 1 THEN 'null' ELSE (g - 1)::text END,
                                    CASE g % 2
                               WHEN 1 THEN '"name":"charge","input":"{{\"order\":' || g || ',\"amount\":36.00}}"'
                               ELSE '"result":"{{\"ok\":true,\"receipt\":\"charged order ' || g || '\"}}"' END) r (source, rest)"#
        ),
        completions("long", messages, "now() - interval '1 hour'"),
    ]
}

/// Vacuums and analyses every table.
pub async fn settle(session: &mut PgConnection) {
    must(
        session,
        "VACUUM (ANALYZE) orchestrator_queue, instance_locks, worker_queue, history, instances, executions, kv_store, \
         kv_delta, sessions",
    )
    .await;
}
