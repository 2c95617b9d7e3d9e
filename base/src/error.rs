//! Errors as sentences a person can act on: what op, which inputs, which line of the user's program, and the way out.

use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

/// Result of everything in oflow that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A place in the user's program. A value rather than `#[track_caller]` alone, because calls by name, from plug-ins or
/// from other languages carry their own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallSite {
    /// Source file.
    pub file: &'static str,
    /// Line, from 1.
    pub line: u32,
}

impl CallSite {
    /// The place that called the function this is called from (when that one is `#[track_caller]`). Inside a
    /// [`CallSite::scope`] of this thread it is the scope's.
    #[track_caller]
    #[inline]
    pub fn here() -> CallSite {
        match SCOPE.get() {
            Some(site) => site,
            None => {
                let l = Location::caller();
                CallSite { file: l.file(), line: l.line() }
            }
        }
    }

    /// Until the guard is dropped, every [`CallSite::here`] on this thread is this place: a function that calls others on
    /// behalf of a caller (a call by name, a closure) opens a scope, and no line inside it is reported.
    pub fn scope(self) -> SiteGuard {
        SiteGuard { saved: SCOPE.replace(Some(self)), _not_send: PhantomData }
    }
}

thread_local! {
    static SCOPE: Cell<Option<CallSite>> = const { Cell::new(None) };
}

/// Ends a [`CallSite::scope`] when dropped.
#[must_use = "the scope ends when the guard is dropped"]
pub struct SiteGuard {
    saved: Option<CallSite>,
    // Scopes are per thread: the guard must be dropped where it was made.
    _not_send: PhantomData<*const ()>,
}

impl Drop for SiteGuard {
    fn drop(&mut self) {
        SCOPE.set(self.saved);
    }
}

impl fmt::Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl fmt::Debug for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What one rank was doing when something went wrong: a global op of its dispatch stream, and the user's line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The rank.
    pub rank: usize,
    /// Name of the op; `to_global`, `to_vec` and `barrier` are ops here.
    pub op: String,
    /// Which global op of the rank it was, from 1.
    pub ordinal: u64,
    /// Source file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} in '{}' #{} ({}:{})", self.rank, self.op, self.ordinal, self.file, self.line)
    }
}

/// What went wrong, coarsely; tells whether a program may catch the error and go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Sizes do not fit.
    Shape,
    /// Element types do not fit.
    DType,
    /// No legal SBP signature, or an SBP that is not valid for the tensor.
    Sbp,
    /// Placements or meshes do not fit.
    Placement,
    /// An argument is out of range or of the wrong kind.
    Argument,
    /// Text could not be read (SBP, shape, signature, expression …).
    Parse,
    /// A global tensor was used on a thread without a rank context.
    Context,
    /// oflow does not do this (yet); the message says so.
    Unsupported,
    /// Misuse of gradients.
    Autograd,
    /// An op or function of that name does not exist, or exists twice.
    Registry,
    /// The policy of the scope denies this communication.
    Denied,
    /// A value is out of range (an index, a class): found by a kernel on the rank that has it. Local.
    Value,
    /// Out of memory. Local.
    Memory,
    /// File or socket. Local.
    Io,
    /// A checkpoint cannot be written or read. Ranks agree on it: when one fails, all get it.
    Storage,
    /// The device failed. Local.
    Device,
    /// Communication with other ranks failed. Local.
    Comm,
    /// Another rank died, left or reported a failure. Local.
    Peer,
    /// The connection to another host is cut or does not move. Local.
    Link,
    /// Ranks issued different ops. Local.
    Diverged,
}

impl ErrorKind {
    /// Logical errors are pure: the same on every rank and raised before any byte moves, so a program may catch them.
    /// The others poison the job.
    pub fn is_logical(self) -> bool {
        use ErrorKind::*;
        matches!(
            self,
            Shape | DType | Sbp | Placement | Argument | Parse | Context | Unsupported | Autograd | Registry | Denied
        )
    }
}

/// The error of oflow. One pointer wide.
pub struct Error(Box<Repr>);

