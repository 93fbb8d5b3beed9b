//! pgbouncer, in front of the server under test.

use crate::server;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long pgbouncer has to start: long, for machines under load.
const PATIENCE: Duration = Duration::from_secs(120);

/// A pgbouncer of the test's own. It ends with the test.
#[derive(Debug)]
pub struct Pooler {
    process: Child,
    folder: PathBuf,
    port: u16,
}

impl Pooler {
    /// Starts one with so many backends. `mode` is what a session keeps one for: `transaction` or `session`. Transactions
    /// that follow each other go to different backends (`server_round_robin`). Each backend begins with `greeting`, statements
    /// without a single quote.
    ///
    /// # Panics
    ///
    /// If pgbouncer is not installed or does not start.
    pub fn start(mode: &str, backends: usize, greeting: &str) -> Pooler {
        let (host, server_port) = (server::options().get_host().to_owned(), server::options().get_port());
        // Somebody may take it between our look and pgbouncer's start, which then fails.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
        let folder = std::env::temp_dir().join(format!("dq_pgbouncer_{}_{port}", std::process::id()));
        std::fs::create_dir(&folder).expect("a new folder");
        let ini = folder.join("pgbouncer.ini");
        let greeting =
            if greeting.is_empty() { String::new() } else { format!(" connect_query='{greeting}'") };
        let settings = format!(
            "[databases]\n* = host={host} port={server_port} user=postgres{greeting}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = {mode}\ndefault_pool_size = {backends}\nserver_round_robin = 1\nmax_client_conn = 300\n\
             ignore_startup_parameters = extra_float_digits\n{}",
            if knows_prepared_statements() { "max_prepared_statements = 100\n" } else { "" }
        );
        std::fs::write(&ini, settings).expect("a new file");
        let mut command = pgbouncer();
        // It refuses to run as root.
        if std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0) {
            command.args(["-u", "postgres"]);
        }
        let log = std::fs::File::create(folder.join("log")).expect("a new file");
        let process = command
            .arg(&ini)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("pgbouncer: {error}: `make test` installs it"));
        let mut pooler = Pooler { process, folder, port };
        pooler.wait_until_it_listens();
        pooler
    }

    fn wait_until_it_listens(&mut self) {
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = self.process.try_wait().expect("its status").is_some();
            if ended || begin.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(self.folder.join("log"));
                panic!("pgbouncer does not listen: {log:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The way to the server's database through it.
    pub fn url(&self) -> String {
        let database = server::options().get_database().expect("the URL names one").to_owned();
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Opens a session with it.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub async fn connect(&self) -> PgConnection {
        server::open(self.url().parse::<PgConnectOptions>().expect("a URL")).await
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// Debian has it where only root looks.
fn pgbouncer() -> Command {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin";
    let program =
        std::env::split_paths(&path).map(|folder| folder.join("pgbouncer")).find(|file| file.is_file());
    Command::new(program.expect("pgbouncer is not installed: `make test` does it"))
}

/// Since 1.21 it can follow a prepared statement from one backend to another.
///
/// # Panics
///
/// If it is not installed.
pub fn knows_prepared_statements() -> bool {
    let output = pgbouncer().arg("--version").output().expect("pgbouncer runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_whitespace().nth(1).expect("PgBouncer 1.x.y");
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next(), parts.next()) >= (Some(1), Some(21))
}
