//! A timeline as a picture: for each rank its name scopes, threads and boxings, each with a row for each depth of slices.

use std::collections::BTreeMap;

use oflow::text::{bytes, head};

use super::read::{Kind, Note, Slice};
use super::{Part, time};
use crate::picture::axis::Axis;
use crate::picture::{Anchor, CHARACTER, Picture, Role, SMALL_CHARACTER, Tone, fitted};
use crate::terminal::visible;

/// Width of a picture in which none is given.
const WIDTH: f64 = 1200.0;
/// Pixels for the names of tracks, and at the right.
const NAMES: f64 = 138.0;
const RIGHT: f64 = 16.0;
/// Pixels of a row, of the space below it, and of a line of text.
const ROW: f64 = 15.0;
const GAP: f64 = 1.0;
const LINE: f64 = 18.0;
/// Rows of a track: slices that lie deeper are not drawn.
const MOST_ROWS: usize = 8;
/// Slices that are narrower are drawn together, and have no text.
const NARROW: f64 = 1.0;
/// Members of a collective are linked where their slices are this wide.
const LINKED: f64 = 3.0;

/// Colours with what they stand for.
const LEGEND: [(Tone, &str); 8] = [
    (Tone::Green, "kernels"),
    (Tone::Orange, "communication"),
    (Tone::Red, "waiting for late ranks"),
    (Tone::Purple, "data"),
    (Tone::Brown, "checkpoints"),
    (Tone::Blue, "name scopes, spans"),
    (Tone::Grey, "calls"),
    (Tone::Pale, "waiting for a stream"),
];

fn tone(kind: Kind) -> Tone {
    match kind {
        Kind::Call | Kind::Step => Tone::Grey,
        Kind::Kernel => Tone::Green,
        Kind::Collective | Kind::Boxing => Tone::Orange,
        Kind::Late => Tone::Red,
        Kind::Wait => Tone::Pale,
        Kind::Data => Tone::Purple,
        Kind::Checkpoint => Tone::Brown,
        Kind::Span | Kind::Scope => Tone::Blue,
    }
}

/// Lays a picture out.
pub fn draw(part: &Part, width: Option<u32>) -> Picture {
    let width = width.map_or(WIDTH, f64::from);
    let picture = Picture { title: "A timeline", width, height: 0.0, shapes: vec![] };
    let mut layout = Layout { picture, window: part.window, y: 0.0, members: BTreeMap::new() };
    layout.head(part);
    let (top, head) = (layout.y, layout.picture.shapes.len());
    for (rank, name) in &part.ranks {
        layout.rank(part, *rank, name);
    }
    let bottom = layout.y;
    // Lines of the axis lie below the slices.
    let slices = layout.picture.shapes.split_off(head);
    layout.axis(top, bottom);
    layout.picture.shapes.extend(slices);
    layout.links();
    layout.picture.height = bottom + LINE + 12.0;
    layout.picture
}

struct Layout {
    picture: Picture,
    window: (u64, u64),
    y: f64,
    /// The slices of each flow: left side, top and bottom.
    members: BTreeMap<u64, Vec<(f64, f64, f64)>>,
}

/// Narrow slices that lie side by side.
struct Together {
    from: f64,
    to: f64,
    tone: Tone,
    count: usize,
}

impl Layout {
    /// Where a time is, within the picture.
    fn place(&self, at: u64) -> f64 {
        let (from, to) = self.window;
        let share = at.clamp(from, to).saturating_sub(from) as f64 / (to - from) as f64;
        NAMES + share * (self.picture.width - NAMES - RIGHT)
    }

    /// The title, and the colours that occur.
    fn head(&mut self, part: &Part) {
        let width = self.picture.width;
        self.picture.text(Role::Title, (12.0, 20.0), Anchor::Start, fitted(&part.title, width - 24.0));
        let (mut x, mut y) = (12.0, 42.0);
        for (tone, text) in LEGEND {
            if !part.slices.values().flatten().any(|s| self::tone(s.kind) == tone && s.kind != Kind::Step) {
                continue;
            }
            let length = 28.0 + CHARACTER * (text.len() as f64 + 1.0);
            if x > 12.0 && x + length > width {
                (x, y) = (12.0, y + LINE);
            }
            self.picture.fill(tone, (x, y - 10.0), (16.0, 11.0), "");
            self.picture.text(Role::Label, (x + 22.0, y), Anchor::Start, text);
            x += length;
        }
        self.y = y + 10.0;
    }

    /// The tracks of a rank: name scopes first, threads in the order of their first slices, boxings last.
    fn rank(&mut self, part: &Part, rank: usize, name: &str) {
        self.y += LINE + 4.0;
        self.picture.text(Role::Title, (12.0, self.y - 5.0), Anchor::Start, fitted(&visible(name), self.picture.width));
        let mut tracks: Vec<(u64, &Vec<Slice>)> =
            part.slices.iter().filter(|((of, _), _)| *of == rank).map(|((_, track), all)| (*track, all)).collect();
        let order = |slices: &[Slice]| {
            let kind = slices.first().map_or(Kind::Step, |s| s.kind);
            let group = match kind {
                Kind::Step => 0,
                Kind::Scope => 1,
                Kind::Boxing => 3,
                _ => 2,
            };
            (group, slices.first().map_or(0, |s| s.begin))
        };
        tracks.sort_by_key(|(_, slices)| order(slices));
        for (track, slices) in tracks {
            let name = part.tracks.names.get(&track).map_or("", |n| n.as_str());
            self.track(name, slices);
        }
    }

