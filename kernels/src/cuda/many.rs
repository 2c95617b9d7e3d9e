//! Many tensors in one launch, as `many.cuh` takes them.

use super::rows::{MAX_RANK, Shape, blocks, strides};
use super::{Args, Function, Launch, Queue};
use crate::cpu::strided::Walk;
use crate::{Result, View};

/// Elements of a block (`OF_MANY`).
const EACH: usize = 4096;

/// `of_many`: entries of K tensors each.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Many<const K: usize, const LIMIT: usize, const FIRST: usize> {
    count: u32,
    first: [u32; FIRST],
    len: [u64; LIMIT],
    at: [[u64; K]; LIMIT],
}

/// `of_strided`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Strided<const K: usize> {
    len: u64,
    shape: Shape,
    strides: [[i64; MAX_RANK]; K],
}

/// Returns the number of blocks of an entry of `len` elements.
pub(super) fn blocks_of(len: usize) -> usize {
    len.div_ceil(EACH)
}

impl<const K: usize, const LIMIT: usize, const FIRST: usize> Many<K, LIMIT, FIRST> {
    /// Launches `function` over contiguous entries, as many at a time as a table takes; `args` are the parameters before
    /// the table, of the launch whose first block is the given one of all.
    pub fn launch<'a>(
        q: &Queue,
        function: Function,
        entries: impl IntoIterator<Item = [&'a View; K]>,
        mut args: impl FnMut(usize) -> Args,
    ) -> Result<usize> {
        const { assert!(FIRST == LIMIT + 1) };
        let mut table = Self { count: 0, first: [0; FIRST], len: [0; LIMIT], at: [[0; K]; LIMIT] };
        let mut before = 0;
        let mut put = |table: &mut Self| -> Result<()> {
            let count = table.first[table.count as usize];
            q.launch_with(function, Launch::new(count, 256), args(before), table)?;
            before += count as usize;
            table.count = 0;
            Ok(())
        };
        for views in entries {
            let (len, i) = (views[0].len(), table.count as usize);
            let end = u64::from(table.first[i]) + blocks_of(len) as u64;
            if len == 0 {
                continue;
            }
            // Beyond what a grid has, and what a table has.
            if i == LIMIT || (i > 0 && end > 1 << 30) {
                put(&mut table)?;
            }
            let i = table.count as usize;
            table.len[i] = len as u64;
            table.at[i] = views.map(|v| v.ptr() as u64);
            table.first[i + 1] = table.first[i] + blocks_of(len) as u32;
            table.count += 1;
        }
        if table.count > 0 {
            put(&mut table)?;
        }
        Ok(before)
    }
}

/// Launches `function` over one entry that is not contiguous; `args` are the parameters before the last.
pub(super) fn launch_strided<const K: usize>(
    q: &Queue,
    function: Function,
    views: [&View; K],
    args: Args,
) -> Result<()> {
    let operands: [&[isize]; K] = std::array::from_fn(|k| views[k].strides());
    let walk = Walk::new(views[0].dims(), &operands, true);
    let last: Strided<K> = Strided {
        len: views[0].len() as u64,
        shape: Shape::new(&walk.dims)?,
        strides: std::array::from_fn(|k| strides(&walk.strides[k])),
    };
    q.launch_with(function, Launch::new(blocks(last.len, EACH as u64), 256), args, &last)
}