struct Repr {
    kind: ErrorKind,
    message: String,
    /// The call in short form: `matmul(f32[4, 2] [S(0)], f32[3, 3] [B]) on cpu[dp=4]`.
    call: Option<String>,
    site: Option<CallSite>,
    help: Option<String>,
    places: Vec<Place>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

macro_rules! constructors {
    ($($(#[$m:meta])* $f:ident => $k:ident;)*) => {
        impl Error {$(
            $(#[$m])*
            pub fn $f(message: impl Into<String>) -> Error { Error::new(ErrorKind::$k, message) }
        )*}
    };
}

constructors! {
    /// Sizes do not fit.
    shape => Shape;
    /// Element types do not fit.
    dtype => DType;
    /// No legal signature or layout.
    sbp => Sbp;
    /// Placements do not fit.
    placement => Placement;
    /// An argument is out of range.
    argument => Argument;
    /// Text could not be read.
    parse => Parse;
    /// No rank context on this thread.
    context => Context;
    /// Not there (yet).
    unsupported => Unsupported;
    /// Misuse of gradients.
    autograd => Autograd;
    /// Unknown or doubly defined op or function.
    registry => Registry;
    /// Communication that the scope denies.
    denied => Denied;
    /// A value is out of range.
    value => Value;
    /// Out of memory.
    memory => Memory;
    /// File or socket.
    io => Io;
    /// A checkpoint cannot be written or read.
    storage => Storage;
    /// The device failed.
    device => Device;
    /// Communication failed.
    comm => Comm;
    /// Another rank failed.
    peer => Peer;
    /// The connection to another host is lost.
    link => Link;
    /// Ranks issued different ops.
    diverged => Diverged;
}

impl Error {
    /// An error of a kind with a sentence.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Repr {
            kind,
            message: message.into(),
            call: None,
            site: None,
            help: None,
            places: Vec::new(),
            source: None,
        }))
    }
    /// Names the call (op with inputs in short form), unless an inner layer has named one. Errors about other ranks and
    /// links stay as they are: they name the ops and lines of all ranks themselves.
    #[must_use]
    pub fn in_call(mut self, call: impl FnOnce() -> String) -> Error {
        let of_ranks = matches!(self.0.kind, ErrorKind::Peer | ErrorKind::Link | ErrorKind::Diverged);
        if self.0.call.is_none() && !of_ranks {
            self.0.call = Some(call());
        }
        self
    }
    /// Names the user's line, unless an inner layer has named one.
    #[must_use]
    pub fn at(mut self, site: CallSite) -> Error {
        self.0.site.get_or_insert(site);
        self
    }
    /// Adds the way out.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Error {
        self.0.help.get_or_insert(help.into());
        self
    }
    /// Adds what ranks were doing, as data beside the message.
    #[must_use]
    pub fn in_places(mut self, places: impl IntoIterator<Item = Place>) -> Error {
        self.0.places.extend(places);
        self
    }
    /// The same error as another kind.
    #[must_use]
    pub fn as_kind(mut self, kind: ErrorKind) -> Error {
        self.0.kind = kind;
        self
    }
    /// Adds the cause.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.0.source = Some(source.into());
        self
    }
    /// What went wrong, coarsely.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
    /// The sentence alone, without call, site and help.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// The user's line, where known.
    pub fn site(&self) -> Option<CallSite> {
        self.0.site
    }
    /// What ranks were doing, where the error is about several of them: both ends of a divergence.
    pub fn places(&self) -> &[Place] {
        &self.0.places
    }
    /// The way out, where known.
    pub fn help_text(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
    /// See [`ErrorKind::is_logical`].
    pub fn is_logical(&self) -> bool {
        self.0.kind.is_logical()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(call) = &self.0.call {
            write!(f, "{call}: ")?;
        }
        f.write_str(&self.0.message)?;
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        if let Some(site) = &self.0.site {
            write!(f, "\n  at {site}")?;
        }
        if let Some(help) = &self.0.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    // `fn main() -> Result<()>` prints Debug; a person reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|s| s.as_ref() as &(dyn std::error::Error + 'static))
    }
}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Error {
        Error::io("input/output failed").because(e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_a_sentence() {
        let e = Error::shape("inner dims differ: 256 and 128")
            .in_call(|| "matmul(f32[2048, 256] [S(0)], f32[128, 64] [B]) on cpu[dp=4]".into())
            .at(CallSite { file: "train.rs", line: 7 })
            .help("transpose the second operand");
        assert_eq!(
            e.to_string(),
            "matmul(f32[2048, 256] [S(0)], f32[128, 64] [B]) on cpu[dp=4]: inner dims differ: 256 and 128\n  at train.rs:7\n  help: transpose the second operand"
        );
        assert!(e.is_logical());
        assert_eq!(std::mem::size_of::<Error>(), 8);
        let peer =
            Error::peer("rank 1 has ended while rank 0 waits for rank 1 to send").in_call(|| "item(f32[])".into());
        assert!(peer.to_string().starts_with("rank 1 has ended"), "{peer}");
    }
}
