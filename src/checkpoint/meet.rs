//! Agreement of ranks on the result of a save or a load: each rank sends its result to all others, so a failure of one rank is an
//! error on every rank.

use crate::comm::Group;
use crate::context::RankCtx;
use crate::control::ControlClient;
use crate::error::{CallSite, Error, Result, panic_text};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a rank's message in a collective: a flag and a short text.
const MESSAGE: usize = 512;
/// Bytes of an error's own text; the rest is for the way out.
const WHY: usize = 360;
/// How long the slowest rank may take to write more than the fastest.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// How ranks exchange their results.
pub enum Agreement {
    /// A world of one.
    Alone,
    /// A collective on the caller's thread, in the rank's order of collectives.
    Collective(Arc<RankCtx>, CallSite),
    /// The control service, on any thread. The number is the same on all ranks.
    Control(Arc<ControlClient>, u64),
}

impl Agreement {
    /// Makes a meeting on the caller's thread.
    pub fn here(ctx: &Arc<RankCtx>, site: CallSite) -> Agreement {
        if ctx.world() == 1 { Agreement::Alone } else { Agreement::Collective(ctx.clone(), site) }
    }

    /// Exchanges the results of a stage. Returns the values in order of ranks.
    ///
    /// # Errors
    /// If any rank has failed; the error is the same on all ranks.
    pub fn agree(&self, stage: &'static str, mine: Result<String>) -> Result<Vec<String>> {
        let heard = match self {
            Agreement::Alone => return Ok(vec![mine?]),
            Agreement::Collective(ctx, site) => {
                let tag = ctx.next_op(stage, u64::from(site.line), *site);
                ctx.quiesce()?;
                let group = Group { ranks: (0..ctx.world()).collect(), me: ctx.rank() };
                let mut message = encode(&mine);
                message.resize(MESSAGE, 0);
                let mut heard = vec![0; MESSAGE * ctx.world()];
                ctx.comm()?.all_gather(&group, &tag, &message, &mut heard, &vec![MESSAGE; ctx.world()])?;
                heard.chunks(MESSAGE).map(<[u8]>::to_vec).collect()
            }
            Agreement::Control(client, number) => {
                client.meet(&format!("{stage}/{number}"), client.world(), &encode(&mine), PATIENCE)?
            }
        };
        let outcomes: Vec<Result<String, String>> = heard.iter().map(|m| decode(m)).collect();
        let failed: Vec<(usize, &String)> =
            outcomes.iter().enumerate().filter_map(|(r, o)| Some((r, o.as_ref().err()?))).collect();
        let Some((rank, why)) = failed.first() else { return Ok(outcomes.into_iter().flatten().collect()) };
        let others = match failed.len() - 1 {
            0 => String::new(),
            1 => " (and one other rank)".into(),
            n => format!(" (and {n} other ranks)"),
        };
        let (why, help) = why.split_once(HELP).unwrap_or((why, ""));
        let e = Error::storage(format!("rank {rank}{others}: {why}"));
        Err(if help.is_empty() { e } else { e.help(help) })
    }
}

/// Runs a part of a save. A panic becomes an error of this rank, which the other ranks then receive.
pub fn guarded<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    let caught = std::panic::catch_unwind(AssertUnwindSafe(run));
    caught.unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        Err(Error::storage(format!("writing panicked: {}", text.unwrap_or("without a text")))
            .help("this is a bug in oflow; earlier checkpoints are complete"))
    })
}

/// Between an error and its way out.
const HELP: char = '\u{1}';

/// 1 and a value, or 2 and why not, cut to what fits.
fn encode(outcome: &Result<String>) -> Vec<u8> {
    let (flag, text) = match outcome {
        Ok(text) => (1, text.clone()),
        Err(e) => {
            let text = e.to_string();
            let why = text.split("\n  help: ").next().unwrap_or_default();
            (2, format!("{}{HELP}{}", cut(why, WHY), e.help_text().unwrap_or_default()))
        }
    };
    let mut bytes = vec![flag];
    bytes.extend(cut(&text, MESSAGE - 1).as_bytes());
    bytes
}

/// At most that many bytes of a text.
fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn decode(message: &[u8]) -> Result<String, String> {
    let text = String::from_utf8_lossy(message.get(1..).unwrap_or_default()).trim_end_matches('\0').to_string();
    match message.first() {
        Some(1) => Ok(text),
        Some(2) => Err(text),
        _ => Err("its message arrived broken".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rank_s_failure_is_everyone_s() {
        let texts = crate::run_ranks(3, |w| {
            let meeting = Agreement::here(w.ctx(), CallSite::here());
            assert_eq!(meeting.agree("first", Ok(format!("r{}", w.rank())))?, ["r0", "r1", "r2"]);
            let mine = match w.rank() {
                0 => Ok(String::new()),
                _ => Err(Error::storage("ä".repeat(200)).help("free some space")),
            };
            Ok(meeting.agree("second", mine).unwrap_err().to_string())
        })
        .unwrap();
        let want = format!("rank 1 (and one other rank): {}\n  help: free some space", "ä".repeat(180));
        assert_eq!(texts, vec![want; 3]);
    }
}
