//! ALTER EXTENSION UPDATE comes to what a fresh install comes to.

use super::{FIRST, live_queues, update};
use duroxide_queue_tests::catalog;
use duroxide_queue_tests::database::Database;
use duroxide_queue_tests::outcome::must;

#[tokio::test]
async fn an_updated_extension_equals_a_fresh_one() {
    let fresh = Database::make().await;
    let mut session = fresh.connect().await;
    must(&mut session, "CREATE EXTENSION duroxide_queue").await;
    let expected = catalog::extension(&mut session).await;
    assert!(expected.len() > 50, "the catalog knows much of it: {expected:#?}");

    let (database, mut session) = live_queues(Some(FIRST)).await;
    let queues =
        [catalog::snapshot(&mut session, "made").await, catalog::snapshot(&mut session, "adopted").await];
    update(&mut session).await;

    catalog::assert_same("a fresh install and an update", &expected, &catalog::extension(&mut session).await);
    for (queue, before) in ["made", "adopted"].into_iter().zip(queues) {
        catalog::assert_same("an update", &before, &catalog::snapshot(&mut session, queue).await);
    }
    fresh.remove().await;
    database.remove().await;
}
