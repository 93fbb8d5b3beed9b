//! A queue under a name of its own, in each of the ways it can come to be.

use crate::server;
use duroxide_pg::{MigrationPolicy, PostgresProvider, ProviderConfig};
use sqlx::postgres::PgConnection;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How a queue came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Made by `duroxide_queue.create_queue`.
    Created,
    /// Made by duroxide-pg, then taken over by `duroxide_queue.adopt_queue`.
    Adopted,
    /// Made by duroxide-pg and left with its own PL/pgSQL procedures: what ours are held against.
    Reference,
}

impl Kind {
    /// The kinds whose functions are this project's.
    pub const OURS: [Kind; 2] = [Kind::Created, Kind::Adopted];
    /// All kinds.
    pub const ALL: [Kind; 3] = [Kind::Created, Kind::Adopted, Kind::Reference];

    /// The name of the kind in test names and settings.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Created => "created",
            Kind::Adopted => "adopted",
            Kind::Reference => "reference",
        }
    }
}

/// One queue of a test. A test that fails leaves it behind, to be looked at.
#[derive(Debug)]
pub struct Queue {
    kind: Kind,
    schema: String,
}

impl Queue {
    /// Makes an empty queue in a schema that no other test uses.
    ///
    /// # Panics
    ///
    /// If the server refuses it.
    pub async fn make(kind: Kind) -> Queue {
        server::quiet_logs();
        let queue = Queue { kind, schema: unique_schema(kind) };
        match kind {
            Kind::Created => queue.manage("create_queue").await,
            Kind::Adopted => {
                queue.migrate().await;
                queue.manage("adopt_queue").await;
            }
            Kind::Reference => queue.migrate().await,
        }
        queue
    }

    /// Makes a queue with `create_queue`.
    pub async fn created() -> Queue {
        Queue::make(Kind::Created).await
    }

    /// Makes a duroxide-pg schema and adopts it.
    pub async fn adopted() -> Queue {
        Queue::make(Kind::Adopted).await
    }

    /// Makes a duroxide-pg schema and leaves it as it is.
    pub async fn reference() -> Queue {
        Queue::make(Kind::Reference).await
    }

    /// How this queue came to be.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The name of its schema; it needs no quoting.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// Opens a session that finds the queue's tables and functions by their bare names.
    pub async fn connect(&self) -> PgConnection {
        server::connect(Some(&self.schema)).await
    }

    /// Opens the unmodified client on this queue.
    ///
    /// # Panics
    ///
    /// If the client does not accept the queue.
    pub async fn provider(&self, policy: MigrationPolicy) -> Arc<PostgresProvider> {
        Arc::new(open(&server::url(), &self.schema, policy).await)
    }

    /// Removes the queue and its schema. Providers on it must be out of use.
    ///
    /// # Panics
    ///
    /// If the server refuses it.
    pub async fn remove(self) {
        match self.kind {
            Kind::Created => self.manage("drop_queue").await,
            Kind::Adopted => self.manage("release_queue").await,
            Kind::Reference => {}
        }
        let mut session = server::connect(None).await;
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema);
        sqlx::query(&drop).execute(&mut session).await.unwrap_or_else(|error| panic!("{drop}: {error}"));
    }

    /// Lets duroxide-pg lay out the schema with its own migrations.
    async fn migrate(&self) {
        let provider = self.provider(MigrationPolicy::ApplyAll).await;
        provider.pool().close().await;
    }

    /// Calls one of the extension's functions that take a queue's name.
    async fn manage(&self, function: &str) {
        let mut session = server::connect(None).await;
        server::create_extension(&mut session)
            .await
            .unwrap_or_else(|error| panic!("CREATE EXTENSION duroxide_queue: {error}"));
        sqlx::query(&format!("SELECT duroxide_queue.{function}($1)"))
            .bind(&self.schema)
            .execute(&mut session)
            .await
            .unwrap_or_else(|error| panic!("{function}('{}'): {error}", self.schema));
    }
}

/// Opens the unmodified client on the queue of that name.
///
/// # Panics
///
/// If the client does not accept the queue.
pub async fn open(url: &str, schema: &str, policy: MigrationPolicy) -> PostgresProvider {
    let mut config = ProviderConfig::url(url);
    config.schema_name = Some(schema.to_owned());
    config.migration_policy = policy;
    PostgresProvider::new_with_config(config)
        .await
        .unwrap_or_else(|error| panic!("duroxide-pg ({policy:?}) on queue {schema}: {error:#}"))
}

/// A schema name that neither a test beside this one nor an earlier run has used.
fn unique_schema(kind: Kind) -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    format!("t_{}_{}_{}_{number}", kind.name(), server::now_ms(), std::process::id())
}
