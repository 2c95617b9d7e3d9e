//! Summary of a program by module: results, layouts, parameters, bytes, multiplications and what boxings send.

use super::passes::declared_flops;
use super::types::{Node, Program, ValueId};
use crate::boxing::{Layout, Planner};
use crate::plan::{TypeRef, local_type};
use oflow_base::text::{bytes, short_path, tail};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Rows of modules and of parameters that are printed.
const ROWS: usize = 400;

/// A parameter of a model, or another tensor that a program has from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ParameterRow {
    /// Dotted name; for a graph the module or line that uses it first.
    pub name: String,
    /// The tensor in short form, as `f32[64, 32]`.
    pub tensor: String,
    /// nd-SBP of a global tensor; empty for a local one.
    pub layout: String,
    /// Placement of a global tensor, device of a local one.
    pub on: String,
    /// Number of logical elements.
    pub elements: u64,
    /// Bytes of this rank's shard.
    pub bytes: u64,
    /// Whether it requires a gradient.
    pub trained: bool,
}

impl ParameterRow {
    /// The row of a tensor of that type.
    pub(crate) fn new(name: &str, ty: &TypeRef, trained: bool, rank: usize) -> ParameterRow {
        let (layout, on) = match ty {
            TypeRef::Local(l) => (String::new(), l.device.to_string()),
            TypeRef::Global(g) => (g.sbp.to_string(), g.placement.to_string()),
        };
        ParameterRow {
            name: name.to_string(),
            tensor: tensor_text(ty),
            layout,
            on,
            elements: ty.ty().len() as u64,
            bytes: bytes_here(ty, rank),
            trained,
        }
    }

    /// Path of the module that has the parameter.
    fn module(&self) -> &str {
        self.name.rsplit_once('.').map_or("", |(module, _)| module)
    }
}

/// A module of a model, with all that is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ModuleRow {
    /// Path of the module; empty for the whole.
    pub path: String,
    /// Kind of the module, if it is known: the name of its class.
    pub kind: String,
    /// Last result of the module in forward, in short form.
    pub output: String,
    /// nd-SBP of that result; empty for a local one.
    pub layout: String,
    /// Number of elements of the parameters.
    pub parameters: u64,
    /// Multiplications that are followed by an addition, of products and convolutions, on all ranks together.
    pub mult_adds: u64,
    /// Bytes of the results of all calls, on this rank.
    pub results: u64,
    /// Bytes that all ranks together send in boxings.
    pub sent: u64,
    /// Number of calls.
    pub calls: u64,
}

/// Parts of a model, and the work and memory of a run of it: made by [`Module::summary`](crate::nn::Module::summary) and
/// [`Graph::summary`](crate::graph::Graph::summary). Prints as tables of 100 columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The rank whose bytes are told.
    pub rank: usize,
    /// Modules, each before its parts. The first one is the whole.
    pub modules: Vec<ModuleRow>,
    /// Parameters in the order of the model, or variables of a graph in the order of their use.
    pub parameters: Vec<ParameterRow>,
    /// Bytes of the other tensors from outside on this rank: inputs and constants.
    pub inputs: u64,
}

fn tensor_text(ty: &TypeRef) -> String {
    let t = ty.ty();
    format!("{}{:?}", t.dtype, t.shape.as_slice())
}

fn bytes_here(ty: &TypeRef, rank: usize) -> u64 {
    local_type(rank, ty).map_or(0, |l| l.bytes as u64)
}

/// Sums of one path.
#[derive(Default)]
struct Sums {
    /// Last value made here that calls elsewhere read, or the program returns.
    output: Option<ValueId>,
    /// First result of the last call, for a module whose values nobody reads.
    last: Option<ValueId>,
    own: ModuleRow,
}

/// Sums by path, in the order in which the program meets them.
struct Reader<'a> {
    rank: usize,
    planner: &'a Planner,
    order: Vec<String>,
    sums: BTreeMap<String, Sums>,
    /// Path of the call that made a value.
    made_in: BTreeMap<ValueId, String>,
}

