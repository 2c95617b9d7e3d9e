//! What a layout means, written from the definition and independently of the library: balanced split, nesting, inner
//! partials reduced first, B the same bits everywhere.

use oflow::boxing::Layout;
use oflow::kernels::{DType, ReduceOp};
use oflow::placement::{Device, Placement};
use oflow::sbp::{NdSbp, Sbp};
use smallvec::{SmallVec, smallvec};

/// Coordinates, offsets or sizes: made for each element, so not on the heap.
pub type Index = SmallVec<[usize; 4]>;

/// The seven SBPs of the pair tests that exist for a rank and dtype.
pub fn sbps(rank: usize, dtype: DType) -> Vec<Sbp> {
    let mut all = vec![Sbp::Broadcast];
    for op in [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min] {
        if dtype.reduces(op) {
            all.push(Sbp::Partial(op));
        }
    }
    all.extend((0..rank.min(3)).map(Sbp::Split));
    all
}

/// Every nd-SBP over those.
pub fn nd_sbps(axes: usize, rank: usize, dtype: DType) -> Vec<NdSbp> {
    let one = sbps(rank, dtype);
    let mut all = vec![Vec::new()];
    for _ in 0..axes {
        all =
            all.iter().flat_map(|head: &Vec<Sbp>| one.iter().map(move |s| [head.as_slice(), &[*s]].concat())).collect();
    }
    all.iter().map(|s| NdSbp::new(s)).collect()
}

pub fn mesh(ranks: &[usize], dims: &[usize]) -> Placement {
    Placement::new(Device::Cpu, ranks, dims).unwrap()
}

pub fn mesh_of(dims: &[usize]) -> Placement {
    mesh(&(0..dims.iter().product()).collect::<Vec<_>>(), dims)
}

/// A number of a dtype; halves are exact in f64.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Num {
    I(i64),
    F(f64),
}
use Num::{F, I};

fn encode(dtype: DType, v: i64, out: &mut Vec<u8>) {
    match dtype {
        DType::Bool => out.push(u8::from(v & 1 == 1)),
        DType::U8 => out.push(v as u8),
        DType::I8 => out.push(v as i8 as u8),
        DType::I32 => out.extend((v as i32).to_ne_bytes()),
        DType::I64 => out.extend(v.to_ne_bytes()),
        DType::F16 => out.extend(half::f16::from_f64(v as f64).to_ne_bytes()),
        DType::BF16 => out.extend(half::bf16::from_f64(v as f64).to_ne_bytes()),
        DType::F32 => out.extend((v as f32).to_ne_bytes()),
        DType::F64 => out.extend((v as f64).to_ne_bytes()),
        DType::I16 | DType::U16 => out.extend((v as i16).to_ne_bytes()),
        DType::U32 => out.extend((v as u32).to_ne_bytes()),
        // The imaginary part is twice the real one, of sums too.
        DType::C64 => [v, 2 * v].iter().for_each(|part| out.extend((*part as f32).to_ne_bytes())),
        DType::C128 => [v, 2 * v].iter().for_each(|part| out.extend((*part as f64).to_ne_bytes())),
        // Moved only: any byte will do.
        d if d.is_small_float() => out.push(v as u8),
        _ => panic!("{dtype}"),
    }
}

fn decode(dtype: DType, b: &[u8]) -> Num {
    match dtype {
        DType::Bool | DType::U8 => I(b[0] as i64),
        d if d.is_small_float() => I(b[0] as i64),
        DType::I8 => I(b[0] as i8 as i64),
        DType::I32 => I(i32::from_ne_bytes(b.try_into().unwrap()) as i64),
        DType::I64 => I(i64::from_ne_bytes(b.try_into().unwrap())),
        DType::F16 => F(half::f16::from_ne_bytes(b.try_into().unwrap()).to_f64()),
        DType::BF16 => F(half::bf16::from_ne_bytes(b.try_into().unwrap()).to_f64()),
        DType::F32 => F(f32::from_ne_bytes(b.try_into().unwrap()) as f64),
        DType::F64 => F(f64::from_ne_bytes(b.try_into().unwrap())),
        DType::C64 | DType::C128 => {
            let (re, im) = b.split_at(b.len() / 2);
            let (F(re), F(im)) = (decode(dtype.part(), re), decode(dtype.part(), im)) else { panic!("{dtype}") };
            assert_eq!(im, 2.0 * re, "{dtype}");
            F(re)
        }
        DType::I16 => I(i16::from_ne_bytes(b.try_into().unwrap()) as i64),
        DType::U16 => I(u16::from_ne_bytes(b.try_into().unwrap()) as i64),
        DType::U32 => I(u32::from_ne_bytes(b.try_into().unwrap()) as i64),
        _ => panic!("{dtype}"),
    }
}

/// Integer sums wrap as the dtype does, so that an overflow in a partial is seen.
fn reduce(dtype: DType, op: ReduceOp, a: Num, b: Num) -> Num {
    match (op, a, b) {
        (ReduceOp::Sum, I(a), I(b)) => {
            let mut bytes = Vec::with_capacity(8);
            encode(dtype, a.wrapping_add(b), &mut bytes);
            decode(dtype, &bytes)
        }
        (ReduceOp::Sum, F(a), F(b)) => F(a + b),
        (ReduceOp::Max, I(a), I(b)) => I(a.max(b)),
        (ReduceOp::Min, I(a), I(b)) => I(a.min(b)),
        (ReduceOp::Max, F(a), F(b)) => F(a.max(b)),
        (ReduceOp::Min, F(a), F(b)) => F(a.min(b)),
        _ => panic!("{a:?} {b:?}"),
    }
}

