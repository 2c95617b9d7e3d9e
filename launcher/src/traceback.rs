//! Reads Python's tracebacks in what a rank prints to stderr: the error and the line of the user's program. The form is that of
//! the interpreter, so a program needs no module of ours for it, and one that fails while it imports is told of as well.

/// First line of a traceback. A syntax error of the program itself has none.
const HEADER: &str = "Traceback (most recent call last):";
/// First line of the traceback of an exception group, whose lines have bars.
const GROUP: &str = "  + Exception Group Traceback (most recent call last):";
/// Lines between the traceback of an exception and that of one that was raised after it.
const LINKS: [&str; 2] = [
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
];
/// Lines that precede the traceback of an exception that does not end the program.
const ASIDE: [&str; 2] = ["Exception ignored in", "Exception in thread"];
/// Parts of paths of code that is not the user's.
const LIBRARIES: [&str; 4] = ["/site-packages/", "/dist-packages/", "/lib/python", "/python/oflow/"];

/// The error that ended a Python program, from the last lines of its stderr, and the line of the user's that it comes from:
/// `ValueError: text`, `train.py:7`.
pub fn error(tail: &[String]) -> Option<(String, Option<String>)> {
    let mut all = errors(tail);
    // What happens after the error, while the interpreter ends, is no reason.
    let found = all.iter().rposition(|e| !e.aside).unwrap_or(all.len().checked_sub(1)?);
    let found = all.swap_remove(found);
    Some((found.message, found.place))
}

/// The Python line in which a rank crashed in native code, as the fault handler prints it: the innermost one of the user's.
pub fn crash(tail: &[String]) -> Option<String> {
    let at = tail.iter().rposition(|line| line.starts_with("Fatal Python error: "))?;
    let current = tail[at..].iter().position(|line| line.starts_with("Current thread ")).map(|n| at + n + 1)?;
    let frames: Vec<String> = tail[current..].iter().map_while(|line| frame(line)).collect();
    user(frames.into_iter())
}

struct PythonError {
    message: String,
    place: Option<String>,
    aside: bool,
}

fn errors(tail: &[String]) -> Vec<PythonError> {
    let mut all = Vec::new();
    let mut next = 0;
    while let Some(begin) =
        (next..tail.len()).find(|i| tail[*i] == HEADER || tail[*i] == GROUP || frame(&tail[*i]).is_some())
    {
        let group = tail[begin] == GROUP;
        // The lines of a group have a bar before what they have otherwise.
        let strip = |line: &'_ str| -> String {
            let bare = if group { line.strip_prefix("  | ").or(line.strip_prefix("  + ")) } else { None };
            bare.unwrap_or(line).to_string()
        };
        let body = if frame(&tail[begin]).is_some() { begin } else { begin + 1 };
        let end = (body..tail.len()).find(|i| !strip(&tail[*i]).starts_with(' ')).unwrap_or(tail.len());
        next = end + 1;
        let Some(message) = tail.get(end).map(|line| strip(line)).filter(|m| names_an_exception(m)) else { continue };
        let frames: Vec<String> = tail[body..end].iter().rev().filter_map(|line| frame(&strip(line))).collect();
        // An error of oflow tells the line of the call itself.
        let own = tail[end + 1..].iter().take_while(|l| l.starts_with("  ")).find_map(|l| l.strip_prefix("  at "));
        let place = own.map(str::to_string).or_else(|| user(frames.into_iter()));
        let aside = begin > 0 && ASIDE.iter().any(|text| tail[begin - 1].starts_with(text));
        all.push(PythonError { message, place, aside });
    }
    all
}

/// `ValueError: text`, `module.Error`, `KeyboardInterrupt`.
fn names_an_exception(line: &str) -> bool {
    let name = line.split(": ").next().unwrap_or_default().trim_end_matches(':');
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.' || c == '<' || c == '>')
}

/// `file:line` of a line like `  File "train.py", line 7, in main`.
fn frame(line: &str) -> Option<String> {
    let (file, rest) = line.strip_prefix("  File \"")?.split_once("\", line ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    (digits > 0).then(|| format!("{file}:{}", &rest[..digits]))
}

/// The first of the frames, innermost first, that is of the user's code; else the first.
fn user(frames: impl Iterator<Item = String>) -> Option<String> {
    let frames: Vec<String> = frames.collect();
    let theirs = |f: &&String| f.starts_with('<') || LIBRARIES.iter().any(|part| f.contains(part));
    frames.iter().find(|f| !theirs(f)).or(frames.first()).cloned()
}

/// Follows a traceback line by line, so that the same one of several ranks is printed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Between the header and the exception.
    Frames,
    /// After the line with the exception.
    Exception,
    /// After the blank line that follows.
    Blank,
    /// After a line that says how the next traceback belongs to this one.
    Link,
}

