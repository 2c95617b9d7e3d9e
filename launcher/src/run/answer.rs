//! The answer to a line, as JSON.

use oflow::kernels::{Builtin, DType, Scalar};
use oflow::ops::AttrValue;
use oflow::placement::{Device, Placement};
use oflow::sbp::NdSbp;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::call::Gradient;
use super::json::{Json, special_text};

/// Answer to a call.
pub struct Answer {
    /// Outputs of the call, in order.
    pub outputs: Vec<Output>,
    /// Arguments that were changed in place.
    pub changed: Vec<(String, Output)>,
    /// Gradients by argument, if they were asked for.
    pub grads: Option<Vec<(String, Gradient)>>,
    /// The result of a function that gives no tensor.
    pub value: Option<serde_json::Value>,
    /// The signatures that were chosen.
    pub signatures: Vec<String>,
}

/// A tensor that is printed.
#[derive(Clone)]
pub struct Output {
    /// The logical value, row-major.
    pub bytes: Vec<u8>,
    /// The logical shape.
    pub shape: Vec<usize>,
    /// Element type of the output.
    pub dtype: DType,
    /// Where it lies; none of a local tensor.
    pub layout: Option<(Placement, NdSbp)>,
    /// Mesh of the output, if that is not the line's.
    pub elsewhere: Option<Placement>,
    /// Device of the output, if it is local and not on the CPU.
    pub device: Option<Device>,
}

/// Elements from their bytes.
struct Elements<'a>(&'a Output);

/// A float, and whether its dtype is narrower than f64.
struct Real(f64, bool);

impl Serialize for Real {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match (special_text(self.0), self.1) {
            (Some(text), _) => s.serialize_str(text),
            // The shortest text that reads back as this number of its dtype.
            (None, true) => s.serialize_f32(self.0 as f32),
            (None, false) => s.serialize_f64(self.0),
        }
    }
}

impl Serialize for Elements<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let (storage, bytes) = (self.0.dtype.storage(), &self.0.bytes);
        let mut seq = s.serialize_seq(Some(bytes.len() / storage.size()))?;
        for one in bytes.chunks_exact(storage.size()) {
            match storage.decode(one) {
                Some(Scalar::Bool(b)) => seq.serialize_element(&b)?,
                Some(Scalar::Int(i)) => seq.serialize_element(&i)?,
                Some(Scalar::Float(x)) => seq.serialize_element(&Real(x, storage.size() < 8))?,
                Some(Scalar::Complex(re, im)) => {
                    seq.serialize_element(&[re, im].map(|x| Real(x, storage == Builtin::C64)))?
                }
                None => seq.serialize_element(&())?,
            }
        }
        seq.end()
    }
}

impl Serialize for Output {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("data", &Elements(self))?;
        map.serialize_entry("shape", &self.shape)?;
        map.serialize_entry("dtype", self.dtype.name())?;
        let sbp = self.layout.as_ref().map(|(_, sbp)| sbp.iter().map(|s| s.to_string()).collect::<Vec<_>>());
        map.serialize_entry("sbp", &sbp)?;
        if let Some(mesh) = &self.elsewhere {
            map.serialize_entry("mesh", &mesh.to_string())?;
        }
        if let Some(device) = &self.device {
            map.serialize_entry("device", device.name())?;
        }
        map.end()
    }
}

impl Serialize for Gradient {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Gradient::One(g) => g.serialize(s),
            Gradient::Many(all) => all.serialize(s),
        }
    }
}

/// A value that is no tensor: numbers, truth values and lists of integers as such, anything else as text.
pub fn value(v: &AttrValue) -> serde_json::Value {
    match v {
        AttrValue::Int(i) | AttrValue::Scalar(Scalar::Int(i)) => (*i).into(),
        AttrValue::Bool(b) | AttrValue::Scalar(Scalar::Bool(b)) => (*b).into(),
        AttrValue::Float(x) | AttrValue::Scalar(Scalar::Float(x)) => match special_text(*x) {
            Some(text) => text.into(),
            None => (*x).into(),
        },
        AttrValue::Ints(all) => all.as_slice().into(),
        other => other.to_string().into(),
    }
}

/// Members of an object, in order.
struct Members<'a, T>(&'a [(String, T)]);

impl<T: Serialize> Serialize for Members<'_, T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// The line of an answer.
struct Line<'a> {
    id: Option<&'a Json>,
    line: u64,
    said: Said<'a>,
}

enum Said<'a> {
    Answer(&'a Answer),
    Error { error: &'a str, kind: &'a str },
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        if let Some(id) = self.id {
            map.serialize_entry("id", id)?;
        }
        map.serialize_entry("line", &self.line)?;
        match self.said {
            Said::Answer(a) => {
                match &a.value {
                    Some(value) => map.serialize_entry("value", value)?,
                    None => map.serialize_entry("outputs", &a.outputs)?,
                }
                if !a.changed.is_empty() {
                    map.serialize_entry("changed", &Members(&a.changed))?;
                }
                match a.signatures.as_slice() {
                    [] => map.serialize_entry("signature", &())?,
                    [one] => map.serialize_entry("signature", one)?,
                    several => map.serialize_entry("signature", several)?,
                }
                if let Some(grads) = &a.grads {
                    map.serialize_entry("grads", &Members(grads))?;
                }
            }
            Said::Error { error, kind } => {
                map.serialize_entry("error", error)?;
                map.serialize_entry("kind", kind)?;
            }
        }
        map.end()
    }
}

/// An answer as a line of JSON, without the end of the line.
pub fn answer(id: Option<&Json>, line: u64, answer: &Answer) -> Vec<u8> {
    text(&Line { id, line, said: Said::Answer(answer) })
}

/// An error as a line of JSON, without the end of the line.
pub fn error(id: Option<&Json>, line: u64, error: &str, kind: &str) -> Vec<u8> {
    text(&Line { id, line, said: Said::Error { error, kind } })
}

fn text(line: &Line<'_>) -> Vec<u8> {
    // Writing to memory fails for no value of these types; names are texts.
    serde_json::to_vec(line)
        .unwrap_or_else(|e| format!("{{\"line\":{},\"error\":\"{e}\",\"kind\":\"fault\"}}", line.line).into_bytes())
}
