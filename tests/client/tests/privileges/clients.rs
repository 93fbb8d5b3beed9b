//! A client's role has what the real client needs and nothing else.

use super::{bury_a_message, owned_queue, rows};
use duroxide::Client;
use duroxide::OrchestrationStatus;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::catalog::{self, snapshot};
use duroxide_queue_tests::outcome::{must, must_fail, run};
use duroxide_queue_tests::queue::{self, Kind};
use duroxide_queue_tests::workflow::{self, Pace};
use sqlx::postgres::PgConnection;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const GRANTED: &str = include_str!("granted.txt");
const PATIENCE: Duration = Duration::from_secs(60);

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
