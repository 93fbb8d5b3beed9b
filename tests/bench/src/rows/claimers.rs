//! More and more claimers on the same 10,000 ready instances, each with a backend of its own, and sharing some.

use super::Row;
use crate::bench::{Bench, Commit};
use crate::line::{Goal, Line, Unit, number};
use crate::load;
use crate::pgbench::{Load, Until};
use crate::plot::{Plot, Point};
use crate::report::Report;
use crate::side::{Pair, Side};
use async_trait::async_trait;
use duroxide_queue_tests::outcome::must;

const CLAIMERS: [u64; 5] = [1, 4, 16, 64, 256];
const READY: u64 = 10_000;
const ROUNDS: usize = 3;
/// How long they claim, beside what starting them takes.
const SECONDS: u64 = 2;
const CLIENTS_THAT_START_IN_A_SECOND: u64 = 50;
/// Claimers that share the backends of a pooler.
const POOLED: [u64; 2] = [16, 256];
const BACKENDS: usize = 8;

const CLAIM: &str = "SELECT out_lock_token FROM fetch_orchestration_item(\
                     (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 600000, 0, 1000032);";

/// What a server with as many sessions at work keeps of its throughput where none is in another's way.
const CONTROL_TABLE: &str = "CREATE TABLE control (id int PRIMARY KEY, n int NOT NULL); \
                             INSERT INTO control SELECT g, 0 FROM generate_series(1, 100000) g";
const CONTROL: &str = "\\set id random(1, 100000)\nUPDATE control SET n = n + 1 WHERE id = :id;";

/// The row.
pub struct Claimers;

#[async_trait(?Send)]
impl Row for Claimers {
    fn name(&self) -> &'static str {
        "claimers"
    }

    async fn run(&self, bench: &Bench) -> Report {
        let direct = rates(bench, &CLAIMERS, None).await;
        let pooled = rates(bench, &POOLED, Some(BACKENDS)).await;
        report(&direct, &pooled, control(bench).await)
    }
}

/// Claims a second by so many claimers.
async fn rates(bench: &Bench, claimers: &[u64], pool: Option<usize>) -> Vec<Pair<f64>> {
    let mut rates = Vec::new();
    for &clients in claimers {
        let mut rounds = Pair { ours: Vec::new(), theirs: Vec::new() };
        for _ in 0..ROUNDS {
            bench.load(&[load::ready(1..=READY)]).await;
            for side in Side::BOTH {
                rounds.of_mut(side).push(claims_per_second(bench, side, clients, pool).await);
            }
        }
        rates.push(rounds.medians());
    }
    rates
}

/// What is left of the best throughput of the control.
async fn control(bench: &Bench) -> Pair<f64> {
    let mut rates = Pair { ours: Vec::new(), theirs: Vec::new() };
    for side in Side::BOTH {
        must(&mut bench.session(side).await, CONTROL_TABLE).await;
    }
    for clients in CLAIMERS {
        for side in Side::BOTH {
            let load = Load {
                script: CONTROL,
                parameters: &[],
                clients,
                until: Until::Seconds(SECONDS),
                commit: Commit::Asynchronous,
                pool: None,
            };
            rates.of_mut(side).push(load.run(bench, side).await.unwrap_or(0.0));
        }
    }
    for side in Side::BOTH {
        must(&mut bench.session(side).await, "DROP TABLE control").await;
    }
    rates.map(|rates| kept_of_best(rates.iter().copied()))
}

/// Claims a second over the middle half of the claims: before it sessions load the library and make their plans, after it
/// the instances run out. A call that found nothing free counts for nothing.
async fn claims_per_second(bench: &Bench, side: Side, clients: u64, pool: Option<usize>) -> f64 {
    let load = Load {
        script: CLAIM,
        parameters: &[],
        clients,
        until: Until::Seconds(SECONDS + clients / CLIENTS_THAT_START_IN_A_SECOND),
        commit: Commit::Asynchronous,
        pool,
    };
    load.run(bench, side).await;
    let middle_half = "SELECT count(*) / 2, percentile_disc(0.75) WITHIN GROUP (ORDER BY locked_at) - \
                       percentile_disc(0.25) WITHIN GROUP (ORDER BY locked_at) FROM instance_locks";
    let row = must(&mut bench.session(side).await, middle_half).await.remove(0);
    let [claims, ms] = [0, 1].map(|column: usize| {
        row[column].as_deref().map_or(0.0, |text| text.parse::<f64>().expect("a number"))
    });
    if ms > 0.0 { claims / ms * 1000.0 } else { 0.0 }
}

fn report(rates: &[Pair<f64>], pooled: &[Pair<f64>], control: Pair<f64>) -> Report {
    let mut lines: Vec<Line> = CLAIMERS
        .iter()
        .zip(rates)
        .map(|(clients, &rates)| {
            let what = format!("claims on {} ready instances, claimers: {clients}", number(READY as f64));
            Line::new(&format!("claimers-{clients}"), &what, rates, Unit::PerSecond, Goal::None)
        })
        .collect();
    let kept = Pair {
        ours: kept_of_best(rates.iter().map(|rate| rate.ours)),
        theirs: kept_of_best(rates.iter().map(|rate| rate.theirs)),
    };
    let what = "the same: the least that is left of the best throughput, with more claimers";
    lines.push(Line::new("claimers-kept", what, kept, Unit::Times, Goal::AtLeast(0.8)));
    let what = "an UPDATE of a row of its own by primary key in place of a claim: the least that is left, with more clients";
    lines.push(Line::new("claimers-control", what, control, Unit::Times, Goal::None));
    for (clients, &rates) in POOLED.iter().zip(pooled) {
        let what = format!("claims by {clients} claimers that share {BACKENDS} backends of a pgbouncer");
        lines.push(Line::new(
            &format!("claimers-pooled-{clients}"),
            &what,
            rates,
            Unit::PerSecond,
            Goal::None,
        ));
    }
    let points = CLAIMERS.iter().zip(rates).map(|(clients, rates)| Point {
        label: clients.to_string(),
        ours: Some(rates.ours),
        // None at all has no place on the scale.
        theirs: Some(rates.theirs).filter(|rate| *rate > 0.0),
    });
    let plot = Plot {
        file: "claimers",
        title: "Claims on 10,000 ready instances".to_owned(),
        x: "claimers".to_owned(),
        y: "claims a second".to_owned(),
        points: points.collect(),
    };
    Report { lines, plots: vec![plot] }
}

/// The deepest fall from the best throughput reached with fewer claimers.
fn kept_of_best(rates: impl Iterator<Item = f64>) -> f64 {
    let (_, kept) = rates.fold((0.0, 1.0), |(best, kept): (f64, f64), rate| {
        let best = best.max(rate);
        (best, kept.min(rate / best))
    });
    kept
}
