//! Who sees what in the views over all queues; and whatever the owner of a queue has made of it, looking at
//! it runs no code of the owner's with anybody else's rights, ends, and shows the other queues.

use super::attack::{Attack, assert_none};
use super::owned_queue;
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::{must, must_fail, run};
use duroxide_queue_tests::queue::Kind;
use sqlx::postgres::PgConnection;

const VIEWS: [&str; 4] = ["queue_health", "leases", "stuck", "bloat"];

/// A claimed instance, a claimed work item and a message that is no JSON and has been ready for long.
const WORK: &str = "
SELECT app.enqueue_orchestrator_work('claimed', '{}', now()), app.enqueue_worker_work('{}', 1);
SELECT * FROM app.fetch_orchestration_item((extract(epoch FROM clock_timestamp()) * 1000)::bigint + 1000, 600000);
SELECT * FROM app.fetch_work_item((extract(epoch FROM clock_timestamp()) * 1000)::bigint + 1000, 600000);
INSERT INTO app.orchestrator_queue (instance_id, work_item, visible_at, created_at)
VALUES ('poisoned', 'payload', now() - interval '1 day', now())";

/// What a session sees of queues, leases, tokens, stuck work, what is said of payloads, and tables.
async fn seen(session: &mut PgConnection) -> String {
    let sql = "SELECT concat_ws(' ',
        (SELECT count(*) FROM duroxide_queue.queue_health WHERE problem IS NULL),
        (SELECT count(*) || ' ' || count(lock_token) FROM duroxide_queue.leases),
        (SELECT count(*) || ' ' || count(detail) FROM duroxide_queue.stuck WHERE reason = 'poisoned'),
        (SELECT count(*) FROM duroxide_queue.bloat))";
    run(session, sql).await.value()
}

const ALL: &str = "2 2 2 1 1 10";
const NO_PAYLOAD: &str = "2 2 0 1 0 10";
const NOTHING: &str = "0 0 0 0 0 0";

#[tokio::test]
async fn select_shows_a_queue_and_pg_monitor_shows_all_but_tokens_and_payloads() {
    for kind in Kind::OURS {
        let (mut database, mut owner, owner_name) = owned_queue(kind).await;
        must(&mut owner, WORK).await;
        let [reader, partial, monitor, guest, client, stranger] =
            roles(&mut database, ["reader", "partial", "monitor", "guest", "client", "stranger"]).await;
        let mut superuser = database.connect().await;
        must(
            &mut superuser,
            &format!("GRANT pg_monitor TO {monitor}, {guest}; ALTER ROLE {guest} NOINHERIT"),
        )
        .await;
        // From 16 on the grant says whether it is inherited, by what the role said when it was made.
        if database_version(&mut superuser).await >= 160_000 {
            must(&mut superuser, &format!("GRANT pg_monitor TO {guest} WITH INHERIT FALSE")).await;
        }
        must(
            &mut owner,
            &format!(
                "GRANT USAGE ON SCHEMA app TO {reader}, {partial};
                 GRANT SELECT ON ALL TABLES IN SCHEMA app TO {reader};
                 GRANT SELECT ON app.orchestrator_queue, app.worker_queue, app.instance_locks, app.history TO {partial};
                 SELECT duroxide_queue.grant_client('app', '{client}')"
            ),
        )
        .await;

        for (role, expected) in [
            (&owner_name, ALL),
            (&reader, ALL),
            (&client, ALL),
            (&monitor, NO_PAYLOAD),
            (&partial, NOTHING),
            (&guest, NOTHING),
            (&stranger, NOTHING),
        ] {
            let mut session = database.connect_as(role).await;
            assert_eq!(seen(&mut session).await, expected, "{role} of {kind:?}");
        }
        assert_eq!(seen(&mut superuser).await, ALL);
        let mut guests = database.connect_as(&guest).await;
        must(&mut guests, "SET ROLE pg_monitor").await;
        assert_eq!(seen(&mut guests).await, NO_PAYLOAD);

        // To see the health of a queue is no way to its rows.
        let mut monitors = database.connect_as(&monitor).await;
        let error = must_fail(&mut monitors, "SELECT * FROM app.orchestrator_queue").await;
        assert_eq!(error.code, "42501", "{error}");
        let everything = must(
            &mut monitors,
            "SELECT h::text FROM duroxide_queue.queue_health h UNION ALL SELECT l::text FROM duroxide_queue.leases l
             UNION ALL SELECT s::text FROM duroxide_queue.stuck('0', 0) s UNION ALL SELECT b::text FROM duroxide_queue.bloat b",
        )
        .await;
        assert!(!everything.is_empty());
        for cell in everything.iter().flatten().flatten() {
            assert!(!cell.contains("payload") && !cell.contains("lock_0"), "{cell}");
        }

        // What is taken away is gone at the next look, in the same session.
        let mut readers = database.connect_as(&reader).await;
        assert_eq!(seen(&mut readers).await, ALL);
        must(&mut owner, &format!("REVOKE SELECT ON app.worker_queue FROM {reader}")).await;
        assert_eq!(seen(&mut readers).await, NOTHING);
        database.remove().await;
    }
}

