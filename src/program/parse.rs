//! Reads the text of a program: what [`text`](super::text) writes, without the lines of the program that was captured. Calls get the lines of
//! the text instead.

use super::build::{Parts, boxed_for_op, boxing_op, call_of, signature_of, take_attributes, type_on};
use super::text::{BACKWARD, NONE, OVERLAPPED, RECOMPUTED};
use super::types::{
    BoxedFor, CallNode, Draw, GeneratorId, HostId, Outside, OutsideKind, Program, Repeat, ValueId, Work, Write,
};
use crate::error::{CallSite, Error, Result};
use crate::ops::{AttrDef, AttrKind, AttrValue, split_outside};
use crate::placement::Device;
use crate::plan::{Target, TypeRef};
use oflow_kernels::{DType, Dims, Scalar};
use std::collections::BTreeMap;
use std::str::FromStr;

impl FromStr for Program {
    type Err = Error;
    /// Reads a program, and checks it ([`Program::verify`]). A program that was written has the same text again.
    ///
    /// # Errors
    /// On a line that is none, a value, op or attribute that is not known, and on a program that is not valid. The error names the line.
    fn from_str(s: &str) -> Result<Program> {
        let mut reader = Reader::default();
        // Programs around the section that is read, the outermost first, with the node that repeats it.
        let mut around: Vec<(Reader, Opened)> = vec![];
        for (n, line) in s.lines().enumerate() {
            let site = CallSite::at("the text of a program", n as u32 + 1);
            let line = line.rsplit_once("  # ").map_or(line, |(code, _)| code).trim();
            if line.is_empty() {
                continue;
            }
            if let Some(opened) = reader.line(line, site).map_err(|e| e.at(site))? {
                if around.len() == DEEPEST {
                    return Err(wrong(&format!("at most {DEEPEST} sections inside of each other"), line).at(site));
                }
                let inside = Reader::inside_of(&mut reader);
                around.push((std::mem::replace(&mut reader, inside), opened));
            } else if reader.ended
                && let Some((outer, opened)) = around.pop()
            {
                let mut inside = std::mem::replace(&mut reader, outer);
                reader.hosts = std::mem::take(&mut inside.hosts);
                reader.close(opened, inside.finish().map_err(|e| e.at(site))?);
            }
        }
        if !reader.ended || !around.is_empty() {
            return Err(Error::parse("the text of a program ends without `return`"));
        }
        if let Some((missing, _)) = (0..).zip(reader.hosts.keys()).find(|(n, host)| n != *host) {
            return Err(Error::parse(format!("host object {missing} has no name: no line lets it act")));
        }
        let hosts = std::mem::take(&mut reader.hosts).into_values().collect();
        let program = Program { hosts, ..reader.finish()? };
        program.verify()?;
        Ok(program)
    }
}

/// How many sections stand inside of each other at most, in a text.
const DEEPEST: usize = 16;

/// A node that repeats a section, whose lines follow.
struct Opened {
    count: u64,
    first_draws: Vec<u64>,
    parts: Parts,
    site: CallSite,
}

#[derive(Default)]
struct Reader {
    program: Program,
    /// Types of the values that are defined, by number.
    types: BTreeMap<u32, TypeRef>,
    /// Names of the host objects, by number. They may act in any order.
    hosts: BTreeMap<u32, String>,
    /// Whether the line has been read that returns.
    ended: bool,
}

fn wrong(what: &str, text: &str) -> Error {
    Error::parse(format!("expected {what}, got '{text}'"))
}

/// The part before a separator, and the part behind it.
fn cut<'a>(s: &'a str, at: &str, what: &str) -> Result<(&'a str, &'a str)> {
    s.split_once(at).ok_or_else(|| wrong(what, s))
}

fn number<T: FromStr>(s: &str, what: &str) -> Result<T> {
    s.trim().parse().map_err(|_| wrong(what, s))
}

impl Reader {
    /// The reader of a section, which goes on with the host objects.
    fn inside_of(outer: &mut Reader) -> Reader {
        Reader { hosts: std::mem::take(&mut outer.hosts), ..Reader::default() }
    }

    /// The program that has been read.
    fn finish(mut self) -> Result<Program> {
        // Values from outside stand first and may have any numbers, but each number is that of a value.
        if let Some((missing, _)) = (0..).zip(self.types.keys()).find(|(n, v)| n != *v) {
            return Err(Error::parse(format!("%{missing} is not defined")));
        }
        self.program.values = self.types.into_values().collect();
        Ok(self.program)
    }

    /// Adds the node of a section that has been read.
    fn close(&mut self, opened: Opened, body: Program) {
        let Opened { count, first_draws, parts, site } = opened;
        self.push(Work::Repeat(Box::new(Repeat { count, body, first_draws })), parts, site);
    }

