//! Programs of graphs, as text and as bytes.

use oflow::program::Program;

/// Reads the bytes and the text of a program again, and compares: of the text all but the lines of the calls comes back.
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
    let bytes = program.encode();
    let decoded = Program::decode(&bytes).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!((decoded.to_string(), decoded.global_hash()), (text.clone(), program.global_hash()));
    assert_eq!(signatures(&decoded), signatures(program), "{text}");
    // Bits too, which a text may round: of numbers that are none, for example.
    let numbers = |p: &Program| -> Vec<_> {
        let calls = p.nodes.iter().filter_map(oflow::program::Node::call);
        calls.map(|c| format!("{:?} {:?}", c.attrs, c.runtime)).collect()
    };
    assert_eq!(numbers(&decoded), numbers(program), "{text}");
    assert!(decoded.encode() == bytes, "other bytes are written of\n{text}");
}
