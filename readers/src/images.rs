//! Folders of images.

use crate::source::Source;
use image::imageops::FilterType;
use image::{ImageReader, Limits};
use oflow::data::{Array, Dataset, Row};
use oflow::{Error, Result};
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Settings of [`Images`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageOptions {
    /// 3 for red, green and blue, 1 for the brightness; 3 at first.
    pub channels: u8,
    /// Height and width that images are brought to; at first they stay as they are.
    pub size: Option<(u32, u32)>,
    /// Largest height and width that is decoded; 16,384 at first.
    pub largest: u32,
    /// Most bytes that decoding an image takes; 512 MiB at first.
    pub memory: u64,
}

impl Default for ImageOptions {
    fn default() -> ImageOptions {
        ImageOptions { channels: 3, size: None, largest: 1 << 14, memory: 1 << 29 }
    }
}

/// Images in files: PNG, JPEG, and PPM with its kin. Rows have a field `image` of bytes `[channels, height, width]`, and `label`, an i64, where
/// they have one. An image is decoded when it is asked for; what a file is says its content, not its name.
///
/// ```
/// use oflow::data::Dataset;
/// use oflow_readers::{ImageOptions, Images};
/// # let dir = tempfile::tempdir()?;
/// # for (class, pixel) in [("cats", [255, 0, 7]), ("dogs", [1, 2, 3])] {
/// #     std::fs::create_dir(dir.path().join(class))?;
/// #     std::fs::write(dir.path().join(class).join("a.ppm"), [b"P6 1 1 255\n".as_slice(), &pixel].concat())?;
/// # }
/// let (images, classes) = Images::folder(dir.path(), ImageOptions::default())?;
/// assert_eq!(classes, ["cats", "dogs"]);
/// let row = images.get(1)?;
/// assert_eq!(row.array("image")?.shape(), [3, 1, 1]);
/// assert_eq!(row.array("label")?.to_vec::<i64>()?, [1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Images {
    files: Arc<[(PathBuf, Option<i64>)]>,
    options: ImageOptions,
}

impl Images {
    /// Takes these files, each with its label if it has one.
    ///
    /// # Errors
    /// If the settings have no size.
    pub fn new(files: Vec<(PathBuf, Option<i64>)>, options: ImageOptions) -> Result<Images> {
        if !matches!(options.channels, 1 | 3) || options.size.is_some_and(|(h, w)| h == 0 || w == 0) {
            return Err(Error::argument(format!(
                "images of {} channels and of the size {:?}",
                options.channels, options.size
            ))
            .help("1 or 3 channels, and a size of at least one pixel"));
        }
        Ok(Images { files: files.into(), options })
    }
    /// Takes all files with names of images (png, jpg, jpeg, ppm, pgm, pbm, pnm) in the folders of a folder, each of which is a class. The order is that
    /// of the names, on every machine. Returns the names of the classes too.
    ///
    /// # Errors
    /// If a folder cannot be read, or has a name that is not UTF-8.
    pub fn folder(path: impl AsRef<Path>, options: ImageOptions) -> Result<(Images, Vec<String>)> {
        let classes: Vec<PathBuf> = entries(path.as_ref())?.into_iter().filter(|p| p.is_dir()).collect();
        let (mut files, mut names) = (vec![], vec![]);
        for (label, class) in classes.iter().enumerate() {
            let name = class.file_name().and_then(|n| n.to_str());
            let name = name.ok_or_else(|| Error::value(format!("{}: the name is not UTF-8", class.display())))?;
            names.push(name.to_string());
            let is_image = |p: &PathBuf| {
                let ends = p.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
                ends.is_some_and(|e| ["png", "jpg", "jpeg", "ppm", "pgm", "pbm", "pnm"].contains(&&e[..]))
            };
            files.extend(entries(class)?.into_iter().filter(is_image).map(|p| (p, Some(label as i64))));
        }
        Ok((Images::new(files, options)?, names))
    }
    /// Returns the files, in the order of the rows.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(p, _)| p.as_path())
    }
    fn decode(&self, path: &Path) -> Result<Array> {
        let source = Source::open(path)?;
        let ImageOptions { channels, size, largest, memory } = self.options;
        let mut limits = Limits::default();
        (limits.max_image_width, limits.max_image_height, limits.max_alloc) =
            (Some(largest), Some(largest), Some(memory));
        let decode = || {
            let mut reader = ImageReader::new(BufReader::new(source.file()?)).with_guessed_format()?;
            reader.limits(limits);
            Ok(reader.decode().map_err(std::io::Error::other)?)
        };
        // A decoder that panics on a broken file must not end the job.
        let decoded: std::io::Result<image::DynamicImage> =
            catch_unwind(AssertUnwindSafe(|| decode().map_err(|e: Failed| e.0)))
                .unwrap_or_else(|_| Err(std::io::Error::other("the decoder has panicked")));
        let image = decoded.map_err(|e| source.error("", e))?;
        let image = match size {
            Some((h, w)) if (h, w) != (image.height(), image.width()) => image.resize_exact(w, h, FilterType::Triangle),
            _ => image,
        };
        let (h, w) = (image.height() as usize, image.width() as usize);
        let pixels = if channels == 1 { image.into_luma8().into_raw() } else { image.into_rgb8().into_raw() };
        let channels = usize::from(channels);
        let mut planes = Vec::with_capacity(pixels.len());
        (0..channels).for_each(|c| planes.extend(pixels.iter().skip(c).step_by(channels)));
        Array::from_bytes(planes, oflow::DType::U8, &[channels, h, w])
    }
}

/// Errors of oflow and of files, as one on the way out of a decoder.
struct Failed(std::io::Error);

impl From<Error> for Failed {
    fn from(e: Error) -> Failed {
        Failed(std::io::Error::other(e.message().to_string()))
    }
}

impl From<std::io::Error> for Failed {
    fn from(e: std::io::Error) -> Failed {
        Failed(e)
    }
}

/// Entries of a folder, by name.
fn entries(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e: std::io::Error| Error::io(format!("cannot read the folder {}: {e}", path.display())).because(e);
    let all: std::io::Result<Vec<PathBuf>> = std::fs::read_dir(path).map_err(failed)?.map(|e| Ok(e?.path())).collect();
    let mut all = all.map_err(failed)?;
    all.sort();
    Ok(all)
}

impl Dataset for Images {
    type Item = Row;
    fn len(&self) -> usize {
        self.files.len()
    }
    fn get(&self, index: usize) -> Result<Row> {
        let there = self.files.get(index);
        let (path, label) = there
            .ok_or_else(|| Error::index(format!("image {index} is out of range; there are {}", self.files.len())))?;
        let row = Row::new().with("image", self.decode(path)?);
        Ok(match label {
            Some(label) => row.with("label", *label),
            None => row,
        })
    }
}
