//! Tests of the passes that find places for boxings, from text to text.

use super::super::types::Program;
use super::tests::{check, check_with};
use super::{Memory, Passes};

#[test]
fn small_boxings_of_one_kind_are_one() {
    // What needs the first one goes behind. The third one is for another op.
    check(
        "together",
        "input %0 \"a\": f32[4] [P(sum)] on cpu[2]
         input %1 \"b\": f32[4] [P(sum)] on cpu[2]
         %2 = box(%0) for sqrt: f32[4] [B] on cpu[2]
         %3 = oflow.sqrt@1(%2): f32[4] [B] on cpu[2]
         %4 = oflow.neg@1(%1): f32[4] [P(sum)] on cpu[2]
         %5 = box(%4) for sqrt: f32[4] [B] on cpu[2]
         %6 = oflow.sqrt@1(%5): f32[4] [B] on cpu[2]
         %7 = box(%1) for exp: f32[4] [B] on cpu[2]
         %8 = oflow.exp@1(%7): f32[4] [B] on cpu[2]
         return %3, %6, %8",
        "input %0 \"a\": f32[4] [P(sum)] on cpu[2]
         input %1 \"b\": f32[4] [P(sum)] on cpu[2]
         %4 = oflow.neg@1(%1): f32[4] [P(sum)] on cpu[2]
         %2, %5 = oflow.box_many@1(%0, %4) {placements=[cpu[2], cpu[2]], sbps=[[B], [B]], grad_sbps=[none, none]} for sqrt: f32[4] [B] on cpu[2]; f32[4] [B] on cpu[2]
         %3 = oflow.sqrt@1(%2): f32[4] [B] on cpu[2]
         %6 = oflow.sqrt@1(%5): f32[4] [B] on cpu[2]
         %7 = box(%1) for exp: f32[4] [B] on cpu[2]
         %8 = oflow.exp@1(%7): f32[4] [B] on cpu[2]
         return %3, %6, %8",
    );
}

#[test]
fn gradients_and_stated_layouts_go_together_too() {
    check(
        "together",
        "input %0 \"a\": f32[4] [P(sum)] on cpu[2]
         input %1 \"b\": f32[4] [P(sum)] on cpu[2]
         %2 = oflow.to_global@1(%0) {placement=cpu[2], sbp=[B], grad_sbp=[P(sum)]} for a gradient: f32[4] [B] on cpu[2] backward
         %3 = oflow.to_global@1(%1) {placement=cpu[2], sbp=[B], grad_sbp=none} for a gradient: f32[4] [B] on cpu[2] backward
         %4, %5 = oflow.box_many@1(%0, %1) {placements=[cpu[2], cpu[2]], sbps=[[B], [B]], grad_sbps=[none, none]} for a gradient: f32[4] [B] on cpu[2]; f32[4] [B] on cpu[2] backward
         %6 = oflow.to_global@1(%1) {placement=cpu[2], sbp=[B], grad_sbp=none}: f32[4] [B] on cpu[2] backward
         return %2, %3, %4, %5, %6",
        "input %0 \"a\": f32[4] [P(sum)] on cpu[2]
         input %1 \"b\": f32[4] [P(sum)] on cpu[2]
         %2, %3, %4, %5 = oflow.box_many@1(%0, %1, %0, %1) {placements=[cpu[2], cpu[2], cpu[2], cpu[2]], sbps=[[B], [B], [B], [B]], grad_sbps=[[P(sum)], none, none, none]} for a gradient: f32[4] [B] on cpu[2]; f32[4] [B] on cpu[2]; f32[4] [B] on cpu[2]; f32[4] [B] on cpu[2] backward
         %6 = oflow.to_global@1(%1) {placement=cpu[2], sbp=[B], grad_sbp=none}: f32[4] [B] on cpu[2] backward
         return %2, %3, %4, %5, %6",
    );
}

