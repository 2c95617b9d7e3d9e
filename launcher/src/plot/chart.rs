//! The layout of a picture: a small chart for each metric with all runs in it, as shapes in pixels.

use super::curve::{Point, parts, smoothed};
use super::read::Run;
use crate::picture::axis::Axis;
use crate::picture::{Anchor, CHARACTER, Picture, Role, fitted};
use crate::terminal::visible;

/// How curves are drawn.
pub struct Style {
    pub smooth: Option<f64>,
    pub log: bool,
    pub width: Option<u32>,
    pub height: Option<u32>,
}

/// Sizes of a picture in which none are given.
const WIDTH: f64 = 900.0;
const EACH: f64 = 260.0;
/// Pixels around the curves of a chart: left, right, above, below.
const AROUND: [f64; 4] = [72.0, 16.0, 30.0, 34.0];
const LINE: f64 = 18.0;
/// Runs that the legend names.
const MOST_NAMED: usize = 12;

/// Lays a picture out.
pub fn draw(runs: &[Run], keys: &[&str], style: &Style) -> Picture {
    let width = style.width.map_or(WIDTH, f64::from);
    let columns = if keys.len() == 1 || width < 600.0 { 1 } else { 2 };
    let rows = keys.len().div_ceil(columns);
    let mut chart = Chart(Picture { title: "Metrics by step", width, height: 0.0, shapes: vec![] });
    let legend = if runs.len() > 1 { chart.legend(runs) } else { 8.0 };
    let least = AROUND[2] + AROUND[3] + 40.0;
    let each = style.height.map_or(EACH, |h| (f64::from(h) - legend) / rows as f64).max(least);
    chart.0.height = legend + each * rows as f64;
    for (i, key) in keys.iter().enumerate() {
        let wide = width / columns as f64;
        let corner = (wide * (i % columns) as f64, legend + each * (i / columns) as f64);
        chart.panel(runs, key, style, corner, (wide, each));
    }
    chart.0
}

/// A picture of charts.
struct Chart(Picture);

impl Chart {
    /// Names the runs beside pieces of their curves; returns the height.
    fn legend(&mut self, runs: &[Run]) -> f64 {
        let (mut x, mut y) = (12.0, 20.0);
        for (i, run) in runs.iter().take(MOST_NAMED).enumerate() {
            let last = i + 1 == MOST_NAMED && runs.len() > MOST_NAMED;
            let name = if last { format!("and {} more", runs.len() - i) } else { visible(&run.name).into_owned() };
            let name = fitted(&name, self.0.width - 60.0);
            let length = 30.0 + CHARACTER * (name.chars().count() + 2) as f64;
            if x > 12.0 && x + length > self.0.width {
                (x, y) = (12.0, y + LINE);
            }
            self.0.line(Role::Curve(i), vec![(x, y - 4.0), (x + 20.0, y - 4.0)]);
            self.0.text(Role::Label, (x + 26.0, y), Anchor::Start, name);
            x += length;
        }
        y + 12.0
    }

    /// The chart of a metric.
    fn panel(&mut self, runs: &[Run], key: &str, style: &Style, (x, y): (f64, f64), (wide, tall): (f64, f64)) {
        let (left, right, top, bottom) = (x + AROUND[0], x + wide - AROUND[1], y + AROUND[2], y + tall - AROUND[3]);
        self.0.text(Role::Title, (left, top - 10.0), Anchor::Start, fitted(&visible(key), right - left));
        let all = || runs.iter().filter_map(|run| run.curves.get(key)).flatten();
        let steps = Axis::of(all().map(|p| p.step), false, 0.0);
        let (Some(steps), Some(values)) = (steps, Axis::of(all().map(|p| p.value), style.log, 0.05)) else {
            let why = if style.log { "no positive value" } else { "no finite value" };
            self.0.text(Role::Label, ((left + right) / 2.0, (top + bottom) / 2.0), Anchor::Middle, why);
            return;
        };
        let across = |step: f64| steps.place(step).map(|at| left + at * (right - left));
        let up = |value: f64| values.place(value).map(|at| bottom - at * (bottom - top));
        for (value, text) in values.ticks(((bottom - top) / 32.0).max(2.0) as usize, false) {
            let Some(y) = up(value) else { continue };
            self.0.line(Role::Grid, vec![(left, y), (right, y)]);
            self.0.text(Role::Label, (left - 6.0, y + 4.0), Anchor::End, text);
        }
        for (step, text) in steps.ticks(((right - left) / 70.0).max(2.0) as usize, true) {
            let Some(x) = across(step) else { continue };
            self.0.line(Role::Grid, vec![(x, bottom), (x, bottom + 4.0)]);
            // Half of the last one would be outside.
            let most = right + AROUND[1] - CHARACTER * text.chars().count() as f64 / 2.0;
            self.0.text(Role::Label, (x.min(most), bottom + 18.0), Anchor::Middle, text);
        }
        self.0.line(Role::Grid, vec![(left, bottom), (right, bottom)]);
        self.0.text(Role::Label, (right, bottom + 31.0), Anchor::End, "step");
        let to = |p: &Point| Some((across(p.step)?, up(p.value)?));
        let curves = || runs.iter().enumerate().filter_map(|(i, run)| Some((i, run.curves.get(key)?)));
        for (i, points) in curves() {
            let role = if style.smooth.is_some() { Role::Faint(i) } else { Role::Curve(i) };
            parts(points, to).into_iter().for_each(|part| self.0.line(role, part));
        }
        // Averages lie above the values of all runs.
        for (weight, (i, points)) in style.smooth.into_iter().flat_map(|weight| curves().map(move |c| (weight, c))) {
            parts(&smoothed(points, weight), to).into_iter().for_each(|part| self.0.line(Role::Curve(i), part));
        }
    }
}
