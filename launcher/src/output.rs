//! The output of the ranks, merged line by line.
//!
//! A task per pipe splits the bytes into records (lines, or text that ends with a carriage return) and sends them to a writer
//! thread, which alone writes to the terminal. So a slow reader of the output slows down the ranks, but not the control service.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

use crate::logs::Logs;
use crate::repeats::Repeats;
use crate::terminal::visible;
use crate::undelivered::Undelivered;

/// A line longer than this is passed on in pieces.
const LONGEST_RECORD: usize = 64 << 10;
/// Records that may wait for the writer; then the pumps wait, and with them the ranks.
const QUEUE: usize = 256;
/// Lines of stderr that are kept of each rank for the report.
const TAIL_LINES: usize = 80;
/// Longest line kept for the report.
const TAIL_LINE_BYTES: usize = 400;

/// An output stream of oflaunch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output of the process.
    Out,
    /// Standard error of the process.
    Err,
}

/// The source of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A rank of the job.
    Rank(usize),
    /// The launcher oflaunch itself.
    Launcher,
}

/// Bytes of one source, at most one line; none: the stream has ended.
struct Record {
    stream: Stream,
    source: Source,
    bytes: Vec<u8>,
}

/// Receives what the ranks print, in pieces of any size: the rank, the stream, and the bytes.
pub type Tap = Box<dyn Fn(usize, Stream, &[u8]) + Send>;

/// A message to the writer.
enum Item {
    Record(Record),
    /// Lines below the output, instead of those before (`--top`).
    Frame(Vec<String>),
}

/// How the text of the ranks is shown.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    world: usize,
    prefix: bool,
    /// Whether stdout and stderr are terminals.
    terminal: [bool; 2],
    /// Whether prefixes have colours where they go to a terminal.
    colour: bool,
    /// Whether lines are drawn below the output. Then no rank has a terminal of its own: both would move the cursor.
    framed: bool,
}

/// Colours of the prefixes, by rank: those that are read on dark and on light ground. Red is left to errors.
const COLOURS: [&str; 5] = ["36", "32", "35", "34", "33"];

/// Whether the user wants colours on a terminal (<https://no-color.org>).
fn wants_colour(no_color: Option<OsString>, term: Option<OsString>) -> bool {
    no_color.is_none_or(|v| v.is_empty()) && term.is_none_or(|t| t != "dumb")
}

impl Style {
    /// Returns the style for a job of `world` ranks; `framed`: with lines drawn below the output.
    pub fn detect(world: usize, prefix: bool, framed: bool) -> Style {
        let terminal = [io::stdout().is_terminal(), io::stderr().is_terminal()];
        let colour = wants_colour(std::env::var_os("NO_COLOR"), std::env::var_os("TERM"));
        Style { world, prefix, terminal, colour, framed }
    }

    /// Returns whether a rank's output is passed on byte by byte, so that prompts and progress bars of rank 0 work.
    fn raw(&self, rank: usize, stream: Stream) -> bool {
        rank == 0 && !self.framed && (self.world == 1 || self.terminal[stream as usize])
    }

    fn prefix(&self, source: Source, stream: Stream) -> Option<String> {
        match source {
            Source::Rank(rank) if self.prefix && !self.raw(rank, stream) => {
                let plain = format!("[rank {rank}]");
                let coloured = self.colour && self.terminal[stream as usize];
                let colour = COLOURS[rank % COLOURS.len()];
                Some(if coloured { format!("\x1b[{colour}m{plain}\x1b[0m ") } else { format!("{plain} ") })
            }
            _ => None,
        }
    }
}

/// A handle to the writer thread.
#[derive(Clone)]
pub struct Output {
    items: mpsc::Sender<Item>,
    style: Style,
}

impl Output {
    /// Starts the writer, which also writes the ranks' logs, if there are any, and tells what cannot be written. `tap` is given what
    /// the ranks print. The thread ends when the last clone of the output is gone; wait for it, or the last lines are lost.
    pub fn start(
        style: Style,
        logs: Option<Logs>,
        tap: Option<Tap>,
        undelivered: Undelivered,
    ) -> io::Result<(Output, JoinHandle<()>)> {
        let (items, queue) = mpsc::channel(QUEUE);
        let copies = Copies { logs, tap };
        let writer = std::thread::Builder::new()
            .name("oflaunch-output".into())
            .spawn(move || write_all(queue, Sink::new(io::stdout(), io::stderr(), style), copies, undelivered))?;
        Ok((Output { items, style }, writer))
    }

