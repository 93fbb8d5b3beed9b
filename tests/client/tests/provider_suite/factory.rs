//! A fresh queue for every provider that a validation asks for.

use duroxide::provider_validations::ProviderFactory;
use duroxide::providers::Provider;
use duroxide_pg::{MigrationPolicy, PostgresProvider};
use duroxide_queue_tests::queue::{Kind, Queue};
use sqlx::postgres::PgConnection;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Long enough for a fetch and an ack on a busy machine, short enough to wait for its end.
const LEASE: Duration = Duration::from_secs(5);

/// What the trait's documentation advises for a provider behind a network.
const SHORT_POLL: Duration = Duration::from_millis(500);

/// Text in the place of an event, which must cost its instance no more than its own progress.
const NO_JSON: &str = "{not JSON";

/// The same for the reference, whose fetch fails on text that is not JSON: there the validations,
/// which want the error in the item, could not say more than that.
const NO_EVENT: &str = r#"{"event": "of no known type"}"#;

/// Makes queues of one kind and opens the unmodified client on them.
pub struct Factory {
    kind: Kind,
    made: Mutex<Vec<(Queue, Arc<PostgresProvider>)>>,
}

impl Factory {
    pub fn new(kind: Kind) -> Factory {
        Factory { kind, made: Mutex::new(Vec::new()) }
    }

    /// Removes every queue that was made.
    pub async fn clean_up(self) {
        let made = self.made.into_inner().expect("no validation panicked here");
        for (queue, provider) in made {
            provider.pool().close().await;
            queue.remove().await;
        }
    }

    /// A session on the queue that was made last: the one that a validation talks about.
    async fn connect(&self) -> PgConnection {
        let schema = {
            let made = self.made.lock().expect("no validation panicked here");
            let (queue, _) = made.last().expect("a validation creates its provider first");
            queue.schema().to_owned()
        };
        duroxide_queue_tests::server::connect(Some(&schema)).await
    }
}

#[async_trait::async_trait]
impl ProviderFactory for Factory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        let queue = Queue::make(self.kind).await;
        let provider = queue.provider(MigrationPolicy::ApplyAll).await;
        self.made.lock().expect("no validation panicked here").push((queue, Arc::clone(&provider)));
        provider
    }

    fn lock_timeout(&self) -> Duration {
        LEASE
    }

    fn short_poll_threshold(&self) -> Duration {
        SHORT_POLL
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        let text = match self.kind {
            Kind::Created | Kind::Adopted => NO_JSON,
            Kind::Reference => NO_EVENT,
        };
        let rows = sqlx::query("UPDATE history SET event_data = $2 WHERE instance_id = $1")
            .bind(instance)
            .bind(text)
            .execute(&mut self.connect().await)
            .await
            .expect("history can be written")
            .rows_affected();
        assert!(rows > 0, "instance {instance} has no history to corrupt");
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        let count: i32 =
            sqlx::query_scalar("SELECT max(attempt_count) FROM orchestrator_queue WHERE instance_id = $1")
                .bind(instance)
                .fetch_one(&mut self.connect().await)
                .await
                .expect("the instance has messages");
        u32::try_from(count).expect("attempts are never negative")
    }
}