    /// Reads a line. The lines that follow a node which repeats a section are those of the section.
    fn line(&mut self, line: &str, site: CallSite) -> Result<Option<Opened>> {
        if self.ended {
            return Err(wrong("nothing after `return`", line));
        }
        for kind in OutsideKind::ALL {
            if let Some(rest) = line.strip_prefix(kind.word()).and_then(|r| r.strip_prefix(' ')) {
                return self.outside(kind, rest, site).map(|()| None);
            }
        }
        if let Some(rest) = line.strip_prefix("draws ") {
            self.program.draws = rest
                .split_whitespace()
                .map(|n| number(n, "the number of draws of a generator"))
                .collect::<Result<_>>()?;
            return Ok(None);
        }
        if let Some(rest) = line.strip_prefix("host ") {
            return self.host(rest, site).map(|()| None);
        }
        if line == "return" || line.starts_with("return ") {
            let values = line["return".len()..].trim();
            self.program.outputs = split_outside(values, ',').map(|v| self.known(v)).collect::<Result<_>>()?;
            self.ended = true;
            return Ok(None);
        }
        self.node(line, site)
    }

    /// A value that a line before has defined.
    fn known(&self, s: &str) -> Result<ValueId> {
        let v = value(s)?;
        if self.types.contains_key(&v.0) { Ok(v) } else { Err(wrong("a value that is defined above", s)) }
    }

    fn define(&mut self, v: ValueId, ty: TypeRef) -> Result<()> {
        match self.types.insert(v.0, ty) {
            None => Ok(()),
            Some(_) => Err(Error::parse(format!("{v} is defined twice"))),
        }
    }

    /// `%0 "x": f32[2] on cpu`
    fn outside(&mut self, kind: OutsideKind, s: &str, site: CallSite) -> Result<()> {
        let (head, ty) = cut(s, ": ", "a value and its type")?;
        let (v, name) = head.split_once(' ').unwrap_or((head, "\"\""));
        let v = value(v)?;
        self.define(v, type_of(ty)?)?;
        self.program.outside.push(Outside { value: v, kind, name: text(name)?, site });
        Ok(())
    }

    /// `0 "adamw_many"`
    fn host(&mut self, s: &str, site: CallSite) -> Result<()> {
        let (s, guard) = self.guard(s)?;
        let (n, name) = cut(s, " ", "the number and the name of a host object")?;
        let n = number(n, "the number of a host object")?;
        let name = text(name)?;
        self.hosts.entry(n).or_insert(name);
        self.push(Work::Host(HostId(n)), Parts { guard, ..Parts::default() }, site);
        Ok(())
    }

    fn push(&mut self, work: Work, p: Parts, site: CallSite) {
        self.program.nodes.push(p.node(work, site));
    }

