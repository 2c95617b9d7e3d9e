//! Values that the closure of a graph may return.

use crate::tensor::Tensor;

/// A value made of tensors that the closure of a [`Graph`](super::Graph) returns: a tensor, a tuple or a vector of them, or nothing.
pub trait GraphOutput: Sized {
    /// Adds its tensors to a list, in order.
    fn take(self, to: &mut Vec<Tensor>);
    /// The same value of other tensors; `None` if there are too few.
    fn give(from: &mut dyn Iterator<Item = Tensor>) -> Option<Self>;
    /// How many tensors it has; `None` if any number.
    fn tensors() -> Option<usize>;
}

impl GraphOutput for Tensor {
    fn take(self, to: &mut Vec<Tensor>) {
        to.push(self);
    }
    fn give(from: &mut dyn Iterator<Item = Tensor>) -> Option<Tensor> {
        from.next()
    }
    fn tensors() -> Option<usize> {
        Some(1)
    }
}

impl GraphOutput for () {
    fn take(self, _to: &mut Vec<Tensor>) {}
    fn give(_from: &mut dyn Iterator<Item = Tensor>) -> Option<()> {
        Some(())
    }
    fn tensors() -> Option<usize> {
        Some(0)
    }
}

impl GraphOutput for Vec<Tensor> {
    fn take(self, to: &mut Vec<Tensor>) {
        to.extend(self);
    }
    fn give(from: &mut dyn Iterator<Item = Tensor>) -> Option<Vec<Tensor>> {
        Some(from.collect())
    }
    fn tensors() -> Option<usize> {
        None
    }
}

macro_rules! tuples {
    ($($member:ident)+) => {
        impl GraphOutput for ($(tuples!(@ $member),)+) {
            #[allow(non_snake_case)]
            fn take(self, to: &mut Vec<Tensor>) {
                let ($($member,)+) = self;
                to.extend([$($member),+]);
            }
            fn give(from: &mut dyn Iterator<Item = Tensor>) -> Option<Self> {
                Some(($(tuples!(= from $member),)+))
            }
            fn tensors() -> Option<usize> {
                Some([$(stringify!($member)),+].len())
            }
        }
    };
    (@ $member:ident) => { Tensor };
    (= $from:ident $member:ident) => { $from.next()? };
}
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
