//! Data sets of files for oflow: rows are read by number, when they are asked for, so files may be larger than memory.
//!
//! | file | data set | rows |
//! |---|---|---|
//! | `.npy`, `.npz` | [`Npy`], [`Npz`] | along the first dim |
//! | CSV | [`Csv`] | records; columns become fields by [`Kind`] |
//! | JSON lines | [`Jsonl`] | an object on each line |
//! | PNG, JPEG, PPM | [`Images`] | an image of each file, labels by folder |
#![cfg_attr(
    feature = "parquet",
    doc = "| Parquet (feature `parquet`) | [`Parquet`] | of columns of numbers, bools and text |"
)]
//!
//! All are [`Dataset`](oflow::data::Dataset)s of [`Row`](oflow::data::Row)s, for a [`Loader`](oflow::data::Loader) or a
//! [`Feed`](oflow::data::Feed). Errors name the file and, where there is one, the line. Nothing in a file is trusted: what is cut, lies about its
//! sizes or has another format is an error, and memory is bounded by the file's length or by a limit in the options (of Parquet's pages by 2 GiB).
//! The crate reads; it does not know ranks.
//!
//! ```
//! use oflow::data::{Dataset, Loader};
//! use oflow::prelude::*;
//! use oflow_readers::{Csv, Kind};
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("points.csv");
//! # std::fs::write(&path, "x,y,class\n1,2,0\n3,4,1\n5,6,0\n")?;
//! let _world = oflow::init()?;
//! let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 1)])?;
//! let points = Csv::open(&path)?.group("x", &["x", "y"], Kind::F32)?.column("class", Kind::I64)?;
//! let loader = Loader::new(&mesh, 2).split_along("dp")?.dataset(points)?.shuffled(1).prefetch(1, 2);
//! assert_eq!(loader.stream().next()?[0].shape(), [2, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod csv;
mod images;
mod jsonl;
mod kind;
mod npy;
#[cfg(feature = "parquet")]
mod parquet;
mod records;
mod source;
mod zip;

pub use csv::{Csv, CsvOptions};
pub use images::{ImageOptions, Images};
pub use jsonl::Jsonl;
pub use kind::Kind;
pub use npy::{Npy, Npz};
#[cfg(feature = "parquet")]
pub use parquet::Parquet;
