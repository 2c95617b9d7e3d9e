//! Ranks and n-dimensional meshes of them.

use super::device::Device;
use crate::error::{CallSite, Error, Result};
use crate::intern::{Interned, Interner};
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// The number of a rank in the world, from 0. A rank is one process (in tests: one thread) that drives one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rank(pub usize);

/// The number of a mesh axis; the outermost is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MeshAxis(pub usize);

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PlacementData {
    device: Device,
    dims: SmallVec<[usize; 4]>,
    names: SmallVec<[Option<String>; 4]>,
    /// Row-major over the mesh.
    ranks: Vec<usize>,
}

static TABLE: Interner<PlacementData> = Interner::new();

/// A device kind and an n-d mesh of distinct ranks whose axes may have names. Interned: cloning and comparing are cheap.
#[derive(Clone)]
pub struct Placement(Arc<Interned<PlacementData>>);

impl Placement {
    /// Makes a mesh of `ranks`, row-major, with sizes `dims`.
    ///
    /// # Errors
    /// If the product of `dims` is not the number of ranks, if a rank is given twice, or if there is none.
    ///
    /// ```
    /// use oflow::placement::{Device, Placement};
    /// let p = Placement::new(Device::Cpu, &[0, 1, 2, 3], &[2, 2])?;
    /// assert_eq!(p.to_string(), "cpu[2, 2]");
    /// # Ok::<(), oflow::Error>(())
    /// ```
    #[track_caller]
    pub fn new(device: Device, ranks: &[usize], dims: &[usize]) -> Result<Placement> {
        let site = CallSite::here();
        Self::build(device, ranks.to_vec(), dims.into(), dims.iter().map(|_| None).collect()).map_err(|e| e.at(site))
    }

    /// A 1-d mesh of the ranks `0..world`. (`Placement::all` takes the world from the rank context.)
    pub fn of_world(device: Device, world: usize) -> Result<Placement> {
        let ranks: Vec<usize> = (0..world).collect();
        Self::new(device, &ranks, &[world])
    }

    /// Makes a mesh of `ranks` with axes of these sizes, each with a name or without.
    pub(crate) fn build(
        device: Device,
        ranks: Vec<usize>,
        dims: SmallVec<[usize; 4]>,
        names: SmallVec<[Option<String>; 4]>,
    ) -> Result<Placement> {
        let count = dims.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        if count != Some(ranks.len()) || ranks.is_empty() || dims.is_empty() {
            let needs = count.map_or("too many".to_string(), |n| n.to_string());
            let message = format!("a {dims:?} mesh needs {needs} ranks; this placement has {}", ranks.len());
            return Err(Error::placement(message)
                .help("the product of the mesh sizes must be the number of ranks, and at least 1"));
        }
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        if let Some(w) = sorted.windows(2).find(|w| w[0] == w[1]) {
            return Err(Error::placement(format!("rank {} is in the placement twice", w[0])));
        }
        for (i, n) in names.iter().enumerate() {
            if n.is_some() && names[..i].contains(n) {
                return Err(Error::placement(format!("two mesh axes are named '{}'", n.as_deref().unwrap_or(""))));
            }
        }
        Ok(Placement(TABLE.intern(PlacementData { device, dims, names, ranks })))
    }

    /// Returns the same ranks in the same order as a mesh with named axes, outermost first.
    ///
    /// # Errors
    /// If the product of the sizes is not the number of ranks.
    #[track_caller]
    pub fn mesh(&self, axes: &[(&str, usize)]) -> Result<Placement> {
        let site = CallSite::here();
        Self::build(
            self.device(),
            self.0.ranks.clone(),
            axes.iter().map(|a| a.1).collect(),
            axes.iter().map(|a| Some(a.0.to_string())).collect(),
        )
        .map_err(|e| e.at(site))
    }

    /// Returns the slice of the mesh at `index` of `axis`: a placement with one axis fewer. The slice of a 1-d mesh is a mesh of one
    /// rank.
    pub fn slice(&self, axis: impl AxisRef, index: usize) -> Result<Placement> {
        let MeshAxis(a) = axis.find(self)?;
        if index >= self.dims()[a] {
            return Err(Error::placement(format!("index {index} is outside axis {a} of {self}")));
        }
        let ranks = (0..self.len()).filter(|i| self.coord(*i)[a] == index).map(|i| self.0.ranks[i]).collect();
        let (mut dims, mut names) = (self.0.dims.clone(), self.0.names.clone());
        dims.remove(a);
        names.remove(a);
        if dims.is_empty() {
            dims.push(1);
            names.push(None);
        }
        Self::build(self.device(), ranks, dims, names)
    }

