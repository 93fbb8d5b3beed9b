//! Plots as SVG files: two lines over a growing quantity, the values on a logarithmic scale. Colours of a middle tone and no
//! background, so that they can be read on a light page and on a dark one.

use crate::line::number;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 66.0;
const BOTTOM: f64 = 54.0;
/// So many labels fit below the horizontal axis.
const LABELS: usize = 10;

const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#7a828c}.title{font-size:15px;font-weight:600}\
                     .grid{stroke:#7a828c;stroke-opacity:.3}.ours{stroke:#1a85ff}.theirs{stroke:#d8700b;stroke-dasharray:7 4}\
                     path{fill:none;stroke-width:2.5}.ours-mark{fill:#1a85ff}.theirs-mark{fill:#d8700b}";

/// One plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The name of its file, without the ending.
    pub file: &'static str,
    /// What it shows.
    pub title: String,
    /// What grows.
    pub x: String,
    /// What is measured, with its unit.
    pub y: String,
    /// The points, in the order in which the quantity grows.
    pub points: Vec<Point>,
}

/// What was measured at one size.
#[derive(Clone, Debug)]
pub struct Point {
    /// The size.
    pub label: String,
    /// Ours.
    pub ours: Option<f64>,
    /// Theirs.
    pub theirs: Option<f64>,
}

/// The vertical axis: whole powers of ten that hold every value.
struct Axis {
    low: i32,
    high: i32,
}

impl Axis {
    fn of(points: &[Point]) -> Axis {
        let values = || points.iter().flat_map(|point| [point.ours, point.theirs]).flatten();
        let low = values().fold(f64::INFINITY, f64::min).log10().floor() as i32;
        let high = values().fold(f64::NEG_INFINITY, f64::max).log10().ceil() as i32;
        Axis { low, high: high.max(low + 1) }
    }

    fn y(&self, value: f64) -> f64 {
        let part = (value.log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
    }
}

impl Plot {
    /// The file's text.
    pub fn svg(&self) -> String {
        let axis = Axis::of(&self.points);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-label=\"{}\">\n<style>{STYLE}</style>\n",
            self.title
        );
        self.frame(&axis, &mut svg).expect("writing to a string");
        self.curve(&axis, "ours", |point| point.ours, &mut svg).expect("writing to a string");
        self.curve(&axis, "theirs", |point| point.theirs, &mut svg).expect("writing to a string");
        svg.push_str("</svg>\n");
        svg
    }

    fn x(&self, index: usize) -> f64 {
        let steps = (self.points.len() - 1).max(1) as f64;
        LEFT + 12.0 + index as f64 / steps * (WIDTH - LEFT - RIGHT - 36.0)
    }

    fn frame(&self, axis: &Axis, svg: &mut String) -> std::fmt::Result {
        writeln!(svg, "<text class=\"title\" x=\"16\" y=\"24\">{}</text>", self.title)?;
        writeln!(svg, "<text x=\"16\" y=\"48\">{}</text>", self.y)?;
        let legend = |x: f64, side: &str, name: &str| {
            format!(
                "<path class=\"{side}\" d=\"M{x} 44h32\"/><text x=\"{}\" y=\"48\">{name}</text>",
                x + 40.0
            )
        };
        writeln!(svg, "{}", legend(WIDTH - 330.0, "ours", "duroxide_queue"))?;
        writeln!(svg, "{}", legend(WIDTH - 150.0, "theirs", "duroxide-pg"))?;
        for power in axis.low..=axis.high {
            let (value, right) = (10f64.powi(power), WIDTH - RIGHT);
            let y = axis.y(value);
            writeln!(svg, "<path class=\"grid\" style=\"stroke-width:1\" d=\"M{LEFT} {y:.1}H{right}\"/>")?;
            let label = if power < 0 { value.to_string() } else { number(value) };
            writeln!(
                svg,
                "<text text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{label}</text>",
                LEFT - 8.0,
                y + 4.5
            )?;
        }
        let every = self.points.len().div_ceil(LABELS);
        for (index, point) in self.points.iter().enumerate().step_by(every) {
            let (x, y) = (self.x(index), HEIGHT - BOTTOM + 20.0);
            writeln!(svg, "<text text-anchor=\"middle\" x=\"{x:.1}\" y=\"{y}\">{}</text>", point.label)?;
        }
        let (x, y) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 12.0);
        writeln!(svg, "<text text-anchor=\"middle\" x=\"{x}\" y=\"{y}\">{}</text>", self.x)
    }

    fn curve(
        &self,
        axis: &Axis,
        side: &str,
        value: fn(&Point) -> Option<f64>,
        svg: &mut String,
    ) -> std::fmt::Result {
        let places: Vec<(f64, f64)> = self
            .points
            .iter()
            .enumerate()
            .filter_map(|(index, point)| value(point).map(|value| (self.x(index), axis.y(value))))
            .collect();
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        writeln!(svg, "<path class=\"{side}\" d=\"M{}\"/>", path.join("L"))?;
        places.iter().try_for_each(|(x, y)| {
            writeln!(svg, "<circle class=\"{side}-mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>")
        })
    }
}
