//! Polls that find nothing.

use super::Row;
use crate::bench::Bench;
use crate::calls::{self, FETCH};
use crate::line::{Goal, Line, Unit};
use crate::own_cost::measure;
use crate::probes::{Fetch, FetchWork};
use crate::report::Report;
use crate::side::{Pair, Side};
use async_trait::async_trait;
use duroxide_queue_tests::outcome::must;

const POLLS: usize = 1_000;
/// The server writes to its log for itself now and then: the least of some tries is the polls'.
const TRIES: usize = 3;

/// The row.
pub struct EmptyPoll;

#[async_trait(?Send)]
impl Row for EmptyPoll {
    fn name(&self) -> &'static str {
        "empty-poll"
    }

    async fn run(&self, bench: &Bench) -> Report {
        bench.load(&[]).await;
        let (mut ids, mut bytes) = (Pair { ours: 0.0, theirs: 0.0 }, Pair { ours: 0.0, theirs: 0.0 });
        for side in Side::BOTH {
            let [id, wal] = least_used(bench, side).await;
            *ids.of_mut(side) = id;
            *bytes.of_mut(side) = wal;
        }
        let instances = measure::<Fetch>(bench).await;
        let work = measure::<FetchWork>(bench).await;
        let line = |key, what, figures, unit, goal| Line::new(key, what, figures, unit, goal);
        let (ms, least) = (Unit::Milliseconds, Goal::Ratio(1.0, None));
        Report {
            lines: vec![
                line(
                    "empty-poll-xid",
                    "1,000 empty polls: transaction ids",
                    ids,
                    Unit::Count,
                    Goal::AtMost(0.0),
                ),
                line(
                    "empty-poll-wal",
                    "1,000 empty polls: bytes of WAL",
                    bytes,
                    Unit::Count,
                    Goal::AtMost(0.0),
                ),
                line("empty-poll", "an empty poll: own cost", instances.map(|cost| cost.own), ms, least),
                line(
                    "empty-poll-whole",
                    "the same, the whole call",
                    instances.map(|cost| cost.whole),
                    ms,
                    Goal::None,
                ),
                line(
                    "empty-poll-work",
                    "an empty worker poll: own cost",
                    work.map(|cost| cost.own),
                    ms,
                    least,
                ),
            ],
            plots: Vec::new(),
        }
    }
}

/// Transaction ids and bytes of log that polls used.
async fn least_used(bench: &Bench, side: Side) -> [f64; 2] {
    let mut session = bench.session(side).await;
    let mut least = [f64::INFINITY; 2];
    for _ in 0..TRIES {
        let before = used(&mut session).await;
        for _ in 0..POLLS {
            assert!(calls::fetch(&mut session, FETCH).await.row.is_none(), "the queue is empty");
        }
        let after = used(&mut session).await;
        for what in 0..least.len() {
            least[what] = least[what].min(after[what] - before[what]);
        }
    }
    least
}

async fn used(session: &mut sqlx::PgConnection) -> [f64; 2] {
    let row = must(
        session,
        "SELECT pg_snapshot_xmax(pg_current_snapshot()), pg_current_wal_insert_lsn() - '0/0'::pg_lsn",
    )
    .await
    .remove(0);
    [0, 1].map(|column: usize| row[column].as_deref().and_then(|text| text.parse().ok()).expect("a number"))
}
