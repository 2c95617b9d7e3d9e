//! Pictures of bounded size: of many parts the first and the last.

use super::grid::{Grid, Holders};

/// Rows and columns of a folded picture; fewer where it has many of both.
const MOST: usize = 16;
const MOST_OF_BOTH: usize = 9;
/// Cells of all its slices together, unless one slice has more.
const MOST_CELLS: usize = 128;

impl Grid {
    /// Returns the grid with at most 256 cells: an empty cell stands for the parts between the first and the last.
    ///
    /// ```
    /// use oflow::{placement::{Device, Placement}, sbp, sbp::picture::Grid};
    /// let mesh = Placement::of_world(Device::Cpu, 256)?;
    /// let grid = Grid::new(&[4096, 4096], &mesh, &sbp![S(0)]);
    /// assert_eq!((grid.size(), grid.folded().size()), ([256, 1], [16, 1]));
    /// # Ok::<(), oflow::Error>(())
    /// ```
    pub fn folded(mut self) -> Grid {
        let [rows, columns] = [0, 1].map(|way| self.parts[way].len());
        let both = rows.min(MOST) * columns.min(MOST) > MOST_CELLS;
        let most = if both { MOST_OF_BOTH } else { MOST };
        for way in [0, 1] {
            self.fold(way, most);
        }
        let cells = self.parts[0].len() * self.parts[1].len();
        let slices = (MOST_CELLS / cells.max(1)).max(1);
        self.more = self.slices.len().saturating_sub(slices);
        self.slices.truncate(slices);
        self
    }

    /// Leaves out the parts between the first and the last.
    fn fold(&mut self, way: usize, most: usize) {
        let parts = &mut self.parts[way];
        if parts.len() <= most {
            return;
        }
        let first = most / 2;
        let left_out = first..parts.len() - (most - first - 1);
        let all = parts[first].start..parts[left_out.end - 1].end;
        parts.splice(left_out.clone(), std::iter::once(all));
        self.gaps[way] = Some(first);
        for slice in &mut self.slices {
            match way {
                0 => {
                    let row = vec![Holders::default(); slice.cells[first].len()];
                    slice.cells.splice(left_out.clone(), [row]);
                }
                _ => slice.cells.iter_mut().for_each(|row| {
                    row.splice(left_out.clone(), [Holders::default()]);
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::tests::{each, mesh};
    use super::super::{Grid, Look};

    #[test]
    fn small_grids_are_as_they_were() {
        each(|shape, mesh, sbp| {
            let svg = |grid: &Grid| grid.svg("", Look::Inline);
            let grid = Grid::new(shape, mesh, sbp);
            let before = svg(&grid);
            assert_eq!(svg(&grid.folded()), before, "{shape:?} {sbp} on {mesh}");
        });
    }

    #[test]
    fn pictures_of_many_ranks_are_bounded() {
        let cases = [
            ("256", "[S(0)]", [16, 1]),
            ("256", "[S(1)]", [1, 16]),
            ("16,16", "[S(0), S(1)]", [9, 9]),
            ("8,32", "[S(0), S(1)]", [8, 16]),
            ("64,2,2", "[S(0), S(1), S(2)]", [2 * 16, 2]),
            ("4,8,8", "[S(0), S(1), S(2)]", [2 * 8, 8]),
            ("16,16,16", "[S(0), S(1), S(2)]", [9, 9]),
            ("4096", "[B]", [1, 1]),
            ("4096", "[P(sum)]", [1, 1]),
            ("64,64", "[P(max), S(0)]", [16, 1]),
        ];
        for (ranks, sbp, size) in cases {
            let mesh = mesh(ranks);
            let grid = Grid::new(&[1 << 14, 1 << 15, 1 << 16], &mesh, &sbp.parse().unwrap()).folded();
            let svg = grid.svg("", Look::Inline).unwrap();
            assert!(svg.len() < 100_000, "{sbp} on {ranks}: {} bytes", svg.len());
            assert!(grid.text(200).is_none_or(|text| text.len() < 100_000), "{sbp} on {ranks}");
            let rows: usize = grid.slices.iter().map(|s| s.cells.len()).sum();
            assert!(grid.slices.iter().flat_map(|s| &s.cells).all(|row| row.len() == size[1]), "{sbp} on {ranks}");
            assert_eq!((grid.size(), rows), (size, size[0]), "{sbp} on {ranks}");
            // The last rank is there, if no picture has been left out.
            let last = mesh.len() - 1;
            let seen = grid.slices.iter().flat_map(|s| s.cells.iter().flatten()).any(|h| h.ranks().contains(&last));
            assert_eq!(seen, grid.more == 0, "{sbp} on {ranks}");
        }
    }

    #[test]
    fn what_is_left_out_stands_in_one_part() {
        let grid = Grid::new(&[200], &mesh("100"), &"S(0)".parse().unwrap()).folded();
        let parts = &grid.parts[1];
        assert_eq!((parts.len(), &parts[7], &parts[8], &parts[9]), (16, &(14..16), &(16..186), &(186..188)));
        assert!(parts.windows(2).all(|p| p[0].end == p[1].start));
        let text = grid.text(200).unwrap();
        assert!(text.contains("|  7  |  …  | 93  |"), "{text}");
    }
}