    /// Prints a line of oflaunch.
    pub async fn say(&self, text: &str) {
        self.send(Stream::Err, Source::Launcher, line(text)).await;
    }

    /// Returns a handle that does not keep the writer running.
    pub fn weak(&self) -> WeakOutput {
        WeakOutput { items: self.items.downgrade() }
    }

    /// Returns whether a rank writes this stream to a terminal of its own, because oflaunch passes it on to one byte by byte.
    pub fn wants_terminal(&self, rank: usize, stream: Stream) -> bool {
        self.style.terminal[stream as usize] && self.style.raw(rank, stream)
    }

    /// Passes on a rank's output until its pipe is closed.
    pub async fn pump(self, mut from: impl AsyncRead + Unpin, rank: usize, stream: Stream, tail: Option<Arc<Tail>>) {
        let raw = self.style.raw(rank, stream);
        let mut splitter = Splitter::default();
        let mut records = Vec::new();
        let mut buffer = vec![0; 16 << 10];
        loop {
            let bytes = match from.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(n) => &buffer[..n],
            };
            if let Some(tail) = &tail {
                tail.push(bytes);
            }
            if raw {
                records.push(bytes.to_vec());
            } else {
                splitter.push(bytes, |record| records.push(record));
            }
            for bytes in records.drain(..) {
                self.send(stream, Source::Rank(rank), bytes).await;
            }
        }
        if let Some(rest) = splitter.finish() {
            self.send(stream, Source::Rank(rank), rest).await;
        }
        // The end of the stream.
        self.send(stream, Source::Rank(rank), Vec::new()).await;
    }

    async fn send(&self, stream: Stream, source: Source, bytes: Vec<u8>) {
        // The writer outlives every sender, so this cannot fail while the process is whole.
        let _writer_lives = self.items.send(Item::Record(Record { stream, source, bytes })).await;
    }
}

/// An [`Output`] for lines that may be dropped: after the end of the job, or if there are too many.
#[derive(Clone)]
pub struct WeakOutput {
    items: mpsc::WeakSender<Item>,
}

impl WeakOutput {
    /// Prints a line of oflaunch if there is room for it.
    pub fn say_if_room(&self, text: &str) {
        if let Some(items) = self.items.upgrade() {
            let bytes = line(text);
            // Who writes more than the terminal can take loses lines.
            let _no_room =
                items.try_send(Item::Record(Record { stream: Stream::Err, source: Source::Launcher, bytes }));
        }
    }

    /// Draws these lines below the output if there is room for them in the queue.
    pub fn draw_if_room(&self, lines: Vec<String>) {
        if let Some(items) = self.items.upgrade() {
            // The next ones come soon.
            let _no_room = items.try_send(Item::Frame(lines));
        }
    }
}

/// Where the output of the ranks goes to beside the terminal.
struct Copies {
    logs: Option<Logs>,
    tap: Option<Tap>,
}

fn write_all<O: Write, E: Write>(
    mut queue: mpsc::Receiver<Item>,
    mut sink: Sink<O, E>,
    Copies { mut logs, tap }: Copies,
    undelivered: Undelivered,
) {
    let mut repeats = Repeats::default();
    let mut unwritten = Unwritten { undelivered, closed: false, said: false };
    while let Some(first) = queue.blocking_recv() {
        let mut next = Some(first);
        while let Some(item) = next {
            match item {
                Item::Record(record) => {
                    if let Source::Rank(rank) = record.source {
                        logs.iter_mut().for_each(|logs| logs.write(rank, record.stream, &record.bytes));
                        tap.iter().for_each(|tap| tap(rank, record.stream, &record.bytes));
                    }
                    // Once nobody reads any more the records are still taken, so that nobody waits for room in the queue.
                    unwritten.unless_closed(|| sink.write_once(record, &mut repeats));
                }
                Item::Frame(lines) => unwritten.unless_closed(|| sink.replace_frame(lines)),
            }
            next = queue.try_recv().ok();
        }
        if let Some(logs) = &mut logs {
            logs.flush();
        }
        unwritten.unless_closed(|| sink.flush());
    }
    unwritten.unless_closed(|| sink.finish(repeats));
    if let Some(logs) = logs {
        logs.finish();
    }
}

