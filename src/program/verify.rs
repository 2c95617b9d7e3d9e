//! Checks that a program is one: values are defined once and before they are used, what was written over is not read, layouts are those of
//! the signatures.

use super::types::{CallNode, Draw, HostId, Node, Outside, OutsideKind, Program, ValueId, Work, described};
use crate::error::{Error, Result};
use crate::plan::TypeRef;
use oflow_kernels::DType;

/// State of a value while the nodes are walked.
#[derive(Clone, Copy, PartialEq)]
enum Seen {
    No,
    Defined,
    /// A local tensor whose memory has another value since.
    Overwritten,
}

impl Program {
    /// Checks the program.
    ///
    /// # Errors
    /// A value is defined twice, used before it is defined or after a call has written over it, or a node and its types do not fit. The
    /// error names the node.
    pub fn verify(&self) -> Result<()> {
        let of_section =
            |o: &&Outside| !matches!(o.kind, OutsideKind::Input | OutsideKind::Variable | OutsideKind::Constant);
        match self.outside.iter().find(of_section) {
            Some(o) => Err(wrong(&format!("{} is {}, as values of sections are", o.value, o.kind.word())).at(o.site)),
            None => self.verify_with(&self.hosts),
        }
    }

    /// Checks the program, or a section of one with these host objects.
    pub(super) fn verify_with(&self, hosts: &[String]) -> Result<()> {
        let mut seen = vec![Seen::No; self.values.len()];
        // The guard under which each value is made.
        let mut made_under = vec![None; self.values.len()];
        for o in &self.outside {
            define(&mut seen, o.value).map_err(|e| e.at(o.site))?;
        }
        for (n, node) in self.nodes.iter().enumerate() {
            let check = || -> Result<()> {
                node.needs().try_for_each(|v| used(&seen, v))?;
                let there = |v: &ValueId| made_under[v.index()].is_none() || made_under[v.index()] == node.guard;
                if let Some(v) = node.needs().find(|v| !there(v)) {
                    return Err(wrong(&format!("{v} is made under another guard")));
                }
                if node.overlapped && !node.is_boxing() {
                    return Err(wrong("only a boxing goes on while others compute"));
                }
                self.verify_guard(node)?;
                self.verify_layouts(node, hosts)
            };
            check().map_err(|e| e.in_call(|| format!("node {n} of the program")).at(node.site))?;
            for w in &node.writes {
                if matches!(self.ty(w.old), TypeRef::Local(_)) {
                    seen[w.old.index()] = Seen::Overwritten;
                }
            }
            node.defines().try_for_each(|v| define(&mut seen, v)).map_err(|e| e.at(node.site))?;
            node.outputs.iter().for_each(|v| made_under[v.index()] = node.guard);
        }
        if let Some(n) = seen.iter().position(|s| *s == Seen::No) {
            return Err(wrong(&format!("{} is not defined", ValueId(n as u32))));
        }
        match self.outputs.iter().find(|v| made_under.get(v.index()).is_some_and(Option::is_some)) {
            Some(v) => Err(wrong(&format!("{v}, which is returned, is made under a guard"))),
            None => self.outputs.iter().try_for_each(|v| used(&seen, *v)),
        }
    }

    fn verify_guard(&self, node: &Node) -> Result<()> {
        let Some(guard) = node.guard else { return Ok(()) };
        let ty = self.ty(guard).ty();
        match ty.dtype == DType::Bool && ty.shape.is_empty() {
            true => Ok(()),
            false => {
                Err(wrong(&format!("{}, a guard, is to be a truth value without dims", described(self.ty(guard)))))
            }
        }
    }

    fn verify_layouts(&self, node: &Node, hosts: &[String]) -> Result<()> {
        for w in &node.writes {
            self.same_type(w.old, w.new)?;
        }
        match &node.work {
            Work::Call(call) => self.verify_call(node, call, hosts),
            Work::Box(_) => match (node.inputs.as_slice(), node.outputs.as_slice(), node.writes.as_slice()) {
                ([Some(from)], [to], [])
                    if self.ty(*from).ty() == self.ty(*to).ty() && self.ty(*to).global().is_some() =>
                {
                    Ok(())
                }
                _ => Err(wrong("a boxing keeps shape and dtype of one global tensor")),
            },
            Work::Host(id) if node.inputs.is_empty() && node.defines().next().is_none() => verify_host(*id, hosts),
            Work::Host(_) => Err(wrong("a host object reads and makes no values")),
            Work::Repeat(r) => self.verify_repeat(node, r, hosts),
        }
    }

    fn verify_call(&self, node: &Node, call: &CallNode, hosts: &[String]) -> Result<()> {
        call.host.map_or(Ok(()), |(id, _)| verify_host(id, hosts))?;
        if let Some(Draw { generator, ordinal }) = call.draw
            && self.draws.get(generator.0 as usize).is_none_or(|n| ordinal >= *n)
        {
            return Err(wrong(&format!("a run does not take draw {ordinal} of generator {}", generator.0)));
        }
        if call.into && node.writes.is_empty() {
            return Err(wrong("output 0 is to be written into a tensor, and none is"));
        }
        let Some(sig) = &call.signature else { return Ok(()) };
        let layout = |v: ValueId| self.ty(v).global().map(|g| &g.sbp);
        for (i, (v, want)) in node.inputs.iter().zip(&sig.inputs).enumerate() {
            if let Some(v) = v
                && layout(*v) != Some(want)
            {
                return Err(wrong(&format!("input {i}, {}, is to be {want}", described(self.ty(*v)))));
            }
        }
        for (o, (v, want)) in node.outputs.iter().zip(&sig.outputs).enumerate() {
            if layout(*v) != Some(want) {
                return Err(wrong(&format!("output {o}, {}, is to be {want}", described(self.ty(*v)))));
            }
        }
        Ok(())
    }

    fn same_type(&self, old: ValueId, new: ValueId) -> Result<()> {
        let (old, new) = (described(self.ty(old)), described(self.ty(new)));
        if old == new { Ok(()) } else { Err(wrong(&format!("{new} is written over {old}"))) }
    }
}

fn verify_host(id: HostId, hosts: &[String]) -> Result<()> {
    match hosts.get(id.0 as usize) {
        Some(_) => Ok(()),
        None => Err(wrong(&format!("the program has no host object {}", id.0))),
    }
}

fn wrong(what: &str) -> Error {
    Error::argument(format!("the program is not valid: {what}"))
}

fn define(seen: &mut [Seen], v: ValueId) -> Result<()> {
    match seen.get(v.index()) {
        Some(Seen::No) => {
            seen[v.index()] = Seen::Defined;
            Ok(())
        }
        Some(_) => Err(wrong(&format!("{v} is defined twice"))),
        None => Err(wrong(&format!("{v} has no type"))),
    }
}

fn used(seen: &[Seen], v: ValueId) -> Result<()> {
    match seen.get(v.index()) {
        Some(Seen::Defined) => Ok(()),
        Some(Seen::Overwritten) => Err(wrong(&format!("{v} is used after a call has written over it"))),
        Some(Seen::No) | None => Err(wrong(&format!("{v} is used and not defined before"))),
    }
}
