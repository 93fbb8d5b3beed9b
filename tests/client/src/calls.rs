//! One call of each function of a queue, such that it comes to the tables.

use crate::outcome::{Outcome, must, run};
use sqlx::postgres::PgConnection;

/// Name and arguments. Tokens are nobody's, so a caller with all rights may be told so (P0001).
pub const CALLS: [(&str, &str); 32] = [
    ("abandon_orchestration_item", "'lock_nobody', 2000000000000"),
    ("abandon_work_item", "'lock_nobody', 2000000000000"),
    ("ack_orchestration_item", "'lock_nobody', 2000000000000, 1, '[]', '[]', '[]', '{}'"),
    ("ack_worker", "'lock_nobody', 'i', '{}', 2000000000000"),
    ("append_history", r#"'i', 1, '[{"event_id":1,"event_type":"T","event_data":"{}"}]'"#),
    ("cleanup_orphaned_sessions", "0"),
    ("cleanup_schema", ""),
    ("delete_instances_atomic", "ARRAY['nobody'], false"),
    ("enqueue_orchestrator_work", "'i', '{}', now()"),
    ("enqueue_worker_work", "'{}', 1"),
    ("fetch_history", "'i'"),
    ("fetch_history_with_execution", "'i', 1"),
    ("fetch_orchestration_item", "2000000000000, 30000"),
    ("fetch_work_item", "2000000000000, 30000"),
    ("get_custom_status", "'i', 0"),
    ("get_execution_info", "'i', 1"),
    ("get_instance_info", "'i'"),
    ("get_instance_stats", "'i'"),
    ("get_kv_all_values", "'i'"),
    ("get_kv_value", "'i', 'k'"),
    ("get_parent_id", "'i'"),
    ("get_queue_depths", "2000000000000"),
    ("get_system_metrics", ""),
    ("latest_execution_id", "'i'"),
    ("list_children", "'i'"),
    ("list_executions", "'i'"),
    ("list_instances", ""),
    ("list_instances_by_status", "'Running'"),
    ("prune_executions", "'i'"),
    ("renew_orchestration_item_lock", "'lock_nobody', 2000000000000, 30"),
    ("renew_session_lock", "ARRAY['w'], 2000000000000, 30000, 30000"),
    ("renew_work_item_lock", "'lock_nobody', 2000000000000, 30"),
];

/// Functions that only read.
pub const READERS: [&str; 17] = [
    "fetch_history",
    "fetch_history_with_execution",
    "get_custom_status",
    "get_execution_info",
    "get_instance_info",
    "get_instance_stats",
    "get_kv_all_values",
    "get_kv_value",
    "get_parent_id",
    "get_queue_depths",
    "get_system_metrics",
    "latest_execution_id",
    "list_children",
    "list_executions",
    "list_instances",
    "list_instances_by_status",
    // Looks for the instance first, and there is none.
    "prune_executions",
];

/// The function that drops the queue.
const LAST: &str = "cleanup_schema";

/// Calls each function of a queue, the one that drops the queue last.
///
/// # Panics
///
/// If one fails in another way than for a token that is nobody's.
pub async fn call_each(session: &mut PgConnection, schema: &str) {
    call_each_but_the_last(session, schema).await;
    must(session, &format!("SELECT {schema}.{LAST}()")).await;
}

/// The same for a queue that stays.
///
/// # Panics
///
/// If one fails in another way than for a token that is nobody's.
pub async fn call_each_but_the_last(session: &mut PgConnection, schema: &str) {
    for (name, arguments) in CALLS.iter().filter(|(name, _)| *name != LAST) {
        let call = format!("SELECT * FROM {schema}.{name}({arguments})");
        match run(session, &call).await {
            Outcome::Error(error) if error.code != "P0001" => panic!("{call}: {error}"),
            _ => {}
        }
    }
}
