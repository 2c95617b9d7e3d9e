//! The subcommands of `oflow`, as a table: the help text, the parser and the dispatch are made from it.

use clap::{ArgMatches, Command};
use oflow::control::Token;

use crate::{Failed, calibrate, ckpt, doctor, inspect, plot, postmortem, run, timeline};

/// A subcommand of `oflow`.
pub struct Subcommand {
    /// Name of the subcommand.
    pub name: &'static str,
    /// Line of the help.
    pub about: &'static str,
    /// Adds the arguments of the subcommand.
    pub arguments: fn(Command) -> Command,
    /// Runs the subcommand and returns the exit code.
    pub run: fn(&ArgMatches) -> Result<u8, Failed>,
}

/// All subcommands, in the order of the help text.
pub const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "ops",
        about: "List the ops with signatures, element types and sharding, or show one in full",
        arguments: inspect::ops::arguments,
        run: inspect::ops::run,
    },
    Subcommand {
        name: "sbp",
        about: "List the shardings that a call may use, their costs, and the chosen one",
        arguments: inspect::sbp::arguments,
        run: inspect::sbp::run,
    },
    Subcommand {
        name: "box",
        about: "Print the cheapest way from one layout to another, with bytes and time",
        arguments: inspect::boxing::arguments,
        run: inspect::boxing::run,
    },
    Subcommand {
        name: "show",
        about: "Draw which rank holds which part of a tensor",
        arguments: inspect::show::arguments,
        run: inspect::show::run,
    },
    Subcommand { name: "plot", about: "Draw the curves of logged metrics", arguments: plot::arguments, run: plot::run },
    Subcommand {
        name: "report",
        about: "Print the report of a job again, or compare two",
        arguments: inspect::report::arguments,
        run: inspect::report::run,
    },
    Subcommand {
        name: "timeline",
        about: "Draw steps of a timeline that `oflaunch --trace` recorded",
        arguments: timeline::arguments,
        run: timeline::run,
    },
    Subcommand {
        name: "run",
        about: "Run calls by name on simulated ranks: one JSON object a line in, one answer a line out",
        arguments: run::arguments,
        run: run::run,
    },
    Subcommand {
        name: "ckpt",
        about: "List, verify and convert checkpoints",
        arguments: ckpt::arguments,
        run: ckpt::run,
    },
    Subcommand {
        name: "calibrate",
        about: "Measure the constants of the cost model on this host",
        arguments: calibrate::arguments,
        run: calibrate::run,
    },
    Subcommand {
        name: "postmortem",
        about: "Show from the flight records of a failed job which rank failed first, and the last ops of each rank",
        arguments: postmortem::arguments,
        run: postmortem::run,
    },
    Subcommand {
        name: "doctor",
        about: "Check what oflow finds on this machine",
        arguments: |command| command,
        run: |_| Ok(doctor::run()),
    },
    Subcommand {
        name: "token",
        about: "Make a token for a job on several hosts, or for ranks started without oflaunch",
        arguments: |command| command,
        run: |_| {
            let token = Token::random().map_err(|e| Failed::new(e.to_string()))?;
            println!("{}", token.expose());
            Ok(0)
        },
    },
];

const AFTER_HELP: &str = "\
Examples:
  oflow ops matmul
  oflow sbp matmul --in \"f32[1024,512] [S(0),B]\" --in \"f32[512,256] [B,S(1)]\" --mesh dp=2,tp=4
  oflow box --shape 1024x4096 --dtype bf16 --from \"[S(0),P(sum)]\" --to \"[B,S(1)]\" --mesh dp=4,tp=8
  oflow report <run> --compare <run before>
  oflow timeline <folder of --trace> --step 12 -o step.svg
  oflow show --shape 6x8 --sbp \"[S(0),S(1)]\" --mesh dp=2,tp=2
  oflow plot <run>/*.jsonl --keys loss -o loss.svg

See `oflow COMMAND --help`. No command needs a running job, and only `doctor` and `run` use devices. `oflaunch` runs jobs.";

/// Returns the whole command.
pub fn command() -> Command {
    Command::new("oflow")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Answer questions about ops, sharding, boxing, checkpoints and this machine")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(SUBCOMMANDS.iter().map(|s| (s.arguments)(Command::new(s.name).about(s.about))))
        .after_help(AFTER_HELP)
}

/// Runs the subcommand of a command line.
pub fn dispatch(matches: &ArgMatches) -> Result<u8, Failed> {
    matches
        .subcommand()
        .and_then(|(name, matches)| Some((SUBCOMMANDS.iter().find(|s| s.name == name)?, matches)))
        .map_or_else(|| Err(Failed::new("no such subcommand")), |(subcommand, matches)| (subcommand.run)(matches))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_makes_a_consistent_command() {
        command().debug_assert();
        let help = command().render_help().to_string();
        for subcommand in SUBCOMMANDS {
            assert!(help.contains(subcommand.about), "{}", subcommand.name);
        }
    }

    #[test]
    fn the_subcommand_that_was_named_runs() {
        let matches = command().try_get_matches_from(["oflow", "doctor"]).unwrap();
        assert_eq!(dispatch(&matches).unwrap(), 0);
        assert!(command().try_get_matches_from(["oflow", "nurse"]).is_err());
    }
}
