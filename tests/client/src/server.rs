//! The server under test, and its extension.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing_subscriber::EnvFilter;

/// The environment variable that names the server under test.
pub const URL_VARIABLE: &str = "DUROXIDE_QUEUE_TEST_URL";

/// The key that sessions take to create the extension one after the other.
const EXTENSION_KEY: i64 = 0x6475_726f_7869_6465;

/// The URL of the server under test.
///
/// # Panics
///
/// Says what to set when `DUROXIDE_QUEUE_TEST_URL` is missing.
pub fn url() -> String {
    std::env::var(URL_VARIABLE).unwrap_or_else(|_| {
        panic!(
            "{URL_VARIABLE} is not set. It names a PostgreSQL server that has the files of \
             duroxide_queue, as a superuser, for example \
             postgres://postgres@127.0.0.1:5432/postgres. `make test` and `make demo` start \
             such a server and set it."
        )
    })
}

/// Opens one session. `search_path` is that of the server where it is `None`.
///
/// # Panics
///
/// If the server cannot be reached.
pub async fn connect(search_path: Option<&str>) -> PgConnection {
    let mut options = options();
    if let Some(schema) = search_path {
        options = options.options([("search_path", schema)]);
    }
    open(options).await
}

/// How to connect to the server under test, for those who change something in it.
///
/// # Panics
///
/// If `DUROXIDE_QUEUE_TEST_URL` is missing or no URL.
pub fn options() -> PgConnectOptions {
    let url = url();
    url.parse().unwrap_or_else(|error| panic!("{URL_VARIABLE}={url} is not a URL: {error}"))
}

/// Opens one session.
///
/// # Panics
///
/// If the server cannot be reached, or does not let the role in.
pub async fn open(options: PgConnectOptions) -> PgConnection {
    let url = options.to_url_lossy();
    options
        .disable_statement_logging()
        .connect()
        .await
        .unwrap_or_else(|error| panic!("cannot connect to {url}: {error}"))
}

/// The URL of a database of the server under test, for clients other than ours: nothing in it but what every driver
/// knows.
///
/// # Panics
///
/// If `DUROXIDE_QUEUE_TEST_URL` is missing or names no database.
pub fn url_of(database: &str) -> String {
    let url = url();
    let (server, _) = url.rsplit_once('/').expect("the URL names a database");
    format!("{server}/{database}")
}

/// Creates the extension if the database has none yet.
///
/// # Errors
///
/// What the server says, if it cannot.
pub async fn create_extension(session: &mut PgConnection) -> sqlx::Result<()> {
    // IF NOT EXISTS alone lets two sessions collide in the catalog.
    let mut transaction = session.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(EXTENSION_KEY).execute(&mut *transaction).await?;
    sqlx::query("CREATE EXTENSION IF NOT EXISTS duroxide_queue").execute(&mut *transaction).await?;
    transaction.commit().await
}

/// Keeps the logs of the client to what `RUST_LOG` asks for: nothing, if unset.
///
/// Many tests provoke errors on purpose, and the client logs each of them.
pub fn quiet_logs() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("off"));
    // The first one wins; that there is one already is no failure.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init();
}

/// Milliseconds of the Unix epoch by this machine's clock, as the client sends them.
///
/// # Panics
///
/// If the clock stands before 1970.
pub fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is after 1970");
    i64::try_from(now.as_millis()).expect("the clock is before the year 292278994")
}
