//! Rows put together to the tensors of a batch: whole, or the shard of a rank.

use super::row::{Array, Field, Row};
use crate::context::RankCtx;
use crate::error::{CallSite, Error, Result};
use crate::interpreter::from_bytes;
use crate::ops::TensorType;
use crate::placement::shard_range;
use crate::placement::{Device, Placement};
use crate::sbp::{NdSbp, check_layout};
use crate::tensor::{Tensor, intern_global};
use oflow_kernels::DType;
use std::ops::Range;

/// Where the rows of a batch go.
#[derive(Clone)]
pub(super) enum Target {
    /// Global tensors.
    Global { placement: Placement, sbp: NdSbp },
    /// A local tensor on each rank of the world, with its part of the rows.
    Local(Device),
}

/// A column of batches: one value of that dtype and shape per row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<usize>,
}

/// Share of a rank in a column of a batch: a range of each dim, of the rows first.
pub(super) type Share = Vec<Range<usize>>;

impl Target {
    /// Checks that batches of a column can have the layout.
    pub fn check(&self, column: &Column) -> Result<()> {
        let Target::Global { placement, sbp } = self else { return Ok(()) };
        check_layout(&batch_shape(0, column), column.dtype, placement, sbp)
            .map_err(|e| e.within(|| format!("batches of the column '{}'", column.name)))
    }
    /// Returns the share of a rank in a batch of `rows` rows; `None` outside the placement.
    pub fn share(&self, rows: usize, column: &Column, rank: usize, world: usize) -> Option<Share> {
        let shape = batch_shape(rows, column);
        match self {
            Target::Global { placement, sbp } => {
                let own = intern_global(TensorType::new(&shape, column.dtype), placement, sbp).box_of(rank)?;
                Some(own.offset.iter().zip(&own.size).map(|(o, n)| *o..o + n).collect())
            }
            Target::Local(_) => {
                let rest = column.shape.iter().map(|n| 0..*n);
                Some(std::iter::once(shard_range(rows, world, rank)).chain(rest).collect())
            }
        }
    }
    /// The rows of a batch of which a rank holds something.
    pub fn rows(&self, rows: usize, columns: &[Column], rank: usize, world: usize) -> Range<usize> {
        // All columns have one SBP, which splits the rows of each alike.
        let first = columns.first().and_then(|c| self.share(rows, c, rank, world));
        first.map_or(0..0, |s| s[0].clone())
    }
    /// The tensor of a column of a batch of `rows` rows, from the bytes of this rank's share. Memory reports name the line.
    pub fn tensor(&self, ctx: &RankCtx, rows: usize, column: &Column, bytes: &[u8], site: CallSite) -> Result<Tensor> {
        let by = ("DataLoader", site);
        let share = self.share(rows, column, ctx.rank(), ctx.world());
        let size: Vec<usize> = share.iter().flatten().map(Range::len).collect();
        match self {
            Target::Local(device) => from_bytes(ctx, bytes, &size, column.dtype, *device, by),
            Target::Global { placement, sbp } => {
                let ty = intern_global(TensorType::new(&batch_shape(rows, column), column.dtype), placement, sbp);
                if share.is_none() {
                    return Ok(Tensor::from_shard(ty, None));
                }
                let local = from_bytes(ctx, bytes, &size, column.dtype, placement.device(), by)?;
                Ok(Tensor::from_shard(ty, local.data()?))
            }
        }
    }
}

fn batch_shape(rows: usize, column: &Column) -> Vec<usize> {
    std::iter::once(rows).chain(column.shape.iter().copied()).collect()
}

/// The columns that batches of such rows have.
pub(super) fn columns_of(row: &Row) -> Result<Vec<Column>> {
    let column = |(name, field): (&str, &Field)| match field {
        Field::Array(a) => Ok(Column { name: name.to_string(), dtype: a.dtype(), shape: a.shape().to_vec() }),
        Field::Text(_) => Err(Error::value(format!("the field '{name}' is text; batches have numbers only"))
            .help("make numbers of it with `map`, or leave it out with `Row::select`")),
    };
    row.fields().map(column).collect()
}

/// Checks that a row has the columns of the batch, and returns its arrays in their order.
pub(super) fn arrays<'a>(row: &'a Row, columns: &[Column]) -> Result<Vec<&'a Array>> {
    let same = |c: &Column| {
        let a = row.array(&c.name)?;
        if (a.dtype(), a.shape()) == (c.dtype, &c.shape[..]) {
            return Ok(a);
        }
        let (is, was) = ((a.dtype(), a.shape()), (c.dtype, &c.shape));
        Err(Error::value(format!(
            "the field '{}' has {}{:?}; in the first row it has {}{:?}",
            c.name, is.0, is.1, was.0, was.1
        ))
        .help("bring all rows to one shape and dtype with `map`: pad, crop or cast them"))
    };
    columns.iter().map(same).collect()
}

/// Adds a part of a row's value to the bytes of a batch: a range of each of its dims.
pub(super) fn copy_part(value: &[u8], shape: &[usize], part: &[Range<usize>], to: &mut Vec<u8>) {
    if shape.iter().zip(part).all(|(n, r)| *r == (0..*n)) {
        return to.extend_from_slice(value);
    }
    let (Some(n), Some(range)) = (shape.first(), part.first()) else { return };
    let each = value.len() / (*n).max(1);
    for i in range.clone() {
        copy_part(&value[i * each..][..each], &shape[1..], &part[1..], to);
    }
}

/// Refuses batches of no items.
pub(super) fn check_batch(n: usize) -> Result<()> {
    if n > 0 { Ok(()) } else { Err(Error::argument("batches of 0 items").help("a batch has at least 1 item")) }
}

/// An error of one row is one of this rank: others may not have read the row.
pub(super) fn local_error(e: Error) -> Error {
    if e.is_logical() { e.as_kind(crate::error::ErrorKind::Value) } else { e }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_values_are_those_of_their_dims() {
        // A value of shape [3, 4, 2]; the oracle looks at each element.
        let shape = [3, 4, 2];
        let value: Vec<u8> = (0..24 * 2).collect();
        for part in [[0..3, 0..4, 0..2], [1..2, 0..4, 0..2], [0..3, 1..3, 0..2], [0..2, 2..4, 1..2], [1..1, 0..4, 0..2]]
        {
            let mut got = vec![];
            copy_part(&value, &shape, &part, &mut got);
            let mut want = vec![];
            for i in 0..24usize {
                let at = [i / 8, i / 2 % 4, i % 2];
                if at.iter().zip(&part).all(|(a, r)| r.contains(a)) {
                    want.extend([2 * i as u8, 2 * i as u8 + 1]);
                }
            }
            assert_eq!(got, want, "{part:?}");
        }
    }
}
