//! Slots of gradients and numbers that tensors of the program have for the time in which a graph is captured.
//!
//! **Slots of gradients.** Each leaf that is touched gets an empty slot, and its own one back at the end, with the gradient that it had. So
//! `zero_grad`, `backward` and `grad` of the closure see the gradients of the capture only.
//!
//! **Numbers of values.** Each tensor of which another handle is made, as `detach` does, gets a number, and the handle the same one. So a
//! capture knows that both are one value.

use super::edge::{Edge, LeafSlot};
use super::inner::Tensor;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A tensor with the edge that it gets back.
struct Borrowed {
    tensor: Tensor,
    edge: Edge,
    requires_grad: bool,
    /// How many leaves were borrowed before.
    number: usize,
}

/// A tensor with the number that it gets back.
struct Numbered {
    tensor: Tensor,
    stamp: u64,
}

/// Numbers of values that observers of calls see made. No two values of a process share one.
static VALUE: AtomicU64 = AtomicU64::new(1);

/// A number that no value of this process has.
pub(crate) fn next_stamp() -> u64 {
    VALUE.fetch_add(1, Ordering::Relaxed)
}

thread_local! {
    static OPEN: Cell<bool> = const { Cell::new(false) };
    /// The first number of the capture.
    static FIRST: Cell<u64> = const { Cell::new(0) };
    static NUMBERED: RefCell<BTreeMap<usize, Numbered>> = const { RefCell::new(BTreeMap::new()) };
    /// By address; the tensors are held.
    static BORROWED: RefCell<BTreeMap<usize, Borrowed>> = const { RefCell::new(BTreeMap::new()) };
}

/// Gives the tensors their slots back when it is dropped.
#[must_use = "the slots are given back when it is dropped"]
pub(crate) struct BorrowedSlots {
    // The list is per thread.
    _not_send: PhantomData<*const ()>,
}

/// From now on, leaves with data that this thread touches have slots of their own until the guard is dropped. Such guards do not nest.
pub(crate) fn borrow_slots() -> BorrowedSlots {
    FIRST.set(next_stamp());
    OPEN.set(true);
    BorrowedSlots { _not_send: PhantomData }
}

impl Drop for BorrowedSlots {
    fn drop(&mut self) {
        OPEN.set(false);
        // Gone only when the thread ends. Tensors are dropped outside of the borrow.
        let all = BORROWED.try_with(|b| std::mem::take(&mut *b.borrow_mut())).unwrap_or_default();
        for b in all.into_values() {
            b.tensor.inner().edge.set(b.edge);
            b.tensor.inner().requires_grad.store(b.requires_grad, Ordering::Relaxed);
        }
        let all = NUMBERED.try_with(|n| std::mem::take(&mut *n.borrow_mut())).unwrap_or_default();
        all.into_values().for_each(|n| n.tensor.set_stamp(n.stamp));
    }
}

/// The leaves with data that have slots of their own now, in the order in which they got them: the same on all ranks.
pub(crate) fn borrowed_leaves() -> Vec<Tensor> {
    BORROWED.with_borrow(|all| {
        let mut ordered: Vec<&Borrowed> = all.values().collect();
        ordered.sort_by_key(|b| b.number);
        ordered.into_iter().map(|b| b.tensor.clone()).collect()
    })
}

impl Tensor {
    /// Gives a leaf with data an empty slot, where a graph is captured and it has its own.
    #[inline]
    pub(super) fn borrow_slot(&self) {
        if OPEN.get() && !self.is_meta() {
            self.borrow_slot_now();
        }
    }

    /// Gives a tensor with data a number for the time of the capture, unless it has one from it.
    #[inline]
    pub(crate) fn note_stamp(&self) {
        if OPEN.get() && !self.is_meta() && self.stamp() < FIRST.get() {
            self.note_stamp_now();
        }
    }

    /// The tensor that this is another handle of, if it has the value still and the handle was made in the capture.
    pub(crate) fn numbered_source(&self) -> Option<Tensor> {
        NUMBERED.with_borrow(|all| {
            let own = all.contains_key(&std::ptr::from_ref(self.inner()).addr());
            let of_value = |n: &&Numbered| n.tensor.stamp() == self.stamp();
            (!own).then(|| all.values().find(of_value).map(|n| n.tensor.clone())).flatten()
        })
    }

    #[cold]
    fn note_stamp_now(&self) {
        NUMBERED.with_borrow_mut(|all| {
            all.entry(std::ptr::from_ref(self.inner()).addr()).or_insert_with(|| {
                let numbered = Numbered { tensor: self.clone(), stamp: self.stamp() };
                self.set_stamp(next_stamp());
                numbered
            });
        });
    }

    #[cold]
    fn borrow_slot_now(&self) {
        let new = BORROWED.with_borrow_mut(|all| {
            let address = std::ptr::from_ref(self.inner()).addr();
            if all.contains_key(&address) {
                return None;
            }
            let edge = self.inner().edge.get();
            let requires_grad = self.inner().requires_grad.load(Ordering::Relaxed);
            let number = all.len();
            all.insert(address, Borrowed { tensor: self.clone(), edge: edge.clone(), requires_grad, number });
            match edge {
                Edge::Leaf(own) => Some(own),
                _ => None,
            }
        });
        if let Some(own) = new {
            let hooks = own.hooks.lock().unwrap_or_else(|e| e.into_inner()).clone();
            let replaced = *own.replaced.lock().unwrap_or_else(|e| e.into_inner());
            self.inner().edge.set(Edge::Leaf(Arc::new(LeafSlot {
                hooks: Mutex::new(hooks),
                replaced: Mutex::new(replaced),
                target: own.target.clone(),
                ty: own.ty.clone(),
                grad: Mutex::default(),
            })));
        }
    }
}
