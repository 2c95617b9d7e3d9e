//! `oflow plot`: curves of logged metrics, as SVG or PNG, or in the terminal.
//!
//! `read.rs` reads logs, `curve.rs` smooths and thins a curve, and `chart.rs` lays everything out as a picture; `text.rs` draws lines of a
//! terminal.

mod chart;
mod curve;
mod read;
mod text;

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::Failed;
use crate::inspect::show;
use crate::picture::Output;
use crate::terminal::visible;
use chart::Style;
use read::Run;

/// Pictures that are drawn at most: names may be made up by a program.
const MOST_KEYS: usize = 64;
/// Columns of a terminal.
const COLUMNS: usize = 80;

/// Adds the arguments.
pub fn arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("files")
                .required(true)
                .num_args(1..)
                .value_parser(value_parser!(PathBuf))
                .value_name("FILE")
                .help("Logs in JSON lines, each a run"),
        )
        .arg(
            Arg::new("keys")
                .long("keys")
                .value_delimiter(',')
                .value_name("NAME,…")
                .help("Metrics to draw, each in a picture of its own; all without it"),
        )
        .arg(
            Arg::new("smooth")
                .long("smooth")
                .value_parser(weight)
                .value_name("WEIGHT")
                .help("Draw exponential averages too, with the weight of what was before, from 0 to below 1"),
        )
        .arg(Arg::new("log-y").long("log-y").action(ArgAction::SetTrue).help("Draw values on a logarithmic axis"))
        .arg(Output::argument())
        .arg(Output::side("width", "Width of the picture"))
        .arg(Output::side("height", "Height of the picture"))
        .after_help(
            "Examples:
  oflow plot run/*.jsonl
  oflow plot run/*.jsonl --keys loss,lr --smooth 0.9 -o curves.svg

Values that are not finite, and on a logarithmic axis those that are not positive, are gaps. A picture in PNG has two pixels for each of --width
and --height.",
        )
}

fn weight(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(w) if (0.0..1.0).contains(&w) => Ok(w),
        _ => Err("a weight from 0 to below 1, such as 0.9".into()),
    }
}

/// Runs the command.
pub fn run(matches: &ArgMatches) -> Result<u8, Failed> {
    let files: Vec<&PathBuf> = matches.get_many("files").into_iter().flatten().collect();
    // Before logs are read, which may be long.
    let output = Output::asked(matches)?;
    let runs = files.into_iter().map(|file| read::run(file)).collect::<Result<Vec<_>, _>>()?;
    for run in runs.iter().filter(|run| run.broken > 0) {
        eprintln!(
            "oflow: {}: {} lines are left out: a line of a log is a JSON object with a step",
            visible(&run.name),
            run.broken
        );
    }
    let keys = keys(&runs, matches.get_many::<String>("keys"))?;
    let style = Style {
        smooth: matches.get_one::<f64>("smooth").copied(),
        log: matches.get_flag("log-y"),
        width: matches.get_one::<u32>("width").copied(),
        height: matches.get_one::<u32>("height").copied(),
    };
    match output {
        None => show(&text::draw(&runs, &keys, &style, COLUMNS)),
        Some(output) => output.write(&chart::draw(&runs, &keys, &style)),
    }
}

/// The metrics to draw.
fn keys<'a>(runs: &'a [Run], asked: Option<impl Iterator<Item = &'a String>>) -> Result<Vec<&'a str>, Failed> {
    let mut all: Vec<&str> = vec![];
    for key in runs.iter().flat_map(|run| run.curves.keys()) {
        if !all.contains(&key.as_str()) {
            all.push(key);
        }
        if all.len() > 100 * MOST_KEYS {
            break;
        }
    }
    let known = || all.iter().take(20).copied().collect::<Vec<_>>().join(", ");
    if all.is_empty() {
        return Err(Failed::new(
            "no number is logged in these files\n  help: give files that `oflow::log` has written, run/1.jsonl",
        ));
    }
    let Some(asked) = asked else {
        if all.len() > MOST_KEYS {
            return Err(Failed::new(format!(
                "more than {MOST_KEYS} metrics are logged\n  help: name some with --keys; there are {} …",
                visible(&known())
            )));
        }
        return Ok(all);
    };
    let asked: Vec<&str> = asked.map(String::as_str).collect();
    if let Some(unknown) = asked.iter().find(|key| !runs.iter().any(|run| run.curves.contains_key(**key))) {
        return Err(Failed::new(
            visible(&format!("no metric is named {unknown}\n  help: there are {}", known())).into_owned(),
        ));
    }
    if asked.len() > MOST_KEYS {
        return Err(Failed::new(format!("{} metrics are asked for, at most {MOST_KEYS} are drawn", asked.len())));
    }
    Ok(asked)
}

#[cfg(test)]
mod tests;
