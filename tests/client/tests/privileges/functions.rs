//! A queue's functions have their caller's rights, at each call.

use super::{owned_queue, rows};
use duroxide_queue_tests::calls::{CALLS, READERS};
use duroxide_queue_tests::catalog::{self, snapshot};
use duroxide_queue_tests::outcome::{Outcome, must, must_fail, run};
use duroxide_queue_tests::queue::Kind;
use sqlx::postgres::PgConnection;
use std::collections::BTreeSet;

const FUNCTIONS: &str = include_str!("../catalog/functions.tsv");

#[tokio::test]
async fn f3_without_rights_on_tables_every_function_is_refused() {
    let names: BTreeSet<_> = CALLS.iter().map(|(name, _)| *name).collect();
    let contract: BTreeSet<_> = FUNCTIONS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(names, contract);

    for kind in Kind::OURS {
        let (mut database, mut owners, _) = owned_queue(kind).await;
        let stranger = database.role("stranger").await;
        let reader = database.role("reader").await;
        must(&mut owners, &format!("GRANT USAGE ON SCHEMA app TO {stranger}, {reader}")).await;
        must(&mut owners, &format!("GRANT SELECT ON ALL TABLES IN SCHEMA app TO {reader}")).await;
        must(&mut owners, "SELECT app.enqueue_orchestrator_work('secret', '{}', now())").await;
        must(&mut owners, r#"SELECT app.enqueue_worker_work('{"secret":1}', 1)"#).await;
        let (catalog_before, rows_before) = (snapshot(&mut owners, "app").await, rows(&mut owners).await);
        let mut strangers = database.connect_as(&stranger).await;
        let mut readers = database.connect_as(&reader).await;

        for (name, arguments) in CALLS {
            let call = format!("SELECT * FROM app.{name}({arguments})");
            let error = must_fail(&mut strangers, &call).await;
            assert_eq!(error.code, "42501", "{call}: {error}");
            assert!(!error.message.contains("secret"), "{call}: {error}");
            let outcome = run(&mut readers, &call).await;
            if READERS.contains(&name) {
                assert!(
                    matches!(outcome.code(), None | Some("P0001")),
                    "{call} with SELECT alone: {outcome:?}"
                );
            } else {
                let nothing_to_write = outcome.code() == Some("P0001");
                assert!(
                    outcome.code() == Some("42501") || nothing_to_write,
                    "{call} with SELECT alone: {outcome:?}"
                );
            }
        }

        catalog::assert_same("refused calls", &catalog_before, &snapshot(&mut owners, "app").await);
        assert_eq!(rows(&mut owners).await, rows_before);
        database.remove().await;
    }
}

#[tokio::test]
async fn f3_rights_are_asked_again_at_each_call_in_a_session_with_kept_plans() {
    let (mut database, mut owners, _) = owned_queue(Kind::Created).await;
    let client = database.role("client").await;
    must(&mut owners, &format!("GRANT USAGE ON SCHEMA app TO {client} WITH GRANT OPTION")).await;
    let grant = format!("SELECT duroxide_queue.grant_client('app', '{client}')");
    let revoke = format!(
        "SELECT duroxide_queue.revoke_client('app', '{client}'); GRANT USAGE ON SCHEMA app TO {client}"
    );
    must(&mut owners, &grant).await;
    let mut session = database.connect_as(&client).await;
    let calls: Vec<_> = CALLS.iter().filter(|(name, _)| *name != "cleanup_schema").collect();
    for (name, arguments) in &calls {
        must(&mut session, &format!("PREPARE p_{name} AS SELECT * FROM app.{name}({arguments})")).await;
    }

    for _ in 0..8 {
        each_call(&mut session, &calls, None).await;
    }
    for _ in 0..2 {
        must(&mut owners, &revoke).await;
        each_call(&mut session, &calls, Some("42501")).await;
        must(&mut owners, &grant).await;
        each_call(&mut session, &calls, None).await;
    }
    database.remove().await;
}

#[tokio::test]
async fn f3_rights_are_those_of_the_role_that_is_set() {
    let (mut database, mut owners, _) = owned_queue(Kind::Created).await;
    let client = database.role("client").await;
    let stranger = database.role("stranger").await;
    must(&mut owners, &format!("SELECT duroxide_queue.grant_client('app', '{client}')")).await;
    must(&mut owners, &format!("GRANT USAGE ON SCHEMA app TO {stranger}")).await;
    let mut session = database.connect().await;
    let calls: Vec<_> = CALLS.iter().filter(|(name, _)| *name != "cleanup_schema").collect();
    for (name, arguments) in &calls {
        must(&mut session, &format!("PREPARE p_{name} AS SELECT * FROM app.{name}({arguments})")).await;
    }

    for _ in 0..3 {
        for (role, refused) in [(&client, None), (&stranger, Some("42501"))] {
            must(&mut session, &format!("SET ROLE {role}")).await;
            each_call(&mut session, &calls, refused).await;
            must(&mut session, "RESET ROLE").await;
            each_call(&mut session, &calls, None).await;
        }
    }
    database.remove().await;
}

/// Runs each call directly and as a prepared statement; each is refused with the code, or, without
/// one, comes through to what the tables say.
async fn each_call(session: &mut PgConnection, calls: &[&(&str, &str)], refused: Option<&str>) {
    for (name, arguments) in calls {
        for statement in [format!("SELECT * FROM app.{name}({arguments})"), format!("EXECUTE p_{name}")] {
            // In a transaction that is rolled back, so that a call finds what the one before found.
            must(session, "BEGIN").await;
            let outcome = run(session, &statement).await;
            must(session, "ROLLBACK").await;
            match refused {
                Some(code) => assert_eq!(outcome.code(), Some(code), "{statement}: {outcome:?}"),
                None => assert!(matches!(outcome.code(), None | Some("P0001")), "{statement}: {outcome:?}"),
            }
        }
    }
}

/// Calls that come as far as to rows and constraints.
const REACHING: [&str; 6] = [
    "fetch_orchestration_item(2000000000000, 30000)",
    "fetch_work_item(2000000000000, 30000, 'w')",
    r#"ack_orchestration_item('leased', 2000000000000, 1, '[{"event_id":1,"event_type":"T","event_data":"{}"}]', '[{}]', '[]', '{}')"#,
    "ack_worker('leased', 'i', '{}', 2000000000000)",
    "delete_instances_atomic(ARRAY['i'], true)",
    "prune_executions('i', 1)",
];

#[tokio::test]
async fn f3_errors_show_nothing_of_rows_that_the_caller_may_not_read() {
    let (mut database, mut owners, _) = owned_queue(Kind::Created).await;
    let caller = database.role("caller").await;
    must(
        &mut owners,
        &format!(
            r#"GRANT USAGE ON SCHEMA app TO {caller};
               GRANT ALL ON ALL TABLES IN SCHEMA app TO {caller}; GRANT ALL ON ALL SEQUENCES IN SCHEMA app TO {caller};
               INSERT INTO app.instances VALUES ('i', 'of-instances', '1', 2, now(), now(), NULL, 'of-instances', 1);
               INSERT INTO app.executions VALUES ('i', 1, 'Completed', 'of-executions', now()), ('i', 2, 'Running', 'of-executions', now());
               INSERT INTO app.history VALUES ('i', 1, 1, 'T', '{{"of-history":1}}', now()), ('i', 2, 1, 'T', 'of-history, and no JSON', now());
               INSERT INTO app.kv_store VALUES ('i', 'of-kv_store', 'of-kv_store', 1, 1); INSERT INTO app.kv_delta VALUES ('i', 'of-kv_delta', 'of-kv_delta', 1);
               INSERT INTO app.orchestrator_queue (instance_id, work_item, visible_at, created_at)
                 VALUES ('i', '{{"of-orchestrator_queue":1}}', now(), now()), ('bad', 'of-orchestrator_queue, and no JSON', '-infinity', now());
               INSERT INTO app.orchestrator_queue (instance_id, work_item, visible_at, created_at, lock_token, locked_until)
                 VALUES ('j', '{{"of-orchestrator_queue":1}}', now(), now(), 'leased', 3000000000000);
               INSERT INTO app.instance_locks VALUES ('j', 'leased', 3000000000000, 1);
               INSERT INTO app.worker_queue (work_item, visible_at, created_at) VALUES ('{{"of-worker_queue":1}}', now(), now());
               INSERT INTO app.worker_queue (work_item, visible_at, created_at, lock_token, locked_until)
                 VALUES ('{{"of-worker_queue":1}}', now(), now(), 'leased', 3000000000000);
               INSERT INTO app.sessions VALUES ('of-sessions', 'w', 3000000000000, 1);
               ALTER TABLE app.history ADD CHECK (event_id > 1) NOT VALID;
               ALTER TABLE app.orchestrator_queue ADD CHECK (lock_token IS NULL) NOT VALID;
               ALTER TABLE app.worker_queue ADD CHECK (lock_token IS NULL) NOT VALID;
               ALTER TABLE app.dead_letters ADD CHECK (reason IS NULL)"#
        ),
    )
    .await;
    let mut session = database.connect_as(&caller).await;
    let calls: Vec<_> = CALLS
        .iter()
        .filter(|(name, _)| *name != "cleanup_schema")
        .map(|(name, arguments)| format!("{name}({arguments})"))
        .chain(REACHING.map(str::to_owned))
        .collect();
    let tables = must(
        &mut owners,
        "SELECT relname FROM pg_class WHERE relnamespace = 'app'::regnamespace AND relkind = 'r' ORDER BY 1",
    )
    .await;
    assert!(tables.len() >= 10, "{tables:?}");

    let (mut errors, mut complaints) = (0, Vec::new());
    for table in tables.iter().flatten().flatten() {
        must(&mut owners, &format!("REVOKE SELECT ON app.{table} FROM {caller}")).await;
        for call in &calls {
            must(&mut session, "BEGIN").await;
            if let Outcome::Error(error) = run(&mut session, &format!("SELECT * FROM app.{call}")).await {
                errors += 1;
                if format!("{error:?}").contains(&format!("of-{table}")) {
                    complaints.push(format!("{call} without SELECT on {table}: {error:?}"));
                }
            }
            must(&mut session, "ROLLBACK").await;
        }
        must(&mut owners, &format!("GRANT SELECT ON app.{table} TO {caller}")).await;
    }
    assert!(errors > calls.len(), "only {errors} errors");
    database.remove().await;
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[tokio::test]
async fn g2_columns_of_other_types_are_an_error_and_no_look_into_memory() {
    let (database, mut owners, _) = owned_queue(Kind::Created).await;
    let mut complaints = Vec::new();
    for (column, calls) in [
        ("history.event_data", &["fetch_history('i')", "get_instance_stats('i')"][..]),
        ("kv_store.value", &["get_kv_value('i', 'k')", "get_kv_all_values('i')"]),
        ("instances.custom_status", &["get_custom_status('i', 0)"]),
        ("instances.parent_instance_id", &["get_parent_id('i')"]),
        (
            "instances.orchestration_name",
            &["get_instance_info('i')", "fetch_orchestration_item(2000000000000, 1)"],
        ),
        ("executions.output", &["get_instance_info('i')", "get_execution_info('i', 1)"]),
        ("worker_queue.work_item", &["fetch_work_item(2000000000000, 1)"]),
        ("orchestrator_queue.work_item", &["fetch_orchestration_item(2000000000000, 1)"]),
    ] {
        let (table, name) = column.split_once('.').expect("table and column");
        for call in calls {
            must(
                &mut owners,
                &format!(
                    "BEGIN;
                     INSERT INTO app.instances VALUES ('i', 'O', '1', 1, now(), now(), 'p', 's', 1);
                     INSERT INTO app.executions VALUES ('i', 1, 'Running', 'o', now());
                     INSERT INTO app.history VALUES ('i', 1, 1, 'T', '{{}}', now());
                     INSERT INTO app.kv_store VALUES ('i', 'k', 'v', 1, 1);
                     SELECT app.enqueue_orchestrator_work('i', '{{}}', now()), app.enqueue_worker_work('{{}}', 1);
                     SELECT app.{call};
                     UPDATE app.orchestrator_queue SET lock_token = NULL, locked_until = NULL;
                     UPDATE app.worker_queue SET lock_token = NULL, locked_until = NULL;
                     DELETE FROM app.instance_locks;
                     ALTER TABLE app.{table} ALTER COLUMN {name} TYPE bigint USING 1"
                ),
            )
            .await;
            let outcome = run(&mut owners, &format!("SELECT app.{call}")).await;
            if outcome.code().is_none_or(|code| code.starts_with("XX")) {
                complaints.push(format!("{call} with {column} of another type: {outcome:?}"));
            }
            must(&mut owners, "ROLLBACK").await;
        }
    }
    database.remove().await;
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[tokio::test]
async fn g2_keys_that_are_no_plain_texts_are_no_look_into_memory() {
    let (database, mut owners, _) = owned_queue(Kind::Created).await;
    let fetches = "SELECT out_instance_id FROM app.fetch_orchestration_item(2000000000000, 1);
                   SELECT out_work_item FROM app.fetch_work_item(2000000000000, 1, 'w', 1)";
    let mut outcomes = Vec::new();
    for change in [
        "ALTER TABLE app.{table} ALTER COLUMN {key} TYPE name",
        "ALTER TABLE app.{table} ALTER COLUMN {key} TYPE varchar",
        "ALTER TABLE app.{table} ALTER COLUMN {key} TYPE bytea USING ''",
        "ALTER TABLE app.{table} DROP CONSTRAINT {table}_pkey, ADD PRIMARY KEY ({key}, locked_until)",
        "ALTER TABLE app.{table} DROP CONSTRAINT {table}_pkey, ADD short name, ADD PRIMARY KEY (short)",
        "ALTER TABLE app.{table} DROP CONSTRAINT {table}_pkey, ADD number bigint, ADD PRIMARY KEY (number)",
        "ALTER TABLE app.{table} DROP CONSTRAINT {table}_pkey",
        "ALTER TABLE app.{table} RENAME TO plain;
         CREATE TABLE app.{table} (LIKE app.plain, PRIMARY KEY ({key})) PARTITION BY HASH ({key});
         CREATE TABLE app.part PARTITION OF app.{table} FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
        "ALTER TABLE app.{table} RENAME TO plain; CREATE VIEW app.{table} AS SELECT * FROM app.plain",
    ] {
        for (table, key) in [("instance_locks", "instance_id"), ("sessions", "session_id")] {
            let change = change.replace("{table}", table).replace("{key}", key);
            // Sixty bytes: as a text of another kind their header is a length of many.
            must(
                &mut owners,
                &format!(
                    "BEGIN;
                     SELECT app.enqueue_orchestrator_work(repeat('x', 60), '{{}}', 'epoch'),
                            app.enqueue_worker_work('{{}}', 1, 'i', 1, 1, repeat('x', 60));
                     {change}"
                ),
            )
            .await;
            // What an owner could have there for us to trip over.
            for values in ["(E'\\x01\\x01aaaaaaaaaaaa', 't', 0, 0)", "('', 't', 0, 0)"] {
                must(&mut owners, "SAVEPOINT s").await;
                let inserted = run(&mut owners, &format!("INSERT INTO app.{table} VALUES {values}")).await;
                must(&mut owners, if inserted.code().is_some() { "ROLLBACK TO s" } else { "RELEASE s" })
                    .await;
            }
            let outcome = run(&mut owners, fetches).await;
            outcomes.push(match outcome {
                Outcome::Rows(rows) => format!("{change}: {} claimed", rows.len()),
                Outcome::Error(error) => format!("{change}: {}", error.code),
            });
            must(&mut owners, "ROLLBACK").await;
        }
    }
    println!("{outcomes:#?}");
    assert!(outcomes.iter().all(|outcome| !outcome.contains(": XX")), "{outcomes:#?}");
    // A partitioned table is a table.
    let whole =
        outcomes.iter().filter(|outcome| outcome.contains("HASH") && outcome.ends_with(": 2 claimed"));
    assert_eq!(whole.count(), 2, "{outcomes:#?}");
    database.remove().await;
}
