//! From the JSON of arguments to the arguments of a function: which kind a value is to be follows from the signature.

use std::collections::BTreeMap;
use std::convert::Infallible;

use oflow::functional::bind::{self as binder, ByPosition, Language, Misfit, Unfit, Words, bind, first_fit};
use oflow::functional::{Arg, FnDef, FnParam, ParamKind, TensorIndex, functions};
use oflow::interpreter::Target;
use oflow::kernels::Scalar;
use oflow::ops::{AttrKind, AttrValue};
use oflow::placement::{Device, Placement};
use oflow::sbp::NdSbp;
use oflow::{Generator, Result, Tensor, World};

use super::json::{Json, special};
use super::line::{Case, placement};
use super::tensor::{Common, Given, nd_sbp, where_to};

/// The functions by name, with their overloads in order.
pub struct Functions(BTreeMap<String, Vec<FnDef>>);

impl Functions {
    /// The functions of this process.
    pub fn here() -> Functions {
        let mut all: BTreeMap<String, Vec<FnDef>> = BTreeMap::new();
        for f in functions() {
            all.entry(f.sig.name.clone()).or_default().push(f);
        }
        Functions(all)
    }
    fn overloads(&self, name: &str) -> &[FnDef] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

/// An argument, ready to be made on each rank.
pub enum Ready {
    /// A tensor, as the ranks are given it.
    Tensor(Given),
    /// A list of tensors.
    Tensors(Vec<Given>),
    /// Where a new tensor lies.
    Target(Target),
    /// An index into a tensor.
    Index(Vec<Member>),
    /// The seed of a generator.
    Seed(u64),
    /// A value that is not a tensor.
    Value(AttrValue),
    /// The JSON value `null`.
    Nothing,
}

/// A member of an index.
pub enum Member {
    /// A mask or an index tensor.
    Tensor(Given),
    /// Any other member of an index.
    Plain(TensorIndex),
}

/// The arguments of a call, with the names of the parameters.
pub struct Arguments {
    /// The overload that takes them; none of a function that the table does not have, or if none takes them.
    pub function: Option<FnDef>,
    /// Arguments by place.
    pub args: Vec<(String, Ready)>,
    /// Arguments by name.
    pub named: Vec<(String, Ready)>,
}

/// Reads the arguments of a case for the first overload that takes them.
///
/// # Errors
/// No overload takes the value of an argument. What the overloads themselves refuse is left to the call, whose error lists them.
pub fn arguments(case: &Case, functions: &Functions) -> Result<Arguments, String> {
    let common = Common::of(case);
    let values: Vec<&Json> = case.args.iter().chain(case.named.iter().map(|(_, v)| v)).collect();
    let keywords: Vec<&str> = case.named.iter().map(|(n, _)| n.as_str()).collect();
    let given = binder::Given::new(&values, &keywords);
    let overloads = functions.overloads(&case.call);
    let read = |f: &FnDef| bind(&mut Line { common: &common }, &f.sig, ByPosition::of(&f.sig), &given);
    let misfits = match first_fit(overloads, read) {
        Ok(Ok((f, bound))) => return Ok(in_order(case, f, bound)),
        Ok(Err(misfits)) => misfits,
        Err(never) => match never {},
    };
    // Why a value could not be read. What else does not fit, the call says.
    let mut reasons: Vec<String> = misfits.into_iter().filter_map(said).collect();
    reasons.dedup();
    if !reasons.is_empty() {
        return Err(reasons.join("; "));
    }
    // No function of that name takes such arguments. The call says so better than we could.
    let guess = |name: &str, v: &Json| Ok((name.to_string(), guessed(v, name, &common)?));
    let args = case.args.iter().enumerate().map(|(i, v)| guess(&i.to_string(), v)).collect::<Result<_, String>>()?;
    let named = case.named.iter().map(|(n, v)| guess(n, v)).collect::<Result<_, String>>()?;
    Ok(Arguments { function: None, args, named })
}

fn said(misfit: Misfit) -> Option<String> {
    match misfit {
        Misfit::Text(why) => Some(why),
        _ => None,
    }
}

/// The arguments of an overload as the case gives them: by place, then by name in its order, then what it leaves out.
fn in_order(case: &Case, f: &FnDef, bound: Vec<Option<Ready>>) -> Arguments {
    let mut all: Vec<(String, Option<Ready>)> = f.sig.params.iter().map(|p| p.name.clone()).zip(bound).collect();
    let rest = all.split_off(case.args.len());
    // What is null by place keeps its place.
    let args = all.into_iter().map(|(name, ready)| (name, ready.unwrap_or(Ready::Nothing))).collect();
    let place = |name: &str| case.named.iter().position(|(n, _)| n == name).unwrap_or(usize::MAX);
    let mut named: Vec<_> = rest.into_iter().filter_map(|(name, ready)| Some((name, ready?))).collect();
    named.sort_by_key(|(name, _)| place(name));
    Arguments { function: Some(f.clone()), args, named }
}

/// A line of cases as a caller of functions: its values are JSON, and tensors that say nothing else lie where those of the line
/// do.
struct Line<'a> {
    common: &'a Common<'a>,
}

