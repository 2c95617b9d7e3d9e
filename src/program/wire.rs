//! The bytes of a program: the message `Program` of `proto/graph.proto`. Unlike the text they have the lines of the captured closure.
//!
//! What is read may come from anywhere. Memory is bounded by the number of bytes: all ranks of a placement stand in the message, and
//! nothing is made of a number alone.

use super::build::{Parts, boxed_for_op, boxing_op, call_of, signature_of, take_attributes, type_on};
use super::types::{
    BoxedFor, CallNode, Draw, GeneratorId, HostId, Node, Outside, OutsideKind, Program, Repeat, ValueId, Work, Write,
};
use crate::error::{CallSite, Error, Result};
use crate::ops::{AttrDef, AttrValue};
use crate::placement::Placement;
use crate::plan::{Target, TypeRef};
use oflow_kernels::{Dims, Scalar};
use oflow_proto::graph as wire;
use oflow_proto::graph::{call, node, number, target, value};
use std::collections::BTreeMap;

/// Version of the format.
const VERSION: u32 = 1;

impl Program {
    /// Returns the program as bytes, which [`decode`](Program::decode) reads: also in another process, and on other ranks.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        let calls = w.program(self);
        let message = wire::Program { version: VERSION, hosts: self.hosts.clone(), placements: w.placements, ..calls };
        oflow_proto::write_program(&message)
    }

    /// Reads a program from the bytes that [`encode`](Program::encode) gives, and checks it ([`verify`](Program::verify)).
    ///
    /// # Errors
    /// If the bytes are damaged or of another version of the format, if an op, dtype or device is not known here, and if the program is not
    /// valid. The error names the line of the captured closure where there is one.
    pub fn decode(bytes: &[u8]) -> Result<Program> {
        let message = oflow_proto::read_program(bytes)
            .map_err(|e| Error::parse(format!("the bytes are not those of a program: {e}")))?;
        if message.version != VERSION {
            return Err(Error::parse(format!("the program has format {}, {VERSION} is read here", message.version))
                .help("write it again with this version of oflow"));
        }
        let placements: Vec<Placement> = message.placements.iter().map(placement).collect::<Result<_>>()?;
        let mut program = read(&placements, &message)?;
        program.hosts = message.hosts;
        program.verify()?;
        Ok(program)
    }
}

/// Reads a program, or the calls of a section. It has no host objects yet.
fn read(placements: &[Placement], message: &wire::Program) -> Result<Program> {
    let mut r = Reader { placements, types: Vec::new() };
    r.types = message.values.iter().map(|ty| r.ty(ty)).collect::<Result<_>>()?;
    let outside = message.outside.iter().map(|o| r.outside(o)).collect::<Result<_>>()?;
    let node = |n: &wire::Node| {
        let site = site_of(n.site.as_ref().ok_or_else(|| missing("the line of a node"))?);
        r.node(n, site).map_err(|e| e.at(site))
    };
    let nodes = message.nodes.iter().map(node).collect::<Result<_>>()?;
    let outputs = message.outputs.iter().map(|v| r.value(*v)).collect::<Result<_>>()?;
    Ok(Program { values: r.types, outside, nodes, outputs, hosts: vec![], draws: message.draws.clone() })
}

/// Writes parts of a program, and collects its placements.
#[derive(Default)]
struct Writer {
    placements: Vec<wire::Placement>,
    /// Number in `placements`, by id.
    numbers: BTreeMap<u64, u32>,
}

impl Writer {
    /// The calls of a program, or of a section.
    fn program(&mut self, p: &Program) -> wire::Program {
        wire::Program {
            values: p.values.iter().map(|ty| self.ty(ty)).collect(),
            outside: p.outside.iter().map(outside).collect(),
            nodes: p.nodes.iter().map(|n| self.node(n)).collect(),
            outputs: p.outputs.iter().map(|v| v.0).collect(),
            draws: p.draws.clone(),
            ..wire::Program::default()
        }
    }

    fn placement(&mut self, p: &Placement) -> u32 {
        let (all, next) = (&mut self.placements, self.numbers.len() as u32);
        *self.numbers.entry(p.id()).or_insert_with(|| {
            let axes = p.dims().iter().zip(p.names());
            all.push(wire::Placement {
                device: p.device().to_string(),
                axes: axes.map(|(size, name)| wire::Axis { size: *size as u64, name: name.clone() }).collect(),
                ranks: p.ranks().iter().map(|r| *r as u64).collect(),
            });
            next
        })
    }