/// Output that could not be written.
struct Unwritten {
    undelivered: Undelivered,
    closed: bool,
    said: bool,
}

impl Unwritten {
    /// Writes, unless nobody reads the output any more, which ends the job. Another failure, such as a full disk, is told once.
    fn unless_closed(&mut self, write: impl FnOnce() -> io::Result<()>) {
        if self.closed {
            return;
        }
        match write() {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                self.undelivered.closed();
            }
            Err(e) => {
                if !std::mem::replace(&mut self.said, true) {
                    self.undelivered.lost(&format!("cannot write the output of the ranks: {e}"));
                }
            }
        }
    }
}

/// Prints a line of oflaunch past the queue, if standard error can be written.
pub fn complain(text: &str) {
    // There is nobody else to tell; `eprintln!` would panic.
    let _unwritten = io::stderr().lock().write_all(&line(text));
}

/// A line of oflaunch. It may tell what a rank has said.
fn line(text: &str) -> Vec<u8> {
    format!("oflaunch: {}\n", visible(text)).into_bytes()
}

/// Cuts a stream of bytes into records: what ends with `\n`, with `\r\n`, or with a `\r` that no `\n` follows.
#[derive(Default)]
struct Splitter {
    pending: Vec<u8>,
}

impl Splitter {
    fn push(&mut self, bytes: &[u8], mut emit: impl FnMut(Vec<u8>)) {
        for &byte in bytes {
            // Only now is it known that the carriage return was not half of a line end.
            if self.pending.last() == Some(&b'\r') && byte != b'\n' {
                emit(std::mem::take(&mut self.pending));
            }
            self.pending.push(byte);
            if byte == b'\n' || self.pending.len() >= LONGEST_RECORD {
                emit(std::mem::take(&mut self.pending));
            }
        }
    }

    fn finish(self) -> Option<Vec<u8>> {
        (!self.pending.is_empty()).then_some(self.pending)
    }
}

/// Where the cursor of a stream stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cursor {
    /// At the start of an empty line.
    Fresh,
    /// At the start of a line on which the source has printed.
    Returned(Source),
    /// Behind text of the source.
    Within(Source),
}

/// Writes records so that each starts where it may, with its prefix.
struct Sink<O, E> {
    out: O,
    err: E,
    style: Style,
    /// One cursor per stream; if both are terminals they are one, and the first counts.
    cursors: [Cursor; 2],
    last: Stream,
    /// Lines below the output, and how many of them are on the terminal now.
    frame: Vec<String>,
    drawn: usize,
}

impl<O: Write, E: Write> Sink<O, E> {
    fn new(out: O, err: E, style: Style) -> Sink<O, E> {
        Sink { out, err, style, cursors: [Cursor::Fresh; 2], last: Stream::Out, frame: Vec::new(), drawn: 0 }
    }

    /// Writes a record, unless it is part of an error that another rank has printed.
    fn write_once(&mut self, record: Record, repeats: &mut Repeats) -> io::Result<()> {
        let Record { stream, source, bytes } = record;
        let now = match source {
            Source::Rank(rank) if stream == Stream::Err && self.style.prefix && !self.style.raw(rank, stream) => {
                if bytes.is_empty() {
                    repeats.end(rank)
                } else {
                    repeats.pass(rank, bytes)
                }
            }
            _ if bytes.is_empty() => Vec::new(),
            _ => vec![bytes],
        };
        now.into_iter().try_for_each(|bytes| self.write(&Record { stream, source, bytes }))
    }

    /// Writes what is left of the ranks' errors.
    fn finish(&mut self, repeats: Repeats) -> io::Result<()> {
        let (held, notes) = repeats.finish();
        let held = held.into_iter().map(|(rank, bytes)| (Source::Rank(rank), bytes));
        let notes = notes.into_iter().map(|line| (Source::Launcher, format!("{line}\n").into_bytes()));
        held.chain(notes).try_for_each(|(source, bytes)| self.write(&Record { stream: Stream::Err, source, bytes }))?;
        self.replace_frame(Vec::new())?;
        self.flush()
    }

