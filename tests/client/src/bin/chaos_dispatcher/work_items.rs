//! The half of a dispatcher that runs work items.

use crate::journal::Entry;
use crate::payload::Payload;
use crate::session::Answer;
use crate::{Dispatcher, End};
use std::time::{Duration, Instant};

/// How long a worker keeps a session beyond its last item.
const SESSION_LEASE_MS: i64 = 500;

/// Claims and ends work items until the process is killed.
pub async fn dispatch(mut dispatcher: Dispatcher) {
    loop {
        match dispatcher.claim_item().await {
            Some(claimed) => dispatcher.run_item(&claimed).await,
            None => dispatcher.pause(2, 25).await,
        }
        if dispatcher.random.percent(3) {
            dispatcher.tend_sessions().await;
        }
    }
}

/// A claimed work item.
struct Claimed {
    item: Payload,
    token: String,
    attempt: i64,
    lease: Duration,
    answered: Instant,
}

impl Dispatcher {
    async fn claim_item(&mut self) -> Option<Claimed> {
        let given_up = self.is_wild && self.random.percent(2);
        if given_up && !self.session.begin_without_patience().await {
            return None;
        }
        let lease_ms = self.lease_ms();
        let now_ms = self.now_ms();
        let name = self.name.clone();
        let row: sqlx::Result<Option<(String, String, i32)>> = sqlx::query_as(
            "SELECT out_work_item, out_lock_token, out_attempt_count \
             FROM fetch_work_item($1, $2, $3, $4, NULL, 'any')",
        )
        .bind(now_ms)
        .bind(lease_ms)
        .bind(name)
        .bind(SESSION_LEASE_MS)
        .fetch_optional(self.session.connection().await)
        .await;
        let row = match self.session.answer(row) {
            Answer::Done(row) => row,
            Answer::Refused { code, message } => {
                self.violation(format!("fetch_work_item failed with {code}: {message}"));
                None
            }
            Answer::Lost => {
                self.journal.note(&Entry::FetchInDoubt);
                None
            }
        };
        if given_up {
            self.session.cut();
            return None;
        }
        let (text, token, attempt) = row?;
        let Some(item) = Payload::parse(&text) else {
            self.violation(format!("a work item that nobody scheduled: {text}"));
            return None;
        };
        let attempt = i64::from(attempt);
        self.journal.note(&Entry::ItemClaim { item: item.uid.clone(), attempt });
        if attempt < 1 {
            self.violation(format!("{} at attempt {attempt}", item.uid));
        }
        Some(Claimed {
            item,
            token,
            attempt,
            lease: Duration::from_millis(lease_ms.unsigned_abs()),
            answered: Instant::now(),
        })
    }

    async fn run_item(&mut self, claimed: &Claimed) {
        match self.next_end() {
            End::Ack => {
                self.ack_item(claimed).await;
            }
            End::AckTwice => {
                if self.ack_item(claimed).await && self.ack_item(claimed).await {
                    self.violation(format!("{} was acknowledged twice", claimed.token));
                }
            }
            End::AckInTransaction => {
                if self.ack_item_in_transaction(claimed).await {
                    self.pause(0, 60).await;
                    let answer = self.session.commit().await;
                    if self.is_done("COMMIT", answer) {
                        self.note_item_ack(claimed);
                    }
                }
            }
            End::DieInTransaction => {
                self.ack_item_in_transaction(claimed).await;
                std::process::exit(crate::DIED);
            }
            End::CommitLate | End::AckLate => {
                tokio::time::sleep_until(
                    (claimed.answered + claimed.lease + Duration::from_millis(2)).into(),
                )
                .await;
                if self.ack_item(claimed).await {
                    self.violation(format!("{} was acknowledged after its lease", claimed.token));
                }
            }
            End::Renew => {
                if self.renew_item(claimed).await {
                    self.pause(0, 900).await;
                    self.ack_item(claimed).await;
                }
            }
            End::Abandon => self.abandon_item(claimed).await,
            End::Forget => {}
        }
    }

    async fn ack_item(&mut self, claimed: &Claimed) -> bool {
        let done = self.send_item_ack(claimed).await;
        if done {
            self.note_item_ack(claimed);
        }
        done
    }

    async fn ack_item_in_transaction(&mut self, claimed: &Claimed) -> bool {
        if !self.session.begin().await {
            return false;
        }
        let done = self.send_item_ack(claimed).await;
        if !done {
            self.session.roll_back().await;
        }
        done
    }

    fn note_item_ack(&self, claimed: &Claimed) {
        self.journal.note(&Entry::ItemAck { item: claimed.item.uid.clone(), attempt: claimed.attempt });
    }

    async fn send_item_ack(&mut self, claimed: &Claimed) -> bool {
        let now_ms = self.now_ms();
        let result = sqlx::query("SELECT ack_worker($1, $2, $3, $4)")
            .bind(&claimed.token)
            .bind(&claimed.item.instance)
            .bind(claimed.item.completion().json().to_string())
            .bind(now_ms)
            .execute(self.session.connection().await)
            .await;
        let answer = self.session.answer(result);
        self.is_done("ack_worker", answer)
    }

    async fn renew_item(&mut self, claimed: &Claimed) -> bool {
        let now_ms = self.now_ms();
        let result = sqlx::query("SELECT renew_work_item_lock($1, $2, 1)")
            .bind(&claimed.token)
            .bind(now_ms)
            .execute(self.session.connection().await)
            .await;
        let answer = self.session.answer(result);
        self.is_done("renew_work_item_lock", answer)
    }

    async fn abandon_item(&mut self, claimed: &Claimed) {
        let delay_ms = self.random.percent(60).then(|| self.random.between(0, 300));
        let uncounted = self.random.percent(40);
        if uncounted {
            self.journal.note(&Entry::Uncounted { names: vec![claimed.item.uid.clone()] });
        }
        let now_ms = self.now_ms();
        let result = sqlx::query("SELECT abandon_work_item($1, $2, $3, $4)")
            .bind(&claimed.token)
            .bind(now_ms)
            .bind(delay_ms)
            .bind(uncounted)
            .execute(self.session.connection().await)
            .await;
        let answer = self.session.answer(result);
        self.is_done("abandon_work_item", answer);
    }

    /// The heartbeat of the worker's sessions, and the sweeping away of other workers' old ones.
    async fn tend_sessions(&mut self) {
        let now_ms = self.now_ms();
        let name = self.name.clone();
        let result =
            sqlx::query("SELECT renew_session_lock(ARRAY[$1], $2, $3, 2000), cleanup_orphaned_sessions($2)")
                .bind(name)
                .bind(now_ms)
                .bind(SESSION_LEASE_MS)
                .execute(self.session.connection().await)
                .await;
        let answer = self.session.answer(result);
        self.is_done("renew_session_lock", answer);
    }
}
