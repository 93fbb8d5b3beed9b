//! A server that may be crashed, configured and copied: one of the test's own, gone with the test.

use crate::{outcome, server};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::process::Command;

/// Runs a script with the functions of tools/env.sh, in the folder of the server. 9 is the lock of the
/// test runner, which a server that outlives it must not hold.
const IN_FOLDER: &str = r#"set -eu; . "$1/env.sh"; cd "$2"; exec 9>&- </dev/null >>pg_ctl.log 2>&1; "#;
const STOP_IMMEDIATELY: &str = r#"as_server_user "$(cat bin)/pg_ctl" -D data -m immediate -w -s stop"#;
const STOP: &str = r#"as_server_user "$(cat bin)/pg_ctl" -D data -m fast -w -s stop"#;
const START_AGAIN: &str =
    r#"as_server_user "$(cat bin)/pg_ctl" -D data -o "-p $(cat port)" -l "$2/log" -w -s start"#;

/// pg_upgrade wants both to have checksums or neither; initdb makes them since version 18.
const ENABLE_CHECKSUMS: &str = r#"
    "$(cat bin)/pg_controldata" data | grep -q '^Data page checksum version: *[1-9]' ||
    as_server_user "$(cat bin)/pg_checksums" --enable --no-sync -D data"#;

/// Stops the server and removes its folder when the test is over, in whatever way it ends: then this
/// process reads the end of its input. `keep` leaves the folder.
const WATCH: &str = r#"trap '' INT TERM; last=; read -r last || :
"$1/server.sh" stop "$2" >/dev/null 2>&1
[ "$last" = keep ] || rm -rf "$2""#;

/// The server.
#[derive(Debug)]
pub struct Server {
    tools: PathBuf,
    folder: PathBuf,
    url: String,
    watch: Child,
}

impl Server {
    /// Starts one of the version that `DUROXIDE_QUEUE_TEST_PG` names.
    ///
    /// # Panics
    ///
    /// If it is not set, or the server does not start.
    pub async fn start() -> Server {
        let major = std::env::var("DUROXIDE_QUEUE_TEST_PG").unwrap_or_else(|_| {
            panic!(
                "DUROXIDE_QUEUE_TEST_PG is not set. It is the version of PostgreSQL, for example 17, of \
                 which this test starts a server of its own. `make test` and `make chaos` set it."
            )
        });
        let server = Server::launch("start", &major).await;

        // A process that is killed with SIGKILL can leave half a page, so pages are written whole;
        // and the log gives each SQLSTATE, for the audit of it.
        server.set(&["full_page_writes = on", "log_line_prefix = '%m [%p] %e '"]).await;
        server
    }

    /// Starts one with the programs of that version, or of that pg_config.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub async fn start_of(server: &str) -> Server {
        Server::launch("start", server).await
    }

    /// Starts another that streams from this one.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub async fn standby(&self) -> Server {
        Server::launch("standby", &self.folder).await
    }

    /// Starts a server by that command of tools/server.sh.
    async fn launch(command: &str, what: impl AsRef<OsStr>) -> Server {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools");
        let script = tools.join("server.sh");
        assert!(
            script.is_file(),
            "{} is missing: this test stops and starts a server of its own, with the project's tools",
            script.display()
        );
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("dq_{}_{}_{number}", std::process::id(), server::now_ms());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let watch = std::process::Command::new("bash")
            .args(["-c", WATCH, "watch"])
            .args([&tools, &folder])
            .stdin(Stdio::piped())
            .spawn()
            .expect("bash runs");

        let started = Command::new(&script).arg(command).arg(what).arg(&folder).output().await;
        let started = started.unwrap_or_else(|error| panic!("{}: {error}", script.display()));
        let said = String::from_utf8_lossy(&started.stderr);
        assert!(started.status.success(), "tools/server.sh {command} failed: {said}");
        let url = String::from_utf8(started.stdout).expect("a URL").trim().to_owned();
        Server { tools, folder, url, watch }
    }

    /// Changes settings that need no restart.
    pub async fn set(&self, settings: &[&str]) {
        let mut session = self.connect().await;
        for setting in settings {
            outcome::must(&mut session, &format!("ALTER SYSTEM SET {setting}")).await;
        }
        outcome::must(&mut session, "SELECT pg_reload_conf()").await;
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where its files are, and those of the test.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How to connect.
    ///
    /// # Panics
    ///
    /// Never: its URL is one.
    pub fn options(&self) -> PgConnectOptions {
        self.url.parse().expect("tools/server.sh prints a URL")
    }

    /// Opens a session.
    pub async fn connect(&self) -> PgConnection {
        server::open(self.options()).await
    }

    /// Stops it in immediate mode: what is not in the log of the database is lost.
    pub async fn stop_immediately(&self) {
        self.run(STOP_IMMEDIATELY).await;
    }

    /// Stops it as a service is stopped.
    pub async fn stop(&self) {
        self.run(STOP).await;
    }

    /// Gives this server, stopped and empty, everything that an older one has, stopped too: what pg_upgrade
    /// says.
    ///
    /// # Panics
    ///
    /// If pg_upgrade fails, or with `--check` finds anything.
    pub async fn upgrade_from(&self, old: &Server, options: &[&str]) -> String {
        for server in [old, self] {
            server.run(ENABLE_CHECKSUMS).await;
        }
        let script = r#"set -eu; . "$1/env.sh"; cd "$2"; exec 9>&- </dev/null
            new=$2 old=$3; shift 3
            as_server_user "$(cat bin)/pg_upgrade" -b "$(cat "$old/bin")" -B "$(cat bin)" -d "$old/data" -D "$new/data" \
              -U postgres -s "$new" --no-sync "$@" 2>&1"#;
        let output = Command::new("bash")
            .args(["-c", script, "upgrade"])
            .args([&self.tools, &self.folder, &old.folder])
            .args(options)
            .output()
            .await
            .expect("bash runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "pg_upgrade {options:?} failed: {said}");
        said
    }

    /// Starts it after either; returns when it has recovered.
    pub async fn start_again(&self) {
        self.run(START_AGAIN).await;
    }

    /// Kills one of its backends, and with it all others: the postmaster takes the shared memory for
    /// corrupt and recovers. False if there is no such backend any more.
    ///
    /// # Panics
    ///
    /// If there is no bash.
    pub async fn kill_backend(&self, pid: i32) -> bool {
        let postmaster = std::fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap_or_default();
        let postmaster = postmaster.lines().next().unwrap_or_default();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap_or_default();
        if postmaster.is_empty() || parent.trim() != postmaster {
            return false;
        }
        let killed =
            Command::new("bash").args(["-c", "kill -KILL \"$1\"", "kill", &pid.to_string()]).status();
        killed.await.expect("bash runs").success()
    }

    async fn run(&self, script: &str) {
        let began = Instant::now();
        let status = Command::new("bash")
            .args(["-c", &format!("{IN_FOLDER}{script}"), "server"])
            .args([&self.tools, &self.folder])
            .status()
            .await
            .expect("bash runs");
        assert!(status.success(), "{script} failed, see {}", self.folder.join("pg_ctl.log").display());
        assert!(began.elapsed() < Duration::from_secs(60), "{script} took {:?}", began.elapsed());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(input) = &mut self.watch.stdin
        {
            // If it cannot be written, the folder is gone, and that is all.
            let _ = input.write_all(b"keep\n");
        }
        drop(self.watch.stdin.take());
        let _ = self.watch.wait();
    }
}
