//! The work queues of durable execution, inside PostgreSQL.
//!
//! A queue is a schema with nine tables and 32 functions, all of which are entry points of this
//! library. A call goes `api` (SQL arguments) -> `db` (the queue and its saved plans) -> `queue`
//! (the operation and its SQL) -> rows. `lifecycle` makes, adopts, releases and drops queues.
//! `observe` reads all queues at once, for the views. Everything unsafe is in `pg`.

#![deny(clippy::undocumented_unsafe_blocks)]

mod api;
mod clock;
mod db;
mod error;
mod json;
mod lifecycle;
mod names;
mod observe;
mod pg;
mod queue;
mod settings;

pgrx::pg_module_magic!(name, version);

pgrx::extension_sql_file!("../sql/duroxide_queue.sql", name = "duroxide_queue", bootstrap);
pgrx::extension_sql_file!("../sql/views.sql", name = "views", requires = ["duroxide_queue"]);

/// Runs once per backend, when the library loads.
#[pgrx::pg_guard]
extern "C-unwind" fn _PG_init() {
    settings::define();
    pg::namespace::watch();
    pg::commit_check::watch();
    pg::hidden_indexes::watch();
    pg::planner::watch();
}

#[cfg(any(test, feature = "pg_test"))]
mod server_tests;

/// What `cargo pgrx test` asks for.
#[cfg(test)]
pub mod pg_test {
    /// Called before the test server starts.
    pub fn setup(_options: Vec<&str>) {}

    /// Settings of the test server.
    pub fn postgresql_conf_options() -> Vec<&'static str> {
        vec![]
    }
}
