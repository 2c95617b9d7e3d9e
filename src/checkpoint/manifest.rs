//! The manifest of a checkpoint, `manifest.json`. It is written last; a folder without it is no checkpoint.

use super::access;
use super::cover::covers;
use super::file::{LONGEST_HEADER, dtype_of};
use super::sums::hex;
use crate::context::GeneratorState;
use crate::error::{Error, Result};
use oflow_kernels::DType;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

/// File name of the manifest.
pub const MANIFEST: &str = "manifest.json";
/// Version of the format.
pub const VERSION: u32 = 3;
/// Most bytes of a manifest that is read or written. 4,096 ranks that split 2,000 tensors need less than a quarter.
const LONGEST: u64 = 1 << 30;
/// Placeholder for the manifest's own checksum while the checksum is computed.
const NO_SUM: &str = "\"crc32\":\"--------\"";

/// A box of a tensor in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedPiece {
    /// Number of the file.
    pub file: usize,
    /// Start and end of its bytes in the file.
    pub bytes: (u64, u64),
    /// Start of the box in the tensor.
    pub offset: Vec<usize>,
    /// Sizes of the box.
    pub size: Vec<usize>,
}

/// A tensor of a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedTensor {
    /// The safetensors name of its dtype.
    pub dtype: String,
    /// Logical size of each dim.
    pub shape: Vec<usize>,
    /// Layout at the time of saving, as text; not used for loading.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub layout: String,
    /// Boxes that cover the tensor without overlap.
    pub pieces: Vec<SavedPiece>,
}

impl SavedTensor {
    /// Returns its dtype, if oflow supports it.
    pub fn dtype(&self) -> Option<DType> {
        dtype_of(&self.dtype)
    }
    /// Returns its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|p| p.bytes.1 - p.bytes.0).sum()
    }
}

/// A file of a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedFile {
    /// Name of the file in the folder.
    pub name: String,
    /// Length of the file in bytes.
    pub len: u64,
    /// Checksums of the file; `None` for files of other programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sums: Option<SavedSums>,
}

/// The checksums of a data file, in hex. Those of its blocks are in the side file `NAME.crc32`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedSums {
    /// Bytes of the header, with the eight bytes of its length. The data follows.
    pub header: u64,
    /// CRC-32 of the header.
    pub header_crc32: String,
    /// CRC-32 of the side file.
    pub blocks_crc32: String,
}

/// A random generator.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SavedGenerator {
    /// Seed of the generator.
    pub seed: u64,
    /// Ordinal of the next random op.
    pub ordinal: u64,
}

impl From<GeneratorState> for SavedGenerator {
    fn from(g: GeneratorState) -> SavedGenerator {
        SavedGenerator { seed: g.seed, ordinal: g.ordinal }
    }
}

impl From<SavedGenerator> for GeneratorState {
    fn from(g: SavedGenerator) -> GeneratorState {
        GeneratorState { seed: g.seed, ordinal: g.ordinal }
    }
}

/// Fields that manifests of all versions have.
#[derive(Deserialize)]
struct AnyVersion {
    version: u64,
}

/// Reads a JSON object in which no name is twice. Otherwise programs would differ in which of the two they take.
///
/// # Errors
/// If a name is, or if a value cannot be read.
pub(super) fn unique<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    from: D,
) -> std::result::Result<BTreeMap<String, V>, D::Error> {
    struct Unique<V>(PhantomData<V>);
    impl<'de, V: Deserialize<'de>> Visitor<'de> for Unique<V> {
        type Value = BTreeMap<String, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> std::result::Result<Self::Value, A::Error> {
            let mut all = BTreeMap::new();
            while let Some((name, value)) = entries.next_entry::<String, V>()? {
                if let Some(_first) = all.insert(name.clone(), value) {
                    return Err(A::Error::custom(format!("the name '{}' is there twice", name.escape_debug())));
                }
            }
            Ok(all)
        }
    }
    from.deserialize_map(Unique(PhantomData))
}

/// The content of `manifest.json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the format, [`VERSION`] in new manifests.
    pub version: u32,
    /// Version of the library that wrote it.
    pub oflow: String,
    /// Number of ranks that wrote it.
    pub world: usize,
    /// The step that it belongs to.
    pub step: u64,
    /// The files of the checkpoint.
    pub files: Vec<SavedFile>,
    /// The tensors by name.
    #[serde(deserialize_with = "unique")]
    pub tensors: BTreeMap<String, SavedTensor>,
    /// The plain values by name, in the [`notation`](crate::state::notation).
    #[serde(deserialize_with = "unique")]
    pub values: BTreeMap<String, Value>,
    /// The generator of global random ops.
    pub generator: Option<SavedGenerator>,
    /// The generators of local random ops, by rank.
    pub local_generators: Vec<SavedGenerator>,
}