impl Summary {
    /// The summary of a program. `parameters` are those of the model, each with its value in the program if it is used there.
    pub(crate) fn of(
        program: &Program,
        parameters: Vec<(ParameterRow, Option<ValueId>)>,
        (rank, planner): (usize, &Planner),
    ) -> Summary {
        let mut reader =
            Reader { rank, planner, order: vec![String::new()], sums: BTreeMap::new(), made_in: BTreeMap::new() };
        let modules: BTreeMap<ValueId, String> =
            parameters.iter().filter_map(|(row, v)| Some(((*v)?, row.module().to_string()))).collect();
        reader.program(program, &modules, 1);
        let is_parameter = |v: &ValueId| parameters.iter().any(|(_, p)| *p == Some(*v));
        let outside = program.outside.iter().map(|o| o.value).filter(|v| !is_parameter(v));
        let inputs = outside.map(|v| bytes_here(program.ty(v), rank)).sum();
        for (row, _) in &parameters {
            for path in reader.paths(row.module()) {
                reader.sums.entry(path).or_default().own.parameters += row.elements;
            }
        }
        program.outputs.iter().rev().for_each(|v| reader.read(*v, None));
        let rows = sorted(&reader.order).into_iter().map(|path| {
            let sums = reader.sums.remove(&path).unwrap_or_default();
            let ty = sums.output.or(sums.last).map(|v| program.ty(v));
            let layout = ty.and_then(TypeRef::global).map_or(String::new(), |g| g.sbp.to_string());
            ModuleRow { output: ty.map_or(String::new(), tensor_text), layout, path, ..sums.own }
        });
        let modules = rows.collect();
        Summary { rank, modules, parameters: parameters.into_iter().map(|(row, _)| row).collect(), inputs }
    }

    /// Names the kinds of modules by their paths.
    pub fn name_kinds<'a>(&mut self, kind: impl Fn(&str) -> Option<&'a str>) {
        for m in &mut self.modules {
            m.kind = kind(&m.path).unwrap_or_default().to_string();
        }
    }

    /// Number of elements of all parameters, and of those that require a gradient.
    pub fn elements(&self) -> (u64, u64) {
        let of = |trained: bool| self.parameters.iter().filter(|p| p.trained || !trained).map(|p| p.elements).sum();
        (of(false), of(true))
    }

    /// Bytes of all parameters on this rank.
    pub fn parameter_bytes(&self) -> u64 {
        self.parameters.iter().map(|p| p.bytes).sum()
    }

    /// The row of the whole.
    fn whole(&self) -> Option<&ModuleRow> {
        self.modules.first()
    }
}

/// Paths with each parent before its parts, in the order in which they were met otherwise.
fn sorted(met: &[String]) -> Vec<String> {
    let mut out = vec![];
    below("", met, &mut out);
    out
}

fn below(parent: &str, met: &[String], out: &mut Vec<String>) {
    out.push(parent.to_string());
    let parent_of = |path: &str| path.rsplit_once('.').map_or("", |(p, _)| p).to_string();
    let parts: Vec<&String> = met.iter().filter(|p| !p.is_empty() && parent_of(p) == parent).collect();
    parts.into_iter().for_each(|p| below(p, met, out));
}

