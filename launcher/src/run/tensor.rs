//! Tensors of a line: read from JSON, and made on each rank.

use oflow::functional::from_bytes;
use oflow::kernels::{Builtin, DType};
use oflow::ops::TensorType;
use oflow::placement::{Device, Placement};
use oflow::prelude::IntoTarget;
use oflow::sbp::{NdSbp, check_layout};
use oflow::{Result, Tensor, World};

use super::addends::{Addends, Random, shards};
use super::json::Json;
use super::line::{Case, placement, texts};
use super::numbers::Numbers;

/// Properties that the tensors of a line share.
pub struct Common<'a> {
    /// The mesh of tensors that name none.
    pub mesh: Option<&'a Placement>,
    seed: u64,
    addends: Addends,
}

impl<'a> Common<'a> {
    /// Of a line.
    pub fn of(case: &'a Case) -> Common<'a> {
        Common { mesh: case.mesh.as_ref(), seed: case.seed, addends: case.addends }
    }
    /// The same, for tensors on another mesh.
    pub fn on(self, mesh: Option<&Placement>) -> Common<'_> {
        Common { mesh, seed: self.seed, addends: self.addends }
    }
}

/// A tensor that a line gives.
pub struct Given {
    /// Element type of the tensor.
    pub dtype: DType,
    /// Logical shape of the tensor.
    pub shape: Vec<usize>,
    data: Data,
}

/// Form in which ranks are given a tensor's data.
enum Data {
    /// A local tensor on every rank.
    Local(Vec<u8>),
    /// The logical value, of which each rank keeps its shard.
    Whole(Vec<u8>, Placement, NdSbp),
    /// The shard of each place of the mesh.
    Shards(Vec<(Vec<usize>, Vec<u8>)>, Placement, NdSbp),
}

impl Given {
    /// Reads a tensor. `name` is the argument's; its addends are drawn by it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(value: &Json, name: &str, common: &Common<'_>) -> Result<Given, String> {
        let Json::Object(members) = value else {
            return Err(format!(
                "must be a tensor such as {{\"shape\": [2], \"dtype\": \"f32\", \"data\": [1, 2]}}, not {}",
                value.what()
            ));
        };
        let of = |name: &str| members.iter().find(|(n, _)| n == name).map(|(_, v)| v);
        if let Some((other, _)) = members.iter().find(|(n, _)| !NAMES.contains(&n.as_str())) {
            return Err(format!("has '{other}'; a tensor has {}", NAMES.join(", ")));
        }
        let data = of("data").ok_or("has no 'data'")?;
        let dtype = match of("dtype") {
            Some(Json::Text(name)) => {
                let builtin = Builtin::ALL.into_iter().find(|d| d.name() == name);
                builtin.ok_or_else(|| {
                    let known: Vec<&str> = Builtin::ALL.iter().map(|d| d.name()).collect();
                    format!("has the dtype {name:.40?}; there are {}", known.join(", "))
                })?
            }
            Some(v) if *v != Json::Null => return Err(format!("has the dtype {}, no name of one", v.what())),
            _ => usual_dtype(data),
        };
        let size = dims_of(data);
        // Complex numbers are given by their parts: real numbers with a last dim of 2, which have the same bytes.
        let (part, pair) = dtype.part().map_or((dtype, &[][..]), |part| (part, &[2][..]));
        let shape = match of("shape") {
            None | Some(Json::Null) => match size.strip_suffix(pair) {
                Some(shape) => shape.to_vec(),
                None => {
                    return Err(format!("has data of the shape {size:?}; that of {dtype} ends with pairs [re, im]"));
                }
            },
            Some(v) => sizes(v).ok_or_else(|| format!("has the shape {}; a shape is a list of sizes", v.what()))?,
        };
        TensorType::checked(&shape, dtype.dtype()).map_err(|e| e.message().to_string())?;
        let given = size.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        let parts = [shape.as_slice(), pair].concat();
        let count = parts.iter().product::<usize>();
        if size != parts && (size.len() > 1 || given != Some(count)) {
            return Err(match size.len() {
                0 | 1 => format!("has {} values, its shape {shape:?} takes {count}", given.unwrap_or(usize::MAX)),
                _ => format!("has data of the shape {size:?}, its shape is {shape:?}"),
            });
        }
        let mut numbers = Numbers::with_room(part, count);
        collect(data, &size, &mut numbers)?;
        let data = match where_to(of("mesh"), of("sbp"), common.mesh)? {
            None => Data::Local(numbers.to_bytes()),
            Some((mesh, sbp)) => {
                let bad = |e: oflow::Error| e.message().to_string();
                check_layout(&shape, dtype.dtype(), &mesh, &sbp).map_err(bad)?;
                if sbp.has_partial() {
                    let mut random = Random::new(common.seed, name);
                    let made = shards(&numbers, &parts, &mesh, &sbp, common.addends, &mut random);
                    let shard = |(mut dims, n): (Vec<usize>, Numbers)| {
                        dims.truncate(shape.len());
                        (dims, n.to_bytes())
                    };
                    Data::Shards(made.into_iter().map(shard).collect(), mesh, sbp)
                } else {
                    Data::Whole(numbers.to_bytes(), mesh, sbp)
                }
            }
        };
        Ok(Given { dtype: dtype.dtype(), shape, data })
    }

    /// Makes the tensor on this rank. All ranks of the line make it.
    ///
    /// # Errors
    /// What the library refuses.
    pub fn make(&self, world: &World) -> Result<Tensor> {
        let local = |bytes: &[u8], shape: &[usize]| from_bytes(bytes, shape, Device::Cpu.dtype(self.dtype));
        match &self.data {
            Data::Local(bytes) => local(bytes, &self.shape),
            Data::Whole(bytes, mesh, sbp) => from_bytes(bytes, &self.shape, (mesh, sbp).dtype(self.dtype)),
            Data::Shards(shards, mesh, sbp) => {
                let shard = mesh.position(world.rank()).and_then(|p| shards.get(p));
                let shard = match shard {
                    Some((dims, bytes)) => local(bytes, dims)?,
                    // A rank outside the mesh takes part in making the tensor and has nothing to give.
                    None => local(&[], &[0])?,
                };
                shard.to_device(mesh.device())?.to_global((mesh, sbp))
            }
        }
    }
}

