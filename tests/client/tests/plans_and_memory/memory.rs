//! Thousands of calls of each kind leave a session's memory where it was; in one transaction it grows
//! no faster than with duroxide-pg's own procedures; plans of many queues are bounded.
//!
//! `make figures` runs the long forms and prints what they measure.

use crate::dispatcher::number;
use crate::polling::{FETCHES, READS};
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::{must, run};
use duroxide_queue_tests::queue;

use sqlx::postgres::PgConnection;

/// Calls before memory is looked at first: catalogs and plans come to be cached.
const WARM_UP: usize = 500;
/// Transactions that go to the server as one text.
const BATCH: usize = 100;
const MAX_GROWTH: i64 = 1 << 20;

/// A number that `make figures` sets higher.
pub(crate) fn figure(variable: &str, usually: usize) -> usize {
    std::env::var(variable)
        .map_or(usually, |value| value.parse().unwrap_or_else(|_| panic!("{variable}={value}: not a number")))
}

fn calls() -> usize {
    figure("DUROXIDE_QUEUE_FIGURES_CALLS", 10_000)
}

/// PostgreSQL's memory contexts, and what the process has of its own; shared buffers, which grow
/// into the process as it touches them, are in the third, which is only told.
async fn memory(session: &mut PgConnection) -> [(&'static str, i64); 3] {
    let contexts = "SELECT sum(total_bytes) FROM pg_backend_memory_contexts";
    let process = |what| {
        format!(
            "SELECT (regexp_match(pg_read_file('/proc/self/status'), '{what}:\\s+(\\d+)'))[1]::bigint * 1024"
        )
    };
    [
        ("memory contexts", number(session, contexts).await),
        ("process", number(session, &process("RssAnon")).await),
        ("VmRSS", number(session, &process("VmRSS")).await),
    ]
}

/// A queue in a database of its own, so that no DDL of other tests makes caches anew.
async fn queue_alone() -> (Database, PgConnection) {
    let database = Database::make().await;
    let mut session = database.connect().await;
    must(
        &mut session,
        "CREATE EXTENSION duroxide_queue; SELECT duroxide_queue.create_queue('q'); SET search_path = q",
    )
    .await;
    (database, session)
}

/// Runs calls, a transaction of their own, `count` times.
async fn repeat(session: &mut PgConnection, call: &str, count: usize) {
    let batch = format!("BEGIN; {call}; COMMIT; ").repeat(BATCH);
    for _ in 0..count / BATCH {
        must(session, &batch).await;
    }
}

async fn assert_no_growth(session: &mut PgConnection, kind: &str, before: [(&'static str, i64); 3]) {
    let after = memory(session).await;
    let told: Vec<_> = before
        .iter()
        .zip(after)
        .map(|((what, before), (_, after))| format!("{what} {} kB to {} kB", before / 1024, after / 1024))
        .collect();
    println!("figure: {} calls, {kind}, a transaction each: {}", calls(), told.join(", "));
    for ((what, before), (_, after)) in before.into_iter().zip(after).take(2) {
        assert!(
            after - before < MAX_GROWTH,
            "{kind}: {what} grew from {before} to {after} in {} calls",
            calls()
        );
    }
}

/// A message, its turn. The lease has to hold until the transaction ends, however many turns it has.
const TURN: &str = r#"SELECT enqueue_orchestrator_work('i', '{"n": 1}', 'epoch');
    SELECT ack_orchestration_item(out_lock_token, 1000, 1, '[]', '["w"]', '[]',
      '{"orchestration_name": "O", "orchestration_version": "1", "kv_mutations": [{"action": "set", "key": "k", "value": "v"}]}')
    FROM fetch_orchestration_item(1000, 900000000);
    DELETE FROM worker_queue"#;
/// A work item and its end, under a session.
const WORK_ITEM: &str = "SELECT enqueue_worker_work('1', 0, p_session_id => 's'); \
    SELECT ack_worker(out_lock_token, p_now_ms => 1000) FROM fetch_work_item(1000, 900000000, 'w', 60000)";
const CAUGHT_ERRORS: &str = "DO 'BEGIN PERFORM ack_worker(''nobody''); EXCEPTION WHEN raise_exception THEN END'; \
    DO 'BEGIN PERFORM enqueue_orchestrator_work(''i'', ''not json'', now()); EXCEPTION WHEN invalid_text_representation THEN END'";

#[tokio::test]
async fn e5_many_calls_of_each_kind_leave_memory_where_it_was() {
    let (database, mut session) = queue_alone().await;
    for (kind, calls_in_one, repeated) in [
        ("empty polls", 2, FETCHES.join("; ")),
        ("turns", 3, TURN.to_owned()),
        ("work items", 3, WORK_ITEM.to_owned()),
        ("readers", READS.len(), READS.join("; ")),
        ("caught errors", 2, CAUGHT_ERRORS.to_owned()),
    ] {
        // An instance to read of, whose history does not grow, and an error of a reader less.
        must(&mut session, "INSERT INTO instances (instance_id, orchestration_name, created_at, updated_at) VALUES ('i', 'O', 'epoch', 'epoch') ON CONFLICT DO NOTHING").await;
        repeat(&mut session, &repeated, WARM_UP).await;
        let before = memory(&mut session).await;
        repeat(&mut session, &repeated, calls().div_ceil(calls_in_one)).await;
        assert_no_growth(&mut session, kind, before).await;
    }
    drop(session);
    database.remove().await;
}

#[tokio::test]
async fn e5_many_failing_acknowledgements_leave_memory_where_it_was() {
    let (database, mut session) = queue_alone().await;
    must(
        &mut session,
        "INSERT INTO instance_locks VALUES ('i', 'held', 9000000, 0); INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, created_at, lock_token) \
         VALUES ('i', '1', 'epoch', 'epoch', 'held')",
    )
    .await;
    // Fails at the start, and in the middle of a turn: the second event is not JSON.
    let failing = [
        "SELECT ack_orchestration_item('nobody', 1000, 1, '[]', '[]', '[]', '{}')",
        r#"SELECT ack_orchestration_item('held', 1000, 1, '[{"event_id": 1, "event_type": "E", "event_data": "1"},
             {"event_id": 2, "event_type": "E", "event_data": "nope"}]', '["w"]', '["m"]', '{}')"#,
    ];
    let mut before = [("", 0); 3];
    for number in 0..WARM_UP + calls() {
        if number == WARM_UP {
            before = memory(&mut session).await;
        }
        assert!(run(&mut session, failing[number % 2]).await.code().is_some());
    }
    assert_no_growth(&mut session, "failing acks", before).await;
    drop(session);
    database.remove().await;
}

/// How much memory contexts and process grow while a transaction runs calls, beyond its first ones.
async fn growth_in_one_transaction(
    session: &mut PgConnection,
    calls: &str,
    count: usize,
    in_a_loop: bool,
) -> [i64; 2] {
    let rows = "TRUNCATE orchestrator_queue, worker_queue, instance_locks, instances, executions, kv_delta, kv_store, sessions";
    must(session, &format!("{rows}; BEGIN")).await;
    let looped = |count: usize| {
        let performed: Vec<_> =
            calls.split(';').map(|call| call.trim().replacen("SELECT", "PERFORM", 1)).collect();
        format!("DO $do$ BEGIN FOR n IN 1..{count} LOOP {}; END LOOP; END $do$", performed.join("; "))
    };
    let mut looks = Vec::new();
    for count in [BATCH, count] {
        if in_a_loop {
            // The loop's own memory is gone when it is over, so it looks itself.
            let look = "PERFORM set_config('dq.contexts', (SELECT sum(total_bytes) FROM pg_backend_memory_contexts)::text, false), \
                        set_config('dq.process', ((regexp_match(pg_read_file('/proc/self/status'), 'RssAnon:\\s+(\\d+)'))[1]::bigint * 1024)::text, false)";
            must(session, &looped(count).replace("END LOOP;", &format!("END LOOP; {look};"))).await;
            looks.push([number(session, "SHOW dq.contexts").await, number(session, "SHOW dq.process").await]);
        } else {
            let batch = format!("{calls}; ").repeat(BATCH);
            for _ in 0..count / BATCH {
                must(session, &batch).await;
            }
            let [contexts, process, _] = memory(session).await;
            looks.push([contexts.1, process.1]);
        }
    }
    must(session, "COMMIT").await;
    [looks[1][0] - looks[0][0], looks[1][1] - looks[0][1]]
}

#[tokio::test]
async fn e5_in_one_transaction_memory_grows_no_faster_than_with_the_reference() {
    let count = figure("DUROXIDE_QUEUE_FIGURES_IN_ONE_TRANSACTION", 400);
    let (database, mut session) = queue_alone().await;
    let provider = queue::open(&database.url(), "theirs", MigrationPolicy::ApplyAll).await;
    provider.pool().close().await;

    for (kind, calls) in [("turns", TURN), ("work items", WORK_ITEM)] {
        for in_a_loop in [false, true] {
            let mut grown = Vec::new();
            for schema in ["theirs", "q"] {
                must(&mut session, &format!("SET search_path = {schema}")).await;
                // Whatever is cached for good is cached now.
                growth_in_one_transaction(&mut session, calls, BATCH, in_a_loop).await;
                grown.push(growth_in_one_transaction(&mut session, calls, count, in_a_loop).await);
            }
            let how = if in_a_loop { "in a DO loop" } else { "as statements of one transaction" };
            println!(
                "figure: {count} {kind} {how}: memory contexts grow by {} kB (theirs {} kB), the process by {} kB (theirs {} kB)",
                grown[1][0] / 1024,
                grown[0][0] / 1024,
                grown[1][1] / 1024,
                grown[0][1] / 1024
            );
            // Contexts grow by blocks whose size doubles.
            for (what, slack, [theirs, ours]) in [
                ("memory contexts", MAX_GROWTH / 4, [grown[0][0], grown[1][0]]),
                ("process", MAX_GROWTH, [grown[0][1], grown[1][1]]),
            ] {
                assert!(
                    ours <= theirs.max(0) + slack,
                    "{kind} {how}: {what} grows by {ours}, theirs by {theirs}"
                );
            }
        }
    }
    drop(session);
    database.remove().await;
}

#[tokio::test]
async fn e5_the_plans_of_many_queues_are_bounded() {
    let queues = figure("DUROXIDE_QUEUE_FIGURES_QUEUES", 40);
    let (database, mut maker) = queue_alone().await;
    for number in 0..queues {
        must(&mut maker, &format!("SELECT duroxide_queue.create_queue('q{number}')")).await;
    }
    let plans =
        "SELECT coalesce(sum(total_bytes), 0) FROM pg_backend_memory_contexts WHERE name LIKE 'CachedPlan%'";

    let mut session = database.connect().await;
    let mut looks = Vec::new();
    for number in 0..queues {
        must(
            &mut session,
            &format!("SET search_path = q{number}; {TURN}; {WORK_ITEM}; {}", READS.join("; ")),
        )
        .await;
        if number + 1 == 20 || number + 1 == queues {
            let plans = crate::dispatcher::number(&mut session, plans).await;
            let [contexts, process, _] = memory(&mut session).await;
            println!(
                "figure: after {} queues, saved plans {} kB, memory contexts {} kB, process {} kB",
                number + 1,
                plans / 1024,
                contexts.1 / 1024,
                process.1 / 1024
            );
            looks.push(plans);
        }
    }
    assert!(looks[0] > 0, "the plans are not where they are looked for");
    assert!(looks[1] <= looks[0] * 5 / 4, "saved plans of 20 queues and of {queues}: {looks:?} bytes");
    drop((session, maker));
    database.remove().await;
}
