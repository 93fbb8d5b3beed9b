//! A database of a test's own, and roles that exist for it alone: for what is shared by all schemas
//! of a database (the extension) or by all databases of a server (roles).

use crate::outcome::must;
use crate::server;
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnection;
use std::sync::atomic::{AtomicU32, Ordering};

/// One database of a test. A test that fails leaves it behind, to be looked at.
#[derive(Debug)]
pub struct Database {
    name: String,
    roles: Vec<String>,
}

impl Database {
    /// Makes an empty database.
    pub async fn make() -> Database {
        Database::encoded("UTF8").await
    }

    /// Makes an empty database in an encoding of the server.
    pub async fn encoded(encoding: &str) -> Database {
        static MADE: AtomicU32 = AtomicU32::new(0);
        server::quiet_logs();
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("t_{}_{}_{number}", server::now_ms(), std::process::id());
        let mut session = server::connect(None).await;
        must(
            &mut session,
            &format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'"),
        )
        .await;
        Database { name, roles: Vec::new() }
    }

    /// Its name; it needs no quoting.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes a role that may log in and nothing else; returns its name, which needs no quoting.
    pub async fn role(&mut self, nickname: &str) -> String {
        let role = format!("{}_{nickname}", self.name);
        must(&mut server::connect(None).await, &format!("CREATE ROLE {role} LOGIN")).await;
        self.roles.push(role.clone());
        role
    }

    /// Opens a session as the server's superuser.
    pub async fn connect(&self) -> PgConnection {
        server::open(server::options().database(&self.name)).await
    }

    /// Opens a session as a role.
    pub async fn connect_as(&self, role: &str) -> PgConnection {
        server::open(server::options().database(&self.name).username(role)).await
    }

    /// The URL for a client that connects as a role.
    pub fn url_as(&self, role: &str) -> String {
        server::options().database(&self.name).username(role).to_url_lossy().to_string()
    }

    /// The URL for a client that connects as the server's superuser.
    pub fn url(&self) -> String {
        server::options().database(&self.name).to_url_lossy().to_string()
    }

    /// Removes the database and the roles.
    pub async fn remove(self) {
        let mut session = server::connect(None).await;
        must(&mut session, &format!("DROP DATABASE {} WITH (FORCE)", self.name)).await;
        for role in &self.roles {
            must(&mut session, &format!("DROP ROLE {role}")).await;
        }
    }
}