    fn target(&mut self, t: &Target) -> wire::Target {
        let target = match t {
            Target::Local(device) => target::Target::Device(device.to_string()),
            Target::Global(p, sbp) => {
                target::Target::Layout(wire::Layout { placement: self.placement(p), sbp: sbp.to_string() })
            }
        };
        wire::Target { target: Some(target) }
    }

    fn ty(&mut self, ty: &TypeRef) -> wire::Type {
        let on = match ty {
            TypeRef::Local(l) => Target::Local(l.device),
            TypeRef::Global(g) => Target::Global(g.placement.clone(), g.sbp.clone()),
        };
        wire::Type {
            dtype: ty.ty().dtype.to_string(),
            shape: ty.ty().shape.iter().map(|n| *n as u64).collect(),
            on: Some(self.target(&on)),
        }
    }

    fn node(&mut self, n: &Node) -> wire::Node {
        let work = match &n.work {
            Work::Call(call) => node::Work::Call(self.call(call)),
            Work::Box(op) => node::Work::Box(op.to_string()),
            Work::Host(host) => node::Work::Host(host.0),
            Work::Repeat(r) => node::Work::Repeat(wire::Repeat {
                count: r.count,
                body: Some(self.program(&r.body)),
                first_draws: r.first_draws.clone(),
            }),
        };
        wire::Node {
            work: Some(work),
            inputs: n.inputs.iter().map(|v| v.map_or(0, |v| v.0 + 1)).collect(),
            outputs: n.outputs.iter().map(|v| v.0).collect(),
            writes: n.writes.iter().map(|w| wire::Write { old: w.old.0, fresh: w.new.0 }).collect(),
            guard: n.guard.map(|v| v.0),
            site: Some(site(n.site)),
            backward: n.backward,
            recomputed: n.recomputed,
            overlapped: n.overlapped,
        }
    }

    fn call(&mut self, c: &CallNode) -> wire::Call {
        let plan = c.op.sig.attrs.iter().zip(&c.attrs).map(|(d, v)| (d, self.value(v)));
        let mut attributes: Vec<(&AttrDef, wire::Value)> = plan.collect();
        attributes.extend(c.op.sig.runtime.iter().zip(&c.runtime).map(|(d, s)| (d, number_value(*s))));
        let attribute = |(d, v): (&AttrDef, _)| wire::Attribute { name: d.name.to_string(), value: Some(v) };
        wire::Call {
            op: c.op.full_name(),
            attributes: attributes.into_iter().map(attribute).collect(),
            draw: c.draw.map(|d| wire::Draw { generator: d.generator.0, ordinal: d.ordinal }),
            host: c.host.map(|(host, call)| wire::HostCall { host: host.0, call }),
            target: c.target.as_ref().map(|t| self.target(t)),
            into: c.into,
            lowering: c.signature.as_ref().and_then(|s| s.lowering).map(u32::from),
            boxed_for: c.boxed_for.map(|why| match why {
                BoxedFor::Gradient => call::BoxedFor::Gradient(wire::Empty {}),
                BoxedFor::Op(op) => call::BoxedFor::BoxedForOp(op.to_string()),
            }),
        }
    }

    fn value(&mut self, v: &AttrValue) -> wire::Value {
        let kind = match v {
            AttrValue::Absent => value::Kind::Absent(wire::Empty {}),
            AttrValue::Int(i) => value::Kind::Integer(*i),
            AttrValue::Float(x) => value::Kind::Real(*x),
            AttrValue::Bool(b) => value::Kind::Truth(*b),
            AttrValue::Str(s) => value::Kind::Text(s.to_string()),
            AttrValue::Ints(v) => value::Kind::Integers(wire::Integers { items: v.to_vec() }),
            AttrValue::Floats(v) => value::Kind::Reals(wire::Reals { items: v.to_vec() }),
            AttrValue::DType(d) => value::Kind::Dtype(d.to_string()),
            AttrValue::Scalar(s) => return number_value(*s),
            AttrValue::Bytes(b) => value::Kind::Raw(b.to_vec()),
            AttrValue::Device(d) => value::Kind::Device(d.to_string()),
            AttrValue::Placement(p) => value::Kind::Placement(self.placement(p)),
            AttrValue::NdSbp(n) => value::Kind::Sbp(n.to_string()),
            AttrValue::List(all) => {
                value::Kind::List(wire::Values { items: all.iter().map(|m| self.value(m)).collect() })
            }
            // Stands in lowerings only, which programs do not have.
            AttrValue::Given(_) => return wire::Value { kind: None },
        };
        wire::Value { kind: Some(kind) }
    }
}

