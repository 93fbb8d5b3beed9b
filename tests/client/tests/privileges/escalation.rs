//! A superuser who manages somebody else's queue runs nothing of that somebody's with a superuser's
//! rights.
//!
//! The owner of a schema may put anything in it, so each test lays one trap. `evil.trap()` counts how
//! often it has run as a superuser, in a sequence, so that no rollback hides it.

use super::attack::{Attack, assert_none};
use duroxide_queue_tests::outcome::{must, must_fail, run};

#[tokio::test]
async fn the_trap_works() {
    let mut attack = Attack::prepare().await;
    must(&mut attack.superuser, "SELECT evil.trap()").await;
    let caught = run(&mut attack.superuser, "SELECT is_called FROM evil.caught").await.value();
    assert_eq!(caught, "t");
    attack.database.remove().await;
}

#[tokio::test]
async fn stored_definitions_run_with_the_rights_of_who_stored_them() {
    let name_of_superuser = "(SELECT rolname FROM pg_roles WHERE oid = 10)";
    let mut attack = Attack::adopted().await;
    for text in [
        "SELECT evil.trap()",
        "RESET ROLE; SELECT evil.trap()",
        "SET ROLE NONE; SELECT evil.trap()",
        "SET SESSION AUTHORIZATION DEFAULT; SELECT evil.trap()",
        "DO $$ BEGIN EXECUTE format('SET ROLE %I', NAME); PERFORM evil.trap(); END $$",
        "DO $$ BEGIN EXECUTE format('ALTER FUNCTION evil.trap() OWNER TO %I', NAME); END $$",
        "ALTER ROLE CURRENT_USER SUPERUSER",
        "INSERT INTO evil.deferred VALUES (1)",
        "DECLARE c CURSOR WITH HOLD FOR SELECT evil.trap()",
        "PREPARE p AS SELECT evil.trap()",
        "COMMIT; SELECT evil.trap()",
        "CREATE EVENT TRIGGER t ON ddl_command_end EXECUTE FUNCTION evil.trap()",
        "CREATE OR REPLACE FUNCTION app.list_instances() RETURNS TABLE (instance_id text) LANGUAGE c AS 'evil', 'evil'",
        "COPY evil.deferred FROM PROGRAM 'echo 1'",
        "CREATE TEMP TABLE pg_class (a int); CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS 'SELECT evil.trap()'",
    ] {
        let text = text.replace("NAME", name_of_superuser);
        attack.store(&text).await;
        // To the end of the transaction, when what was put off is done.
        must(&mut attack.superuser, "BEGIN").await;
        attack.superuser_calls(&text, "release_queue('app')").await;
        must(&mut attack.superuser, "COMMIT").await;
        attack.look_for_a_catch(&text, "the COMMIT").await;
    }
    assert_none(attack.end().await);
}

#[tokio::test]
async fn stored_definitions_leave_the_superusers_session_as_it_was() {
    let mut attack = Attack::adopted().await;
    for text in [
        "SET search_path = evil",
        "SELECT set_config('search_path', 'evil, pg_catalog', false)",
        "SET statement_timeout = '1h'",
        "SET duroxide_queue.lease_clock = latest",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "SET TimeZone = 'Pacific/Auckland'",
        "LISTEN evil",
    ] {
        attack.store(text).await;
        attack.superuser = attack.database.connect().await;
        let settings = "SELECT name, setting FROM pg_settings
                        WHERE name NOT IN ('is_superuser', 'in_hot_standby') AND name NOT LIKE 'plpgsql.%'";
        let before = must(&mut attack.superuser, settings).await;

        attack.superuser_calls(text, "release_queue('app')").await;

        let after = must(&mut attack.superuser, settings).await;
        // The library's own setting may be new in this session, with its default.
        let changed: Vec<_> = after
            .iter()
            .filter(|setting| !before.contains(setting) && setting[1].as_deref() != Some("caller"))
            .collect();
        let listens = must(&mut attack.superuser, "SELECT pg_listening_channels()").await;
        if !changed.is_empty() || !listens.is_empty() {
            attack
                .complaints
                .push(format!("{text} stays in the superuser's session: {changed:?} {listens:?}"));
        }
    }
    assert_none(attack.end().await);
}

