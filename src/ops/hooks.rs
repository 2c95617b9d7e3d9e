//! Decisions of an op about its calls besides shapes, dtypes and sharding. All of it is asked when a call is planned, never
//! when a plan that was made before runs.

use super::def::OpDef;
use super::infer::{InferCtx, TensorType};
use crate::error::{Error, Result};
use crate::placement::Device;
use oflow_kernels::Dims;
use smallvec::SmallVec;
use std::sync::Arc;

/// Stream of a device that an instruction runs on. Work on one stream runs in order; streams wait for each other where one
/// uses memory that another writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamKind {
    /// The stream of kernels.
    #[default]
    Compute,
    /// Boxing: one total order of collectives per rank.
    Comm,
    /// Copies, and kernels that are to run beside the others. On devices without such a stream it is the compute stream.
    Copy,
}

/// Properties of an input that an op may change: see [`OpDef::modify_inputs`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputProps {
    /// Gets no gradient.
    pub no_grad: bool,
}

/// Properties of an output that an op may change: see [`OpDef::modify_outputs`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputProps {
    /// Has no gradient: it does not require one, whatever the inputs do.
    pub no_grad: bool,
}

/// Call as the device rule of an op sees it.
pub struct DeviceCtx<'a> {
    /// Logical inputs and attributes.
    pub call: &'a InferCtx<'a>,
    /// Devices of the inputs, in order; none of one that was left out. Of a global call, that of the placement.
    pub inputs: &'a [Option<Device>],
    /// Where the call would run otherwise: the device of its first input, or of the target of an op without inputs.
    pub default: Device,
}

/// Where a call runs and where its outputs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices {
    /// The device whose kernel runs. Inputs that are elsewhere are copied to it.
    pub run_on: Device,
    /// The device of each output. One that is not made there is copied to it.
    pub outputs: SmallVec<[Device; 2]>,
    /// The stream of `run_on` that the kernel runs on.
    pub stream: StreamKind,
}

impl Devices {
    /// Everything on one device, on its compute stream.
    pub fn all(device: Device, outputs: usize) -> Devices {
        Devices { run_on: device, outputs: SmallVec::from_elem(device, outputs), stream: StreamKind::Compute }
    }
}