impl Reader<'_> {
    /// A path and those of the modules around it, all of which have rows.
    fn paths(&mut self, path: &str) -> Vec<String> {
        let ends = path.match_indices('.').map(|(at, _)| at);
        let ends = (!path.is_empty()).then_some(path.len()).into_iter().chain(ends);
        let mut all: Vec<String> =
            std::iter::once(String::new()).chain(ends.map(|at| path[..at].to_string())).collect();
        all.sort_by_key(String::len);
        for p in &all {
            if !self.sums.contains_key(p) {
                self.sums.insert(p.clone(), Sums::default());
                if !p.is_empty() {
                    self.order.push(p.clone());
                }
            }
        }
        all
    }

    fn program(&mut self, program: &Program, modules: &BTreeMap<ValueId, String>, times: u64) {
        for node in &program.nodes {
            if let Some(r) = node.repeat() {
                // Values of a section have numbers of their own, so its parameters are known by scopes only.
                self.program(&r.body, &BTreeMap::new(), times.saturating_mul(r.count));
                continue;
            }
            self.node(program, node, modules, times);
        }
    }

    fn node(&mut self, program: &Program, node: &Node, modules: &BTreeMap<ValueId, String>, times: u64) {
        let scope = node.site.scope.path();
        // A module that a program calls outside of a scope is known by its parameters.
        let read = node.inputs.iter().flatten().find_map(|v| modules.get(v));
        let path = match read {
            Some(module) if scope.is_empty() || module.ends_with(scope) => module.clone(),
            _ => scope.to_string(),
        };
        let mut own = ModuleRow { calls: times, ..ModuleRow::default() };
        if node.is_boxing() {
            own.sent = self.sent(program, node).saturating_mul(times);
        } else if let Some(call) = node.call() {
            // Halves of floating point operations, which declare a multiplication and an addition each.
            own.mult_adds = (declared_flops(program, node, call).unwrap_or(0) / 2).saturating_mul(times);
        }
        let made = node.outputs.iter().map(|v| bytes_here(program.ty(*v), self.rank)).sum::<u64>();
        own.results = made.saturating_mul(times);
        for path in self.paths(&path) {
            let Some(sums) = self.sums.get_mut(&path) else { continue };
            let ModuleRow { mult_adds, results, sent, calls, .. } = &mut sums.own;
            *mult_adds = mult_adds.saturating_add(own.mult_adds);
            *results = results.saturating_add(own.results);
            *sent = sent.saturating_add(own.sent);
            *calls += own.calls;
            // Values of a section have numbers of their own.
            if !node.backward && times == 1 {
                sums.last = node.outputs.first().copied().or(sums.last);
            }
        }
        if !node.backward && times == 1 {
            node.inputs.iter().flatten().for_each(|v| self.read(*v, Some(&path)));
            node.outputs.iter().for_each(|v| drop(self.made_in.insert(*v, path.clone())));
        }
    }

    /// Notes that a call in the module `by`, or whoever runs the program, reads a value: it is a result of the modules around the call that made
    /// it, up to those that have both.
    fn read(&mut self, v: ValueId, by: Option<&str>) {
        let Some(made) = self.made_in.get(&v).cloned() else { return };
        let inside = |p: &str| {
            by.is_some_and(|by| p.is_empty() || by == p || by.strip_prefix(p).is_some_and(|b| b.starts_with('.')))
        };
        for p in self.paths(&made).into_iter().filter(|p| !inside(p)) {
            if let Some(sums) = self.sums.get_mut(&p)
                && (by.is_none() || sums.output.is_none_or(|o| o.index() < v.index()))
            {
                sums.output = Some(v);
            }
        }
    }

    /// Bytes that all ranks together send in a boxing.
    fn sent(&self, program: &Program, node: &Node) -> u64 {
        let (Some(Some(from)), Some(to)) = (node.inputs.first(), node.outputs.first()) else { return 0 };
        let (Some(from), Some(to)) = (program.ty(*from).global(), program.ty(*to).global()) else { return 0 };
        let layout = |g: &crate::plan::GlobalRef| Layout::new(&g.placement, g.sbp.clone());
        let plan = self.planner.plan(&from.ty.shape, from.ty.dtype, &layout(from), &layout(to));
        plan.map_or(0, |p| p.bytes_sent())
    }
}

/// A number with commas between its thousands.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (left, digit) in (0..digits.len()).rev().zip(digits.chars()) {
        out.push(digit);
        if left > 0 && left % 3 == 0 {
            out.push(',');
        }
    }
    out
}