async fn database_version(session: &mut PgConnection) -> i32 {
    run(session, "SHOW server_version_num").await.value().parse().expect("a number")
}

async fn roles<const N: usize>(database: &mut Database, names: [&str; N]) -> [String; N] {
    let mut roles = Vec::new();
    for name in names {
        roles.push(database.role(name).await);
    }
    roles.try_into().expect("as many roles as names")
}

/// Springs for everybody but the owner, where the other trap springs for superusers; and stays in a
/// function for ever once the owner has said so.
const SNARES: &str = "
CREATE FUNCTION evil.snare() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  IF current_user <> (SELECT pg_get_userbyid(p.proowner) FROM pg_proc p WHERE p.oid = 'evil.snare()'::regprocedure) THEN
    PERFORM pg_catalog.nextval('evil.caught');
  END IF;
  RETURN 1;
END $$;
CREATE TABLE evil.patience (lost boolean);
GRANT SELECT ON evil.patience TO PUBLIC;
CREATE FUNCTION evil.same(bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  PERFORM evil.snare();
  IF EXISTS (SELECT FROM evil.patience) THEN PERFORM pg_sleep(3600); END IF;
  RETURN $1;
END $$;
GRANT USAGE ON SEQUENCE evil.caught TO PUBLIC;
CREATE DOMAIN evil.number AS bigint CHECK (evil.same(VALUE) > 0);
CREATE FUNCTION evil.less(timestamptz, timestamptz) RETURNS boolean LANGUAGE plpgsql IMMUTABLE
  AS $$ BEGIN PERFORM evil.snare(); RETURN true; END $$;
CREATE OPERATOR evil.<= (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = evil.less);
";

/// What an owner may do to his tables, and what the views make of it: a problem, or figures.
const DEEDS: [(&str, &str, bool); 13] = [
    (
        "a view in place of a table",
        "ALTER TABLE app.worker_queue RENAME TO moved;
         CREATE VIEW app.worker_queue AS SELECT * FROM app.moved WHERE evil.same(1) = 1",
        true,
    ),
    (
        "row security",
        "ALTER TABLE app.orchestrator_queue ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
         CREATE POLICY p ON app.orchestrator_queue USING (evil.same(1) = 1)",
        true,
    ),
    ("an index on an expression", "CREATE INDEX evil ON app.worker_queue (evil.same(1))", true),
    (
        "an index on an expression of two indexes",
        "CREATE INDEX evil ON app.history (event_id, evil.same(event_id))",
        true,
    ),
    ("an index with a condition", "CREATE INDEX evil ON app.sessions (session_id) WHERE evil.same(1) = 1", true),
    (
        "statistics on an expression",
        "CREATE STATISTICS app.evil ON (evil.same(1)) FROM app.instance_locks",
        true,
    ),
    ("a column of another type", "ALTER TABLE app.worker_queue ALTER tag TYPE evil.word USING ROW(tag)::evil.word", true),
    ("a column of a domain", "ALTER TABLE app.sessions ALTER locked_until TYPE evil.number", true),
    (
        "a generated column",
        "ALTER TABLE app.worker_queue DROP COLUMN tag;
         ALTER TABLE app.worker_queue ADD tag text GENERATED ALWAYS AS ('x' || evil.same(1)) STORED",
        true,
    ),
    ("a table that is gone", "DROP TABLE app.history", true),
    ("rights that he takes from himself", "REVOKE ALL ON app.worker_queue FROM CURRENT_USER, PUBLIC", true),
    (
        "a constraint, triggers and a rule",
        "ALTER TABLE app.orchestrator_queue ADD CHECK (evil.same(1) = 1) NOT VALID;
         CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON app.orchestrator_queue
           FOR EACH ROW EXECUTE FUNCTION evil.trigger();
         CREATE RULE r AS ON UPDATE TO app.worker_queue DO ALSO SELECT evil.same(1)",
        false,
    ),
    (
        "a table that inherits",
        "CREATE TABLE app.child (CHECK (evil.same(1) = 1) NO INHERIT) INHERITS (app.orchestrator_queue);
         ALTER TABLE app.child ENABLE ROW LEVEL SECURITY;
         CREATE POLICY p ON app.child USING (evil.same(1) = 1);
         INSERT INTO app.child (instance_id, work_item, visible_at, created_at) VALUES ('i', '1', 'epoch', 'epoch')",
        false,
    ),
];

#[tokio::test]
async fn nobody_who_looks_runs_an_owners_code_or_waits_for_it() {
    let mut attack = Attack::prepare().await;
    attack.owner(SNARES).await;
    for (number, (_, deed, _)) in DEEDS.iter().enumerate() {
        let queue = queue_of(number);
        attack
            .owner(&format!(
                "SELECT duroxide_queue.create_queue('{queue}');
                 GRANT USAGE ON SCHEMA {queue} TO PUBLIC; GRANT SELECT ON ALL TABLES IN SCHEMA {queue} TO PUBLIC"
            ))
            .await;
        attack.owner(&deed.replace("app.", &format!("{queue}."))).await;
    }
    attack.owner("INSERT INTO evil.patience VALUES (true)").await;
    must(&mut attack.superuser, "SELECT duroxide_queue.create_queue('good')").await;
    let monitor = attack.database.role("monitor").await;
    let reader = attack.database.role("reader").await;
    must(
        &mut attack.superuser,
        &format!(
            "GRANT pg_monitor TO {monitor}; GRANT USAGE ON SCHEMA good TO {reader};
             GRANT SELECT ON ALL TABLES IN SCHEMA good TO {reader}"
        ),
    )
    .await;

    for role in ["postgres", &monitor, &reader] {
        let mut session = attack.database.connect_as(role).await;
        // As bad for the planner as it gets, and an end to the test.
        must(
            &mut session,
            "SET constraint_exclusion = on; SET search_path = evil, pg_catalog; SET statement_timeout = '60s'",
        )
        .await;
        for view in VIEWS {
            must(&mut session, &format!("SELECT * FROM duroxide_queue.{view}")).await;
            attack.look_for_a_catch(role, view).await;
        }
        must(&mut session, "SELECT * FROM duroxide_queue.stuck('0', 0)").await;
        attack.look_for_a_catch(role, "stuck('0', 0)").await;
        let shown = must(
            &mut session,
            "SELECT queue, problem IS NOT NULL FROM duroxide_queue.queue_health WHERE kind = 'work item' ORDER BY queue",
        )
        .await;
        // Without SELECT on each of the tables the reader sees no queue.
        let hidden =
            |what: &str| role == reader && (what.starts_with("rights") || what.starts_with("a view"));
        let deeds = DEEDS.iter().enumerate().filter(|(_, (what, ..))| !hidden(what));
        let mut expected: Vec<_> =
            deeds.map(|(number, (_, _, is_problem))| row(&queue_of(number), *is_problem)).collect();
        expected.push(row("good", false));
        if shown != expected {
            attack.complaints.push(format!("{role} sees {shown:?}, not {expected:?}"));
        }
    }
    assert_none(attack.end().await);
}

/// The queue of one deed; the names sort as the deeds do.
fn queue_of(number: usize) -> String {
    format!("deed_{number:02}")
}

fn row(queue: &str, is_problem: bool) -> Vec<Option<String>> {
    vec![Some(queue.to_owned()), Some(if is_problem { "t" } else { "f" }.to_owned())]
}

/// The traps are real: what the views are on their guard against does happen to who reads the tables.
#[tokio::test]
async fn a_plain_look_at_the_tables_does_run_into_these_traps() {
    let mut attack = Attack::adopted().await;
    attack.owner(SNARES).await;
    attack.owner("CREATE INDEX evil ON app.worker_queue (evil.same(1)) WHERE evil.same(1) = 1").await;
    must(&mut attack.superuser, "SELECT count(*) FROM app.worker_queue").await;
    let caught = run(&mut attack.superuser, "SELECT is_called FROM evil.caught").await.value();
    assert_eq!(caught, "t", "the planner evaluates what an index is declared with");
    attack.owner("INSERT INTO evil.patience VALUES (true)").await;
    let mut other = attack.database.connect().await;
    must(&mut other, "SET statement_timeout = '300ms'").await;
    let error = must_fail(&mut other, "SELECT count(*) FROM app.worker_queue").await;
    assert_eq!(error.code, "57014", "{error}");
    attack.database.remove().await;
}

/// Rows of a table that inherits are not the queue's.
#[tokio::test]
async fn what_inherits_from_a_table_is_not_counted() {
    let (database, mut owner, _) = owned_queue(Kind::Created).await;
    must(
        &mut owner,
        "CREATE TABLE app.child () INHERITS (app.orchestrator_queue);
         INSERT INTO app.child (instance_id, work_item, visible_at, created_at) VALUES ('i', '1', 'epoch', 'epoch')",
    )
    .await;
    let ready = run(
        &mut owner,
        "SELECT string_agg(ready::text, ' ' ORDER BY kind) || ' ' || (SELECT count(*) FROM duroxide_queue.stuck)
         FROM duroxide_queue.queue_health",
    )
    .await
    .value();
    assert_eq!(ready, "0 0 0");
    database.remove().await;
}
