//! The examples of a page, run in order by psql as a reader would run them.

use crate::markdown::{Page, root};
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::server;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a page says if its examples are to be run. A page with another kind of example does not say so.
pub const PROMISE: &str = "The examples on this page run in order in psql";
/// Set to `write` to have the shown results replaced by what came out, to be read before a commit.
pub const WRITE_VARIABLE: &str = "DUROXIDE_QUEUE_TEST_DOCS";

const MARK: &str = "-- end of example";

/// One example: a block of statements, and the block of text that shows what they print.
struct Example {
    statements: String,
    line: usize,
    shown: Option<Shown>,
}

struct Shown {
    text: String,
    line: usize,
}

/// Runs the examples of a page in the database; returns what is wrong with them.
pub async fn check(page: &Page, database: &Database) -> Vec<String> {
    let examples = examples(page);
    let printed = run(database, &examples).await;
    let mut complaints = Vec::new();
    if printed.len() != examples.len() {
        complaints.push(format!(
            "{}: {} examples, {} ran",
            page.path.display(),
            examples.len(),
            printed.len()
        ));
    }
    for (example, printed) in examples.iter().zip(&printed) {
        let place = format!("{}:{}", page.path.display(), example.line + 1);
        match &example.shown {
            Some(shown) if comparable(&shown.text) != comparable(printed) => complaints.push(format!(
                "{place}: what is shown differs\n--- shown\n{}\n--- printed\n{printed}",
                shown.text.trim_end()
            )),
            None if printed.contains("ERROR:") => complaints.push(format!("{place}: failed\n{printed}")),
            _ => {}
        }
    }
    if std::env::var(WRITE_VARIABLE).as_deref() == Ok("write") {
        write(page, &examples, &printed);
    }
    complaints
}

/// The roles that a page's examples make. Roles are the server's, so they outlive the database.
pub fn roles(page: &Page) -> Vec<String> {
    (page.blocks.iter().filter(|block| block.language == "sql"))
        .flat_map(|block| block.text.split("CREATE ROLE ").skip(1))
        .map(|rest| {
            rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned()
        })
        .collect()
}

fn examples(page: &Page) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut after_sql = false;
    for block in &page.blocks {
        if block.language == "sql" {
            examples.push(Example { statements: block.text.clone(), line: block.line, shown: None });
        } else if block.language == "text" && after_sql {
            let shown = Shown { text: block.text.clone(), line: block.line };
            examples.last_mut().expect("statements come before what they print").shown = Some(shown);
        }
        after_sql = block.language == "sql";
    }
    examples
}

/// What psql prints for each example, errors in their places.
async fn run(database: &Database, examples: &[Example]) -> Vec<String> {
    let mut session = database.connect().await;
    let bin = must(&mut session, "SELECT setting FROM pg_config WHERE name = 'BINDIR'").await;
    let psql = PathBuf::from(bin[0][0].clone().expect("a server knows its folder")).join("psql");

    let folder = std::env::temp_dir().join(format!("{}.d", database.name()));
    fs::create_dir(&folder).expect("a new folder");
    let script: String =
        examples.iter().map(|example| format!("{}\n\\echo '{MARK}'\n", example.statements)).collect();
    fs::write(folder.join("script"), script).expect("a new file");
    let printed = File::create(folder.join("printed")).expect("a new file");
    let mut command = Command::new(psql);
    command
        .args(["--no-psqlrc", "--quiet", "--dbname", &server::url_of(database.name())])
        .env("PGTZ", "UTC")
        .env("LC_ALL", "C.UTF-8")
        .stdin(File::open(folder.join("script")).expect("the file is there"))
        .stderr(Stdio::from(printed.try_clone().expect("one more handle")))
        .stdout(printed);
    // psql goes on after an error and tells by its status only how it ended.
    command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let printed = fs::read_to_string(folder.join("printed")).expect("psql prints UTF-8");
    fs::remove_dir_all(&folder).expect("our own folder");

    let mut printed: Vec<String> = printed.split(&format!("{MARK}\n")).map(tidy).collect();
    printed.pop(); // nothing comes after the last mark
    printed
}

/// Without blanks at the ends of lines, and without empty lines around.
fn tidy(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// As texts are compared: lock tokens, which are random, all alike.
fn comparable(text: &str) -> String {
    const TOKEN: usize = "lock_".len() + 36;
    let mut comparable = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("lock_") {
        let is_token = rest.get(start + 5..start + TOKEN).is_some_and(|uuid| {
            uuid.bytes().enumerate().all(|(place, byte)| match place {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            })
        });
        let end = if is_token { start + TOKEN } else { start + 5 };
        comparable.push_str(&rest[..start]);
        comparable.push_str(if is_token { "<token>" } else { "lock_" });
        rest = &rest[end..];
    }
    comparable.push_str(rest);
    tidy(&comparable)
}

/// Puts what was printed in the place of what is shown.
fn write(page: &Page, examples: &[Example], printed: &[String]) {
    let mut lines = page.lines.clone();
    for (example, printed) in examples.iter().zip(printed).rev() {
        let Some(shown) = &example.shown else { continue };
        if comparable(&shown.text) != comparable(printed) {
            let end = shown.line + 1 + shown.text.lines().count();
            lines.splice(shown.line + 1..end, printed.lines().map(str::to_owned));
        }
    }
    fs::write(root().join(&page.path), lines.join("\n") + "\n").expect("the page can be written");
}
