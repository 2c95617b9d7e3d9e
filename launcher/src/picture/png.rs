//! A picture as PNG, two pixels for each of the chart, in a palette.
//!
//! Rasterising SVG takes a crate that would take longer to compile than all of `oflow`'s commands, and so does one that writes PNG; the lines and
//! letters of a chart and the few formats of a file need neither.

use super::font::{ADVANCE, HEIGHT, glyph};
use super::svg::{COLOURS, rgb};
use super::{Anchor, Picture, Role, Shape, Tone};

/// Pixels for each of the picture.
const SCALE: f64 = 2.0;
/// Colours of the palette before those of curves: background, grid, label, title.
const FIXED: [[u8; 3]; 4] = [[255; 3], [221; 3], [102; 3], [34; 3]];

/// Number of the first colour of a box.
const TONES: usize = FIXED.len() + 2 * COLOURS;

/// The pixels of a picture, as numbers of the palette.
struct Pixels {
    width: usize,
    height: usize,
    all: Vec<u8>,
}

/// Draws a picture.
pub fn draw(picture: &Picture) -> Vec<u8> {
    let (width, height) = ((picture.width * SCALE) as usize, (picture.height * SCALE) as usize);
    let mut pixels = Pixels { width, height, all: vec![0; width * height] };
    for shape in &picture.shapes {
        match shape {
            Shape::Line { role, points } => {
                let thick = if matches!(role, Role::Grid | Role::Link) { 1 } else { 3 };
                pixels.line(points, colour(*role), thick);
            }
            Shape::Text { role, at, anchor, text } => pixels.text(text, *at, *anchor, colour(*role)),
            Shape::Box { tone, corner, size, .. } => pixels.fill(*corner, *size, (TONES + *tone as usize) as u8),
        }
    }
    file(&pixels)
}

fn colour(role: Role) -> u8 {
    match role {
        Role::Grid => 1,
        Role::Label | Role::Link => 2,
        Role::Title | Role::Inside => 3,
        Role::Curve(run) => (FIXED.len() + 2 * (run % COLOURS)) as u8,
        Role::Faint(run) => (FIXED.len() + 2 * (run % COLOURS) + 1) as u8,
    }
}

fn palette() -> Vec<[u8; 3]> {
    let curves = (0..COLOURS).flat_map(|run| [rgb(run, 0.42), rgb(run, 0.86)]);
    FIXED.into_iter().chain(curves).chain(Tone::ALL.map(|tone| tone.rgb()[0])).collect()
}

impl Pixels {
    fn set(&mut self, x: i64, y: i64, colour: u8) {
        if (0..self.width as i64).contains(&x) && (0..self.height as i64).contains(&y) {
            self.all[y as usize * self.width + x as usize] = colour;
        }
    }

    fn fill(&mut self, (x, y): (f64, f64), (wide, tall): (f64, f64), colour: u8) {
        let range = |from: f64, length: f64, most: usize| {
            let begin = (from * SCALE).round().max(0.0) as usize;
            let end = ((from + length) * SCALE).round().max(0.0) as usize;
            begin.min(most)..end.max(begin + 1).min(most)
        };
        let columns = range(x, wide, self.width);
        for row in range(y, tall, self.height) {
            self.all[row * self.width..][columns.clone()].fill(colour);
        }
    }

    /// A line through points, drawn by squares.
    fn line(&mut self, points: &[(f64, f64)], colour: u8, thick: i64) {
        let to = |(x, y): (f64, f64)| (x * SCALE, y * SCALE);
        let last = points.len().saturating_sub(1);
        for (i, from) in points.iter().enumerate() {
            let ((x, y), (x1, y1)) = (to(*from), to(points[(i + 1).min(last)]));
            let steps = (x1 - x).abs().max((y1 - y).abs()).ceil().max(1.0);
            for s in 0..=steps as usize {
                let t = s as f64 / steps;
                let at = ((x + t * (x1 - x)).floor() as i64, (y + t * (y1 - y)).floor() as i64);
                for d in 0..thick * thick {
                    self.set(at.0 + d % thick - thick / 2, at.1 + d / thick - thick / 2, colour);
                }
            }
        }
    }

