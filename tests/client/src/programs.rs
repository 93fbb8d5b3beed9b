//! PostgreSQL's own programs, of the release that the server under test is of; and other programs.

use crate::database::Database;
use crate::outcome::run;
use sqlx::postgres::PgConnection;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of programs.
#[derive(Clone, Debug)]
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Those beside the program that serves a session. The server is asked, so that they are never another release's.
    ///
    /// # Panics
    ///
    /// If it does not run on this machine.
    pub async fn of(session: &mut PgConnection) -> Programs {
        let folder = run(session, "SELECT setting FROM pg_config() WHERE name = 'BINDIR'").await.value();
        let folder = PathBuf::from(folder);
        assert!(folder.is_dir(), "{} is not here: this test needs the server's programs", folder.display());
        Programs { folder }
    }

    /// One of them, on that database, to be given arguments.
    pub fn on(&self, database: &Database, name: &str) -> Command {
        let url = database.url();
        // What follows is the driver's, and libpq refuses it.
        let url = url.split('?').next().unwrap_or_default();
        let mut command = command(self.folder.join(name));
        command.arg("--dbname").arg(url);
        command
    }

    /// psql with a script, which stops at the first error.
    pub fn psql(&self, database: &Database, script: &Path) -> Command {
        let mut psql = self.on(database, "psql");
        psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null", "--file"])
            .arg(script);
        psql
    }
}

/// A program, in an environment without what cargo sets for a test: a build inside the test would take that for its own.
pub fn command(program: impl Into<PathBuf>) -> Command {
    let mut command = Command::new(program.into());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let of_cargo = text.starts_with("CARGO_") && text != "CARGO_HOME" && !text.starts_with("CARGO_PGRX_");
        let of_a_server = text.starts_with("PG") && !text.starts_with("PGRX_");
        if of_cargo || of_a_server || text.starts_with("NEXTEST") || text == "LD_LIBRARY_PATH" {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a program that must succeed; gives what it has written.
///
/// # Panics
///
/// With what it has said, if it fails.
pub fn must_run(command: &mut Command) -> String {
    checked(command, |output| output.status.success())
}

/// The same for a program that must have nothing to complain of either.
///
/// # Panics
///
/// If it fails, or writes to its standard error.
pub fn must_run_silently(command: &mut Command) -> String {
    checked(command, |output| output.status.success() && output.stderr.is_empty())
}

/// Runs a program that must fail; gives what it has said.
///
/// # Panics
///
/// If it succeeds.
pub fn must_run_in_vain(command: &mut Command) -> String {
    checked(command, |output| !output.status.success())
}

fn checked(command: &mut Command, is_right: fn(&Output) -> bool) -> String {
    let name = format!("{:?} {:?}", command.get_program(), command.get_args().collect::<Vec<_>>());
    let output = command.output().unwrap_or_else(|error| panic!("{name}: {error}"));
    let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(is_right(&output), "{name}: {}\n{}{}", output.status, said[0], said[1]);
    said.concat()
}
