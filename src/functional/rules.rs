//! Functions by name in gradient rules: what a rule names and no op has the name of is looked up in the table of functions.

use super::bind::{Arg, Bound, ByPosition, Given, Misfit, Refused, bind, first_fit};
use super::by_name::{ByName, there_are};
use super::definition::FnDef;
use super::table::overloads;
use crate::error::{CallSite, Error, Result};
use crate::interpreter::Functions;
use crate::ops::{AttrValue, FnSig, ParamKind};
use crate::tensor::Tensor;

/// The table of functions, for gradient rules.
pub(super) struct InRules;

impl Functions for InRules {
    fn call(
        &self,
        name: &str,
        inputs: &[Option<&Tensor>],
        attrs: &[(&str, AttrValue)],
        site: CallSite,
    ) -> Result<Vec<Tensor>> {
        call_in_rule(name, inputs, attrs, site)
    }
}

/// Tensors by place and attributes by name, as rules have them, by the names of a function's parameters. None if they do not fit.
fn by_parameter<'a>(
    sig: &'a FnSig,
    inputs: &[Option<&Tensor>],
    attrs: &[(&'a str, AttrValue)],
) -> Option<Vec<(&'a str, Arg)>> {
    let mut inputs = inputs.iter();
    let mut named: Vec<(&str, Arg)> = vec![];
    for p in &sig.params {
        match p.kind {
            ParamKind::Tensor => {
                if let Some(t) = inputs.next() {
                    named.push((&p.name, t.map_or(Arg::None, Arg::from)));
                }
            }
            ParamKind::TensorTuple => {
                let rest: Option<Vec<Tensor>> = inputs.by_ref().map(|t| t.cloned()).collect();
                named.push((&p.name, Arg::Tensors(rest?)));
            }
            _ => {}
        }
    }
    named.extend(attrs.iter().map(|(n, v)| (*n, Arg::Attr(v.clone()))));
    inputs.next().is_none().then_some(named)
}

/// Calls a function for a gradient rule. The first overload whose tensors and attributes are those given runs.
fn call_in_rule(
    name: &str,
    inputs: &[Option<&Tensor>],
    attrs: &[(&str, AttrValue)],
    site: CallSite,
) -> Result<Vec<Tensor>> {
    let _scope = site.scope();
    let given = || {
        let tensors = inputs.iter().map(|t| t.map_or("none".to_string(), |t| t.short()));
        let attrs = attrs.iter().map(|(n, v)| format!("{n}={v}"));
        format!("{name}({})", tensors.chain(attrs).collect::<Vec<_>>().join(", "))
    };
    if name.ends_with('_') {
        return Err(Error::autograd("a gradient rule cannot call a function that writes in place")
            .in_call(given)
            .help("call the function that returns a new tensor"));
    }
    let defs = overloads(name)?;
    let fits = |def: &FnDef| {
        let Some(named) = by_parameter(&def.sig, inputs, attrs) else {
            return Err(Refused::Misfit(Misfit::Text(format!("takes fewer tensors than {}", inputs.len()))));
        };
        let (keywords, values): (Vec<&str>, Vec<&Arg>) = named.iter().map(|(n, a)| (*n, a)).unzip();
        let given = Given::new(&values, &keywords);
        // In words at once: each overload is given values of its own.
        bind(&mut ByName::default(), &def.sig, ByPosition::of(&def.sig), &given).map_err(|refused| match refused {
            Refused::Misfit(why) => Refused::Misfit(Misfit::Text(why.text(&ByName::default(), &def.sig, &given))),
            raised => raised,
        })
    };
    match first_fit(&defs, fits) {
        Ok(Ok((def, args))) => {
            def.run(Bound { args, site }).and_then(|outs| outs.tensors()).map_err(|e| e.in_call(given))
        }
        Ok(Err(misfits)) => Err(Error::argument("no overload takes these tensors and attributes")
            .in_call(given)
            .help(there_are(&defs, &misfits, &Given::new(&[], &[])))),
        Err(never) => match never {},
    }
}
