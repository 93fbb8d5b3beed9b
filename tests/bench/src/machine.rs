//! Where and on what a run was made.

use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::server;
use std::process::Command;

/// Settings that decide what the figures are about.
const SETTINGS: [&str; 8] = [
    "shared_buffers",
    "fsync",
    "full_page_writes",
    "max_wal_size",
    "checkpoint_timeout",
    "autovacuum",
    "jit",
    "wal_level",
];

/// Where and on what.
#[derive(Debug)]
pub struct Machine {
    /// The day, in UTC.
    pub date: String,
    /// The commit that was measured, with a plus if files differed from it.
    pub commit: String,
    /// The version of the server.
    pub server: String,
    /// Its major version.
    pub major: String,
    /// The server's settings.
    pub settings: String,
    /// Cores, memory and kernel.
    pub hardware: String,
}

impl Machine {
    /// Looks around.
    pub async fn look() -> Machine {
        let mut session = server::connect(None).await;
        let mut show = async |name: &str| -> String {
            must(&mut session, &format!("SHOW {name}")).await.remove(0).remove(0).expect("a setting")
        };
        let server = show("server_version").await;
        let mut settings = Vec::new();
        for name in SETTINGS {
            settings.push(format!("`{name} = {}`", show(name).await));
        }
        let changed = output(
            "git",
            &["status", "--porcelain", "--untracked-files=no", "--", "src", "sql", "tests/bench"],
        );
        let commit = output("git", &["rev-parse", "--short", "HEAD"]);
        Machine {
            date: output("date", &["-u", "+%Y-%m-%d"]),
            commit: if changed.is_empty() { commit } else { format!("{commit}+") },
            major: server.split(['.', ' ']).next().unwrap_or_default().to_owned(),
            server,
            settings: settings.join(", "),
            hardware: hardware(),
        }
    }
}

fn hardware() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let read = |file: &str, label: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let value = text.lines().find_map(|line| line.strip_prefix(label)?.split_once(':'));
        value.map(|(_, value)| value.trim().to_owned())
    };
    let memory = read("/proc/meminfo", "MemTotal")
        .and_then(|size| size.split(' ').next()?.parse::<f64>().ok())
        .map_or_else(|| "unknown".to_owned(), |kib| format!("{:.0} GiB", kib / 1024.0 / 1024.0));
    let processor = read("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned());
    format!("{cores} cores ({processor}), {memory} of memory, {}", output("uname", &["-sr"]))
}

/// What a program prints, empty if it cannot be had.
fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
