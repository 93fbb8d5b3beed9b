//! Whether what happened is what should have happened.

use crate::Failure;
use crate::stage::Stage;
use crate::terminal::say;
use crate::watch::{Change, Note, Subject};
use crate::worker::LEASE;
use duroxide::{Event, EventKind};
use duroxide_queue_tests::workflow::CHARGE;
use sqlx::postgres::PgConnection;
use std::collections::BTreeSet;
use std::time::Duration;

/// How much later than it could a killed runtime's work may be taken over: a few polls.
const TAKEOVER: Duration = Duration::from_secs(5);

/// A list of checks, printed as they are made.
#[derive(Default)]
pub struct Checks {
    failed: bool,
}

impl Checks {
    /// Notes one.
    pub fn check(&mut self, right: bool, what: &str) {
        say(&format!("{}  {what}", if right { "ok   " } else { "WRONG" }));
        self.failed |= !right;
    }

    /// Whether all came out right.
    pub fn all_right(&self) -> bool {
        !self.failed
    }

    /// What must hold for all leases, and for the one of the runtime that was killed.
    pub fn leases(&mut self, stage: &Stage) {
        let claims: Vec<&Note> = stage
            .notes
            .iter()
            .filter(|note| note.change() == Change::Claimed && note.subject() != Subject::Message)
            .collect();

        let tokens: BTreeSet<&str> = claims.iter().map(|note| &*note.lock_token).collect();
        self.check(
            tokens.len() == claims.len(),
            &format!("{} claims, each under a token of its own", claims.len()),
        );

        let left = claims.iter().map(|note| note.lease_ends_ms() - note.at_ms);
        let shortest = left.min().unwrap_or_default();
        let full = millis(LEASE);
        self.check(
            shortest > full / 2,
            &format!("no lease was handed out spent: the shortest had {shortest} of {full} ms left"),
        );

        let charges: Vec<&Note> = claims
            .into_iter()
            .filter(|note| note.subject() == Subject::Activity && note.activity() == CHARGE)
            .collect();
        let tries: Vec<(&str, i32)> =
            charges.iter().map(|note| (note.runtime.as_str(), note.attempt())).collect();
        self.check(
            tries == [("A", 1), ("B", 2)],
            "the interrupted activity was claimed twice: by A as attempt 1, by B as attempt 2",
        );
        if let [first, second] = charges[..] {
            let late = second.at_ms - first.lease_ends_ms();
            self.check(
                (0..millis(TAKEOVER)).contains(&late),
                &format!("B got it {late} ms after the lease of A had run out, not earlier"),
            );
        }
    }

    /// What must hold for the history of the order's first execution.
    pub fn history(&mut self, history: &[Event]) {
        let scheduled = history
            .iter()
            .find(|event| matches!(&event.kind, EventKind::ActivityScheduled { name, .. } if name == CHARGE));
        let completed = history.iter().filter(|event| {
            matches!(event.kind, EventKind::ActivityCompleted { .. })
                && event.source_event_id() == scheduled.map(Event::event_id)
        });
        self.check(completed.count() == 1, "the history has one completion of that activity");
    }

    /// What must hold for the queue when all is done.
    pub async fn queue(&mut self, session: &mut PgConnection) -> Result<(), Failure> {
        let left: (i64, i64, i64) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM demo.orchestrator_queue), \
                    (SELECT count(*) FROM demo.worker_queue), \
                    (SELECT count(*) FROM demo.instance_locks)",
        )
        .fetch_one(&mut *session)
        .await?;
        self.check(left == (0, 0, 0), "no message, no work item and no lease is left over");
        let intact: Option<bool> =
            sqlx::query_scalar("SELECT intact FROM duroxide_queue.queues WHERE queue = 'demo'")
                .fetch_optional(session)
                .await?;
        self.check(intact == Some(true), "all 32 functions of the queue are the extension's");
        Ok(())
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
