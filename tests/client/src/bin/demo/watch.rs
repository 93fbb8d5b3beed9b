//! What the server notes about leases, as the demo reads it.

use crate::Failure;
use duroxide_queue_tests::server;
use sqlx::FromRow;
use sqlx::postgres::PgConnection;

/// One row of `demo_watch.notes`.
#[derive(Clone, Debug, FromRow)]
pub struct Note {
    id: i64,
    /// When, by the clock of this process.
    pub at_ms: i64,
    /// Which runtime did it.
    pub runtime: String,
    source: String,
    event: String,
    pub lock_token: String,
    locked_until: Option<i64>,
    instance_id: Option<String>,
    work_item: Option<String>,
    attempt_count: Option<i32>,
}

/// What a lease is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Instance,
    /// A message that came with its instance.
    Message,
    Activity,
}

/// What happened to a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Claimed,
    Renewed,
    Released,
}

impl Note {
    pub fn subject(&self) -> Subject {
        match self.source.as_str() {
            "instance_locks" => Subject::Instance,
            "orchestrator_queue" => Subject::Message,
            _ => Subject::Activity,
        }
    }

    pub fn change(&self) -> Change {
        match self.event.as_str() {
            "claimed" => Change::Claimed,
            "renewed" => Change::Renewed,
            _ => Change::Released,
        }
    }

    /// When the lease runs out.
    pub fn lease_ends_ms(&self) -> i64 {
        self.locked_until.unwrap_or_default()
    }

    pub fn attempt(&self) -> i32 {
        self.attempt_count.unwrap_or_default()
    }

    pub fn instance(&self) -> &str {
        self.instance_id.as_deref().unwrap_or("?")
    }

    /// What the message or work item says it is, for example `TimerFired`.
    pub fn kind(&self) -> String {
        let item = self.item();
        let kind = item.as_object().and_then(|fields| fields.keys().next());
        kind.map_or_else(|| "?".to_owned(), Clone::clone)
    }

    /// The activity that the work item asks for.
    pub fn activity(&self) -> String {
        let item = self.item();
        let name = item["ActivityExecute"]["name"].as_str();
        name.unwrap_or("?").to_owned()
    }

    fn item(&self) -> serde_json::Value {
        let text = self.work_item.as_deref().unwrap_or("null");
        serde_json::from_str(text).unwrap_or_default()
    }
}

/// Reads the notes, each once.
pub struct Watch {
    session: PgConnection,
    /// How far the server's clock is ahead of this machine's, where they are two.
    ahead_ms: i64,
}

impl Watch {
    /// Lets the server note what happens to the leases of the queue.
    pub async fn begin(mut session: PgConnection) -> Result<Watch, Failure> {
        sqlx::raw_sql(include_str!("watch.sql")).execute(&mut session).await?;
        let server_ms: i64 =
            sqlx::query_scalar("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
                .fetch_one(&mut session)
                .await?;
        Ok(Watch { session, ahead_ms: server_ms - server::now_ms() })
    }

    /// Takes away what `begin` has added to the server.
    pub async fn end(mut self) -> Result<(), Failure> {
        sqlx::raw_sql("DROP SCHEMA demo_watch CASCADE").execute(&mut self.session).await?;
        Ok(())
    }

    /// What has happened since the last time.
    pub async fn news(&mut self) -> Result<Vec<Note>, Failure> {
        // Taken away rather than read from a number on: notes commit in another order than they
        // are numbered.
        let mut notes: Vec<Note> =
            sqlx::query_as("DELETE FROM demo_watch.notes RETURNING *").fetch_all(&mut self.session).await?;
        notes.sort_by_key(|note| note.id);
        for note in &mut notes {
            note.at_ms -= self.ahead_ms;
        }
        Ok(notes)
    }
}