    /// Returns the same mesh on another kind of device.
    pub fn on(&self, device: Device) -> Placement {
        Placement(TABLE.intern(PlacementData { device, ..(**self.0).clone() }))
    }

    /// Returns the axis of a name or number.
    pub fn axis(&self, axis: impl AxisRef) -> Result<MeshAxis> {
        axis.find(self)
    }
    /// Process-local id; equal ids mean equal placements.
    pub fn id(&self) -> u64 {
        self.0.id()
    }
    /// Returns the device kind.
    pub fn device(&self) -> Device {
        self.0.device
    }
    /// Returns the sizes of the mesh, outermost axis first.
    pub fn dims(&self) -> &[usize] {
        &self.0.dims
    }
    /// Returns the names of the axes, outermost first; `None` for an axis without a name.
    pub fn names(&self) -> &[Option<String>] {
        &self.0.names
    }
    /// Returns the ranks, row-major over the mesh.
    pub fn ranks(&self) -> &[usize] {
        &self.0.ranks
    }
    /// Returns the number of ranks.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.0.ranks.len()
    }
    /// Returns the number of mesh axes.
    pub fn axes(&self) -> usize {
        self.0.dims.len()
    }
    /// Returns the row-major position of a rank in the mesh; `None` for a rank outside.
    pub fn position(&self, rank: usize) -> Option<usize> {
        self.0.ranks.iter().position(|r| *r == rank)
    }
    /// Returns the mesh coordinates of a position, outermost first.
    pub fn coord(&self, position: usize) -> SmallVec<[usize; 4]> {
        let mut coord: SmallVec<[usize; 4]> = SmallVec::from_elem(0, self.axes());
        let mut rest = position;
        for a in (0..self.axes()).rev() {
            coord[a] = rest % self.dims()[a];
            rest /= self.dims()[a];
        }
        coord
    }
    /// Returns the row-major position of mesh coordinates.
    pub fn position_of(&self, coord: &[usize]) -> usize {
        coord.iter().zip(self.dims()).fold(0, |p, (c, d)| p * d + c)
    }
    /// The positions that differ from `position` in `axes` only, row-major by their coordinates on them (outermost axis
    /// first), and the place of `position` among them: the members of the group in which a collective along these axes
    /// runs.
    pub fn group_along(
        &self,
        position: usize,
        axes: impl DoubleEndedIterator<Item = usize> + Clone,
    ) -> (Vec<usize>, usize) {
        let mut coord = self.coord(position);
        let me = axes.clone().fold(0, |m, a| m * self.dims()[a] + coord[a]);
        let count: usize = axes.clone().map(|a| self.dims()[a]).product();
        let member = |mut i: usize| {
            for a in axes.clone().rev() {
                coord[a] = i % self.dims()[a];
                i /= self.dims()[a];
            }
            self.position_of(&coord)
        };
        ((0..count).map(member).collect(), me)
    }
}

/// A mesh axis given by number or name.
pub trait AxisRef {
    /// Returns the axis in a placement.
    fn find(self, placement: &Placement) -> Result<MeshAxis>;
}

impl AxisRef for MeshAxis {
    fn find(self, p: &Placement) -> Result<MeshAxis> {
        self.0.find(p)
    }
}
impl AxisRef for usize {
    fn find(self, p: &Placement) -> Result<MeshAxis> {
        if self < p.axes() { Ok(MeshAxis(self)) } else { Err(Error::placement(format!("{p} has no axis {self}"))) }
    }
}
impl AxisRef for &str {
    fn find(self, p: &Placement) -> Result<MeshAxis> {
        p.names()
            .iter()
            .position(|n| n.as_deref() == Some(self))
            .map(MeshAxis)
            .ok_or_else(|| Error::placement(format!("{p} has no axis named '{self}'")))
    }
}

impl PartialEq for Placement {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for Placement {}
impl Hash for Placement {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

/// Largest number of ranks of a placement that is read from text without a list of them.
const MOST_RANKS: usize = 1 << 16;

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.device())?;
        for (i, (d, n)) in self.dims().iter().zip(self.names()).enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            match n {
                Some(n) => write!(f, "{n}={d}")?,
                None => write!(f, "{d}")?,
            }
        }
        f.write_str("]")?;
        // Ranks that are not simply 0, 1, 2 … are worth telling.
        if self.ranks().iter().enumerate().any(|(i, r)| i != *r) {
            write!(f, " of ranks {:?}", self.ranks())?;
        }
        Ok(())
    }
}