#[tokio::test]
async fn a_registry_that_is_a_view() {
    let mut attack = Attack::adopted().await;
    attack
        .owner(
            "ALTER TABLE app._duroxide_queue RENAME TO moved;
             CREATE VIEW app._duroxide_queue AS
             SELECT m.origin, m.layout + evil.trap() AS layout, m.made_schema, m.replaced_functions FROM app.moved m",
        )
        .await;
    attack.superuser_manages("a view").await;
    assert_none(attack.end().await);
}

#[tokio::test]
async fn a_registry_with_row_security_triggers_and_rules() {
    let mut attack = Attack::adopted().await;
    attack
        .owner(
            "ALTER TABLE app._duroxide_queue ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
             CREATE POLICY p ON app._duroxide_queue USING (evil.trap() = 1) WITH CHECK (evil.trap() = 1);
             CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON app._duroxide_queue
               FOR EACH ROW EXECUTE FUNCTION evil.trigger();
             CREATE TRIGGER s BEFORE TRUNCATE ON app._duroxide_queue EXECUTE FUNCTION evil.trigger();
             CREATE RULE r AS ON DELETE TO app._duroxide_queue DO ALSO SELECT evil.trap()",
        )
        .await;
    attack.superuser_manages("row security").await;
    assert_none(attack.end().await);
}

#[tokio::test]
async fn a_registry_of_the_owners_types() {
    let mut complaints = Vec::new();
    for (what, columns, values) in [
        (
            "origin of a type with a cast",
            "origin evil.word, layout integer, made_schema boolean, replaced_functions text[]",
            "ROW('adopted')::evil.word, 1, false, '{}'",
        ),
        (
            "layout of a type with a cast",
            "origin text, layout evil.word, made_schema boolean, replaced_functions text[]",
            "'adopted', ROW('1')::evil.word, false, '{}'",
        ),
        (
            "definitions of a type with a cast",
            "origin text, layout integer, made_schema boolean, replaced_functions evil.word[]",
            "'adopted', 1, false, ARRAY[ROW('SELECT 1')::evil.word]",
        ),
        (
            "definitions that are numbers",
            "origin text, layout integer, made_schema boolean, replaced_functions integer[]",
            "'adopted', 1, false, ARRAY[1, 2, 3]",
        ),
        (
            "definitions that are one text",
            "origin text, layout integer, made_schema boolean, replaced_functions text",
            "'adopted', 1, false, 'SELECT evil.trap()'",
        ),
        (
            "a decision that is a text",
            "origin text, layout integer, made_schema text, replaced_functions text[]",
            "'created', 1, 'yes', '{}'",
        ),
        (
            "a number for an origin",
            "origin bigint, layout integer, made_schema boolean, replaced_functions text[]",
            "1, 1, false, '{}'",
        ),
        ("no columns", "a integer", "1"),
    ] {
        let mut attack = Attack::adopted().await;
        attack
            .owner(&format!(
                "DROP TABLE app._duroxide_queue; CREATE TABLE app._duroxide_queue ({columns});
                 INSERT INTO app._duroxide_queue VALUES ({values})"
            ))
            .await;
        attack.superuser_manages(what).await;
        complaints.extend(attack.end().await);
    }
    assert_none(complaints);
}

#[tokio::test]
async fn migrations_of_the_owners_types() {
    let mut complaints = Vec::new();
    for (what, columns, values) in [
        (
            "name of a type with a cast",
            "version bigint, name evil.word",
            "1, ROW('0001_initial_schema.sql')::evil.word",
        ),
        (
            "version of a type with a cast",
            "version evil.word, name text",
            "ROW('1')::evil.word, '0001_initial_schema.sql'",
        ),
    ] {
        let mut attack = Attack::prepare().await;
        attack
            .owner(&format!(
                "DROP TABLE app._duroxide_migrations;
                 CREATE TABLE app._duroxide_migrations ({columns}, applied_at timestamptz);
                 INSERT INTO app._duroxide_migrations VALUES ({values})"
            ))
            .await;
        attack.superuser_manages(what).await;
        complaints.extend(attack.end().await);
    }
    assert_none(complaints);
}

