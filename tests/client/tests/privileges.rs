//! A queue is its owner's alone to manage and its clients' to work on, each with the caller's own
//! rights, whatever names the caller has put in the way.

#[path = "privileges/calls.rs"]
mod calls;
#[path = "privileges/escalation.rs"]
mod escalation;

use calls::{CALLS, READERS};
use duroxide::Client;
use duroxide::OrchestrationStatus;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::catalog::{self, snapshot};
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::{Outcome, must, must_fail, run};
use duroxide_queue_tests::queue::{self, Kind};
use duroxide_queue_tests::workflow::{self, Pace};
use sqlx::postgres::PgConnection;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const FUNCTIONS: &str = include_str!("catalog/functions.tsv");
const GRANTED: &str = include_str!("privileges/granted.txt");
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn create_on_the_database_is_enough_to_create_the_extension() {
    let mut database = Database::make().await;
    let role = database.role("creator").await;
    let name = database.name().to_owned();
    let mut superuser = database.connect().await;
    let mut session = database.connect_as(&role).await;

    let error = must_fail(&mut session, "CREATE EXTENSION duroxide_queue").await;
    assert_eq!(error.code, "42501", "{error}");
    must(&mut superuser, &format!("GRANT CREATE ON DATABASE {name} TO {role}")).await;
    must(&mut session, "CREATE EXTENSION duroxide_queue").await;

    must(&mut session, "SELECT duroxide_queue.create_queue('app')").await;
    must(&mut session, "SELECT app.enqueue_orchestrator_work('i', '{}', now())").await;
    let seen = must(&mut session, "SELECT queue, owner, origin, intact FROM duroxide_queue.queues").await;
    assert_eq!(seen, [["app", &role, "created", "t"].map(|cell| Some(cell.to_owned()))]);
    must(&mut session, "SELECT duroxide_queue.drop_queue('app')").await;
    must(&mut session, "DROP EXTENSION duroxide_queue").await;
    database.remove().await;
}

#[tokio::test]
async fn the_owner_of_a_schema_needs_no_other_right() {
    let (mut database, mut superuser) = database_with_extension().await;
    let owner = database.role("owner").await;
    let client = database.role("client").await;
    must(&mut superuser, &format!("CREATE SCHEMA own AUTHORIZATION {owner}")).await;
    reference_schema(&database, &mut superuser, &owner).await;
    let mut session = database.connect_as(&owner).await;

    must(&mut session, "SELECT duroxide_queue.create_queue('own')").await;
    must(&mut session, "SELECT duroxide_queue.adopt_queue('app')").await;
    for schema in ["own", "app"] {
        must(&mut session, &format!("SELECT duroxide_queue.grant_client('{schema}', '{client}')")).await;
        must(&mut session, &format!("SELECT {schema}.enqueue_orchestrator_work('i', '{{}}', now())")).await;
        must(&mut session, &format!("SELECT * FROM {schema}.fetch_orchestration_item(2000000000000, 1)"))
            .await;
        must(&mut session, &format!("SELECT duroxide_queue.revoke_client('{schema}', '{client}')")).await;
    }
    must(&mut session, "SELECT duroxide_queue.release_queue('app')").await;
    must(&mut session, "SELECT duroxide_queue.drop_queue('own')").await;

    let error = must_fail(&mut session, "SELECT duroxide_queue.create_queue('missing')").await;
    assert_eq!(error.code, "3F000", "{error}");
    assert!(error.hint.is_some());
    database.remove().await;
}

#[tokio::test]
async fn a_member_of_the_owning_role_manages_the_queue_too() {
    let (mut database, mut superuser) = database_with_extension().await;
    let owner = database.role("owner").await;
    let member = database.role("member").await;
    let guest = database.role("guest").await;
    must(&mut superuser, &format!("GRANT {owner} TO {member}")).await;
    must(&mut superuser, &format!("ALTER ROLE {guest} NOINHERIT; GRANT {owner} TO {guest}")).await;
    reference_schema(&database, &mut superuser, &owner).await;
    let mut members = database.connect_as(&member).await;
    let mut guests = database.connect_as(&guest).await;

    let error = must_fail(&mut guests, "SELECT duroxide_queue.adopt_queue('app')").await;
    assert_eq!(error.code, "42501", "membership without inheritance gives no right: {error}");
    must(&mut members, "SELECT duroxide_queue.adopt_queue('app')").await;
    must(&mut guests, &format!("SET ROLE {owner}")).await;
    must(&mut guests, "SELECT duroxide_queue.release_queue('app')").await;
    database.remove().await;
}

