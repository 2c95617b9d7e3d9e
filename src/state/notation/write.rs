//! Values of Rust in the notation.

use super::{DEEPEST, object, pairs, tagged};
use serde::ser::{self, Error as _, Serialize};
use serde_json::{Error, Map, Value, json};
use std::collections::BTreeSet;

type Result<T = Value> = std::result::Result<T, Error>;

/// Writes a value in the notation.
///
/// # Errors
/// If the value nests deeper than [`DEEPEST`], or its own `Serialize` fails.
pub fn write(value: &(impl Serialize + ?Sized)) -> Result {
    value.serialize(Writer { left: DEEPEST })
}

/// Writes a value of which so many levels may follow.
#[derive(Clone, Copy)]
struct Writer {
    left: usize,
}

impl Writer {
    /// For what is inside of a list or an object. An object of the notation is two levels.
    fn inside(self, levels: usize) -> Result<Writer> {
        match self.left.checked_sub(levels) {
            Some(left) => Ok(Writer { left }),
            None => Err(Error::custom(format!("expected at most {DEEPEST} levels of lists and objects, got more"))),
        }
    }
    fn list(self, variant: Option<&'static str>) -> Result<List> {
        Ok(List { inside: self.inside(if variant.is_some() { 4 } else { 1 })?, all: vec![], variant })
    }
    fn fields(self, variant: Option<&'static str>) -> Result<Fields> {
        // One of a single field may become pairs.
        Ok(Fields { inside: self.inside(if variant.is_some() { 6 } else { 3 })?, all: Map::new(), variant })
    }
}

/// The variant of an enum with what it holds.
fn variant_of(variant: Option<&'static str>, held: Value) -> Value {
    match variant {
        Some(name) => object(Map::from_iter([(name.to_string(), held)])),
        None => held,
    }
}

fn float(v: f64) -> Value {
    let text = match v {
        v if v.is_finite() => return Value::from(v),
        f64::INFINITY => "inf".into(),
        f64::NEG_INFINITY => "-inf".into(),
        v if v.to_bits() == f64::NAN.to_bits() => "nan".into(),
        v => format!("{:016x}", v.to_bits()),
    };
    json!({ "$float": Value::String(text) })
}

impl ser::Serializer for Writer {
    type Ok = Value;
    type Error = Error;
    type SerializeSeq = List;
    type SerializeTuple = List;
    type SerializeTupleStruct = List;
    type SerializeTupleVariant = List;
    type SerializeMap = Pairs;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Fields;

