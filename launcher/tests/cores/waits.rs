//! Short waits of ranks that have a core each.

use crate::common::*;

/// With the options that a user gets who names none: ranks with a core each look for what they wait for before they sleep.
#[test]
fn short_waits_between_ranks_with_a_core_each_do_not_sleep() {
    if oflaunch::cores::available().len() < 2 {
        eprintln!("one core: not tested");
        return;
    }
    let output = run(&Folder::new(), &["-n", "2", job(), "--", "short-waits"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    for rank in 0..2 {
        let prefix = format!("[rank {rank}] ");
        let text = stdout(&output);
        let sleeps: u64 = text.lines().find_map(|l| l.strip_prefix(&prefix)).unwrap().trim().parse().unwrap();
        assert!(sleeps < 1000, "rank {rank} slept {sleeps} times in 2,000 boxings");
    }
}
