//! Several oflaunch processes on one machine as the hosts of one job.

use std::process::Command;

use super::{Folder, LONG, Running, oflaunch, wait_for};

/// Of every job here.
pub const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A port that nobody uses now.
pub fn free_port() -> u16 {
    oflow_faults::free_port().unwrap()
}

/// The hosts of a job, which meet at one address.
pub struct Hosts {
    pub folder: Folder,
    pub rdzv: String,
    pub nodes: String,
    pub options: Vec<String>,
}

impl Hosts {
    pub fn new(nodes: &str) -> Hosts {
        let rdzv = format!("127.0.0.1:{}", free_port());
        Hosts { folder: Folder::new(), rdzv, nodes: nodes.to_string(), options: vec![] }
    }

    pub fn with(mut self, options: &[&str]) -> Hosts {
        self.options.extend(options.iter().map(|o| o.to_string()));
        self
    }

    pub fn command(&self, nproc: usize, program: &str) -> Command {
        let mut command = oflaunch(&self.folder);
        command
            .args(["--nnodes", &self.nodes, "--rdzv", &self.rdzv, "--threads", "1", "-n", &nproc.to_string()])
            .args(&self.options)
            .arg(program)
            .env("OFLOW_TOKEN", TOKEN);
        command
    }

    /// Starts the host of that number.
    pub fn start(&self, node: usize, nproc: usize, program: &str) -> Running {
        self.start_with(node, nproc, program, &[])
    }

    /// Starts the host of that number, with arguments for the program.
    pub fn start_with(&self, node: usize, nproc: usize, program: &str, args: &[&str]) -> Running {
        let mut command = self.command(nproc, program);
        command.args(["--node-rank", &node.to_string(), "--"]).args(args);
        Running::of(&mut command)
    }

    /// The process group of a rank.
    pub fn pid(&self, rank: usize) -> i32 {
        let path = self.folder.path().join(format!("pid{rank}"));
        wait_for("pid file", LONG, || std::fs::read_to_string(&path).ok()?.trim().parse().ok())
    }
}
