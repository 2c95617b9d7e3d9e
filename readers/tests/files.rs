//! Rows of files: files made here byte by byte, and by NumPy where it is installed.

use oflow::DType;
use oflow::data::{DataStream, DataStreamExt, Dataset, Row, Sampler};
use oflow_readers::{Csv, CsvOptions, ImageOptions, Images, Jsonl, Kind, Npy, Npz};
use std::path::{Path, PathBuf};
use std::process::Command;

mod made;

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn written(dir: &tempfile::TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn failed<T>(r: oflow::Result<T>) -> String {
    r.err().unwrap().message().to_string()
}

#[test]
fn csv_records_are_those_of_the_csv_crate_with_their_lines() {
    // Quotes, line ends in quotes, quotes in fields, CRLF, empty lines, a mark of the byte order, no end of the last line.
    let texts = [
        "a,b\n1,2\n3,4\n",
        "a,b\r\n1,2\r\n\r\n3,4",
        "\u{feff}a,b\n\"x, y\",\"line\nanother\"\n\n\n5\" disk,\"he said \"\"no\"\"\"\n",
        "a,b\n\"\",\n,\"\"\n\"x\"y,z\n",
        "a\n1\n\n2\n\"\n\"\n3",
        "",
        "\n\n",
    ];
    let many: String = std::iter::once("n,t\n".to_string())
        .chain((0..100).map(|i| format!("{i},\"{}\"\n", "line\n".repeat(i % 3))))
        .collect();
    for text in texts.into_iter().chain([&many[..]]) {
        let d = dir();
        let csv = Csv::open(written(&d, "t.csv", text)).unwrap();
        let plain = text.trim_start_matches('\u{feff}');
        let mut reader = ::csv::ReaderBuilder::new().flexible(true).from_reader(plain.as_bytes());
        let want: Vec<Vec<String>> =
            reader.records().map(|r| r.unwrap().iter().map(str::to_string).collect()).collect();
        assert_eq!(csv.len(), want.len(), "{text:?}");
        for (i, want) in want.iter().enumerate().rev() {
            let row = csv.get(i).unwrap();
            let got: Vec<&str> = csv.names().iter().map(|n| row.text(n).unwrap()).collect();
            assert_eq!(got, *want, "{text:?}, row {i}");
        }
    }
}

#[test]
fn csv_columns_become_numbers_and_errors_have_lines() {
    let d = dir();
    let text = "x,\"y\",name,ok\n 1.5,2,a,true\n3,-4,\"b\nb\",0\n5,six,c,1\n7,8,d\n1e3,300,e,yes\n";
    let path = written(&d, "t.csv", text);
    let csv = Csv::open(&path).unwrap();
    let all = csv.clone().group("xy", &["x", "y"], Kind::F64).unwrap().column("name", Kind::Text).unwrap();
    let row = all.get(1).unwrap();
    assert_eq!(row.array("xy").unwrap().to_vec::<f64>().unwrap(), [3.0, -4.0]);
    assert_eq!(row.text("name").unwrap(), "b\nb");
    let name = path.display();
    assert_eq!(failed(all.get(2)), format!("{name}, line 5: column 'xy': 'six' cannot be read as f64"));
    assert_eq!(failed(all.get(3)), format!("{name}, line 6: the row has 3 values; the first one has 4"));
    assert_eq!(failed(all.get(5)), "row 5 is out of range; there are 5");
    let u8s = csv.clone().column("y", Kind::U8).unwrap();
    assert_eq!(u8s.get(0).unwrap().array("y").unwrap().to_vec::<u8>().unwrap(), [2]);
    assert!(failed(u8s.get(4)).ends_with("line 7: column 'y': '300' cannot be read as u8"));
    let bools = csv.clone().column("ok", Kind::Bool).unwrap();
    assert_eq!(bools.get(0).unwrap().array("ok").unwrap().to_vec::<bool>().unwrap(), [true]);
    assert!(failed(bools.get(4)).ends_with("'yes' cannot be read as bool"));
    assert!(failed(csv.column("z", Kind::F32)).ends_with("no column 'z'; there are x, y, name, ok"));
    // Other settings.
    let path = written(&d, "t.tsv", "1\t2\n3\t4\n");
    let options = CsvOptions { delimiter: b'\t', header: false, ..CsvOptions::default() };
    let tsv = Csv::with(path, options).unwrap().group("all", &["1", "0"], Kind::I32).unwrap();
    assert_eq!((tsv.len(), tsv.get(1).unwrap().array("all").unwrap().to_vec::<i32>().unwrap()), (2, vec![4, 3]));
    let long = written(&d, "long.csv", format!("a\nb\n\"{}\"\n", "x".repeat(100)));
    let e = failed(Csv::with(&long, CsvOptions { longest: 50, ..CsvOptions::default() }));
    assert!(e.ends_with("line 3: the record has more than 50 bytes"), "{e}");
    assert!(failed(Csv::open(d.path().join("none.csv"))).contains("none.csv"));
    assert!(failed(Csv::open(d.path())).contains("not a regular file but a folder"));
}

#[test]
fn json_values_become_fields() {
    let d = dir();
    let lines = [
        r#"{"i": 3, "x": 0.5, "b": true, "t": "é", "list": [[1, 2], [3, 4]], "mixed": [1, 2.5], "empty": []}"#,
        "",
        r#"{"i": 3000000000, "x": 7, "list": [[1, 2], [3]]}"#,
        r#"{"i": 1.5, "x": null}"#,
        r#"{"i": "#,
        "[1]",
        r#"{"x": [1, [2]], "i": [[1], 2]}"#,
    ];
    let rows = Jsonl::open(written(&d, "t.jsonl", lines.join("\r\n"))).unwrap();
    assert_eq!(rows.len(), 6);
    let first = rows.get(0).unwrap();
    assert_eq!(first.array("i").unwrap().to_vec::<i64>().unwrap(), [3]);
    assert_eq!(first.array("b").unwrap().to_vec::<bool>().unwrap(), [true]);
    assert_eq!(first.text("t").unwrap(), "é");
    assert_eq!((first.array("list").unwrap().shape(), first.array("list").unwrap().dtype()), (&[2, 2][..], DType::I64));
    assert_eq!(first.array("mixed").unwrap().to_vec::<f64>().unwrap(), [1.0, 2.5]);
    assert_eq!(first.array("empty").unwrap().shape(), [0]);
    let ends = |r: oflow::Result<Row>, with: &str| {
        let e = failed(r);
        assert!(e.contains("t.jsonl, line ") && e.contains(with), "{e}");
    };
    ends(rows.get(1), "line 3: 'list': lists of 2 and of 1 values side by side");
    ends(rows.get(2), "line 4: 'x': null and objects cannot be fields");
    ends(rows.get(3), "line 5: no JSON at column 6");
    ends(rows.get(4), "line 6: the line has no JSON object");
    ends(rows.get(5), "line 7: 'i': a list has lists and other values");
    let chosen = rows.clone().column("i", Kind::I32).unwrap().column("x", Kind::F32).unwrap();
    assert_eq!(chosen.get(0).unwrap().array("i").unwrap().to_vec::<i32>().unwrap(), [3]);
    ends(chosen.get(1), "line 3: 'i': a number does not fit i32");
    ends(chosen.get(2), "line 4: 'i': a number does not fit i64");
    ends(rows.clone().column("t", Kind::F32).unwrap().get(0), "'t': no number");
    ends(rows.clone().column("none", Kind::F32).unwrap().get(0), "no 'none' in the object");
    // Nesting that would use up a stack.
    let deep = Jsonl::open(written(&d, "deep.jsonl", format!("{{\"a\":{}", "[".repeat(100_000)))).unwrap();
    assert!(failed(deep.get(0)).contains("recursion limit"));
    assert!(failed(Jsonl::with_longest(d.path().join("t.jsonl"), 20)).contains("line 1: the record has more than 20"));
}

#[test]
fn arrays_are_read_by_row_in_both_orders_of_bytes() {
    let d = dir();
    let numbers: Vec<f32> = (0..12).map(|i| i as f32 - 0.5).collect();
    let bytes = |f: fn(f32) -> [u8; 4]| numbers.iter().flat_map(|x| f(*x)).collect::<Vec<u8>>();
    for (descr, data) in [("<f4", bytes(f32::to_le_bytes)), (">f4", bytes(f32::to_be_bytes))] {
        for version in 1..=3 {
            let path = written(&d, "x.npy", made::npy(version, descr, false, "(3, 2, 2)", &data));
            let npy = Npy::open(path).unwrap();
            assert_eq!(npy.len(), 3);
            for row in 0..3 {
                let row_of = npy.get(row).unwrap();
                let a = row_of.array("0").unwrap();
                assert_eq!((a.shape(), a.to_vec::<f32>().unwrap()), (&[2, 2][..], numbers[row * 4..][..4].to_vec()));
            }
            assert!(npy.get(3).is_err());
        }
    }
    let open =
        |descr, fortran, shape, data: &[u8]| Npy::open(written(&d, "y.npy", made::npy(1, descr, fortran, shape, data)));
    let e = |r: oflow::Result<Npy>, with: &str| {
        let e = failed(r);
        assert!(e.contains("y.npy") && e.contains(with), "{e}");
    };
    e(open("<f4", false, "(3, 5)", &[0; 8]), "the shape [3, 5] of '<f4' has 60 bytes, the file 8");
    e(open("<f4", true, "(1, 2)", &[0; 8]), "Fortran's order");
    e(open("|O", false, "(2,)", &[0; 8]), "the dtype '|O' cannot be read");
    e(open("<U7", false, "(2,)", &[0; 80]), "the dtype '<U7' cannot be read");
    e(open("<f4", false, "()", &[0; 4]), "an array without dims has no rows");
    e(open("<f4", false, "(9223372036854775807, 9223372036854775807)", &[0; 4]), "more elements than can be counted");
    e(open("<f4", false, "(99999999999999999999999, 1)", &[0; 4]), "a size was expected");
    e(open("<f4", false, "(9223372036854775807, 0)", &[]), "have no elements");
    assert_eq!(open("<f4", true, "(2,)", &[0; 8]).unwrap().len(), 2);
    // A bool that is neither.
    assert!(failed(open("|b1", false, "(2,)", &[1, 2]).unwrap().get(1)).contains("row 1: the byte 2 of a bool"));
    e(Npy::open(written(&d, "y.npy", "PK")), "does not begin with");
}

#[test]
fn archives_give_rows_of_all_arrays() {
    let d = dir();
    let x = made::npy(1, "<i4", false, "(4, 2)", &(0..8i32).flat_map(i32::to_le_bytes).collect::<Vec<_>>());
    let y = made::npy(1, "|u1", false, "(4,)", &[9, 8, 7, 6]);
    let z = made::npy(1, "|u1", false, "(3,)", &[9, 8, 7]);
    for deflated in [false, true] {
        let path = written(&d, "a.npz", made::zip(&[("x.npy", &x), ("y.npy", &y), ("z.npy", &z)], deflated));
        let npz = Npz::open(&path, &["y", "x"]).unwrap();
        assert_eq!(npz.len(), 4);
        let row = npz.get(2).unwrap();
        assert_eq!(row.array("x").unwrap().to_vec::<i32>().unwrap(), [4, 5]);
        assert_eq!(row.array("y").unwrap().to_vec::<u8>().unwrap(), [7]);
        assert!(failed(Npz::open(&path, &[])).contains("'x' has 4 rows, 'z' 3"));
        assert!(failed(Npz::open(&path, &["w"])).contains("no array 'w'; there are x, y, z"));
        if deflated {
            assert!(failed(Npz::with_limit(&path, &["x"], 100)).contains("more bytes than the limit"));
        }
    }
    assert!(failed(Npz::open(written(&d, "b.npz", "x"), &[])).contains("the end of its directory is missing"));
}

/// Runs NumPy; where there is none, says so and is false.
fn numpy(dir: &Path, program: &str) -> bool {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_string());
    let run = Command::new(python).arg("-c").arg(format!("import numpy as np\n{program}")).current_dir(dir).output();
    match run {
        Ok(out) if out.status.success() => true,
        Ok(out) if String::from_utf8_lossy(&out.stderr).contains("No module named 'numpy'") => {
            eprintln!("not compared with NumPy: it is not installed");
            false
        }
        Ok(out) => panic!("{}", String::from_utf8_lossy(&out.stderr)),
        Err(e) => {
            eprintln!("not compared with NumPy: {e}");
            false
        }
    }
}