impl Line<'_> {
    fn read(&self, p: &FnParam, value: &Json) -> Result<Ready, Unfit<Infallible>> {
        of_kind(value, p.kind, &p.name, self.common).map_err(|why| Unfit::Text(format!("'{}' {why}", p.name)))
    }
}

impl<'a> Language for Line<'a> {
    type Value = &'a Json;
    type Taken = Ready;
    type Error = Infallible;
    const WORDS: Words = Words::Plain;

    fn is_absent(&self, _: &FnParam, value: &Json) -> bool {
        *value == Json::Null
    }
    fn convert(&mut self, p: &FnParam, passed: &[Self::Value]) -> Result<Ready, Unfit<Infallible>> {
        match passed {
            [value] => self.read(p, value),
            _ => Err(Unfit::Type),
        }
    }
    fn supplies(&self, _: usize, p: &FnParam) -> bool {
        p.kind == ParamKind::Target
    }
    /// A factory without a target makes its tensor where the line's tensors are. Defaults are the function's.
    fn left_out(&mut self, _: usize, p: &FnParam) -> Result<Option<Ready>, Unfit<Infallible>> {
        match p.kind {
            ParamKind::Target => self.read(p, &Json::Object(vec![])).map(Some),
            _ => Ok(None),
        }
    }
    fn type_of(&self, p: &FnParam) -> String {
        p.kind.name().to_string()
    }
    fn describe(&self, value: &Json) -> String {
        value.what()
    }
}

/// Reads a value as that kind.
fn of_kind(v: &Json, kind: ParamKind, name: &str, common: &Common<'_>) -> Result<Ready, String> {
    Ok(match kind {
        ParamKind::Tensor => Ready::Tensor(Given::read(v, name, common)?),
        ParamKind::TensorTuple => {
            let all = v.members().ok_or_else(|| format!("must be a list of tensors, not {}", v.what()))?;
            let one = |(i, v): (usize, &Json)| {
                Given::read(v, &format!("{name}[{i}]"), common).map_err(|why| format!("[{i}] {why}"))
            };
            Ready::Tensors(all.iter().enumerate().map(one).collect::<Result<_, _>>()?)
        }
        ParamKind::Target => Ready::Target(target(v, common)?),
        ParamKind::Generator => match v {
            Json::Int(seed) if *seed >= 0 => Ready::Seed(*seed as u64),
            v => return Err(format!("must be the seed of a generator, an integer of at least 0, not {}", v.what())),
        },
        ParamKind::TensorIndex => Ready::Index(index(v, name, common)?),
        ParamKind::Attr(kind) => Ready::Value(value(v, kind)?),
    })
}

