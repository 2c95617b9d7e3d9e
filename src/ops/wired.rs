//! A gradient that is data against the ops that it calls. They may be registered after the op itself, so this is looked at when a library
//! is complete, and when a call is first recorded for backward: not only when backward runs.

use super::def::OpDef;
use super::grad::{Grad, GradWire};
use super::registry::{Op, lookup, nearest, shown};
use crate::error::{Error, Result};
use std::borrow::Cow;

impl OpDef {
    /// Checks that the gradient's calls are calls that those ops take.
    ///
    /// # Errors
    /// There is no such op; it has not so many inputs or outputs; an attribute is missing, unknown, or of the op's own name and left out.
    pub(crate) fn check_gradient<'a>(&self, find: &dyn Fn(&str) -> Result<Option<&'a OpDef>>) -> Result<()> {
        let Grad::Wiring(wires) = &self.grad else { return Ok(()) };
        for (k, wire) in wires.iter().enumerate() {
            let Some(called) = find(&wire.op)? else {
                let names = shown();
                let near = nearest(&wire.op, names.iter().map(|op| op.name()));
                let help = near.map_or("register it before the op is called for a gradient".to_string(), |n| {
                    format!("did you mean '{n}'? It must be registered before the op is called for a gradient")
                });
                let what = format!("the gradient of {} calls '{}', which is not an op", self.sig.name, wire.op);
                return Err(Error::registry(what).help(help));
            };
            self.check_wire(wire, called, wires[..k].iter().any(|w| w.same_call(wire)))?;
        }
        Ok(())
    }

    fn check_wire(&self, wire: &GradWire, called: &OpDef, seen: bool) -> Result<()> {
        let bad = |what: String, help: Cow<'static, str>| {
            let what = format!("the gradient of {} calls '{}' {what}", self.sig.name, wire.op);
            Err(Error::registry(what).help(format!("{help}; it is {}", called.sig)))
        };
        let outputs = called.sig.outputs.len();
        if wire.output >= outputs && !called.sig.outputs_vary() {
            return bad(format!("for its output {}, and it has {outputs}", wire.output), "outputs count from 0".into());
        }
        if seen {
            return Ok(());
        }
        let (given, inputs, repeating) = (wire.args.len(), &called.sig.inputs, called.sig.repeating());
        let needed = inputs.iter().take(inputs.len() - repeating).filter(|i| !i.optional).count();
        if given < needed || (repeating == 0 && given > inputs.len()) {
            let what = format!("with {given} inputs, and it takes {}", inputs.len());
            return bad(what, "name the inputs that it takes".into());
        }
        let own = |name: &str| self.sig.attr(name).is_some() || self.sig.runtime_attr(name).is_some();
        let attrs = || called.sig.attrs.iter().chain(&called.sig.runtime);
        if let Some(unknown) = wire.attrs.iter().find(|a| !attrs().any(|d| d.name == a.as_str())) {
            return bad(format!("with the attribute '{unknown}', which it does not have"), "leave it out".into());
        }
        for def in attrs().filter(|d| !wire.attrs.iter().any(|a| d.name == a.as_str())) {
            let help = || format!("hand it on: `{}(…; {})`", wire.op, def.name).into();
            if own(&def.name) {
                let what = format!("without '{}', which both have: it would take its default", def.name);
                return bad(what, help());
            }
            if def.default.is_none() {
                return bad(format!("without '{}', which has no default", def.name), help());
            }
        }
        Ok(())
    }
}

impl Op {
    /// [`OpDef::check_gradient`] against what is registered; it is found right once.
    #[inline]
    pub(crate) fn check_gradient_once(&self) -> Result<()> {
        if self.gradient_is_checked() { Ok(()) } else { self.check_gradient_now() }
    }

    #[cold]
    fn check_gradient_now(&self) -> Result<()> {
        self.check_gradient(&|name| Ok(lookup(name)?.map(|op| &**op)))?;
        self.gradient_was_checked();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Grad, OpDef, all, register};
    use crate::error::ErrorKind;

    #[test]
    fn gradients_of_built_in_ops_call_ops_as_these_are() {
        let wrong: Vec<String> = all()
            .iter()
            .filter(|op| op.is_builtin())
            .filter_map(|op| op.check_gradient_once().err())
            .map(|e| e.to_string())
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Found at the first call that is recorded for backward, whose line is the caller's.
    #[test]
    fn a_gradient_that_cannot_be_called_is_an_error_of_the_call() {
        let leaky = |name: &str, grad: &str| {
            let text = format!("{name}(x: float; alpha: runtime float = 0.01) -> y");
            let op = OpDef::elementwise(&text, "select(x < 0, alpha * x, x)").unwrap().domain("wired");
            let grad = Grad::parse(grad, &op.sig).unwrap();
            register(op.grad(grad)).unwrap()
        };
        let text = "leaky_grad(dy: float, x: float; alpha: runtime float = 0.01, more: int = 1) -> dx";
        let grad = OpDef::elementwise(text, "dy * select(x < 0, alpha, 1)");
        // An attribute of the plan has no place in an expression.
        assert!(grad.is_ok(), "{:?}", grad.err());
        register(grad.unwrap().domain("wired")).unwrap();
        for (name, grad, says) in [
            (
                "nowhere",
                "x = wired.leaky_gard(grad y, x; alpha)",
                "which is not an op\n  help: did you mean 'wired.leaky_grad'?",
            ),
            ("lost", "x = wired.leaky_grad(grad y, x)", "without 'alpha', which both have"),
            ("short", "x = wired.leaky_grad(grad y; alpha)", "with 1 inputs, and it takes 2"),
            ("long", "x = wired.leaky_grad(grad y, x, x; alpha)", "with 3 inputs, and it takes 2"),
            ("far", "_, x = wired.leaky_grad(grad y, x; alpha)", "for its output 1, and it has 1"),
        ] {
            let op = leaky(name, grad);
            let e = op.check_gradient_once().unwrap_err();
            println!("{e}\n");
            assert_eq!(e.kind(), ErrorKind::Registry);
            assert!(e.to_string().contains(says) && e.to_string().contains(name), "{e}");
        }
        leaky("right", "x = wired.leaky_grad(grad y, x; alpha)").check_gradient_once().unwrap();
    }
}
