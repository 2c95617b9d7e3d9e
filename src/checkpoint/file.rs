//! One safetensors file: eight bytes of length, a JSON header, the tensors' bytes one after another without gaps.
//!
//! Headers are read by the crate `safetensors`, which checks that offsets, shapes and dtypes agree. They are written here,
//! because that crate needs all bytes of a file as slices, and files are written in pieces.

use crate::error::{Error, Result};
use oflow_kernels::DType;
use safetensors::tensor::Metadata;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Longest header that is read; the format's own limit.
pub const LONGEST_HEADER: u64 = 100_000_000;

/// A tensor in a file.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name of the tensor.
    pub name: String,
    /// Name of the dtype, see [`dtype_name`].
    pub dtype: String,
    /// Size of each dim.
    pub shape: Vec<usize>,
    /// Range of its bytes in the file.
    pub bytes: Range<u64>,
}

/// The header of a file.
#[derive(Debug)]
pub struct Header {
    /// The tensors, in the order of their bytes.
    pub entries: Vec<Entry>,
    /// Size of the file in bytes.
    pub len: u64,
}

/// Returns the name of the dtype that elements are stored as, in the safetensors format.
fn stored_name(dtype: DType) -> &'static str {
    dtype.storage().facts().safetensors
}

/// Whether the format has the dtype. Others are stored as one that it has, and the file's metadata has their name.
fn in_format(dtype: DType) -> bool {
    dtype.is_builtin() && dtype != DType::C128
}

/// Returns the sizes in the format of a tensor: those of the tensor; of c128 they end with 2, for the parts.
fn stored_shape(dtype: DType, shape: &[usize]) -> Vec<usize> {
    let parts = if dtype == DType::C128 { &[2][..] } else { &[] };
    [shape, parts].concat()
}

/// Returns the name of a dtype in checkpoints: that of the safetensors format, or the text of a dtype that the format does not have.
pub fn dtype_name(dtype: DType) -> &'static str {
    if in_format(dtype) { stored_name(dtype) } else { dtype.name() }
}

/// Returns the dtype of a name, or `None` if oflow does not have it and the program has not registered its family.
pub fn dtype_of(name: &str) -> Option<DType> {
    let builtin = DType::BUILTIN.into_iter().find(|d| dtype_name(*d) == name);
    builtin.or_else(|| name.parse().ok().filter(|d: &DType| !d.is_builtin()))
}

/// With the name of a tensor appended, the key of the file's metadata that has its dtype where the format does not have it. The format itself has only the
/// dtype that elements are stored as, so other programs read those numbers.
const REGISTERED: &str = "oflow.dtype:";

/// The key of a header that is not the name of a tensor.
const METADATA: &str = "__metadata__";

/// Returns the header for tensors (name, dtype, sizes) whose bytes follow in this order, padded so that the first tensor is
/// aligned.
///
/// # Errors
/// If readers would refuse the header, or miss a tensor: a name that the format keeps for itself, two tensors of one name, or names
/// that are too long together.
pub fn header<'a>(
    tensors: impl IntoIterator<Item = (&'a str, DType, &'a [usize])>,
    metadata: &[(&str, String)],
) -> Result<Vec<u8>> {
    let mut names = BTreeSet::from([METADATA]);
    let quoted = |s: &str| serde_json::Value::from(s).to_string();
    let mut texts: Vec<String> = metadata.iter().map(|(k, v)| format!("{}:{}", quoted(k), quoted(v))).collect();
    let mut json = String::new();
    let mut at = 0;
    for (name, dtype, shape) in tensors {
        if !names.insert(name) {
            return Err(match name {
                METADATA => Error::argument(format!("the name '{name}' is the format's own, so no tensor can have it")),
                _ => Error::argument(format!("two tensors have the name '{}'", name.escape_debug())),
            }
            .help("give the tensor another name"));
        }
        let end = at + shape.iter().product::<usize>() * dtype.size();
        json += &format!(
            ",{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{at},{end}]}}",
            quoted(name),
            stored_name(dtype),
            format!("{:?}", stored_shape(dtype, shape)).replace(' ', "")
        );
        at = end;
        if !in_format(dtype) {
            texts.push(format!("{}:{}", quoted(&format!("{REGISTERED}{name}")), quoted(dtype.name())));
        }
    }
    json = format!("{{\"__metadata__\":{{{}}}{json}}}", texts.join(","));
    let padded = json.len().next_multiple_of(8);
    if padded as u64 > LONGEST_HEADER {
        let text =
            format!("the names and shapes of a file would take {padded} bytes, at most {LONGEST_HEADER} are read");
        return Err(Error::argument(text).help("shorten the names, or write several files"));
    }
    let mut bytes = (padded as u64).to_le_bytes().to_vec();
    bytes.extend(json.bytes().chain(std::iter::repeat(b' ')).take(padded));
    Ok(bytes)
}

/// Files of tensors in other formats, by their first bytes.
const OTHER_FORMATS: [(&[u8], &str); 7] = [
    (b"PK\x03\x04", "a zip archive, as PyTorch's `torch.save` and NumPy's `savez` write"),
    (b"\x80\x02", "a pickle, as PyTorch's `torch.save` wrote before version 1.6"),
    (b"\x80\x03", "a pickle"),
    (b"\x80\x04", "a pickle"),
    (b"\x93NUMPY", "an array of NumPy"),
    (b"GGUF", "a GGUF file"),
    (b"\x89HDF", "an HDF5 file"),
];
const CONVERT: &str =
    "load it where it was written, and write it with `safetensors.torch.save_file` or `safetensors.numpy.save_file`";

