//! A queue is what the contract says, created or adopted: every function and column of it, and no
//! more of ours than is listed here.

use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::catalog;
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue::{self, Kind};
use sqlx::postgres::PgConnection;
use std::collections::BTreeSet;

const FUNCTIONS: &str = include_str!("catalog/functions.tsv");
const TABLES: &str = include_str!("catalog/tables.tsv");
const MIGRATIONS: &str = include_str!("catalog/migrations.tsv");
const ADDITIONS: &str = include_str!("catalog/additions.txt");
const CREATED: &str = include_str!("catalog/created.txt");
const MEMBERS: &str = include_str!("catalog/members.txt");

const QUEUE: &str = "app";

#[tokio::test]
async fn a_created_queue_is_as_the_contract_says() {
    let (database, mut session, owner) = queue_of_a_plain_role(Kind::Created).await;

    as_the_contract_says(&mut session, &owner).await;
    every_function_and_table_has_a_comment(&mut session).await;

    database.remove().await;
}

#[tokio::test]
async fn keys_of_a_created_queue_go_by_bytes() {
    let (database, mut session, _) = queue_of_a_plain_role(Kind::Created).await;

    let collations = texts(
        &mut session,
        &format!(
            "SELECT DISTINCT k.key_collation::regcollation::text
             FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid,
                  unnest(i.indcollation) AS k(key_collation)
             WHERE c.relnamespace = '{QUEUE}'::regnamespace AND k.key_collation <> 0"
        ),
    )
    .await;

    assert_eq!(collations, BTreeSet::from(["\"C\"".to_owned()]));
    database.remove().await;
}

#[tokio::test]
async fn an_adopted_queue_is_as_the_contract_says() {
    let (database, mut session, owner) = queue_of_a_plain_role(Kind::Adopted).await;

    as_the_contract_says(&mut session, &owner).await;

    database.remove().await;
}

#[tokio::test]
async fn a_created_queue_has_nothing_else_but_what_is_listed() {
    let (database, mut session, _) = queue_of_a_plain_role(Kind::Created).await;

    let objects = objects(&mut session).await;

    assert_listed(
        "created.txt, additions.txt and the contract",
        &objects,
        &[&lines(CREATED), &lines(ADDITIONS)],
    );
    database.remove().await;
}

#[tokio::test]
async fn adopting_adds_what_is_listed_and_nothing_else() {
    let (database, mut session, _) = queue_of_a_plain_role(Kind::Reference).await;
    let before = objects(&mut session).await;

    must(&mut session, &format!("SELECT duroxide_queue.adopt_queue('{QUEUE}')")).await;

    let after = objects(&mut session).await;
    assert_eq!(before.difference(&after).collect::<Vec<_>>(), Vec::<&String>::new(), "nothing goes");
    let added: BTreeSet<String> = after.difference(&before).cloned().collect();
    assert_listed("additions.txt", &added, &[&lines(ADDITIONS)]);
    database.remove().await;
}

#[tokio::test]
async fn adopting_keeps_the_comments_of_functions() {
    let (database, mut session, _) = queue_of_a_plain_role(Kind::Reference).await;
    must(
        &mut session,
        &format!(
            "COMMENT ON FUNCTION {QUEUE}.list_instances() IS 'mine'; COMMENT ON TABLE {QUEUE}.history IS 'too'"
        ),
    )
    .await;
    let before = comments(&mut session).await;

    must(&mut session, &format!("SELECT duroxide_queue.adopt_queue('{QUEUE}')")).await;

    let after = comments(&mut session).await;
    assert!(before.is_subset(&after), "{before:#?} {after:#?}");
    let uncommented = functions_without_comment(&mut session).await;
    assert_eq!(uncommented.len(), 31, "adopting comments on no function");
    database.remove().await;
}

#[tokio::test]
async fn the_extension_has_the_members_that_are_listed() {
    let (database, mut session, _) = queue_of_a_plain_role(Kind::Created).await;

    let members = texts(
        &mut session,
        "SELECT i.type || ' ' || i.identity
         FROM pg_depend d JOIN pg_extension x ON x.oid = d.refobjid
         CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, d.objsubid) i
         WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND x.extname = 'duroxide_queue'
           AND d.classid <> 'pg_type'::regclass",
    )
    .await;

    assert_listed("members.txt", &members, &[&lines(MEMBERS)]);
    database.remove().await;
}

#[tokio::test]
async fn every_member_of_the_extension_has_a_comment() {
    let (database, mut session, _) = queue_of_a_plain_role(Kind::Created).await;

    let without = texts(
        &mut session,
        "SELECT i.identity
         FROM pg_depend d JOIN pg_extension x ON x.oid = d.refobjid
         CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, d.objsubid) i
         WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND x.extname = 'duroxide_queue'
           AND d.classid <> 'pg_type'::regclass
           AND NOT EXISTS (SELECT FROM pg_description c
                           WHERE (c.classoid, c.objoid, c.objsubid) = (d.classid, d.objid, 0))
         UNION ALL
         SELECT 'column ' || c.relname || '.' || a.attname
         FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
         WHERE c.relnamespace = 'duroxide_queue'::regnamespace AND a.attnum > 0
           AND col_description(a.attrelid, a.attnum) IS NULL",
    )
    .await;

    assert!(without.is_empty(), "no comment on {without:#?}");
    database.remove().await;
}