#[test]
fn files_of_numpy_are_read() {
    let d = dir();
    let program = "
x = np.arange(24).reshape(4, 3, 2)
for t in ['f2', 'f4', 'f8', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'b1', 'c8', 'c16', '>i2', '>f8', '>c8']:
    np.save(t.replace('>', 'big_') + '.npy', x.astype(t))
np.savez('stored.npz', x=x, y=x[:, 0, 0] * 0.5)
np.savez_compressed('compressed.npz', x=x, y=x[:, 0, 0] * 0.5)
np.save('structured.npy', np.zeros(3, dtype=[('a', 'f4'), ('b', 'i2')]))
";
    if !numpy(d.path(), program) {
        return;
    }
    for name in ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "b1", "big_i2", "big_f8"] {
        let npy = Npy::open(d.path().join(format!("{name}.npy"))).unwrap();
        let values: Vec<f64> =
            (0..4).flat_map(|i| npy.get(i).unwrap().array("0").unwrap().to_f64_vec().unwrap()).collect();
        let want: Vec<f64> = (0..24).map(|i| if name == "b1" { f64::from(i > 0) } else { f64::from(i) }).collect();
        assert_eq!(values, want, "{name}");
    }
    for (name, dtype) in [("c8", DType::C64), ("c16", DType::C128), ("big_c8", DType::C64)] {
        let row = Npy::open(d.path().join(format!("{name}.npy"))).unwrap().get(1).unwrap();
        let a = row.array("0").unwrap();
        assert_eq!((a.dtype(), a.shape()), (dtype, &[3, 2][..]));
        // 6, 7 and so on, each with the imaginary part 0.
        let parts: Vec<f64> = match dtype {
            DType::C64 => a.bytes().chunks(4).map(|b| f64::from(f32::from_ne_bytes(b.try_into().unwrap()))).collect(),
            _ => a.bytes().chunks(8).map(|b| f64::from_ne_bytes(b.try_into().unwrap())).collect(),
        };
        assert_eq!(parts, (6..12).flat_map(|i| [f64::from(i), 0.0]).collect::<Vec<_>>(), "{name}");
    }
    for name in ["stored.npz", "compressed.npz"] {
        let npz = Npz::open(d.path().join(name), &[]).unwrap();
        let row = npz.get(3).unwrap();
        assert_eq!(row.array("x").unwrap().to_vec::<i64>().unwrap(), [18, 19, 20, 21, 22, 23]);
        assert_eq!(row.array("y").unwrap().to_vec::<f64>().unwrap(), [9.0]);
    }
    assert!(failed(Npy::open(d.path().join("structured.npy"))).contains("structured"));
}

