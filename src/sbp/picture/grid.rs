//! The parts of a tensor, and which ranks hold each.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::placement::Placement;
use crate::sbp::{NdSbp, ReduceOp, Sbp, shard_box};

/// The parts of a tensor along the dims that a picture shows, and the ranks that hold each.
pub struct Grid {
    /// The dim that goes down and the one that goes across; a vector has one, a scalar none.
    pub(super) shown: [Option<usize>; 2],
    /// The parts of these dims; one where there is no dim.
    pub(super) parts: [Vec<Range<usize>>; 2],
    /// The pictures: one, or one for each part along the other dims that are split.
    pub(super) slices: Vec<Slice>,
    /// The ranks whose shards are empty.
    pub(super) empty: Vec<usize>,
    /// The part each way that stands for those left out, and the number of slices left out.
    pub(super) gaps: [Option<usize>; 2],
    pub(super) more: usize,
    /// The names of a mesh's axes, of which a picture shows coordinates; none of a tensor, of which it shows ranges.
    pub(super) axes: Option<Vec<String>>,
}

/// The parts that lie in one place along the dims that a picture does not show.
pub(super) struct Slice {
    /// The other dims that are split, and the part of each.
    pub(super) others: Vec<(usize, Range<usize>)>,
    /// Row by row.
    pub(super) cells: Vec<Vec<Holders>>,
}

/// The ranks that hold a part: copies of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holders(pub(super) Vec<Term>);

/// A copy: what a rank holds, or what partial values make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Term {
    Rank(usize),
    Reduced(ReduceOp, Vec<Term>),
}

impl Grid {
    /// Returns the grid of a layout that [`check_layout`](crate::sbp::check_layout) accepts. Two dims are shown: those that are split come
    /// first, then the outermost.
    pub fn new(shape: &[usize], mesh: &Placement, sbp: &NdSbp) -> Grid {
        let axes = || sbp.iter().zip(mesh.dims());
        let split: Vec<usize> =
            (0..shape.len()).filter(|d| axes().any(|(s, n)| *s == Sbp::Split(*d) && *n > 1)).collect();
        Grid::with(shape, mesh, sbp, shown(shape.len(), &split), split)
    }

    /// The grid that shows those dims, of those that are split.
    fn with(shape: &[usize], mesh: &Placement, sbp: &NdSbp, shown: [Option<usize>; 2], split: Vec<usize>) -> Grid {
        let others: Vec<usize> = split.into_iter().filter(|d| !shown.contains(&Some(*d))).collect();
        let partial = |s: &Sbp| match s {
            Sbp::Partial(op) => Some(*op),
            _ => None,
        };
        let ops: Vec<ReduceOp> = sbp.iter().filter_map(partial).collect();

        let mut empty = vec![];
        let mut held: BTreeMap<Vec<usize>, Cells> = BTreeMap::new();
        let mut parts: [BTreeMap<usize, usize>; 2] = Default::default();
        let mut lengths: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for (position, rank) in mesh.ranks().iter().enumerate() {
            let part = shard_box(shape, mesh, sbp, position);
            if part.size.contains(&0) {
                empty.push(*rank);
                continue;
            }
            let mut at = [0; 2];
            for (way, d) in shown.iter().enumerate() {
                let (start, len) = d.map_or((0, 1), |d| (part.offset[d], part.size[d]));
                parts[way].insert(start, len);
                at[way] = start;
            }
            let elsewhere: Vec<usize> = others.iter().map(|d| part.offset[*d]).collect();
            lengths.extend(others.iter().map(|d| ((*d, part.offset[*d]), part.size[*d])));
            let coord = mesh.coord(position);
            let along = |wanted: &dyn Fn(&Sbp) -> bool| -> Vec<usize> {
                sbp.iter().zip(&coord).filter(|(s, _)| wanted(s)).map(|(_, c)| *c).collect()
            };
            let (copy, addend) = (along(&|s| *s == Sbp::Broadcast), along(&|s| partial(s).is_some()));
            held.entry(elsewhere).or_default().entry(at).or_default().entry(copy).or_default().push((addend, *rank));
        }
        let ranges = |all: &BTreeMap<usize, usize>| -> Vec<Range<usize>> {
            all.iter().map(|(start, len)| *start..start + len).collect()
        };
        let parts = parts.each_ref().map(ranges);
        let slices = held.into_iter().map(|(elsewhere, mut cells)| Slice {
            others: others.iter().zip(elsewhere).map(|(d, at)| (*d, at..at + lengths[&(*d, at)])).collect(),
            cells: parts[0]
                .iter()
                .map(|r| {
                    let mut cell = |c: &Range<usize>| cells.remove(&[r.start, c.start]).unwrap_or_default();
                    let copies = |c: &Range<usize>| cell(c).into_values().map(|all| reduced(&ops, &all)).collect();
                    parts[1].iter().map(copies).map(Holders).collect()
                })
                .collect(),
        });
        Grid { shown, slices: slices.collect(), parts, empty, gaps: [None; 2], more: 0, axes: None }
    }