fn number_value(s: Scalar) -> wire::Value {
    let kind = match s {
        Scalar::Bool(b) => number::Kind::Truth(b),
        Scalar::Int(i) => number::Kind::Integer(i),
        Scalar::Float(x) => number::Kind::Real(x),
        Scalar::Complex(re, im) => number::Kind::Complex(wire::Complex { re, im }),
    };
    wire::Value { kind: Some(value::Kind::Number(wire::Number { kind: Some(kind) })) }
}

fn outside(o: &Outside) -> wire::Outside {
    let kind = match o.kind {
        OutsideKind::Input => wire::OutsideKind::Input,
        OutsideKind::Variable => wire::OutsideKind::Variable,
        OutsideKind::Constant => wire::OutsideKind::Constant,
        OutsideKind::Around => wire::OutsideKind::Around,
        OutsideKind::Slice => wire::OutsideKind::Slice,
        OutsideKind::Carried => wire::OutsideKind::Carried,
        OutsideKind::Written => wire::OutsideKind::Written,
    };
    wire::Outside { value: o.value.0, kind: kind.into(), name: o.name.clone(), site: Some(site(o.site)) }
}

fn site(s: CallSite) -> wire::Site {
    wire::Site { file: s.file.to_string(), line: s.line, scope: s.scope.path().to_string() }
}

fn site_of(s: &wire::Site) -> CallSite {
    CallSite::told(&s.file, s.line, &s.scope)
}

fn missing(what: &str) -> Error {
    Error::parse(format!("the bytes of a program lack {what}"))
}

fn size(n: u64) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::shape(format!("a size of {n} is more than addresses of this machine have")))
}

fn placement(p: &wire::Placement) -> Result<Placement> {
    let ranks = p.ranks.iter().map(|r| size(*r)).collect::<Result<_>>()?;
    let dims = p.axes.iter().map(|a| size(a.size)).collect::<Result<_>>()?;
    Placement::build(p.device.parse()?, ranks, dims, p.axes.iter().map(|a| a.name.clone()).collect())
}

/// Reads parts of a program.
struct Reader<'a> {
    placements: &'a [Placement],
    /// Types of the values, by number.
    types: Vec<TypeRef>,
}

