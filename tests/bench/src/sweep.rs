//! The same call under a load that grows.

use crate::bench::Bench;
use crate::own_cost::{Cost, Probe, measure};
use crate::plot::{Plot, Point};
use crate::side::Pair;

/// One size of the load.
pub struct Size {
    /// How large, as the plot shows it.
    pub label: String,
    /// The statements that make it.
    pub load: Vec<String>,
}

impl Size {
    /// A number of things, made by these statements.
    pub fn new(count: u64, load: Vec<String>) -> Size {
        Size { label: crate::line::number(count as f64), load }
    }
}

/// What the call cost at each size.
pub struct Sweep {
    labels: Vec<String>,
    costs: Vec<Pair<Cost>>,
}

impl Sweep {
    /// Loads each size and measures.
    pub async fn run<P: Probe>(bench: &Bench, sizes: Vec<Size>) -> Sweep {
        let mut sweep = Sweep { labels: Vec::new(), costs: Vec::new() };
        for size in sizes {
            bench.load(&size.load).await;
            sweep.costs.push(measure::<P>(bench).await);
            sweep.labels.push(size.label);
        }
        sweep
    }

    /// The own cost at one of the sizes.
    pub fn own(&self, size: usize) -> Pair<f64> {
        self.costs[size].map(|cost| cost.own)
    }

    /// The whole calls at one of the sizes.
    pub fn whole(&self, size: usize) -> Pair<f64> {
        self.costs[size].map(|cost| cost.whole)
    }

    /// The own cost of a session's first call at one of the sizes.
    pub fn first(&self, size: usize) -> Pair<f64> {
        self.costs[size].map(|cost| cost.first)
    }

    /// The largest own cost in terms of that at the first size.
    pub fn growth(&self) -> Pair<f64> {
        let worst = |own: fn(&Pair<Cost>) -> f64| {
            let base = own(&self.costs[0]);
            self.costs.iter().map(own).fold(base, f64::max) / base
        };
        Pair { ours: worst(|costs| costs.ours.own), theirs: worst(|costs| costs.theirs.own) }
    }

    /// The own costs as a plot.
    pub fn plot(&self, file: &'static str, title: &str, x: &str) -> Plot {
        let points = self.labels.iter().zip(&self.costs).map(|(label, costs)| Point {
            label: label.clone(),
            ours: Some(costs.ours.own),
            theirs: Some(costs.theirs.own),
        });
        Plot {
            file,
            title: title.to_owned(),
            x: x.to_owned(),
            y: "own cost, ms".to_owned(),
            points: points.collect(),
        }
    }
}