    /// A row for each depth of the slices, which come by begin, those that contain others first.
    fn track(&mut self, name: &str, slices: &[Slice]) {
        let mut rows: Vec<Vec<&Slice>> = vec![];
        let mut ends: Vec<u64> = vec![];
        for slice in slices {
            while ends.last().is_some_and(|end| *end <= slice.begin) {
                ends.pop();
            }
            let depth = ends.len();
            ends.push(slice.end);
            if depth >= MOST_ROWS {
                continue;
            }
            if rows.len() == depth {
                rows.push(vec![]);
            }
            rows[depth].push(slice);
        }
        if rows.is_empty() {
            return;
        }
        let most = ((NAMES - 20.0) / CHARACTER) as usize;
        self.picture.text(Role::Label, (12.0, self.y + 12.0), Anchor::Start, head(&visible(name), most));
        for row in rows {
            self.row(&row);
            self.y += ROW + GAP;
        }
        self.y += 3.0;
    }

    fn row(&mut self, slices: &[&Slice]) {
        let mut together: Option<Together> = None;
        for slice in slices {
            let (from, to) = (self.place(slice.begin), self.place(slice.end));
            let tone = tone(slice.kind);
            if to - from >= NARROW {
                self.flush(together.take());
                self.slice(slice, from, to);
                continue;
            }
            match &mut together {
                Some(t) if t.tone == tone && from - t.to < NARROW => {
                    (t.to, t.count) = (to, t.count + 1);
                }
                _ => {
                    self.flush(together.take());
                    together = Some(Together { from, to, tone, count: 1 });
                }
            }
        }
        self.flush(together);
    }

    fn flush(&mut self, together: Option<Together>) {
        let Some(t) = together else { return };
        let hint = if t.count > 1 { format!("{} short ones", t.count) } else { String::new() };
        self.picture.fill(t.tone, (t.from, self.y), ((t.to - t.from).max(0.6), ROW), hint);
    }

    fn slice(&mut self, slice: &Slice, from: f64, to: f64) {
        // A line of the page between neighbours.
        let wide = if to - from > 4.0 { to - from - 0.6 } else { to - from };
        self.picture.fill(tone(slice.kind), (from, self.y), (wide, ROW), hint(slice));
        let most = ((wide - 5.0) / SMALL_CHARACTER).floor();
        if most >= 3.0 {
            let text = head(&visible(&slice.name), most as usize);
            self.picture.text(Role::Inside, (from + 3.0, self.y + 11.0), Anchor::Start, text);
        }
        if to - from >= LINKED {
            for flow in &slice.flows {
                self.members.entry(*flow).or_default().push((from, self.y, self.y + ROW));
            }
        }
    }

    /// Milliseconds from the begin of the window on.
    fn axis(&mut self, top: f64, bottom: f64) {
        let (from, to) = self.window;
        let whole = (to - from) as f64 / 1e6;
        let Some(axis) = Axis::of([0.0, whole].into_iter(), false, 0.0) else { return };
        let across = self.picture.width - NAMES - RIGHT;
        for (value, text) in axis.ticks((across / 110.0).max(2.0) as usize, false) {
            let x = NAMES + value / whole * across;
            self.picture.line(Role::Grid, vec![(x, top), (x, bottom + 4.0)]);
            self.picture.text(Role::Label, (x, bottom + LINE), Anchor::Middle, text);
        }
        self.picture.text(Role::Label, (12.0, bottom + LINE), Anchor::Start, "ms");
    }

    /// Lines from each member of a collective to the next one below.
    fn links(&mut self) {
        for members in std::mem::take(&mut self.members).into_values() {
            for pair in members.windows(2) {
                let ((x, _, bottom), (below, top, _)) = (pair[0], pair[1]);
                self.picture.line(Role::Link, vec![(x, bottom), (below, top)]);
            }
        }
    }
}

/// The text of a slice: name, time, tensors and line.
fn hint(slice: &Slice) -> String {
    let mut text = format!("{}, {}", slice.name, time(slice.end - slice.begin));
    for (name, note) in &slice.notes {
        text += &match (&**name, note) {
            ("change", Note::Text(change)) => format!("\n{change}"),
            ("bytes", Note::Count(n)) => format!("\n{}", bytes(*n)),
            ("op", Note::Text(op)) => format!(" for {op}"),
            ("rows", Note::Count(n)) => format!(", {n} rows"),
            _ => continue,
        };
    }
    if let Some(line) = &slice.line {
        text += &format!("\n{}:{}", line.file, line.number);
        if !line.scope.is_empty() {
            text += &format!("\nin {}", line.scope);
        }
    }
    text
}
