//! A program outside the workspace, linked to the library: the program of the design runs on 4 ranks, and an op that it adds with
//! public API only takes part in everything, backward included.

use crate::common::*;

#[test]
fn a_program_of_somebody_elses() {
    let folder = Folder::new();
    folder.write("outside.rs", include_str!("../scripts/outside.rs"));
    let output = run(&folder, &["-n", "4", "outside.rs"]);
    assert!(code(&output) == 0 && !stderr(&output).contains("[rank"), "{}", stderr(&output));
    let mut wanted = String::new();
    for line in [
        "f32[1024, 256] [S(0), S(1)] on cpu[dp=2, tp=2]",
        "f32[3, 1] [S(0), P(sum)] on cpu[dp=2, tp=2] (in graph) [20.0, 148.0, 404.0]",
        "true true",
        "outside.row_dot(f32[3, 4] [S(0), S(1)], f32[1024, 512] [S(0), B]) on cpu[dp=2, tp=2]: needs two equal matrices, not f32[3, 4] and f32[1024, 512]",
    ] {
        wanted += &format!("{line}\n");
    }
    let text = stdout(&output);
    for rank in 0..4 {
        let prefix = format!("[rank {rank}] ");
        let own: String = text.lines().filter_map(|l| l.strip_prefix(&prefix)).flat_map(|l| [l, "\n"]).collect();
        assert_eq!(own, wanted, "rank {rank}");
    }
}
