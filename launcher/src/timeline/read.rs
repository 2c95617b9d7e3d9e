//! Reads the slices of a timeline.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;
use std::rc::Rc;

use oflow_proto::perfetto::track_event::Type;
use oflow_proto::perfetto::{InternedData, TrackDescriptor, TrackEvent};

use super::packets::Packets;
use crate::Failed;

/// Slices of a step, or of a run without steps, that are held at most.
const MOST: usize = 4_000_000;

/// Kind of a slice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A call of an op, `backward`, or a run of a graph: what contains other work.
    Call,
    Kernel,
    Collective,
    /// Waiting for late ranks within a collective.
    Late,
    /// Waiting for a stream.
    Wait,
    Data,
    Checkpoint,
    Span,
    Scope,
    Boxing,
    Step,
}

impl Kind {
    fn of(category: &str, name: &str) -> Option<Kind> {
        Some(match category {
            "op" | "backward" | "graph" => Kind::Call,
            "kernel" | "launch" => Kind::Kernel,
            "collective" => Kind::Collective,
            "wait" if name == "wait for a stream" => Kind::Wait,
            "wait" => Kind::Late,
            "data" => Kind::Data,
            "checkpoint" => Kind::Checkpoint,
            "span" => Kind::Span,
            "scope" => Kind::Scope,
            "boxing" => Kind::Boxing,
            "step" => Kind::Step,
            _ => return None,
        })
    }
}

/// A line of the program.
#[derive(Debug)]
pub struct Line {
    pub file: String,
    pub number: u32,
    pub scope: String,
}

/// A value that a slice has beside its name.
#[derive(Clone, Debug)]
pub enum Note {
    Count(u64),
    Text(Rc<str>),
}

/// A part of a track, in nanoseconds on the clock of the trace.
#[derive(Clone, Debug)]
pub struct Slice {
    pub rank: usize,
    pub track: u64,
    pub kind: Kind,
    pub name: Rc<str>,
    pub begin: u64,
    pub end: u64,
    pub line: Option<Rc<Line>>,
    pub notes: Vec<(Rc<str>, Note)>,
    /// Numbers that the members of a collective have in common.
    pub flows: Vec<u64>,
}

/// The ranks and tracks of a trace.
#[derive(Default, Debug)]
pub struct Tracks {
    /// Names of the ranks by number: `rank 0 on a`.
    pub ranks: BTreeMap<usize, String>,
    /// Names of threads and of a rank's own tracks.
    pub names: BTreeMap<u64, String>,
    /// Files that end within a packet.
    pub cut: usize,
}

/// Texts of a sequence of packets by number.
#[derive(Default)]
struct Texts {
    categories: BTreeMap<u64, Rc<str>>,
    names: BTreeMap<u64, Rc<str>>,
    notes: BTreeMap<u64, Rc<str>>,
    strings: BTreeMap<u64, Rc<str>>,
    lines: BTreeMap<u64, Rc<Line>>,
}

impl Texts {
    fn add(&mut self, new: InternedData) {
        let put = |all: &mut BTreeMap<u64, Rc<str>>, iid: Option<u64>, text: &str| {
            all.insert(iid.unwrap_or(0), text.into());
        };
        new.event_categories.iter().for_each(|n| put(&mut self.categories, n.iid, n.name()));
        new.event_names.iter().for_each(|n| put(&mut self.names, n.iid, n.name()));
        new.debug_annotation_names.iter().for_each(|n| put(&mut self.notes, n.iid, n.name()));
        for string in &new.debug_annotation_string_values {
            put(&mut self.strings, string.iid, &String::from_utf8_lossy(string.str()));
        }
        for line in new.source_locations {
            let place = Line {
                file: line.file_name().to_string(),
                number: line.line_number(),
                scope: line.function_name().to_string(),
            };
            self.lines.insert(line.iid(), Rc::new(place));
        }
    }
}

#[derive(Default)]
struct Sequence {
    rank: Option<usize>,
    texts: Texts,
    /// The slices of each track that have not ended; `None` for one of no known kind.
    open: BTreeMap<u64, Vec<Option<Slice>>>,
}

