//! Modules: a walk over their parameters in a fixed order, with dotted names.

use super::init::dotted;
use super::load::Unmatched;
use super::summary::{Summary, summarize};
use super::{Buffer, sharding};
use crate::error::{CallSite, Result};
use crate::placement::Placement;
use crate::sbp::NdSbp;
use crate::state::{LoadState, SaveState, Stateful};
use crate::tensor::Tensor;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::iter::once;

/// A field of a module: a parameter, a [`Buffer`], a module, or a constant (a number, a bool, a string); or an `Option`, `Box`, `Vec`,
/// array, tuple or `BTreeMap` of these. Constants are neither trained nor saved.
#[diagnostic::on_unimplemented(
    message = "a field of a module has the type `{Self}`: expected a parameter, a buffer, a module or a constant",
    note = "a field of another type says `#[module(skip)]`; it is neither trained nor saved",
    note = "maps are `BTreeMap`s, whose order is the same on every rank"
)]
pub trait Part {
    /// Calls `f` with the dotted name and the tensor of each parameter, in a fixed order.
    fn visit<'a>(&'a self, name: &str, f: &mut dyn FnMut(&str, &'a Tensor));
    /// Calls `f` with the dotted name of each parameter and a mutable reference to it, in the same order.
    ///
    /// # Errors
    /// The first error of `f`.
    fn visit_mut(&mut self, name: &str, f: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()>;
    /// Calls `f` with the dotted name of each buffer. A part without buffers, as most are, needs not define it.
    fn visit_buffers<'a>(&'a self, name: &str, f: &mut dyn FnMut(&str, &'a Buffer)) {
        let _ = (name, f);
    }
    /// Calls `f` with the dotted name of each buffer and a mutable reference to it, in the same order.
    ///
    /// # Errors
    /// The first error of `f`.
    fn visit_buffers_mut(&mut self, name: &str, f: &mut dyn FnMut(&str, &mut Buffer) -> Result<()>) -> Result<()> {
        let _ = (name, f);
        Ok(())
    }
    /// Switches to training mode (`true`) or evaluation mode.
    fn set_training(&mut self, on: bool);
}

/// A struct or an enum of parameters and modules. `#[derive(Module)]` implements it: each field is a [`Part`] under its name.
///
/// ```
/// use oflow::nn::{Linear, Module};
/// use oflow::prelude::*;
///
/// #[derive(oflow::nn::Module)]
/// struct Net {
///     fc1: Linear,
///     fc2: Linear,
/// }
///
/// let _world = oflow::init()?;
/// let mesh = Placement::all(Device::Cpu)?;
/// let mut net = Net {
///     fc1: Linear::new(64, 128, (&mesh, sbp![B]))?,
///     fc2: Linear::new(128, 10, (&mesh, sbp![B]))?,
/// };
/// net.to_global(&mesh, &[("fc1.*", sbp![S(0)]), ("fc2.weight", sbp![S(1)])])?;
/// let names: Vec<String> = net.named_parameters().into_iter().map(|(n, t)| format!("{n} {}", t.short())).collect();
/// assert_eq!(names[1..3], ["fc1.bias f32[128] [S(0)]", "fc2.weight f32[10, 128] [S(1)]"]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// A field that is no part is an error of the compiler, so that none is silently left out of training and of checkpoints:
///
/// ```compile_fail
/// #[derive(oflow::nn::Module)]
/// struct Net {
///     activation: fn(f64) -> f64,
/// }
/// ```
///
/// ```
/// #[derive(oflow::nn::Module)]
/// struct Net {
///     #[module(skip)]
///     activation: fn(f64) -> f64,
/// }
/// ```
pub trait Module: Part {
    /// Returns names and tensors of all parameters, in a fixed order. A tensor shared by two fields is listed once, under its
    /// first name.
    fn named_parameters(&self) -> Vec<(String, Tensor)> {
        let mut found: Vec<(String, Tensor)> = vec![];
        self.visit("", &mut |name, t| {
            if !found.iter().any(|(_, f)| f.same(t)) {
                found.push((name.to_string(), t.clone()));
            }
        });
        found
    }
    /// Returns all parameters, in the order of [`Module::named_parameters`].
    fn parameters(&self) -> Vec<Tensor> {
        self.named_parameters().into_iter().map(|(_, t)| t).collect()
    }
    /// Returns the number of logical elements of all parameters.
    fn parameter_count(&self) -> usize {
        self.parameters().iter().map(|t| t.numel()).sum()
    }
    /// Returns names and buffers, in a fixed order.
    fn named_buffers(&self) -> Vec<(String, Buffer)> {
        let mut found: Vec<(String, Buffer)> = vec![];
        self.visit_buffers("", &mut |name, b| found.push((name.to_string(), b.clone())));
        found
    }
    /// Returns what the module consists of and what a forward pass takes: for each part the result with its layout, parameters,
    /// multiplications and what boxings send; for each parameter its layout and this rank's bytes. (torchinfo's `summary`, with layouts.) The
    /// pass is captured on symbols: nothing is computed or sent. A part is known by the name scope of its calls, and by its parameters.
    ///
    /// ```
    /// use oflow::nn::{Linear, Module};
    /// use oflow::prelude::*;
    ///
    /// #[derive(oflow::nn::Module)]
    /// struct Net {
    ///     fc1: Linear,
    ///     fc2: Linear,
    /// }
    ///
    /// let net = Net { fc1: Linear::new(64, 128, Device::Cpu)?, fc2: Linear::new(128, 10, Device::Cpu)? };
    /// let x = ones([32, 64], Device::Cpu)?;
    /// let summary = net.summary(|net| net.fc2.forward(&net.fc1.forward(&x)?.relu()?))?;
    /// assert_eq!(summary.elements(), (64 * 128 + 128 + 128 * 10 + 10, 64 * 128 + 128 + 128 * 10 + 10));
    /// assert_eq!((summary.modules[1].path.as_str(), summary.modules[1].mult_adds), ("fc1", 32 * 64 * 128));
    /// println!("{summary}");
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `forward`, and if it does what cannot be captured, as reading a value.
    #[track_caller]
    fn summary(&self, forward: impl FnOnce(&Self) -> Result<Tensor>) -> Result<Summary>
    where
        Self: Sized,
    {
        summarize(&self.named_parameters(), CallSite::here(), || Ok(vec![forward(self)?]))
    }
    /// Ends the training of the parameters whose names match a pattern (with `*` and `?`): they require no gradient, which is removed.
    /// Optimizers leave them as they are.
    ///
    /// # Errors
    /// If no parameter matches.
    #[track_caller]
    fn freeze(&self, pattern: &str) -> Result<()> {
        sharding::require_gradients(&self.named_parameters(), pattern, false, CallSite::here())
    }
    /// Trains the parameters whose names match a pattern again.
    ///
    /// # Errors
    /// If no parameter matches.
    #[track_caller]
    fn unfreeze(&self, pattern: &str) -> Result<()> {
        sharding::require_gradients(&self.named_parameters(), pattern, true, CallSite::here())
    }
    /// Returns the tensors that checkpoints keep, by name: parameters, and the buffers that are persistent.
    fn state_tensors(&self) -> Vec<(String, Tensor)> {
        let mut all = self.named_parameters();
        let kept = self.named_buffers().into_iter().filter(|(_, b)| b.persistent());
        all.extend(kept.map(|(name, b)| (name, b.tensor().clone())));
        all
    }
    /// Copies tensors into the parameters and persistent buffers of the same names, which keep their layouts. A local tensor is the
    /// logical value of a global one. Returns the names that are missing and those that the module does not have.
    ///
    /// # Errors
    /// If shapes differ, and with `strict` if names are missing or unexpected. Nothing is changed then.
    #[track_caller]
    fn load_tensors(&self, tensors: &[(String, Tensor)], strict: bool) -> Result<Unmatched> {
        super::load::load_tensors(&self.state_tensors(), tensors, strict, CallSite::here())
    }
    /// Replaces each parameter by the result of `f`. A tensor shared by two fields stays shared. An optimizer of the old
    /// tensors returns an error at its next step, so make optimizers after this call. What `f` detached is a leaf of its own
    /// afterwards, so frozen parameters are written like others.
    ///
    /// # Errors
    /// The first error of `f`.
    #[track_caller]
    fn map_parameters(&mut self, f: &mut dyn FnMut(&str, &Tensor) -> Result<Tensor>) -> Result<()> {
        let site = CallSite::here();
        let mut done: Vec<(Tensor, Tensor)> = vec![];
        self.visit_mut("", &mut |name, t| {
            let new = match done.iter().find(|(old, _)| old.same(t)) {
                Some((_, new)) => new.clone(),
                None => {
                    let new = own(f(name, t)?);
                    if !new.same(t) {
                        t.replaced_by(&new, site);
                    }
                    done.push((t.clone(), new.clone()));
                    new
                }
            };
            *t = new;
            Ok(())
        })
    }
    /// Switches the module and its parts to training mode (`true`; dropout drops) or evaluation mode.
    fn train(&mut self, on: bool) {
        self.set_training(on);
    }
    /// Switches the module and its parts to evaluation mode, as `train(false)`.
    fn eval(&mut self) {
        self.set_training(false);
    }
    /// Boxes every parameter to a placement. The first rule whose pattern (with `*` and `?`) matches the name gives the SBP;
    /// without one it is B on all axes. Values do not change; gradients are dropped. Make optimizers after this call.
    ///
    /// # Errors
    /// If a layout does not fit a parameter, or a rule matches no parameter.
    #[track_caller]
    fn to_global(&mut self, placement: &Placement, rules: &[(&str, NdSbp)]) -> Result<()>
    where
        Self: Sized,
    {
        sharding::to_global(self, placement, rules, CallSite::here())
    }
    /// Returns the names of the parameters that require a gradient and have none: after backward, those that the loss does not
    /// depend on. (PyTorch finds them with `find_unused_parameters`.) All ranks get the same names, because they run the same
    /// program; optimizers leave such parameters as they are, and no rank waits for their gradients.
    fn unused_parameters(&self) -> Vec<String> {
        let unused = |t: &Tensor| t.requires_grad() && t.grad().is_none();
        self.named_parameters().into_iter().filter(|(_, t)| unused(t)).map(|(name, _)| name).collect()
    }
    /// Removes the gradients of all parameters.
    fn zero_grad(&self) {
        self.visit("", &mut |_, t| t.put_grad(None));
    }
}

/// Saves and loads parameters and persistent buffers by their dotted names; a shared parameter under its first name.
impl<M: Module> Stateful for M {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        self.state_tensors().iter().for_each(|(name, t)| to.tensor(name, t));
        Ok(())
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        self.state_tensors().iter().for_each(|(name, t)| from.fill(name, t));
        Ok(())
    }
}

/// The tensor, as a module holds it: a global tensor that came from `detach` or a boxing is marked as a view, which nobody may
/// write; here it becomes a value of its own.
pub(super) fn own(tensor: Tensor) -> Tensor {
    if tensor.is_global_view() && !tensor.requires_grad() { tensor.value() } else { tensor }
}

impl Part for Tensor {
    fn visit<'a>(&'a self, name: &str, f: &mut dyn FnMut(&str, &'a Tensor)) {
        f(name, self);
    }
    fn visit_mut(&mut self, name: &str, f: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
        f(name, self)
    }
    fn set_training(&mut self, _: bool) {}
}

impl Part for Buffer {
    fn visit<'a>(&'a self, _: &str, _: &mut dyn FnMut(&str, &'a Tensor)) {}
    fn visit_mut(&mut self, _: &str, _: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
        Ok(())
    }
    fn visit_buffers<'a>(&'a self, name: &str, f: &mut dyn FnMut(&str, &'a Buffer)) {
        f(name, self);
    }
    fn visit_buffers_mut(&mut self, name: &str, f: &mut dyn FnMut(&str, &mut Buffer) -> Result<()>) -> Result<()> {
        f(name, self)
    }
    fn set_training(&mut self, _: bool) {}
}

/// Implements [`Part`] for types whose values are part of no state: they are neither trained nor saved.
macro_rules! constants {
    ($([$($generics:tt)*] $of:ty),* $(,)?) => {
        $(impl<$($generics)*> Part for $of {
            fn visit<'a>(&'a self, _: &str, _: &mut dyn FnMut(&str, &'a Tensor)) {}
            fn visit_mut(&mut self, _: &str, _: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
                Ok(())
            }
            fn set_training(&mut self, _: bool) {}
        })*
    };
}

constants! { [] (), [] bool, [] char, [] f32, [] f64, [] i8, [] i16, [] i32, [] i64, [] isize, [] u8, [] u16, [] u32, [] u64, [] usize,
[] String, [] &'static str, [T: ?Sized] std::marker::PhantomData<T> }

/// Implements [`Part`] for containers, from their parts with names.
macro_rules! container {
    ([$($generics:tt)*] $of:ty, |$this:ident, $name:ident| $parts:expr, $parts_mut:expr) => {
        impl<$($generics)*> Part for $of {
            fn visit<'a>(&'a self, $name: &str, f: &mut dyn FnMut(&str, &'a Tensor)) {
                let $this = self;
                $parts.for_each(|(name, p)| p.visit(&name, f));
            }
            fn visit_mut(
                &mut self,
                $name: &str,
                f: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>,
            ) -> Result<()> {
                let $this = self;
                $parts_mut.try_for_each(|(name, p)| p.visit_mut(&name, f))
            }
            fn visit_buffers<'a>(&'a self, $name: &str, f: &mut dyn FnMut(&str, &'a Buffer)) {
                let $this = self;
                $parts.for_each(|(name, p)| p.visit_buffers(&name, f));
            }
            fn visit_buffers_mut(
                &mut self,
                $name: &str,
                f: &mut dyn FnMut(&str, &mut Buffer) -> Result<()>,
            ) -> Result<()> {
                let $this = self;
                $parts_mut.try_for_each(|(name, p)| p.visit_buffers_mut(&name, f))
            }
            fn set_training(&mut self, on: bool) {
                let ($this, $name) = (self, "");
                $parts_mut.for_each(|(_, p)| p.set_training(on));
            }
        }
    };
}

/// Numbered parts of a list.
fn numbered<P>(name: &str, parts: impl Iterator<Item = P>) -> impl Iterator<Item = (String, P)> {
    parts.enumerate().map(move |(i, p)| (dotted(name, &i.to_string()), p))
}

// What holds at most one part gives it its own name.
container! { [P: Part + ?Sized] Box<P>, |this, name| once((name, &**this)), once((name, &mut **this)) }
container! { [P: Part] Option<P>, |this, name| this.iter().map(|p| (name, p)), this.iter_mut().map(|p| (name, p)) }
container! { [P: Part] Vec<P>, |this, name| numbered(name, this.iter()), numbered(name, this.iter_mut()) }
container! { [P: Part, const N: usize] [P; N], |this, name| numbered(name, this.iter()), numbered(name, this.iter_mut()) }
container! { [K: Ord + Display, P: Part] BTreeMap<K, P>, |this, name| this.iter().map(|(k, p)| (dotted(name, &k.to_string()), p)),
this.iter_mut().map(|(k, p)| (dotted(name, &k.to_string()), p)) }

/// Tuples: their members have their numbers as names.
macro_rules! tuples {
    ($(($($p:ident $i:tt)+))*) => {
        $(impl<$($p: Part),+> Part for ($($p,)+) {
            fn visit<'a>(&'a self, name: &str, f: &mut dyn FnMut(&str, &'a Tensor)) {
                $(self.$i.visit(&dotted(name, stringify!($i)), f);)+
            }
            fn visit_mut(&mut self, name: &str, f: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
                $(self.$i.visit_mut(&dotted(name, stringify!($i)), f)?;)+
                Ok(())
            }
            fn visit_buffers<'a>(&'a self, name: &str, f: &mut dyn FnMut(&str, &'a Buffer)) {
                $(self.$i.visit_buffers(&dotted(name, stringify!($i)), f);)+
            }
            fn visit_buffers_mut(
                &mut self,
                name: &str,
                f: &mut dyn FnMut(&str, &mut Buffer) -> Result<()>,
            ) -> Result<()> {
                $(self.$i.visit_buffers_mut(&dotted(name, stringify!($i)), f)?;)+
                Ok(())
            }
            fn set_training(&mut self, on: bool) {
                $(self.$i.set_training(on);)+
            }
        })*
    };
}

tuples! { (A 0) (A 0 B 1) (A 0 B 1 C 2) (A 0 B 1 C 2 D 3) (A 0 B 1 C 2 D 3 E 4) (A 0 B 1 C 2 D 3 E 4 F 5) }

/// Puts another module (or parameter) in the place of one, and returns the old one. Optimizers of parameters that are gone return
/// an error at their next step, which names this line.
#[track_caller]
pub fn replace<P: Part>(old: &mut P, new: P) -> P {
    let site = CallSite::here();
    let old = std::mem::replace(old, new);
    old.visit("", &mut |_, t| t.dropped_at(site));
    old
}

/// Notes that a module got another tensor in the place of a parameter, which loses its gradient: an optimizer of the old one returns an
/// error at its next step, which names `site`. For modules that are not written in Rust; [`Module`] and [`replace`] do it themselves.
pub fn note_replaced(old: &Tensor, site: CallSite) {
    old.dropped_at(site);
}

/// Runs a part of a module in a name scope: reports and errors then show its path, as parameters do.
pub(super) fn part<T>(name: &str, f: impl FnOnce() -> T) -> T {
    let _scope = crate::name_scope(name);
    f()
}

/// The same inside of a [`CallSite::scope`]: the calls have the line of the scope, and the path of the part.
pub(super) fn part_at<T>(name: &str, site: CallSite, f: impl FnOnce() -> T) -> T {
    let _name = crate::name_scope(name);
    let _site = CallSite::in_scope(site.file, site.line).scope();
    f()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::{Dropout, Linear};
    use crate::placement::Device;

    #[derive(crate::nn::Module)]
    struct Tied {
        list: Vec<Linear>,
        drop: Dropout,
        again: Tensor,
    }

    /// Everything that a field may be.
    #[derive(crate::nn::Module)]
    struct All<T> {
        generic: T,
        array: [Linear; 2],
        pair: (Linear, Option<Tensor>),
        by_name: BTreeMap<String, Norm>,
        kinds: Vec<Norm>,
        #[module(skip)]
        hook: fn(f64) -> f64,
        heads: usize,
        wrapped: Wrapped,
        r#type: Tensor,
        mean: Buffer,
    }
    #[derive(crate::nn::Module)]
    struct Wrapped(Linear);
    #[derive(crate::nn::Module)]
    enum Norm {
        None,
        One(Dropout),
        Two(Tensor, Dropout),
        Named { scale: Tensor, eps: f64 },
    }

    #[test]
    fn every_field_is_a_part_under_its_name() {
        let linear = || Linear::without_bias(2, 2, Device::Cpu).unwrap();
        let leaf = || crate::functional::ones([2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
        let named = || Norm::Named { scale: leaf(), eps: 1e-5 };
        let mut m = All {
            generic: vec![Some(linear()), None],
            array: [linear(), linear()],
            pair: (linear(), Some(leaf())),
            by_name: [("b".to_string(), named()), ("a".to_string(), Norm::One(Dropout::new(0.5)))].into(),
            kinds: vec![Norm::None, Norm::Two(leaf(), Dropout::new(0.5)), named()],
            hook: |x| x,
            heads: 2,
            wrapped: Wrapped(linear()),
            r#type: leaf(),
            mean: Buffer::new(crate::functional::zeros([2], Device::Cpu).unwrap()),
        };
        let names: Vec<String> = m.named_parameters().into_iter().map(|(n, _)| n).collect();
        let wanted = "generic.0.weight array.0.weight array.1.weight pair.0.weight pair.1 by_name.b.scale kinds.1.0 kinds.2.scale \
                      wrapped.weight type";
        assert_eq!(names, wanted.split_whitespace().collect::<Vec<_>>());
        assert_eq!(m.named_buffers().into_iter().map(|(n, _)| n).collect::<Vec<_>>(), ["mean"]);
        m.train(false);
        let off = |n: &Norm| match n {
            Norm::One(drop) | Norm::Two(_, drop) => !drop.training(),
            Norm::None => true,
            Norm::Named { eps, .. } => *eps == 1e-5,
        };
        assert!(m.by_name.values().chain(&m.kinds).all(off));
        assert_eq!((m.hook)(1.0) as usize + m.heads, 3);
        // The same walk, with references that can be written.
        let mut walked = vec![];
        m.visit_mut("", &mut |name, _| {
            walked.push(name.to_string());
            Ok(())
        })
        .unwrap();
        assert_eq!(walked, names);
    }

    fn tied() -> Result<Tied> {
        let list = vec![Linear::new(3, 2, Device::Cpu)?, Linear::without_bias(2, 2, Device::Cpu)?];
        let again = list[1].weight.clone();
        Ok(Tied { list, drop: Dropout::new(0.5), again })
    }

    #[test]
    fn names_have_a_fixed_order_and_shared_tensors_come_once() {
        let m = tied().unwrap();
        let names: Vec<String> = m.named_parameters().into_iter().map(|(n, _)| n).collect();
        assert_eq!(names, ["list.0.weight", "list.0.bias", "list.1.weight"]);
        assert_eq!(m.parameter_count(), 12);
    }

    #[test]
    fn parameters_that_the_loss_does_not_depend_on_are_found_and_stay_as_they_are() {
        use crate::optim::{OptimizerExt, Sgd, SgdOptions};
        crate::run_ranks(2, |_| {
            let mut m = tied()?;
            let mesh = Placement::all(Device::Cpu)?;
            m.to_global(&mesh, &[])?;
            // Data parallel: the batch is split, so gradients are added up over the ranks.
            let x = crate::functional::ones([4, 3], (&mesh, crate::sbp![S(0)]))?;
            let mut opt = Sgd::new(m.parameters(), SgdOptions { lr: 0.1, ..Default::default() });
            m.list[0].forward(&x)?.sum(())?.backward()?;
            assert_eq!(m.unused_parameters(), ["list.1.weight"]);
            let before = m.again.to_f64_vec()?;
            opt.step()?;
            assert_eq!(m.again.to_f64_vec()?, before);
            m.zero_grad();
            m.list[1].forward(&m.list[0].forward(&x)?)?.sum(())?.backward()?;
            assert!(m.unused_parameters().is_empty());
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn shared_tensors_stay_shared_and_modes_reach_every_part() {
        crate::run_ranks(2, |_| {
            let mut m = tied()?;
            m.train(false);
            assert!(!m.drop.training());
            m.to_global(&Placement::all(Device::Cpu)?, &[("list.1.*", crate::sbp![S(0)])])?;
            assert!(m.again.same(&m.list[1].weight));
            assert_eq!(m.again.sbp()?, &crate::sbp![S(0)]);
            assert!(m.again.requires_grad() && m.again.is_leaf());
            Ok(())
        })
        .unwrap();
    }
}
