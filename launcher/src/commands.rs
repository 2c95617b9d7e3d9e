//! The subcommands of `oflow`, as a table: the help text, the parser and the dispatch are made from it.

use clap::{ArgMatches, Command};

use crate::{Failed, doctor};

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
pub const SUBCOMMANDS: &[Subcommand] = &[Subcommand {
    name: "doctor",
    about: "Check what oflow finds on this machine",
    arguments: |command| command,
    run: |_| Ok(doctor::run()),
}];

/// The whole command.
pub fn command() -> Command {
    Command::new("oflow")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Ask oflow about this machine, its ops and their sharding")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(SUBCOMMANDS.iter().map(|s| (s.arguments)(Command::new(s.name).about(s.about))))
        .after_help("Jobs are run by oflaunch; see oflaunch --help.")
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
