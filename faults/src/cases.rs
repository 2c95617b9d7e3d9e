//! The fault matrix as data: what is done to a job, and what must be said of it.

use std::time::Duration;

/// Fault that is planted in the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The program commits the fault itself, at a random step on a random rank.
    Planted,
    /// A random rank is killed at a random moment.
    KillRank,
    /// A random rank is stopped at a random moment.
    StopRank,
    /// The `oflaunch` of that host is killed at a random moment.
    KillAgent(usize),
    /// A random rank is killed at a random moment while checkpoints are written all the time.
    KillSaving,
    /// Checkpoints are written to a disk that is too small.
    FillDisk,
    /// The program commits the fault; the address space of the rank is limited.
    LimitMemory,
}

/// One row of the matrix.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Name of the case, for `--case` and, where the program commits the fault, for the program.
    pub name: &'static str,
    /// Fault that is planted.
    pub act: Act,
    /// Number of hosts: agents on this machine.
    pub hosts: usize,
    /// Further options of `oflaunch`.
    pub options: &'static [&'static str],
    /// The kinds that a report may have; nothing: nobody is left to report.
    pub kinds: &'static [&'static str],
    /// Whether the report must name the rank at fault, and no other.
    pub names_rank: bool,
    /// Whether the report may name no rank, but no other than the one at fault.
    pub names_no_other: bool,
    /// Words that the report must say of the rank at fault: op and marks of lines in the program, any of them.
    pub at_fault: &'static [(&'static str, &'static str)],
    /// Words that the report must say of another rank.
    pub elsewhere: &'static [(&'static str, &'static str)],
    /// Text that the message must contain.
    pub says: &'static str,
    /// The exit codes that are right; nothing: any but 0.
    pub codes: &'static [i32],
    /// From the fault to the report.
    pub report_within: Duration,
    /// From the fault to the end of the last process.
    pub end_within: Duration,
}

const PLAIN: Case = Case {
    name: "",
    act: Act::Planted,
    hosts: 1,
    options: &[],
    kinds: &[],
    names_rank: true,
    names_no_other: false,
    at_fault: &[],
    elsewhere: &[],
    says: "",
    codes: &[],
    report_within: Duration::from_secs(5),
    end_within: Duration::from_secs(5),
};

