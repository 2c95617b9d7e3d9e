//! CSV files.

use crate::Kind;
use crate::records::{Records, Split};
use ::csv::{ByteRecord, ReaderBuilder};
use oflow::data::{Dataset, Row};
use oflow::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// Settings of a [`Csv`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvOptions {
    /// Byte between fields; a comma at first.
    pub delimiter: u8,
    /// Whether the first record has the names of the columns; at first it has. Otherwise they are called `0`, `1` and so on.
    pub header: bool,
    /// Longest record in bytes; 16 MiB at first.
    pub longest: usize,
}

impl Default for CsvOptions {
    fn default() -> CsvOptions {
        CsvOptions { delimiter: b',', header: true, longest: 1 << 24 }
    }
}

/// The rows of a CSV file. The file is gone over once when it is opened, for an index of a byte per row; a row is read when it is asked for.
///
/// ```
/// use oflow::data::Dataset;
/// use oflow_readers::{Csv, Kind};
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("flowers.csv");
/// # std::fs::write(&path, "length,width,name\n5.1,3.5,setosa\n6.2,x,\"virginica\"\n")?;
/// let flowers = Csv::open(&path)?.group("size", &["length", "width"], Kind::F32)?.column("name", Kind::Text)?;
/// assert_eq!(flowers.len(), 2);
/// let first = flowers.get(0)?;
/// assert_eq!((first.array("size")?.to_vec::<f32>()?, first.text("name")?), (vec![5.1, 3.5], "setosa"));
/// let message = flowers.get(1).unwrap_err().message().to_string();
/// assert!(message.ends_with("flowers.csv, line 3: column 'size': 'x' cannot be read as f32"), "{message}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Csv {
    records: Arc<Records>,
    options: CsvOptions,
    names: Vec<String>,
    fields: Vec<Chosen>,
}

/// A field of rows, made of columns.
#[derive(Clone, Debug)]
struct Chosen {
    name: Arc<str>,
    columns: Vec<usize>,
    kind: Kind,
    shape: Vec<usize>,
}

impl Csv {
    /// Opens a file whose first record has the names of the columns. Until columns are chosen, rows have all of them as text.
    ///
    /// # Errors
    /// If the file cannot be read, or a record is too long.
    pub fn open(path: impl AsRef<Path>) -> Result<Csv> {
        Csv::with(path, CsvOptions::default())
    }
    /// Opens a file with other settings.
    ///
    /// # Errors
    /// The errors of [`Csv::open`].
    pub fn with(path: impl AsRef<Path>, options: CsvOptions) -> Result<Csv> {
        let split = Split::Csv { delimiter: options.delimiter };
        let records = Arc::new(Records::open(path, split, options.longest)?);
        let mut csv = Csv { records, options, names: vec![], fields: vec![] };
        if csv.records.len() > 0 {
            let (first, line) = csv.values(0)?;
            let name = |(i, n): (usize, &[u8])| match options.header {
                true => String::from_utf8(n.to_vec()).map_err(|_| csv.records.error(line, "a name is not UTF-8")),
                false => Ok(i.to_string()),
            };
            csv.names = first.iter().enumerate().map(name).collect::<Result<_>>()?;
        }
        Ok(csv)
    }
    /// Returns the names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }
    /// Chooses a column as a field of that name, of shape `[]`.
    ///
    /// # Errors
    /// If there is no such column, or two.
    pub fn column(self, name: &str, kind: Kind) -> Result<Csv> {
        self.choose(name, &[name], kind, vec![])
    }
    /// Chooses columns as one field of shape `[columns]`.
    ///
    /// # Errors
    /// If there is no such column, or two.
    pub fn group(self, field: &str, columns: &[&str], kind: Kind) -> Result<Csv> {
        self.choose(field, columns, kind, vec![columns.len()])
    }
    fn choose(mut self, field: &str, columns: &[&str], kind: Kind, shape: Vec<usize>) -> Result<Csv> {
        let find = |name: &&str| {
            let mut found = self.names.iter().enumerate().filter(|(_, n)| n == name).map(|(i, _)| i);
            match (found.next(), found.next()) {
                (Some(i), None) => Ok(i),
                (Some(_), Some(_)) => Err(self.records.source.error("", format!("two columns are called '{name}'"))),
                _ => {
                    let shown = self.names.join(", ");
                    let shown: String = shown.chars().take(200).collect();
                    Err(self.records.source.error("", format!("no column '{name}'; there are {shown}")))
                }
            }
        };
        let columns = columns.iter().map(find).collect::<Result<_>>()?;
        self.fields.push(Chosen { name: field.into(), columns, kind, shape });
        Ok(self)
    }
    /// The values of a record, the header being the first.
    fn values(&self, record: usize) -> Result<(ByteRecord, u64)> {
        let (bytes, line) = self.records.get(record)?;
        let reader = ReaderBuilder::new().delimiter(self.options.delimiter).has_headers(false).from_reader(&bytes[..]);
        let mut record = ByteRecord::new();
        let mut reader = reader;
        reader.read_byte_record(&mut record).map_err(|e| self.records.error(line, e))?;
        Ok((record, line))
    }
}

impl Dataset for Csv {
    type Item = Row;
    fn len(&self) -> usize {
        self.records.len() - usize::from(self.options.header && self.records.len() > 0)
    }
    fn get(&self, index: usize) -> Result<Row> {
        if index >= self.len() {
            return Err(Error::index(format!("row {index} is out of range; there are {}", self.len())));
        }
        let (values, line) = self.values(index + usize::from(self.options.header))?;
        if values.len() != self.names.len() {
            let (is, was) = (values.len(), self.names.len());
            return Err(self.records.error(line, format!("the row has {is} values; the first one has {was}")));
        }
        let text = |i: usize| {
            let utf8 = std::str::from_utf8(values.get(i).unwrap_or_default());
            utf8.map_err(|_| self.records.error(line, format!("column '{}' is not UTF-8", self.names[i])))
        };
        if self.fields.is_empty() {
            let all = self.names.iter().enumerate();
            return all.map(|(i, name)| Ok((name, text(i)?))).try_fold(Row::new(), |row, f: Result<_>| {
                let (name, text) = f?;
                Ok(row.with(&name[..], text))
            });
        }
        self.fields.iter().try_fold(Row::new(), |row, f| {
            let texts = f.columns.iter().map(|i| text(*i)).collect::<Result<Vec<&str>>>()?;
            let field = f.kind.parse(&texts, &f.shape);
            let named = |e: Error| self.records.error(line, format!("column '{}': {}", f.name, e.message()));
            Ok(row.with(f.name.clone(), field.map_err(named)?))
        })
    }
}