#[tokio::test]
async fn the_library_has_no_more_functions_than_are_declared() {
    let (database, mut session, _) = queue_of_a_plain_role(Kind::Created).await;

    let misplaced = texts(
        &mut session,
        "SELECT p.oid::regprocedure::text FROM pg_proc p
         WHERE p.probin LIKE '%duroxide_queue%'
           AND (p.probin <> '$libdir/duroxide_queue' OR p.prosrc <> p.proname || '_wrapper'
                OR p.pronamespace::regnamespace::text NOT IN ('app', 'duroxide_queue'))",
    )
    .await;

    assert!(misplaced.is_empty(), "{misplaced:#?}");
    database.remove().await;
}

#[tokio::test]
async fn creating_and_dropping_leaves_the_schema_as_it_was() {
    let (database, mut session, _) = database_of_a_plain_role().await;
    must(&mut session, &format!("CREATE SCHEMA {QUEUE}; CREATE TABLE {QUEUE}.mine (a text)")).await;
    let before = catalog::snapshot(&mut session, QUEUE).await;

    must(&mut session, &format!("SELECT duroxide_queue.create_queue('{QUEUE}')")).await;
    must(&mut session, &format!("SELECT duroxide_queue.drop_queue('{QUEUE}')")).await;

    catalog::assert_same(
        "create_queue and drop_queue",
        &before,
        &catalog::snapshot(&mut session, QUEUE).await,
    );
    database.remove().await;
}

/// A database with the extension, and a session of a role that may do no more than create things
/// there.
async fn database_of_a_plain_role() -> (Database, PgConnection, String) {
    let mut database = Database::make().await;
    let owner = database.role("owner").await;
    let mut superuser = database.connect().await;
    let name = database.name();
    must(&mut superuser, "CREATE EXTENSION duroxide_queue").await;
    must(&mut superuser, &format!("GRANT CREATE ON DATABASE {name} TO {owner}")).await;
    let session = database.connect_as(&owner).await;
    (database, session, owner)
}

/// The same with a queue of that role.
async fn queue_of_a_plain_role(kind: Kind) -> (Database, PgConnection, String) {
    let (database, mut session, owner) = database_of_a_plain_role().await;
    if kind == Kind::Created {
        must(&mut session, &format!("SELECT duroxide_queue.create_queue('{QUEUE}')")).await;
    } else {
        let provider = queue::open(&database.url_as(&owner), QUEUE, MigrationPolicy::ApplyAll).await;
        provider.pool().close().await;
    }
    if kind == Kind::Adopted {
        must(&mut session, &format!("SELECT duroxide_queue.adopt_queue('{QUEUE}')")).await;
    }
    (database, session, owner)
}

async fn as_the_contract_says(session: &mut PgConnection, owner: &str) {
    let functions = texts(
        session,
        &format!(
            "SELECT concat_ws(E'\\t', p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid))
             FROM pg_proc p
             WHERE p.pronamespace = '{QUEUE}'::regnamespace AND p.probin = '$libdir/duroxide_queue'"
        ),
    )
    .await;
    assert_listed("functions.tsv", &functions, &[&lines(FUNCTIONS)]);

    let traits = texts(
        session,
        &format!(
            "SELECT DISTINCT concat_ws(' ', l.lanname, p.prokind, p.provolatile, p.proparallel, p.proisstrict,
                                       p.prosecdef, p.proleakproof, p.proconfig, p.prosrc = p.proname || '_wrapper',
                                       pg_get_userbyid(p.proowner),
                                       (SELECT string_agg(d.deptype::text || ' ' || x.extname, ',')
                                        FROM pg_depend d JOIN pg_extension x ON x.oid = d.refobjid
                                        WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
                                          AND d.refclassid = 'pg_extension'::regclass))
             FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
             WHERE p.pronamespace = '{QUEUE}'::regnamespace AND p.probin = '$libdir/duroxide_queue'"
        ),
    )
    .await;
    let expected =
        format!("c f v u f f f {{\"search_path=pg_catalog, pg_temp\"}} t {owner} x duroxide_queue");
    assert_eq!(
        traits,
        BTreeSet::from([expected]),
        "language, kind, volatility, parallel safety, strict, security definer, leakproof, settings, symbol, \
         owner, extension; the same for all 32"
    );

    let tables = texts(
        session,
        &format!(
            "SELECT concat_ws(E'\\t', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                              CASE WHEN a.attnotnull THEN 'not null' ELSE 'null' END,
                              coalesce(replace(pg_get_expr(d.adbin, d.adrelid), '{QUEUE}.', ''), '-'),
                              coalesce(array_position(k.conkey, a.attnum), 0))
             FROM pg_class c
             JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
             LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
             LEFT JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'p'
             WHERE c.relnamespace = '{QUEUE}'::regnamespace AND c.relkind = 'r'
               AND c.relname NOT IN ('dead_letters', '_duroxide_queue')"
        ),
    )
    .await;
    assert_listed("tables.tsv", &tables, &[&lines(TABLES)]);

    let owners = texts(
        session,
        &format!(
            "SELECT DISTINCT pg_get_userbyid(c.relowner) FROM pg_class c WHERE c.relnamespace = '{QUEUE}'::regnamespace"
        ),
    )
    .await;
    assert_eq!(owners, BTreeSet::from([owner.to_owned()]));

    let migrations = texts(
        session,
        &format!(
            "SELECT version || E'\\t' || name FROM {QUEUE}._duroxide_migrations WHERE applied_at IS NOT NULL"
        ),
    )
    .await;
    assert_listed("migrations.tsv", &migrations, &[&lines(MIGRATIONS)]);
}

