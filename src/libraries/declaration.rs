//! An op as texts, whoever wrote them: a library, or the comment at the head of a `.cu` file.

use crate::error::{Error, Result};
use crate::ops::{DTypeRule, Grad, KernelPred, LibraryId, OpDef, Priority};
use oflow_kernels::DType;
use std::borrow::Cow;
use std::sync::Arc;

/// The texts of an op; empty ones say nothing. `oflow_op_def` in `oflow_op.h` says what each means.
#[derive(Clone, Debug, Default)]
pub(super) struct Declaration {
    pub(super) text: String,
    pub(super) domain: String,
    pub(super) version: u32,
    pub(super) doc: String,
    pub(super) subject: String,
    pub(super) traits: String,
    pub(super) functions: Vec<String>,
    pub(super) expression: String,
    pub(super) derivatives: Vec<String>,
    pub(super) shape: String,
    pub(super) dtype: String,
    pub(super) factors: String,
    pub(super) linear: Vec<String>,
    pub(super) signatures: Vec<String>,
    pub(super) nd_infer: Vec<String>,
    pub(super) nd_extra: Vec<String>,
    pub(super) nd_valid: Vec<String>,
    pub(super) gradient: String,
    pub(super) samples: Vec<String>,
}

impl Declaration {
    /// The declaration without kernels and rules in code.
    ///
    /// # Errors
    /// A text says nothing that can be understood; the message names op and library.
    pub(super) fn op(&self, library: &Arc<LibraryId>) -> Result<OpDef> {
        self.read(library).map_err(|e| about(e, &self.text, library))
    }

    fn read(&self, library: &Arc<LibraryId>) -> Result<OpDef> {
        // The domain may stand before the name.
        let open = self.text.find('(').unwrap_or(self.text.len());
        let (domain, text) = match self.text[..open].rsplit_once('.') {
            Some((domain, _)) => (domain.trim(), &self.text[domain.len() + 1..]),
            None => ("", self.text.as_str()),
        };
        if !domain.is_empty() && !self.domain.is_empty() && domain != self.domain {
            return Err(Error::parse(format!("it has two domains, {domain} and {}", self.domain)));
        }
        let mut op = match self.expression.as_str() {
            "" => OpDef::new(text)?,
            expression => OpDef::elementwise(text, expression)?,
        };
        let domain = [domain, &self.domain, &library.name].into_iter().find(|d| !d.is_empty()).unwrap_or_default();
        op = op.domain(domain).doc(&self.doc);
        op.version = self.version.max(1);
        op.library = Some(library.clone());
        if let Some(input) = op.sig.inputs.iter().find(|i| i.mutable) {
            return Err(Error::unsupported(format!("it writes its input '{}'", input.name))
                .help("ops of libraries write outputs only; use the form of the function in place (`scale_`)"));
        }
        if !self.subject.is_empty() {
            op.subject = Cow::Owned(self.subject.clone());
        }
        for word in self.traits.split(|c: char| c == ',' || c.is_whitespace()).filter(|w| !w.is_empty()) {
            match word {
                "length_by_kernel" => op = op.length_by_kernel(),
                word => op.traits.set(word)?,
            }
        }
        for line in &self.derivatives {
            let (input, expr) = line.split_once(':').ok_or_else(|| no_colon("derivative", line, "x: by"))?;
            let at = op.sig.input(input.trim()).ok_or_else(|| no_input(input, "derivative"))?;
            op = op.derivative(at, expr)?;
        }
        if !self.shape.is_empty() {
            op = op.shape_text(&self.shape)?;
        }
        if !self.dtype.is_empty() {
            op.dtype = DTypeRule::parse(&self.dtype, &op.sig)?;
        }
        if !self.factors.is_empty() && !self.signatures.is_empty() {
            return Err(Error::parse("it has factors and signatures").help("say how it may be sharded in one way"));
        }
        if !self.factors.is_empty() {
            op = op.factors(&self.factors);
        }
        if !self.signatures.is_empty() {
            op = op.signatures(&self.signatures.iter().map(String::as_str).collect::<Vec<_>>());
        }
        op = op.nd_rows(&self.nd_infer, &self.nd_extra, &self.nd_valid)?;
        for line in &self.linear {
            let (input, outputs) = line.split_once(':').unwrap_or((line, ""));
            let input = input.trim();
            op.sig.input(input).ok_or_else(|| no_input(input, "list of linear inputs"))?;
            let outputs: Vec<&str> = outputs.split(',').map(str::trim).filter(|o| !o.is_empty()).collect();
            op = if outputs.is_empty() { op.linear_in(&[input]) } else { op.linear_for(input, &outputs) };
        }
        if !self.gradient.trim().is_empty() {
            op.grad = Grad::parse(&self.gradient, &op.sig)?;
        }
        op.functions.extend(self.functions.iter().map(|f| Cow::Owned(f.clone())));
        op.samples.extend(self.samples.iter().map(|s| Cow::Owned(s.clone())));
        Ok(op)
    }
}

/// Names op and library in an error.
pub(super) fn about(e: Error, op: &str, library: &LibraryId) -> Error {
    let kind = e.kind();
    let help = e.help_text().map(str::to_string);
    let found = Error::new(kind, format!("op '{op}' of library {library}: {}", e.message()));
    match help {
        Some(help) => found.help(help),
        None => found,
    }
}

fn no_colon(what: &str, line: &str, example: &str) -> Error {
    Error::parse(format!("the {what} '{line}' has no ':'")).help(format!("write it as in `{example}`"))
}

fn no_input(name: &str, what: &str) -> Error {
    Error::parse(format!("a {what} names the input '{}', which it does not have", name.trim()))
}

/// When a kernel applies: the element types that it takes, of the inputs that may have them, and a condition.
pub(super) fn condition(dtypes: &str, condition: &str, op: &OpDef) -> Result<KernelPred> {
    let mut all = vec![];
    if !dtypes.trim().is_empty() {
        let taken: Result<Vec<DType>, _> = dtypes.split('|').map(|word| word.trim().parse::<DType>()).collect();
        all.push(KernelPred::Inputs(taken.map_err(|e| {
            Error::parse(format!("'{dtypes}' are not element types: {e}")).help("write them as in `f32|f64`")
        })?));
    }
    if !condition.trim().is_empty() {
        all.push(KernelPred::parse(condition, op)?);
    }
    Ok(match all.len() {
        0 => KernelPred::Any,
        1 => all.remove(0),
        _ => KernelPred::All(all),
    })
}

/// The priority of a kernel.
pub(super) fn priority(word: &str) -> Result<Priority> {
    match word.trim() {
        "fallback" => Ok(Priority::Fallback),
        "" | "default" => Ok(Priority::Default),
        "optimized" => Ok(Priority::Optimized),
        "experimental" => Ok(Priority::Experimental),
        other => Err(Error::parse(format!("'{other}' is not a priority of a kernel"))
            .help("priorities are fallback, default, optimized and experimental")),
    }
}