/// Reads the header of a file and checks the size of the file.
///
/// # Errors
/// If the file cannot be read, is no safetensors file, or is truncated.
pub fn read_header(file: &File, path: &Path) -> Result<Header> {
    let shown = path.display();
    let io = |e: std::io::Error| Error::storage(format!("cannot read {shown}")).because(e);
    let broken = |why: String| Error::storage(format!("{shown} is not a complete safetensors file: {why}"));
    let len = file.metadata().map_err(io)?.len();
    if len < 8 {
        return Err(broken(format!("it has {len} bytes")));
    }
    let mut prefix = [0; 8];
    file.read_exact_at(&mut prefix, 0).map_err(io)?;
    let header = u64::from_le_bytes(prefix);
    if header > LONGEST_HEADER.min(len - 8) {
        let e = match OTHER_FORMATS.iter().find(|(magic, _)| prefix.starts_with(magic)) {
            Some((_, what)) => Error::storage(format!("{shown} is {what}, not a safetensors file")),
            None => broken(format!("its first 8 bytes say that its header has {header} bytes; the file has {len}")),
        };
        return Err(e.help(CONVERT));
    }
    let mut text = vec![0; header as usize];
    file.read_exact_at(&mut text, 8).map_err(io)?;
    let parsed: Metadata =
        serde_json::from_slice(&text).map_err(|e| broken(format!("its header is malformed: {e}")))?;
    let start = 8 + header;
    if start + parsed.data_len() as u64 != len {
        return Err(broken(format!("it has {len} bytes, its header announces {}", start + parsed.data_len() as u64)));
    }
    let metadata: BTreeMap<String, String> =
        parsed.metadata().iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
    let mut entries = vec![];
    for name in parsed.offset_keys() {
        let Some(info) = parsed.info(&name) else { continue };
        let stored = info.dtype.to_string();
        let registered = metadata.get(&format!("{REGISTERED}{name}"));
        if let Some(d) = registered.and_then(|text| dtype_of(text))
            && stored_name(d) != stored
        {
            return Err(broken(format!("'{name}' is stored as {stored}, but its dtype {d} as {}", d.storage())));
        }
        let mut shape = info.shape.clone();
        if registered.is_some_and(|d| d == DType::C128.name()) && shape.pop() != Some(2) {
            return Err(broken(format!("'{name}' is c128, but its shape {:?} does not end with 2", info.shape)));
        }
        entries.push(Entry {
            dtype: registered.cloned().unwrap_or(stored),
            shape,
            bytes: start + info.data_offsets.0 as u64..start + info.data_offsets.1 as u64,
            name,
        });
    }
    Ok(Header { entries, len })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_the_format() {
        let shapes: [(&str, DType, &[usize]); 3] =
            [("a\"b", DType::F32, &[2, 1]), ("empty", DType::BF16, &[0, 3]), ("one", DType::Bool, &[])];
        let mut bytes = header(shapes, &[("format", "pt".to_string())]).unwrap();
        assert_eq!(bytes.len() % 8, 0);
        bytes.extend([0, 0, 128, 63, 0, 0, 0, 64, 1]);
        let read = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(read.tensor("a\"b").unwrap().data(), [0, 0, 128, 63, 0, 0, 0, 64]);
        assert_eq!(read.tensor("one").unwrap().shape(), [0usize; 0]);
        assert_eq!(read.tensor("empty").unwrap().shape(), [0, 3]);
    }

    #[test]
    fn names_that_no_reader_would_find_are_refused() {
        let of = |names: &[&str]| header(names.iter().map(|n| (*n, DType::U8, &[][..])), &[]);
        let refused = |names: &[&str]| of(names).unwrap_err().to_string();
        assert!(refused(&["x", "__metadata__"]).contains("'__metadata__' is the format's own"));
        assert!(refused(&["a\n", "b", "a\n"]).contains("two tensors have the name 'a\\n'"));
        assert!(refused(&["x".repeat(LONGEST_HEADER as usize).as_str()]).contains("at most 100000000 are read"));
        assert!(of(&["", "/", "..", "__metadata", "x@[0]"]).is_ok());
    }

    #[test]
    fn names_of_dtypes_are_the_crates() {
        for d in DType::BUILTIN.into_iter().filter(|d| in_format(*d)) {
            let name: safetensors::Dtype = serde_json::from_value(dtype_name(d).into()).unwrap();
            assert_eq!((name.bitsize(), dtype_of(&name.to_string())), (8 * d.size(), Some(d)));
        }
    }

    #[test]
    fn broken_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let whole = [header([("a", DType::U8, &[3][..])], &[]).unwrap(), vec![1, 2, 3]].concat();
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read_header(&File::open(&path).unwrap(), &path).unwrap_err().to_string()
        };
        assert!(refused(&whole[..5]).contains("is not a complete safetensors file: it has 5 bytes"));
        assert!(refused(&whole[..whole.len() - 1]).contains("its header announces"));
        assert!(refused(&[0xff; 64]).contains("its first 8 bytes say that its header has 18446744073709551615 bytes"));
        for (magic, what) in OTHER_FORMATS {
            let bytes = [magic, &[7; 64]].concat();
            assert!(refused(&bytes).contains(&format!(" is {what}, not a safetensors file")), "{what}");
        }
        assert!(
            refused(&[&[9, 0, 0, 0, 0, 0, 0, 0][..], b"{\"a\": tru}"].concat()).contains("its header is malformed")
        );
    }
}