#[test]
fn what_needs_each_other_is_large_or_changes_other_layouts_stays_apart() {
    let text = "input %0 \"a\": f32[4] [P(sum)] on cpu[2]
         input %1 \"b\": f32[4] [S(0)] on cpu[2]
         input %2 \"c\": f32[512, 512] [P(sum)] on cpu[2]
         input %3 \"d\": f32[512, 512] [P(sum)] on cpu[2]
         %4 = box(%0) for sqrt: f32[4] [B] on cpu[2]
         %5 = oflow.sqrt@1(%4): f32[4] [B] on cpu[2]
         %6 = box(%5) for add: f32[4] [P(sum)] on cpu[2]
         %7 = box(%6) for sqrt: f32[4] [B] on cpu[2]
         %8 = box(%1) for sqrt: f32[4] [B] on cpu[2]
         %9 = box(%2) for sqrt: f32[512, 512] [B] on cpu[2]
         %10 = box(%3) for sqrt: f32[512, 512] [B] on cpu[2]
         return %7, %8, %9, %10";
    check("together", text, text);
}

#[test]
fn small_boxings_leave_the_peak() {
    // The second one is boxed where most is in use, and the first one would be there still.
    let text = "input %0 \"a\": f32[256] [S(0)] on cpu[2]
         input %1 \"b\": f32[256] [S(0)] on cpu[2]
         input %2 \"c\": f32[4096] on cpu
         %3 = box(%0) for sum: f32[256] [B] on cpu[2]
         %4 = oflow.sum@1(%3) {dims=[], keepdim=false}: f32[] [B] on cpu[2]
         %5 = oflow.exp@1(%2): f32[4096] on cpu
         %6 = oflow.sum@1(%5) {dims=[], keepdim=false}: f32[] on cpu
         %7 = box(%1) for sum: f32[256] [B] on cpu[2]
         %8 = oflow.sum@1(%7) {dims=[], keepdim=false}: f32[] [B] on cpu[2]
         return %4, %5, %6, %8";
    check("together", text, text);
}

/// A sum over the ranks that a call waits for, while another one could compute.
const SUM: &str = "input %0 \"x\": f32[512, 512] [S(1)] on cpu[2]
     input %1 \"w\": f32[512, 512] [S(0)] on cpu[2]
     input %2 \"a\": f32[512, 512] [B] on cpu[2]
     %3 = oflow.matmul@1(%0, %1) {transpose_a=false, transpose_b=false}: f32[512, 512] [P(sum)] on cpu[2]
     %4 = box(%3) for relu: f32[512, 512] [B] on cpu[2]
     %5 = oflow.relu@1(%4): f32[512, 512] [B] on cpu[2]
     %6 = oflow.matmul@1(%2, %2) {transpose_a=false, transpose_b=false}: f32[512, 512] [B] on cpu[2]
     %7 = oflow.add@1(%5, %6): f32[512, 512] [B] on cpu[2]
     return %7";

#[test]
fn what_waits_for_an_exchange_moves_down() {
    let wide = Passes::default().memory(Memory::Budget(1 << 30));
    check_with(
        ("overlap", &wide),
        SUM,
        "input %0 \"x\": f32[512, 512] [S(1)] on cpu[2]
         input %1 \"w\": f32[512, 512] [S(0)] on cpu[2]
         input %2 \"a\": f32[512, 512] [B] on cpu[2]
         %3 = oflow.matmul@1(%0, %1) {transpose_a=false, transpose_b=false}: f32[512, 512] [P(sum)] on cpu[2]
         %4 = box(%3) for relu: f32[512, 512] [B] on cpu[2] overlapped
         %6 = oflow.matmul@1(%2, %2) {transpose_a=false, transpose_b=false}: f32[512, 512] [B] on cpu[2]
         %5 = oflow.relu@1(%4): f32[512, 512] [B] on cpu[2]
         %7 = oflow.add@1(%5, %6): f32[512, 512] [B] on cpu[2]
         return %7",
    );
    // Three matrices would be in use, and are not before.
    check("overlap", SUM, SUM);
}

