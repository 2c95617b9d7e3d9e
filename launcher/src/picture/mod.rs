//! Pictures of charts: shapes in pixels, which `svg.rs` and `png.rs` write. `axis.rs` chooses ticks, and `font.rs` has the letters of PNG.

pub mod axis;
mod font;
mod png;
mod svg;

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, value_parser};
use oflow::text::head;
use oflow_files::Access;
use oflow_files::make::write_where_named;

use crate::Failed;

/// Purpose of a shape, from which its colour follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Title,
    Label,
    Grid,
    /// A text on a filled box.
    Inside,
    /// A line between two boxes.
    Link,
    /// A curve of the run with this number.
    Curve(usize),
    /// Values behind the average of a run.
    Faint(usize),
}

/// Colours of filled boxes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tone {
    Grey,
    Pale,
    Blue,
    Green,
    Orange,
    Red,
    Purple,
    Brown,
}

impl Tone {
    /// All of them, in the order of their numbers.
    const ALL: [Tone; 8] =
        [Tone::Grey, Tone::Pale, Tone::Blue, Tone::Green, Tone::Orange, Tone::Red, Tone::Purple, Tone::Brown];

    /// The colour on a light page and on a dark one. A text in [`Role::Inside`] is readable on both.
    const fn rgb(self) -> [[u8; 3]; 2] {
        match self {
            Tone::Grey => [[0xcf, 0xd4, 0xda], [0x50, 0x57, 0x5f]],
            Tone::Pale => [[0xe9, 0xec, 0xef], [0x38, 0x3d, 0x43]],
            Tone::Blue => [[0xa5, 0xc8, 0xf0], [0x2b, 0x55, 0x85]],
            Tone::Green => [[0x8f, 0xd1, 0x9e], [0x27, 0x6b, 0x3a]],
            Tone::Orange => [[0xf5, 0xb9, 0x6b], [0x96, 0x5a, 0x0f]],
            Tone::Red => [[0xf0, 0x8c, 0x88], [0x9c, 0x32, 0x2e]],
            Tone::Purple => [[0xcf, 0xb0, 0xec], [0x65, 0x3f, 0x8c]],
            Tone::Brown => [[0xd2, 0xb4, 0x96], [0x6e, 0x4f, 0x31]],
        }
    }
}

/// Side of a text on which its place is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

pub enum Shape {
    Line {
        role: Role,
        points: Vec<(f64, f64)>,
    },
    Text {
        role: Role,
        at: (f64, f64),
        anchor: Anchor,
        text: String,
    },
    /// A filled box. `hint` is shown where the pointer rests on it, if the format can.
    Box {
        tone: Tone,
        corner: (f64, f64),
        size: (f64, f64),
        hint: String,
    },
}

/// The shapes of a picture with its size in pixels.
pub struct Picture {
    /// Text that screen readers say.
    pub title: &'static str,
    pub width: f64,
    pub height: f64,
    pub shapes: Vec<Shape>,
}

/// Pixels of a character, and of one in [`Role::Inside`].
pub const CHARACTER: f64 = 8.0;
pub const SMALL_CHARACTER: f64 = 7.0;

impl Picture {
    pub fn text(&mut self, role: Role, at: (f64, f64), anchor: Anchor, text: impl Into<String>) {
        self.shapes.push(Shape::Text { role, at, anchor, text: text.into() });
    }

    pub fn line(&mut self, role: Role, points: Vec<(f64, f64)>) {
        self.shapes.push(Shape::Line { role, points });
    }

    pub fn fill(&mut self, tone: Tone, corner: (f64, f64), size: (f64, f64), hint: impl Into<String>) {
        self.shapes.push(Shape::Box { tone, corner, size, hint: hint.into() });
    }
}

/// A text that is cut where it would be longer than so many pixels.
pub fn fitted(text: &str, pixels: f64) -> String {
    let most = (pixels / CHARACTER).max(4.0) as usize;
    head(text, most)
}

/// Format of a picture.
#[derive(Clone, Copy)]
enum Format {
    Svg,
    Png,
}

/// A file for a picture, whose name tells the format.
pub struct Output<'a> {
    path: &'a Path,
    format: Format,
}

impl<'a> Output<'a> {
    /// The argument `--out`, which [`Output::asked`] reads.
    pub fn argument() -> Arg {
        Arg::new("out")
            .short('o')
            .long("out")
            .value_parser(value_parser!(PathBuf))
            .value_name("FILE")
            .help("Write a picture: FILE ends in .svg or .png; without it lines of text are printed")
    }

    /// The argument for a side of the picture.
    pub fn side(name: &'static str, help: &'static str) -> Arg {
        Arg::new(name).long(name).value_parser(value_parser!(u32).range(200..=8000)).value_name("PIXELS").help(help)
    }

    /// The file that is asked for.
    ///
    /// # Errors
    /// If its name tells no format.
    pub fn asked(matches: &'a ArgMatches) -> Result<Option<Output<'a>>, Failed> {
        let Some(path) = matches.get_one::<PathBuf>("out") else { return Ok(None) };
        let format = match path.extension().and_then(|e| e.to_str()) {
            Some("svg") => Format::Svg,
            Some("png") => Format::Png,
            _ => return Err(Failed::new(format!("{}: a picture's name ends in .svg or .png", path.display()))),
        };
        Ok(Some(Output { path, format }))
    }

    /// Writes a picture to the file.
    pub fn write(&self, picture: &Picture) -> Result<u8, Failed> {
        let bytes = match self.format {
            Format::Svg => svg::draw(picture).into_bytes(),
            Format::Png => png::draw(picture),
        };
        write_where_named(self.path, Access::Readable, &bytes).map_err(|e| Failed::new(e.to_string()))?;
        Ok(0)
    }
}