    /// Returns the grid of a mesh: a cell for each rank. The innermost axes are shown that have more than one rank.
    pub fn of_mesh(mesh: &Placement) -> Grid {
        let sbp: Vec<Sbp> = (0..mesh.axes()).map(Sbp::Split).collect();
        let split: Vec<usize> = (0..mesh.axes()).filter(|axis| mesh.dims()[*axis] > 1).collect();
        let innermost = &split[split.len().saturating_sub(2)..];
        let shown = shown(mesh.axes(), innermost);
        let name = |(axis, name): (usize, &Option<String>)| name.clone().unwrap_or_else(|| format!("axis {axis}"));
        let names = mesh.names().iter().enumerate().map(name).collect();
        Grid { axes: Some(names), ..Grid::with(mesh.dims(), mesh, &NdSbp::new(&sbp), shown, split) }
    }

    /// The name of a dim, or of a mesh axis.
    pub(super) fn name(&self, d: usize) -> String {
        match self.axes.as_ref().and_then(|names| names.get(d)) {
            Some(name) => name.clone(),
            None => format!("dim {d}"),
        }
    }

    /// Where a slice lies along the dims that are not shown; empty if it is the only one.
    pub(super) fn title(&self, slice: &Slice) -> String {
        let at = |(d, r): &(usize, Range<usize>)| match self.axes.is_some() {
            true => format!("{}: {}", self.name(*d), r.start),
            false => format!("{}: {}..{}", self.name(*d), r.start, r.end),
        };
        slice.others.iter().map(at).collect::<Vec<_>>().join(", ")
    }

    /// The lengths of the parts along one way; one that stands for others is as long as the part before it.
    pub(super) fn lengths(&self, way: usize) -> Vec<usize> {
        let len = |(i, part): (usize, &Range<usize>)| match self.gaps[way] == Some(i) && i > 0 {
            true => self.parts[way][i - 1].len(),
            false => part.len(),
        };
        self.parts[way].iter().enumerate().map(len).collect()
    }
}

/// A partial value: its coordinates along the axes of partial values, and its rank.
type Addend = (Vec<usize>, usize);

/// Copies of parts, by where these lie along the dims that are shown, then by the coordinates of the copy.
type Cells = BTreeMap<[usize; 2], BTreeMap<Vec<usize>, Vec<Addend>>>;

/// The value that partial ones make: those along inner axes are reduced first.
fn reduced(ops: &[ReduceOp], all: &[Addend]) -> Term {
    let (Some((op, inner)), Some((first, rank))) = (ops.split_first(), all.first()) else {
        return Term::Rank(all.first().map_or(0, |(_, rank)| *rank));
    };
    if all.len() == 1 {
        return Term::Rank(*rank);
    }
    let axis = first.len() - ops.len();
    let mut terms: Vec<Term> = vec![];
    for part in all.chunk_by(|a, b| a.0[axis] == b.0[axis]) {
        match reduced(inner, part) {
            Term::Reduced(same, more) if same == *op => terms.extend(more),
            term => terms.push(term),
        }
    }
    match terms.len() {
        1 => terms.swap_remove(0),
        _ => Term::Reduced(*op, terms),
    }
}