/// Reads an index: a list of integers, texts such as `"1:5:-1"`, `"..."` and `"newaxis"`, and tensors; or one of these.
fn index(v: &Json, name: &str, common: &Common<'_>) -> Result<Vec<Member>, String> {
    let one = |(i, v): (usize, &Json)| {
        Ok(match v {
            Json::Int(i) => Member::Plain(TensorIndex::Int(*i)),
            Json::Text(t) => Member::Plain(t.parse().map_err(|e: oflow::Error| e.message().to_string())?),
            Json::Object(_) => Member::Tensor(Given::read(v, &format!("{name}[{i}]"), common)?),
            v => {
                return Err(format!(
                    "[{i}] must be an integer, a text such as \"1:5:-1\", \"...\" or \"newaxis\", or a tensor, not {}",
                    v.what()
                ));
            }
        })
    };
    match v.members() {
        Some(all) => all.iter().enumerate().map(one).collect(),
        None => one((0, v)).map(|m| vec![m]),
    }
}

/// Reads where a new tensor lies: `"cpu"` for a local one, else `{"mesh": …, "sbp": …}`. What is left out is as for tensors.
fn target(v: &Json, common: &Common<'_>) -> Result<Target, String> {
    match v {
        Json::Text(device) => Ok(Target::Local(device.parse().map_err(|e: oflow::Error| e.message().to_string())?)),
        Json::Object(members) => {
            let of = |name: &str| members.iter().find(|(n, _)| n == name).map(|(_, v)| v);
            if let Some((other, _)) = members.iter().find(|(n, _)| !["mesh", "sbp"].contains(&n.as_str())) {
                return Err(format!("has '{other}'; a target has mesh and sbp, or is the name of a device"));
            }
            Ok(match where_to(of("mesh"), of("sbp"), common.mesh)? {
                Some((mesh, sbp)) => Target::Global(mesh, sbp),
                None => Target::Local(Device::Cpu),
            })
        }
        v => Err(format!(
            "must be a device such as \"cpu\", or {{\"mesh\": [2], \"sbp\": [\"S(0)\"]}}, not {}",
            v.what()
        )),
    }
}

/// Reads the value of an attribute of that kind.
fn value(v: &Json, kind: AttrKind) -> Result<AttrValue, String> {
    let text = |e: oflow::Error| e.message().to_string();
    let no = |wanted: &str| format!("must be {wanted}, not {}", v.what());
    let ints = |v: &Json| match v {
        Json::Ints(v) => Some(AttrValue::from(v.as_slice())),
        _ => None,
    };
    let list = |wanted: &str, one: &dyn Fn(&Json) -> Result<AttrValue, String>| -> Result<AttrValue, String> {
        let members = v.members().ok_or_else(|| no(wanted))?;
        Ok(AttrValue::from(members.iter().map(one).collect::<Result<Vec<_>, _>>()?))
    };
    Ok(match (kind, v) {
        (AttrKind::Int, Json::Int(i)) => AttrValue::Int(*i),
        (AttrKind::Float, Json::Int(_) | Json::Float(_) | Json::Text(_)) => {
            AttrValue::Float(float(v).ok_or_else(|| no("a number"))?)
        }
        (AttrKind::Bool, Json::Bool(b)) => AttrValue::Bool(*b),
        (AttrKind::Str, Json::Text(t)) => AttrValue::from(t.as_str()),
        (AttrKind::Scalar, _) => AttrValue::Scalar(scalar(v).ok_or_else(|| no("a number"))?),
        // One stands for a list of one, or of as many as the parameter says.
        (AttrKind::Ints, Json::Int(i)) => AttrValue::Int(*i),
        (AttrKind::Ints | AttrKind::Shape, _) => ints(v).ok_or_else(|| no("a list of integers"))?,
        (AttrKind::Floats, Json::Int(_) | Json::Float(_)) => AttrValue::Float(float(v).ok_or_else(|| no("a number"))?),
        (AttrKind::Floats, _) => {
            let all = v.members().and_then(|all| all.iter().map(float).collect());
            AttrValue::Floats(all.ok_or_else(|| no("a list of numbers"))?)
        }
        (AttrKind::DType, Json::Text(t)) => AttrValue::DType(ask_dtype(t)?),
        (AttrKind::Device, Json::Text(t)) => AttrValue::Device(t.parse().map_err(text)?),
        (AttrKind::Placement, v) => AttrValue::Placement(placement(v)?),
        (AttrKind::NdSbp, v) => AttrValue::NdSbp(nd_sbp(v)?),
        (AttrKind::Bytes, Json::Ints(v)) => {
            let bytes: Option<Vec<u8>> = v.iter().map(|b| u8::try_from(*b).ok()).collect();
            AttrValue::Bytes(bytes.ok_or_else(|| no("bytes from 0 to 255"))?.into())
        }
        (AttrKind::IntLists, _) => {
            list("a list of lists of integers", &|m| ints(m).ok_or_else(|| no("a list of lists of integers")))?
        }
        (AttrKind::Placements, _) => list("a list of meshes", &|m| Ok(AttrValue::Placement(placement(m)?)))?,
        (AttrKind::NdSbps, _) => list("a list of layouts", &|m| match m {
            Json::Null => Ok(AttrValue::Absent),
            m => Ok(AttrValue::NdSbp(nd_sbp(m)?)),
        })?,
        (kind, v) if kind.member().is_some() && v.members().is_some() => {
            let member = kind.member().unwrap_or(kind);
            list(&with_article(kind.name()), &|m| value(m, member))?
        }
        // Any other kind that oflow gets, and one value for all members of a list: as it looks.
        (kind, v) => plain(v)
            .filter(|v| kind.holds(v) || kind.member().is_some_and(|m| m.holds(v)))
            .ok_or_else(|| no(&with_article(kind.name())))?,
    })
}

