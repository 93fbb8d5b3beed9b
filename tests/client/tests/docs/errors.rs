//! The tables of errors, against what the functions raise.

use crate::markdown::Page;
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::{Outcome, must, run};
use duroxide_queue_tests::server;
use sqlx::postgres::PgConnection;
use std::collections::BTreeMap;

const SCRIPT: &str = include_str!("errors.sql");

/// What "undeliverable" stands for in the tables.
const UNDELIVERABLE: [&str; 5] = ["22P02", "22P05", "22003", "54000", "54001"];
/// The page whose table at the top counts for each of its functions.
const MANAGEMENT: &str = "management.md";

/// A row of a table of errors.
struct Row {
    place: String,
    code: String,
    /// The text between its wildcards.
    parts: Vec<String>,
    raised: bool,
}

impl Row {
    fn matches(&self, code: &str, message: &str) -> bool {
        let codes = if self.code == "undeliverable" { &UNDELIVERABLE[..] } else { &[self.code.as_str()] };
        if !codes.contains(&code) {
            return false;
        }
        let (first, rest) = self.parts.split_first().expect("a text has a beginning");
        let Some(mut left) = message.strip_prefix(first.as_str()) else { return false };
        for part in rest {
            let Some(place) = left.find(part.as_str()) else { return false };
            left = &left[place + part.len()..];
        }
        left.is_empty() || rest.last().is_some_and(String::is_empty)
    }
}

/// Tries every way to an error; returns where docs and functions differ.
pub async fn check(pages: &[Page], database: &mut Database) -> Vec<String> {
    let role = database.role("stranger").await;
    let script = SCRIPT.replace("{role}", &role);
    let mut session = database.connect().await;
    let mut holder = database.connect().await;
    let mut tables = tables(pages);
    let mut complaints = Vec::new();
    for (function, ways) in functions(&script) {
        if function == "setup" {
            must(&mut session, &ways.join("\n")).await;
            // Somebody who is writing, for those who want the tables for themselves.
            must(&mut holder, "BEGIN; LOCK TABLE held.worker_queue, kept.worker_queue IN ROW EXCLUSIVE MODE")
                .await;
            continue;
        }
        for way in ways {
            match raised(&mut session, &way).await {
                None => complaints.push(format!("{function}: no error\n{way}")),
                Some((code, message)) => {
                    let mut told = false;
                    for row in tables.iter_mut().filter(|(name, _)| name == function).map(|(_, row)| row) {
                        if row.matches(&code, &message) {
                            row.raised = true;
                            told = true;
                        }
                    }
                    if !told {
                        complaints.push(format!(
                            "{function} raises {code} {message}, which its table does not have"
                        ));
                    }
                }
            }
        }
    }
    // A row of a table that counts for several functions is right if one of them raises it.
    let mut rows: BTreeMap<&str, (&Row, bool)> = BTreeMap::new();
    for (_, row) in &tables {
        rows.entry(&row.place).or_insert((row, false)).1 |= row.raised;
    }
    for (row, _) in rows.values().filter(|(_, raised)| !raised) {
        complaints.push(format!("{}: nothing raises {} {}", row.place, row.code, row.parts.join("...")));
    }
    complaints
}

async fn raised(session: &mut PgConnection, way: &str) -> Option<(String, String)> {
    must(session, "BEGIN").await;
    let outcome = run(session, way).await;
    must(session, "ROLLBACK").await;
    match outcome {
        Outcome::Rows(_) => None,
        Outcome::Error(error) => Some((error.code, error.message)),
    }
}

/// The script by function, each with its paragraphs.
fn functions(script: &str) -> impl Iterator<Item = (&str, Vec<String>)> {
    script.split("\n-- ").skip(1).filter_map(|part| {
        let (function, ways) = part.split_once('\n')?;
        if function.contains(' ') {
            return None; // a comment
        }
        Some((
            function,
            ways.split("\n\n").map(str::trim).filter(|way| !way.is_empty()).map(str::to_owned).collect(),
        ))
    })
}

/// Every row of a table of errors in the reference, with the function it is about.
fn tables(pages: &[Page]) -> Vec<(String, Row)> {
    let mut tables = Vec::new();
    for page in pages.iter().filter(|page| page.path.starts_with("docs/reference")) {
        let mut shared = Vec::new();
        for (index, heading) in page.headings.iter().enumerate() {
            if index == 0 && page.path.ends_with(MANAGEMENT) {
                shared = rows(page, heading.line);
            } else if page.first_block(heading).is_some_and(|block| block.language.is_empty()) {
                let own = rows(page, heading.line);
                let theirs = if heading.text == "create_queue" { Vec::new() } else { shared.clone() };
                tables.extend(
                    own.into_iter().chain(theirs).map(|line| (heading.text.clone(), row(page, line))),
                );
            }
        }
    }
    tables
}

/// The lines of the table of errors under the heading of that line.
fn rows(page: &Page, heading: usize) -> Vec<usize> {
    let heading = page.headings.iter().find(|other| other.line == heading).expect("a heading of the page");
    let section = page.section(heading);
    let Some(start) = section.iter().position(|line| line.starts_with("| SQLSTATE |")) else {
        return Vec::new();
    };
    let rows = section[start..].iter().take_while(|line| line.starts_with('|')).count();
    (start + 2..start + rows).map(|row| heading.line + 1 + row).collect()
}

fn row(page: &Page, line: usize) -> Row {
    let place = format!("{}:{}", page.path.display(), line + 1);
    let cells: Vec<&str> = page.lines[line].split(" | ").collect();
    let code = cells[0].trim_start_matches("| ").to_owned();
    let text = cells[1].trim_matches(|c: char| c == '`' || c == ' ');
    Row { place, code, parts: text.split("...").map(str::to_owned).collect(), raised: false }
}

/// Makes what the script begins with: the extension, and three schemas of duroxide-pg.
pub async fn prepare(database: &Database) {
    for schema in ["shop", "held", "kept"] {
        crate::duroxide_pg_schema(database, schema).await;
    }
    let mut session = database.connect().await;
    server::create_extension(&mut session).await.expect("the extension can be made");
}