/// The dims that are shown.
fn shown(dims: usize, split: &[usize]) -> [Option<usize>; 2] {
    let mut first: Vec<usize> = split.iter().copied().chain((0..dims).filter(|d| !split.contains(d))).take(2).collect();
    first.sort_unstable();
    match first[..] {
        [down, across] => [Some(down), Some(across)],
        [across] => [None, Some(across)],
        _ => [None, None],
    }
}

impl Holders {
    /// The ranks as text: `0 + 2, 1 + 3` are two copies, each a sum of two; `…` are ranks of parts left out.
    pub(super) fn text(&self) -> String {
        if self.0.is_empty() {
            return "…".into();
        }
        self.0.iter().map(Term::text).collect::<Vec<_>>().join(", ")
    }

    /// The ranks as lines of at most some characters: all of them if they are no more than `most` lines, else the first and how many
    /// there are.
    pub(super) fn lines(&self, width: usize, most: usize) -> Vec<String> {
        let all = wrapped(&self.text(), width);
        let ranks = self.ranks();
        match ranks.first() {
            Some(first) if all.len() > most => wrapped(&format!("{first} … of {}", ranks.len()), width),
            _ => all,
        }
    }

    /// All ranks.
    pub(super) fn ranks(&self) -> Vec<usize> {
        self.0.iter().flat_map(Term::ranks).collect()
    }

    /// The reductions of partial values.
    pub(super) fn reductions(&self) -> Vec<ReduceOp> {
        self.0.first().map_or(vec![], Term::reductions)
    }
}

impl Term {
    fn text(&self) -> String {
        match self {
            Term::Rank(rank) => rank.to_string(),
            Term::Reduced(op, terms) => {
                let terms: Vec<String> = terms.iter().map(Term::text).collect();
                match op {
                    ReduceOp::Sum => terms.join(" + "),
                    op => format!("{op}({})", terms.join(", ")),
                }
            }
        }
    }

    fn ranks(&self) -> Vec<usize> {
        match self {
            Term::Rank(rank) => vec![*rank],
            Term::Reduced(_, terms) => terms.iter().flat_map(Term::ranks).collect(),
        }
    }

    fn reductions(&self) -> Vec<ReduceOp> {
        match self {
            Term::Rank(_) => vec![],
            Term::Reduced(op, terms) => [*op].into_iter().chain(terms[0].reductions()).collect(),
        }
    }
}

