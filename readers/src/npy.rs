//! Arrays of NumPy: `.npy` and `.npz`.

use crate::source::{Bytes, Source};
use flate2::read::DeflateDecoder;
use oflow::data::{Array, Dataset, Row};
use oflow::kernels::Builtin;
use oflow::{DType, Error, Result};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// An array whose rows are read when they are asked for.
#[derive(Clone, Debug)]
struct Lazy {
    bytes: Bytes,
    /// Where the elements begin.
    start: u64,
    dtype: DType,
    /// Bytes of a number, where their order is not the machine's.
    swap: Option<usize>,
    rows: usize,
    /// Shape and bytes of a row.
    shape: Vec<usize>,
    size: usize,
}

/// Longest header: NumPy writes about a hundred bytes, and more for structured arrays only, which are not read.
const HEADER: usize = 1 << 16;

impl Lazy {
    fn new(bytes: Bytes) -> Result<Lazy> {
        let prefix = bytes.read(0, 12.min(bytes.len() as usize))?;
        let (Some(b"\x93NUMPY"), Some([major, _])) = (prefix.get(..6), prefix.get(6..8)) else {
            return Err(bytes.error("no .npy file: it does not begin with \\x93NUMPY"));
        };
        let (at, length) = match (major, prefix.get(8..12)) {
            (1, Some(b)) => (10, u32::from(u16::from_le_bytes([b[0], b[1]]))),
            (2 | 3, Some(b)) => (12, u32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            (1..=3, None) => return Err(bytes.error("the file ends in its header")),
            (other, _) => return Err(bytes.error(format!("version {other} of the format; 1 to 3 are read"))),
        };
        if length as usize > HEADER {
            return Err(bytes.error(format!("a header of {length} bytes; {HEADER} are read at most")));
        }
        let header = bytes.read(at, length as usize)?;
        let header = Header::parse(&header).map_err(|e| bytes.error(format!("the header: {e}")))?;
        let Header { descr, fortran, shape } = header;
        let (dtype, swap) = dtype_of(&descr).ok_or_else(|| {
            bytes.error(format!("the dtype '{descr}' cannot be read")).help("save numbers or bools, with `astype`")
        })?;
        let (Some(rows), Some(rest)) = (shape.first().copied(), shape.get(1..)) else {
            return Err(bytes.error("an array without dims has no rows"));
        };
        if fortran && shape.len() > 1 {
            return Err(bytes
                .error("the array is in Fortran's order, in which rows are spread over the file")
                .help("save it with `numpy.save(path, numpy.ascontiguousarray(x))`"));
        }
        let size = rest.iter().try_fold(dtype.size(), |n, s| n.checked_mul(*s));
        let start = at + u64::from(length);
        let whole = size.and_then(|s| s.checked_mul(rows)).map(|n| n as u64);
        let (Some(size), Some(whole)) = (size, whole) else {
            return Err(bytes.error(format!("the shape {shape:?} has more elements than can be counted")));
        };
        if start.saturating_add(whole) > bytes.len() {
            let has = bytes.len().saturating_sub(start);
            return Err(bytes.error(format!("the shape {shape:?} of '{descr}' has {whole} bytes, the file {has}")));
        }
        if size == 0 && rows > 0 {
            return Err(bytes.error(format!("the rows of shape {rest:?} have no elements")));
        }
        Ok(Lazy { bytes, start, dtype, swap, rows, shape: rest.to_vec(), size })
    }
    fn row(&self, index: usize) -> Result<Array> {
        if index >= self.rows {
            return Err(Error::index(format!("row {index} is out of range; there are {}", self.rows)));
        }
        let mut bytes = self.bytes.read(self.start + (index * self.size) as u64, self.size)?;
        if let Some(size) = self.swap {
            bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        let at = |e: Error| self.bytes.error(format!("row {index}: {}", e.message()));
        Array::from_bytes(bytes, self.dtype, &self.shape).map_err(at)
    }
}

/// The dtype of a description such as `<f4`, and the bytes of a number whose order is not the machine's.
fn dtype_of(descr: &str) -> Option<(DType, Option<usize>)> {
    let (order, name) = descr.split_at_checked(1)?;
    let b = Builtin::ALL.into_iter().find(|b| b.facts().array == Some(name))?;
    let parts = if b.is_complex() { 2 } else { 1 };
    let number = b.size() / parts;
    let other = if cfg!(target_endian = "little") { ">" } else { "<" };
    match order {
        "<" | ">" | "|" | "=" => Some((b.dtype(), (order == other && number > 1).then_some(number))),
        _ => None,
    }
}

/// The header: a dict of Python with three keys.
struct Header {
    descr: String,
    fortran: bool,
    shape: Vec<usize>,
}

/// Reads what NumPy writes of Python's syntax: strings, True and False, tuples of integers.
struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    fn accept(&mut self, token: &str) -> bool {
        self.0 = self.0.trim_start();
        match self.0.strip_prefix(token) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }
    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.accept(token) { Ok(()) } else { Err(format!("'{token}' was expected at '{}'", self.here())) }
    }
    fn here(&self) -> String {
        self.0.chars().take(20).collect()
    }
    fn string(&mut self) -> Result<&'a str, String> {
        self.0 = self.0.trim_start();
        let quote = self.0.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let found = quote.and_then(|q| self.0[1..].split_once(q));
        let (text, rest) = found.ok_or_else(|| format!("a string was expected at '{}'", self.here()))?;
        self.0 = rest;
        Ok(text)
    }
    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        self.expect("(")?;
        let mut all = vec![];
        while !self.accept(")") {
            self.0 = self.0.trim_start();
            let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
            let (digits, rest) = self.0.split_at(end);
            all.push(digits.parse().map_err(|_| format!("a size was expected at '{}'", self.here()))?);
            // Python 2 wrote `3L`.
            self.0 = rest.strip_prefix('L').unwrap_or(rest);
            if all.len() > 64 {
                return Err("more than 64 dims".to_string());
            }
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(all)
    }
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Header, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_string())?;
        let mut text = Text(text);
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        text.expect("{")?;
        while !text.accept("}") {
            let key = text.string()?;
            text.expect(":")?;
            match key {
                "descr" if text.0.trim_start().starts_with('[') => {
                    return Err("the array is structured; save each field as an array of its own".to_string());
                }
                "descr" => descr = Some(text.string()?.to_string()),
                "fortran_order" if text.accept("True") => fortran = Some(true),
                "fortran_order" => {
                    text.expect("False")?;
                    fortran = Some(false);
                }
                "shape" => shape = Some(text.tuple()?),
                other => return Err(format!("unknown key '{}'", other.chars().take(20).collect::<String>())),
            }
            if !text.accept(",") {
                text.expect("}")?;
                break;
            }
        }
        match (descr, fortran, shape) {
            (Some(descr), Some(fortran), Some(shape)) => Ok(Header { descr, fortran, shape }),
            _ => Err("'descr', 'fortran_order' or 'shape' is missing".to_string()),
        }
    }
}

