//! What test binaries share. The op harness is the library's: `oflow::testing`.
#![allow(dead_code)] // each test binary uses its own part

/// Meshes that each op is tested on as its samples are given, besides those of `oflow::testing`.
pub const LARGE_MESHES: [&[usize]; 2] = [&[8], &[2, 2, 2]];

/// Fails with the first complaint about each op: one wrong rule or kernel is wrong in many cases. A complaint begins with the
/// name of its op.
pub fn settle(what: &str, total: usize, wrong: &[String]) {
    println!("{what}: {total} cases, {} wrong", wrong.len());
    let mut shown: std::collections::BTreeMap<&str, &str> = Default::default();
    for w in wrong {
        shown.entry(w.split([' ', ':']).next().unwrap_or("")).or_insert(w);
    }
    let shown: Vec<&str> = shown.into_values().collect();
    assert!(wrong.is_empty(), "{} of {total} wrong, among them:\n{}", wrong.len(), shown.join("\n"));
}
