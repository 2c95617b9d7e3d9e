//! The rendezvous of the hosts of a job: the address, the token, and the command for the other hosts.

use std::sync::Arc;

use oflow::control::Token;
use oflow::control::service::{AgentOptions, Rendezvous, program_digest};

use super::{Job, quote};
use crate::Failed;
use crate::output::Output;
use crate::script::{Built, Hasher};

/// The options of the agent, and a line for the user.
pub struct Meeting {
    /// Options of the agent.
    pub options: AgentOptions,
    /// Token of the job.
    pub token: Token,
    /// The command for the other hosts, if the token was made here.
    pub invitation: Option<String>,
}

impl Meeting {
    /// Determines address and token.
    pub async fn arrange(job: &Job, build: Option<&Built>, output: &Output) -> Result<Meeting, Failed> {
        let fail = |e: oflow::Error| Failed::new(e.to_string());
        let hosts = &job.hosts;
        let Some(rdzv) = &hosts.rdzv else {
            let token = Token::random().map_err(fail)?;
            let options = AgentOptions {
                cost_model: job.cost_model.clone(),
                max_restarts: job.max_restarts,
                stall: job.stall,
                log: log(job, output),
                ..AgentOptions::alone(job.nproc, token.clone())
            };
            return Ok(Meeting { options, token, invitation: None });
        };
        let given = given_token(hosts.token_file.as_deref())?;
        let rendezvous = match (hosts.node_rank, &given) {
            (Some(0), _) | (None, None) => Rendezvous::Host(rdzv.clone()),
            (Some(_), _) => Rendezvous::Join(rdzv.clone()),
            (None, Some(_)) => Rendezvous::Either(rdzv.clone()),
        };
        let (token, invitation) = match given {
            Some(token) => (token, None),
            None if matches!(rendezvous, Rendezvous::Join(_)) => {
                return Err(Failed::new(
                    "this host needs the token of the job it joins: --token-file FILE, or OFLOW_TOKEN; node 0 prints it where none is given",
                ));
            }
            None => {
                let token = Token::random().map_err(fail)?;
                let line = invitation(&token, std::env::args_os().map(|word| word.to_string_lossy().into_owned()));
                (token, Some(line))
            }
        };
        // Every host has an interpreter of its own: what it runs is compared.
        let text = match (&job.python, build) {
            (Some(python), _) => python.text(),
            (None, Some(build)) => Some(build.as_built()),
            (None, None) => Some(job.program.clone()),
        };
        let program = match text {
            Some(file) => {
                program_digest(&file).map_err(|e| Failed::new(format!("cannot read {}: {e}", job.program.display())))?
            }
            None => {
                let mut name = Hasher::default();
                name.write(job.program.as_os_str().as_encoded_bytes());
                name.finish()
            }
        };
        let options = AgentOptions {
            rendezvous,
            nodes: hosts.nnodes.clone(),
            node_rank: hosts.node_rank,
            max_restarts: job.max_restarts,
            cost_model: job.cost_model.clone(),
            program,
            tls: hosts.tls_dir.clone(),
            stall: job.stall,
            join_limit: hosts.join_timeout,
            outage: hosts.outage_limit,
            log: log(job, output),
            ..AgentOptions::alone(job.nproc, token.clone())
        };
        Ok(Meeting { options, token, invitation })
    }
}

fn log(job: &Job, output: &Output) -> Arc<dyn Fn(&str) + Send + Sync> {
    let (output, events) = (output.weak(), job.events.clone());
    Arc::new(move |line| {
        events.warning(None, line);
        output.say_if_room(line);
    })
}

/// The token from the file, or from the environment.
fn given_token(file: Option<&std::path::Path>) -> Result<Option<Token>, Failed> {
    let fail = |e: oflow::Error| Failed::new(e.to_string());
    if let Some(file) = file {
        return Token::from_file(file).map(Some).map_err(fail);
    }
    match std::env::var("OFLOW_TOKEN") {
        Err(std::env::VarError::NotPresent) => Ok(None),
        // The value stays out of the message: it may be most of a secret.
        Err(_) => Err(Failed::new("environment variable OFLOW_TOKEN is not UTF-8")),
        Ok(text) => text.parse().map(Some).map_err(|e: oflow::Error| {
            Failed::new(format!("environment variable OFLOW_TOKEN is malformed: {}", e.message()))
        }),
    }
}

/// Command to run on the other hosts: our own command line without our number, with the token.
fn invitation(token: &Token, args: impl Iterator<Item = String>) -> String {
    let mut words = vec![format!("OFLOW_TOKEN={}", token.expose())];
    let (mut skip, mut ours) = (false, true);
    for word in args {
        // What follows the dashes is the program's.
        ours &= word != "--";
        if ours && word == "--node-rank" {
            skip = true;
        } else {
            let number = std::mem::take(&mut skip) || (ours && word.starts_with("--node-rank="));
            if !number {
                words.push(quote(&word));
            }
        }
    }
    format!("whoever has the job's token may join; on each other host run\n  {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_invitation_is_our_command_without_our_number() {
        let token: Token = "0123456789abcdef".repeat(4).parse().unwrap();
        let args = "oflaunch --nnodes 2 --node-rank 0 --rdzv a:1 train.rs -- --node-rank 7";
        let line = invitation(&token, args.split(' ').map(String::from));
        let command =
            format!("OFLOW_TOKEN={} oflaunch --nnodes 2 --rdzv a:1 train.rs -- --node-rank 7", token.expose());
        assert!(line.ends_with(&format!("\n  {command}")), "{line}");
        let line = invitation(&token, ["oflaunch", "--node-rank=0", "my job"].map(String::from).into_iter());
        assert!(line.ends_with(" oflaunch 'my job'"), "{line}");
    }
}