/// The rows of an array in a `.npy` file, along its first dim. Rows are read when they are asked for.
///
/// ```
/// use oflow::data::Dataset;
/// use oflow_readers::Npy;
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("x.npy");
/// # let header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }";
/// # let mut file = b"\x93NUMPY\x01\0".to_vec();
/// # file.extend((header.len() as u16).to_le_bytes());
/// # file.extend(header.bytes());
/// # (0..6i16).for_each(|i| file.extend(i.to_le_bytes()));
/// # std::fs::write(&path, file)?;
/// let rows = Npy::open(&path)?.named("x");
/// assert_eq!(rows.len(), 2);
/// assert_eq!(rows.get(1)?.array("x")?.to_vec::<i16>()?, [3, 4, 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Npy {
    array: Lazy,
    name: Arc<str>,
}

impl Npy {
    /// Opens a file. Rows have one field, `0`.
    ///
    /// # Errors
    /// If the file cannot be read, is no such file or a truncated one, has a dtype that oflow does not have, or is in Fortran's order.
    pub fn open(path: impl AsRef<Path>) -> Result<Npy> {
        let source = Source::open(path)?;
        let len = source.len();
        Ok(Npy { array: Lazy::new(Bytes::File { source, start: 0, len })?, name: "0".into() })
    }
    /// Gives the field of rows another name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Npy {
        self.name = name.into();
        self
    }
}