#[tokio::test]
async fn migrations_that_are_a_view() {
    let mut attack = Attack::prepare().await;
    attack
        .owner(
            "ALTER TABLE app._duroxide_migrations RENAME TO moved;
             CREATE VIEW app._duroxide_migrations AS
             SELECT m.version * evil.trap() AS version, m.name, m.applied_at FROM app.moved m",
        )
        .await;
    attack.superuser_manages("a view").await;
    assert_none(attack.end().await);
}

#[tokio::test]
async fn dead_letters_that_are_a_view() {
    let mut attack = Attack::adopted().await;
    attack
        .owner(
            "DROP TABLE app.dead_letters;
             CREATE VIEW app.dead_letters AS
             SELECT evil.trap()::bigint AS id, 1::bigint AS message_id, 'i'::text AS instance_id, '{}'::text AS work_item,
                    now() AS visible_at, now() AS created_at, 0 AS attempt_count, now() AS buried_at,
                    ''::text AS sqlstate, ''::text AS reason",
        )
        .await;
    attack.superuser_manages("a view").await;
    assert_none(attack.end().await);
}

#[tokio::test]
async fn dead_letters_with_triggers() {
    let mut attack = Attack::adopted().await;
    attack
        .owner(
            "INSERT INTO app.dead_letters OVERRIDING SYSTEM VALUE
               VALUES (1, 1, 'i', '{}', now(), now(), 0, now(), '', '');
             CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON app.dead_letters
               FOR EACH ROW EXECUTE FUNCTION evil.trigger();
             CREATE CONSTRAINT TRIGGER d AFTER DELETE ON app.dead_letters DEFERRABLE INITIALLY DEFERRED
               FOR EACH ROW EXECUTE FUNCTION evil.trigger();
             CREATE TRIGGER t BEFORE INSERT ON app.orchestrator_queue FOR EACH ROW EXECUTE FUNCTION evil.trigger()",
        )
        .await;
    attack.superuser_manages("triggers").await;
    assert_none(attack.end().await);

    let mut attack = Attack::adopted().await;
    attack
        .owner(
            "INSERT INTO app.dead_letters OVERRIDING SYSTEM VALUE
               VALUES (1, 1, 'i', '{}', now(), now(), 0, now(), '', '');
             CREATE CONSTRAINT TRIGGER d AFTER DELETE ON app.dead_letters DEFERRABLE INITIALLY DEFERRED
               FOR EACH ROW EXECUTE FUNCTION evil.trigger()",
        )
        .await;
    attack.superuser_calls("a deferred trigger", "discard('app', 1)").await;
    assert_none(attack.end().await);
}

#[tokio::test]
async fn dead_letters_of_the_owner_in_a_queue_that_the_superuser_adopted() {
    let mut attack = Attack::prepare().await;
    attack.superuser_calls("adopted by the superuser", "adopt_queue('app')").await;
    attack
        .owner(
            "CREATE TRIGGER t BEFORE INSERT ON app.orchestrator_queue FOR EACH ROW EXECUTE FUNCTION evil.trigger();
             DROP TABLE app.dead_letters;
             CREATE TABLE app.dead_letters (
               id bigint, message_id bigint, instance_id text, work_item text, visible_at timestamptz,
               created_at timestamptz, attempt_count integer, buried_at timestamptz, sqlstate text, reason text);
             INSERT INTO app.dead_letters SELECT n, n, 'i', '{}', now(), now(), 0, now(), '', '' FROM generate_series(1, 2) n;
             CREATE TRIGGER t BEFORE DELETE ON app.dead_letters FOR EACH ROW EXECUTE FUNCTION evil.trigger()",
        )
        .await;
    attack.superuser_calls("adopted by the superuser", "discard('app', 1)").await;
    attack.superuser_calls("adopted by the superuser", "redrive('app', 2)").await;
    attack.superuser_manages("adopted by the superuser").await;
    assert_none(attack.end().await);
}

