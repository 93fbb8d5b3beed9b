//! The docs tell the truth: their examples print what they show, every function and setting is in
//! them with its exact signature, every error is in its table, and their links lead somewhere.

#[path = "docs/errors.rs"]
mod errors;
#[path = "docs/examples.rs"]
mod examples;
#[path = "docs/markdown.rs"]
mod markdown;

use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::{queue, server};
use markdown::{Page, pages, root};
use sqlx::postgres::PgConnection;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Pages that begin with a schema `shop` of duroxide-pg's own, as their reader has it.
const BEGIN_WITH_DUROXIDE_PG: [&str; 2] = ["docs/moving.md", "docs/reference/management.md"];

#[tokio::test]
async fn examples_print_what_is_shown() {
    let mut complaints = Vec::new();
    let mut ran = 0;
    for page in pages().iter().filter(|page| page.lines.join(" ").contains(examples::PROMISE)) {
        let mut session = server::connect(None).await;
        for role in examples::roles(page) {
            must(&mut session, &format!("DROP ROLE IF EXISTS {role}")).await;
        }
        let database = Database::make().await;
        if BEGIN_WITH_DUROXIDE_PG.iter().any(|path| page.path == Path::new(path)) {
            duroxide_pg_schema(&database, "shop").await;
        }
        complaints.extend(examples::check(page, &database).await);
        database.remove().await;
        for role in examples::roles(page) {
            must(&mut session, &format!("DROP ROLE IF EXISTS {role}")).await;
        }
        ran += 1;
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
    assert!(ran >= 8, "only {ran} pages promise that their examples run");
}

/// Lets duroxide-pg lay out a schema with its own migrations.
async fn duroxide_pg_schema(database: &Database, schema: &str) {
    let provider = queue::open(&database.url(), schema, MigrationPolicy::ApplyAll).await;
    provider.pool().close().await;
}

#[tokio::test]
async fn every_error_is_in_its_functions_table_and_every_row_is_raised() {
    let mut database = Database::make().await;
    errors::prepare(&database).await;

    let complaints = errors::check(&pages(), &mut database).await;

    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    database.remove().await;
}

/// Pages on which functions may be told of beside the reference's headings.
const VIEWS: [&str; 2] = ["docs/monitoring.md", "docs/reference/management.md"];

/// What the catalog says of each function of a schema, blanks left out.
async fn signatures(session: &mut PgConnection, schema: &str) -> BTreeMap<String, String> {
    let query = format!(
        "SELECT p.proname, p.proname || '(' || pg_get_function_arguments(p.oid) || ')RETURNS' || pg_get_function_result(p.oid)
         FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
         WHERE n.nspname = '{schema}'
           -- What a view reads is told with the view.
           AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
                                                     AND d.classid = 'pg_rewrite'::regclass)"
    );
    let rows = must(session, &query).await;
    rows.into_iter()
        .map(|mut row| (row[0].take().expect("a name"), dense(&row[1].take().expect("a signature"))))
        .collect()
}

fn dense(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Names of arguments and of result columns, as a signature without blanks has them before a type.
fn names(arguments_and_result: &str) -> impl Iterator<Item = &str> {
    arguments_and_result
        .split(['(', ')', ','])
        .flat_map(str::lines)
        .filter_map(|part| part.trim().split_once(' ').map(|(name, _)| name))
        .filter(|name| {
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        })
}

#[tokio::test]
async fn the_reference_has_every_function_with_its_signature() {
    let database = Database::make().await;
    let mut session = database.connect().await;
    must(&mut session, "CREATE EXTENSION duroxide_queue; SELECT duroxide_queue.create_queue('app')").await;
    let mut functions = signatures(&mut session, "app").await;
    assert_eq!(functions.len(), 32);
    functions.extend(signatures(&mut session, "duroxide_queue").await);

    let mut complaints = Vec::new();
    let mut documented = BTreeSet::new();
    for page in pages().iter().filter(|page| page.path.starts_with("docs/reference")) {
        for heading in &page.headings {
            let Some(signature) = functions.get(&heading.text) else { continue };
            let place = format!("{}:{}", page.path.display(), heading.line + 1);
            documented.insert(heading.text.clone());
            let block = page.first_block(heading).filter(|block| block.language.is_empty());
            let Some(block) = block else {
                complaints.push(format!("{place}: no signature under the heading"));
                continue;
            };
            if dense(&block.text) != *signature {
                complaints.push(format!("{place}: the signature is {signature}"));
            }
            let told: String = page
                .section(heading)
                .iter()
                .filter(|line| line.starts_with('|'))
                .map(|line| format!("{line}\n"))
                .collect();
            for name in names(&block.text) {
                if !told.contains(&format!("`{name}`")) {
                    complaints.push(format!("{place}: no table tells of {name}"));
                }
            }
        }
    }
    // What the views are made of is told with them, or named as being for them alone.
    let views: String = pages()
        .iter()
        .filter(|page| VIEWS.iter().any(|path| page.path == Path::new(path)))
        .flat_map(|page| page.lines.clone())
        .collect();
    for missing in functions.keys().filter(|name| !documented.contains(*name)) {
        if !views.contains(&format!("`{missing}")) && !views.contains(&format!("duroxide_queue.{missing}(")) {
            complaints.push(format!("no page under docs/reference has a heading {missing}"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    drop(session);
    database.remove().await;
}

#[tokio::test]
async fn every_setting_is_documented() {
    let database = Database::make().await;
    let mut session = database.connect().await;
    must(&mut session, "LOAD 'duroxide_queue'").await;
    let settings = must(
        &mut session,
        "SELECT name, boot_val, array_to_string(enumvals, ' '), short_desc FROM pg_settings
         WHERE name LIKE 'duroxide_queue.%'",
    )
    .await;
    assert!(!settings.is_empty());
    let page = Page::read(Path::new("docs/operations.md"));
    for setting in settings {
        let [name, default, values, description] = setting.try_into().expect("four columns");
        let name = name.expect("a name");
        let told = page
            .lines
            .iter()
            .find(|line| line.starts_with(&format!("| `{name}` |")))
            .unwrap_or_else(|| panic!("docs/operations.md has no row for {name}"));
        let values = values.unwrap_or_default();
        for value in values.split_whitespace().chain(default.as_deref()) {
            assert!(told.contains(&format!("`{value}`")), "{name} can be {value}: {told}");
        }
        assert!(description.is_some_and(|description| !description.is_empty()), "{name} has no description");
    }
    drop(session);
    database.remove().await;
}

#[test]
fn links_lead_somewhere() {
    let pages = pages();
    let mut complaints = Vec::new();
    let mut links = 0;
    for page in &pages {
        let folder = page.path.parent().expect("a file is in a folder");
        for link in &page.links {
            links += 1;
            let (file, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
            let target = if file.is_empty() { page.path.clone() } else { folder.join(file) };
            let place = format!("{}:{}: {}", page.path.display(), link.line + 1, link.target);
            let Ok(found) = root().join(&target).canonicalize() else {
                complaints.push(format!("{place}: there is no such file"));
                continue;
            };
            let anchors = pages.iter().find(|page| root().join(&page.path) == found);
            if !anchor.is_empty()
                && !anchors.is_some_and(|page| page.headings.iter().any(|heading| heading.anchor == anchor))
            {
                complaints.push(format!("{place}: there is no such heading"));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(links > 20, "only {links} links were found");
}