    /// The text before ` if %3`, and that guard.
    fn guard<'a>(&self, s: &'a str) -> Result<(&'a str, Option<ValueId>)> {
        match s.rsplit_once(" if %") {
            Some((before, number)) => Ok((before, Some(self.known(&format!("%{number}"))?))),
            None => Ok((s, None)),
        }
    }

    /// `%2, %3 = domain.op@1(%0, -) {dim=0} into %1 lowered 0: f32[2] on cpu; f32[2] on cpu recomputed backward`
    fn node(&mut self, line: &str, site: CallSite) -> Result<Option<Opened>> {
        let (defined, rest) = match line.starts_with('%') {
            true => cut(line, " = ", "a definition")?,
            false => ("", line),
        };
        let defined: Vec<ValueId> = split_outside(defined, ',').map(value).collect::<Result<_>>()?;
        let (name, rest) = cut(rest, "(", "the name of an op and its inputs")?;
        let (inputs, mut rest) = cut(rest, ")", "the end of the inputs")?;
        let mut parts = Parts::default();
        for v in split_outside(inputs, ',') {
            parts.inputs.push(if v == "-" { None } else { Some(self.known(v)?) });
        }
        let mut marked = |mark: &str| rest.strip_suffix(mark).map(|before| rest = before).is_some();
        parts.backward = marked(BACKWARD);
        parts.overlapped = marked(OVERLAPPED);
        parts.recomputed = marked(RECOMPUTED);
        if name == "box" {
            let (op, types) = cut(rest, ": ", "the type of the result")?;
            let (op, guard) = self.guard(op)?;
            parts.guard = guard;
            let op = boxing_op(op.trim().strip_prefix("for ").ok_or_else(|| wrong("`for` and an op", op))?)?;
            self.types(&defined, types)?;
            parts.outputs = defined.into_iter().collect();
            self.push(Work::Box(op), parts, site);
            return Ok(None);
        }
        if let Some(count) = name.strip_prefix("repeat ") {
            return self
                .repeat(number(count, "how often a section is repeated")?, rest, (defined, parts), site)
                .map(Some);
        }
        let mut call = call_of(name)?;
        rest = attributes(&mut call, rest.trim_start())?;
        let (words, types) = match rest.split_once(": ") {
            Some((words, types)) => (words, types),
            None => (rest.trim_end_matches(':'), ""),
        };
        let (words, guard) = self.guard(words)?;
        parts.guard = guard;
        let (mut words, mut lowering, mut old) = (words.trim(), None, vec![]);
        if let Some((before, n)) = words.split_once("lowered ") {
            lowering = Some(number(n, "the number of a lowering")?);
            words = before.trim();
        }
        if let Some((before, who)) = words.split_once("for ") {
            call.boxed_for = Some(match who.trim() {
                "a gradient" => BoxedFor::Gradient,
                op => boxed_for_op(op)?,
            });
            words = before.trim();
        }
        for (word, into) in [("into ", true), ("over ", false)] {
            if let Some((before, values)) = words.split_once(word) {
                old = split_outside(values, ',').map(|v| self.known(v)).collect::<Result<_>>()?;
                (call.into, words) = (into, before.trim());
            }
        }
        call.target = target(words)?;
        self.types(&defined, types)?;
        defines(&mut parts, &defined, old).ok_or_else(|| wrong("a new value for each that is written over", line))?;
        let layout = |v: ValueId| self.types.get(&v.0)?.global().map(|g| &g.sbp);
        call.signature = signature_of(&call, &parts, lowering, &layout)?;
        self.push(Work::Call(Box::new(call)), parts, site);
        Ok(None)
    }

    /// The rest of `%5, %6 = repeat 4(%1, %2) over %3 drawing from 0 2: f32[2] on cpu; f32[2] on cpu`
    fn repeat(
        &mut self,
        count: u64,
        rest: &str,
        (defined, mut parts): (Vec<ValueId>, Parts),
        site: CallSite,
    ) -> Result<Opened> {
        let (words, types) = rest.split_once(": ").unwrap_or((rest.trim_end_matches(':'), ""));
        let (words, guard) = self.guard(words)?;
        parts.guard = guard;
        let (words, draws) = words.split_once("drawing from ").unwrap_or((words, ""));
        let draw = |n| number(n, "the number of draws of a generator");
        let first_draws = draws.split_whitespace().map(draw).collect::<Result<_>>()?;
        let old = match words.trim() {
            "" => vec![],
            words => {
                let values = words.strip_prefix("over ").ok_or_else(|| wrong("the values that are written", words))?;
                split_outside(values, ',').map(|v| self.known(v)).collect::<Result<_>>()?
            }
        };
        self.types(&defined, types)?;
        defines(&mut parts, &defined, old).ok_or_else(|| wrong("a new value for each that is written over", rest))?;
        Ok(Opened { count, first_draws, parts, site })
    }

    fn types(&mut self, defined: &[ValueId], s: &str) -> Result<()> {
        let types: Vec<&str> = s.split("; ").filter(|t| !t.trim().is_empty()).collect();
        if types.len() != defined.len() {
            return Err(wrong(&format!("{} types", defined.len()), s));
        }
        defined.iter().zip(types).try_for_each(|(v, t)| self.define(*v, type_of(t)?))
    }
}

/// Tells the values that a node makes from those that it writes over others; none where there are too few.
fn defines(parts: &mut Parts, defined: &[ValueId], old: Vec<ValueId>) -> Option<()> {
    let made = defined.len().checked_sub(old.len())?;
    parts.outputs = defined[..made].iter().copied().collect();
    parts.writes = old.into_iter().zip(&defined[made..]).map(|(old, new)| Write { old, new: *new }).collect();
    Some(())
}

/// `%3`
fn value(s: &str) -> Result<ValueId> {
    let n = s.trim().strip_prefix('%').ok_or_else(|| wrong("a value such as %0", s))?;
    number(n, "a value such as %0").map(ValueId)
}

/// A text in quotes.
fn text(s: &str) -> Result<String> {
    serde_json::from_str(s.trim()).map_err(|_| wrong("a text in quotes", s))
}

/// `f32[2, 3] on cpu`, `f32[2, 3] [S(0)] on cpu[2]`
fn type_of(s: &str) -> Result<TypeRef> {
    let s = s.trim();
    let (tensor, place) = cut(s, " on ", "a type such as f32[2] on cpu")?;
    let (dtype, rest) = cut(tensor, "[", "dtype and shape")?;
    let (shape, layout) = cut(rest, "]", "the end of a shape")?;
    let dtype: DType = dtype.parse()?;
    let size = |n: &str| number(n, "a size");
    let shape = split_outside(shape, ',').map(size).collect::<Result<Dims>>()?;
    let on = match layout.trim() {
        "" => Target::Local(place.parse()?),
        layout => Target::Global(place.parse()?, layout.parse()?),
    };
    type_on(&shape, dtype, &on)
}

