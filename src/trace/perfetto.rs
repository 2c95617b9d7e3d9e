//! Events as packets of a Perfetto trace (<https://perfetto.dev/docs/reference/synthetic-track-event>).
//!
//! A rank is a process of the trace, a thread of it a thread. Beside the threads a rank has tracks of its own: its steps, its boxings with
//! their bytes, the name scopes of the calls of each thread, and the bytes of its memory. Names, lines and texts are written once and then
//! named by number (*interned*); all packets of a rank are one sequence.

use super::event::{Event, What};
use crate::error::CallSite;
use crate::intern::FixedMap;
use oflow_proto::append_packet;
use oflow_proto::perfetto::counter_descriptor::Unit;
use oflow_proto::perfetto::track_event::Type;
use oflow_proto::perfetto::{
    CounterDescriptor, DebugAnnotation, InternedData, InternedName, InternedString, ProcessDescriptor, SourceLocation,
    ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent,
};
use std::collections::{BTreeMap, BTreeSet};

/// Texts after which all are forgotten and written anew: a program whose shapes change all the time has no end of them.
const TEXTS: usize = 65_536;

/// Flags of a packet: earlier interned data is forgotten; interned data is needed.
const CLEARED: u32 = 1;
const NEEDED: u32 = 2;

/// Process ids of the ranks in the trace are multiples of this, threads lie between.
const PIDS: i32 = 1000;

/// Tracks of a rank beside its threads.
#[derive(Clone, Copy)]
enum Own {
    Process,
    Steps,
    Boxings,
    Memory,
    Clock,
}

/// Numbers of texts of one kind.
#[derive(Default)]
struct Texts(FixedMap<String, u64>);

impl Texts {
    /// The number of a text, and whether it is new.
    fn number(&mut self, text: &str) -> (u64, bool) {
        if let Some(n) = self.0.get(text) {
            return (*n, false);
        }
        let n = self.0.len() as u64 + 1;
        self.0.insert(text.to_string(), n);
        (n, true)
    }
}

#[derive(Default)]
struct Interned {
    categories: Texts,
    names: Texts,
    annotations: Texts,
    strings: Texts,
    sites: FixedMap<CallSite, u64>,
}

impl Interned {
    fn count(&self) -> usize {
        self.names.0.len() + self.strings.0.len() + self.sites.len()
    }
}

/// The name scopes that are open on the track of a thread.
#[derive(Default)]
struct Scopes {
    open: Vec<&'static str>,
    path: &'static str,
    /// End of the last call.
    until: u64,
}

/// Writes the events of one rank.
pub(super) struct Writer {
    rank: usize,
    sequence: u32,
    cleared: bool,
    interned: Interned,
    new: InternedData,
    threads: BTreeSet<u32>,
    tracks: BTreeSet<u64>,
    scopes: BTreeMap<u32, Scopes>,
    /// Names of the counters of memory.
    counters: Texts,
    out: Vec<u8>,
}

