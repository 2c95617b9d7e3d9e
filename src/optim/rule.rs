//! The settings of an optimizer, and its step: all that the kinds differ in.

use crate::error::{CallSite, Result};
use crate::functional::op;
use crate::interpreter::{Call, HostCalls, HostNumbers};
use crate::ops::{Op, RuntimeAttrs};
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};

/// The settings of an optimizer, and its step.
pub trait OptimizerRule: Copy + Send + Sync + 'static {
    /// Learning rate of the next step.
    fn lr(&self) -> f64;
    /// Sets the learning rate.
    fn set_lr(&mut self, lr: f64);
    /// Whether half parameters have f32 masters.
    fn master_weights(&self) -> bool;
    /// The same settings with or without masters.
    #[must_use]
    fn with_masters(self, on: bool) -> Self;
    /// Whether the step goes along the gradient instead of against it.
    fn maximize(&self) -> bool;
    /// The same settings with another weight decay, if the optimizer has one.
    #[must_use]
    fn with_weight_decay(self, weight_decay: f64) -> Self;
    /// Tensors of state of each parameter, in the order in which the op takes them: the name under which each is saved, and whether
    /// these settings need it.
    fn state(&self) -> Vec<(&'static str, bool)>;
    /// Initial value of a new tensor of state of that name.
    fn initial(&self, _state: &str) -> f64 {
        0.0
    }
    /// Shape of the tensor of state of that name, of a parameter with so many dims.
    fn shape_of_state(&self, _state: &str, _rank: usize) -> StateShape {
        StateShape::Same
    }
    /// Whether the number of steps enters the step, and is saved.
    fn counts_steps(&self) -> bool {
        false
    }
    /// Refuses settings that contradict each other. Each step asks it.
    ///
    /// # Errors
    /// If they do.
    fn check(&self) -> Result<()> {
        Ok(())
    }
    /// Refuses a parameter that the optimizer cannot step.
    ///
    /// # Errors
    /// If it is one.
    fn check_parameter(&self, _parameter: &Tensor) -> Result<()> {
        Ok(())
    }
    /// The op of many parameters; of a step that is composed of several ops the one that takes its [`scalars`](OptimizerRule::scalars).
    fn op(&self) -> Result<&'static Op>;
    /// The settings of the op for parameters that have taken these steps: they go together.
    fn settings(&self, at: StepCount) -> RuntimeAttrs;
    /// Further numbers of the step, for `StepCall::times`; at most three.
    fn scalars(&self, _at: StepCount) -> Scalars {
        smallvec![self.lr()]
    }
    /// The settings that a graph holds as they were when it was captured; the others are read at each run.
    fn captured_settings(&self) -> String {
        format!("maximize: {}", self.maximize())
    }
    /// Carries out the step of parameters with the same layout and the same [`settings`](OptimizerRule::settings).
    fn run(&self, due: &[ParamState], call: StepCall) -> Result<()> {
        // The op may have no input for the last state, which these settings do not need.
        let (op, settings) = (self.op()?, self.settings(due[0].count));
        let inputs: Vec<Option<&Tensor>> = due.iter().flat_map(|p| p.inputs().take(op.sig.repeating())).collect();
        Call::new(op, &inputs).runtime(settings).host(call.settings()).at(call.site).run().map(drop)
    }
}

/// The methods of an [`OptimizerRule`] that are fields of the settings.
macro_rules! options_fields {
    () => {
        fn lr(&self) -> f64 {
            self.lr
        }
        fn set_lr(&mut self, lr: f64) {
            self.lr = lr;
        }
        fn master_weights(&self) -> bool {
            self.master_weights
        }
        fn with_masters(self, master_weights: bool) -> Self {
            Self { master_weights, ..self }
        }
        fn maximize(&self) -> bool {
            self.maximize
        }
    };
    (weight_decay) => {
        options_fields!();
        fn with_weight_decay(self, weight_decay: f64) -> Self {
            Self { weight_decay, ..self }
        }
    };
}
pub(super) use options_fields;

/// Numbers of a step beside the settings of its op.
pub type Scalars = SmallVec<[f64; 3]>;

/// Shape of what an optimizer keeps of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateShape {
    /// Shape of the parameter.
    Same,
    /// Shape of the parameter with size 1 in this dim.
    Reduced(usize),
    /// Nothing is kept of such a parameter.
    Absent,
}

/// Steps of a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCount {
    /// Number of the parameter's step, from 1.
    pub steps: i64,
    /// Whether its state was made for this step.
    pub is_new: bool,
}

/// Numbers that a captured step has of each group: its settings, and its scalars.
pub(super) const OF_GROUP: u32 = 4;

/// A call of a step: its line, and where a graph that captures it finds its numbers at each run.
#[derive(Clone, Copy)]
pub struct StepCall {
    /// Line that called `step`.
    pub site: CallSite,
    /// The calls of the captured step, and the number of the group.
    pub(super) group: Option<(HostCalls, u32)>,
}

impl StepCall {
    /// Where the [`settings`](OptimizerRule::settings) of the group are found.
    pub(super) fn settings(self) -> Option<HostNumbers> {
        self.group.map(|(host, n)| host.call(OF_GROUP * n))
    }
    /// A tensor times number `which` of the [`scalars`](OptimizerRule::scalars), which a graph reads at each run.
    pub(super) fn times(self, x: &Tensor, scalars: &Scalars, which: usize) -> Result<Tensor> {
        let host = self.group.map(|(host, n)| host.call(OF_GROUP * n + 1 + which as u32));
        let now: RuntimeAttrs = smallvec![scalars[which].into()];
        Call::new(op!("mul_scalar")?, &[Some(x)]).runtime(now).host(host).at(self.site).run1()
    }
}

/// A parameter of a step: what is updated (the parameter or its master), and what belongs to it.
pub struct ParamState {
    /// Number of the parameter.
    pub(super) number: usize,
    /// Tensor that is updated.
    pub target: Tensor,
    /// Gradient of the parameter, against which the step goes.
    pub grad: Tensor,
    /// State of the parameter, in the order of [`OptimizerRule::state`]; `None` where the settings need none.
    pub state: SmallVec<[Option<Tensor>; 3]>,
    /// Steps of the parameter, this one included.
    pub count: StepCount,
}

impl ParamState {
    /// All tensors, in the order in which the op takes them.
    pub fn inputs(&self) -> impl Iterator<Item = Option<&Tensor>> {
        [Some(&self.target), Some(&self.grad)].into_iter().chain(self.state.iter().map(Option::as_ref))
    }
}
