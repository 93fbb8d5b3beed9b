//! A queue is its owner's alone to manage and its clients' to work on, each with the caller's own
//! rights, whatever names the caller has put in the way.

#[path = "privileges/attack.rs"]
mod attack;
#[path = "privileges/clients.rs"]
mod clients;
#[path = "privileges/escalation.rs"]
mod escalation;
#[path = "privileges/functions.rs"]
mod functions;
#[path = "privileges/observers.rs"]
mod observers;
#[path = "privileges/shadowing.rs"]
mod shadowing;

use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::catalog::{self, snapshot};
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::{Outcome, must, must_fail, run};
use duroxide_queue_tests::queue::{self, Kind};
use sqlx::postgres::PgConnection;
use std::collections::BTreeSet;

#[tokio::test]
async fn f3_create_on_the_database_is_enough_to_create_the_extension() {
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
