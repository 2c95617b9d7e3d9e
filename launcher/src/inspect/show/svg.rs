//! The picture as SVG, in colours that suit light and dark pages.

use super::grid::Grid;
use crate::markup::escape;

/// Cells that are drawn at most.
pub(super) const MOST_CELLS: usize = 4096;
/// Pixels of the picture that cells share, across and down, and the least of a cell.
const SIDES: [f64; 2] = [320.0, 560.0];
const LEAST: f64 = 26.0;
/// Characters of the title that make a picture wider.
const LONGEST_TITLE: usize = 120;
/// Pixels of a character, and of a line.
const CHARACTER: f64 = 8.0;
const LINE: f64 = 17.0;
/// Pixels around the cells.
const MARGIN: [f64; 2] = [56.0, 64.0];

const STYLE: &str = "<style>
text { font-family: ui-monospace, monospace; font-size: 13px; fill: #222 } .axis { fill: #666 } rect { stroke: #fff; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #eee } .axis { fill: #aaa } rect { stroke: #111 } .part { fill-opacity: .55 } }
</style>
";

/// Draws all slices, one below the other.
pub(super) fn draw(grid: &Grid, title: &str) -> String {
    let sizes = [0, 1].map(|way| lengths(grid, way));
    let [height, width] = sizes.each_ref().map(|s| s.iter().sum::<f64>());
    let each = height + 2.0 * MARGIN[0];
    let (full, tall) = (width + 2.0 * MARGIN[1], each * grid.slices.len() as f64 + 24.0);
    // A mesh of many ranks has a long name, which need not be seen whole.
    let full = full.max(24.0 + CHARACTER * title.chars().count().min(LONGEST_TITLE) as f64);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {full:.0} {tall:.0}\" width=\"{full:.0}\" height=\"{tall:.0}\" role=\"img\">\n\
         <title>{0}</title>\n{STYLE}<text x=\"12\" y=\"20\">{0}</text>\n",
        escape(title)
    );
    let label = |x: f64, y: f64, anchor: &str, class: &str, text: &str| {
        format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{class}>{}</text>\n", escape(text))
    };
    let axis = " class=\"axis\"";
    for (i, slice) in grid.slices.iter().enumerate() {
        let top = 24.0 + each * i as f64;
        if !slice.others.is_empty() {
            out += &label(12.0, top + 20.0, "start", axis, super::text::title(slice).trim());
        }
        if let Some(d) = grid.shown[1] {
            out += &label(MARGIN[1], top + 36.0, "start", axis, &format!("dim {d}"));
        }
        if let Some(d) = grid.shown[0] {
            out += &label(MARGIN[1], top + MARGIN[0] + height + 20.0, "end", axis, &format!("dim {d}"));
        }
        let mut y = top + MARGIN[0];
        for (r, row) in slice.cells.iter().enumerate() {
            if grid.shown[0].is_some() {
                out += &label(MARGIN[1] - 6.0, y + 5.0, "end", axis, &grid.parts[0][r].start.to_string());
            }
            let mut x = MARGIN[1];
            for (c, holders) in row.iter().enumerate() {
                if r == 0 && grid.shown[1].is_some() {
                    out += &label(x, top + MARGIN[0] - 5.0, "middle", axis, &grid.parts[1][c].start.to_string());
                }
                let (w, h) = (sizes[1][c], sizes[0][r]);
                // Colours of neighbours differ: each is the golden angle on.
                let hue = ((r * row.len() + c) as f64 * 137.5) % 360.0;
                let all = escape(&holders.text());
                out += &format!(
                    "<g><title>ranks {all}</title><rect class=\"part\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" \
                     height=\"{h:.1}\" fill=\"hsl({hue:.0} 60% 80%)\"/>"
                );
                let lines = holders.lines((w / CHARACTER) as usize, ((h - 6.0) / LINE) as usize);
                let fits = |line: &String| line.chars().count() as f64 * CHARACTER <= w;
                if lines.len() as f64 * LINE <= h && lines.iter().all(fits) {
                    let first = y + (h - LINE * lines.len() as f64) / 2.0 + 12.0;
                    for (i, line) in lines.iter().enumerate() {
                        out += label(x + w / 2.0, first + LINE * i as f64, "middle", "", line).trim_end();
                    }
                }
                out += "</g>\n";
                x += w;
            }
            if let (0, Some(_), Some(last)) = (r, grid.shown[1], grid.parts[1].last()) {
                out += &label(x, top + MARGIN[0] - 5.0, "middle", axis, &last.end.to_string());
            }
            y += sizes[0][r];
        }
        if let (Some(_), Some(last)) = (grid.shown[0], grid.parts[0].last()) {
            out += &label(MARGIN[1] - 6.0, y + 5.0, "end", axis, &last.end.to_string());
        }
    }
    out + "</svg>\n"
}

/// Pixels of the parts along one way: as their sizes are, and none under the least.
fn lengths(grid: &Grid, way: usize) -> Vec<f64> {
    let total: usize = grid.parts[way].iter().map(|p| p.len()).sum();
    let side = if grid.shown[way].is_some() { SIDES[way] } else { 2.0 * LEAST };
    grid.parts[way].iter().map(|p| (side * p.len() as f64 / total.max(1) as f64).max(LEAST)).collect()
}