#[tokio::test]
async fn nobody_but_the_owner_manages_a_queue() {
    let (mut database, mut superuser) = database_with_extension().await;
    let owner = database.role("owner").await;
    let stranger = database.role("stranger").await;
    must(&mut superuser, &format!("CREATE SCHEMA made AUTHORIZATION {owner}")).await;
    must(&mut superuser, &format!("CREATE SCHEMA empty AUTHORIZATION {owner}")).await;
    reference_schema(&database, &mut superuser, &owner).await;
    let mut owners = database.connect_as(&owner).await;
    must(&mut owners, "SELECT duroxide_queue.create_queue('made')").await;
    bury_a_message(&mut owners, "made").await;
    let mut strangers = database.connect_as(&stranger).await;
    let on_a_queue = [
        "drop_queue('made')".to_owned(),
        "adopt_queue('app')".to_owned(),
        format!("grant_client('made', '{stranger}')"),
        format!("revoke_client('made', '{owner}')"),
        "redrive('made', 1)".to_owned(),
        "discard('made', 1)".to_owned(),
    ];
    let anywhere = ["create_queue('empty')".to_owned(), "create_queue('made')".to_owned()];

    // Without rights, with those of a client, and with all rights on everything but ownership.
    for rights in ["none", "client", "all"] {
        match rights {
            "client" => {
                must(&mut owners, &format!("SELECT duroxide_queue.grant_client('made', '{stranger}')")).await;
            }
            "all" => {
                for schema in ["made", "app"] {
                    must(
                        &mut superuser,
                        &format!(
                            "GRANT ALL ON SCHEMA {schema} TO {stranger};
                             GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {stranger};
                             GRANT ALL ON ALL SEQUENCES IN SCHEMA {schema} TO {stranger};
                             GRANT ALL ON ALL FUNCTIONS IN SCHEMA {schema} TO {stranger}"
                        ),
                    )
                    .await;
                }
            }
            _ => {}
        }
        let before = snapshots(&mut superuser, &["made", "app", "empty"]).await;
        for call in on_a_queue.iter().chain(&anywhere) {
            let error = must_fail(&mut strangers, &format!("SELECT duroxide_queue.{call}")).await;
            let there_already = call == "create_queue('made')" && rights == "all" && error.code == "42710";
            assert!(error.code == "42501" || there_already, "{call} with rights {rights}: {error}");
            assert!(error.hint.is_some(), "{call} with rights {rights}: {error}");
        }
        catalog::assert_same(rights, &before, &snapshots(&mut superuser, &["made", "app", "empty"]).await);
    }

    must(&mut owners, "SELECT duroxide_queue.adopt_queue('app')").await;
    let error = must_fail(&mut strangers, "SELECT duroxide_queue.release_queue('app')").await;
    assert_eq!(error.code, "42501", "{error}");
    let letters = must(&mut owners, "SELECT id FROM made.dead_letters").await;
    assert_eq!(letters, [[Some("1".into())]]);
    database.remove().await;
}

#[tokio::test]
async fn a_client_role_runs_the_real_client_on_a_created_queue() {
    a_client_role_runs_the_real_client(Kind::Created).await;
}

#[tokio::test]
async fn a_client_role_runs_the_real_client_on_an_adopted_queue() {
    a_client_role_runs_the_real_client(Kind::Adopted).await;
}

