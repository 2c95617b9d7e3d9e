//! What tests that carry plans out share: memory of shards, and random boxings that every rank draws alike.

use super::oracle::{mesh, sbps};
use oflow::boxing::Layout;
use oflow::comm::Tag;
use oflow::kernels::view::contiguous_strides;
use oflow::kernels::{DType, View};
use oflow::placement::Placement;
use oflow::sbp::NdSbp;
pub use oflow::testing::Random;

/// Bytes aligned for every dtype, at least one, so that the address is that of an allocation.
pub struct Memory(Vec<u128>);

impl Memory {
    pub fn new(bytes: usize) -> Memory {
        Memory(vec![0x5555_5555_5555_5555; bytes / 16 + 1])
    }
    pub fn ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
    pub fn bytes(&mut self, len: usize) -> &mut [u8] {
        // SAFETY: the vector holds more than `len` bytes and is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.ptr(), len) }
    }
}

/// A view of a shard's bytes; `strided` stores it with the dims reversed.
pub fn view(memory: &mut Memory, shard: &[u8], dtype: DType, size: &[usize], strided: bool) -> View {
    let mut strides = contiguous_strides(size);
    if strided {
        let reversed: Vec<usize> = size.iter().rev().copied().collect();
        strides = contiguous_strides(&reversed).into_iter().rev().collect();
    }
    let element = dtype.size();
    let to = memory.bytes(shard.len());
    for (i, e) in shard.chunks(element).enumerate() {
        let (mut rest, mut at) = (i, 0);
        for d in (0..size.len()).rev() {
            at += (rest % size[d]) * strides[d] as usize;
            rest /= size[d];
        }
        to[at * element..(at + 1) * element].copy_from_slice(e);
    }
    // SAFETY: the memory holds all elements, outlives the view and is only read through it.
    unsafe { View::from_raw(memory.ptr(), dtype, size.into(), strides) }
}

/// New memory of a contiguous shard.
pub fn room(memory: &mut Memory, dtype: DType, size: &[usize]) -> View {
    *memory = Memory::new(size.iter().product::<usize>() * dtype.size());
    // SAFETY: the memory holds all elements, outlives the view and is this rank's alone.
    unsafe { View::from_raw(memory.ptr(), dtype, size.into(), contiguous_strides(size)) }
}

pub fn tag(ordinal: usize) -> Tag {
    Tag { ordinal: ordinal as u64, hash: 1, op: "to_global", file: "boxing.rs", line: 1, scope: Default::default() }
}

/// What tests of boxing draw.
pub trait Draws {
    /// One to three axes over some of the world's ranks, in any order.
    fn placement(&mut self, world: usize) -> Placement;
    /// Up to three dims: now and then empty or of size 1, mostly uneven, now and then so large that messages go in rounds.
    fn shape(&mut self) -> Vec<usize>;
    /// Any built-in dtype.
    fn dtype(&mut self) -> DType;
    /// A placement and an SBP that a tensor of that rank and dtype may have.
    fn layout(&mut self, world: usize, rank: usize, dtype: DType) -> Layout;
    /// A boxing between two layouts.
    fn boxing(&mut self, world: usize) -> Boxing;
}

impl Draws for Random {
    fn placement(&mut self, world: usize) -> Placement {
        let mut dims = Vec::new();
        let mut room = world;
        for _ in 0..1 + self.below(3) {
            let d = 1 + self.below(room);
            dims.push(d);
            room /= d;
        }
        self.shuffle(&mut dims);
        let mut ranks: Vec<usize> = (0..world).collect();
        self.shuffle(&mut ranks);
        mesh(&ranks[..dims.iter().product()], &dims)
    }

    fn shape(&mut self) -> Vec<usize> {
        (0..self.below(4)).map(|_| *self.of(&[0, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 11, 29])).collect()
    }

    fn dtype(&mut self) -> DType {
        *self.of(&DType::BUILTIN)
    }

    fn layout(&mut self, world: usize, rank: usize, dtype: DType) -> Layout {
        let placement = self.placement(world);
        let sbp: Vec<_> = (0..placement.axes()).map(|_| *self.of(&sbps(rank, dtype))).collect();
        Layout::new(&placement, NdSbp::new(&sbp))
    }

    fn boxing(&mut self, world: usize) -> Boxing {
        let (shape, dtype) = (self.shape(), self.dtype());
        let src = self.layout(world, shape.len(), dtype);
        let mut dst = self.layout(world, shape.len(), dtype);
        // Half of them stay on their mesh, where the collectives are.
        if self.below(2) == 0 {
            let sbp: Vec<_> = (0..src.placement.axes()).map(|_| *self.of(&sbps(shape.len(), dtype))).collect();
            dst = Layout::new(&src.placement, NdSbp::new(&sbp));
        }
        Boxing { shape, dtype, src, dst }
    }
}

/// A boxing to carry out.
pub struct Boxing {
    pub shape: Vec<usize>,
    pub dtype: DType,
    pub src: Layout,
    pub dst: Layout,
}
