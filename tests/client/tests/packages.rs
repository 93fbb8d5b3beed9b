//! What is shipped works where it is unpacked: the Debian package and the PGXN distribution, each in a folder that has
//! nothing else of this project.

#[path = "packages/debian.rs"]
mod debian;
#[path = "packages/pgxn.rs"]
mod pgxn;
#[path = "packages/tree.rs"]
mod tree;

use duroxide_queue_tests::outcome::{must, run};
use duroxide_queue_tests::own_server::Server;
use duroxide_queue_tests::programs::{command, must_run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Of the extension.
fn version() -> &'static str {
    let manifest = include_str!("../../../Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.expect("Cargo.toml has a version")
}

/// Starts the server of a tree and takes the extension for a turn.
async fn use_extension(pg_config: &Path) {
    let server = Server::start_of(&pg_config.to_string_lossy()).await;
    let mut session = server.connect().await;
    must(&mut session, "CREATE EXTENSION duroxide_queue").await;
    let installed = "SELECT extversion FROM pg_extension WHERE extname = 'duroxide_queue'";
    assert_eq!(run(&mut session, installed).await.value(), version());

    must(&mut session, "SELECT duroxide_queue.create_queue('app')").await;
    must(&mut session, "SELECT app.enqueue_orchestrator_work('i', '1', 'epoch')").await;
    let claim = "SELECT out_lock_token FROM app.fetch_orchestration_item(1000, 30000)";
    let token = run(&mut session, claim).await.value();
    let ack = format!("SELECT app.ack_orchestration_item('{token}', 2000, 1, '[]', '[]', '[]', '{{}}')");
    must(&mut session, &ack).await;
    let left = "SELECT count(*) FROM app.orchestrator_queue";
    assert_eq!(run(&mut session, left).await.value(), "0", "the turn has consumed the message");

    must(&mut session, "DROP EXTENSION duroxide_queue CASCADE; DROP SCHEMA app CASCADE").await;
    must(&mut session, "CREATE EXTENSION duroxide_queue VERSION '0.1.0'").await;
    must(&mut session, "ALTER EXTENSION duroxide_queue UPDATE").await;
    assert_eq!(
        run(&mut session, installed).await.value(),
        version(),
        "the steps from released versions are here"
    );
}

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn make(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("dq_{name}_{}", std::process::id()));
        std::fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// A script, with its arguments as $1 and on.
fn bash(script: &str, arguments: &[&Path]) -> String {
    must_run(command("bash").args(["-euo", "pipefail", "-c", script, "bash"]).args(arguments))
}

/// A program of this project, in its folder.
fn project(program: &str, arguments: &[&str]) -> Command {
    let mut command = command(program);
    command.current_dir(root()).args(arguments);
    command
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's folder")
}

/// The version of PostgreSQL that the packages here are for.
fn major() -> String {
    std::env::var("DUROXIDE_QUEUE_TEST_PG").unwrap_or_else(|_| {
        panic!(
            "DUROXIDE_QUEUE_TEST_PG is not set. It is the version of PostgreSQL, for example 17, of which this \
             test makes packages. `make test KINDS=package` sets it."
        )
    })
}