/// The names that a tensor may have.
const NAMES: [&str; 5] = ["data", "shape", "dtype", "sbp", "mesh"];

/// Where a tensor lies: nowhere but on each rank by itself, or on a mesh. `sbp` is null for a local tensor.
///
/// # Errors
/// It is no layout.
pub fn where_to(
    mesh: Option<&Json>,
    sbp: Option<&Json>,
    of_line: Option<&Placement>,
) -> Result<Option<(Placement, NdSbp)>, String> {
    let mesh = match mesh {
        None | Some(Json::Null) => of_line.cloned(),
        Some(v) => Some(placement(v).map_err(|why| format!("has a mesh that {why}"))?),
    };
    match (mesh, sbp) {
        (_, Some(Json::Null)) | (None, None) => Ok(None),
        (Some(mesh), None) => {
            let axes = mesh.axes();
            Ok(Some((mesh, NdSbp::broadcast(axes))))
        }
        (Some(mesh), Some(v)) => Ok(Some((mesh, nd_sbp(v)?))),
        (None, Some(_)) => Err("has 'sbp', and neither the tensor nor the line has a mesh".into()),
    }
}

/// Reads an nd-SBP: `["S(0)", "B"]`, or the text `"[S(0), B]"`.
///
/// # Errors
/// It is none.
pub fn nd_sbp(value: &Json) -> Result<NdSbp, String> {
    let bad = |e: oflow::Error| format!("{}; write S(0), B, P, P(max) or P(min)", e.message());
    match value {
        Json::Text(t) => t.parse().map_err(bad),
        v => {
            let entries =
                texts(v).ok_or_else(|| format!("must be a list with one SBP for each mesh axis, not {}", v.what()))?;
            entries.iter().map(|t| t.parse().map_err(bad)).collect()
        }
    }
}

/// Reads a list of sizes.
pub fn sizes(value: &Json) -> Option<Vec<usize>> {
    match value {
        Json::Ints(v) => v.iter().map(|n| usize::try_from(*n).ok()).collect(),
        _ => None,
    }
}

/// The dtype of data for which none is named: bool, i64 or f32.
fn usual_dtype(data: &Json) -> Builtin {
    match data {
        Json::Bool(_) => Builtin::Bool,
        Json::Int(_) => Builtin::I64,
        Json::Ints(v) if !v.is_empty() => Builtin::I64,
        Json::List(v) => v.iter().map(usual_dtype).max().unwrap_or(Builtin::F32),
        _ => Builtin::F32,
    }
}

/// The sizes of nested lists, told by their first members.
fn dims_of(data: &Json) -> Vec<usize> {
    match data {
        Json::Ints(v) => vec![v.len()],
        Json::Floats(v) => vec![v.len()],
        Json::List(v) => {
            let mut dims = vec![v.len()];
            dims.extend(v.first().map(dims_of).unwrap_or_default());
            dims
        }
        _ => vec![],
    }
}

