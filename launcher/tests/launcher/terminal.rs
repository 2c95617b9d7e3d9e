//! oflaunch on a terminal: rank 0 has a terminal of its own, so that it draws progress bars; the other ranks and the logs do not.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;

use crate::common::*;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A terminal of 33 lines: our end, and the program's.
pub fn terminal() -> (File, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let programs = ioctl_tiocgptpeer(&ours, flags).unwrap();
    tcsetwinsize(&ours, Winsize { ws_row: 33, ws_col: 99, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    (ours.into(), programs)
}

/// What is written to a terminal until nobody has it open any more.
pub fn read_all(mut from: File) -> String {
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    // At the end the kernel reports an error.
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        text.extend_from_slice(&buffer[..n]);
    }
    String::from_utf8(text).unwrap()
}

#[test]
fn rank_0_has_a_terminal_where_oflaunch_has_one() {
    let folder = Folder::new();
    let says = |fd: u32| {
        format!(
            "if [ -t {fd} ]; then printf \"\\r\\033[32mbar $RANK\\033[0m\\n\" >&{fd}; else echo \"pipe $RANK {fd}\" >&{fd}; fi"
        )
    };
    folder.sh("draw", &format!("{}; {}; if [ $RANK = 0 ]; then stty size <&1; fi", says(1), says(2)));
    let (ours, programs) = terminal();
    let mut command = oflaunch(&folder);
    command.args(["-n", "2", "--log-dir", "logs", "./draw"]).env("NO_COLOR", "1");
    command.stdout(programs.try_clone().unwrap()).stderr(programs);
    let mut child = command.spawn().unwrap();
    // It holds the program's end of the terminal.
    drop(command);
    let text = read_all(ours);
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    assert_eq!(text.matches("\r\x1b[32mbar 0\x1b[0m\r\n").count(), 2, "{text:?}");
    assert!(text.contains("33 99\r\n"), "{text:?}");
    for fd in 1..=2 {
        assert!(text.contains(&format!("[rank 1] pipe 1 {fd}\r\n")), "{text:?}");
    }
    let log = fs::read_to_string(folder.path().join("logs/rank-0.log")).unwrap();
    assert!(!log.contains('\x1b') && log.matches(": bar 0\n").count() == 2, "{log:?}");
}

#[test]
fn one_stream_on_a_terminal_is_one_terminal() {
    let folder = Folder::new();
    folder.sh("draw", "[ -t 1 ] && echo out $RANK; [ -t 2 ] && echo err $RANK >&2; [ -t 2 ]");
    let (ours, programs) = terminal();
    let mut command = oflaunch(&folder);
    command.args(["-n", "1", "./draw"]).stdout(std::process::Stdio::null()).stderr(programs);
    let mut child = command.spawn().unwrap();
    drop(command);
    let text = read_all(ours);
    assert_eq!((child.wait().unwrap().code(), text.as_str()), (Some(0), "err 0\r\n"));
}

#[test]
fn a_python_program_draws_its_bar_on_rank_0() {
    let Some(python) = super::python::python() else { return };
    let folder = Folder::new();
    folder.write(
        "bar.py",
        "import os, sys\n\
         if sys.stderr.isatty():\n\
         \x20   for i in range(1, 4):\n\
         \x20       print('\\r' + '#' * i, end='', file=sys.stderr, flush=True)\n\
         \x20   print(file=sys.stderr)\n\
         else:\n\
         \x20   print('no bar on', os.environ['RANK'], file=sys.stderr)\n",
    );
    let (ours, programs) = terminal();
    let mut command = oflaunch(&folder);
    command.args(["-n", "2", "bar.py"]).env("NO_COLOR", "1").env("OFLOW_PYTHON", python).env_remove("PYTHONPATH");
    command.stdout(programs.try_clone().unwrap()).stderr(programs);
    let mut child = command.spawn().unwrap();
    drop(command);
    let text = read_all(ours);
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    assert!(text.contains("\r#\r##\r###\r\n"), "{text:?}");
    assert!(text.contains("[rank 1] no bar on 1\r\n"), "{text:?}");
}
