//! `oflow postmortem DIR`: one page of the flight records of all ranks and the log of events: what happened first, where streams
//! differ, which ranks wait for which, which ranks never arrived, and the last ops of each rank.
//!
//! `story.rs` reads and analyses the records; `text.rs` and `html.rs` print the result.

mod html;
mod story;
mod text;

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::Failed;
use crate::terminal::visible;
pub use story::Story;

/// Adds the arguments.
pub fn arguments(command: Command) -> Command {
    command
        .arg(Arg::new("dir").value_name("DIR").required(true).num_args(1..).value_parser(value_parser!(PathBuf)).help(
            "Folders with flight records, one per host: the --log-dir of the job, or the folder that oflaunch printed",
        ))
        .arg(Arg::new("html").long("html").action(ArgAction::SetTrue).help("Print HTML"))
        .arg(
            Arg::new("last")
                .long("last")
                .value_name("N")
                .default_value("8")
                .value_parser(value_parser!(usize))
                .help("Number of ops of each rank in the timeline"),
        )
        .after_help("Example:\n  oflow postmortem logs --html >postmortem.html")
}

/// Prints the page.
pub fn run(matches: &ArgMatches) -> Result<u8, Failed> {
    let folders: Vec<&PathBuf> = matches.get_many("dir").into_iter().flatten().collect();
    let last = matches.get_one::<usize>("last").copied().unwrap_or(8).max(1);
    print!("{}", visible(&page(&folders, last, matches.get_flag("html"))?));
    Ok(0)
}

/// Returns the page of some folders, with the last ops of each rank.
///
/// # Errors
/// If there are no records, or they cannot be read.
pub fn page(folders: &[&PathBuf], last: usize, as_html: bool) -> Result<String, Failed> {
    let story = Story::read(folders, last)?;
    Ok(if as_html { html::page(&story) } else { text::page(&story) })
}