/// Adds the numbers of nested lists, all of which must have the sizes that the first ones have.
fn collect(data: &Json, dims: &[usize], numbers: &mut Numbers) -> Result<(), String> {
    let wrong = |why: String| format!("has data: {why}");
    let Some((n, inner)) = dims.split_first() else { return numbers.push(data).map_err(wrong) };
    let ragged = |len: usize| Err(format!("has ragged data: a list of {len} where others have {n}"));
    match data {
        Json::Ints(v) if v.len() != *n => ragged(v.len()),
        Json::Floats(v) if v.len() != *n => ragged(v.len()),
        Json::Ints(v) if inner.is_empty() => v.iter().try_for_each(|i| numbers.push(&Json::Int(*i)).map_err(wrong)),
        Json::Floats(v) if inner.is_empty() => v.iter().try_for_each(|x| numbers.push(&Json::Float(*x)).map_err(wrong)),
        Json::List(v) => {
            if v.len() != *n {
                return ragged(v.len());
            }
            v.iter().try_for_each(|v| collect(v, inner, numbers))
        }
        other => Err(format!("has ragged data: {} where others have {n} values", other.what())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Given, String> {
        let mesh = Placement::of_world(Device::Cpu, 2).unwrap();
        let common = Common { mesh: Some(&mesh), seed: 1, addends: Addends::Like };
        Given::read(&Json::parse(text.as_bytes()).unwrap(), "x", &common)
    }

    #[test]
    fn shapes_and_dtypes_follow_the_data() {
        for (text, dtype, shape) in [
            (r#"{"data":[1,2.5]}"#, DType::F32, &[2][..]),
            (r#"{"data":[[1,2],[3,4]]}"#, DType::I64, &[2, 2]),
            (r#"{"data":[[1,2],[3,4.5]]}"#, DType::F32, &[2, 2]),
            (r#"{"data":true}"#, DType::Bool, &[]),
            (r#"{"data":[]}"#, DType::F32, &[0]),
            (r#"{"data":[[],[]],"dtype":"u8"}"#, DType::U8, &[2, 0]),
            (r#"{"data":[1,2,3,4],"shape":[2,2],"dtype":"bf16","sbp":["S(1)"]}"#, DType::BF16, &[2, 2]),
            (r#"{"data":7,"shape":[1,1]}"#, DType::I64, &[1, 1]),
            (r#"{"data":[],"shape":[3,0]}"#, DType::F32, &[3, 0]),
            (r#"{"data":["nan",true,1],"dtype":"f64","shape":[0]}"#, DType::F64, &[]),
        ] {
            match read(text) {
                Ok(t) => assert_eq!((t.dtype, t.shape.as_slice()), (dtype, shape), "{text}"),
                Err(e) => assert!(shape.is_empty() && e.contains("3 values, its shape [0] takes 0"), "{text}: {e}"),
            }
        }
    }

    #[test]
    fn wrong_tensors_say_what_is_wrong() {
        for (text, why) in [
            ("3", "must be a tensor such as"),
            (r#"{"shape":[1]}"#, "has no 'data'"),
            (r#"{"data":[1],"type":"f32"}"#, "has 'type'; a tensor has data, shape"),
            (r#"{"data":[1],"dtype":"f8"}"#, "there are bool, u8"),
            (r#"{"data":[1],"dtype":3}"#, "no name of one"),
            (r#"{"data":[[1,2],[3]]}"#, "ragged data: a list of 1 where others have 2"),
            (r#"{"data":[[1],2]}"#, "ragged data: 2 where others have 1"),
            (r#"{"data":[1,[2]]}"#, "ragged|not a number"),
            (r#"{"data":[1,2],"shape":[3]}"#, "has 2 values, its shape [3] takes 3"),
            (r#"{"data":[[1,2]],"shape":[2,1]}"#, "has data of the shape [1, 2], its shape is [2, 1]"),
            (r#"{"data":[1],"shape":[-1]}"#, "a shape is a list of sizes"),
            (r#"{"data":[1],"shape":[4294967296,4294967296,4294967296]}"#, "more bytes than memory has addresses"),
            (r#"{"data":[],"shape":[0,9223372036854775807]}"#, "more bytes than memory has addresses"),
            (r#"{"data":[1,2],"sbp":["S(1)"]}"#, "S(1) splits dim 1"),
            (r#"{"data":[1,2],"sbp":["S(0)","B"]}"#, "2 entries"),
            (r#"{"data":[1,2],"sbp":[0]}"#, "one SBP for each mesh axis"),
            (r#"{"data":[1,2],"sbp":["Q"]}"#, "'Q' is not an SBP"),
            (r#"{"data":[true],"sbp":["P"]}"#, "a bool tensor cannot be P(sum)"),
            (r#"{"data":["inf"],"dtype":"i64"}"#, "has data: \"inf\" is not a number of the dtype i64"),
            (r#"{"data":[300],"dtype":"u8"}"#, "300 is beyond the range of u8"),
            (r#"{"data":{"a":1}}"#, "not a number"),
        ] {
            let e = read(text).err().unwrap_or_else(|| panic!("{text} was read"));
            assert!(why.split('|').any(|w| e.contains(w)), "{text}: {e}");
        }
    }
}
