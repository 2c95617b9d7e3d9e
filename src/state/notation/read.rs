//! Values of Rust from the notation.

use super::tagged;
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, DeserializeOwned, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value};

type Result<T> = std::result::Result<T, Error>;

/// Reads a value from its notation.
///
/// # Errors
/// If the notation is malformed, or that of a value of another type.
pub fn read<T: DeserializeOwned>(value: &Value) -> Result<T> {
    T::deserialize(Reader(value))
}

#[derive(Clone, Copy)]
struct Reader<'a>(&'a Value);

/// Meaning of a notation.
enum Form<'a> {
    Plain(&'a Value),
    Float(f64),
    /// Sign and magnitude of an integer beyond 64 bits.
    Int(bool, u128),
    List(&'a [Value]),
    Bytes(Vec<u8>),
    Pairs(&'a [Value]),
    Some(Reader<'a>),
}

fn malformed(value: &Value) -> Error {
    let shown: String = value.to_string().chars().take(80).collect();
    Error::custom(format!("expected the notation of a plain value, got {shown}"))
}

fn float(text: &str) -> Option<f64> {
    match text {
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        "nan" => Some(f64::NAN),
        bits if bits.len() == 16 => u64::from_str_radix(bits, 16).ok().map(f64::from_bits).filter(|f| f.is_nan()),
        _ => None,
    }
}

fn int(text: &str) -> Option<(bool, u128)> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let digits = digits.strip_prefix("0x").filter(|d| !d.starts_with('+'))?;
    u128::from_str_radix(digits, 16).ok().map(|v| (negative, v))
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| (b as char).to_digit(16);
    let pair = |p: &[u8]| Some((digit(p[0])? * 16 + digit(*p.get(1)?)?) as u8);
    text.as_bytes().chunks(2).map(pair).collect()
}

impl<'a> Reader<'a> {
    fn form(self) -> Result<Form<'a>> {
        let Some((tag, held)) = tagged(self.0) else { return Ok(Form::Plain(self.0)) };
        let found = match (tag, held) {
            ("float", Value::String(s)) => float(s).map(Form::Float),
            ("int", Value::String(s)) => int(s).map(|(negative, v)| Form::Int(negative, v)),
            ("bytes" | "bytearray", Value::String(s)) => bytes(s).map(Form::Bytes),
            ("tuple" | "set" | "frozenset" | "complex", Value::Array(all)) => Some(Form::List(all)),
            ("dict" | "ordereddict", Value::Array(all)) => Some(Form::Pairs(all)),
            ("some", held) => Some(Form::Some(Reader(held))),
            _ => None,
        };
        found.ok_or_else(|| malformed(self.0))
    }

    fn list<V: Visitor<'a>>(self, all: &'a [Value], visitor: V) -> Result<V::Value> {
        let mut items = SeqDeserializer::<_, Error>::new(all.iter().map(Reader));
        let value = visitor.visit_seq(&mut items)?;
        items.end()?;
        Ok(value)
    }
}

/// The pairs of a map.
fn pairs(all: &[Value]) -> Result<Vec<(Key<'_>, Reader<'_>)>> {
    let pair = |p| match Value::as_array(p).map(Vec::as_slice) {
        Some([k, v]) => Ok((Key::Value(Reader(k)), Reader(v))),
        _ => Err(malformed(p)),
    };
    all.iter().map(pair).collect()
}