    fn text(&mut self, text: &str, (x, y): (f64, f64), anchor: Anchor, colour: u8) {
        let scale = SCALE as i64;
        let length = text.chars().count() as i64 * ADVANCE * scale;
        let left = (x * SCALE) as i64
            - match anchor {
                Anchor::Start => 0,
                Anchor::Middle => length / 2,
                Anchor::End => length,
            };
        let top = (y * SCALE) as i64 - HEIGHT * scale;
        for (i, c) in text.chars().enumerate() {
            for (column, bits) in glyph(c).iter().enumerate() {
                for row in (0..8).filter(|row| bits >> row & 1 == 1) {
                    let (at_x, at_y) = (left + (i as i64 * ADVANCE + column as i64) * scale, top + row * scale);
                    for d in 0..scale * scale {
                        self.set(at_x + d % scale, at_y + d / scale, colour);
                    }
                }
            }
        }
    }
}

/// A file: header, palette, pixels, end.
fn file(pixels: &Pixels) -> Vec<u8> {
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = vec![];
    header.extend((pixels.width as u32).to_be_bytes());
    header.extend((pixels.height as u32).to_be_bytes());
    // Eight bits, a palette, deflate, filters for each line, not interlaced.
    header.extend([8, 3, 0, 0, 0]);
    chunk(&mut out, b"IHDR", &header);
    chunk(&mut out, b"PLTE", &palette().concat());
    // No filter: zero before each line.
    let lines: Vec<u8> = pixels.all.chunks(pixels.width).flat_map(|line| [&[0], line].concat()).collect();
    chunk(&mut out, b"IDAT", &zlib(&lines));
    chunk(&mut out, b"IEND", &[]);
    out
}

fn chunk(out: &mut Vec<u8>, kind: &[u8; 4], content: &[u8]) {
    out.extend((content.len() as u32).to_be_bytes());
    let start = out.len();
    out.extend(kind);
    out.extend(content);
    out.extend(crc32fast::hash(&out[start..]).to_be_bytes());
}

/// Bytes in the format of zlib (RFC 1950 and 1951): one block with the fixed codes, in which runs of a byte are copies of the byte before. Pictures
/// of lines consist of such runs.
fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut bits = Bits { out: vec![0x78, 0x01], held: 0, count: 0 };
    // The last block, with fixed codes.
    bits.push(0b011, 3);
    let mut i = 0;
    while i < bytes.len() {
        bits.symbol(u16::from(bytes[i]));
        let mut run = bytes[i + 1..].iter().take_while(|b| **b == bytes[i]).count();
        i += 1 + run;
        while run >= 3 {
            // The lengths whose symbols have no further bits: 258, and 3 to 10.
            let length = if run >= 258 { 258 } else { run.min(10) };
            bits.symbol(if length == 258 { 285 } else { 254 + length as u16 });
            // The distance 1.
            bits.push(0, 5);
            run -= length;
        }
        (0..run).for_each(|_| bits.symbol(u16::from(bytes[i - 1])));
    }
    bits.symbol(256);
    bits.push(0, 7);
    let (a, b) = bytes.iter().fold((1u32, 0u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    bits.out.extend((b << 16 | a).to_be_bytes());
    bits.out
}

/// Bits from the lowest of each byte on.
struct Bits {
    out: Vec<u8>,
    held: u32,
    count: u32,
}

impl Bits {
    /// Adds the lowest bits of a number; those that do not fill a byte are held.
    fn push(&mut self, bits: u32, count: u32) {
        self.held |= bits << self.count;
        self.count += count;
        while self.count >= 8 {
            self.out.push(self.held as u8);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    /// Adds a symbol by its fixed code (RFC 1951, 3.2.6), whose highest bit comes first.
    fn symbol(&mut self, symbol: u16) {
        let s = u32::from(symbol);
        let (code, count) = match symbol {
            0..144 => (0x30 + s, 8),
            144..256 => (0x190 + s - 144, 9),
            256..280 => (s - 256, 7),
            _ => (0xc0 + s - 280, 8),
        };
        self.push(code.reverse_bits() >> (32 - count), count);
    }
}