#[tokio::test]
async fn a_function_that_the_owner_drops_between_adoption_and_release() {
    let mut attack = Attack::prepare().await;
    attack
        .owner(
            "CREATE OR REPLACE FUNCTION app.cleanup_schema() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
             AS $$ BEGIN PERFORM evil.trap(); END $$",
        )
        .await;
    attack.superuser_calls("adoption", "adopt_queue('app')").await;
    attack.owner("DROP FUNCTION app.cleanup_schema()").await;

    attack.superuser_calls("release", "release_queue('app')").await;

    // Whoever calls it now, the owner's code must not run as a superuser.
    let _ = run(&mut attack.attacker, "SELECT app.cleanup_schema()").await;
    attack.look_for_a_catch("release", "a call of the function that was put back").await;
    assert_none(attack.end().await);
}

#[tokio::test]
async fn f1_functions_of_the_contracts_names_are_in_the_way_of_creation() {
    let mut attack = Attack::prepare().await;
    let body = "LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM evil.trap(); END $$";
    for (schema, function) in [
        ("s1", format!("fetch_history(p_instance_id text) RETURNS void {body}")),
        ("s2", format!("fetch_history(text, integer DEFAULT evil.trap()) RETURNS void {body}")),
        ("s3", format!("cleanup_schema() RETURNS void {body}")),
        ("s4", format!("get_kv_value(VARIADIC text[]) RETURNS void {body}")),
    ] {
        attack.owner(&format!("CREATE SCHEMA {schema}; CREATE FUNCTION {schema}.{function}")).await;
        let call = format!("SELECT duroxide_queue.create_queue('{schema}')");
        let outcome = run(&mut attack.superuser, &call).await;
        assert!(matches!(outcome.code(), Some("42P07" | "42723")), "{function}: {outcome:?}");
        attack.look_for_a_catch(&function, &call).await;
    }
    assert_none(attack.end().await);
}

#[tokio::test]
async fn f1_functions_of_the_contracts_names_in_the_way_of_adoption() {
    let mut complaints = Vec::new();
    for function in [
        "CREATE FUNCTION app.fetch_history(text, integer DEFAULT evil.trap()) RETURNS void
         LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM evil.trap(); END $$",
        "CREATE OR REPLACE FUNCTION app.list_instances() RETURNS TABLE (instance_id text)
         LANGUAGE plpgsql SECURITY DEFINER COST 1 ROWS 1 SET search_path = evil
         AS $$ BEGIN PERFORM evil.trap(); END $$",
        "CREATE AGGREGATE app.fetch_history(integer) (SFUNC = int4pl, STYPE = integer)",
        "CREATE PROCEDURE app.ack_worker(integer) LANGUAGE sql AS 'SELECT evil.trap()'",
    ] {
        let mut attack = Attack::prepare().await;
        attack.owner(function).await;
        attack.superuser_manages(function).await;
        complaints.extend(attack.end().await);
    }
    assert_none(complaints);
}