impl<'de> de::Deserializer<'de> for Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.form()? {
            Form::Plain(Value::Null) => visitor.visit_unit(),
            Form::Plain(Value::Bool(v)) => visitor.visit_bool(*v),
            Form::Plain(Value::String(v)) => visitor.visit_borrowed_str(v),
            Form::Plain(Value::Array(all)) => self.list(all, visitor),
            Form::Plain(Value::Object(all)) => {
                let mut entries = MapDeserializer::<_, Error>::new(all.iter().map(|(k, v)| (Key::Name(k), Reader(v))));
                let value = visitor.visit_map(&mut entries)?;
                entries.end()?;
                Ok(value)
            }
            Form::Plain(Value::Number(n)) => match (n.as_u64(), n.as_i64(), n.as_f64()) {
                (Some(v), ..) => visitor.visit_u64(v),
                (_, Some(v), _) => visitor.visit_i64(v),
                (.., Some(v)) => visitor.visit_f64(v),
                _ => Err(malformed(self.0)),
            },
            Form::Float(v) => visitor.visit_f64(v),
            Form::Int(false, v) => match i128::try_from(v) {
                Ok(v) => visitor.visit_i128(v),
                Err(_) => visitor.visit_u128(v),
            },
            Form::Int(true, v) => match 0i128.checked_sub_unsigned(v) {
                Some(v) => visitor.visit_i128(v),
                None => Err(malformed(self.0)),
            },
            Form::List(all) => self.list(all, visitor),
            Form::Bytes(all) => visitor.visit_byte_buf(all),
            Form::Pairs(all) => {
                let mut entries = MapDeserializer::<_, Error>::new(pairs(all)?.into_iter());
                let value = visitor.visit_map(&mut entries)?;
                entries.end()?;
                Ok(value)
            }
            Form::Some(held) => held.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.form()? {
            Form::Plain(Value::Null) => visitor.visit_none(),
            Form::Some(held) => visitor.visit_some(held),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.form()? {
            Form::Bytes(all) => visitor.visit_seq(SeqDeserializer::<_, Error>::new(all.into_iter())),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let variant = match self.form()? {
            Form::Plain(Value::String(name)) => Variant { name: Reader(self.0), what: name, held: None },
            Form::Plain(Value::Object(all)) if all.len() == 1 => match all.iter().next() {
                Some((name, held)) => Variant { name: Reader(self.0), what: name, held: Some(held) },
                None => return Err(malformed(self.0)),
            },
            // A variant whose name begins with `$`.
            Form::Pairs([Value::Array(pair)]) => match pair.as_slice() {
                [Value::String(name), held] => Variant { name: Reader(self.0), what: name, held: Some(held) },
                _ => return Err(malformed(self.0)),
            },
            _ => return Err(malformed(self.0)),
        };
        visitor.visit_enum(variant)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple tuple_struct
        map struct identifier ignored_any
    }
}

impl<'a> IntoDeserializer<'a, Error> for Reader<'a> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

/// A variant of an enum: its name, and what it holds.
struct Variant<'a> {
    /// The whole, for errors.
    name: Reader<'a>,
    what: &'a str,
    held: Option<&'a Value>,
}

impl<'a> de::EnumAccess<'a> for Variant<'a> {
    type Error = Error;
    type Variant = Self;
    fn variant_seed<V: de::DeserializeSeed<'a>>(self, seed: V) -> Result<(V::Value, Self)> {
        seed.deserialize(de::value::BorrowedStrDeserializer::<Error>::new(self.what)).map(|v| (v, self))
    }
}

impl<'a> Variant<'a> {
    fn held(&self) -> Result<Reader<'a>> {
        self.held.map(Reader).ok_or_else(|| malformed(self.name.0))
    }
}

impl<'a> de::VariantAccess<'a> for Variant<'a> {
    type Error = Error;
    fn unit_variant(self) -> Result<()> {
        match self.held {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(malformed(self.name.0)),
        }
    }
    fn newtype_variant_seed<T: de::DeserializeSeed<'a>>(self, seed: T) -> Result<T::Value> {
        seed.deserialize(self.held()?)
    }
    fn tuple_variant<V: Visitor<'a>>(self, _: usize, visitor: V) -> Result<V::Value> {
        de::Deserializer::deserialize_seq(self.held()?, visitor)
    }
    fn struct_variant<V: Visitor<'a>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value> {
        de::Deserializer::deserialize_any(self.held()?, visitor)
    }
}

/// The key of a map.
enum Key<'a> {
    /// Of an object of JSON.
    Name(&'a str),
    Value(Reader<'a>),
}

impl<'de> de::Deserializer<'de> for Key<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Key::Name(text) => visitor.visit_borrowed_str(text),
            Key::Value(v) => v.deserialize_any(visitor),
        }
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Key::Name(_) => visitor.visit_some(self),
            Key::Value(v) => v.deserialize_option(visitor),
        }
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self {
            Key::Name(text) => visitor.visit_enum(de::value::BorrowedStrDeserializer::new(text)),
            Key::Value(v) => v.deserialize_enum(name, variants, visitor),
        }
    }
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'a> IntoDeserializer<'a, Error> for Key<'a> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}