/// Faults of rank and node processes; [`diverging`] fills in the fields that only divergence has.
const CASES: &[Case] = &[
    Case { name: "kill-rank", act: Act::KillRank, kinds: &["killed"], codes: &[137], ..PLAIN },
    Case {
        name: "stop-rank",
        act: Act::StopRank,
        kinds: &["stopped"],
        // The stopped rank cannot end by itself: the others' grace (`--timeout`) must pass before it is killed.
        options: &["--timeout", "1"],
        ..PLAIN
    },
    Case { name: "kill-launcher", act: Act::KillAgent(0), names_rank: false, ..PLAIN },
    Case { name: "panics", kinds: &["panicked"], says: "the data is missing", codes: &[101], ..PLAIN },
    Case { name: "error", kinds: &["error"], says: "No such file or directory", codes: &[1], ..PLAIN },
    Case { name: "exits-early", kinds: &["exited"], ..PLAIN },
    Case {
        name: "exits-with-0",
        kinds: &["exited"],
        says: " exited with code 0 while others needed it: ",
        codes: &[1],
        ..PLAIN
    },
    Case {
        name: "exits-before-init",
        kinds: &["exited"],
        says: " exited with code 0 while others needed it: ",
        codes: &[1],
        ..PLAIN
    },
    Case {
        name: "never-inits",
        kinds: &["stalled"],
        options: &["--stall", "2", "--timeout", "1"],
        says: "has not called oflow::init()",
        codes: &[1],
        // As in `loops`; and a second before the launcher tells who has not joined.
        report_within: Duration::from_secs(9),
        end_within: Duration::from_secs(11),
        ..PLAIN
    },
    Case { name: "exits-with-7", kinds: &["exited"], codes: &[7], ..PLAIN },
    Case {
        name: "loops",
        kinds: &["stalled"],
        options: &["--stall", "2", "--timeout", "1"],
        // Two seconds more, so long it may do nothing; time in which it waits for a core does not count.
        report_within: Duration::from_secs(8),
        end_within: Duration::from_secs(10),
        ..PLAIN
    },
    Case {
        name: "runs-out-of-memory",
        act: Act::LimitMemory,
        kinds: &["out-of-memory", "killed"],
        codes: &[134, 137, 1],
        ..PLAIN
    },
    Case { name: "kill-while-saving", act: Act::KillSaving, kinds: &["killed"], codes: &[137], ..PLAIN },
    Case { name: "disk-full", act: Act::FillDisk, kinds: &["storage"], names_rank: false, codes: &[1], ..PLAIN },
    diverging("skips-an-op", &[("mul_scalar", "after")], &[("relu", "skipped")]),
    diverging("calls-another-op", &[("tanh", "other")], &[("sigmoid", "usual")]),
    diverging("other-shape", &[("full", "batch")], &[("full", "batch")]),
    diverging("reads-alone", &[("", "alone")], &[("", "update")]),
    diverging("diverges-quietly", &[("tanh", "quiet-other")], &[("sigmoid", "quiet-usual")]),
    Case { name: "kill-rank-of-2-hosts", hosts: 2, act: Act::KillRank, kinds: &["killed"], codes: &[137], ..PLAIN },
    Case {
        name: "exits-with-0",
        hosts: 2,
        kinds: &["exited"],
        says: " exited with code 0 while others needed it: ",
        codes: &[1],
        ..PLAIN
    },
    Case {
        name: "exits-before-init",
        hosts: 2,
        kinds: &["exited"],
        says: " exited with code 0 while others needed it: ",
        codes: &[1],
        ..PLAIN
    },
    Case {
        name: "never-inits",
        hosts: 2,
        kinds: &["stalled"],
        options: &["--stall", "2", "--timeout", "1"],
        says: "has not called oflow::init()",
        codes: &[1],
        report_within: Duration::from_secs(9),
        end_within: Duration::from_secs(11),
        ..PLAIN
    },
    Case { name: "kill-agent", hosts: 2, act: Act::KillAgent(1), kinds: &["node-lost"], names_rank: false, ..PLAIN },
    Case { name: "kill-node-0", hosts: 2, act: Act::KillAgent(0), kinds: &["node-lost"], names_rank: false, ..PLAIN },
    Case {
        name: "stop-rank-of-2-hosts",
        hosts: 2,
        act: Act::StopRank,
        kinds: &["stopped"],
        options: &["--timeout", "1"],
        ..PLAIN
    },
    Case {
        name: "silent-link",
        hosts: 2,
        options: &["--outage-limit", "1"],
        kinds: &["link-lost"],
        // Which end is to blame nobody can know.
        names_rank: false,
        says: "the link from rank ",
        codes: &[1],
        // The ranks sit in a wait that the report ends.
        end_within: Duration::from_secs(7),
        ..PLAIN
    },
    Case {
        name: "cuts-links",
        hosts: 3,
        kinds: &["link-lost"],
        // If only one other rank notices, either end may be to blame.
        names_rank: false,
        names_no_other: true,
        says: "the link",
        codes: &[1],
        ..PLAIN
    },
    Case { hosts: 2, ..diverging("calls-another-op", &[("tanh", "other")], &[("sigmoid", "usual")]) },
];

const fn diverging(
    name: &'static str,
    at_fault: &'static [(&'static str, &'static str)],
    elsewhere: &'static [(&'static str, &'static str)],
) -> Case {
    Case {
        name,
        kinds: &["diverged"],
        // Which of two ranks that differ is wrong nobody can know.
        names_rank: false,
        at_fault,
        elsewhere,
        codes: &[1],
        report_within: Duration::from_secs(2),
        ..PLAIN
    }
}

/// All cases of the matrix.
pub fn cases() -> &'static [Case] {
    CASES
}

impl Case {
    /// The name with the number of hosts where that is not in it.
    pub fn title(&self) -> String {
        if self.hosts > 1 && !self.name.contains("host") {
            format!("{} ({} hosts)", self.name, self.hosts)
        } else {
            self.name.into()
        }
    }

    /// The fault that the program is told to commit.
    pub fn planted(&self) -> bool {
        matches!(self.act, Act::Planted | Act::LimitMemory)
    }
}