#[test]
fn images_are_decoded_by_content_in_planes() {
    let d = dir();
    let pixels: Vec<u8> = (0..18).map(|i| i * 14).collect();
    let rgb = image::RgbImage::from_raw(3, 2, pixels.clone()).unwrap();
    for (class, name) in [("b", "x.png"), ("a", "y.ppm"), ("b", "a.PNG")] {
        std::fs::create_dir_all(d.path().join(class)).unwrap();
        let format = if name.ends_with("ppm") { image::ImageFormat::Pnm } else { image::ImageFormat::Png };
        rgb.save_with_format(d.path().join(class).join(name), format).unwrap();
    }
    std::fs::write(d.path().join("b/notes.txt"), "none").unwrap();
    let (images, classes) = Images::folder(d.path(), ImageOptions::default()).unwrap();
    assert_eq!((images.len(), &classes[..]), (3, &["a".to_string(), "b".to_string()][..]));
    let labels: Vec<i64> =
        (0..3).flat_map(|i| images.get(i).unwrap().array("label").unwrap().to_vec().unwrap()).collect();
    assert_eq!(labels, [0, 1, 1]);
    for i in 0..3 {
        let row = images.get(i).unwrap();
        let a = row.array("image").unwrap();
        let planes: Vec<u8> = (0..3).flat_map(|c| pixels.iter().skip(c).step_by(3).copied()).collect();
        assert_eq!((a.shape(), a.to_vec::<u8>().unwrap()), (&[3, 2, 3][..], planes));
    }
    // One channel, of another size; of JPEG the values are about the same.
    let grey = image::RgbImage::from_pixel(16, 16, image::Rgb([100, 100, 100]));
    grey.save(d.path().join("c.jpg")).unwrap();
    let options = ImageOptions { channels: 1, size: Some((4, 6)), ..ImageOptions::default() };
    let one = Images::new(vec![(d.path().join("c.jpg"), None)], options).unwrap().get(0).unwrap();
    assert_eq!((one.array("image").unwrap().shape(), one.fields().len()), (&[1, 4, 6][..], 1));
    assert!(one.array("image").unwrap().to_vec::<u8>().unwrap().iter().all(|p| p.abs_diff(100) < 3));
    let small = ImageOptions { largest: 8, ..ImageOptions::default() };
    assert!(failed(Images::new(vec![(d.path().join("c.jpg"), None)], small).unwrap().get(0)).contains("c.jpg"));
    let none = Images::new(vec![(d.path().join("b/notes.txt"), None)], ImageOptions::default()).unwrap();
    assert!(failed(none.get(0)).contains("notes.txt"));
    assert!(Images::new(vec![], ImageOptions { channels: 2, ..ImageOptions::default() }).is_err());
}

#[test]
fn errors_of_rows_reach_the_caller_in_order_through_threads() {
    let d = dir();
    let path = written(&d, "t.csv", "n\n0\n1\nx\n3\n");
    let rows = Csv::open(path).unwrap().column("n", Kind::I64).unwrap();
    let mut stream = rows.stream(Sampler::sequential(), 0..1).unwrap().prefetch(2);
    let shown: Vec<String> = std::iter::from_fn(|| stream.next())
        .map(|r| {
            r.map_or_else(
                |e| e.message().to_string(),
                |row| format!("{:?}", row.array("n").unwrap().to_vec::<i64>().unwrap()),
            )
        })
        .collect();
    assert_eq!((&shown[..2], &shown[3..]), (&["[0]".to_string(), "[1]".to_string()][..], &["[3]".to_string()][..]));
    assert!(shown[2].ends_with("t.csv, line 4: column 'n': 'x' cannot be read as i64"), "{}", shown[2]);
}
