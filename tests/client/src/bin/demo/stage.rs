//! Shows what the runtimes do while the demo waits for something, and remembers it.

use crate::Failure;
use crate::runtime::Line;
use crate::terminal::{say, short};
use crate::watch::{Change, Note, Subject, Watch};
use duroxide_queue_tests::server::now_ms;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// How long the demo waits for anything before it gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where it all happens.
pub struct Stage {
    watch: Watch,
    start_ms: i64,
    lines: UnboundedReceiver<Line>,
    speaker: UnboundedSender<Line>,
    /// Everything that the runtimes have said.
    pub said: Vec<Line>,
    /// Everything that has happened to leases.
    pub notes: Vec<Note>,
}

impl Stage {
    pub fn new(watch: Watch) -> Stage {
        let (speaker, lines) = mpsc::unbounded_channel();
        Stage { watch, start_ms: now_ms(), lines, speaker, said: Vec::new(), notes: Vec::new() }
    }

    /// Takes away what it took to watch.
    pub async fn clear(self) -> Result<(), Failure> {
        self.watch.end().await
    }

    /// Where a runtime is to speak.
    pub fn speaker(&self) -> UnboundedSender<Line> {
        self.speaker.clone()
    }

    /// Shows what happens until `done`. `what` names it, should it never be.
    pub async fn until(
        &mut self,
        what: &str,
        mut done: impl AsyncFnMut(&Stage) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let start = Instant::now();
        loop {
            self.show().await?;
            if done(self).await? {
                return self.show().await;
            }
            if start.elapsed() > PATIENCE {
                return Err(format!("waited {PATIENCE:?} in vain until {what}").into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Shows what happens for so long.
    pub async fn wait(&mut self, duration: Duration) -> Result<(), Failure> {
        let start = Instant::now();
        self.until("time passes", async |_: &Stage| Ok(start.elapsed() >= duration)).await
    }

    /// Shows what has happened since the last time.
    async fn show(&mut self) -> Result<(), Failure> {
        while let Ok(line) = self.lines.try_recv() {
            // What a runtime runs it has claimed before, so that comes first.
            self.show_notes().await?;
            self.tell(now_ms(), &line.runtime, &line.text);
            self.said.push(line);
        }
        self.show_notes().await
    }

    async fn show_notes(&mut self) -> Result<(), Failure> {
        let news = self.watch.news().await?;
        for note in &news {
            if let Some(text) = self.describe(note, &news) {
                self.tell(note.at_ms, &note.runtime, &text);
            }
        }
        self.notes.extend(news);
        Ok(())
    }

    fn tell(&self, at_ms: i64, runtime: &str, text: &str) {
        say(&format!("{:>7} s  {runtime}  {text}", self.seconds(at_ms)));
    }

    /// A moment, in seconds since the demo began.
    pub fn seconds(&self, at_ms: i64) -> String {
        seconds(at_ms - self.start_ms)
    }

    /// What there is to say about a note; its messages are told with their instance.
    fn describe(&self, note: &Note, news: &[Note]) -> Option<String> {
        let what = match note.subject() {
            Subject::Message => return None,
            Subject::Instance => format!("instance {}", note.instance()),
            Subject::Activity => format!("activity {}", note.activity()),
        };
        let token = short(&note.lock_token);
        let until = self.seconds(note.lease_ends_ms());
        Some(match (note.change(), note.subject()) {
            (Change::Claimed, Subject::Activity) => {
                format!("claims {what}, attempt {}: {token} until {until} s", note.attempt())
            }
            (Change::Claimed, _) => {
                format!("claims {what} with {}: {token} until {until} s", messages(note, news))
            }
            (Change::Renewed, _) => format!("renews {what}: {token} until {until} s"),
            (Change::Released, _) => match self.claim_of(&note.lock_token, news) {
                Some(claim) => {
                    format!("acks {what}: {token} ends after {} s", seconds(note.at_ms - claim.at_ms))
                }
                None => format!("ends {what}: {token}"),
            },
        })
    }

    fn claim_of<'a>(&'a self, token: &str, news: &'a [Note]) -> Option<&'a Note> {
        self.notes.iter().chain(news).find(|note| {
            note.change() == Change::Claimed && note.subject() != Subject::Message && note.lock_token == token
        })
    }
}

/// The messages that came with an instance.
fn messages(claim: &Note, news: &[Note]) -> String {
    let kinds: Vec<String> = news
        .iter()
        .filter(|note| {
            note.subject() == Subject::Message
                && note.change() == Change::Claimed
                && note.lock_token == claim.lock_token
        })
        .map(Note::kind)
        .collect();
    kinds.join(", ")
}

/// Milliseconds as seconds with three digits.
pub fn seconds(ms: i64) -> String {
    format!("{}.{:03}", ms / 1000, (ms % 1000).abs())
}
