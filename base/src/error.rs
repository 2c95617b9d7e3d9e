//! The error type of oflow: a message with the op, its inputs, the line of the user's program, and help.

pub use crate::site::{CallSite, NameGuard, NameScope, SiteGuard, name_scope};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt;

/// The result type of oflow.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Position of a rank when a failure occurred: a global op of its dispatch stream, and the line of the call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Rank that was there.
    pub rank: usize,
    /// Name of the op; `to_global`, `to_vec` and `barrier` count as ops.
    pub op: String,
    /// Ordinal of the global op on this rank, from 1.
    pub ordinal: u64,
    /// Source file of the call.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} in '{}' #{} ({}:{})", self.rank, self.op, self.ordinal, self.file, self.line)
    }
}

/// Kind of an error. It determines whether a program may catch the error and continue ([`is_logical`](ErrorKind::is_logical)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Sizes do not match.
    Shape,
    /// Dtypes do not match.
    DType,
    /// No legal SBP signature, or an SBP that is not valid for the tensor.
    Sbp,
    /// Placements or meshes do not match.
    Placement,
    /// An argument is out of range or of the wrong kind.
    Argument,
    /// An index does not fit the shape of the tensor: it is out of range, or it has more members than the tensor has dims.
    Index,
    /// Text could not be parsed (an SBP, a shape, a signature, an expression …).
    Parse,
    /// A global tensor was used on a thread without a rank context.
    Context,
    /// oflow does not support this.
    Unsupported,
    /// Misuse of gradients.
    Autograd,
    /// The name belongs to none of the ops and functions, or to several.
    Registry,
    /// The boxing policy in force denies this communication.
    Denied,
    /// A value such as an index or a class is out of range. A kernel has found it on the rank that has the value. Local.
    Value,
    /// Out of memory. Local.
    Memory,
    /// A file or a socket failed. Local.
    Io,
    /// A checkpoint cannot be written or read. If one rank fails, all ranks get the error.
    Storage,
    /// The device failed. Local.
    Device,
    /// Communication with other ranks failed. Local.
    Comm,
    /// Another rank has died, left or reported a failure. Local.
    Peer,
    /// The connection to another host is cut, or delivers no data. Local.
    Link,
    /// Ranks issued different ops. Local.
    Diverged,
}

impl ErrorKind {
    /// Returns whether the error is logical: the same on every rank, and raised before any data moves. A program may catch
    /// logical errors and continue. The others end the job.
    pub fn is_logical(self) -> bool {
        use ErrorKind::*;
        matches!(
            self,
            Shape
                | DType
                | Sbp
                | Placement
                | Argument
                | Index
                | Parse
                | Context
                | Unsupported
                | Autograd
                | Registry
                | Denied
        )
    }
}

/// The error of oflow, one pointer in size.
pub struct Error(Box<Repr>);

struct Repr {
    kind: ErrorKind,
    message: String,
    /// The call in short form: `matmul(f32[4, 2] [S(0)], f32[3, 3] [B]) on cpu[dp=4]`.
    call: Option<String>,
    site: Option<CallSite>,
    help: Option<String>,
    places: Vec<Place>,
    missing: Option<usize>,
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
    /// Sizes do not match.
    shape => Shape;
    /// Dtypes do not match.
    dtype => DType;
    /// No legal signature or layout.
    sbp => Sbp;
    /// Placements do not match.
    placement => Placement;
    /// An argument is out of range.
    argument => Argument;
    /// An index does not fit the shape.
    index => Index;
    /// Text could not be parsed.
    parse => Parse;
    /// No rank context on this thread.
    context => Context;
    /// Not supported.
    unsupported => Unsupported;
    /// Misuse of gradients.
    autograd => Autograd;
    /// Unknown or doubly defined op or function.
    registry => Registry;
    /// Communication denied by the policy.
    denied => Denied;
    /// A value is out of range.
    value => Value;
    /// Out of memory.
    memory => Memory;
    /// A file or a socket failed.
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
    /// Makes an error of a kind with a message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Repr {
            kind,
            message: message.into(),
            call: None,
            site: None,
            help: None,
            places: Vec::new(),
            missing: None,
            source: None,
        }))
    }
    /// Sets the call (op with inputs in short form), unless it is set already. Errors about other ranks and links are not
    /// changed; their messages name the ops and lines of all ranks.
    #[must_use]
    pub fn in_call(mut self, call: impl FnOnce() -> String) -> Error {
        let of_ranks = matches!(self.0.kind, ErrorKind::Peer | ErrorKind::Link | ErrorKind::Diverged);
        if self.0.call.is_none() && !of_ranks {
            self.0.call = Some(call());
        }
        self
    }
    /// Says on whose behalf the call that failed was made; both stand in the text.
    #[must_use]
    pub fn within(mut self, outer: impl FnOnce() -> String) -> Error {
        self.0.call = Some(match self.0.call.take() {
            Some(inner) => format!("{}: {inner}", outer()),
            None => outer(),
        });
        self
    }
    /// Sets the line of the call, unless it is set already.
    #[must_use]
    pub fn at(mut self, site: CallSite) -> Error {
        self.0.site.get_or_insert(site);
        self
    }
    /// Sets the help text, unless it is set already.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Error {
        self.0.help.get_or_insert(help.into());
        self
    }
    /// Adds what ranks were doing, as data.
    #[must_use]
    pub fn in_places(mut self, places: impl IntoIterator<Item = Place>) -> Error {
        self.0.places.extend(places);
        self
    }
    /// Sets the rank for which this rank has waited in vain: it had left the job, or (kind `Link`) the link to it is lost.
    #[must_use]
    pub fn missing(mut self, rank: usize) -> Error {
        self.0.missing = Some(rank);
        self
    }
    /// Changes the kind.
    #[must_use]
    pub fn as_kind(mut self, kind: ErrorKind) -> Error {
        self.0.kind = kind;
        self
    }
    /// Sets the cause.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.0.source = Some(source.into());
        self
    }
    /// Returns the kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
    /// Returns the message alone, without call, line, cause and help.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// Returns the line of the call, or `None` if it is not known.
    pub fn site(&self) -> Option<CallSite> {
        self.0.site
    }
    /// Returns what ranks were doing, if the error is about several ranks: for a divergence, the two ranks that differ.
    pub fn places(&self) -> &[Place] {
        &self.0.places
    }
    /// Returns the rank for which this rank has waited in vain, or `None`: it had left the job, or (kind `Link`) the link to it
    /// is lost.
    pub fn missing_rank(&self) -> Option<usize> {
        self.0.missing
    }
    /// Returns the help text, or `None`.
    pub fn help_text(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
    /// Returns whether the error is logical, see [`ErrorKind::is_logical`].
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

/// The message of a panic, from its payload; `None` where it has another type than text.
pub fn panic_text(payload: &(dyn Any + Send)) -> Option<&str> {
    payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str))
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
            .at(CallSite::at("train.rs", 7))
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
