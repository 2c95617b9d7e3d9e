//! Parquet files.

use crate::source::Source;
use ::parquet::basic::{ConvertedType, Repetition, Type};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::DataType;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use oflow::data::{Dataset, Field, Row};
use oflow::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Values of a column in a group of rows.
#[derive(Clone, Debug)]
enum Values {
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<String>),
}

impl Values {
    fn field(&self, row: usize) -> Option<Field> {
        Some(match self {
            Values::I32(v) => (*v.get(row)?).into(),
            Values::I64(v) => (*v.get(row)?).into(),
            Values::F32(v) => (*v.get(row)?).into(),
            Values::F64(v) => (*v.get(row)?).into(),
            Values::Bool(v) => (*v.get(row)?).into(),
            Values::Text(v) => v.get(row)?.clone().into(),
        })
    }
}

/// A file as the crate reads it: at offsets, with no more memory than the file has bytes.
struct Chunks(Arc<Source>);

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Chunks {
    type T = crate::source::FromOffset;
    fn get_read(&self, start: u64) -> std::result::Result<Self::T, ParquetError> {
        Ok(self.0.from(start))
    }
    fn get_bytes(&self, start: u64, length: usize) -> std::result::Result<bytes::Bytes, ParquetError> {
        let read = self.0.read(start, length).map_err(|e| ParquetError::General(e.message().to_string()))?;
        Ok(read.into())
    }
}

/// The rows of a Parquet file with columns of numbers, bools and text. A group of rows is decoded when one of its rows is asked for, and the
/// last few groups stay in memory: read such a file in its order, or shuffle a stream of it.
///
/// Columns of lists or structs are refused, and so are nulls. The limit is one of the sizes that the file's end tells; a page of a hostile file
/// may claim more, up to 2 GiB.
pub struct Parquet {
    source: Arc<Source>,
    reader: SerializedFileReader<Chunks>,
    /// Columns that are read, with their names.
    columns: Vec<(usize, Arc<str>)>,
    /// Number of the first row of each group, and of all rows.
    starts: Vec<usize>,
    longest: usize,
    decoded: Mutex<Vec<(usize, Arc<Vec<Values>>)>>,
}

/// Groups that stay in memory.
const KEPT: usize = 4;

impl Parquet {
    /// Opens a file with the columns of these names; all columns without names. Groups of rows may have 1 GiB when decoded.
    ///
    /// # Errors
    /// If the file cannot be read, or a column is not there or is of a type that cannot be a field.
    pub fn open(path: impl AsRef<Path>, names: &[&str]) -> Result<Parquet> {
        Parquet::with_limit(path, names, 1 << 30)
    }
    /// Opens a file with another limit of the bytes of a group of rows.
    ///
    /// # Errors
    /// The errors of [`Parquet::open`].
    pub fn with_limit(path: impl AsRef<Path>, names: &[&str], longest: usize) -> Result<Parquet> {
        let source = Source::open(path)?;
        let chunks = Chunks(source.clone());
        let reader = caught(&source, || SerializedFileReader::new(chunks))?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let all: Vec<String> = schema.columns().iter().map(|c| c.path().string()).collect();
        let wanted: Vec<String> =
            if names.is_empty() { all.clone() } else { names.iter().map(|n| n.to_string()).collect() };
        let mut columns = vec![];
        for name in wanted {
            let at = all.iter().position(|c| *c == name);
            let at = at.ok_or_else(|| source.error("", format!("no column '{name}'; there are {}", all.join(", "))))?;
            let c = schema.column(at);
            let text = c.converted_type() == ConvertedType::UTF8;
            let known = match c.physical_type() {
                Type::BYTE_ARRAY => text,
                Type::INT96 | Type::FIXED_LEN_BYTE_ARRAY => false,
                _ => true,
            };
            if !known || c.max_rep_level() > 0 || c.self_type().get_basic_info().repetition() == Repetition::REPEATED {
                let message = format!("the column '{name}' has {} values, which cannot be a field", c.physical_type());
                return Err(source.error("", message).help("choose columns of numbers, bools or text by their names"));
            }
            columns.push((at, name.into()));
        }
        let mut starts = vec![0usize];
        for group in reader.metadata().row_groups() {
            let rows = usize::try_from(group.num_rows()).ok();
            // Even a bit per row is a byte per eight: more rows than that are a lie, which would be believed by who makes an order of them.
            let rows = rows.filter(|n| *n as u64 / 4096 <= source.len());
            let next = rows.and_then(|n| starts[starts.len() - 1].checked_add(n));
            starts.push(next.ok_or_else(|| source.error("", format!("a group of {} rows", group.num_rows())))?);
        }
        Ok(Parquet { source, reader, columns, starts, longest, decoded: Mutex::new(vec![]) })
    }
    fn group(&self, number: usize) -> Result<Arc<Vec<Values>>> {
        let mut kept = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, values)) = kept.iter().find(|(n, _)| *n == number) {
            return Ok(values.clone());
        }
        let place = format!("group {number} of rows");
        let meta = self.reader.metadata().row_group(number);
        let size: i64 =
            self.columns.iter().map(|(c, _)| meta.column(*c).uncompressed_size().max(0)).fold(0, i64::saturating_add);
        if size as u64 > self.longest as u64 {
            return Err(self
                .source
                .error(&place, format!("{size} bytes, more than the limit of {}", self.longest))
                .help("raise it with `Parquet::with_limit`, or write smaller groups of rows"));
        }
        let rows = self.starts[number + 1] - self.starts[number];
        let decode = || {
            let group = self.reader.get_row_group(number)?;
            self.columns.iter().map(|(c, _)| values(group.get_column_reader(*c)?, rows)).collect()
        };
        let decoded: Vec<Values> =
            caught(&self.source, decode).map_err(|e| Error::value(format!("{place}: {}", e.message())))?;
        let decoded = Arc::new(decoded);
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((number, decoded.clone()));
        Ok(decoded)
    }
}

