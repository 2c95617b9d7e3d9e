//! Pictures of layouts: which rank holds which part of a tensor, as text and as SVG.
//!
//! A [`Grid`] has the parts of a tensor along two dims and the ranks of each part. `oflow show`, the page of `oflaunch --watch` and notebooks
//! draw it. Each rank of a placement stands in a grid once, so a grid is as large as the placement; [`Grid::folded`] bounds it.

mod fold;
mod grid;
mod svg;
mod text;

pub use grid::Grid;
pub use svg::Look;

use super::types::ReduceOp;
use grid::Holders;

impl Grid {
    /// Returns the numbers of rows and columns; the pictures of other dims stand below each other.
    pub fn size(&self) -> [usize; 2] {
        [self.parts[0].len() * self.slices.len(), self.parts[1].len()]
    }

    /// Draws the parts as text, in lines of at most `width` characters. Returns `None` if there are too many.
    ///
    /// ```
    /// use oflow::{placement::{Device, Placement}, sbp, sbp::picture::Grid};
    /// let mesh = Placement::new(Device::Cpu, &[0, 1, 2, 3], &[2, 2])?;
    /// let text = Grid::new(&[6, 4], &mesh, &sbp![P(sum), S(1)]).text(30);
    /// assert_eq!(text.as_deref(), Some("
    ///     dim 1
    ///     0       2       4
    ///   0 +-------+-------+
    ///     | 0 + 2 | 1 + 3 |
    ///   6 +-------+-------+
    ///   dim 0
    /// "));
    /// # Ok::<(), oflow::Error>(())
    /// ```
    pub fn text(&self, width: usize) -> Option<String> {
        text::draw(self, width)
    }

    /// Draws the parts as SVG. Returns `None` if there are more than [`Grid::MOST_CELLS`].
    pub fn svg(&self, title: &str, look: Look) -> Option<String> {
        (self.size().iter().product::<usize>() <= Grid::MOST_CELLS).then(|| svg::draw(self, title, look))
    }

    /// Parts that a picture as SVG may have.
    pub const MOST_CELLS: usize = 4096;

    /// Returns what the signs of the picture mean, a sentence each: copies, sums, ranks that hold nothing.
    pub fn notes(&self) -> Vec<String> {
        let cells = || self.slices.iter().flat_map(|s| s.cells.iter().flatten());
        let mut notes = vec![];
        if cells().any(|holders| holders.0.len() > 1) {
            notes.push("a, b: each holds a copy".to_string());
        }
        let ops: Vec<ReduceOp> = cells().map(Holders::reductions).find(|ops| !ops.is_empty()).unwrap_or_default();
        if ops.contains(&ReduceOp::Sum) {
            notes.push("a + b: the values are the sum of what these ranks hold".into());
        }
        for op in [ReduceOp::Max, ReduceOp::Min].into_iter().filter(|op| ops.contains(op)) {
            notes.push(format!("{op}(a, b): the values are the {op} of what these ranks hold"));
        }
        if self.more > 0 {
            notes.push(format!("… and {} more pictures", self.more));
        }
        notes.extend(self.empty_note());
        notes
    }

    /// Returns a sentence on the ranks whose shards are empty, if there are any.
    pub fn empty_note(&self) -> Option<String> {
        let (first, more) = self.empty.split_first()?;
        if self.slices.is_empty() {
            return Some("no rank holds anything: a dim has no elements".into());
        }
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        Some(format!("rank {first}{more}: nothing, there are fewer elements along a dim than parts"))
    }
}