/// Calls `take` with each slice of a trace that has begun and ended. Slices of a track come in the order in which they end.
///
/// # Errors
/// If the file cannot be read or is no timeline of oflow, and those of `take`.
pub fn scan(path: &Path, tracks: &mut Tracks, mut take: impl FnMut(Slice) -> Result<(), Failed>) -> Result<(), Failed> {
    let failed = |e: &dyn std::fmt::Display| Failed::new(format!("cannot read {}: {e}", path.display()));
    let file = oflow_files::open(path).map_err(|e| Failed::new(e.to_string()))?;
    let length = file.metadata().map_err(|e| failed(&e))?.len();
    let mut packets = Packets::new(BufReader::with_capacity(1 << 16, file));
    let mut sequences: BTreeMap<u32, Sequence> = BTreeMap::new();
    let mut known = false;
    while let Some(bytes) = packets.next().map_err(|e| failed(&e))? {
        let packet = oflow_proto::read_packet(bytes).map_err(|_| failed(&"a packet of it is broken"))?;
        let sequence = sequences.entry(packet.trusted_packet_sequence_id()).or_default();
        // Texts before are forgotten.
        if packet.sequence_flags() & 1 == 1 {
            sequence.texts = Texts::default();
        }
        if let Some(track) = &packet.track_descriptor {
            describe(tracks, sequence, track);
            known |= sequence.rank.is_some();
        }
        let at = packet.timestamp();
        if let Some(new) = packet.interned_data {
            sequence.texts.add(new);
        }
        let (Some(event), Some(rank)) = (packet.track_event, sequence.rank) else { continue };
        let open = sequence.open.entry(event.track_uuid()).or_default();
        match event.r#type() {
            Type::SliceBegin => open.push(begun(&sequence.texts, rank, at, &event)),
            Type::SliceEnd => {
                if let Some(Some(slice)) = open.pop() {
                    take(Slice { end: at.max(slice.begin), ..slice })?;
                }
            }
            _ => {}
        }
    }
    if !known {
        return Err(failed(&"no rank of oflow is in it\n  help: `oflaunch --trace DIR …` writes DIR/job.pftrace"));
    }
    tracks.cut += usize::from(packets.whole() < length);
    Ok(())
}

/// Notes what a track is.
fn describe(tracks: &mut Tracks, sequence: &mut Sequence, track: &TrackDescriptor) {
    if let Some(process) = &track.process {
        let name = process.process_name();
        let number = name.strip_prefix("rank ").and_then(|rest| rest.split(' ').next()?.parse().ok());
        sequence.rank = number;
        tracks.ranks.extend(number.map(|n| (n, name.to_string())));
    } else {
        let name = track.thread.as_ref().map_or(track.name(), |t| t.thread_name());
        tracks.names.insert(track.uuid(), name.to_string());
    }
}

/// A slice that begins; `None` if it is of no known kind.
fn begun(texts: &Texts, rank: usize, at: u64, event: &TrackEvent) -> Option<Slice> {
    let name = texts.names.get(&event.name_iid())?.clone();
    let kind = Kind::of(texts.categories.get(event.category_iids.first()?)?, &name)?;
    let note = |a: &oflow_proto::perfetto::DebugAnnotation| {
        let note = match (a.uint_value, a.string_value_iid) {
            (Some(n), _) => Note::Count(n),
            (None, Some(iid)) => Note::Text(texts.strings.get(&iid)?.clone()),
            _ => return None,
        };
        Some((texts.notes.get(&a.name_iid())?.clone(), note))
    };
    Some(Slice {
        rank,
        track: event.track_uuid(),
        kind,
        name,
        begin: at,
        end: at,
        line: event.source_location_iid.and_then(|iid| texts.lines.get(&iid).cloned()),
        notes: event.debug_annotations.iter().filter_map(note).collect(),
        flows: event.flow_ids.clone(),
    })
}

/// The slices of these ranks that lie in a window, at least in part, by track and begin; those that contain others before these.
///
/// # Errors
/// Those of [`scan`], and if there are too many.
pub fn within(
    files: &[impl AsRef<Path>],
    ranks: &[usize],
    (from, to): (u64, u64),
) -> Result<BTreeMap<(usize, u64), Vec<Slice>>, Failed> {
    let mut held: BTreeMap<(usize, u64), Vec<Slice>> = BTreeMap::new();
    let mut count = 0;
    for file in files {
        scan(file.as_ref(), &mut Tracks::default(), |slice| {
            if ranks.contains(&slice.rank) && slice.begin < to && slice.end > from {
                count += 1;
                held.entry((slice.rank, slice.track)).or_default().push(slice);
            }
            if count > MOST {
                return Err(Failed::new(format!(
                    "more than {MOST} slices are asked for\n  help: choose fewer steps with --step, or ranks with --ranks"
                )));
            }
            Ok(())
        })?;
    }
    for slices in held.values_mut() {
        // Of two with the same times the one that contains the other ended later in the file.
        slices.reverse();
        slices.sort_by_key(|s| (s.begin, std::cmp::Reverse(s.end)));
    }
    Ok(held)
}
