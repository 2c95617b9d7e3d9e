//! The subcommands of `oflow`, as a table: the help text, the parser and the dispatch are made from it.

use clap::{ArgMatches, Command};
use oflow::control::Token;

use crate::{Failed, ask, calibrate, ckpt, doctor, postmortem};

/// One subcommand.
pub struct Subcommand {
    /// What the user types.
    pub name: &'static str,
    /// One line for the list.
    pub about: &'static str,
    /// Adds the subcommand's own arguments.
    pub arguments: fn(Command) -> Command,
    /// Does the work; returns the exit code.
    pub run: fn(&ArgMatches) -> Result<u8, Failed>,
}

/// All subcommands, in the order of the help text.
pub const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "ops",
        about: "List the ops with signatures, element types and sharding, or show one in full",
        arguments: ask::ops::arguments,
        run: ask::ops::run,
    },
    Subcommand {
        name: "sbp",
        about: "Show which shardings a call could take, what each costs, and which one it takes",
        arguments: ask::sbp::arguments,
        run: ask::sbp::run,
    },
    Subcommand {
        name: "box",
        about: "Show how a tensor gets from one layout to another, and what that sends",
        arguments: ask::boxing::arguments,
        run: ask::boxing::run,
    },
    Subcommand {
        name: "ckpt",
        about: "List, verify and convert checkpoints",
        arguments: ckpt::arguments,
        run: ckpt::run,
    },
    Subcommand {
        name: "calibrate",
        about: "Measure how fast this host moves tensors between ranks, for plans and predictions",
        arguments: calibrate::arguments,
        run: calibrate::run,
    },
    Subcommand {
        name: "postmortem",
        about: "Tell from the records of a failed job what happened first, and what each rank did last",
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
        about: "Make a secret for the ranks of a job that start without oflaunch, or on several hosts",
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

`oflow COMMAND --help` tells more. No command needs a job; only `doctor` asks for devices. Jobs are run by oflaunch.";

/// The whole command.
pub fn command() -> Command {
    Command::new("oflow")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Ask oflow about this machine, its ops and their sharding")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(SUBCOMMANDS.iter().map(|s| (s.arguments)(Command::new(s.name).about(s.about))))
        .after_help(AFTER_HELP)
}

/// Runs the subcommand that the user named.
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
