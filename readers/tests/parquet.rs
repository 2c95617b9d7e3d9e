//! Parquet files, whole and changed. Run it with `--features parquet`.

use oflow::data::Dataset;
use oflow::testing::Random;
use oflow_readers::Parquet;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::path::Path;
use std::sync::Arc;

/// A file of groups of 5 rows: a number `n` in each type, and its text.
fn file(groups: usize, compression: Compression) -> Vec<u8> {
    let schema = "message m { required int32 a; required int64 b; required float c; optional double d;
        required boolean e; required binary f (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let mut writer = SerializedFileWriter::new(vec![], schema, properties).unwrap();
    for g in 0..groups {
        let rows: Vec<i32> = (0..5).map(|i| (g * 5 + i) as i32).collect();
        let mut group = writer.next_row_group().unwrap();
        macro_rules! column {
            ($t:ty, $levels:expr, $f:expr) => {{
                let mut column = group.next_column().unwrap().unwrap();
                let values: Vec<_> = rows.iter().map($f).collect();
                column.typed::<$t>().write_batch(&values, $levels, None).unwrap();
                column.close().unwrap();
            }};
        }
        column!(Int32Type, None, |n| *n);
        column!(Int64Type, None, |n| i64::from(*n) << 33);
        column!(FloatType, None, |n| *n as f32 / 2.0);
        column!(DoubleType, Some(&[1, 1, 1, 1, 1]), |n| f64::from(*n) / 3.0);
        column!(BoolType, None, |n| n % 2 == 1);
        column!(ByteArrayType, None, |n| ByteArray::from(format!("row {n}").as_str()));
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

fn open(path: &Path, bytes: &[u8], names: &[&str]) -> oflow::Result<Parquet> {
    // To write over a file waits for the disk on some file systems.
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).unwrap();
    Parquet::open(path, names)
}

#[test]
fn rows_come_from_all_groups_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::GZIP(Default::default())] {
        let rows = open(&path, &file(7, compression), &[]).unwrap();
        assert_eq!(rows.len(), 35);
        for n in (0..35usize).map(|i| i * 17 % 35) {
            let row = rows.get(n).unwrap();
            let x = n as f64;
            let numbers = ["a", "b", "c", "d", "e"].map(|c| row.array(c).unwrap().to_f64_vec().unwrap()[0]);
            assert_eq!(numbers, [x, x * 2f64.powi(33), x / 2.0, x / 3.0, (n % 2) as f64]);
            assert_eq!(row.text("f").unwrap(), format!("row {n}"));
        }
        assert!(rows.get(35).is_err());
    }
    let two = open(&path, &file(1, Compression::SNAPPY), &["f", "a"]).unwrap();
    assert_eq!(two.get(0).unwrap().fields().map(|(n, _)| n).collect::<Vec<_>>(), ["f", "a"]);
    let failed = |r: oflow::Result<Parquet>| r.err().unwrap().message().to_string();
    assert!(
        failed(open(&path, &file(1, Compression::SNAPPY), &["z"]))
            .contains("no column 'z'; there are a, b, c, d, e, f")
    );
    std::fs::write(&path, file(1, Compression::SNAPPY)).unwrap();
    let e = Parquet::with_limit(&path, &[], 10).unwrap().get(0).err().unwrap().message().to_string();
    assert!(e.contains("group 0 of rows") && e.contains("more than the limit of 10"), "{e}");
    assert!(failed(open(&path, b"PAR1", &[])).contains("t.parquet"));
}

#[test]
fn nulls_and_lists_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let schema = "message m { optional int32 a; repeated int32 b; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(vec![], schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int32Type>().write_batch(&[7], Some(&[1, 0]), None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int32Type>().write_batch(&[1, 2, 3], Some(&[1, 1, 1]), Some(&[0, 1, 0])).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    let bytes = writer.into_inner().unwrap();
    let e = open(&path, &bytes, &["a"]).unwrap().get(0).err().unwrap().message().to_string();
    assert!(e.contains("nulls cannot be in a batch"), "{e}");
    let e = open(&path, &bytes, &["b"]).err().unwrap().message().to_string();
    assert!(e.contains("the column 'b' has INT32 values, which cannot be a field"), "{e}");
}

#[test]
fn changed_files_are_errors_or_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let mut random = Random::new(3);
    let whole = file(3, Compression::SNAPPY);
    let (mut good, mut bad) = (0, 0);
    for _ in 0..3000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[at] = random.draw() as u8,
                2 => bytes[at] ^= 1 << random.below(8),
                _ => bytes[at..].iter_mut().take(1 + random.below(6)).for_each(|b| *b = 0xff),
            }
        }
        match open(&path, &bytes, &[]) {
            Err(_) => bad += 1,
            Ok(rows) => {
                let n = rows.len();
                let read = (0..n.min(20)).chain(n.saturating_sub(2)..n).filter(|i| rows.get(*i).is_ok()).count();
                good += usize::from(read > 0);
                bad += usize::from(read == 0);
            }
        }
    }
    assert!(good > 100 && bad > 100, "{good} were read, {bad} refused");
}
