//! The picture as SVG, in colours that suit light and dark pages.

use super::grid::{Grid, Holders};
use oflow_base::text::{escape, head};

/// Where a picture stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A file: its title is shown, and its colours follow the reader's choice of light or dark.
    File,
    /// A part of an HTML page: small, in the page's colour of text.
    Inline,
}

/// The least of a cell, in pixels.
const LEAST: f64 = 26.0;
/// Characters of the title that make a picture wider, and of the title of a slice.
const LONGEST_TITLE: usize = 120;
/// Pixels of a character, and of a line.
const CHARACTER: f64 = 8.0;
const LINE: f64 = 17.0;
/// Characters of a name, and of what is shown when the pointer is on a part of an inline picture.
const LONGEST_NAME: usize = 40;
const LONGEST_HINT: usize = 400;

const STYLE: &str = "<style>
text { font-family: ui-monospace, monospace; font-size: 13px; fill: #222 } .axis { fill: #666 } rect { stroke: #fff; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #eee } .axis { fill: #aaa } rect { stroke: #111 } .part { fill-opacity: .55 } }
</style>
";
/// A style sheet would hold for all pictures of the page.
const INLINE: &str = " font-family=\"ui-monospace, monospace\" font-size=\"13\" fill=\"currentColor\" style=\"max-width:100%;height:auto\"";

/// Pixels of the parts of a picture.
struct Frame {
    /// Pixels that all cells share, down and across.
    sides: [f64; 2],
    left: f64,
    right: f64,
    above: f64,
    below: f64,
    /// Above the first slice.
    head: f64,
}

impl Frame {
    fn of(grid: &Grid, look: Look) -> Frame {
        if look == Look::File {
            return Frame { sides: [320.0, 560.0], left: 64.0, right: 64.0, above: 56.0, below: 56.0, head: 24.0 };
        }
        let digits = |way: usize| grid.parts[way].iter().map(|p| p.end.to_string().len()).max().unwrap_or(1) as f64;
        let name = |d: usize| grid.name(d).chars().count().min(LONGEST_NAME) as f64;
        let across = grid.shown[1].map_or(0.0, |_| 32.0);
        Frame {
            sides: [150.0, 380.0],
            left: 12.0 + CHARACTER * grid.shown[0].map_or(0.0, |d| digits(0).max(name(d))),
            right: 12.0 + CHARACTER * digits(1) / 2.0,
            above: 8.0 + across + if grid.slices.iter().any(|s| !s.others.is_empty()) { 16.0 } else { 0.0 },
            below: grid.shown[0].map_or(8.0, |_| 28.0),
            head: 0.0,
        }
    }
}

/// Text beside the cells, or in one.
fn label(look: Look, x: f64, y: f64, anchor: &str, beside: bool, text: &str) -> String {
    let class = match (beside, look) {
        (false, _) => "",
        (true, Look::File) => " class=\"axis\"",
        (true, Look::Inline) => " opacity=\".7\"",
    };
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{class}>{}</text>\n", escape(text))
}

/// Draws all slices, one below the other.
pub(super) fn draw(grid: &Grid, title: &str, look: Look) -> String {
    let frame = Frame::of(grid, look);
    let sizes = [0, 1].map(|way| pixels(grid, way, &frame));
    let [height, width] = sizes.each_ref().map(|s| s.iter().sum::<f64>());
    let each = frame.above + height + frame.below;
    let (full, tall) = (frame.left + width + frame.right, each * grid.slices.len() as f64 + frame.head);
    let (attributes, full, mut shown) = match look {
        Look::Inline => (INLINE, full, String::new()),
        Look::File => {
            // A mesh of many ranks has a long name, which need not be seen whole.
            let least = 24.0 + CHARACTER * title.chars().count().min(LONGEST_TITLE) as f64;
            ("", full.max(least), format!("{STYLE}<text x=\"12\" y=\"20\">{}</text>\n", escape(title)))
        }
    };
    let beside = |x: f64, y: f64, anchor: &str, text: &str| label(look, x, y, anchor, true, text);
    for (i, slice) in grid.slices.iter().enumerate() {
        let top = frame.head + each * i as f64 + frame.above;
        if !slice.others.is_empty() {
            shown += &beside(12.0, top - 36.0, "start", &head(&grid.title(slice), LONGEST_TITLE));
        }
        if let Some(d) = grid.shown[1] {
            shown += &beside(frame.left, top - 20.0, "start", &head(&grid.name(d), LONGEST_NAME));
            shown += &numbers_above(grid, &sizes[1], frame.left, top - 5.0, look);
        }
        if let Some(d) = grid.shown[0] {
            let name = head(&grid.name(d), LONGEST_NAME);
            shown += &beside(frame.left - 6.0, top + height + 20.0, "end", &name);
            for (y, number) in numbers(grid, 0, &sizes[0]) {
                shown += &beside(frame.left - 6.0, top + y + 5.0, "end", &number.to_string());
            }
        }
        let mut y = top;
        for (r, row) in slice.cells.iter().enumerate() {
            let mut x = frame.left;
            for (c, holders) in row.iter().enumerate() {
                // Colours of neighbours differ: each is the golden angle on.
                let hue = ((r * row.len() + c) as f64 * 137.5) % 360.0;
                let size = (sizes[1][c], sizes[0][r]);
                shown += &cell(holders, (x, y), size, hue, look);
                x += size.0;
            }
            y += sizes[0][r];
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {full:.0} {tall:.0}\" width=\"{full:.0}\" height=\"{tall:.0}\" \
         role=\"img\"{attributes}>\n<title>{}</title>\n{shown}</svg>\n",
        escape(title)
    )
}

/// A part with its ranks.
fn cell(holders: &Holders, (x, y): (f64, f64), (w, h): (f64, f64), hue: f64, look: Look) -> String {
    let left_out = holders.0.is_empty();
    let fill = match (left_out, look) {
        (true, _) => "fill=\"none\"".to_string(),
        (false, Look::File) => format!("fill=\"hsl({hue:.0} 60% 80%)\""),
        (false, Look::Inline) => {
            format!("fill=\"hsl({hue:.0} 60% 50%)\" fill-opacity=\".3\" stroke=\"currentColor\" stroke-opacity=\".4\"")
        }
    };
    let all = holders.text();
    let hint = match (left_out, look) {
        (true, _) => "parts that are not shown".to_string(),
        (false, Look::File) => format!("ranks {all}"),
        (false, Look::Inline) => format!("ranks {}", head(&all, LONGEST_HINT)),
    };
    let mut out = format!(
        "<g><title>{}</title><rect class=\"part\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" {fill}/>",
        escape(&hint)
    );
    let lines = holders.lines((w / CHARACTER) as usize, ((h - 6.0) / LINE) as usize);
    let fits = |line: &String| line.chars().count() as f64 * CHARACTER <= w;
    if lines.len() as f64 * LINE <= h && lines.iter().all(fits) {
        let first = y + (h - LINE * lines.len() as f64) / 2.0 + 12.0;
        for (i, line) in lines.iter().enumerate() {
            out += label(look, x + w / 2.0, first + LINE * i as f64, "middle", false, line).trim_end();
        }
    }
    out + "</g>\n"
}

/// The numbers along one way: where parts begin and the last one ends; of a mesh the coordinates, in the middle of cells.
fn numbers(grid: &Grid, way: usize, sizes: &[f64]) -> Vec<(f64, usize)> {
    let (mesh, parts) = (grid.axes.is_some(), &grid.parts[way]);
    let mut at = 0.0;
    let mut all = vec![];
    for (i, (part, size)) in parts.iter().zip(sizes).enumerate() {
        match (mesh, grid.gaps[way] == Some(i)) {
            (true, true) => {}
            (true, false) => all.push((at + size / 2.0, part.start)),
            (false, _) => all.push((at, part.start)),
        }
        at += size;
    }
    if let (false, Some(last)) = (mesh, parts.last()) {
        all.push((at, last.end));
    }
    all
}

/// The numbers along the upper edge, without those that would overlap others.
fn numbers_above(grid: &Grid, sizes: &[f64], left: f64, y: f64, look: Look) -> String {
    let half = |number: usize| CHARACTER * number.to_string().len() as f64 / 2.0;
    let all = numbers(grid, 1, sizes);
    let begin_of_last = all.last().map_or(0.0, |(x, number)| x - half(*number));
    let (mut free, mut out) = (f64::NEG_INFINITY, String::new());
    for (i, (x, number)) in all.iter().enumerate() {
        let (begin, end) = (x - half(*number), x + half(*number));
        if i + 1 == all.len() || (begin > free && end + CHARACTER / 2.0 <= begin_of_last) {
            out += &label(look, left + x, y, "middle", true, &number.to_string());
            free = end + CHARACTER / 2.0;
        }
    }
    out
}

/// Pixels of the parts along one way: as their sizes are, and none under the least.
fn pixels(grid: &Grid, way: usize, frame: &Frame) -> Vec<f64> {
    let lengths = grid.lengths(way);
    let total: usize = lengths.iter().sum();
    let side = if grid.shown[way].is_some() { frame.sides[way] } else { 2.0 * LEAST };
    let len = |(i, len): (usize, &usize)| match grid.gaps[way] == Some(i) {
        true => LEAST,
        false => (side * *len as f64 / total.max(1) as f64).max(LEAST),
    };
    lengths.iter().enumerate().map(len).collect()
}
