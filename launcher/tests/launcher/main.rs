//! oflaunch and oflow as their users meet them: a module for each subject.
//!
//! All are one program because most tests wait: for a time-out, for a process to end. Within a program they wait at the same time,
//! while cargo runs programs one after the other. What needs the cores for itself is in `tests/cores`.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../tests/common/cpp.rs"]
mod cpp;

mod control;
mod cuda;
mod exits;
mod failures;
mod faults;
mod graph_failures;
mod graphs;
mod guardian;
mod hosts;
mod inspect;
mod jobs;
mod libraries;
mod logs;
mod neighbours;
mod nodes;
mod outages;
mod outside;
mod page;
mod processes;
mod python;
mod records;
mod report;
mod resume;
mod run;
mod script;
mod security;
mod signals;
mod strangers;
mod terminal;
mod timeline;
mod tls;
mod users;
mod watch;

// More than there are cores: most of the time most of them wait.
common::test_threads!(c"6");