    /// Takes lines to be drawn below the output by the next [`Sink::flush`].
    fn replace_frame(&mut self, lines: Vec<String>) -> io::Result<()> {
        self.lift()?;
        self.frame = lines;
        Ok(())
    }

    /// Removes the lines below the output from the terminal.
    fn lift(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.drawn) {
            0 => Ok(()),
            // Up to the first of them, and everything from there on away.
            n => write!(self.err, "\x1b[{n}A\r\x1b[J"),
        }
    }

    /// Draws the lines below the output if they are not there.
    fn draw(&mut self) -> io::Result<()> {
        if self.frame.is_empty() || self.drawn > 0 {
            return Ok(());
        }
        self.out.flush()?;
        let mut text = String::new();
        let cursor = &mut self.cursors[if self.style.terminal == [true, true] { 0 } else { Stream::Err as usize }];
        if *cursor != Cursor::Fresh {
            *cursor = Cursor::Fresh;
            text.push('\n');
        }
        // A line that is too long, because the terminal has become narrower, must not take two.
        text += "\x1b[?7l";
        for line in &self.frame {
            text += line;
            text.push('\n');
        }
        text += "\x1b[?7h";
        self.drawn = self.frame.len();
        self.err.write_all(text.as_bytes())
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        self.lift()?;
        if self.last != record.stream {
            // Where both streams go to one place the order is that of arrival.
            self.out.flush()?;
            self.err.flush()?;
            self.last = record.stream;
        }
        let shared = self.style.terminal == [true, true];
        let cursor = &mut self.cursors[if shared { 0 } else { record.stream as usize }];
        let mut text = Vec::with_capacity(record.bytes.len() + 16);
        match *cursor {
            Cursor::Returned(source) | Cursor::Within(source) if source != record.source => text.push(b'\n'),
            _ => {}
        }
        if *cursor != Cursor::Within(record.source)
            && let Some(prefix) = self.style.prefix(record.source, record.stream)
        {
            text.extend_from_slice(prefix.as_bytes());
        }
        text.extend_from_slice(&record.bytes);
        *cursor = match record.bytes.last() {
            None => *cursor,
            Some(b'\n') => Cursor::Fresh,
            Some(b'\r') => Cursor::Returned(record.source),
            Some(_) => Cursor::Within(record.source),
        };
        match record.stream {
            Stream::Out => self.out.write_all(&text),
            Stream::Err => self.err.write_all(&text),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.draw()?;
        self.out.flush()?;
        self.err.flush()
    }
}

/// The last lines that a rank printed to stderr.
#[derive(Default)]
pub struct Tail(Mutex<TailLines>);

#[derive(Default)]
struct TailLines {
    done: VecDeque<Vec<u8>>,
    current: Vec<u8>,
}

