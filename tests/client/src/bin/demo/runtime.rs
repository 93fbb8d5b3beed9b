//! A runtime process, seen from the demo that starts it.

use crate::Failure;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::UnboundedSender;

/// Something that a runtime said.
#[derive(Clone, Debug)]
pub struct Line {
    /// Which one.
    pub runtime: String,
    pub text: String,
}

/// A running `demo worker`.
pub struct Runtime {
    child: Child,
    pub name: &'static str,
    pub pid: u32,
}

impl Runtime {
    /// Starts one. What it says goes to `lines`.
    pub fn start(name: &'static str, lines: UnboundedSender<Line>) -> Result<Runtime, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["worker", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let pid = child.id().ok_or("the runtime ended at once")?;
        let stdout = child.stdout.take().ok_or("the runtime has no output")?;
        tokio::spawn(async move {
            let mut output = BufReader::new(stdout).lines();
            while let Ok(Some(text)) = output.next_line().await {
                let runtime = name.to_owned();
                if lines.send(Line { runtime, text }).is_err() {
                    break;
                }
            }
        });
        Ok(Runtime { child, name, pid })
    }

    /// Ends it without warning (SIGKILL): it can neither finish nor give anything back.
    pub async fn kill(mut self) -> Result<ExitStatus, Failure> {
        self.child.start_kill()?;
        Ok(self.child.wait().await?)
    }

    /// Lets it finish what it does.
    pub async fn stop(mut self) -> Result<ExitStatus, Failure> {
        drop(self.child.stdin.take());
        let end = tokio::time::timeout(Duration::from_secs(10), self.child.wait());
        end.await.map_err(|_| format!("runtime {} does not stop", self.name))?.map_err(Failure::from)
    }
}