impl Reading {
    /// The state after a line that begins a traceback.
    pub fn begins(line: &[u8]) -> Option<Reading> {
        let line = line.trim_ascii_end();
        (line == HEADER.as_bytes() || line.starts_with(b"  File \"")).then_some(Reading::Frames)
    }

    /// The state after one more line; `None` if the line is no longer part of the traceback.
    pub fn next(self, line: &[u8]) -> Option<Reading> {
        let line = line.trim_ascii_end();
        match self {
            Reading::Frames if line.starts_with(b" ") => Some(Reading::Frames),
            Reading::Frames => Some(Reading::Exception),
            Reading::Exception if line.starts_with(b"  ") => Some(Reading::Exception),
            Reading::Exception if line.is_empty() => Some(Reading::Blank),
            Reading::Blank if LINKS.iter().any(|link| line == link.as_bytes()) => Some(Reading::Link),
            Reading::Link if line.is_empty() => Some(Reading::Link),
            Reading::Link => Reading::begins(line),
            Reading::Exception | Reading::Blank => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_string).collect()
    }

    /// The error with its place.
    fn told(tail: &[String]) -> String {
        let (message, place) = error(tail).unwrap();
        format!("{message} (at {})", place.unwrap())
    }

    #[test]
    fn an_error_has_its_message_and_the_users_line() {
        let plain = "starts\nTraceback (most recent call last):\n  File \"my job.py\", line 9, in <module>\n    main()\n    ~~~~^^\n  \
                     File \"my job.py\", line 7, in main\n    raise ValueError(\"no: data\")\nValueError: no: data";
        let error = |text: &str| told(&lines(text));
        assert_eq!(error(plain), "ValueError: no: data (at my job.py:7)");
        // The innermost line is numpy's.
        let library = plain.replace("my job.py\", line 7", "/x/lib/python3.11/site-packages/numpy/a.py\", line 7");
        assert_eq!(error(&library), "ValueError: no: data (at my job.py:9)");
        let syntax = "  File \"/a/b.py\", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax";
        assert_eq!(error(syntax), "SyntaxError: invalid syntax (at /a/b.py:3)");
        // Of an error with another one before it the last counts; and none that is told of later.
        let both = format!("{plain}\n\n{}\n\n{}", LINKS[0], plain.replace("no: data", "later").replace("7", "8"));
        assert_eq!(error(&both), "ValueError: later (at my job.py:8)");
        let aside = format!("{plain}\nException ignored in atexit callback: <f>\n{}", plain.replace("no: data", "x"));
        assert_eq!(error(&aside.replace("<f>\nstarts\n", "<f>\n")), "ValueError: no: data (at my job.py:7)");
        // The beginning of a deep one is no longer there.
        let deep = plain.split_once("    main()\n").unwrap().1;
        assert_eq!(error(deep), "ValueError: no: data (at my job.py:7)");
        let own = format!("{}\n  at train.py:3\n  help: do not", plain.replace("no: data", "add(f32[2])"));
        assert_eq!(error(&own), "ValueError: add(f32[2]) (at train.py:3)");
        let bare = plain.replace("ValueError: no: data", "KeyboardInterrupt");
        assert_eq!(error(&bare), "KeyboardInterrupt (at my job.py:7)");
    }

    #[test]
    fn a_group_of_errors_is_told_of_as_one() {
        let text = "  + Exception Group Traceback (most recent call last):\n  |   File \"g.py\", line 2, in <module>\n  |     \
                    raise ExceptionGroup(\"two\", [])\n  | ExceptionGroup: two (2 sub-exceptions)\n  +-+---------------- 1 \
                    ----------------\n    | ValueError: a\n    +------------------------------------";
        assert_eq!(told(&lines(text)), "ExceptionGroup: two (2 sub-exceptions) (at g.py:2)");
    }

    #[test]
    fn other_text_is_no_error() {
        for text in ["", "Traceback (most recent call last):", "  File \"x.py\", line 1, in f\n", "ValueError: alone"] {
            assert_eq!(error(&lines(text)), None, "{text:?}");
        }
        assert_eq!(error(&lines("  File \"x.py\", line 1\n    f()\nwent on with 3 of 4 files")), None);
    }

    #[test]
    fn a_crash_has_the_line_that_called() {
        let text = "Fatal Python error: Segmentation fault\n\nThread 0x01 (most recent call first):\n  File \"t.py\", line 1 in \
                    wait\n\nCurrent thread 0x02 (most recent call first):\n  File \"/u/lib/python3.11/ctypes/__init__.py\", line 5 in \
                    string_at\n  File \"crash.py\", line 4 in f\n  File \"crash.py\", line 9 in <module>\n";
        assert_eq!(crash(&lines(text)).unwrap(), "crash.py:4");
        assert_eq!(crash(&lines("Segmentation fault")), None);
    }
}
