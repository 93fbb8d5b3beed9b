//! A queue outlives a dump and restore, and an older version of the extension: with every row, every lease, and all of
//! its functions. What has been released stays as it was.

#[path = "backup_and_upgrade/dump.rs"]
mod dump;
#[path = "backup_and_upgrade/old_sql.rs"]
mod old_sql;
#[path = "backup_and_upgrade/releases.rs"]
mod releases;
#[path = "backup_and_upgrade/update.rs"]
mod update;

use duroxide_pg::MigrationPolicy;
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::live_queue;
use duroxide_queue_tests::outcome::must;
use duroxide_queue_tests::queue;
use sqlx::postgres::PgConnection;

/// The two queues of each database here, one of each kind.
const QUEUES: [&str; 2] = ["made", "adopted"];

/// The first version, which every later one can be reached from.
const FIRST: &str = "0.1.0";

/// A database with the extension, of that version or the newest, and the two queues, filled.
async fn live_queues(version: Option<&str>) -> (Database, PgConnection) {
    let database = Database::make().await;
    let mut session = database.connect().await;
    let version = version.map_or(String::new(), |version| format!("VERSION '{version}'"));
    must(&mut session, &format!("CREATE EXTENSION duroxide_queue {version}")).await;
    make_queues(&database, &mut session).await;
    (database, session)
}

/// Makes the two queues and fills them.
async fn make_queues(database: &Database, session: &mut PgConnection) {
    must(session, "SELECT duroxide_queue.create_queue('made')").await;
    let provider = queue::open(&database.url(), "adopted", MigrationPolicy::ApplyAll).await;
    provider.pool().close().await;
    must(session, "SELECT duroxide_queue.adopt_queue('adopted')").await;
    for queue in QUEUES {
        live_queue::fill(session, queue).await;
    }
}

async fn update(session: &mut PgConnection) {
    must(session, "ALTER EXTENSION duroxide_queue UPDATE").await;
}
