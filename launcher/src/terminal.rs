//! A pseudo-terminal for rank 0, where oflaunch itself has a terminal: a program draws progress bars and colours only there.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, Interest, ReadBuf};

/// Makes a pseudo-terminal that passes bytes on unchanged, of the size of the terminal `like`. Returns the end that oflaunch reads
/// and the end that the rank writes to.
pub fn make(like: impl AsFd) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let ranks = ioctl_tiocgptpeer(&ours, flags)?;
    let mut settings = tcgetattr(&ranks)?;
    settings.make_raw();
    tcsetattr(&ranks, OptionalActions::Now, &settings)?;
    if let Ok(size) = tcgetwinsize(like) {
        tcsetwinsize(&ours, size)?;
    }
    fcntl_setfl(&ours, fcntl_getfl(&ours)? | OFlags::NONBLOCK)?;
    Ok((ours, ranks))
}

/// Reader of the output that a rank writes to its pseudo-terminal.
pub struct Reader(AsyncFd<OwnedFd>);

impl Reader {
    /// Registers our end of [`make`] with the runtime.
    pub fn new(ours: OwnedFd) -> io::Result<Reader> {
        // SAFETY: the AsyncFd owns the descriptor, which therefore stays open and the same for as long as it lives.
        let registered = unsafe { AsyncFd::register_with_interest(ours, Interest::READABLE) };
        registered.map(Reader).map_err(io::Error::from)
    }
}

impl AsyncRead for Reader {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(context))?;
            let room = buffer.initialize_unfilled();
            match ready.try_io(|fd| rustix::io::read(fd, room).map_err(io::Error::from)) {
                Ok(Ok(n)) => {
                    buffer.advance(n);
                    return Poll::Ready(Ok(()));
                }
                // Nobody has the other end open any more.
                Ok(Err(e)) if e.raw_os_error() == Some(Errno::IO.raw_os_error()) => return Poll::Ready(Ok(())),
                Ok(Err(e)) if e.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(e)) => return Poll::Ready(Err(e)),
                Err(_not_ready) => {}
            }
        }
    }
}

/// Makes control characters visible, of which a terminal's escape sequences consist: `\u{1b}[31m`. Ends of lines and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    let shown = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if text.chars().all(shown) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if shown(c) {
            out.push(c);
        } else {
            out.extend(c.escape_default());
        }
    }
    Cow::Owned(out)
}

/// Removes the escape sequences of terminals from bytes that come in pieces: colours, cursor movements, titles.
#[derive(Default)]
pub struct Plain {
    state: Escape,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Escape {
    #[default]
    None,
    /// After ESC.
    Begun,
    /// In `ESC [ … letter`.
    Control,
    /// In `ESC ] … BEL`, or `ESC ] … ESC \`.
    Title,
}

impl Plain {
    /// Whether a byte is text.
    pub fn keeps(&mut self, byte: u8) -> bool {
        let (next, keeps) = match (self.state, byte) {
            (_, 0x1b) => (Escape::Begun, false),
            (Escape::None, _) => (Escape::None, true),
            (Escape::Begun, b'[') => (Escape::Control, false),
            (Escape::Begun, b']') => (Escape::Title, false),
            (Escape::Begun, _) => (Escape::None, false),
            // A line never ends within a sequence.
            (_, b'\n') => (Escape::None, true),
            (Escape::Control, 0x40..=0x7e) | (Escape::Title, 0x07) => (Escape::None, false),
            (state, _) => (state, false),
        };
        self.state = next;
        keeps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_made_visible() {
        assert_eq!(visible("two\n\tlines ü"), "two\n\tlines ü");
        assert_eq!(visible("\x1b]0;title\x07\r\u{9b}2J"), "\\u{1b}]0;title\\u{7}\\r\\u{9b}2J");
    }

    #[test]
    fn sequences_are_removed_and_text_stays() {
        let plain = |text: &str| {
            let mut plain = Plain::default();
            String::from_utf8(text.bytes().filter(|b| plain.keeps(*b)).collect()).unwrap()
        };
        assert_eq!(plain("\x1b[1;32mgreen\x1b[0m and \x1b]0;title\x07plain\x1b[2K\r"), "green and plain\r");
        assert_eq!(plain("\x1b]0;title\x1b\\x [1] ü"), "x [1] ü");
        assert_eq!(plain("broken \x1b[31\nnext"), "broken \nnext");
    }
}
