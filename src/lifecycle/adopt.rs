//! Takes over a live duroxide-pg 0.1.38 schema.

use super::create::{ADDITIONS, COMMENTS, refuse_taken, register, relations};
use super::functions::{self, Existing};
use super::schema::Schema;
use super::standstill::stand_still;
use crate::error::{Error, Result};

/// Calls that are at work finish first and new ones wait until the end, so that none of the old
/// procedures runs beside one of the new functions.
const LIVE_TABLES: &str = "{q}.instance_locks, {q}.orchestrator_queue, {q}.worker_queue, {q}.sessions";

/// The script that writes the client's migrations into a new queue; `expected_level` reads them off it.
const LEVEL: &str = include_str!("../../sql/queue_tables.sql");
const LEDGER: &str = "_duroxide_migrations (version, name) VALUES";

/// Takes the schema over in the caller's transaction: data, grants and comments stay, the functions
/// are replaced in place, and what is replaced is remembered for `release`. On a queue whose
/// functions went with the extension, or were put back by a migration, it declares them again; on one
/// that was restored without its data, it says again what it is.
pub(crate) fn adopt(name: &[u8]) -> Result<()> {
    let schema = Schema::open(name)?;
    schema.require_create()?;
    if schema.has_table("_duroxide_queue") {
        return readopt(&schema);
    }
    require_ledger(&schema)?;
    refuse_taken(&schema, &relations(ADDITIONS), "")?;
    let owner = schema.owner()?;
    schema.as_owner(|| require_level(&schema))?;
    require_tables(&schema)?;
    require_functions(&schema)?;
    require_function_ownership(&schema)?;
    schema.as_owner(|| {
        stand_still(&schema, LIVE_TABLES);
        schema.run_script(ADDITIONS);
        grant_burying(&schema);
        register(&schema, "adopted", false, &DEFINITIONS.replace("{contract}", &functions::names()));
        Ok(())
    })?;
    functions::declare(&schema, Existing::Replace, owner);
    Ok(())
}

/// Roles that may take messages out of the queue may put them where bad ones go: what they could do
/// with the queue before, they can do with it adopted.
fn grant_burying(schema: &Schema) {
    let roles = schema.query(
        "SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END
         FROM pg_class c
         JOIN pg_namespace n ON n.oid = c.relnamespace
         CROSS JOIN aclexplode(c.relacl) a
         LEFT JOIN pg_roles r ON r.oid = a.grantee
         WHERE n.nspname = $1 AND c.relname = 'orchestrator_queue'
           AND a.privilege_type = 'DELETE' AND a.grantee <> c.relowner",
    );
    for role in roles.iter().filter_map(|row| row.text(1)) {
        schema.run_verbatim_on(b"GRANT INSERT ON ", b".dead_letters TO ", role);
    }
}

fn readopt(schema: &Schema) -> Result<()> {
    let registered = schema.registry()?;
    if registered.is_some()
        && schema.one_bool(
            "SELECT count(DISTINCT p.proname) = 32
         FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
         WHERE n.nspname = $1 AND p.probin = '$libdir/duroxide_queue' AND p.prosrc = p.proname || '_wrapper'",
        )
    {
        return Err(Error::QueueExists(schema.shown()));
    }
    require_ledger(schema)?;
    let owner = schema.owner()?;
    require_tables(schema)?;
    schema.as_owner(|| {
        if registered.is_none() {
            register_again(schema);
        }
        require_level(schema)
    })?;
    require_function_ownership(schema)?;
    schema.as_owner(|| {
        stand_still(schema, LIVE_TABLES);
        Ok(())
    })?;
    functions::declare(schema, Existing::Replace, owner);
    if registered.is_some_and(|registered| registered.origin == "created") {
        schema.as_owner(|| {
            schema.run_script(COMMENTS);
            Ok(())
        })?;
    }
    Ok(())
}

/// Writes what a restore without data has left out: what the queue is, and the client's migrations. Of an
/// adopted one the replaced functions are lost, so from now on it is as good as created.
fn register_again(schema: &Schema) {
    let ledger_is_empty =
        schema.one_bool("SELECT NOT EXISTS (SELECT FROM {q}._duroxide_migrations m) WHERE $1 IS NOT NULL");
    if ledger_is_empty {
        let (_, ledger) = LEVEL.split_once(LEDGER).expect("the script writes it");
        let (rows, _) = ledger.split_once(';').expect("a statement has an end");
        schema.run_script(&format!("INSERT INTO {{q}}.{LEDGER}{rows}"));
    }
    register(schema, "created", false, "'{}'");
}

/// The definitions of the functions that are about to be replaced.
const DEFINITIONS: &str = "(SELECT coalesce(array_agg(pg_get_functiondef(p.oid) ORDER BY p.proname), '{}')
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
  WHERE n.nspname = {name} AND p.prokind = 'f'
    AND p.proname = ANY (string_to_array('{contract}', ' ')))";

fn require_ledger(schema: &Schema) -> Result<()> {
    if schema.has_table("_duroxide_migrations") {
        return Ok(());
    }
    Err(Error::WrongLevel { schema: schema.shown(), found: "it has no table _duroxide_migrations".into() })
}

