//! JSON as a call needs it: integers keep all their digits, lists of numbers take eight bytes a number, and a name that stands
//! twice in an object is an error.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// The value `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without a fraction that is an i64.
    Int(i64),
    /// Any other number; `-0` too.
    Float(f64),
    /// A text, unescaped.
    Text(String),
    /// A list of integers only; an empty list.
    Ints(Vec<i64>),
    /// A list of numbers, and of `"nan"`, `"inf"` and `"-inf"`.
    Floats(Vec<f64>),
    /// Any other list.
    List(Vec<Json>),
    /// An object, in the order of the text.
    Object(Vec<(String, Json)>),
}

/// The float that a text stands for, because JSON has no number for it: `nan`, `inf` or `-inf`.
pub fn special(text: &str) -> Option<f64> {
    match text {
        "nan" => Some(f64::NAN),
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// The text of a float that JSON has no number for.
pub fn special_text(x: f64) -> Option<&'static str> {
    match x {
        x if x.is_nan() => Some("nan"),
        x if x.is_finite() => None,
        x if x > 0.0 => Some("inf"),
        _ => Some("-inf"),
    }
}

impl Json {
    /// Reads a text.
    ///
    /// # Errors
    /// The text is not JSON, is nested deeper than 128 levels, or has a name twice in one object.
    pub fn parse(text: &[u8]) -> Result<Json, String> {
        serde_json::from_slice(text).map_err(|e| e.to_string())
    }

    /// Name of the kind of value, for messages.
    pub fn what(&self) -> String {
        let of = |n: usize, what: &str| format!("a list of {n} {what}");
        match self {
            Json::Null => "null".into(),
            Json::Bool(b) => b.to_string(),
            Json::Int(i) => i.to_string(),
            Json::Float(x) => format!("{x:?}"),
            Json::Text(t) if t.chars().count() <= 40 => format!("{t:?}"),
            Json::Text(t) => format!("a text of {} bytes", t.len()),
            Json::Ints(v) if v.len() <= 8 => format!("{v:?}"),
            Json::Floats(v) if v.len() <= 8 => format!("{v:?}"),
            Json::Ints(v) => of(v.len(), "integers"),
            Json::Floats(v) => of(v.len(), "numbers"),
            Json::List(v) => of(v.len(), "values"),
            Json::Object(v) if v.iter().any(|(n, _)| n == "data") => "a tensor".into(),
            Json::Object(_) => "an object".into(),
        }
    }

    /// The members of a list, whatever it is kept as.
    pub fn members(&self) -> Option<Vec<Json>> {
        match self {
            Json::Ints(v) => Some(v.iter().map(|i| Json::Int(*i)).collect()),
            Json::Floats(v) => Some(v.iter().map(|x| Json::Float(*x)).collect()),
            Json::List(v) => Some(v.clone()),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Json, D::Error> {
        d.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }
    fn visit_bool<E>(self, b: bool) -> Result<Json, E> {
        Ok(Json::Bool(b))
    }
    fn visit_i64<E>(self, i: i64) -> Result<Json, E> {
        Ok(Json::Int(i))
    }
    fn visit_u64<E>(self, u: u64) -> Result<Json, E> {
        Ok(i64::try_from(u).map_or(Json::Float(u as f64), Json::Int))
    }
    fn visit_f64<E>(self, x: f64) -> Result<Json, E> {
        Ok(Json::Float(x))
    }
    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_string()))
    }
    fn visit_string<E>(self, text: String) -> Result<Json, E> {
        Ok(Json::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut list = Json::Ints(Vec::new());
        while let Some(next) = seq.next_element::<Json>()? {
            list = pushed(list, next);
        }
        Ok(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members: Vec<(String, Json)> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            // Objects of a call are small, but nobody says that this one is.
            if members.len() > MOST_NAMES {
                return Err(A::Error::custom(format!("an object has more than {MOST_NAMES} names")));
            }
            if members.iter().any(|(n, _)| *n == name) {
                return Err(A::Error::custom(format!("the name {name:?} stands twice in one object")));
            }
            members.push((name, map.next_value()?));
        }
        Ok(Json::Object(members))
    }
}

/// Most names of an object: they are compared pair by pair.
const MOST_NAMES: usize = 1000;

/// The list with one more member, kept as short as its members allow.
fn pushed(list: Json, next: Json) -> Json {
    match (list, next) {
        (Json::Ints(mut v), Json::Int(i)) => {
            v.push(i);
            Json::Ints(v)
        }
        (Json::Floats(mut v), Json::Float(x)) => {
            v.push(x);
            Json::Floats(v)
        }
        // An integer that a float cannot hold must not lose its digits: the list is kept member by member.
        (Json::Floats(mut v), Json::Int(i)) if exact(i) => {
            v.push(i as f64);
            Json::Floats(v)
        }
        (Json::Ints(v), Json::Float(x)) if v.iter().all(|i| exact(*i)) => {
            let mut v: Vec<f64> = v.into_iter().map(|i| i as f64).collect();
            v.push(x);
            Json::Floats(v)
        }
        (Json::Floats(mut v), Json::Text(t)) if special(&t).is_some() => {
            v.extend(special(&t));
            Json::Floats(v)
        }
        (Json::List(mut v), next) => {
            v.push(next);
            Json::List(v)
        }
        (list, next) => {
            let mut v = list.members().unwrap_or_default();
            v.push(next);
            Json::List(v)
        }
    }
}

/// Whether an f64 holds the integer.
fn exact(i: i64) -> bool {
    i.unsigned_abs() <= 1 << 53
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Null => s.serialize_unit(),
            Json::Bool(b) => s.serialize_bool(*b),
            Json::Int(i) => s.serialize_i64(*i),
            Json::Float(x) => match special_text(*x) {
                Some(text) => s.serialize_str(text),
                None => s.serialize_f64(*x),
            },
            Json::Text(t) => s.serialize_str(t),
            Json::Ints(v) => s.collect_seq(v),
            Json::Floats(v) => s.collect_seq(v.iter().map(|x| Json::Float(*x))),
            Json::List(v) => s.collect_seq(v),
            Json::Object(v) => {
                let mut map = s.serialize_map(Some(v.len()))?;
                v.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Json {
        Json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn lists_are_kept_short_and_numbers_exact() {
        assert_eq!(read("[1, -2]"), Json::Ints(vec![1, -2]));
        assert_eq!(read("[]"), Json::Ints(vec![]));
        assert_eq!(read("[1, 2.5, \"-inf\"]"), Json::Floats(vec![1.0, 2.5, f64::NEG_INFINITY]));
        assert_eq!(read("[\"inf\", 1]"), Json::List(vec![Json::Text("inf".into()), Json::Int(1)]));
        assert_eq!(read("[9007199254740993, 0.5]"), Json::List(vec![Json::Int(9007199254740993), Json::Float(0.5)]));
        assert_eq!(read("[0.5, 9007199254740993]"), Json::List(vec![Json::Float(0.5), Json::Int(9007199254740993)]));
        assert_eq!(read("[[1], []]"), Json::List(vec![Json::Ints(vec![1]), Json::Ints(vec![])]));
        assert_eq!(read("9223372036854775807"), Json::Int(i64::MAX));
        assert_eq!(read("9223372036854775808"), Json::Float(9223372036854775808.0));
        assert!(matches!(read("-0"), Json::Float(x) if x.to_bits() == (-0.0f64).to_bits()));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        let deep = "[".repeat(100_000);
        for bad in ["", "{", "1e999", "{\"a\":1,\"a\":2}", "\u{0}", "[1 2]", "nan", "{} {}", &deep] {
            assert!(Json::parse(bad.as_bytes()).is_err(), "{bad:.20}");
        }
        assert!(Json::parse(b"\"\xff\"").is_err());
        assert!(Json::parse(b"{\"a\":1,\"a\":2}").unwrap_err().contains("the name \"a\" stands twice"));
    }

    #[test]
    fn values_are_written_as_they_were_read() {
        for text in ["null", "[1,2]", "[1.5,\"nan\"]", "{\"b\":[true,null],\"a\":\"x\"}", "-0.0", "[]"] {
            assert_eq!(serde_json::to_string(&read(text)).unwrap(), text);
        }
    }
}