impl Tail {
    /// Adds output at the end.
    pub fn push(&self, bytes: &[u8]) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for &byte in bytes {
            if byte != b'\n' {
                if lines.current.len() < TAIL_LINE_BYTES {
                    lines.current.push(byte);
                }
                continue;
            }
            if lines.done.len() == TAIL_LINES {
                lines.done.pop_front();
            }
            let line = std::mem::take(&mut lines.current);
            lines.done.push_back(line);
        }
    }

    /// Returns the last lines, oldest first.
    pub fn lines(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let current = (!lines.current.is_empty()).then_some(&lines.current);
        lines.done.iter().chain(current).map(|line| String::from_utf8_lossy(line).trim_end().to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&str]) -> Vec<String> {
        let mut splitter = Splitter::default();
        let mut records = Vec::new();
        for piece in pieces {
            splitter.push(piece.as_bytes(), |r| records.push(r));
        }
        records.extend(splitter.finish());
        records.into_iter().map(|r| String::from_utf8(r).unwrap()).collect()
    }

    #[test]
    fn records_do_not_depend_on_how_the_bytes_arrive() {
        let text = "one\ntwo\r\n 10%\r 20%\r\r\nlast";
        let whole = split(&[text]);
        assert_eq!(whole, ["one\n", "two\r\n", " 10%\r", " 20%\r", "\r\n", "last"]);
        assert_eq!(whole.concat(), text);
        for cut in 0..=text.len() {
            assert_eq!(split(&[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
        }
        let long = "x".repeat(3 * LONGEST_RECORD / 2);
        assert_eq!(split(&[&long]).iter().map(String::len).collect::<Vec<_>>(), [LONGEST_RECORD, LONGEST_RECORD / 2]);
    }

    fn show(style: Style, records: &[(Stream, Source, &str)]) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut sink = Sink::new(&mut out, &mut err, style);
        for (stream, source, text) in records {
            sink.write(&Record { stream: *stream, source: *source, bytes: text.as_bytes().to_vec() }).unwrap();
        }
        (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    const R0: Source = Source::Rank(0);
    const R1: Source = Source::Rank(1);
    const FILE: Style = Style { world: 2, prefix: true, terminal: [false, false], colour: true, framed: false };
    const TERMINAL: Style = Style { world: 2, prefix: true, terminal: [true, true], colour: false, framed: false };
    use Stream::{Err, Out};

    #[test]
    fn every_line_has_its_prefix() {
        let (out, err) = show(
            FILE,
            &[(Out, R0, "a\n"), (Out, R1, "b\n"), (Err, R1, "c\n"), (Err, Source::Launcher, "oflaunch: d\n")],
        );
        assert_eq!(out, "[rank 0] a\n[rank 1] b\n");
        assert_eq!(err, "[rank 1] c\noflaunch: d\n");
        let plain = Style { prefix: false, ..FILE };
        assert_eq!(show(plain, &[(Out, R0, "a\n"), (Out, R1, "b\n")]).0, "a\nb\n");
    }

    #[test]
    fn prefixes_have_colours_on_a_terminal() {
        let colours = Style { colour: true, ..TERMINAL };
        assert_eq!(show(colours, &[(Out, R1, "a\n")]).0, "\x1b[32m[rank 1]\x1b[0m a\n");
        assert_eq!(show(TERMINAL, &[(Out, R1, "a\n")]).0, "[rank 1] a\n");
        let one = Style { terminal: [true, false], ..colours };
        assert_eq!(show(one, &[(Err, R1, "a\n")]).1, "[rank 1] a\n");
        let wants = |no_color: Option<&str>, term: &str| wants_colour(no_color.map(Into::into), Some(term.into()));
        assert!(wants(None, "xterm") && wants(Some(""), "xterm"));
        assert!(!wants(Some("1"), "xterm") && !wants(None, "dumb"));
    }

    #[test]
    fn nobody_prints_into_anothers_line() {
        let (out, _) = show(FILE, &[(Out, R0, "no end"), (Out, R1, "b\n"), (Out, R1, "50%\r"), (Out, R0, "a\n")]);
        assert_eq!(out, "[rank 0] no end\n[rank 1] b\n[rank 1] 50%\r\n[rank 0] a\n");
        // One terminal behind both streams: the cursor is one.
        let (out, err) = show(TERMINAL, &[(Out, R0, "\r 50%"), (Err, R1, "warning\n"), (Out, R0, "\r 51%")]);
        assert_eq!(out, "\r 50%\r 51%");
        assert_eq!(err, "\n[rank 1] warning\n");
    }

    #[test]
    fn a_long_line_goes_on_without_a_second_prefix() {
        assert_eq!(show(FILE, &[(Out, R1, "half"), (Out, R1, " whole\n")]).0, "[rank 1] half whole\n");
    }

    #[test]
    fn rank_0_is_untouched_on_a_terminal_and_alone() {
        assert_eq!(show(TERMINAL, &[(Out, R0, "name? "), (Out, R0, "\r  \r")]).0, "name? \r  \r");
        let alone = Style { world: 1, ..FILE };
        assert_eq!(show(alone, &[(Out, R0, "a\n")]).0, "a\n");
    }

    #[test]
    fn the_tail_keeps_the_last_lines() {
        let tail = Tail::default();
        for i in 0..TAIL_LINES + 10 {
            tail.push(format!("line {i}\n").as_bytes());
        }
        tail.push(b"open");
        let lines = tail.lines();
        assert_eq!(lines.len(), TAIL_LINES + 1);
        assert_eq!((lines[0].as_str(), lines[TAIL_LINES].as_str()), ("line 10", "open"));
    }
}
