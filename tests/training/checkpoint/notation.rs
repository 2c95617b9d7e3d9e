//! Every shape of serde's data comes back as it was; and what is refused.

use oflow::state::notation::{DEEPEST, check_depth, read, to_json, write};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Everything that serde's data may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Any {
    Unit,
    #[serde(rename = "$float")]
    Float(f64),
    Tuple(i128, u128, char),
    Struct {
        half: f32,
        nested: Option<Option<Box<Any>>>,
    },
    #[serde(rename = "$map")]
    Map(BTreeMap<Key, Any>),
    List(Vec<Any>),
    Json(Value),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Key {
    Name(String),
    Number(i64),
    Pair(bool, u8),
    Empty,
}

/// Draws values.
#[derive(Clone, Copy)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11
    }
    pub fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.next() as usize % all.len()].clone()
    }
    fn float(&mut self) -> f64 {
        let odd = [f64::INFINITY, f64::NEG_INFINITY, -0.0, 5e-324, f64::MAX, 0.1, 1e23];
        if self.next() & 1 == 0 { self.of(&odd) } else { f64::from_bits(self.next() << 7 & !(1 << 52)) }
    }
    fn text(&mut self) -> String {
        self.of(&["", "$float", "$dict", "a.b", "__metadata__", "\n\0", "\u{1f600}", "crc32", "--------"]).to_string()
    }
    pub fn any(&mut self, depth: usize) -> Any {
        match self.next() % if depth == 0 { 3 } else { 7 } {
            0 => Any::Unit,
            1 => Any::Float(self.float()),
            2 => {
                let big = self.of(&[i128::MIN, i128::MAX, -1, i64::MIN as i128 - 1, u64::MAX as i128 + 1]);
                Any::Tuple(big, self.of(&[u128::MAX, 0, 1 << 64, 1 << 127]), self.of(&['$', '\u{10ffff}', '"']))
            }
            3 => {
                let held = self.any(depth - 1);
                let nested = self.of(&[None, Some(None), Some(Some(Box::new(held)))]);
                Any::Struct { half: self.float() as f32, nested }
            }
            4 => {
                let n = self.next() % 3;
                let key = |r: &mut Random| match r.next() % 4 {
                    0 => Key::Name(r.text()),
                    1 => Key::Number(r.next() as i64),
                    2 => Key::Pair(r.next() & 1 == 0, 7),
                    _ => Key::Empty,
                };
                Any::Map((0..n).map(|_| (key(self), self.any(depth - 1))).collect())
            }
            5 => Any::List((0..self.next() % 4).map(|_| self.any(depth - 1)).collect()),
            _ => Any::Json(json!({ self.text(): [self.text(), null, { self.text(): 1.5, self.text(): [] }] })),
        }
    }
}

fn round<T: Serialize + DeserializeOwned + Debug>(value: &T) -> T {
    let notation = write(value).unwrap();
    check_depth(&notation).unwrap();
    // As a manifest holds it: as text.
    let text = serde_json::to_string(&notation).unwrap();
    read(&serde_json::from_str(&text).unwrap()).unwrap_or_else(|e| panic!("{value:?} as {text}: {e}"))
}

fn same<T: Serialize + DeserializeOwned + Debug + PartialEq>(value: T) {
    assert_eq!(round(&value), value);
}

#[test]
fn random_values_come_back_as_they_were() {
    let mut random = Random(7);
    let values = 20_000;
    for _ in 0..values {
        same(random.any(4));
    }
    println!("{values} random values of Rust came back as they were");
    for bits in [f64::NAN.to_bits(), 0x7ff8_0000_0000_0001, 0xfff8_0000_0000_0000, 0x7ff0_0000_0000_0001] {
        assert_eq!(round(&f64::from_bits(bits)).to_bits(), bits);
    }
    assert!(round(&f32::NAN).is_nan() && round(&-0.0f32).is_sign_negative());
    same((f32::INFINITY, f32::MIN_POSITIVE / 2.0, u64::MAX, i64::MIN, (), "x".to_string(), [1u8; 3]));
    same(Some(Some(())));
    same(vec![Some(None), None, Some(Some(1u8))]);
    same(BTreeMap::from([(1u32, f64::INFINITY), (2, 0.5)]));
    same(BTreeMap::from([(None, 1), (Some(false), 2)]));
    same(BTreeMap::from([((1i128 << 70, 'a'), vec![u128::MAX])]));
    same(BTreeMap::from([("$int".to_string(), "0x1".to_string())]));
}

#[test]
fn notations_are_as_the_page_says() {
    let text = |v: Result<Value, serde_json::Error>| v.unwrap().to_string();
    assert_eq!(text(write(&[1.5, f64::INFINITY, f64::NAN])), r#"[1.5,{"$float":"inf"},{"$float":"nan"}]"#);
    assert_eq!(text(write(&(-1i128 << 70))), r#"{"$int":"-0x400000000000000000"}"#);
    assert_eq!(text(write(&BTreeMap::from([(1, 2.0)]))), r#"{"$dict":[[1,2.0]]}"#);
    assert_eq!(text(write(&BTreeMap::from([("$a", 2)]))), r#"{"$dict":[["$a",2]]}"#);
    assert_eq!(text(write(&Some(None::<u8>))), r#"{"$some":null}"#);
    // What Python writes.
    assert_eq!(read::<(u8, f32)>(&json!({ "$tuple": [1, { "$float": "-inf" }] })).unwrap(), (1, f32::NEG_INFINITY));
    assert_eq!(read::<Vec<u8>>(&json!({ "$bytes": "00fF" })).unwrap(), [0, 255]);
    assert_eq!(read::<BTreeMap<String, u8>>(&json!({ "1": 2 })).unwrap(), BTreeMap::from([("1".into(), 2)]));
    assert!(read::<BTreeMap<u8, u8>>(&json!({ "1": 2 })).unwrap_err().to_string().contains("string \"1\""));
    assert_eq!(to_json(&write(&json!([{ "$int": 1 }])).unwrap()).unwrap(), json!([{ "$int": 1 }]));
    assert!(to_json(&json!([{ "$float": "inf" }])).unwrap_err().to_string().contains("expected a value of JSON"));
}

#[test]
fn what_is_malformed_or_too_deep_is_refused() {
    for value in [
        json!({ "$float": "1" }),
        json!({ "$float": 1 }),
        json!({ "$float": "7ff0000000000000" }),
        json!({ "$int": "12" }),
        json!({ "$int": "0x+1" }),
        json!({ "$int": "-0x80000000000000000000000000000001" }),
        json!({ "$bytes": "0" }),
        json!({ "$bytes": "é1" }),
        json!({ "$dict": [[1]] }),
        json!({ "$later": 1 }),
    ] {
        let e =
            read::<f64>(&value).map(drop).and(read::<Vec<u8>>(&value).map(drop)).and(read::<i128>(&value).map(drop));
        assert!(e.unwrap_err().to_string().contains("expected the notation of a plain value"), "{value}");
    }
    let deep = |levels: usize| (0..levels).fold(json!(1), |v, _| json!([v]));
    for levels in [1, DEEPEST] {
        same(deep(levels));
    }
    for levels in [DEEPEST + 1, 1000] {
        assert!(write(&deep(levels)).unwrap_err().to_string().contains("at most 100 levels"));
        assert!(check_depth(&deep(levels + 1)).is_err());
    }
}