    fn serialize_bool(self, v: bool) -> Result {
        Ok(v.into())
    }
    fn serialize_i8(self, v: i8) -> Result {
        Ok(v.into())
    }
    fn serialize_i16(self, v: i16) -> Result {
        Ok(v.into())
    }
    fn serialize_i32(self, v: i32) -> Result {
        Ok(v.into())
    }
    fn serialize_i64(self, v: i64) -> Result {
        Ok(v.into())
    }
    fn serialize_i128(self, v: i128) -> Result {
        Ok(match (i64::try_from(v), u64::try_from(v)) {
            (Ok(v), _) => v.into(),
            (_, Ok(v)) => v.into(),
            _ => json!({ "$int": format!("{}{:#x}", if v < 0 { "-" } else { "" }, v.unsigned_abs()) }),
        })
    }
    fn serialize_u8(self, v: u8) -> Result {
        Ok(v.into())
    }
    fn serialize_u16(self, v: u16) -> Result {
        Ok(v.into())
    }
    fn serialize_u32(self, v: u32) -> Result {
        Ok(v.into())
    }
    fn serialize_u64(self, v: u64) -> Result {
        Ok(v.into())
    }
    fn serialize_u128(self, v: u128) -> Result {
        Ok(u64::try_from(v).map_or_else(|_| json!({ "$int": format!("{v:#x}") }), Value::from))
    }
    fn serialize_f32(self, v: f32) -> Result {
        Ok(float(v.into()))
    }
    fn serialize_f64(self, v: f64) -> Result {
        Ok(float(v))
    }
    fn serialize_char(self, v: char) -> Result {
        Ok(v.to_string().into())
    }
    fn serialize_str(self, v: &str) -> Result {
        Ok(v.into())
    }
    fn serialize_bytes(self, v: &[u8]) -> Result {
        Ok(json!({ "$bytes": v.iter().map(|b| format!("{b:02x}")).collect::<String>() }))
    }
    fn serialize_none(self) -> Result {
        Ok(Value::Null)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Result {
        let held = v.serialize(self.inside(1)?)?;
        // Otherwise `Some(None)` would be read as `None`.
        let marked = held.is_null() || tagged(&held).is_some_and(|(tag, _)| tag == "some");
        Ok(if marked { json!({ "$some": held }) } else { held })
    }
    fn serialize_unit(self) -> Result {
        Ok(Value::Null)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result {
        Ok(Value::Null)
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result {
        Ok(variant.into())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, v: &T) -> Result {
        v.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        v: &T,
    ) -> Result {
        Ok(variant_of(Some(variant), v.serialize(self.inside(3)?)?))
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<List> {
        self.list(None)
    }
    fn serialize_tuple(self, _: usize) -> Result<List> {
        self.list(None)
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<List> {
        self.list(None)
    }
    fn serialize_tuple_variant(self, _: &'static str, _: u32, variant: &'static str, _: usize) -> Result<List> {
        self.list(Some(variant))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Pairs> {
        Ok(Pairs { inside: self.inside(3)?, all: vec![], key: None })
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields> {
        self.fields(None)
    }
    fn serialize_struct_variant(self, _: &'static str, _: u32, variant: &'static str, _: usize) -> Result<Fields> {
        self.fields(Some(variant))
    }
}

/// A list that is being written.
struct List {
    inside: Writer,
    all: Vec<Value>,
    variant: Option<&'static str>,
}

impl List {
    fn push<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<()> {
        self.all.push(v.serialize(self.inside)?);
        Ok(())
    }
    fn done(self) -> Result {
        Ok(variant_of(self.variant, Value::Array(self.all)))
    }
}

macro_rules! lists {
    ($($of:ident $push:ident),*) => {$(
        impl ser::$of for List {
            type Ok = Value;
            type Error = Error;
            fn $push<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<()> {
                self.push(v)
            }
            fn end(self) -> Result {
                self.done()
            }
        }
    )*};
}
lists!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

/// A struct that is being written.
struct Fields {
    inside: Writer,
    all: Map<String, Value>,
    variant: Option<&'static str>,
}

macro_rules! structs {
    ($($of:ident),*) => {$(
        impl ser::$of for Fields {
            type Ok = Value;
            type Error = Error;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, v: &T) -> Result<()> {
                self.all.insert(name.to_string(), v.serialize(self.inside)?);
                Ok(())
            }
            fn end(self) -> Result {
                Ok(variant_of(self.variant, object(self.all)))
            }
        }
    )*};
}
structs!(SerializeStruct, SerializeStructVariant);

/// A map that is being written.
struct Pairs {
    inside: Writer,
    all: Vec<(Value, Value)>,
    key: Option<Value>,
}

impl ser::SerializeMap for Pairs {
    type Ok = Value;
    type Error = Error;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.key = Some(key.serialize(self.inside)?);
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<()> {
        let key = self.key.take().ok_or_else(|| Error::custom("expected a key before each value of a map"))?;
        self.all.push((key, v.serialize(self.inside)?));
        Ok(())
    }
    fn end(self) -> Result {
        let names: BTreeSet<&str> = self.all.iter().filter_map(|(k, _)| k.as_str()).collect();
        if names.len() < self.all.len() {
            return Ok(pairs(self.all.into_iter()));
        }
        let named = |(k, v): (Value, Value)| match k {
            Value::String(k) => Some((k, v)),
            _ => None,
        };
        Ok(object(self.all.into_iter().filter_map(named).collect()))
    }
}