impl Writer {
    /// A writer of a rank; `start` counts the starts of the job. The first packets name the rank.
    pub(super) fn new(rank: usize, start: u32, host: &str) -> Writer {
        // Distinct among the ranks and starts of a job, whose files may be concatenated.
        let sequence = (rank as u32 + 1).wrapping_add(start.wrapping_mul(1 << 16));
        let mut writer = Writer {
            rank,
            sequence,
            cleared: true,
            interned: Interned::default(),
            new: InternedData::default(),
            threads: BTreeSet::new(),
            tracks: BTreeSet::new(),
            scopes: BTreeMap::new(),
            counters: Texts::default(),
            out: Vec::new(),
        };
        let process =
            ProcessDescriptor { pid: Some(writer.pid()), process_name: Some(format!("rank {rank} on {host}")) };
        writer.describe(TrackDescriptor {
            uuid: Some(writer.own(Own::Process)),
            process: Some(process),
            ..Default::default()
        });
        writer
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.rank + 1).unwrap_or(1).saturating_mul(PIDS)
    }

    fn own(&self, track: Own) -> u64 {
        ((self.rank as u64 + 1) << 20) + track as u64
    }

    fn thread(&self, number: u32) -> u64 {
        ((self.rank as u64 + 1) << 20) + (1 << 16) + u64::from(number % (1 << 15)) * 2
    }

    /// The track of the name scopes of a thread.
    fn scopes_of(&self, number: u32) -> u64 {
        self.thread(number) + 1
    }

    /// The bytes written since the last time.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn packet(&mut self, mut packet: TracePacket) {
        packet.trusted_packet_sequence_id = Some(self.sequence);
        append_packet(&packet, &mut self.out);
    }

    fn describe(&mut self, track: TrackDescriptor) {
        self.packet(TracePacket { track_descriptor: Some(track), ..Default::default() });
    }

    /// Describes a track of the rank before its first event.
    fn named(&mut self, uuid: u64, name: &str, unit: Option<Unit>) {
        if self.tracks.insert(uuid) {
            self.describe(TrackDescriptor {
                uuid: Some(uuid),
                parent_uuid: Some(self.own(Own::Process)),
                name: Some(name.to_string()),
                counter: unit.map(|unit| CounterDescriptor { unit: Some(unit.into()) }),
                ..Default::default()
            });
        }
    }

    fn name(&mut self, text: &str) -> u64 {
        let (iid, new) = self.interned.names.number(text);
        if new {
            self.new.event_names.push(InternedName { iid: Some(iid), name: Some(text.to_string()) });
        }
        iid
    }

    fn category(&mut self, text: &str) -> u64 {
        let (iid, new) = self.interned.categories.number(text);
        if new {
            self.new.event_categories.push(InternedName { iid: Some(iid), name: Some(text.to_string()) });
        }
        iid
    }

    fn annotation(&mut self, text: &str) -> u64 {
        let (iid, new) = self.interned.annotations.number(text);
        if new {
            self.new.debug_annotation_names.push(InternedName { iid: Some(iid), name: Some(text.to_string()) });
        }
        iid
    }

    fn count(&mut self, name: &str, value: u64) -> DebugAnnotation {
        DebugAnnotation { name_iid: Some(self.annotation(name)), uint_value: Some(value), ..Default::default() }
    }

    fn text(&mut self, name: &str, text: &str) -> DebugAnnotation {
        let (iid, new) = self.interned.strings.number(text);
        if new {
            let string = InternedString { iid: Some(iid), str: Some(text.as_bytes().to_vec()) };
            self.new.debug_annotation_string_values.push(string);
        }
        DebugAnnotation { name_iid: Some(self.annotation(name)), string_value_iid: Some(iid), ..Default::default() }
    }

    fn site(&mut self, site: CallSite) -> Option<u64> {
        if site.file.is_empty() {
            return None;
        }
        if let Some(iid) = self.interned.sites.get(&site) {
            return Some(*iid);
        }
        let iid = self.interned.sites.len() as u64 + 1;
        self.interned.sites.insert(site, iid);
        let scope = site.scope.path();
        self.new.source_locations.push(SourceLocation {
            iid: Some(iid),
            file_name: Some(site.file.to_string()),
            function_name: (!scope.is_empty()).then(|| scope.to_string()),
            line_number: Some(site.line),
        });
        Some(iid)
    }

    /// Writes an event of a track, with what was interned for it.
    fn event(&mut self, at: u64, event: TrackEvent) {
        let new = std::mem::take(&mut self.new);
        let flags = if std::mem::take(&mut self.cleared) { CLEARED | NEEDED } else { NEEDED };
        self.packet(TracePacket {
            timestamp: Some(at),
            track_event: Some(event),
            interned_data: (new != InternedData::default()).then_some(new),
            sequence_flags: Some(flags),
            ..Default::default()
        });
    }

    fn begin_slice(&mut self, track: u64, at: u64, name: &str, category: &str, more: TrackEvent) {
        let event = TrackEvent {
            r#type: Some(Type::SliceBegin.into()),
            track_uuid: Some(track),
            name_iid: Some(self.name(name)),
            category_iids: vec![self.category(category)],
            ..more
        };
        self.event(at, event);
    }

    fn end_slice(&mut self, track: u64, at: u64) {
        let event = TrackEvent { r#type: Some(Type::SliceEnd.into()), track_uuid: Some(track), ..Default::default() };
        self.event(at, event);
    }

    /// Writes a counter's value, or for values that say something about the rank an instant.
    pub(super) fn clock(&mut self, at: u64, offset_ns: i64, error_ns: Option<u64>) {
        let track = self.own(Own::Clock);
        self.named(track, "clock", None);
        let name = self.annotation("offset_ns");
        let mut notes =
            vec![DebugAnnotation { name_iid: Some(name), int_value: Some(offset_ns), ..Default::default() }];
        notes.extend(error_ns.map(|e| self.count("error_ns", e)));
        let event = TrackEvent {
            r#type: Some(Type::Instant.into()),
            track_uuid: Some(track),
            name_iid: Some(self.name(if error_ns.is_some() { "clock" } else { "clock not compared" })),
            category_iids: vec![self.category("clock")],
            debug_annotations: notes,
            ..Default::default()
        };
        self.event(at, event);
    }

    /// Writes the events of a thread, which come by start; the longer of two that start together first. `shift` is added to their times.
    pub(super) fn events(&mut self, (number, name): (u32, &str), events: &[Event], shift: i64) {
        if self.interned.count() > TEXTS {
            self.interned = Interned::default();
            self.cleared = true;
        }
        let track = self.thread(number);
        if self.threads.insert(number) {
            let tid = i64::from(self.pid()) + i64::from(number % PIDS as u32);
            let thread =
                ThreadDescriptor { pid: Some(self.pid()), tid: Some(tid), thread_name: Some(name.to_string()) };
            self.describe(TrackDescriptor { uuid: Some(track), thread: Some(thread), ..Default::default() });
        }
        // Ends of the slices that are open on the track.
        let mut open: Vec<u64> = vec![];
        for event in events {
            let (begin, end) = (event.begin.saturating_add_signed(shift), event.end.saturating_add_signed(shift));
            match &event.what {
                What::Step { number, since } => {
                    let steps = self.own(Own::Steps);
                    self.named(steps, "steps", None);
                    let since = since.saturating_add_signed(shift);
                    self.begin_slice(steps, since, &format!("step {number}"), "step", TrackEvent::default());
                    self.end_slice(steps, end);
                }
                What::Boxing(_) => self.boxing(event, begin, end),
                What::Memory { device, used_for, bytes } => {
                    let name = match *used_for {
                        "" => format!("memory in use, {device}"),
                        used_for => format!("memory of {used_for}, {device}"),
                    };
                    let memory = self.own(Own::Memory) + (self.counters.number(&name).0 << 4);
                    self.named(memory, &name, Some(Unit::SizeBytes));
                    let counter = TrackEvent {
                        r#type: Some(Type::Counter.into()),
                        track_uuid: Some(memory),
                        counter_value: Some(i64::try_from(*bytes).unwrap_or(i64::MAX)),
                        ..Default::default()
                    };
                    self.event(end, counter);
                }
                _ => {
                    while open.last().is_some_and(|e| *e <= begin) {
                        self.end_slice(track, open.pop().unwrap_or(begin));
                    }
                    if matches!(event.what, What::Call { .. }) {
                        self.scope(number, event.site.scope.path(), begin, end);
                    }
                    self.slice(track, event, begin);
                    open.push(end);
                    if let What::Collective(c) = &event.what
                        && c.waited_ns > 0
                    {
                        self.begin_slice(track, begin, "wait for late ranks", "wait", TrackEvent::default());
                        open.push((begin + c.waited_ns).min(end));
                    }
                }
            }
        }
        while let Some(end) = open.pop() {
            self.end_slice(track, end);
        }
    }

    fn slice(&mut self, track: u64, event: &Event, begin: u64) {
        let mut more = TrackEvent { source_location_iid: self.site(event.site), ..Default::default() };
        let name = match &event.what {
            What::Call { op, .. } | What::Kernel(op) | What::Launch(op) => op,
            What::Backward => "backward",
            What::Collective(c) => {
                let notes = [("bytes", c.bytes), ("ranks", c.ranks as u64), ("waited_ns", c.waited_ns)];
                more.debug_annotations.extend(notes.map(|(name, value)| self.count(name, value)));
                more.debug_annotations.push(self.text("op", c.op));
                more.flow_ids = c.flows.to_vec();
                c.kind
            }
            What::Wait => "wait for a stream",
            What::BatchWait(rows) => {
                more.debug_annotations.push(self.count("rows", *rows as u64));
                "wait for a batch"
            }
            What::Batch { rows, cpu_ns } => {
                more.debug_annotations.push(self.count("rows", *rows as u64));
                more.debug_annotations.push(self.count("cpu_ns", *cpu_ns));
                "make a batch"
            }
            What::Checkpoint(what) => what,
            What::Graph => "graph",
            What::Span(name) => name,
            What::Step { .. } | What::Boxing(_) | What::Memory { .. } => return,
        };
        self.begin_slice(track, begin, name, event.what.category(), more);
    }

    fn boxing(&mut self, event: &Event, begin: u64, end: u64) {
        let What::Boxing(b) = &event.what else { return };
        let track = self.own(Own::Boxings);
        self.named(track, "boxings", None);
        let mut notes = vec![self.count("bytes", b.bytes), self.count("moving_ns", b.moving_ns)];
        if b.together > 1 {
            notes.push(self.count("together", b.together as u64));
        }
        notes.push(self.text("change", &b.moved.to_string()));
        notes.push(self.text("pass", if b.backward { "backward" } else { "forward" }));
        let more =
            TrackEvent { source_location_iid: self.site(event.site), debug_annotations: notes, ..Default::default() };
        self.begin_slice(track, begin, b.op, "boxing", more);
        self.end_slice(track, end);
    }

    /// Opens and closes slices on the track of the scopes of a thread, so that those of this path are open.
    fn scope(&mut self, number: u32, path: &'static str, begin: u64, end: u64) {
        let track = self.scopes_of(number);
        let mut scopes = self.scopes.remove(&number).unwrap_or_default();
        // Calls nest: an inner one has been covered by the outer.
        if begin >= scopes.until || path != scopes.path {
            if path != scopes.path {
                let parts: Vec<&'static str> = path.split('.').filter(|p| !p.is_empty()).collect();
                let same = parts.iter().zip(&scopes.open).take_while(|(a, b)| a == b).count();
                for _ in same..scopes.open.len() {
                    self.end_slice(track, scopes.until.min(begin));
                }
                scopes.open.truncate(same);
                for part in &parts[same..] {
                    self.named(track, "name scopes", None);
                    self.begin_slice(track, begin, part, "scope", TrackEvent::default());
                    scopes.open.push(part);
                }
                scopes.path = path;
            }
            scopes.until = end.max(scopes.until);
        }
        self.scopes.insert(number, scopes);
    }

    /// Closes what is open: the last events have been written.
    pub(super) fn finish(&mut self) {
        for (number, scopes) in std::mem::take(&mut self.scopes) {
            let track = self.scopes_of(number);
            scopes.open.iter().for_each(|_| self.end_slice(track, scopes.until));
        }
    }
}
