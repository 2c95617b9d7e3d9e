//! Checks that all ranks see the folder that rank 0 writes to. Otherwise each host would have a part of the checkpoint.

use super::lock;
use super::meet::Agreement;
use crate::error::{Error, Result};
use indexmap::IndexMap;
use oflow_files::lock::host;
use std::path::Path;

const SEES: &str = "sees";
const SEES_NOT: &str = "does-not-see";

/// Looks for the mark of rank 0's lock on all ranks.
///
/// # Errors
/// If a rank does not find it. The error is the same on all ranks and names the hosts without it.
pub fn check(dir: &Path, mark: Result<String>, meeting: &Agreement) -> Result<()> {
    let mark = meeting.agree("mark_folder", mark)?.swap_remove(0);
    let sees = if lock::has_mark(dir, &mark) { SEES } else { SEES_NOT };
    let answers = meeting.agree("see_folder", Ok(format!("{sees} {}", host())))?;
    not_shared(dir, &answers).map_or(Ok(()), Err)
}

/// Returns which hosts do not see the folder, from the reports of the ranks in order.
fn not_shared(dir: &Path, answers: &[String]) -> Option<Error> {
    let answers: Vec<(&str, &str)> = answers.iter().map(|t| t.split_once(' ').unwrap_or((SEES_NOT, "?"))).collect();
    let mut blind: IndexMap<&str, Vec<String>> = IndexMap::new();
    for (rank, (_, host)) in answers.iter().enumerate().filter(|(_, (sees, _))| *sees != SEES) {
        blind.entry(host).or_default().push(rank.to_string());
    }
    let name = |(host, ranks): (&&str, &Vec<String>)| {
        format!("{host} (rank{} {})", if ranks.len() == 1 { "" } else { "s" }, ranks.join(", "))
    };
    let hosts: Vec<String> = blind.iter().map(name).collect();
    if hosts.is_empty() {
        return None;
    }
    let (dir, first) = (dir.display(), answers[0].1);
    if answers[0].0 != SEES {
        // Rank 0 has just put its mark there.
        let text = format!("{dir} was removed or made anew after rank 0 had opened it");
        return Some(Error::storage(text).help(
            "a folder that the program clears is cleared by one rank, for which the others wait: if it is rank 0, then `barrier()`",
        ));
    }
    let text = format!("{dir} on {first} (rank 0) is not the folder of that name on {}", hosts.join(" and "));
    Some(
        Error::storage(text)
            .help("name a folder on a file system that all hosts share, by the same path on each host (NFS, Lustre)"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_do_not_see_the_folder_are_named() {
        let answers = |all: &[&str]| {
            let answers: Vec<String> = all.iter().map(|t| t.to_string()).collect();
            not_shared(Path::new("runs/a"), &answers).map(|e| e.message().to_string())
        };
        assert_eq!(answers(&["sees a", "sees a", "sees b"]), None);
        let want = "runs/a on a (rank 0) is not the folder of that name on b (rank 2)";
        assert_eq!(answers(&["sees a", "sees a", "does-not-see b"]).unwrap(), want);
        let want = "runs/a on a (rank 0) is not the folder of that name on b (ranks 1, 3) and c (rank 2)";
        assert_eq!(answers(&["sees a", "does-not-see b", "does-not-see c", "does-not-see b"]).unwrap(), want);
        let want = "runs/a was removed or made anew after rank 0 had opened it";
        assert_eq!(answers(&["does-not-see a", "does-not-see a"]).unwrap(), want);
    }
}
