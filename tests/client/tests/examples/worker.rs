//! A worker of examples/ as a process.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};

/// Longer than anything here takes on a machine that is busy with something else.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// What a worker is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Python,
    JavaScript,
    Go,
    Java,
    Rust,
}

impl Language {
    /// All that have a worker which runs until it is stopped.
    pub const ALL: [Language; 5] =
        [Language::Python, Language::JavaScript, Language::Go, Language::Java, Language::Rust];

    /// How examples/README.md says that it is run, with what `make test` has built and installed.
    fn command(self) -> Command {
        let example = |file: &str| examples().join(file);
        match self {
            Language::Python => {
                let mut command = Command::new(from_environment("DUROXIDE_QUEUE_TEST_PYTHON"));
                command.arg(example("python/worker.py"));
                command
            }
            Language::JavaScript => {
                // Node looks for modules beside a script; beside the folder that it is in, if it has the script as text.
                let script = std::fs::read_to_string(example("javascript/worker.mjs")).expect("the example");
                let mut command = Command::new("node");
                command.args(["--input-type=module", "-e", &script]);
                command.current_dir(from_environment("DUROXIDE_QUEUE_TEST_NODE_MODULES").join(".."));
                command
            }
            Language::Go => Command::new(built("go-worker")),
            Language::Java => {
                let mut command = Command::new("java");
                // Less to do before it is ready, which is most of what it costs here.
                command.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]);
                command.arg("-cp").arg(built("postgresql.jar")).arg(example("java/Worker.java"));
                command
            }
            Language::Rust => Command::new(built("rust/debug/worker")),
        }
    }
}

/// The folder of the examples.
pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn from_environment(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .unwrap_or_else(|| panic!("{variable} is not set; `make test` sets it"))
}

/// What tools/examples.sh has built.
fn built(name: &str) -> PathBuf {
    let file = from_environment("DUROXIDE_QUEUE_TEST_EXAMPLES").join(name);
    assert!(file.exists(), "{} is missing: tools/examples.sh makes it", file.display());
    file
}

/// How a worker is run.
#[derive(Clone, Copy)]
pub struct Pace {
    /// The length of its leases.
    pub lease_seconds: u32,
    /// How long its activity takes.
    pub work_ms: u32,
}

impl Pace {
    /// Done at once, under leases that do not end meanwhile.
    pub const BRISK: Pace = Pace { lease_seconds: 30, work_ms: 20 };
    /// An activity that does not end.
    pub const fn endless(lease_seconds: u32) -> Pace {
        Pace { lease_seconds, work_ms: 3_600_000 }
    }
}

/// A running worker. It is killed with the test.
#[derive(Debug)]
pub struct Worker {
    language: Language,
    process: Child,
    said: Arc<Mutex<Vec<String>>>,
}

impl Worker {
    /// Starts one on a queue and waits until it is ready.
    pub async fn start(language: Language, url: &str, queue: &str, pace: Pace) -> Worker {
        let mut process = language
            .command()
            // The server has no TLS, which Go's driver would insist on.
            .env("DATABASE_URL", format!("{url}?sslmode=disable"))
            .env("QUEUE", queue)
            .env("LEASE_SECONDS", pace.lease_seconds.to_string())
            .env("WORK_MS", pace.work_ms.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{language:?}: {error}: `make test` installs what it takes"));
        let said = Arc::new(Mutex::new(Vec::new()));
        listen(process.stdout.take().expect("a pipe"), &said);
        listen(process.stderr.take().expect("a pipe"), &said);
        let worker = Worker { language, process, said };
        worker.says("ready").await;
        worker
    }

    /// What it is written in.
    pub fn language(&self) -> Language {
        self.language
    }

    /// What it has written so far.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().expect("no reader panics").clone()
    }

    /// Waits until it has written a line that has `text` in it.
    pub async fn says(&self, text: &str) {
        let has_said = || self.said().iter().any(|line| line.contains(text));
        let waiting = async {
            // Those who listen have ended when there is nobody to listen to.
            while !has_said() && Arc::strong_count(&self.said) > 1 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(has_said(), "{:?} does not say {text:?}: {:#?}", self.language, self.said());
    }

    /// Asks it to stop (SIGTERM), which it does of its own will. Returns all that it has written.
    pub async fn stop(mut self) -> Vec<String> {
        let id = self.process.id().expect("it runs").to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().await.expect("kill runs");
        assert!(asked.success(), "{:?} is gone: {:#?}", self.language, self.said());
        let status = self.end().await;
        assert_eq!(status.code(), Some(0), "{:?} ends with {status}: {:#?}", self.language, self.said());
        self.says("stopped").await;
        self.said()
    }

    /// Kills it as a crash would (SIGKILL).
    pub async fn kill(mut self) {
        self.process.start_kill().expect("it runs");
        self.end().await;
    }

    async fn end(&mut self) -> ExitStatus {
        match tokio::time::timeout(PATIENCE, self.process.wait()).await {
            Ok(status) => status.expect("a status"),
            Err(_) => panic!("{:?} does not end: {:#?}", self.language, self.said()),
        }
    }
}

fn listen(stream: impl AsyncRead + Unpin + Send + 'static, said: &Arc<Mutex<Vec<String>>>) {
    let said = Arc::clone(said);
    tokio::spawn(async move {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            said.lock().expect("nobody panics with it").push(line);
        }
    });
}

/// Which attempts the workers that wrote this have begun, for the activity of an instance.
pub fn attempts(said: &[String], instance: &str) -> Vec<i32> {
    let begin = format!("{instance}: greet, attempt ");
    said.iter().filter_map(|line| line.strip_prefix(&begin)).map(|n| n.parse().expect("a number")).collect()
}