fn part(len: usize, parts: usize, index: usize) -> (usize, usize) {
    let before: usize = (0..index).map(|i| len / parts + usize::from(i < len % parts)).sum();
    (before, len / parts + usize::from(index < len % parts))
}

pub fn coords(dims: &[usize], mut position: usize) -> Index {
    let mut c: Index = smallvec![0; dims.len()];
    for a in (0..dims.len()).rev() {
        c[a] = position % dims[a];
        position /= dims[a];
    }
    c
}

/// Offset and size of the shard at mesh coordinates.
fn shard(shape: &[usize], l: &Layout, coord: &[usize]) -> (Index, Index) {
    let (mut offset, mut size): (Index, Index) = (smallvec![0; shape.len()], shape.into());
    for (a, c) in coord.iter().enumerate() {
        if let Sbp::Split(d) = l.sbp[a] {
            let (start, len) = part(size[d], l.placement.dims()[a], *c);
            offset[d] += start;
            size[d] = len;
        }
    }
    (offset, size)
}

/// Offset and size of the shard at a mesh position.
pub fn shard_at(shape: &[usize], l: &Layout, position: usize) -> (Index, Index) {
    shard(shape, l, &coords(l.placement.dims(), position))
}

/// Sizes of the shard at a mesh position.
pub fn shard_size(shape: &[usize], l: &Layout, position: usize) -> Index {
    shard_at(shape, l, position).1
}

fn indices(size: &[usize]) -> impl Iterator<Item = Index> {
    let count: usize = size.iter().product();
    (0..count).map(move |i| coords(size, i))
}

/// Shards of some value in a layout: small integers from a hash of the logical index and the coordinates on P axes, so B
/// axes hold equal bits and partials differ.
pub fn make(shape: &[usize], dtype: DType, l: &Layout, seed: u64) -> Vec<Vec<u8>> {
    (0..l.placement.len())
        .map(|p| {
            let coord = coords(l.placement.dims(), p);
            let (offset, size) = shard(shape, l, &coord);
            let mut bytes = Vec::new();
            for index in indices(&size) {
                let mut h = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let logical = index.iter().zip(&offset).map(|(i, o)| i + o);
                let partial = (0..coord.len()).filter(|a| l.sbp[*a].is_partial()).map(|a| coord[a] + 100);
                for x in logical.chain(partial) {
                    h = (h ^ x as u64).wrapping_mul(0xff51_afd7_ed55_8ccd);
                    h ^= h >> 32;
                }
                encode(dtype, (h % 9) as i64 - if dtype == DType::U8 { 0 } else { 4 }, &mut bytes);
            }
            bytes
        })
        .collect()
}

/// The logical value that shards of a layout stand for; fails if a shard has another size or B is not the same everywhere.
pub fn value(shape: &[usize], dtype: DType, l: &Layout, shards: &[Vec<u8>]) -> Result<Vec<Num>, String> {
    let dims = l.placement.dims();
    for (p, bytes) in shards.iter().enumerate() {
        let coord = coords(dims, p);
        let (_, size) = shard(shape, l, &coord);
        if bytes.len() != size.iter().product::<usize>() * dtype.size() {
            return Err(format!("shard {p} has {} bytes, not {size:?}", bytes.len()));
        }
        let mut first = coord.clone();
        (0..dims.len()).filter(|a| l.sbp[*a].is_broadcast()).for_each(|a| first[a] = 0);
        let first = first.iter().zip(dims).fold(0, |n, (c, d)| n * d + c);
        if shards[first] != *bytes {
            return Err(format!("shards {first} and {p} should be copies"));
        }
    }
    Ok(indices(shape).map(|x| at(shape, dtype, l, shards, &x, &mut Index::new())).collect())
}

fn at(shape: &[usize], dtype: DType, l: &Layout, shards: &[Vec<u8>], x: &[usize], coord: &mut Index) -> Num {
    let axis = coord.len();
    let dims = l.placement.dims();
    if axis == dims.len() {
        let position = coord.iter().zip(dims).fold(0, |n, (c, d)| n * d + c);
        let (offset, size) = shard(shape, l, coord);
        let element = (0..x.len()).fold(0, |n, d| n * size[d] + x[d] - offset[d]);
        let at = element * dtype.size();
        return decode(dtype, &shards[position][at..at + dtype.size()]);
    }
    let mut go = |c: usize| {
        coord.push(c);
        let v = at(shape, dtype, l, shards, x, coord);
        coord.pop();
        v
    };
    match l.sbp[axis] {
        Sbp::Broadcast => go(0),
        Sbp::Partial(op) => (1..dims[axis]).fold(go(0), |v, c| reduce(dtype, op, v, go(c))),
        Sbp::Split(d) => {
            let mut sizes = coord.clone();
            let holder = (0..dims[axis]).find(|c| {
                sizes.push(*c);
                let (offset, size) = shard(shape, l, &sizes);
                sizes.pop();
                (offset[d]..offset[d] + size[d]).contains(&x[d])
            });
            let holder = holder.expect("some rank holds every element");
            coord.push(holder);
            let v = at(shape, dtype, l, shards, x, coord);
            coord.pop();
            v
        }
    }
}
