//! A live queue: something in each of its tables, an instance and a work item under a lease; and whether it goes on
//! after it has been dumped, restored or upgraded.

use crate::outcome::{must, must_fail, run};
use sqlx::postgres::PgConnection;
use std::collections::BTreeMap;

const FILL: &str = include_str!("live_queue/fill.sql");

/// Puts the load on an empty queue.
pub async fn load(session: &mut PgConnection, schema: &str) {
    must(session, &FILL.replace("{q}", schema)).await;
}

/// Puts the load on a new queue, which then has a row in each of its tables.
///
/// # Panics
///
/// If a table stays empty.
pub async fn fill(session: &mut PgConnection, schema: &str) {
    load(session, schema).await;
    let empty: Vec<_> = rows(session, schema)
        .await
        .into_iter()
        .filter(|(_, rows)| rows.is_empty())
        .map(|(table, _)| table)
        .collect();
    assert!(empty.is_empty(), "{schema} is to have a row in each table, there is none in {empty:?}");
}

/// The rows of each table, with their columns in the order that the table has them, sorted.
pub async fn rows(session: &mut PgConnection, schema: &str) -> BTreeMap<String, Vec<String>> {
    let tables = must(
        session,
        &format!(
            "SELECT relname FROM pg_class WHERE relnamespace = '{schema}'::regnamespace AND relkind = 'r'"
        ),
    )
    .await;
    let mut all = BTreeMap::new();
    for table in texts(tables) {
        let rows = must(session, &format!("SELECT t::text FROM {schema}.{table} t ORDER BY 1")).await;
        all.insert(table, texts(rows));
    }
    all
}

/// Where each sequence stands.
pub async fn sequences(session: &mut PgConnection, schema: &str) -> Vec<String> {
    let query = format!(
        "SELECT sequencename || ' ' || coalesce(last_value::text, 'unused') FROM pg_sequences
         WHERE schemaname = '{schema}' ORDER BY 1"
    );
    texts(must(session, &query).await)
}

/// Goes on where `fill` has stopped: leases are honoured until their end, their tokens are good, new messages get
/// new ids, and what waited is delivered.
///
/// # Panics
///
/// If anything is not as it was left.
pub async fn go_on(session: &mut PgConnection, schema: &str) {
    let q = |text: &str| text.replace("{q}", schema);
    new_ids(session, schema).await;

    // Before the leases end: the waiting instance with its three messages, then nothing.
    let turn = must(session, &q("SELECT out_instance_id, out_messages::text FROM {q}.fetch_orchestration_item(2000000030000, 60000)")).await;
    assert_eq!(texts(turn.clone()), ["waits"], "{schema}: {turn:?}");
    assert_eq!(turn[0][1].as_deref(), Some("[1, 2, 3]"), "{schema}");
    let none =
        must(session, &q("SELECT out_instance_id FROM {q}.fetch_orchestration_item(2000000030000, 60000)"))
            .await;
    assert_eq!(texts(none), [] as [&str; 0], "{schema}: a lease is honoured");
    let other =
        "SELECT out_work_item FROM {q}.fetch_work_item(2000000030000, 60000, NULL, NULL, ARRAY['t'], 'any')";
    assert_eq!(texts(must(session, &q(other)).await), ["\"an activity\""], "{schema}");
    assert_eq!(
        texts(must(session, &q(other)).await),
        [] as [&str; 0],
        "{schema}: a work item's lease is honoured"
    );

    // The tokens of before.
    for id in ["leased", "waits"] {
        let ack = q(r#"SELECT {q}.ack_orchestration_item(lock_token, 2000000030000, 1,
                         '[{"event_id": 1, "event_type": "Started", "event_data": "{}"}]', '[]', '[]',
                         '{"orchestration_name": "Order", "orchestration_version": "1.0.0", "status": "Running"}')
                       FROM {q}.instance_locks WHERE instance_id = "#);
        must(session, &format!("{ack}'{id}'")).await;
    }
    must(session, &q("SELECT {q}.ack_worker(lock_token, NULL, NULL, 2000000030000) FROM {q}.worker_queue"))
        .await;
    let left = must(session, &q("SELECT instance_id FROM {q}.orchestrator_queue UNION ALL SELECT lock_token FROM {q}.instance_locks
                                 UNION ALL SELECT work_item FROM {q}.worker_queue")).await;
    assert_eq!(texts(left), ["later"], "{schema}: all the rest is done");

    // History and store of before.
    let history = must(session, &q("SELECT out_event_data FROM {q}.fetch_history('done')")).await;
    assert_eq!(texts(history), [r#"{"n": 1.50}"#, "\"\u{e9}\""], "{schema}");
    let value = must(session, &q("SELECT out_value FROM {q}.get_kv_value('done', 'total')")).await;
    assert_eq!(texts(value), ["36.00"], "{schema}");
    let dead = must(session, &q("SELECT reason FROM {q}.dead_letters WHERE work_item = 'not JSON'")).await;
    assert_eq!(dead.len(), 1, "{schema}: {dead:?}");
    must(session, &q("SELECT duroxide_queue.discard('{q}', id) FROM {q}.dead_letters")).await;
    let missing = must_fail(session, &q("SELECT {q}.ack_worker('nobody')")).await;
    assert_eq!(missing.code, "P0001", "{missing}");
}

/// Enqueues a message and a work item and takes them away again: their ids are beyond all that were there.
async fn new_ids(session: &mut PgConnection, schema: &str) {
    let calls = [
        ("orchestrator_queue", "enqueue_orchestrator_work('new', '1', 'epoch')", "instance_id = 'new'"),
        ("worker_queue", "enqueue_worker_work('\"new\"', 0)", "work_item = '\"new\"'"),
    ];
    for (table, enqueue, new) in calls {
        let script = format!(
            "CREATE TEMP TABLE before AS SELECT coalesce(max(id), 0) AS id FROM {schema}.{table};
             SELECT {schema}.{enqueue};
             SELECT bool_and(q.id > b.id) FROM {schema}.{table} q, before b WHERE {new};
             DELETE FROM {schema}.{table} WHERE {new};
             DROP TABLE before"
        );
        let outcome = run(session, &script).await.rows();
        assert!(outcome.contains(&vec![Some("t".into())]), "{schema}.{table} gives ids twice: {outcome:?}");
    }
}

fn texts(rows: Vec<Vec<Option<String>>>) -> Vec<String> {
    rows.into_iter().map(|mut row| row.remove(0).expect("no value is NULL")).collect()
}