impl Reader<'_> {
    fn value(&self, n: u32) -> Result<ValueId> {
        let v = ValueId(n);
        if v.index() < self.types.len() { Ok(v) } else { Err(Error::parse(format!("the program has no value {v}"))) }
    }

    fn placement(&self, n: u32) -> Result<Placement> {
        let found = self.placements.get(n as usize).cloned();
        found.ok_or_else(|| Error::parse(format!("the program has no placement {n}")))
    }

    fn target(&self, t: &wire::Target) -> Result<Target> {
        match t.target.as_ref().ok_or_else(|| missing("a device or a layout"))? {
            target::Target::Device(device) => Ok(Target::Local(device.parse()?)),
            target::Target::Layout(l) => Ok(Target::Global(self.placement(l.placement)?, l.sbp.parse()?)),
        }
    }

    fn ty(&self, t: &wire::Type) -> Result<TypeRef> {
        let shape = t.shape.iter().map(|n| size(*n)).collect::<Result<Dims>>()?;
        type_on(&shape, t.dtype.parse()?, &self.target(t.on.as_ref().ok_or_else(|| missing("a device or a layout"))?)?)
    }

    fn outside(&self, o: &wire::Outside) -> Result<Outside> {
        let kind = match o.kind() {
            wire::OutsideKind::Input => OutsideKind::Input,
            wire::OutsideKind::Variable => OutsideKind::Variable,
            wire::OutsideKind::Constant => OutsideKind::Constant,
            wire::OutsideKind::Around => OutsideKind::Around,
            wire::OutsideKind::Slice => OutsideKind::Slice,
            wire::OutsideKind::Carried => OutsideKind::Carried,
            wire::OutsideKind::Written => OutsideKind::Written,
            wire::OutsideKind::Unspecified => return Err(missing("the kind of a value from outside")),
        };
        let site = site_of(o.site.as_ref().ok_or_else(|| missing("the line of a value from outside"))?);
        Ok(Outside { value: self.value(o.value)?, kind, name: o.name.clone(), site })
    }

    fn node(&self, n: &wire::Node, site: CallSite) -> Result<Node> {
        let input = |v: &u32| v.checked_sub(1).map(|v| self.value(v)).transpose();
        let write = |w: &wire::Write| Ok(Write { old: self.value(w.old)?, new: self.value(w.fresh)? });
        let p = Parts {
            inputs: n.inputs.iter().map(input).collect::<Result<_>>()?,
            outputs: n.outputs.iter().map(|v| self.value(*v)).collect::<Result<_>>()?,
            writes: n.writes.iter().map(write).collect::<Result<_>>()?,
            guard: n.guard.map(|v| self.value(v)).transpose()?,
            backward: n.backward,
            recomputed: n.recomputed,
            overlapped: n.overlapped,
        };
        let work = match n.work.as_ref().ok_or_else(|| missing("the work of a node"))? {
            node::Work::Call(call) => Work::Call(Box::new(self.call(call, &p)?)),
            node::Work::Box(op) => Work::Box(boxing_op(op)?),
            node::Work::Host(host) => Work::Host(HostId(*host)),
            node::Work::Repeat(r) => {
                let body = read(self.placements, r.body.as_ref().ok_or_else(|| missing("the calls of a section"))?)?;
                Work::Repeat(Box::new(Repeat { count: r.count, body, first_draws: r.first_draws.clone() }))
            }
        };
        Ok(p.node(work, site))
    }

    fn call(&self, c: &wire::Call, p: &Parts) -> Result<CallNode> {
        let mut call = call_of(&c.op)?;
        let given = c.attributes.iter().map(|a| (a.name.as_str(), a.value.as_ref()));
        let value = |d: &AttrDef, v: Option<&wire::Value>| match self.attribute(v)? {
            AttrValue::Absent if d.default == Some(AttrValue::Absent) => Ok(AttrValue::Absent),
            v => d.kind.accept(&d.name, v),
        };
        let number = |d: &AttrDef, v| {
            let v = value(d, v)?;
            v.to_scalar().ok_or_else(|| Error::parse(format!("expected a number for '{}', got '{v}'", d.name)))
        };
        (call.attrs, call.runtime) = take_attributes(call.op, given, value, number)?;
        call.draw = c.draw.map(|d| Draw { generator: GeneratorId(d.generator), ordinal: d.ordinal });
        call.host = c.host.map(|h| (HostId(h.host), h.call));
        call.target = c.target.as_ref().map(|t| self.target(t)).transpose()?;
        call.into = c.into;
        call.boxed_for = match &c.boxed_for {
            Some(call::BoxedFor::Gradient(_)) => Some(BoxedFor::Gradient),
            Some(call::BoxedFor::BoxedForOp(op)) => Some(boxed_for_op(op)?),
            None => None,
        };
        let lowering = |n: u32| {
            u8::try_from(n)
                .map_err(|_| Error::parse(format!("expected the number of a lowering, at most 255, got {n}")))
        };
        let layout = |v: ValueId| self.types[v.index()].global().map(|g| &g.sbp);
        call.signature = signature_of(&call, p, c.lowering.map(lowering).transpose()?, &layout)?;
        Ok(call)
    }

    fn attribute(&self, v: Option<&wire::Value>) -> Result<AttrValue> {
        Ok(match v.and_then(|v| v.kind.as_ref()).ok_or_else(|| missing("the value of an attribute"))? {
            value::Kind::Absent(_) => AttrValue::Absent,
            value::Kind::Integer(i) => AttrValue::Int(*i),
            value::Kind::Real(x) => AttrValue::Float(*x),
            value::Kind::Truth(b) => AttrValue::Bool(*b),
            value::Kind::Text(s) => AttrValue::Str(s.as_str().into()),
            value::Kind::Integers(v) => AttrValue::Ints(v.items.as_slice().into()),
            value::Kind::Reals(v) => AttrValue::Floats(v.items.as_slice().into()),
            value::Kind::Dtype(d) => AttrValue::DType(d.parse()?),
            value::Kind::Number(n) => AttrValue::Scalar(scalar(n)?),
            value::Kind::Raw(b) => AttrValue::Bytes(b.as_slice().into()),
            value::Kind::Device(d) => AttrValue::Device(d.parse()?),
            value::Kind::Placement(n) => AttrValue::Placement(self.placement(*n)?),
            value::Kind::Sbp(n) => AttrValue::NdSbp(n.parse()?),
            value::Kind::List(all) => {
                AttrValue::List(all.items.iter().map(|m| self.attribute(Some(m))).collect::<Result<_>>()?)
            }
        })
    }
}