fn with_article(noun: &str) -> String {
    format!("{} {noun}", if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" })
}

fn ask_dtype(text: &str) -> Result<oflow::DType, String> {
    crate::inspect::dtype(text)
}

fn float(v: &Json) -> Option<f64> {
    match v {
        Json::Int(i) => Some(*i as f64),
        Json::Float(x) => Some(*x),
        Json::Text(t) => special(t),
        _ => None,
    }
}

fn scalar(v: &Json) -> Option<Scalar> {
    match v {
        Json::Bool(b) => Some(Scalar::Bool(*b)),
        Json::Int(i) => Some(Scalar::Int(*i)),
        v => float(v).map(Scalar::Float),
    }
}

/// The value that JSON looks like.
fn plain(v: &Json) -> Option<AttrValue> {
    Some(match v {
        Json::Bool(b) => AttrValue::Bool(*b),
        Json::Int(i) => AttrValue::Int(*i),
        Json::Float(x) => AttrValue::Float(*x),
        Json::Text(t) => AttrValue::from(t.as_str()),
        Json::Ints(v) => AttrValue::from(v.as_slice()),
        Json::Floats(v) => AttrValue::Floats(v.as_slice().into()),
        _ => return None,
    })
}

/// An argument of a function without a signature that takes it.
fn guessed(v: &Json, name: &str, common: &Common<'_>) -> Result<Ready, String> {
    let tensor = |v: &Json| Given::read(v, name, common).map_err(|why| format!("'{name}' {why}"));
    let has = |v: &Json, what: &str| matches!(v, Json::Object(m) if m.iter().any(|(n, _)| n == what));
    Ok(match v {
        Json::Null => Ready::Nothing,
        Json::List(all) if all.iter().any(|v| has(v, "data")) => {
            Ready::Tensors(all.iter().map(tensor).collect::<Result<_, _>>()?)
        }
        Json::List(all) if all.iter().all(|v| matches!(v, Json::Text(_))) => match nd_sbp(v) {
            Ok(sbp) => Ready::Value(sbp.into()),
            Err(why) => return Err(format!("'{name}' {why}")),
        },
        v if has(v, "sbp") && !has(v, "data") => {
            Ready::Target(target(v, common).map_err(|why| format!("'{name}' {why}"))?)
        }
        v => match plain(v) {
            Some(v) => Ready::Value(v),
            None => Ready::Tensor(tensor(v)?),
        },
    })
}

impl Ready {
    /// The argument on this rank.
    ///
    /// # Errors
    /// What making a tensor refuses.
    pub fn make(&self, world: &World) -> Result<Arg> {
        Ok(match self {
            Ready::Tensor(t) => Arg::Tensor(t.make(world)?),
            Ready::Tensors(all) => Arg::Tensors(all.iter().map(|t| t.make(world)).collect::<Result<Vec<Tensor>>>()?),
            Ready::Target(t) => Arg::Target(t.clone()),
            Ready::Seed(seed) => Arg::Generator(Generator::new(*seed)),
            Ready::Index(members) => {
                let one = |m: &Member| match m {
                    Member::Tensor(t) => Ok(TensorIndex::Tensor(t.make(world)?)),
                    Member::Plain(i) => Ok(i.clone()),
                };
                Arg::Index(members.iter().map(one).collect::<Result<_>>()?)
            }
            Ready::Value(v) => Arg::Attr(v.clone()),
            Ready::Nothing => Arg::None,
        })
    }
}

/// Layout that a tensor of that placement would have: for gradients that a line gives.
pub fn layout_of(t: &Tensor) -> Option<(Placement, NdSbp)> {
    let g = t.global()?;
    Some((g.placement.clone(), g.sbp.map(|s| if s.is_partial() { oflow::sbp::Sbp::Broadcast } else { s })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Arguments, String> {
        arguments(&Case::read(Json::parse(text.as_bytes()).unwrap()).unwrap(), &Functions::here())
    }

    #[test]
    fn values_are_read_as_the_parameter_says() {
        let x = r#"{"data":[1.5],"dtype":"f32"}"#;
        let of = |text: &str| match read(text).unwrap().named.pop().unwrap().1 {
            Ready::Value(v) => v.to_string(),
            _ => "no value".into(),
        };
        assert_eq!(of(&format!(r#"{{"call":"leaky_relu","args":{{"x":{x},"alpha":1}}}}"#)), "1.0");
        assert_eq!(of(&format!(r#"{{"call":"add","args":{{"x":{x},"s":1}}}}"#)), "1");
        assert_eq!(of(&format!(r#"{{"call":"add","args":{{"x":{x},"s":"-inf"}}}}"#)), "-inf");
        // One number, of which the function makes a list.
        assert_eq!(of(&format!(r#"{{"call":"sum","args":{{"x":{x},"dims":0}}}}"#)), "0");
        assert_eq!(of(&format!(r#"{{"call":"cast","args":{{"x":{x},"dtype":"i64"}}}}"#)), "i64");
        let made = read(r#"{"call":"zeros","args":{"shape":[2]},"mesh":[2]}"#).unwrap();
        assert!(matches!(&made.named[1].1, Ready::Target(Target::Global(_, sbp)) if sbp.is_broadcast()));
        let made = read(r#"{"call":"zeros","args":[[2],"cpu"],"mesh":[2]}"#).unwrap();
        assert!(matches!(&made.args[1].1, Ready::Target(Target::Local(Device::Cpu))));
    }

    #[test]
    fn values_of_another_kind_are_refused() {
        let x = r#"{"data":[1.5],"dtype":"f32"}"#;
        for (call, args, why) in [
            ("sum", r#""dims":[0.5]"#, "'dims' must be a list of integers, not [0.5]"),
            ("sum", r#""keepdim":1"#, "'keepdim' must be a bool, not 1"),
            ("cast", r#""dtype":"f31""#, "'f31' is not an element type"),
            ("index", r#""index":[0,"1:b"]"#, "'index' '1:b' is not a member of an index"),
            ("index", r#""index":[0.5]"#, "'index' [0] must be an integer, a text such as"),
            ("leaky_relu", r#""alpha":"much""#, "'alpha' must be a number, not \"much\""),
        ] {
            let e = read(&format!(r#"{{"call":"{call}","args":{{"x":{x},{args}}}}}"#)).err().unwrap();
            assert!(e.contains(why), "{e}");
        }
    }
}