/// Parameters of three layers that are gathered for their calls.
const LAYERS: &str = "input %0 \"x\": f32[512, 512] [B] on cpu[2]
     variable %1: f32[512, 512] [S(0)] on cpu[2]
     variable %2: f32[512, 512] [S(0)] on cpu[2]
     variable %3: f32[512, 512] [S(0)] on cpu[2]
     %4 = box(%1) for parameter: f32[512, 512] [B] on cpu[2]
     %5 = oflow.matmul@1(%0, %4) {transpose_a=false, transpose_b=false}: f32[512, 512] [B] on cpu[2]
     %6 = box(%2) for parameter: f32[512, 512] [B] on cpu[2]
     %7 = oflow.matmul@1(%5, %6) {transpose_a=false, transpose_b=false}: f32[512, 512] [B] on cpu[2]
     %8 = box(%3) for parameter: f32[512, 512] [B] on cpu[2]
     %9 = oflow.matmul@1(%7, %8) {transpose_a=false, transpose_b=false}: f32[512, 512] [B] on cpu[2]
     return %9";

#[test]
fn parameters_are_gathered_one_layer_ahead() {
    let wide = Passes::default().memory(Memory::Budget(1 << 30));
    check_with(
        ("overlap", &wide),
        LAYERS,
        "input %0 \"x\": f32[512, 512] [B] on cpu[2]
         variable %1: f32[512, 512] [S(0)] on cpu[2]
         variable %2: f32[512, 512] [S(0)] on cpu[2]
         variable %3: f32[512, 512] [S(0)] on cpu[2]
         %4 = box(%1) for parameter: f32[512, 512] [B] on cpu[2]
         %6 = box(%2) for parameter: f32[512, 512] [B] on cpu[2] overlapped
         %5 = oflow.matmul@1(%0, %4) {transpose_a=false, transpose_b=false}: f32[512, 512] [B] on cpu[2]
         %8 = box(%3) for parameter: f32[512, 512] [B] on cpu[2] overlapped
         %7 = oflow.matmul@1(%5, %6) {transpose_a=false, transpose_b=false}: f32[512, 512] [B] on cpu[2]
         %9 = oflow.matmul@1(%7, %8) {transpose_a=false, transpose_b=false}: f32[512, 512] [B] on cpu[2]
         return %9",
    );
}

#[test]
fn a_larger_budget_is_never_slower() {
    for text in [SUM, LAYERS] {
        let size = |bytes: usize| {
            let mut program: Program = text.parse().unwrap();
            let passes = Passes::default().without("recompute").unwrap().without("order").unwrap();
            let effects = passes.memory(Memory::Budget(bytes)).run(&mut program).unwrap();
            (effects[effects.len() - 2].after, effects[effects.len() - 1].after)
        };
        let before = size(0).0;
        let mut last = u64::MAX;
        for part in 0..40 {
            let bytes = before.peak + part * before.peak / 20;
            let (before, after) = size(bytes);
            assert!(after.peak <= bytes.max(before.peak), "{bytes}: {after:?}");
            assert!(after.time <= last && after.time <= before.time, "{bytes}: {after:?}, {last} before");
            last = after.time;
        }
        assert!(last < before.time, "{before:?}");
    }
}

#[test]
fn a_write_of_what_is_gathered_stays_before_it() {
    let text = "input %0 \"x\": f32[512, 512] [B] on cpu[2]
         variable %1: f32[512, 512] [S(0)] on cpu[2]
         %2 = oflow.matmul@1(%0, %0) {transpose_a=false, transpose_b=false}: f32[512, 512] [B] on cpu[2]
         %3 = oflow.add@1(%1, %1) into %1: f32[512, 512] [S(0)] on cpu[2]
         %4 = box(%3) for matmul: f32[512, 512] [B] on cpu[2]
         %5 = oflow.matmul@1(%2, %4) {transpose_a=false, transpose_b=false}: f32[512, 512] [B] on cpu[2]
         return %5";
    let mut program: Program = text.parse().unwrap();
    super::overlap::overlap(&mut program, Some(1 << 30), &Passes::default().planner());
    program.verify().unwrap();
    let text = program.to_string();
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in\n{text}"));
    assert!(place("into %1") < place("box(%3)"), "{text}");
}