fn scalar(n: &wire::Number) -> Result<Scalar> {
    Ok(match n.kind.as_ref().ok_or_else(|| missing("a number"))? {
        number::Kind::Truth(b) => Scalar::Bool(*b),
        number::Kind::Integer(i) => Scalar::Int(*i),
        number::Kind::Real(x) => Scalar::Float(*x),
        number::Kind::Complex(c) => Scalar::Complex(c.re, c.im),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Device;
    use crate::sbp;
    use oflow_kernels::DType;

    fn sample() -> Program {
        let text = "input %0 \"x\": f32[4] on cpu\n%1 = oflow.relu@1(%0): f32[4] on cpu\nreturn %1";
        text.parse().unwrap()
    }

    #[test]
    fn attributes_of_every_kind_come_back_with_their_bits() {
        let mesh = Placement::of_world(Device::Cpu, 6).unwrap().mesh(&[("dp", 2), ("tp", 3)]).unwrap();
        let part = mesh.slice("tp", 1).unwrap();
        let odd = f64::from_bits(0x7ff8_0000_0000_1234);
        let numbers = [Scalar::Bool(true), Scalar::Int(i64::MIN), Scalar::Float(-0.0), Scalar::Complex(0.5, odd)];
        let mut all: Vec<AttrValue> = numbers.map(AttrValue::Scalar).to_vec();
        all.extend([AttrValue::Absent, AttrValue::Int(-3), AttrValue::Float(odd), AttrValue::Bool(false)]);
        all.extend(["", "a\n\"b\""].map(AttrValue::from));
        all.extend([AttrValue::from([i64::MIN, 0, 7]), vec![0.1, f64::INFINITY, odd].into(), DType::BF16.into()]);
        all.extend([AttrValue::Bytes([0, 255, 7].as_slice().into()), Device::Cuda.into(), sbp![S(1), P(max)].into()]);
        all.extend([&mesh, &part, &mesh].map(AttrValue::from));
        all.push(AttrValue::List(all.as_slice().into()));
        let mut w = Writer::default();
        let written: Vec<wire::Value> = all.iter().map(|v| w.value(v)).collect();
        assert_eq!(w.placements.len(), 2, "a placement stands once");
        let placements: Vec<Placement> = w.placements.iter().map(|p| placement(p).unwrap()).collect();
        let r = Reader { placements: &placements, types: vec![] };
        for (v, written) in all.iter().zip(&written) {
            let again = r.attribute(Some(written)).unwrap();
            let words = |v: &AttrValue| {
                let mut key = crate::ops::KeyWords::new();
                v.encode(&mut key);
                key
            };
            assert_eq!(words(&again), words(v), "{v}");
        }
    }

    #[test]
    fn lines_and_scopes_come_back() {
        let mut program = sample();
        program.nodes[0].site = CallSite::told("model.rs", 12, "blocks.3.attn");
        let again = Program::decode(&program.encode()).unwrap();
        assert_eq!(again.nodes[0].site, program.nodes[0].site);
        assert_eq!(again.outside[0].site, program.outside[0].site);
        assert!(again.to_string().contains("# model.rs:12 in blocks.3.attn"));
    }

    #[test]
    fn what_is_no_program_is_refused_with_its_reason() {
        let said = |bytes: &[u8]| Program::decode(bytes).err().unwrap().to_string();
        assert!(said(b"").contains("format 0, 1 is read here"));
        assert!(said(&[7; 20]).contains("the bytes are not those of a program"));
        let damaged = |change: &dyn Fn(&mut wire::Program)| {
            let mut message = oflow_proto::read_program(&sample().encode()).unwrap();
            change(&mut message);
            said(&oflow_proto::write_program(&message))
        };
        let call = |m: &mut wire::Program, op: &str| match m.nodes[0].work.as_mut() {
            Some(node::Work::Call(call)) => call.op = op.into(),
            _ => unreachable!(),
        };
        let e = damaged(&|m| call(m, "oflow.relu@9"));
        assert!(e.contains("oflow.relu@9") && e.contains("here it is version 1"), "{e}");
        assert!(e.contains("the text of a program:2"), "{e}");
        assert!(damaged(&|m| call(m, "mine.gone@1")).contains("which is not registered"));
        assert!(damaged(&|m| m.nodes[0].inputs = vec![9]).contains("no value %8"));
        assert!(damaged(&|m| m.nodes[0].outputs.clear()).contains("%1 is not defined"));
        assert!(damaged(&|m| m.values[0].on = None).contains("lack a device or a layout"));
        let far = wire::Layout { placement: 3, sbp: "[B]".into() };
        let far = wire::Target { target: Some(target::Target::Layout(far)) };
        assert!(damaged(&|m| m.values[0].on = Some(far.clone())).contains("no placement 3"));
        assert!(damaged(&|m| m.outputs = vec![4]).contains("no value %4"));
    }
}