/// `on cpu`, `as [B] on cpu[2]`, or nothing.
fn target(s: &str) -> Result<Option<Target>> {
    if s.is_empty() {
        return Ok(None);
    }
    if let Some(device) = s.strip_prefix("on ") {
        return Ok(Some(Target::Local(device.parse::<Device>()?)));
    }
    let global = s.strip_prefix("as ").ok_or_else(|| wrong("a target, or the values that are written", s))?;
    let (sbp, placement) = cut(global, " on ", "an nd-SBP on a placement")?;
    Ok(Some(Target::Global(placement.parse()?, sbp.parse()?)))
}

/// Reads the attributes, if there are any, and returns the text behind them.
fn attributes<'a>(call: &mut CallNode, s: &'a str) -> Result<&'a str> {
    let (list, rest) = match s.strip_prefix('{') {
        Some(inside) => {
            let mut quoted = false;
            let end = inside.find(|c| {
                quoted ^= c == '"';
                c == '}' && !quoted
            });
            let end = end.ok_or_else(|| wrong("the end of the attributes", s))?;
            (&inside[..end], &inside[end + 1..])
        }
        None => ("", s),
    };
    let given = split_outside(list, ',').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let (mut host, mut generator, mut ordinal) = (None, None, None);
    let read = |d: &AttrDef, v: &str| {
        if let Some(call) = v.strip_prefix("host ") {
            let (id, n) = cut(call, ".", "the call of a host object")?;
            host = Some((HostId(number(id, "a host object")?), number(n, "the call of a host object")?));
            // Its kind is that of the declaration; its value is asked for at each run.
            return Ok(of_kind(d));
        }
        if let Some(id) = v.strip_prefix("generator ") {
            generator = Some(GeneratorId(number(id, "a generator")?));
            return Ok(Scalar::Int(0));
        }
        if let Some(draw) = v.strip_prefix("draw ") {
            ordinal = Some(number(draw, "the number of a draw")?);
            return Ok(Scalar::Int(0));
        }
        let v = attribute(d, v)?;
        v.to_scalar().ok_or_else(|| wrong(&format!("a number for '{}'", d.name), &v.to_string()))
    };
    (call.attrs, call.runtime) = take_attributes(call.op, given, attribute, read)?;
    call.host = host;
    call.draw = match (generator, ordinal) {
        (Some(generator), Some(ordinal)) => Some(Draw { generator, ordinal }),
        (None, None) => None,
        _ => return Err(wrong("a generator with the number of a draw", list)),
    };
    Ok(rest)
}

/// A number of the kind of an attribute.
fn of_kind(d: &AttrDef) -> Scalar {
    match d.kind {
        AttrKind::Int => Scalar::Int(0),
        AttrKind::Bool => Scalar::Bool(false),
        _ => Scalar::Float(0.0),
    }
}

/// The value of an attribute.
fn attribute(d: &AttrDef, s: &str) -> Result<AttrValue> {
    if s == NONE && d.default == Some(AttrValue::Absent) {
        return Ok(AttrValue::Absent);
    }
    value_of(d.kind, s)
}

fn value_of(kind: AttrKind, s: &str) -> Result<AttrValue> {
    let list = |of: AttrKind| -> Result<AttrValue> {
        let inside = s.strip_prefix('[').and_then(|s| s.strip_suffix(']')).ok_or_else(|| wrong("a list", s))?;
        let member = |m: &str| if m == NONE { Ok(AttrValue::Absent) } else { value_of(of, m) };
        Ok(AttrValue::List(split_outside(inside, ',').map(member).collect::<Result<_>>()?))
    };
    match kind {
        AttrKind::Str => Ok(AttrValue::Str(text(s)?.into())),
        AttrKind::Placement => Ok(AttrValue::Placement(s.parse()?)),
        AttrKind::Bytes => bytes(s).map(|b| AttrValue::Bytes(b.into())),
        AttrKind::IntLists => list(AttrKind::Ints),
        AttrKind::Placements => list(AttrKind::Placement),
        AttrKind::NdSbps => list(AttrKind::NdSbp),
        kind => match kind.member() {
            Some(of) => list(of),
            None => kind.parse_value(s),
        },
    }
}

/// `0x00ff`
fn bytes(s: &str) -> Result<Vec<u8>> {
    let digits = s.strip_prefix("0x").filter(|d| d.is_ascii()).ok_or_else(|| wrong("bytes such as 0x00ff", s))?;
    let pair = |p: &[u8]| {
        let two = std::str::from_utf8(p).ok().filter(|two| two.len() == 2);
        two.and_then(|two| u8::from_str_radix(two, 16).ok()).ok_or_else(|| wrong("two digits a byte", s))
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}