#[tokio::test]
async fn f1_tables_of_the_queue_with_traps() {
    let mut attack = Attack::prepare().await;
    attack
        .owner(
            "CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON app.orchestrator_queue
               FOR EACH ROW EXECUTE FUNCTION evil.trigger();
             ALTER TABLE app.worker_queue ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
             CREATE POLICY p ON app.worker_queue USING (evil.trap() = 1);
             CREATE FUNCTION evil.same(bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE
               AS $$ BEGIN PERFORM evil.trap(); RETURN $1; END $$;
             CREATE INDEX evil_idx ON app.worker_queue (evil.same(id));
             ALTER TABLE app.sessions ADD CHECK (evil.same(locked_until) > 0);
             INSERT INTO app.worker_queue (work_item, visible_at, created_at) VALUES ('{}', now(), now())",
        )
        .await;
    attack.superuser_manages("traps on the tables").await;
    assert_none(attack.end().await);
}

#[tokio::test]
async fn names_of_schemas_are_only_names() {
    let mut attack = Attack::prepare().await;
    for name in [
        "x\"; SELECT evil.trap(); --",
        "x'; SELECT evil.trap(); --",
        "{q}",
        "x\\'; SELECT evil.trap(); --",
        "%I%s",
        "$1",
    ] {
        let literal = name.replace('\'', "''");
        must(&mut attack.superuser, &format!("SELECT duroxide_queue.create_queue('{literal}')")).await;
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        must(
            &mut attack.superuser,
            &format!("SELECT {quoted}.enqueue_orchestrator_work('i', '{{}}', now())"),
        )
        .await;
        let claim =
            format!("SELECT out_instance_id FROM {quoted}.fetch_orchestration_item(2000000000000, 1)");
        assert_eq!(run(&mut attack.superuser, &claim).await.value(), "i");
        attack.looks_at_the_views(name).await;
        must(&mut attack.superuser, &format!("SELECT duroxide_queue.drop_queue('{literal}')")).await;
        attack.look_for_a_catch(name, "create and drop").await;
    }
    assert_none(attack.end().await);
}

/// The planner evaluates what an index is on, with the rights of whoever reads the table.
#[tokio::test]
async fn a_registry_with_an_index_on_the_owners_function() {
    let mut attack = Attack::adopted().await;
    let look = "SELECT concat_ws(' ', queue, origin, layout, own_functions) FROM duroxide_queue.queues";
    assert_eq!(run(&mut attack.superuser, look).await.value(), "app adopted 1 32");
    attack
        .owner(
            "CREATE FUNCTION evil.fold(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN evil.trap(); END';
             CREATE INDEX trap ON app._duroxide_queue (evil.fold(1))",
        )
        .await;

    assert_eq!(run(&mut attack.superuser, look).await.value(), "app 32");
    attack.look_for_a_catch("an index on a function", look).await;

    // A registry that somebody has locked is not waited for, and one that goes meanwhile is no error.
    attack.owner("DROP INDEX app.trap").await;
    must(&mut attack.superuser, "SET lock_timeout = '1ms'").await;
    attack.owner("BEGIN; LOCK TABLE app._duroxide_queue IN ACCESS EXCLUSIVE MODE").await;
    assert_eq!(run(&mut attack.superuser, look).await.value(), "app 32");
    attack.owner("COMMIT").await;
    assert_eq!(run(&mut attack.superuser, look).await.value(), "app adopted 1 32");
    assert_none(attack.end().await);
}

/// Whoever owns a schema may drop what others have made there, and put his own in its place at any moment.
#[tokio::test]
async fn a_queue_of_the_superusers_in_somebody_elses_schema() {
    let mut attack = Attack::prepare().await;
    let attacker = run(&mut attack.attacker, "SELECT current_user::text").await.value();
    must(
        &mut attack.superuser,
        "SELECT duroxide_queue.create_queue('given');
         INSERT INTO given.dead_letters (message_id, instance_id, work_item, visible_at, created_at, attempt_count, buried_at, sqlstate, reason)
         VALUES (1, 'i', 'x', now(), now(), 0, now(), '22P02', 'r')",
    )
    .await;
    must(&mut attack.superuser, &format!("ALTER SCHEMA given OWNER TO {attacker}")).await;
    for call in [
        "discard('given', 1)",
        "redrive('given', 1)",
        "drop_queue('given')",
        "grant_client('given', 'pg_monitor')",
        "create_queue('fresh')",
    ] {
        must(&mut attack.superuser, "BEGIN").await;
        must(&mut attack.superuser, &format!("CREATE SCHEMA fresh AUTHORIZATION {attacker}")).await;
        let error = must_fail(&mut attack.superuser, &format!("SELECT duroxide_queue.{call}")).await;
        assert_eq!(error.code, "42501", "{call}: {error}");
        must(&mut attack.superuser, "ROLLBACK").await;
    }
    let look = "SELECT concat_ws(' ', queue, origin) FROM duroxide_queue.queues";
    assert_eq!(run(&mut attack.superuser, look).await.value(), "given");

    // Who makes a queue of his own in another's schema manages it himself.
    must(
        &mut attack.superuser,
        &format!("CREATE SCHEMA shared; GRANT USAGE, CREATE ON SCHEMA shared TO {attacker}"),
    )
    .await;
    attack.owner("SELECT duroxide_queue.create_queue('shared')").await;
    // But he cannot let others into the schema, and is told so.
    let error =
        must_fail(&mut attack.attacker, "SELECT duroxide_queue.grant_client('shared', 'pg_read_all_stats')")
            .await;
    assert_eq!(error.code, "42501", "{error}");
    attack.owner("SELECT duroxide_queue.drop_queue('shared')").await;
    assert_none(attack.end().await);
}