impl Manifest {
    /// Returns the text of the file, with its checksum.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn to_text(&self) -> Result<String> {
        let json = serde_json::to_string(self)
            .map_err(|e| Error::argument("the manifest cannot be written as JSON").because(e))?;
        // A line a tensor, so that people can read and compare it: quotes in strings are escaped, so this is no string's.
        let json = json.replace("\":{\"dtype\":", "\":\n{\"dtype\":");
        let open = json.strip_suffix('}').unwrap_or(&json);
        let plain = |sum: &str| format!("{open},\n{sum}}}\n");
        let text = plain(NO_SUM);
        if text.len() as u64 > LONGEST {
            return Err(Error::storage(format!(
                "the manifest would have {} bytes, at most {LONGEST} are read",
                text.len()
            ))
            .help("keep large data in tensors, not in values"));
        }
        // Not by replacing: a value may look like the place of the checksum.
        Ok(plain(&sum_of(&text)))
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// If it cannot be read, and the errors of [`Manifest::parse`].
    pub fn read(path: &Path) -> Result<Manifest> {
        Manifest::parse(&access::text(path, LONGEST)?, path)
    }

    /// Reads and checks the text of a file.
    ///
    /// # Errors
    /// If it is damaged, of another version, or inconsistent.
    pub fn parse(text: &str, path: &Path) -> Result<Manifest> {
        let broken = |why: String| {
            Error::storage(format!("{} is broken: {why}", path.display()))
                .help("use another checkpoint: `oflow ckpt ls` lists all")
        };
        // The version first: another one may look altogether different.
        match serde_json::from_str::<AnyVersion>(text).ok().map(|m| m.version) {
            None => return Err(broken("it is not the JSON of a manifest".into())),
            Some(v) if v != u64::from(VERSION) => {
                return Err(Error::storage(format!("{} is of version {v} of the format", path.display()))
                    .help(format!("this oflow reads version {VERSION}: load it with the oflow that wrote it")));
            }
            Some(_) => {}
        }
        let at = text.rfind("\"crc32\":\"").ok_or_else(|| broken("it has no checksum".into()))?;
        let sum = text.get(at..at + NO_SUM.len()).ok_or_else(|| broken("its checksum is cut".into()))?;
        let plain = format!("{}{NO_SUM}{}", &text[..at], &text[at + NO_SUM.len()..]);
        if sum_of(&plain) != sum {
            return Err(broken("its checksum is wrong".into()));
        }
        let m: Manifest = serde_json::from_str(text).map_err(|e| broken(e.to_string()))?;
        m.check().map_err(broken)?;
        Ok(m)
    }

    /// Checks that file names are in the folder, that boxes are inside their tensors and files, and that every element of a
    /// tensor is in exactly one box.
    pub fn check(&self) -> std::result::Result<(), String> {
        for f in &self.files {
            if !is_plain(&f.name) {
                return Err(format!("'{}' is not the name of a file in the folder", f.name));
            }
            match &f.sums {
                None => return Err(format!("{} has no checksums", f.name)),
                Some(s) if s.header > f.len.min(LONGEST_HEADER + 8) => {
                    return Err(format!("the header of {} would have {} bytes", f.name, s.header));
                }
                Some(_) => {}
            }
        }
        self.tensors.iter().try_for_each(|(name, t)| check_tensor(t, &self.files).map_err(|e| format!("'{name}': {e}")))
    }
}

fn check_tensor(t: &SavedTensor, files: &[SavedFile]) -> std::result::Result<(), String> {
    let elements = product(&t.shape).ok_or("its sizes overflow")?;
    let mut covered = 0u64;
    for p in &t.pieces {
        let inside = |d: usize| p.offset[d].checked_add(p.size[d]).is_some_and(|end| end <= t.shape[d]);
        if p.offset.len() != t.shape.len() || p.size.len() != t.shape.len() || !(0..t.shape.len()).all(inside) {
            return Err(format!("a piece of sizes {:?} at {:?} is not in {:?}", p.size, p.offset, t.shape));
        }
        let volume = product(&p.size).ok_or("a piece's sizes overflow")?;
        let file = files.get(p.file).ok_or("a piece is in a file that is not listed")?;
        let start = file.sums.as_ref().map_or(0, |s| s.header);
        if p.bytes.0 < start || p.bytes.0 > p.bytes.1 || p.bytes.1 > file.len {
            return Err(format!("a piece is outside of {}", file.name));
        }
        if let Some(dtype) = t.dtype()
            && volume.checked_mul(dtype.size() as u64) != Some(p.bytes.1 - p.bytes.0)
        {
            return Err("a piece has a wrong number of bytes".into());
        }
        covered = covered.saturating_add(volume);
    }
    if covered < elements {
        return Err(format!("pieces hold {covered} of {elements} elements"));
    }
    covers(&t.shape, t.pieces.iter().map(|p| (&p.offset[..], &p.size[..])))
        .map_err(|at| format!("pieces overlap: from {at:?} on they are not what makes up {:?}", t.shape))
}

/// Number of elements, unless it overflows.
fn product(sizes: &[usize]) -> Option<u64> {
    sizes.iter().try_fold(1u64, |n, d| n.checked_mul(*d as u64)).filter(|n| *n < 1 << 60)
}

/// Returns whether a name is a plain file name, without a path.
pub fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\\', '\0']) && name != "." && name != ".."
}

