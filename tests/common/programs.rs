//! Programs of graphs, as text.

use oflow::program::Program;

/// Reads the text of a program again, and compares it: all but the lines of the calls comes back.
pub fn round_trip(program: &Program) {
    let code = |p: &Program| -> Vec<String> {
        let text = p.to_string();
        text.lines().map(|line| line.rsplit_once("  # ").map_or(line, |(code, _)| code).to_string()).collect()
    };
    let text = program.to_string();
    let again: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(code(&again), code(program), "{text}");
    let signatures = |p: &Program| -> Vec<_> {
        let of = |n: &oflow::program::Node| {
            let sig = n.call()?.signature.clone()?;
            let there = n.inputs.iter().zip(sig.inputs).filter(|(v, _)| v.is_some()).map(|(_, s)| s);
            Some((there.collect::<Vec<_>>(), sig.outputs, sig.lowering))
        };
        p.nodes.iter().map(of).collect()
    };
    assert_eq!(signatures(&again), signatures(program), "{text}");
}
