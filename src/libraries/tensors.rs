//! Tensors as numbers, for the code of libraries. A number that a library makes up, or that it has released, is found out.

use super::given::{code, quantised};
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use oflow_op::abi::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Description of a tensor; the pointers of [`oflow_tensor_info`] lead here.
struct TensorText {
    dims: Box<[i64]>,
    device: String,
    sbp: String,
    placement: String,
}

struct Entry {
    tensor: Tensor,
    owners: usize,
    text: Option<Box<TensorText>>,
}

#[derive(Default)]
struct Slot {
    /// Grows when a tensor goes, so that its number is not another's.
    generation: u32,
    entry: Option<Entry>,
}

#[derive(Default)]
struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

static TABLE: Mutex<Table> = Mutex::new(Table { slots: Vec::new(), free: Vec::new() });

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Table {
    fn slot(&mut self, number: oflow_tensor) -> Result<(u32, &mut Slot)> {
        let (generation, at) = ((number >> 32) as u32, (number as u32).wrapping_sub(1));
        let slot = self.slots.get_mut(at as usize).filter(|s| s.generation == generation && s.entry.is_some());
        slot.map(|s| (at, s)).ok_or_else(|| {
            Error::argument(format!("{number} stands for no tensor"))
                .help("a tensor that was released, or lent to a call that is over, cannot be used")
        })
    }

    fn entry(&mut self, number: oflow_tensor) -> Result<&mut Entry> {
        let (_, slot) = self.slot(number)?;
        // `slot` gives none without an entry.
        slot.entry.as_mut().ok_or_else(|| Error::argument("no tensor"))
    }
}

/// A number for a tensor, owned once.
///
/// # Errors
/// Libraries hold 2^32 tensors.
pub(super) fn put(tensor: Tensor) -> Result<oflow_tensor> {
    let mut t = table();
    let at = match t.free.pop() {
        Some(at) => at,
        None => {
            let at = u32::try_from(t.slots.len()).ok().filter(|at| *at < u32::MAX);
            let at = at.ok_or_else(|| Error::memory("libraries hold too many tensors"))?;
            t.slots.push(Slot::default());
            at
        }
    };
    let slot = &mut t.slots[at as usize];
    slot.entry = Some(Entry { tensor, owners: 1, text: None });
    Ok(u64::from(slot.generation) << 32 | u64::from(at + 1))
}

/// The tensor of a number.
///
/// # Errors
/// There is none.
pub(super) fn get(number: oflow_tensor) -> Result<Tensor> {
    table().entry(number).map(|e| e.tensor.clone())
}

/// # Errors
/// The number stands for no tensor.
pub(super) fn retain(number: oflow_tensor) -> Result<()> {
    table().entry(number).map(|e| e.owners += 1)
}

/// # Errors
/// The number stands for no tensor.
pub(super) fn release(number: oflow_tensor) -> Result<()> {
    let gone = {
        let mut t = table();
        let (at, slot) = t.slot(number)?;
        match slot.entry.as_mut() {
            Some(entry) if entry.owners > 1 => {
                entry.owners -= 1;
                None
            }
            _ => {
                slot.generation = slot.generation.wrapping_add(1);
                let gone = slot.entry.take();
                t.free.push(at);
                gone
            }
        }
    };
    // Without the lock: an autograd graph may go with it, and that may take long.
    drop(gone);
    Ok(())
}

/// Describes a tensor by its number. Pointers hold as long as the number.
///
/// # Errors
/// The number stands for no tensor.
pub(super) fn describe(number: oflow_tensor) -> Result<oflow_tensor_info> {
    let mut t = table();
    let entry = t.entry(number)?;
    let tensor = &entry.tensor;
    let text = entry.text.get_or_insert_with(|| {
        Box::new(TensorText {
            dims: tensor.shape().iter().map(|n| *n as i64).collect(),
            device: tensor.device().to_string(),
            sbp: tensor.sbp().map_or(String::new(), |s| s.to_string()),
            placement: tensor.placement().map_or(String::new(), |p| p.to_string()),
        })
    });
    let (scale, zero_point) = quantised(tensor.dtype());
    Ok(oflow_tensor_info {
        head: oflow_head::of::<oflow_tensor_info>(),
        dtype: code(tensor.dtype()),
        rank: text.dims.len() as u32,
        dims: text.dims.as_ptr(),
        scale,
        zero_point,
        device: oflow_str::of(&text.device),
        global: u32::from(tensor.is_global()),
        requires_grad: u32::from(tensor.requires_grad()),
        sbp: oflow_str::of(&text.sbp),
        placement: oflow_str::of(&text.placement),
    })
}

/// Tensors that are lent to a callback: their numbers go when this is dropped, unless the library owns them by then.
#[derive(Default)]
pub(super) struct Lent(Vec<Box<[oflow_tensor]>>);

impl Lent {
    /// The numbers of tensors.
    ///
    /// # Errors
    /// As [`put`].
    pub(super) fn all(&mut self, tensors: &[Tensor]) -> Result<&[oflow_tensor]> {
        let numbers = tensors.iter().map(|t| put(t.clone())).collect::<Result<Box<[_]>>>()?;
        self.0.push(numbers);
        Ok(self.0.last().map_or(&[], |all| all))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        for number in self.0.iter().flatten() {
            // A library that has released what it was lent has taken its number away.
            let _gone = release(*number);
        }
    }
}
