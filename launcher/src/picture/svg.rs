//! A picture as SVG, in colours that suit light and dark pages.

use std::collections::BTreeSet;

use super::{Anchor, Picture, Role, Shape, Tone};
use oflow::text::escape;

const STYLE: &str = "<style>
text { font-family: ui-monospace, monospace; font-size: 13px; fill: #666 } .title { fill: #222 }
polyline { fill: none; stroke-width: 1.6; stroke-linejoin: round; stroke-linecap: round } .grid { stroke: #ddd; stroke-width: 1 } .faint { stroke-opacity: .3 }
.inside { font-size: 11px; fill: #111; pointer-events: none } .link { stroke: #000; stroke-width: .8; stroke-opacity: .45 }
";
const DARK: &str =
    "text { fill: #aaa } .title { fill: #eee } .grid { stroke: #444 } .inside { fill: #fff } .link { stroke: #fff }";

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

/// Whether a page is light or dark.
#[derive(Clone, Copy)]
enum Page {
    Light,
    Dark,
}

/// The rules of the curves and boxes that a picture has. Not every reader of SVG knows variables of CSS.
fn colours(picture: &Picture, page: Page) -> String {
    let (mut runs, mut tones): (BTreeSet<usize>, BTreeSet<Tone>) = Default::default();
    for shape in &picture.shapes {
        match shape {
            Shape::Line { role: Role::Curve(run) | Role::Faint(run), .. } => drop(runs.insert(run % COLOURS)),
            Shape::Box { tone, .. } => drop(tones.insert(*tone)),
            _ => {}
        }
    }
    let lightness = match page {
        Page::Light => 0.42,
        Page::Dark => 0.65,
    };
    let hex = |[r, g, b]: [u8; 3]| format!("#{r:02x}{g:02x}{b:02x}");
    let curve = |run: usize| format!(" .c{run} {{ stroke: {} }}", hex(rgb(run, lightness)));
    let filled = |tone: Tone| format!(" .t{} {{ fill: {} }}", tone as u8, hex(tone.rgb()[page as usize]));
    runs.into_iter().map(curve).chain(tones.into_iter().map(filled)).collect()
}

/// Draws a picture.
pub fn draw(picture: &Picture) -> String {
    let (w, h) = (picture.width, picture.height);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w:.0} {h:.0}\" width=\"{w:.0}\" height=\"{h:.0}\" role=\"img\">\n\
         <title>{}</title>\n{STYLE}{}\n@media (prefers-color-scheme: dark) {{ {DARK}{} }}\n</style>\n",
        escape(picture.title),
        colours(picture, Page::Light),
        colours(picture, Page::Dark)
    );
    for shape in &picture.shapes {
        match shape {
            Shape::Line { role, points } => {
                let class = match role {
                    Role::Curve(run) => format!("class=\"curve c{}\"", run % COLOURS),
                    Role::Faint(run) => format!("class=\"faint c{}\"", run % COLOURS),
                    Role::Link => "class=\"link\"".into(),
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
                let class = match role {
                    Role::Title => " class=\"title\"",
                    Role::Inside => " class=\"inside\"",
                    _ => "",
                };
                out += &format!(
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{class}>{}</text>\n",
                    escape(text)
                );
            }
            Shape::Box { tone, corner: (x, y), size: (w, h), hint } => {
                out += &format!(
                    "<rect class=\"t{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\"",
                    *tone as u8
                );
                out +=
                    &if hint.is_empty() { "/>\n".into() } else { format!("><title>{}</title></rect>\n", escape(hint)) };
            }
        }
    }
    out + "</svg>\n"
}