/// Reads the owner's table, so this runs with the owner's rights.
fn require_level(schema: &Schema) -> Result<()> {
    let rows = schema.query(
        "SELECT m.version, m.name FROM {q}._duroxide_migrations m WHERE $1 IS NOT NULL ORDER BY m.version",
    );
    let found: Vec<String> = rows
        .iter()
        .map(|row| {
            format!(
                "{} {}",
                row.int8(1).unwrap_or(0),
                String::from_utf8_lossy(row.text(2).unwrap_or_default())
            )
        })
        .collect();
    let expected = expected_level();
    let place = found.iter().zip(&expected).take_while(|(found, expected)| found == expected).count();
    if place == found.len() && place == expected.len() {
        return Ok(());
    }
    let row_of = |level: &[String]| level.get(place).map_or("no row", String::as_str).to_owned();
    let found = format!(
        "row {} of _duroxide_migrations is \"{}\", where \"{}\" is expected",
        place + 1,
        row_of(&found),
        row_of(&expected),
    );
    Err(Error::WrongLevel { schema: schema.shown(), found })
}

/// The migrations of duroxide-pg 0.1.38, read off the script that writes them into a new queue.
fn expected_level() -> Vec<String> {
    let (_, rows) = LEVEL.split_once(LEDGER).expect("the script lists them");
    rows.lines()
        .filter_map(|line| line.trim().strip_prefix('(')?.split_once(", '"))
        .map(|(version, rest)| format!("{version} {}", rest.split('\'').next().unwrap_or_default()))
        .collect()
}

/// Columns that the functions read and write.
const COLUMNS: &str = "
instances.instance_id text, instances.orchestration_name text, instances.orchestration_version text,
instances.current_execution_id bigint, instances.created_at timestamp with time zone,
instances.updated_at timestamp with time zone, instances.parent_instance_id text,
instances.custom_status text, instances.custom_status_version integer,
executions.instance_id text, executions.execution_id bigint, executions.status text,
executions.output text, executions.started_at timestamp with time zone,
executions.completed_at timestamp with time zone, executions.duroxide_version_major integer,
executions.duroxide_version_minor integer, executions.duroxide_version_patch integer,
history.instance_id text, history.execution_id bigint, history.event_id bigint,
history.event_type text, history.event_data text, history.created_at timestamp with time zone,
instance_locks.instance_id text, instance_locks.lock_token text,
instance_locks.locked_until bigint, instance_locks.locked_at bigint,
orchestrator_queue.id bigint, orchestrator_queue.instance_id text, orchestrator_queue.work_item text,
orchestrator_queue.visible_at timestamp with time zone, orchestrator_queue.lock_token text,
orchestrator_queue.locked_until bigint, orchestrator_queue.created_at timestamp with time zone,
orchestrator_queue.attempt_count integer,
worker_queue.id bigint, worker_queue.work_item text, worker_queue.visible_at timestamp with time zone,
worker_queue.lock_token text, worker_queue.locked_until bigint,
worker_queue.created_at timestamp with time zone, worker_queue.attempt_count integer,
worker_queue.instance_id text, worker_queue.execution_id bigint, worker_queue.activity_id bigint,
worker_queue.session_id text, worker_queue.tag text,
sessions.session_id text, sessions.worker_id text, sessions.locked_until bigint,
sessions.last_activity_at bigint,
kv_store.instance_id text, kv_store.key text, kv_store.value text, kv_store.execution_id bigint,
kv_store.last_updated_at_ms bigint,
kv_delta.instance_id text, kv_delta.key text, kv_delta.value text, kv_delta.last_updated_at_ms bigint";

fn require_tables(schema: &Schema) -> Result<()> {
    let rows = schema.query_with(
        "SELECT e.line
         FROM unnest(string_to_array($2, ', ')) e (line)
         WHERE NOT EXISTS (
           SELECT FROM pg_attribute a
           JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p')
           JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE n.nspname = $1 AND NOT a.attisdropped
             AND c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) = e.line)
         LIMIT 1",
        &[COLUMNS.trim().replace(",\n", ", ").as_bytes().into()],
    );
    match rows.first().and_then(|row| row.text(1)) {
        None => Ok(()),
        Some(line) => Err(Error::IncompleteSchema {
            schema: schema.shown(),
            part: format!("column {} is missing or of another type", String::from_utf8_lossy(line)),
        }),
    }
}

/// Exactly as the contract has them: a function of other arguments would be left where it is, and one
/// of another result cannot be replaced.
fn require_functions(schema: &Schema) -> Result<()> {
    for function in functions::contract() {
        let there = schema.query_with(
            "SELECT EXISTS (
               SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
               WHERE n.nspname = $1 AND p.proname = $2 AND p.prokind = 'f'
                 AND replace(pg_get_function_arguments(p.oid), ' ', '') = $3
                 AND replace(pg_get_function_result(p.oid), ' ', '') = $4)",
            &[
                function.name.as_bytes().into(),
                function.arguments.as_bytes().into(),
                function.result.as_bytes().into(),
            ],
        );
        if there.first().and_then(|row| row.bool(1)) != Some(true) {
            let part =
                format!("function {} is missing, or has other arguments or another result", function.name);
            return Err(Error::IncompleteSchema { schema: schema.shown(), part });
        }
    }
    Ok(())
}

/// Replacing runs with more rights than the caller's, so the caller's own are asked first.
fn require_function_ownership(schema: &Schema) -> Result<()> {
    let rows = schema.query_with(
        "SELECT 'function ' || p.oid::regprocedure::text
         FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
         WHERE n.nspname = $1 AND p.proname = ANY (string_to_array($2, ' ')) AND NOT pg_has_role(p.proowner, 'USAGE')
         LIMIT 1",
        &[functions::names().as_bytes().into()],
    );
    match rows.first().and_then(|row| row.text(1)) {
        None => Ok(()),
        Some(object) => Err(Error::NotOwner { object: String::from_utf8_lossy(object).into_owned() }),
    }
}