/// Columns whose name says what they are, in whichever table of a queue.
const SPEAKING_COLUMNS: &str = "id instance_id execution_id event_id activity_id parent_instance_id \
  orchestration_name orchestration_version event_type key value version name \
  created_at updated_at started_at completed_at applied_at duroxide_version_minor duroxide_version_patch";

async fn every_function_and_table_has_a_comment(session: &mut PgConnection) {
    let functions = functions_without_comment(session).await;
    let tables = texts(
        session,
        &format!(
            "SELECT c.relname FROM pg_class c
             WHERE c.relnamespace = '{QUEUE}'::regnamespace AND c.relkind = 'r'
               AND obj_description(c.oid, 'pg_class') IS NULL"
        ),
    )
    .await;
    let columns = texts(
        session,
        &format!(
            "SELECT c.relname || '.' || a.attname
             FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
             WHERE c.relnamespace = '{QUEUE}'::regnamespace AND c.relkind = 'r'
               AND a.attname <> ALL (string_to_array('{SPEAKING_COLUMNS}', ' '))
               AND col_description(c.oid, a.attnum) IS NULL"
        ),
    )
    .await;
    let without: Vec<_> = [functions, tables, columns].into_iter().flatten().collect();
    assert!(without.is_empty(), "no comment on {without:#?}");
}

async fn functions_without_comment(session: &mut PgConnection) -> BTreeSet<String> {
    texts(
        session,
        &format!(
            "SELECT p.proname FROM pg_proc p
             WHERE p.pronamespace = '{QUEUE}'::regnamespace AND p.probin = '$libdir/duroxide_queue'
               AND obj_description(p.oid, 'pg_proc') IS NULL"
        ),
    )
    .await
}

async fn comments(session: &mut PgConnection) -> BTreeSet<String> {
    let snapshot = catalog::snapshot(session, QUEUE).await;
    snapshot.into_iter().filter(|line| line.starts_with("comment ")).collect()
}

/// Everything in the schema except the functions and the columns of the contract.
async fn objects(session: &mut PgConnection) -> BTreeSet<String> {
    let functions = first_fields(FUNCTIONS);
    let tables = first_fields(TABLES);
    let of_the_contract = |line: &String| {
        let name = |kind| line.strip_prefix(kind).and_then(|rest| rest.split(['.', '(']).next());
        name("function ").is_some_and(|name| functions.contains(name))
            || name("table ").is_some_and(|name| tables.contains(name))
            || name("column ").is_some_and(|name| tables.contains(name))
    };
    let objects = texts(session, include_str!("catalog/objects.sql")).await;
    objects.into_iter().filter(|line| !of_the_contract(line)).collect()
}

fn first_fields(list: &str) -> BTreeSet<String> {
    lines(list).iter().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

async fn texts(session: &mut PgConnection, query: &str) -> BTreeSet<String> {
    let rows = must(session, query).await;
    let count = rows.len();
    let lines: BTreeSet<String> =
        rows.into_iter().map(|mut row| row.remove(0).expect("no line is NULL")).collect();
    assert_eq!(lines.len(), count, "a line comes twice: {query}");
    lines
}

fn lines(list: &str) -> BTreeSet<String> {
    list.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

fn assert_listed(name: &str, found: &BTreeSet<String>, lists: &[&BTreeSet<String>]) {
    let listed: BTreeSet<String> = lists.iter().flat_map(|list| list.iter().cloned()).collect();
    let missing: Vec<_> = listed.difference(found).collect();
    let unlisted: Vec<_> = found.difference(&listed).collect();
    assert!(
        missing.is_empty() && unlisted.is_empty(),
        "not as in {name}\nlisted, but not there: {missing:#?}\nthere, but not listed: {unlisted:#?}"
    );
}