impl FromStr for Placement {
    type Err = Error;
    /// Reads what a placement prints: `cpu[2, 2]`, `cuda[dp=2, tp=4]`, `cpu[2] of ranks [3, 1]`. Without a list the ranks are 0, 1, 2 ….
    fn from_str(s: &str) -> Result<Placement> {
        let bad = || {
            Error::parse(format!("'{s}' is not a placement"))
                .help("write cpu[2, 2] or cpu[dp=2, tp=2] of ranks [3, 1, 0, 2]")
        };
        let (mesh, ranks) = match s.split_once(" of ranks ") {
            Some((mesh, ranks)) => (mesh, Some(ranks)),
            None => (s, None),
        };
        let inside = |t: &str| Some(t.trim().strip_suffix(']')?.split_once('[')?.1.to_string());
        let device = mesh.split('[').next().unwrap_or_default().trim().parse()?;
        let (mut dims, mut names) = (SmallVec::new(), SmallVec::new());
        for axis in inside(mesh).ok_or_else(bad)?.split(',') {
            let (name, size) = match axis.rsplit_once('=') {
                Some((name, size)) => (Some(name.trim().to_string()), size),
                None => (None, axis),
            };
            dims.push(size.trim().parse().map_err(|_| bad())?);
            names.push(name);
        }
        let count = dims.iter().try_fold(1usize, |n: usize, d: &usize| n.checked_mul(*d));
        let ranks = match ranks {
            Some(list) => {
                let list = inside(list).ok_or_else(bad)?;
                list.split(',').map(|r| r.trim().parse().map_err(|_| bad())).collect::<Result<Vec<usize>>>()?
            }
            None => (0..count.filter(|n| *n <= MOST_RANKS).ok_or_else(bad)?).collect(),
        };
        Self::build(device, ranks, dims, names)
    }
}

impl fmt::Debug for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meshes_slices_groups() {
        let p = Placement::of_world(Device::Cpu, 6).unwrap().mesh(&[("dp", 2), ("tp", 3)]).unwrap();
        assert_eq!(p.to_string(), "cpu[dp=2, tp=3]");
        assert_eq!(p.group_along(4, [0].into_iter()), (vec![1, 4], 1));
        assert_eq!(p.group_along(5, [1].into_iter()), (vec![3, 4, 5], 2));
        assert_eq!(p.slice("dp", 1).unwrap().ranks(), [3, 4, 5]);
        assert_eq!(p.slice("dp", 1).unwrap().to_string(), "cpu[tp=3] of ranks [3, 4, 5]");
        assert_eq!(p.slice("tp", 2).unwrap().ranks(), [2, 5]);
        assert_eq!(p, Placement::of_world(Device::Cpu, 6).unwrap().mesh(&[("dp", 2), ("tp", 3)]).unwrap());
        for i in 0..6 {
            assert_eq!(p.position_of(&p.coord(i)), i);
        }
    }

    #[test]
    fn what_is_printed_is_read() {
        let w = Placement::of_world(Device::Cpu, 6).unwrap();
        let all = [w.clone(), w.mesh(&[("dp", 2), ("tp", 3)]).unwrap(), w.mesh(&[("a", 6)]).unwrap().on(Device::Cuda)];
        let some = [Placement::new(Device::Cpu, &[3, 1], &[2]).unwrap(), all[1].slice("tp", 1).unwrap()];
        for p in all.iter().chain(&some) {
            assert_eq!(&p.to_string().parse::<Placement>().unwrap(), p);
        }
        for bad in [
            "",
            "cpu",
            "cpu[",
            "cpu[]",
            "cpu[2",
            "cpu[x]",
            "cpu[2] of ranks [0]",
            "cpu[2] of ranks [1, 1]",
            "xpu[2]",
            "cpu[99999999]",
        ] {
            assert!(bad.parse::<Placement>().is_err(), "{bad}");
        }
    }

    #[test]
    fn wrong_meshes_are_errors() {
        let w = Placement::of_world(Device::Cpu, 4).unwrap();
        assert!(
            w.mesh(&[("a", 3)]).unwrap_err().to_string().contains("a [3] mesh needs 3 ranks; this placement has 4")
        );
        assert!(w.mesh(&[("a", usize::MAX), ("b", 2)]).unwrap_err().to_string().contains("needs too many ranks"));
        assert!(Placement::new(Device::Cpu, &[0, 0], &[2]).is_err());
        assert!(w.mesh(&[("a", 2), ("a", 2)]).is_err());
        assert!(w.slice("tp", 0).unwrap_err().to_string().contains("no axis named 'tp'"));
        assert!(Placement::new(Device::Cpu, &[], &[]).is_err());
    }
}