/// Changes properties of the inputs.
pub type InputsFn = Arc<dyn Fn(&InferCtx<'_>, &mut [InputProps]) -> Result<()> + Send + Sync>;
/// Changes properties of the outputs, whose types are given.
pub type OutputsFn = Arc<dyn Fn(&InferCtx<'_>, &[TensorType], &mut [OutputProps]) -> Result<()> + Send + Sync>;
/// Decides where a call runs.
pub type DevicesFn = Arc<dyn Fn(&DeviceCtx<'_>) -> Result<Devices> + Send + Sync>;
/// Shapes of the output shards, from the input shards and physical attributes.
pub type PhysicalFn = Arc<dyn Fn(&InferCtx<'_>) -> Result<SmallVec<[Dims; 2]>> + Send + Sync>;

/// The hooks of an op that few ops have.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Properties of inputs.
    pub inputs: Option<InputsFn>,
    /// Properties of outputs.
    pub outputs: Option<OutputsFn>,
    /// Where a call runs.
    pub devices: Option<DevicesFn>,
    /// Shapes of the output shards.
    pub physical: Option<PhysicalFn>,
}

impl Hooks {
    /// Tells for each hook whether the op has it.
    pub(super) fn present(&self) -> [bool; 4] {
        [self.inputs.is_some(), self.outputs.is_some(), self.devices.is_some(), self.physical.is_some()]
    }
}

/// The inputs and outputs of a call that have no gradient although their dtype could: a bit each, bit 63 for all from there on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Withheld {
    /// Bit mask of the inputs without a gradient.
    pub inputs: u64,
    /// Bit mask of the outputs without a gradient.
    pub outputs: u64,
}

impl Withheld {
    /// Whether input `i` gets no gradient.
    #[inline]
    pub fn input(&self, i: usize) -> bool {
        self.inputs >> i.min(63) & 1 == 1
    }
    /// Whether output `o` has no gradient.
    #[inline]
    pub fn output(&self, o: usize) -> bool {
        self.outputs >> o.min(63) & 1 == 1
    }
}

impl OpDef {
    /// Decides at planning which inputs get no gradient (OneFlow's `InputArgModifyFn`). Where that does not depend on the call, the
    /// declaration says it: `index: no_grad int`.
    #[must_use]
    pub fn modify_inputs(
        mut self,
        f: impl Fn(&InferCtx<'_>, &mut [InputProps]) -> Result<()> + Send + Sync + 'static,
    ) -> OpDef {
        self.hooks.inputs = Some(Arc::new(f));
        self
    }
    /// Decides at planning which outputs have no gradient (OneFlow's `OutputArgModifyFn`). Where that does not depend on the call,
    /// the declaration says it: `-> (y, mask: no_grad)`.
    #[must_use]
    pub fn modify_outputs(
        mut self,
        f: impl Fn(&InferCtx<'_>, &[TensorType], &mut [OutputProps]) -> Result<()> + Send + Sync + 'static,
    ) -> OpDef {
        self.hooks.outputs = Some(Arc::new(f));
        self
    }
    /// Decides where a call runs, on which stream, and where its outputs are (OneFlow's `DeviceAndStreamInferFn`). The inputs of
    /// a local call may then be on several devices. A global call stays on the device of its placement; the rule chooses its stream.
    #[must_use]
    pub fn devices(mut self, f: impl Fn(&DeviceCtx<'_>) -> Result<Devices> + Send + Sync + 'static) -> OpDef {
        self.hooks.devices = Some(Arc::new(f));
        self
    }
    /// Says the shapes of the output shards from the input shards (OneFlow's `InferPhysicalTensorDesc`). A global tensor always lies
    /// in the balanced split, so another shape is an error: the rule catches a signature under which the kernel would make something
    /// else than the shard. Without the hook the shapes of the balanced split are taken.
    #[must_use]
    pub fn physical_shapes(
        mut self,
        f: impl Fn(&InferCtx<'_>) -> Result<SmallVec<[Dims; 2]>> + Send + Sync + 'static,
    ) -> OpDef {
        self.hooks.physical = Some(Arc::new(f));
        self
    }

    /// The inputs and outputs of a call that have no gradient.
    ///
    /// # Errors
    /// A hook refuses the call.
    pub fn withheld(&self, ctx: &InferCtx<'_>, outs: &[TensorType]) -> Result<Withheld> {
        let plain = self.sig.inputs.iter().all(|i| !i.no_grad) && self.sig.output_defs.iter().all(|o| !o.no_grad);
        if plain && self.hooks.inputs.is_none() && self.hooks.outputs.is_none() {
            return Ok(Withheld::default());
        }
        let declared = |i: usize| InputProps { no_grad: self.sig.input_def(i).is_some_and(|d| d.no_grad) };
        let mut inputs: SmallVec<[InputProps; 8]> = (0..ctx.inputs.len()).map(declared).collect();
        if let Some(f) = &self.hooks.inputs {
            f(ctx, &mut inputs)?;
        }
        let made = self.outputs_made(ctx)?;
        let place = |o: usize| made.as_ref().map_or(o.min(self.sig.output_defs.len().saturating_sub(1)), |m| m[o]);
        let declared =
            |o: usize| OutputProps { no_grad: self.sig.output_defs.get(place(o)).is_some_and(|d| d.no_grad) };
        let mut outputs: SmallVec<[OutputProps; 8]> = (0..outs.len()).map(declared).collect();
        if let Some(f) = &self.hooks.outputs {
            f(ctx, outs, &mut outputs)?;
        }
        let bits = |what: &str, all: &mut dyn Iterator<Item = bool>| {
            let all: SmallVec<[bool; 8]> = all.collect();
            // One bit tells of all from 63 on.
            if all.len() > 64 && all[63..].iter().any(|b| *b != all[63]) {
                return Err(Error::unsupported(format!(
                    "{what} from 63 on must all have a gradient or none, of {}",
                    self.sig.name
                )));
            }
            Ok(all.iter().take(64).enumerate().fold(0u64, |m, (i, b)| m | u64::from(*b) << i))
        };
        Ok(Withheld {
            inputs: bits("inputs", &mut inputs.iter().map(|p| p.no_grad))?,
            outputs: bits("outputs", &mut outputs.iter().map(|p| p.no_grad))?,
        })
    }

    /// Checks the physical shapes that the op says against the shapes of the shards: those of `rank`, or of a local call.
    pub(crate) fn check_physical(
        &self,
        physical: &InferCtx<'_>,
        shards: &[TensorType],
        rank: Option<usize>,
    ) -> Result<()> {
        let Some(f) = &self.hooks.physical else { return Ok(()) };
        let said = f(physical)?;
        if said.len() != shards.len() {
            let (has, says) = (shards.len(), said.len());
            return Err(Error::registry(format!(
                "{} makes {has} outputs, its physical shapes are of {says}",
                self.sig.name
            )));
        }
        match said.iter().zip(shards).position(|(said, shard)| *said != shard.shape) {
            None => Ok(()),
            Some(o) => {
                let name = self.sig.outputs.get(o).map_or_else(|| o.to_string(), |n| format!("'{n}'"));
                let ins: Vec<String> =
                    physical.inputs.iter().map(|t| t.as_ref().map_or("none".into(), |t| t.to_string())).collect();
                Err(Error::registry(format!(
                    "{}: {}the shard of output {name} is {:?}, but from input shards {} the op makes {:?}",
                    self.sig.name,
                    rank.map_or(String::new(), |r| format!("on rank {r} ")),
                    shards[o].shape.as_slice(),
                    ins.join(", "),
                    said[o].as_slice()
                ))
                .help("a shard is the balanced split of the logical shape: leave the signature out, or `localize` the attributes"))
            }
        }
    }

    /// Where a call runs; none where the op leaves it to its inputs.
    ///
    /// # Errors
    /// The rule refuses the call, or gives another number of outputs.
    pub(crate) fn where_it_runs(&self, ctx: &DeviceCtx<'_>, outputs: usize) -> Result<Option<Devices>> {
        let Some(f) = &self.hooks.devices else { return Ok(None) };
        let found = f(ctx)?;
        if found.outputs.len() != outputs {
            let says = found.outputs.len();
            return Err(Error::registry(format!(
                "{} makes {outputs} outputs, its device rule tells of {says}",
                self.sig.name
            )));
        }
        Ok(Some(found))
    }

    /// Checks that the hooks go together with the rest of the declaration.
    pub(super) fn check_hooks(&self) -> Result<()> {
        let other = self.view.is_some() || !self.lowerings.is_empty() || self.length.is_some() || self.layout.is_some();
        if self.hooks.devices.is_some() && (other || self.sig.inputs.iter().any(|i| i.mutable)) {
            return Err(Error::registry(format!(
                "op {}: with a device rule it can have no view, lowering, length by values or mutable input",
                self.sig.name
            )));
        }
        Ok(())
    }
}