/// A large number in thousands, millions …
fn short(n: u64) -> String {
    match n as f64 {
        x if x < 1e5 => grouped(n),
        x if x < 1e6 => format!("{:.1} k", x / 1e3),
        x if x < 1e9 => format!("{:.1} M", x / 1e6),
        x if x < 1e12 => format!("{:.1} G", x / 1e9),
        x => format!("{:.1} T", x / 1e12),
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["module", "result", "layout", "parameters", "mult-adds", "sent"];
        let line = |c: [&str; 6]| {
            let [module, result, layout, parameters, mult_adds, sent] = c;
            let (module, result, layout) = (tail(module, 31), tail(result, 21), tail(layout, 13));
            let text = format!("{module:<31} {result:<21} {layout:<13} {parameters:>11} {mult_adds:>10} {sent:>9}");
            text.trim_end().to_string()
        };
        writeln!(f, "{}", line(head))?;
        for m in self.modules.iter().take(ROWS) {
            let depth = if m.path.is_empty() { 0 } else { 1 + m.path.matches('.').count() };
            let name = if m.path.is_empty() { "(whole)" } else { m.path.rsplit('.').next().unwrap_or(&m.path) };
            let kind = if m.kind.is_empty() { String::new() } else { format!(" {}", m.kind) };
            let name = format!("{:1$}{name}{kind}", "", 2 * depth);
            let sent = if m.sent == 0 { "-".to_string() } else { bytes(m.sent) };
            let parameters = if m.parameters == 0 { "-".to_string() } else { grouped(m.parameters) };
            let mult_adds = if m.mult_adds == 0 { "-".to_string() } else { short(m.mult_adds) };
            writeln!(f, "{}", line([&name, &m.output, &m.layout, &parameters, &mult_adds, &sent]))?;
        }
        more(f, self.modules.len())?;
        if !self.parameters.is_empty() {
            let line = |name: &str, tensor: &str, layout: &str, elements: &str, here: &str| {
                let (name, tensor, layout) = (tail(name, 37), tail(tensor, 21), tail(layout, 13));
                let text = format!("{name:<37} {tensor:<21} {layout:<13} {elements:>13} {here:>12}");
                text.trim_end().to_string()
            };
            let rank = format!("rank {}", self.rank);
            writeln!(f, "\n{}", line("parameter", "tensor", "layout", "elements", &rank))?;
            for p in self.parameters.iter().take(ROWS) {
                let name = if p.trained { p.name.clone() } else { format!("{} (frozen)", p.name) };
                writeln!(f, "{}", line(&name, &p.tensor, &p.layout, &grouped(p.elements), &bytes(p.bytes)))?;
            }
            more(f, self.parameters.len())?;
        }
        let (all, trained) = self.elements();
        writeln!(f, "\nparameters: {}, {} trained, {} frozen", grouped(all), grouped(trained), grouped(all - trained))?;
        let whole = self.whole().cloned().unwrap_or_default();
        writeln!(f, "mult-adds: {}; {} calls", grouped(whole.mult_adds), grouped(whole.calls))?;
        let (own, inputs, results) = (bytes(self.parameter_bytes()), bytes(self.inputs), bytes(whole.results));
        writeln!(f, "on rank {}: parameters {own}, inputs {inputs}, results of all calls {results}", self.rank)?;
        writeln!(f, "boxings send {}, all ranks together", bytes(whole.sent))
    }
}

fn more(f: &mut fmt::Formatter<'_>, count: usize) -> fmt::Result {
    match count.saturating_sub(ROWS) {
        0 => Ok(()),
        n => writeln!(f, "{n} more"),
    }
}

/// Name of a variable of a graph: the module that uses it first, and the line.
pub(crate) fn variable_name(site: crate::error::CallSite) -> String {
    let line = format!("{}:{}", short_path(site.file), site.line);
    match site.scope.path() {
        "" => line,
        path => format!("{path} ({line})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_short() {
        let all = [0, 7, 999, 1000, 12_345, 1_234_567].map(grouped);
        assert_eq!(all, ["0", "7", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!([99_999, 100_000, 12_345_678, u64::MAX].map(short), ["99,999", "100.0 k", "12.3 M", "18446744.1 T"]);
    }

    #[test]
    fn parents_stand_before_their_parts() {
        let met: Vec<String> = ["b.x", "a", "b", "a.y", "a.x"].map(String::from).into();
        assert_eq!(sorted(&met), ["", "a", "a.y", "a.x", "b", "b.x"]);
    }
}