/// Runs the crate's code, which may panic on a broken file.
fn caught<T>(source: &Source, f: impl FnOnce() -> std::result::Result<T, ParquetError>) -> Result<T> {
    let done = catch_unwind(AssertUnwindSafe(f));
    let done = done.unwrap_or_else(|_| Err(ParquetError::General("the reader has panicked".to_string())));
    done.map_err(|e| source.error("", e))
}

fn values(reader: ColumnReader, rows: usize) -> std::result::Result<Values, ParquetError> {
    Ok(match reader {
        ColumnReader::BoolColumnReader(r) => Values::Bool(read(r, rows)?),
        ColumnReader::Int32ColumnReader(r) => Values::I32(read(r, rows)?),
        ColumnReader::Int64ColumnReader(r) => Values::I64(read(r, rows)?),
        ColumnReader::FloatColumnReader(r) => Values::F32(read(r, rows)?),
        ColumnReader::DoubleColumnReader(r) => Values::F64(read(r, rows)?),
        ColumnReader::ByteArrayColumnReader(r) => {
            let text = |b: ::parquet::data_type::ByteArray| Ok(b.as_utf8()?.to_string());
            Values::Text(read(r, rows)?.into_iter().map(text).collect::<std::result::Result<_, ParquetError>>()?)
        }
        _ => return Err(ParquetError::General("a type that cannot be a field".to_string())),
    })
}

fn read<T: DataType>(mut reader: ColumnReaderImpl<T>, rows: usize) -> std::result::Result<Vec<T::T>, ParquetError> {
    let (mut all, mut levels) = (vec![], vec![]);
    while all.len() < rows {
        let (records, ..) = reader.read_records((rows - all.len()).min(1 << 16), Some(&mut levels), None, &mut all)?;
        if records == 0 {
            break;
        }
    }
    match all.len() == rows {
        true => Ok(all),
        false => {
            Err(ParquetError::General(format!("{} values for {rows} rows: nulls cannot be in a batch", all.len())))
        }
    }
}

impl Dataset for Parquet {
    type Item = Row;
    fn len(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }
    fn get(&self, index: usize) -> Result<Row> {
        if index >= self.len() {
            return Err(Error::index(format!("row {index} is out of range; there are {}", self.len())));
        }
        let number = self.starts.partition_point(|s| *s <= index) - 1;
        let (group, at) = (self.group(number)?, index - self.starts[number]);
        self.columns.iter().zip(group.iter()).try_fold(Row::new(), |row, ((_, name), values)| {
            let field = values.field(at);
            Ok(row.with(name.clone(), field.ok_or_else(|| self.source.error("", format!("row {index} is missing")))?))
        })
    }
}