/// Text in lines of at most `width` characters; words that are longer have a line each.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Look;
    use super::*;
    use crate::placement::Device;
    use crate::sbp::check_layout;
    use oflow_kernels::DType;

    /// The mesh of these sizes: `2,3`.
    pub(crate) fn mesh(sizes: &str) -> Placement {
        let dims: Vec<usize> = sizes.split(',').map(|n| n.parse().unwrap()).collect();
        let ranks: Vec<usize> = (0..dims.iter().product()).collect();
        Placement::new(Device::Cpu, &ranks, &dims).unwrap()
    }

    /// All layouts of some tensors on some meshes.
    pub(crate) fn each(mut check: impl FnMut(&[usize], &Placement, &NdSbp)) {
        let sbps = ["B", "P(sum)", "P(max)", "S(0)", "S(1)", "S(2)"];
        for sizes in ["4", "2,3", "2,2,2", "11"] {
            let mesh = mesh(sizes);
            for shape in [&[][..], &[5], &[3, 8], &[4, 1, 7], &[0, 3], &[65536], &[70000, 4096]] {
                let mut layouts = vec![vec![]];
                for _ in 0..mesh.axes() {
                    layouts = layouts.iter().flat_map(|l| sbps.iter().map(|s| [&l[..], &[*s]].concat())).collect();
                }
                for layout in layouts {
                    let Ok(sbp) = format!("[{}]", layout.join(", ")).parse::<NdSbp>() else { continue };
                    if check_layout(shape, DType::F32, &mesh, &sbp).is_ok() {
                        check(shape, &mesh, &sbp);
                    }
                }
            }
        }
    }

    #[test]
    fn every_rank_stands_once_where_its_shard_lies() {
        let mut layouts = 0;
        each(|shape, mesh, sbp| {
            let grid = Grid::new(shape, mesh, sbp);
            let mut seen = vec![0; mesh.len()];
            grid.empty.iter().for_each(|rank| seen[*rank] += 1);
            for slice in &grid.slices {
                for (row, cells) in grid.parts[0].iter().zip(&slice.cells) {
                    for (column, holders) in grid.parts[1].iter().zip(cells) {
                        for rank in holders.ranks() {
                            seen[rank] += 1;
                            let part = shard_box(shape, mesh, sbp, rank);
                            let lies = |d: usize| part.offset[d]..part.offset[d] + part.size[d];
                            let shown =
                                grid.shown.iter().zip([row, column]).filter_map(|(d, at)| Some(((*d)?, at.clone())));
                            for (d, at) in shown.chain(slice.others.iter().cloned()) {
                                assert_eq!(lies(d), at, "rank {rank} of {shape:?} {sbp} on {mesh}");
                            }
                        }
                        let terms = |copy: &Term| (copy.ranks().len(), copy.reductions());
                        let same = |c: &[Term]| terms(&c[0]) == terms(&c[1]);
                        assert!(holders.0.windows(2).all(same), "{shape:?} {sbp} on {mesh}");
                    }
                }
            }
            assert!(seen.iter().all(|times| *times == 1), "{seen:?}: {shape:?} {sbp} on {mesh}");
            layouts += 1;
        });
        assert!(layouts > 300, "{layouts}");
    }

    #[test]
    fn pictures_keep_their_width() {
        each(|shape, mesh, sbp| {
            let grid = Grid::new(shape, mesh, sbp);
            for width in [20, 40, 80, 200] {
                let Some(text) = grid.text(width) else { continue };
                for line in text.lines() {
                    assert!(line.chars().count() <= width, "{line:?} of {shape:?} {sbp} on {mesh}");
                }
            }
            for look in [Look::File, Look::Inline] {
                let svg = grid.svg("<&>", look).unwrap();
                assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains("&lt;&amp;&gt;"));
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            }
        });
    }

    #[test]
    fn holders_as_text() {
        let of = |sbp: &str, sizes: &str| {
            let grid = Grid::new(&[4], &mesh(sizes), &sbp.parse().unwrap());
            grid.slices[0].cells[0][0].clone()
        };
        assert_eq!(of("[B, P(sum)]", "2,2").text(), "0 + 1, 2 + 3");
        assert_eq!(of("[P(max), B]", "2,2").text(), "max(0, 2), max(1, 3)");
        assert_eq!(of("[P(sum), P(sum)]", "2,2").text(), "0 + 1 + 2 + 3");
        // Inner axes are reduced first.
        assert_eq!(of("[P(sum), P(max)]", "2,2").text(), "max(0, 1) + max(2, 3)");
        assert_eq!(of("[P(min), P(sum)]", "2,2").text(), "min(0 + 1, 2 + 3)");
        assert_eq!(of("[P(min), B, P(sum)]", "2,2,1").text(), "min(0, 2), min(1, 3)");
        let two = of("[B, P(sum)]", "2,2");
        assert_eq!(two.lines(6, 4), ["0 + 1,", "2 + 3"]);
        assert_eq!(two.lines(3, 2), ["0 …", "of", "4"]);
    }

    #[test]
    fn meshes_have_a_cell_for_each_rank() {
        let all = Placement::new(Device::Cpu, &[7, 3, 5, 1, 0, 2, 4, 6], &[8]).unwrap();
        let mesh = all.mesh(&[("<pp>", 2), ("dp", 2), ("tp", 2)]).unwrap();
        let grid = Grid::of_mesh(&mesh);
        let svg = grid.svg("", Look::Inline).unwrap();
        assert!(svg.contains(">&lt;pp&gt;: 0<") && svg.contains(">&lt;pp&gt;: 1<") && svg.contains(">dp<"), "{svg}");
        assert_eq!((svg.matches("<rect").count(), grid.size(), grid.notes()), (8, [4, 2], vec![]));
        let text = Grid::of_mesh(&all.mesh(&[("dp", 4), ("tp", 2)]).unwrap()).text(80).unwrap();
        assert!(text.contains("tp\n") && text.contains("  dp\n") && !text.contains("dim"), "{text}");
        assert!(text.contains("|           7            |           3            |"), "{text}");
    }
}
