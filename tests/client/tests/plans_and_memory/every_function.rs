//! A round of calls that goes through every function of a queue but `cleanup_schema`, leaves the
//! queue empty, and comes to the same each time.

use duroxide_queue_tests::outcome::{Outcome, run};
use sqlx::postgres::PgConnection;

/// `{q}` stands for the quoted schema. What differs from round to round, tokens and times, is not selected.
const ROUND: &[&str] = &[
    "SELECT {q}.enqueue_orchestrator_work('i', '1', 'epoch')",
    "SELECT out_instance_id, out_history::text, out_messages::text, out_attempt_count FROM {q}.fetch_orchestration_item(1000, 600000)",
    "SELECT {q}.renew_orchestration_item_lock(lock_token, 1000, 60) FROM {q}.instance_locks",
    "SELECT {q}.abandon_orchestration_item(lock_token, 1000) FROM {q}.instance_locks",
    "SELECT out_instance_id, out_history::text, out_messages::text, out_attempt_count FROM {q}.fetch_orchestration_item(1000, 600000, 0, 9000000)",
    r#"SELECT {q}.ack_orchestration_item(lock_token, 1000, 1, '[{"event_id": 1, "event_type": "E", "event_data": "1"}]', '["w"]', '[]',
         '{"orchestration_name": "O", "orchestration_version": "1", "custom_status_action": "set", "custom_status_value": "s",
           "kv_mutations": [{"action": "set", "key": "k", "value": "v"}]}') FROM {q}.instance_locks"#,
    "SELECT out_work_item, out_attempt_count FROM {q}.fetch_work_item(2000, 600000)",
    "SELECT {q}.renew_work_item_lock(lock_token, 2000, 60) FROM {q}.worker_queue",
    "SELECT {q}.abandon_work_item(lock_token, 2000) FROM {q}.worker_queue",
    "SELECT out_work_item, out_attempt_count FROM {q}.fetch_work_item(2000, 600000)",
    "SELECT {q}.ack_worker(lock_token, 'i', '2', 2000) FROM {q}.worker_queue",
    "SELECT {q}.enqueue_worker_work('3', 0, p_session_id => 's', p_tag => 't')",
    "SELECT out_work_item FROM {q}.fetch_work_item(2000, 600000, 'w', 600000, ARRAY['t'], 'tags')",
    "SELECT {q}.renew_session_lock(ARRAY['w'], 2000, 600000, 600000)",
    "SELECT {q}.ack_worker(lock_token) FROM {q}.worker_queue",
    "SELECT {q}.cleanup_orphaned_sessions(9000000)",
    "SELECT out_instance_id, out_history::text, out_messages::text, out_kv_snapshot::text FROM {q}.fetch_orchestration_item(3000, 600000)",
    r#"SELECT {q}.ack_orchestration_item(lock_token, 3000, 1, '[]', '[]', '[]', '{"status": "Completed", "output": "o"}') FROM {q}.instance_locks"#,
    r#"SELECT {q}.append_history('i', 1, '[{"event_id": 2, "event_type": "E", "event_data": "2"}]')"#,
    "SELECT * FROM {q}.fetch_history('i')",
    "SELECT * FROM {q}.fetch_history_with_execution('i', 1)",
    "SELECT * FROM {q}.get_custom_status('i', 0)",
    "SELECT execution_id, status, output, event_count FROM {q}.get_execution_info('i', 1)",
    "SELECT instance_id, orchestration_name, status, output FROM {q}.get_instance_info('i')",
    "SELECT * FROM {q}.get_instance_stats('i')",
    "SELECT * FROM {q}.get_kv_all_values('i')",
    "SELECT * FROM {q}.get_kv_value('i', 'k')",
    "SELECT {q}.get_parent_id('i')",
    "SELECT * FROM {q}.get_queue_depths(9000000)",
    "SELECT * FROM {q}.get_system_metrics()",
    "SELECT {q}.latest_execution_id('i')",
    "SELECT * FROM {q}.list_children('i')",
    "SELECT * FROM {q}.list_executions('i')",
    "SELECT * FROM {q}.list_instances()",
    "SELECT * FROM {q}.list_instances_by_status('Completed')",
    "SELECT * FROM {q}.prune_executions('i', 1)",
    "SELECT * FROM {q}.delete_instances_atomic(ARRAY['i'], true)",
    "SELECT {q}.ack_worker('nobody')",
];

/// What each call of one round came to.
pub(crate) async fn outcomes(session: &mut PgConnection, schema: &str) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(ROUND.len());
    for call in ROUND {
        outcomes.push(run(session, &for_queue(call, schema)).await);
    }
    outcomes
}

/// Runs a round and compares it with an earlier one, call by call.
pub(crate) async fn assert_same(session: &mut PgConnection, schema: &str, expected: &[Outcome], when: &str) {
    for (call, expected) in ROUND.iter().zip(expected) {
        let outcome = run(session, &for_queue(call, schema)).await;
        assert_eq!(&outcome, expected, "{when}: {call}");
    }
}

/// Prepares each call of a round, as a client's driver does.
pub(crate) async fn prepare(session: &mut PgConnection, schema: &str) {
    for (number, call) in ROUND.iter().enumerate() {
        let statement = format!("PREPARE call_{number} AS {}", for_queue(call, schema));
        assert_eq!(run(session, &statement).await.code(), None, "{statement}");
    }
}

/// What each call of a round comes to, as it was prepared.
pub(crate) async fn prepared_outcomes(session: &mut PgConnection) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(ROUND.len());
    for number in 0..ROUND.len() {
        outcomes.push(run(session, &format!("EXECUTE call_{number}")).await);
    }
    outcomes
}

/// A round on a queue that is as it should be, to compare others with.
pub(crate) async fn reference(session: &mut PgConnection, schema: &str) -> Vec<Outcome> {
    let outcomes = outcomes(session, schema).await;
    let (last, others) = outcomes.split_last().expect("a round has calls");
    assert_eq!(last.code(), Some("P0001"), "{last:?}");
    for (call, outcome) in ROUND.iter().zip(others) {
        assert_eq!(outcome.code(), None, "{call}: {outcome:?}");
    }
    let rows = |call: usize| outcomes[call].clone().rows();
    assert_eq!(rows(1), [["i", "[]", "[1]", "1"].map(|value| Some(value.to_owned()))], "the first claim");
    assert_eq!(rows(16), [["i", "[1]", "[2]", "{}"].map(|value| Some(value.to_owned()))], "the last claim");
    outcomes
}

fn for_queue(call: &str, schema: &str) -> String {
    call.replace("{q}", &format!("\"{schema}\""))
}
