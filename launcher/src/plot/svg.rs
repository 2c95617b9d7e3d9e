//! A picture as SVG, in colours that suit light and dark pages.

use std::collections::BTreeSet;

use super::chart::{Anchor, Chart, Role, Shape};
use oflow::text::escape;

const STYLE: &str = "<style>
text { font-family: ui-monospace, monospace; font-size: 13px; fill: #666 } .title { fill: #222 }
polyline { fill: none; stroke-width: 1.6; stroke-linejoin: round; stroke-linecap: round } .grid { stroke: #ddd; stroke-width: 1 } .faint { stroke-opacity: .3 }
";
const DARK: &str = "text { fill: #aaa } .title { fill: #eee } .grid { stroke: #444 }";

/// Runs that have a colour of their own.
pub const COLOURS: usize = 100;

/// The colour of a run. The hues of neighbours differ, each is the golden angle on.
pub fn rgb(run: usize, lightness: f64) -> [u8; 3] {
    let hue = (215.0 + (run % COLOURS) as f64 * 137.5) % 360.0;
    // The formula of `hsl` in CSS.
    let around = 0.7 * lightness.min(1.0 - lightness);
    [0.0, 8.0, 4.0].map(|n| {
        let k = (n + hue / 30.0) % 12.0;
        ((lightness - around * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0)) * 255.0).round() as u8
    })
}

/// The rules of the curves that a picture has. Not every reader of SVG knows variables of CSS.
fn colours(chart: &Chart, lightness: f64) -> String {
    let of = |shape: &Shape| match shape {
        Shape::Line { role: Role::Curve(run) | Role::Faint(run), .. } => Some(run % COLOURS),
        _ => None,
    };
    let runs: BTreeSet<usize> = chart.shapes.iter().filter_map(of).collect();
    let rule = |run: usize| {
        let [r, g, b] = rgb(run, lightness);
        format!(" .c{run} {{ stroke: #{r:02x}{g:02x}{b:02x} }}")
    };
    runs.into_iter().map(rule).collect()
}

/// Draws a picture.
pub fn draw(chart: &Chart) -> String {
    let (w, h) = (chart.width, chart.height);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w:.0} {h:.0}\" width=\"{w:.0}\" height=\"{h:.0}\" role=\"img\">\n\
         <title>Metrics by step</title>\n{STYLE}{}\n@media (prefers-color-scheme: dark) {{ {DARK}{} }}\n</style>\n",
        colours(chart, 0.42),
        colours(chart, 0.65)
    );
    for shape in &chart.shapes {
        match shape {
            Shape::Line { role, points } => {
                let class = match role {
                    Role::Curve(run) => format!("class=\"curve c{}\"", run % COLOURS),
                    Role::Faint(run) => format!("class=\"faint c{}\"", run % COLOURS),
                    _ => "class=\"grid\"".into(),
                };
                // A point alone is a line to itself, whose round ends are seen.
                let again = if points.len() == 1 { 2 } else { 1 };
                let all = points.iter().cycle().take(points.len() * again);
                let places: Vec<String> = all.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                out += &format!("<polyline {class} points=\"{}\"/>\n", places.join(" "));
            }
            Shape::Text { role, at: (x, y), anchor, text } => {
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let class = if *role == Role::Title { " class=\"title\"" } else { "" };
                out += &format!(
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{class}>{}</text>\n",
                    escape(text)
                );
            }
        }
    }
    out + "</svg>\n"
}
