//! What a test of escalation has at hand: the trap, who lays it and who must not step into it.

use super::{database_with_extension, reference_schema};
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::{Outcome, must, run};
use sqlx::postgres::PgConnection;

/// What the attacker has at hand: the trap as a function, as a trigger, and as a cast from a type. The
/// cast is explicit, so that an operator which takes any type is not ambiguous: `||` casts inside.
const TOOLS: &str = "
CREATE SCHEMA evil;
GRANT USAGE ON SCHEMA evil TO PUBLIC;
CREATE SEQUENCE evil.caught;
CREATE FUNCTION evil.trap() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) THEN
    PERFORM pg_catalog.nextval('evil.caught');
  END IF;
  RETURN 1;
END $$;
CREATE FUNCTION evil.trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM evil.trap(); RETURN coalesce(NEW, OLD); END $$;
CREATE TYPE evil.word AS (word text);
CREATE FUNCTION evil.spell(evil.word) RETURNS text LANGUAGE plpgsql AS $$
BEGIN PERFORM evil.trap(); RETURN ($1).word; END $$;
CREATE CAST (evil.word AS text) WITH FUNCTION evil.spell(evil.word);
CREATE TABLE evil.deferred (a integer);
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON evil.deferred DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION evil.trigger();
";

/// Everything that takes the name of a queue.
const MANAGEMENT: [&str; 8] = [
    "adopt_queue('app')",
    "grant_client('app', 'pg_monitor')",
    "revoke_client('app', 'pg_monitor')",
    "redrive('app', 1)",
    "discard('app', 1)",
    "release_queue('app')",
    "drop_queue('app')",
    "create_queue('app')",
];

/// An owner with evil in mind, and a superuser who manages the queue.
pub struct Attack {
    pub database: Database,
    pub superuser: PgConnection,
    pub attacker: PgConnection,
    name: String,
    pub complaints: Vec<String>,
}

impl Attack {
    /// A duroxide-pg schema `app` of a role without other rights, and its tools.
    pub async fn prepare() -> Attack {
        let (mut database, mut superuser) = database_with_extension().await;
        let name = database.role("attacker").await;
        reference_schema(&database, &mut superuser, &name).await;
        must(&mut superuser, &format!("GRANT CREATE ON DATABASE {} TO {name}", database.name())).await;
        let mut attacker = database.connect_as(&name).await;
        must(&mut attacker, TOOLS).await;
        Attack { database, superuser, attacker, name, complaints: Vec::new() }
    }

    /// The same, adopted by its owner.
    pub async fn adopted() -> Attack {
        let mut attack = Attack::prepare().await;
        attack.owner("SELECT duroxide_queue.adopt_queue('app')").await;
        attack
    }

    pub async fn owner(&mut self, sql: &str) {
        must(&mut self.attacker, sql).await;
    }

    /// The owner adopts the schema if need be, and puts a text before the definitions in the registry.
    pub async fn store(&mut self, text: &str) {
        let text = text.replace('\'', "''");
        let _ = run(&mut self.attacker, "SELECT duroxide_queue.adopt_queue('app')").await;
        self.owner(&format!(
            "UPDATE app._duroxide_queue
             SET replaced_functions = ARRAY['{text}']
                 || ARRAY(SELECT d FROM unnest(replaced_functions) d WHERE d LIKE 'CREATE OR REPLACE FUNCTION app.%')"
        ))
        .await;
    }

    /// The superuser does everything there is to do, each thing in a transaction that is undone except
    /// for the adoption, and looks at the views; whether that succeeds does not matter.
    pub async fn superuser_manages(&mut self, what: &str) {
        for call in MANAGEMENT {
            must(&mut self.superuser, "BEGIN").await;
            self.superuser_calls(what, call).await;
            must(&mut self.superuser, "ROLLBACK").await;
        }
        self.superuser_calls(what, "adopt_queue('app')").await;
        self.looks_at_the_views(what).await;
    }

    pub async fn superuser_calls(&mut self, what: &str, call: &str) {
        let outcome = run(&mut self.superuser, &format!("SELECT duroxide_queue.{call}")).await;
        if let Outcome::Error(error) = outcome
            && error.code.starts_with("XX")
        {
            self.complaints.push(format!("{what}: {call} fails inside: {error}"));
        }
        self.look_for_a_catch(what, call).await;
    }

    pub async fn looks_at_the_views(&mut self, what: &str) {
        for view in ["queues", "queue_health", "leases", "stuck", "bloat"] {
            must(&mut self.superuser, &format!("SELECT * FROM duroxide_queue.{view}")).await;
            self.look_for_a_catch(what, &format!("the view {view}")).await;
        }
    }

    /// In a session of its own: the superuser's may be in a transaction that has failed.
    pub async fn look_for_a_catch(&mut self, what: &str, call: &str) {
        let mut session = self.database.connect().await;
        if run(&mut session, "SELECT is_called FROM evil.caught").await.value() == "t" {
            self.complaints.push(format!("{what}: code of the owner ran as a superuser in {call}"));
            must(&mut session, "SELECT setval('evil.caught', 1, false)").await;
        }
        let promoted = format!("SELECT rolsuper FROM pg_roles WHERE rolname = '{}'", self.name);
        if run(&mut session, &promoted).await.value() == "t" {
            self.complaints.push(format!("{what}: the owner is a superuser after {call}"));
        }
        let left = must(
            &mut session,
            "SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
             WHERE r.rolsuper AND p.pronamespace = 'app'::regnamespace
               AND (p.prosecdef OR p.probin IS DISTINCT FROM '$libdir/duroxide_queue')",
        )
        .await;
        if !left.is_empty() {
            self.complaints
                .push(format!("{what}: {call} made functions of the owner's the superuser's: {left:?}"));
        }
    }

    /// The end of the attack, and what there is to complain of.
    pub async fn end(self) -> Vec<String> {
        self.database.remove().await;
        self.complaints
    }
}

pub fn assert_none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "{complaints:#?}");
}