fn sum_of(text: &str) -> String {
    format!("\"crc32\":\"{}\"", hex(crc32fast::hash(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        let piece = |offset: usize, size: usize, from: u64| SavedPiece {
            file: 0,
            bytes: (from, from + 4 * size as u64),
            offset: vec![offset],
            size: vec![size],
        };
        let w = SavedTensor {
            dtype: "F32".into(),
            shape: vec![5],
            layout: "[B]".into(),
            pieces: vec![piece(0, 3, 100), piece(3, 2, 112)],
        };
        let sums = SavedSums { header: 100, header_crc32: "00000000".into(), blocks_crc32: "ffffffff".into() };
        Manifest {
            version: VERSION,
            world: 1,
            step: 7,
            files: vec![SavedFile { name: "rank-00000.safetensors".into(), len: 120, sums: Some(sums) }],
            tensors: BTreeMap::from([("w".to_string(), w)]),
            values: BTreeMap::from([("user.text".to_string(), Value::from("\":{\"dtype\": \"crc32\":\"deadbeef\""))]),
            ..Manifest::default()
        }
    }

    #[test]
    fn a_name_is_there_once() {
        let text = sample().to_text().unwrap();
        for (name, section) in [("w", "tensors"), ("user.text", "values")] {
            let start = text.find(&format!("\"{name}\":")).unwrap();
            // As a stranger would write it, with the right checksum.
            let entry = match section {
                "tensors" => "\"w\":{\"dtype\":\"F32\",\"shape\":[0],\"layout\":\"[B]\",\"pieces\":[]},",
                _ => "\"user.text\":1,",
            };
            let twice = format!("{}{entry}{}", &text[..start], &text[start..]);
            let at = twice.rfind("\"crc32\":\"").unwrap();
            let plain = format!("{}{NO_SUM}{}", &twice[..at], &twice[at + NO_SUM.len()..]);
            let twice = plain.replacen(NO_SUM, &sum_of(&plain), 1);
            let e = Manifest::parse(&twice, Path::new("m.json")).unwrap_err().to_string();
            assert!(e.contains(&format!("m.json is broken: the name '{name}' is there twice")), "{e}");
        }
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let text = sample().to_text().unwrap();
        let path = Path::new("m.json");
        let read = Manifest::parse(&text, path).unwrap();
        assert_eq!((read.step, read.values), (7, sample().values));
        for i in 0..text.len() {
            for bit in 0..8 {
                let mut bytes = text.clone().into_bytes();
                bytes[i] ^= 1 << bit;
                if let Ok(changed) = String::from_utf8(bytes) {
                    assert!(Manifest::parse(&changed, path).is_err(), "bit {bit} of byte {i} of {text}");
                }
            }
            assert!(Manifest::parse(&text[..i], path).is_err(), "cut at {i}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |change: &dyn Fn(&mut Manifest)| {
            let mut m = sample();
            change(&mut m);
            Manifest::parse(&m.to_text().unwrap(), Path::new("m.json")).unwrap_err().to_string()
        };
        let of_w = |m: &mut Manifest, f: &dyn Fn(&mut SavedTensor)| m.tensors.values_mut().for_each(f);
        assert!(refused(&|m| m.version = 1).contains("version 1 of the format\n  help: this oflow reads version 3"));
        assert!(refused(&|m| m.files[0].name = "../x".into()).contains("'../x' is not the name of a file"));
        let of_sums = |m: &mut Manifest, f: &dyn Fn(&mut SavedSums)| m.files[0].sums.as_mut().into_iter().for_each(f);
        assert!(refused(&|m| m.files[0].sums = None).contains("rank-00000.safetensors has no checksums"));
        assert!(refused(&|m| of_sums(m, &|s| s.header = 121)).contains("would have 121 bytes"));
        assert!(refused(&|m| of_sums(m, &|s| s.header = 101)).contains("'w': a piece is outside of rank-00000"));
        assert!(refused(&|m| m.files[0].len = 119).contains("'w': a piece is outside of rank-00000"));
        assert!(refused(&|m| of_w(m, &|t| t.shape = vec![6])).contains("'w': pieces hold 5 of 6 elements"));
        assert!(refused(&|m| of_w(m, &|t| t.shape = vec![usize::MAX, 2])).contains("overflow"));
        assert!(refused(&|m| of_w(m, &|t| t.pieces[1].file = 1)).contains("a file that is not listed"));
        assert!(refused(&|m| of_w(m, &|t| t.pieces[1].offset[0] = 4)).contains("is not in [5]"));
        let overlapping = "'w': pieces overlap: from [2] on they are not what makes up [5]";
        assert!(refused(&|m| of_w(m, &|t| t.pieces[1].offset[0] = 2)).contains(overlapping));
        assert!(
            refused(&|m| of_w(m, &|t| t.pieces.push(t.pieces[1].clone()))).contains("'w': pieces overlap: from [3]")
        );
        assert!(refused(&|m| of_w(m, &|t| t.dtype = "F64".into())).contains("a wrong number of bytes"));
    }
}
