//! The text of a program: one line for each value from outside and each node.

use super::types::{BoxedFor, CallNode, Node, Program, ValueId, Work, described};
use crate::ops::{AttrDef, AttrValue};
use crate::plan::Target;
use oflow_kernels::Scalar;
use std::fmt;

impl fmt::Display for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// The word for an attribute that is absent.
pub(super) const NONE: &str = "none";

/// The marks of a node, after its types.
pub(super) const RECOMPUTED: &str = " recomputed";
pub(super) const OVERLAPPED: &str = " overlapped";
pub(super) const BACKWARD: &str = " backward";

/// A text in quotes, in which no quote stands.
pub(super) fn quoted(s: &str) -> String {
    serde_json::Value::from(s).to_string().replace("\\\"", "\\u0022")
}

/// An attribute's value, as it is read again.
fn value_text(v: &AttrValue) -> String {
    match v {
        AttrValue::Str(s) => quoted(s),
        AttrValue::Bytes(b) => format!("0x{}", b.iter().map(|b| format!("{b:02x}")).collect::<String>()),
        AttrValue::List(all) => format!("[{}]", all.iter().map(value_text).collect::<Vec<_>>().join(", ")),
        AttrValue::Absent => NONE.to_string(),
        v => v.to_string(),
    }
}

/// Values separated by commas; `-` stands for an input that was left out.
fn list(values: impl Iterator<Item = Option<ValueId>>) -> String {
    values.map(|v| v.map_or("-".into(), |v| v.to_string())).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_lines(f, &self.hosts, 0)
    }
}

impl Program {
    /// The program's lines; those of a section stand further to the right than the node that repeats it.
    fn write_lines(&self, f: &mut fmt::Formatter<'_>, hosts: &[String], depth: usize) -> fmt::Result {
        let indent = INDENT.repeat(depth);
        if self.draws.iter().any(|n| *n > 0) {
            let draws: Vec<String> = self.draws.iter().map(u64::to_string).collect();
            writeln!(f, "{indent}draws {}", draws.join(" "))?;
        }
        for o in &self.outside {
            write!(f, "{indent}{} {}", o.kind.word(), o.value)?;
            if !o.name.is_empty() {
                write!(f, " {}", quoted(&o.name))?;
            }
            writeln!(f, ": {}  # {}", described(self.ty(o.value)), o.site)?;
        }
        for node in &self.nodes {
            writeln!(f, "{indent}{}  # {}", Marked(self, node, hosts), node.site)?;
            if let Some(r) = node.repeat() {
                r.body.write_lines(f, hosts, depth + 1)?;
            }
        }
        writeln!(f, "{indent}{}", self.return_line())
    }

    /// The line that ends the program.
    pub(super) fn return_line(&self) -> String {
        format!("return {}", list(self.outputs.iter().copied().map(Some)))
    }
}

/// Indentation of the lines of a section.
const INDENT: &str = "  ";

/// The text of one node, without its line; of a repeated section, of the node alone. With the names of the host objects.
pub(super) struct Line<'a>(pub(super) &'a Program, pub(super) &'a Node, pub(super) &'a [String]);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_node(f, self.1, self.2)
    }
}

/// The same with its marks.
pub(super) struct Marked<'a>(pub(super) &'a Program, pub(super) &'a Node, pub(super) &'a [String]);

impl fmt::Display for Marked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = |on: bool, word: &'static str| if on { word } else { "" };
        let (again, backward) = (mark(self.1.recomputed, RECOMPUTED), mark(self.1.backward, BACKWARD));
        let beside = mark(self.1.overlapped, OVERLAPPED);
        write!(f, "{}{again}{beside}{backward}", Line(self.0, self.1, self.2))
    }
}

impl Program {
    /// Text of what a node does, on which values, under which guard, with results of which types; not which values these are, nor for which op it
    /// boxes.
    pub(super) fn made_how(&self, node: &Node) -> String {
        let line = Line(self, node, &self.hosts).to_string();
        let line = line.split_once(" = ").map_or(line.as_str(), |(_, how)| how);
        match &node.work {
            Work::Box(op) => line.replacen(&format!(" for {op}"), "", 1),
            _ => line.to_string(),
        }
    }

    fn write_node(&self, f: &mut fmt::Formatter<'_>, node: &Node, hosts: &[String]) -> fmt::Result {
        let made = list(node.defines().map(Some));
        if !made.is_empty() {
            write!(f, "{made} = ")?;
        }
        let inputs = list(node.inputs.iter().copied());
        match &node.work {
            Work::Call(call) => {
                write!(f, "{}({inputs})", call.op.full_name())?;
                write_numbers(f, call)?;
                match &call.target {
                    Some(Target::Local(device)) => write!(f, " on {device}")?,
                    Some(Target::Global(placement, sbp)) => write!(f, " as {sbp} on {placement}")?,
                    None => {}
                }
                if !node.writes.is_empty() {
                    let how = if call.into { "into" } else { "over" };
                    write!(f, " {how} {}", list(node.writes.iter().map(|w| Some(w.old))))?;
                }
                match call.boxed_for {
                    Some(BoxedFor::Gradient) => f.write_str(" for a gradient")?,
                    Some(BoxedFor::Op(op)) => write!(f, " for {op}")?,
                    None => {}
                }
                if let Some(lowering) = call.signature.as_ref().and_then(|s| s.lowering) {
                    write!(f, " lowered {lowering}")?;
                }
            }
            Work::Box(op) => write!(f, "box({inputs}) for {op}")?,
            Work::Host(id) => write!(f, "host {} {}", id.0, quoted(&hosts[id.0 as usize]))?,
            Work::Repeat(r) => {
                write!(f, "repeat {}({inputs})", r.count)?;
                if !node.writes.is_empty() {
                    write!(f, " over {}", list(node.writes.iter().map(|w| Some(w.old))))?;
                }
                if !r.first_draws.is_empty() {
                    let first: Vec<String> = r.first_draws.iter().map(u64::to_string).collect();
                    write!(f, " drawing from {}", first.join(" "))?;
                }
            }
        }
        if let Some(guard) = node.guard {
            write!(f, " if {guard}")?;
        }
        let types: Vec<String> = node.defines().map(|v| described(self.ty(v))).collect();
        if !types.is_empty() {
            write!(f, ": {}", types.join("; "))?;
        }
        Ok(())
    }
}

/// The attributes: `{dims=[0], keepdim=false, s=0.1}`, those that a plan depends on before the others.
fn write_numbers(f: &mut fmt::Formatter<'_>, call: &CallNode) -> fmt::Result {
    let sig = &call.op.sig;
    let plan = sig.attrs.iter().zip(&call.attrs).map(|(d, v)| format!("{}={}", d.name, value_text(v)));
    let number = |(d, s): (&AttrDef, &Scalar)| {
        let name = d.name.as_str();
        match (call.host, call.draw, name) {
            (Some((host, n)), ..) => format!("{name}=host {}.{n}", host.0),
            (None, Some(draw), "seed") => format!("{name}=generator {}", draw.generator.0),
            (None, Some(draw), "ordinal") => format!("{name}=draw {}", draw.ordinal),
            _ => format!("{name}={s}"),
        }
    };
    let all: Vec<String> = plan.chain(sig.runtime.iter().zip(&call.runtime).map(number)).collect();
    if all.is_empty() { Ok(()) } else { write!(f, " {{{}}}", all.join(", ")) }
}