async fn a_client_role_runs_the_real_client(kind: Kind) {
    let (mut database, mut owners, _) = owned_queue(kind).await;
    let client_role = database.role("client").await;
    must(&mut owners, &format!("SELECT duroxide_queue.grant_client('app', '{client_role}')")).await;
    let url = database.url_as(&client_role);
    let provider = Arc::new(queue::open(&url, "app", MigrationPolicy::VerifyOnly).await);
    let pace = Pace {
        charge: Duration::from_millis(50),
        activity: Duration::from_millis(10),
        timer: Duration::from_millis(100),
    };
    let runtime = Runtime::start_with_options(
        provider.clone(),
        workflow::activities(pace, Arc::new(|_| {})),
        workflow::orchestrations(pace),
        RuntimeOptions {
            dispatcher_min_poll_interval: Duration::from_millis(20),
            ..RuntimeOptions::default()
        },
    )
    .await;
    let client = Client::new(provider.clone());

    client.start_orchestration("order", workflow::ORCHESTRATION, workflow::INPUT).await.expect("start");
    tokio::time::timeout(PATIENCE, async {
        while !workflow::waits_for_approval(&client, "order").await.expect("history") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("the order comes to its approval");
    client.raise_event("order", workflow::APPROVAL, workflow::APPROVER).await.expect("raise");
    let status = client.wait_for_orchestration("order", PATIENCE).await.expect("the order ends");

    match status {
        OrchestrationStatus::Completed { output, .. } => assert_eq!(output, workflow::RESULT),
        other => panic!("the order did not complete: {other:?}"),
    }
    assert_eq!(client.get_system_metrics().await.expect("metrics").total_instances, 2);
    client.delete_instance("order", false).await.expect("delete");
    runtime.shutdown(None).await;
    provider.pool().close().await;
    // A bad message costs the client no more than that message.
    bury_a_message(&mut database.connect_as(&client_role).await, "app").await;
    database.remove().await;
}

#[tokio::test]
async fn a_client_role_has_exactly_the_rights_that_are_listed() {
    for kind in Kind::OURS {
        let (mut database, mut owners, _) = owned_queue(kind).await;
        let client = database.role("client").await;
        assert_eq!(granted(&mut owners, &client).await, BTreeSet::new());

        for _ in 0..2 {
            must(&mut owners, &format!("SELECT duroxide_queue.grant_client('app', '{client}')")).await;
            let listed: BTreeSet<_> =
                GRANTED.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
            let granted = granted(&mut owners, &client).await;
            let (missing, more): (Vec<_>, Vec<_>) =
                (listed.difference(&granted).collect(), granted.difference(&listed).collect());
            assert!(missing.is_empty() && more.is_empty(), "missing: {missing:#?}\nnot listed: {more:#?}");
        }

        for _ in 0..2 {
            must(&mut owners, &format!("SELECT duroxide_queue.revoke_client('app', '{client}')")).await;
            assert_eq!(granted(&mut owners, &client).await, BTreeSet::new());
        }
        database.remove().await;
    }
}

#[tokio::test]
async fn a_client_role_can_do_nothing_else() {
    let (mut database, mut owners, _) = owned_queue(Kind::Created).await;
    let client = database.role("client").await;
    must(&mut owners, &format!("SELECT duroxide_queue.grant_client('app', '{client}')")).await;
    bury_a_message(&mut owners, "app").await;
    must(&mut owners, "SELECT app.enqueue_orchestrator_work('i', '{}', now())").await;
    let (catalog_before, rows_before) = (snapshot(&mut owners, "app").await, rows(&mut owners).await);
    let mut session = database.connect_as(&client).await;

    for statement in [
        "TRUNCATE app.orchestrator_queue",
        "TRUNCATE app.history",
        "DROP TABLE app.kv_store",
        "DROP FUNCTION app.list_instances()",
        "DROP SCHEMA app CASCADE",
        "ALTER TABLE app.history ADD COLUMN mine text",
        "ALTER TABLE app.history DISABLE TRIGGER ALL",
        "ALTER FUNCTION app.list_instances() SECURITY DEFINER",
        "ALTER FUNCTION app.list_instances() OWNER TO CURRENT_USER",
        "CREATE OR REPLACE FUNCTION app.list_instances() RETURNS TABLE (instance_id text) LANGUAGE sql AS 'SELECT 1::text'",
        "CREATE FUNCTION app.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TABLE app.mine (a int)",
        "CREATE INDEX mine ON app.history (event_type)",
        "CREATE TRIGGER mine BEFORE INSERT ON app.history FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "CREATE POLICY mine ON app.history",
        "COMMENT ON TABLE app.history IS 'mine'",
        "UPDATE app.history SET event_data = '{}'",
        "UPDATE app.dead_letters SET work_item = '{}'",
        "DELETE FROM app.dead_letters",
        "SELECT * FROM app.dead_letters",
        "SELECT * FROM app._duroxide_queue",
        "INSERT INTO app._duroxide_queue VALUES ('created', 1, false, '{}')",
        "UPDATE app._duroxide_queue SET origin = 'adopted'",
        "DELETE FROM app._duroxide_queue",
        "INSERT INTO app._duroxide_migrations VALUES (27, 'mine')",
        "UPDATE app._duroxide_migrations SET name = 'mine'",
        "DELETE FROM app._duroxide_migrations",
        "SELECT setval('app.orchestrator_queue_id_seq', 1)",
        "SELECT * FROM app.worker_queue_id_seq",
        "ALTER SEQUENCE app.worker_queue_id_seq RESTART",
        "SELECT app.cleanup_schema()",
        "SELECT duroxide_queue.drop_queue('app')",
        "SELECT duroxide_queue.adopt_queue('app')",
        "SELECT duroxide_queue.release_queue('app')",
        "SELECT duroxide_queue.grant_client('app', current_user::text)",
        "SELECT duroxide_queue.revoke_client('app', current_user::text)",
        "SELECT duroxide_queue.redrive('app', 1)",
        "SELECT duroxide_queue.discard('app', 1)",
        "SELECT duroxide_queue.create_queue('app')",
        "SELECT duroxide_queue.create_queue('mine')",
        "DROP EXTENSION duroxide_queue",
        "ALTER EXTENSION duroxide_queue UPDATE",
    ] {
        let error = must_fail(&mut session, statement).await;
        let no_schema = statement.contains("create_queue('mine')") && error.code == "3F000";
        assert!(error.code == "42501" || no_schema, "{statement}: {error}");
    }

    // PostgreSQL warns that this grants nothing.
    must(&mut session, "GRANT SELECT ON app.instances TO PUBLIC").await;
    let seen = must(&mut session, "SELECT queue, origin, layout, intact FROM duroxide_queue.queues").await;
    assert_eq!(
        seen,
        [[Some("app".to_owned()), None, None, Some("t".to_owned())]],
        "not what it may not read"
    );
    catalog::assert_same("a client's attempts", &catalog_before, &snapshot(&mut owners, "app").await);
    assert_eq!(rows(&mut owners).await, rows_before);
    database.remove().await;
}

#[tokio::test]
async fn roles_that_are_not_there_or_have_odd_names() {
    let (mut database, mut owners, _) = owned_queue(Kind::Created).await;
    let error = must_fail(&mut owners, "SELECT duroxide_queue.grant_client('app', 'no such role')").await;
    assert_eq!(error.code, "42704", "{error}");
    let error = must_fail(&mut owners, "SELECT duroxide_queue.grant_client('app', '')").await;
    assert_ne!(error.code, "XX000", "{error}");
    let error = must_fail(&mut owners, "SELECT duroxide_queue.grant_client('app', NULL)").await;
    assert_eq!(error.code, "22004", "{error}");

    let plain = database.role("x").await;
    let odd = format!("{plain} \"; drop table app.history; --");
    let quoted = format!("\"{}\"", odd.replace('"', "\"\""));
    let mut superuser = database.connect().await;
    must(&mut superuser, &format!("ALTER ROLE {plain} RENAME TO {quoted}")).await;
    let literal = odd.replace('\'', "''");
    must(&mut owners, &format!("SELECT duroxide_queue.grant_client('app', '{literal}')")).await;
    let may = format!("SELECT has_table_privilege('{literal}', 'app.history', 'INSERT')");
    assert_eq!(run(&mut owners, &may).await.value(), "t");
    must(&mut owners, &format!("SELECT duroxide_queue.revoke_client('app', '{literal}')")).await;
    assert_eq!(run(&mut owners, &may).await.value(), "f");
    must(&mut superuser, &format!("ALTER ROLE {quoted} RENAME TO {plain}")).await;
    database.remove().await;
}

#[tokio::test]
async fn without_rights_on_tables_every_function_is_refused() {
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
async fn rights_are_asked_again_at_each_call_in_a_session_with_kept_plans() {
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
async fn rights_are_those_of_the_role_that_is_set() {
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

/// What a caller has put under the names that the functions use, in every place that a name is
/// looked for.
const SHADOWS: &str = include_str!("privileges/shadows.sql");

#[tokio::test]
async fn names_that_the_caller_puts_in_the_way_do_not_matter() {
    for kind in Kind::OURS {
        for path in ["mine, pg_temp, pg_catalog", "pg_temp, mine, pg_catalog, app", "mine", "''"] {
            let (database, mut owners, _) = owned_queue(kind).await;
            let mut superuser = database.connect().await;
            must(&mut superuser, SHADOWS).await;
            must(&mut superuser, &format!("SET search_path = {path}")).await;

            a_turn_of_everything(&mut superuser, path).await;

            let real = must(&mut owners, "SELECT instance_id, status FROM app.get_instance_info('i')").await;
            assert_eq!(real, [[Some("i".into()), Some("Completed".into())]], "{path}");
            must(&mut superuser, "RESET search_path").await;
            let shadow = must(&mut superuser, "SELECT count(*) FROM pg_temp.orchestrator_queue").await;
            assert_eq!(shadow, [[Some("0".into())]], "nothing went into the shadow under {path}");
            // The plans that this session keeps were made under the hostile path.
            a_turn_of_everything(&mut superuser, "after that path").await;
            database.remove().await;
        }
    }
}

#[tokio::test]
async fn functions_without_a_pinned_path_do_run_into_those_names() {
    let (database, mut superuser) = database_with_extension().await;
    let provider = queue::open(&database.url(), "app", MigrationPolicy::ApplyAll).await;
    provider.pool().close().await;
    must(&mut superuser, SHADOWS).await;
    must(&mut superuser, "SELECT app.enqueue_orchestrator_work('i', '{}', now())").await;
    must(&mut superuser, "SET search_path = mine, pg_temp, pg_catalog").await;

    let error = must_fail(&mut superuser, "SELECT app.fetch_orchestration_item(2000000000000, 1)").await;

    assert!(error.message.contains("of the caller's has run"), "the other tests show nothing: {error}");
    database.remove().await;
}

#[tokio::test]
async fn a_definer_with_a_hostile_path_calls_the_real_functions() {
    let (mut database, mut owners, owner) = owned_queue(Kind::Created).await;
    let caller = database.role("caller").await;
    let mut superuser = database.connect().await;
    must(&mut superuser, SHADOWS).await;
    must(
        &mut superuser,
        &format!(
            "GRANT USAGE ON SCHEMA mine TO {caller}, {owner};
             CREATE FUNCTION mine.claim() RETURNS text LANGUAGE sql SECURITY DEFINER
             SET search_path = mine, pg_temp, pg_catalog
             AS 'SELECT out_instance_id FROM app.fetch_orchestration_item(2000000000000, 30000)';
             ALTER FUNCTION mine.claim() OWNER TO {owner}"
        ),
    )
    .await;
    must(&mut owners, "SELECT app.enqueue_orchestrator_work('i', '{}', pg_catalog.now())").await;

    let mut callers = database.connect_as(&caller).await;
    assert_eq!(run(&mut callers, "SELECT mine.claim()").await.value(), "i");
    database.remove().await;
}

#[tokio::test]
async fn management_does_not_mind_names_in_the_way() {
    for path in ["mine, pg_temp, pg_catalog", "pg_temp, mine, pg_catalog", "''"] {
        let (database, mut superuser) = database_with_extension().await;
        let provider = queue::open(&database.url(), "app", MigrationPolicy::ApplyAll).await;
        provider.pool().close().await;
        must(&mut superuser, SHADOWS).await;
        let mut onlooker = database.connect().await;
        let before = snapshot(&mut onlooker, "app").await;
        must(&mut superuser, &format!("SET search_path = {path}")).await;

        for call in [
            "create_queue('made')",
            "grant_client('made', 'pg_monitor')",
            "revoke_client('made', 'pg_monitor')",
            "adopt_queue('app')",
            "release_queue('app')",
            "drop_queue('made')",
        ] {
            must(&mut superuser, &format!("SELECT duroxide_queue.{call}")).await;
            must(&mut superuser, "SELECT * FROM duroxide_queue.queues").await;
        }

        catalog::assert_same(path, &before, &snapshot(&mut onlooker, "app").await);
        database.remove().await;
    }
}

/// Every kind of work on the instance `i` of the queue `app`, with names of pg_catalog in full.
async fn a_turn_of_everything(session: &mut PgConnection, what: &str) {
    let claim = "SELECT out_lock_token FROM app.fetch_orchestration_item(2000000000000, 600000)";
    let claim_work = "SELECT out_lock_token FROM app.fetch_work_item(2000000000000, 600000, 'w')";
    must(session, "SELECT app.delete_instances_atomic(ARRAY['i'], true)").await;
    must(session, "SELECT app.enqueue_orchestrator_work('i', '{\"a\": 1e3}', pg_catalog.now())").await;
    must(session, "SELECT app.enqueue_worker_work('{}', 1, 'i', 1, 9, 's')").await;
    let token = run(session, claim).await.value();
    must(session, &format!("SELECT app.renew_orchestration_item_lock('{token}', 2000000000000, 700)")).await;
    must(
        session,
        &format!(
            r#"SELECT app.ack_orchestration_item('{token}', 2000000000000, 1,
                 '[{{"event_id":1,"event_type":"T","event_data":"{{\"a\": 1e3}}"}}]',
                 '[{{"ActivityExecute":{{"instance":"i","execution_id":1,"id":2}}}}]',
                 '[{{"TimerFired":{{"instance":"i","fire_at_ms":1999999999999}}}}, 5]',
                 '{{"orchestration_name":"O","orchestration_version":"1","status":"Completed",
                   "custom_status_action":"set","custom_status_value":"x","pinned_duroxide_version":{{"major":1,"minor":2,"patch":3}},
                   "kv_mutations":[{{"action":"set","key":"k","value":"v"}},{{"action":"clear_all"}},{{"action":"set","key":"l","value":"w"}}]}}',
                 '[{{"instance":"i","execution_id":1,"activity_id":7}}]')"#
        ),
    )
    .await;
    let work = run(session, claim_work).await.value();
    must(session, &format!("SELECT app.renew_work_item_lock('{work}', 2000000000000, 700)")).await;
    must(session, "SELECT app.renew_session_lock(ARRAY['w'], 2000000000000, 700000, 1000)").await;
    must(session, &format!("SELECT app.ack_worker('{work}', 'i', '{{}}', 2000000000000)")).await;
    let work = run(session, claim_work).await.value();
    must(session, &format!("SELECT app.abandon_work_item('{work}', 2000000000000, 5, true)")).await;
    let claimed = must(
        session,
        "SELECT out_orchestration_name, out_lock_token
         FROM app.fetch_orchestration_item(2000000009000, 600000, 0, 99999999)",
    )
    .await;
    assert_eq!(claimed[0][0].as_deref(), Some("O"), "{what}");
    let token = claimed[0][1].as_deref().expect("a token");
    must(session, &format!("SELECT app.abandon_orchestration_item('{token}', 2000000000000, 5, true)")).await;
    must(
        session,
        r#"SELECT app.append_history('i', 1, '[{"event_id":2,"event_type":"T","event_data":"{}"}]')"#,
    )
    .await;
    for (name, arguments) in CALLS.iter().filter(|(name, _)| READERS.contains(name)) {
        must(session, &format!("SELECT app.{name}({arguments})")).await;
    }
    must(session, "SELECT app.cleanup_orphaned_sessions(3000000000000)").await;
    let left = must(session, "SELECT app.fetch_history('i')").await;
    assert_eq!(left.len(), 2, "{what}");
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

async fn database_with_extension() -> (Database, PgConnection) {
    let database = Database::make().await;
    let mut superuser = database.connect().await;
    must(&mut superuser, "CREATE EXTENSION duroxide_queue").await;
    (database, superuser)
}

/// Lets duroxide-pg make the schema `app` as a role that may do no more than it needs to.
async fn reference_schema(database: &Database, superuser: &mut PgConnection, owner: &str) {
    let name = database.name();
    must(superuser, &format!("GRANT CREATE ON DATABASE {name} TO {owner}")).await;
    let provider = queue::open(&database.url_as(owner), "app", MigrationPolicy::ApplyAll).await;
    provider.pool().close().await;
    must(superuser, &format!("REVOKE CREATE ON DATABASE {name} FROM {owner}")).await;
}

/// The queue `app` of a role without other rights, and a session of that role.
async fn owned_queue(kind: Kind) -> (Database, PgConnection, String) {
    let (mut database, mut superuser) = database_with_extension().await;
    let owner = database.role("owner").await;
    if kind == Kind::Created {
        must(&mut superuser, &format!("CREATE SCHEMA app AUTHORIZATION {owner}")).await;
    } else {
        reference_schema(&database, &mut superuser, &owner).await;
    }
    let mut session = database.connect_as(&owner).await;
    match kind {
        Kind::Created => must(&mut session, "SELECT duroxide_queue.create_queue('app')").await,
        Kind::Adopted => must(&mut session, "SELECT duroxide_queue.adopt_queue('app')").await,
        Kind::Reference => Vec::new(),
    };
    (database, session, owner)
}

/// A message that was no JSON becomes a dead letter of its queue.
async fn bury_a_message(session: &mut PgConnection, schema: &str) {
    must(
        session,
        &format!(
            "INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, created_at)
             VALUES ('bad', 'not json', '-infinity', now())"
        ),
    )
    .await;
    let claim = format!("SELECT * FROM {schema}.fetch_orchestration_item(0, 1)");
    assert_eq!(run(session, &claim).await, Outcome::Rows(Vec::new()));
}

/// Every right that a role has been given in the schema `app`, by name.
async fn granted(session: &mut PgConnection, role: &str) -> BTreeSet<String> {
    let rows = must(
        session,
        &format!(
            "SELECT g.object || ' ' || a.privilege_type || CASE WHEN a.is_grantable THEN ' with grant option' ELSE '' END
             FROM (SELECT 'schema' AS object, nspacl AS acl FROM pg_namespace WHERE nspname = 'app'
                   UNION ALL
                   SELECT CASE c.relkind WHEN 'S' THEN 'sequence ' ELSE 'table ' END || c.relname, c.relacl
                   FROM pg_class c WHERE c.relnamespace = 'app'::regnamespace
                   UNION ALL
                   SELECT 'column ' || a.attrelid::regclass || '.' || a.attname, a.attacl
                   FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
                   WHERE c.relnamespace = 'app'::regnamespace
                   UNION ALL
                   SELECT 'function ' || p.proname, p.proacl
                   FROM pg_proc p WHERE p.pronamespace = 'app'::regnamespace) g,
                  LATERAL aclexplode(g.acl) a
             WHERE a.grantee = '{role}'::regrole"
        ),
    )
    .await;
    rows.into_iter().map(|mut row| row.remove(0).expect("a line")).collect()
}

async fn snapshots(session: &mut PgConnection, schemas: &[&str]) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for schema in schemas {
        lines.extend(snapshot(session, schema).await);
    }
    lines
}

/// Every row of the queue `app`.
async fn rows(session: &mut PgConnection) -> Vec<Vec<Option<String>>> {
    let tables = must(
        session,
        "SELECT c.relname FROM pg_class c
         WHERE c.relnamespace = 'app'::regnamespace AND c.relkind = 'r' ORDER BY 1",
    )
    .await;
    let mut rows = Vec::new();
    for table in tables {
        let table = table[0].as_deref().expect("a name").to_owned();
        rows.extend(must(session, &format!("SELECT '{table}', t::text FROM app.{table} t ORDER BY 2")).await);
    }
    rows
}