impl Dataset for Npy {
    type Item = Row;
    fn len(&self) -> usize {
        self.array.rows
    }
    fn get(&self, index: usize) -> Result<Row> {
        Ok(Row::new().with(self.name.clone(), self.array.row(index)?))
    }
}

/// The rows of the arrays in a `.npz` file, which must have as many rows each. Each array is a field of that name. Arrays that are stored
/// (`numpy.savez`) are read row by row; those that are compressed (`numpy.savez_compressed`) are in memory.
#[derive(Clone, Debug)]
pub struct Npz {
    arrays: Vec<(Arc<str>, Lazy)>,
    rows: usize,
}

impl Npz {
    /// Opens a file with the arrays of these names; all arrays without names. Compressed arrays may have 1 GiB together.
    ///
    /// # Errors
    /// If the file cannot be read, an array is not there or has another number of rows, and those of [`Npy::open`].
    pub fn open(path: impl AsRef<Path>, names: &[&str]) -> Result<Npz> {
        Npz::with_limit(path, names, 1 << 30)
    }
    /// Opens a file with another limit of the bytes of compressed arrays.
    ///
    /// # Errors
    /// The errors of [`Npz::open`].
    pub fn with_limit(path: impl AsRef<Path>, names: &[&str], mut limit: usize) -> Result<Npz> {
        let path = path.as_ref();
        let source = Source::open(path)?;
        let members = crate::zip::members(&source)?;
        let name_of = |m: &crate::zip::Member| m.name.strip_suffix(".npy").unwrap_or(&m.name).to_string();
        if let Some(name) = names.iter().find(|n| !members.iter().any(|m| name_of(m) == **n)) {
            let there: Vec<String> = members.iter().map(name_of).collect();
            return Err(source.error("", format!("no array '{name}'; there are {}", there.join(", "))));
        }
        let mut arrays = vec![];
        for m in &members {
            let name = name_of(m);
            if !names.is_empty() && !names.contains(&&name[..]) {
                continue;
            }
            let of = format!("{}, array '{name}'", path.display());
            let start = m.start(&source)?;
            let bytes = match m.compressed {
                false => Bytes::File { source: source.clone(), start, len: m.stored },
                true => {
                    let mut bytes = vec![];
                    let inflated = DeflateDecoder::new(source.from(start).take(m.stored));
                    let read = inflated.take(limit as u64 + 1).read_to_end(&mut bytes);
                    read.map_err(|e| Error::value(format!("{of}: {e}")))?;
                    limit = limit.checked_sub(bytes.len()).ok_or_else(|| {
                        Error::value(format!("{of}: compressed arrays with more bytes than the limit"))
                            .help("save with `numpy.savez`, or raise the limit with `Npz::with_limit`")
                    })?;
                    Bytes::Memory { of: of.clone(), bytes: bytes.into() }
                }
            };
            let array = Lazy::new(bytes).map_err(|e| Error::value(format!("array '{name}': {}", e.message())))?;
            arrays.push((name.into(), array));
        }
        let Some(rows) = arrays.first().map(|(_, a): &(_, Lazy)| a.rows) else {
            return Err(source.error("", "no arrays"));
        };
        if let Some((name, a)) = arrays.iter().find(|(_, a)| a.rows != rows) {
            let first = &arrays[0].0;
            let message = format!("'{first}' has {rows} rows, '{name}' {}", a.rows);
            return Err(source.error("", message).help("choose arrays of as many rows by their names"));
        }
        Ok(Npz { arrays, rows })
    }
}

impl Dataset for Npz {
    type Item = Row;
    fn len(&self) -> usize {
        self.rows
    }
    fn get(&self, index: usize) -> Result<Row> {
        self.arrays.iter().try_fold(Row::new(), |row, (name, a)| Ok(row.with(name.clone(), a.row(index)?)))
    }
}
