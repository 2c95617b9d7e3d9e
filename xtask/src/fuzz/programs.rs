//! Texts and bytes of captured programs.

use oflow::functional::ones;
use oflow::graph::{Graph, GraphOptions};
use oflow::optim::OptimizerExt;
use oflow::optim::{Sgd, SgdOptions};
use oflow::placement::Device;
use oflow::program::Program;

/// A captured step of local tensors, and programs of global tensors.
pub fn recorded() -> Vec<Vec<u8>> {
    let step = || -> oflow::Result<String> {
        let w = ones([3, 1], Device::Cpu)?.requires_grad_(true)?;
        let mut opt = Sgd::new(vec![w.clone()], SgdOptions { momentum: 0.9, ..Default::default() });
        let x = ones([2, 2, 3], Device::Cpu)?;
        let graph = Graph::build(
            |g| {
                let x = g.input("x", &x)?;
                let (last, losses) = g.scan(2, w.detach().copy()?, |i, mean| {
                    let loss = i.of(&x)?.dropout(0.5)?.matmul(&w)?.sum(())?;
                    loss.backward()?;
                    opt.step()?;
                    Ok((mean.add(&w.detach())?, loss.detach()))
                })?;
                last.sum(())?.add(&losses.sum(())?)
            },
            GraphOptions::default(),
        )?;
        Ok(graph.program().to_string())
    };
    let global = [
        "draws 1 0",
        "input %0 \"x\": f32[4, 6] [S(0)] on cpu[dp=2]",
        "variable %1: f32[6, 2] [S(1)] on cpu[dp=2]",
        "%2 = box(%0) for matmul: f32[4, 6] [B] on cpu[dp=2]",
        "%3 = oflow.matmul@1(%2, %1) {transpose_a=false, transpose_b=false}: f32[4, 2] [S(1)] on cpu[dp=2]",
        "%4 = oflow.box_many@1(%3) {placements=[cpu[2] of ranks [1, 0]], sbps=[[S(1)]], grad_sbps=[none]}: f32[4, 2] [S(1)] on cpu[2] of ranks [1, 0]",
        "%5 = oflow.full@1() {shape=[], dtype=f32, value=1.0} as [B] on cpu[dp=2]: f32[] [B] on cpu[dp=2] backward",
        "return %3, %5",
    ];
    let mut all = vec![global.join("\n").into_bytes()];
    all.extend(step().map(String::into_bytes));
    all
}

/// The same programs as bytes.
pub fn encoded() -> Vec<Vec<u8>> {
    let bytes = |text: Vec<u8>| Some(std::str::from_utf8(&text).ok()?.parse::<Program>().ok()?.encode());
    recorded().into_iter().filter_map(bytes).collect()
}

/// Bytes. What is read is written, and read again, as bytes and as text.
pub fn bytes(input: &[u8]) -> Result<bool, String> {
    let Ok(program) = Program::decode(input) else { return Ok(false) };
    let written = program.encode();
    let again = Program::decode(&written).map_err(|e| format!("{e}\n{program}"))?;
    if again.encode() != written || again.to_string() != program.to_string() {
        return Err(format!("another program is read of\n{program}"));
    }
    Ok(true)
}

/// A text. What is read is written, and read again.
pub fn text(input: &[u8]) -> Result<bool, String> {
    let Ok(text) = std::str::from_utf8(input) else { return Ok(false) };
    let Ok(program) = text.parse::<Program>() else { return Ok(false) };
    let written = program.to_string();
    match written.parse::<Program>() {
        Ok(again) if again.values.len() == program.values.len() && again.nodes.len() == program.nodes.len() => Ok(true),
        Ok(_) => Err(format!("another program is read of\n{written}")),
        Err(e) => Err(format!("{e}\n{written}")),
    }
}
