use super::tests::check;

/// Checks that nothing is fused.
fn stays(text: &str) {
    check("fuse", text, text);
}

#[test]
fn calls_that_others_alone_read_become_one() {
    check(
        "fuse",
        "input %0 \"x\": f32[4, 3] on cpu
         input %1 \"b\": f32[3] on cpu
         %2 = oflow.add@1(%0, %1): f32[4, 3] on cpu
         %3 = oflow.gelu@1(%2): f32[4, 3] on cpu
         %4 = oflow.mul_scalar@1(%3) {s=2.5}: f32[4, 3] on cpu
         %5 = oflow.mul@1(%4, %2): f32[4, 3] on cpu
         %6 = oflow.sum@1(%5) {dims=[], keepdim=false}: f32[] on cpu
         return %6",
        "input %0 \"x\": f32[4, 3] on cpu
         input %1 \"b\": f32[3] on cpu
         %2 = oflow.fused_reduce@1(%0, %1) {chain=\"x0 + x1; t0 * normcdf(t0); t1 * 2.5; t2 * t0\", compute=f32, dtype=f32, reduce=\"sum\", last=2, keepdim=false}: f32[] on cpu
         return %2",
    );
}

#[test]
fn layouts_are_those_of_the_calls() {
    check(
        "fuse",
        "input %0 \"x\": f32[4, 3] [P(sum)] on cpu[2]
         input %1 \"y\": f32[4, 3] [S(0)] on cpu[2]
         %2 = oflow.neg@1(%0): f32[4, 3] [P(sum)] on cpu[2]
         %3 = oflow.mul_scalar@1(%2) {s=0.5}: f32[4, 3] [P(sum)] on cpu[2]
         %4 = box(%3) for add: f32[4, 3] [S(0)] on cpu[2]
         %5 = oflow.add@1(%4, %1): f32[4, 3] [S(0)] on cpu[2]
         %6 = oflow.relu@1(%5): f32[4, 3] [S(0)] on cpu[2]
         return %6",
        "input %0 \"x\": f32[4, 3] [P(sum)] on cpu[2]
         input %1 \"y\": f32[4, 3] [S(0)] on cpu[2]
         %2 = oflow.fused@1(%0) {chain=\"-x0; t0 * 0.5\", compute=f32, dtype=f32}: f32[4, 3] [P(sum)] on cpu[2]
         %3 = box(%2) for add: f32[4, 3] [S(0)] on cpu[2]
         %4 = oflow.fused@1(%3, %1) {chain=\"x0 + x1; relu(t0)\", compute=f32, dtype=f32}: f32[4, 3] [S(0)] on cpu[2]
         return %4",
    );
}

#[test]
fn values_are_rounded_as_they_were_stored() {
    // What f32 holds: halves, truth values. The product of two bf16 is rounded before it is added.
    check(
        "fuse",
        "input %0 \"x\": bf16[5] on cpu
         input %1 \"y\": f32[5] on cpu
         %2 = oflow.mul@1(%0, %0): bf16[5] on cpu
         %3 = oflow.cast@1(%2) {dtype=f32}: f32[5] on cpu
         %4 = oflow.add@1(%3, %1): f32[5] on cpu
         %5 = oflow.cast@1(%4) {dtype=f16}: f16[5] on cpu
         return %5",
        "input %0 \"x\": bf16[5] on cpu
         input %1 \"y\": f32[5] on cpu
         %2 = oflow.fused@1(%0, %1) {chain=\"x0 * x0 as bf16; t0 + x1\", compute=f32, dtype=f16}: f16[5] on cpu
         return %2",
    );
    // f32 has not all integers, and what is computed in f64 is another arithmetic.
    stays(
        "input %0 \"x\": f32[5] on cpu
         %1 = oflow.cast@1(%0) {dtype=i32}: i32[5] on cpu
         %2 = oflow.cast@1(%1) {dtype=f32}: f32[5] on cpu
         return %2",
    );
    check(
        "fuse",
        "input %0 \"x\": f64[5] on cpu
         %1 = oflow.mul@1(%0, %0): f64[5] on cpu
         %2 = oflow.cast@1(%1) {dtype=f32}: f32[5] on cpu
         %3 = oflow.exp@1(%2): f32[5] on cpu
         return %3",
        "input %0 \"x\": f64[5] on cpu
         %1 = oflow.fused@1(%0) {chain=\"x0 * x0\", compute=f64, dtype=f32}: f32[5] on cpu
         %2 = oflow.exp@1(%1): f32[5] on cpu
         return %2",
    );
    // A value is read as it is, and rounded.
    check(
        "fuse",
        "input %0 \"x\": f32[5] on cpu
         %1 = oflow.exp@1(%0): f32[5] on cpu
         %2 = oflow.cast@1(%1) {dtype=bf16}: bf16[5] on cpu
         %3 = oflow.add@1(%2, %1): f32[5] on cpu
         %4 = oflow.cast@1(%3) {dtype=f64}: f64[5] on cpu
         return %4",
        "input %0 \"x\": f32[5] on cpu
         %1 = oflow.fused@1(%0) {chain=\"exp(x0); t0 as bf16; t1 + t0\", compute=f32, dtype=f32}: f32[5] on cpu
         %2 = oflow.cast@1(%1) {dtype=f64}: f64[5] on cpu
         return %2",
    );
    // A value that is rounded twice; one that only an earlier call has made; logic of truth values is the same in each arithmetic.
    check(
        "fuse",
        "input %0 \"x\": f32[5] on cpu
         input %1 \"m\": bool[5] on cpu
         %2 = oflow.exp@1(%0): f32[5] on cpu
         %3 = oflow.cast@1(%2) {dtype=f16}: f16[5] on cpu
         %4 = oflow.cast@1(%3) {dtype=bf16}: bf16[5] on cpu
         %5 = oflow.cast@1(%4) {dtype=f32}: f32[5] on cpu
         %6 = oflow.gt@1(%5, %0): bool[5] on cpu
         %7 = oflow.logical_xor@1(%6, %1): bool[5] on cpu
         %8 = oflow.cast@1(%7) {dtype=f32}: f32[5] on cpu
         return %8",
        "input %0 \"x\": f32[5] on cpu
         input %1 \"m\": bool[5] on cpu
         %2 = oflow.fused@1(%0, %1) {chain=\"exp(x0); t0 as f16; t1 as bf16; t2 > x0; xor(t3, x1)\", compute=f32, dtype=f32}: f32[5] on cpu
         return %2",
    );
}

#[test]
fn a_reduction_over_the_last_dims_reads_what_it_reduces_as_it_is_computed() {
    // The last dim, in any way to say it; P(sum) is of the reduction, and its input lies as the calls leave it.
    check(
        "fuse",
        "input %0 \"x\": bf16[4, 3] [S(1)] on cpu[2]
         input %1 \"y\": bf16[4, 1] [B] on cpu[2]
         %2 = oflow.sub@1(%0, %1): bf16[4, 3] [S(1)] on cpu[2]
         %3 = oflow.square@1(%2): bf16[4, 3] [S(1)] on cpu[2]
         %4 = oflow.mean@1(%3) {dims=[-1], keepdim=true}: bf16[4, 1] [P(sum)] on cpu[2]
         return %4",
        "input %0 \"x\": bf16[4, 3] [S(1)] on cpu[2]
         input %1 \"y\": bf16[4, 1] [B] on cpu[2]
         %2 = oflow.fused_reduce@1(%0, %1) {chain=\"x0 - x1 as bf16; square(t0)\", compute=f32, dtype=bf16, reduce=\"mean\", last=1, keepdim=true}: bf16[4, 1] [P(sum)] on cpu[2]
         return %2",
    );
    // What a truth value is counted of; the result of a reduction is read by the next group.
    check(
        "fuse",
        "input %0 \"x\": f32[4, 3] on cpu
         %1 = oflow.amax@1(%0) {dims=[1], keepdim=true}: f32[4, 1] on cpu
         %2 = oflow.eq@1(%0, %1): bool[4, 3] on cpu
         %3 = oflow.sum@1(%2) {dims=[1, 0], keepdim=false}: i64[] on cpu
         %4 = oflow.exp@1(%0): f32[4, 3] on cpu
         %5 = oflow.amin@1(%4) {dims=[1], keepdim=false}: f32[4] on cpu
         %6 = oflow.neg@1(%5): f32[4] on cpu
         return %3, %6",
        "input %0 \"x\": f32[4, 3] on cpu
         %1 = oflow.amax@1(%0) {dims=[1], keepdim=true}: f32[4, 1] on cpu
         %2 = oflow.fused_reduce@1(%0, %1) {chain=\"x0 == x1\", compute=f32, dtype=bool, reduce=\"sum\", last=2, keepdim=false}: i64[] on cpu
         %3 = oflow.fused_reduce@1(%0) {chain=\"exp(x0)\", compute=f32, dtype=f32, reduce=\"amin\", last=1, keepdim=false}: f32[4] on cpu
         %4 = oflow.neg@1(%3): f32[4] on cpu
         return %2, %4",
    );
    // What lies in another order is computed in blocks of both orders.
    let turned = |perm: &str, shape: &str, fused: &str| {
        let views = format!(
            "input %0 \"x\": f32[4, 3] on cpu
             input %1 \"y\": f32[3, 4] on cpu
             %2 = oflow.{perm}: f32{shape} on cpu"
        );
        let apart = "%3 = oflow.add@1(%0, %2): f32[4, 3] on cpu
             %4 = oflow.sum@1(%3) {dims=[1], keepdim=false}: f32[4] on cpu
             return %4";
        check(
            "fuse",
            &format!("{views}\n{apart}"),
            &format!("{views}\n{}", if fused.is_empty() { apart } else { fused }),
        );
    };
    turned("permute@1(%1) {dims=[1, 0]}", "[4, 3]", "");
    let read = "%3 = oflow.fused_reduce@1(%0, %2) {chain=\"x0 + x1\", compute=f32, dtype=f32, reduce=\"sum\", last=1, keepdim=false}: f32[4] on cpu";
    turned("reshape@1(%1) {shape=[4, 3]}", "[4, 3]", &format!("{read}\nreturn %3"));
    // Other dims, other reductions, GPUs, elements that are folded as a wider dtype, and a value that others read too.
    let stays_with = |reduction: &str, device: &str| {
        stays(&format!(
            "input %0 \"x\": f32[4, 3] on {device}
             %1 = oflow.exp@1(%0): f32[4, 3] on {device}
             %2 = oflow.{reduction} on {device}
             return %2"
        ));
    };
    stays_with("sum@1(%1) {dims=[0], keepdim=false}: f32[3]", "cpu");
    stays_with("prod@1(%1) {dims=[1], keepdim=false}: f32[4]", "cpu");
    stays_with("argmax@1(%1) {dim=1, keepdim=false}: i64[4]", "cpu");
    stays_with("sum@1(%1) {dims=[1], keepdim=false}: f32[4]", "cuda");
    stays(
        "input %0 \"x\": i16[4, 3] on cpu
         %1 = oflow.neg@1(%0): i16[4, 3] on cpu
         %2 = oflow.amax@1(%1) {dims=[1], keepdim=false}: i16[4] on cpu
         return %2",
    );
    stays(
        "input %0 \"x\": f32[4, 3] on cpu
         %1 = oflow.exp@1(%0): f32[4, 3] on cpu
         %2 = oflow.sum@1(%1) {dims=[1], keepdim=true}: f32[4, 1] on cpu
         %3 = oflow.amax@1(%1) {dims=[1], keepdim=true}: f32[4, 1] on cpu
         return %2, %3",
    );
}

#[test]
fn what_others_read_is_made_by_a_call_of_its_own() {
    // Returned, written over, read by another op, asked by a guard.
    stays(
        "input %0 \"x\": f32[4] on cpu
         %1 = oflow.exp@1(%0): f32[4] on cpu
         %2 = oflow.relu@1(%1): f32[4] on cpu
         return %1, %2",
    );
    stays(
        "input %0 \"x\": f32[4] on cpu
         %1 = oflow.exp@1(%0): f32[4] on cpu
         %2 = oflow.relu@1(%1): f32[4] on cpu
         %3 = oflow.sum@1(%1) {dims=[], keepdim=false}: f32[] on cpu
         return %2, %3",
    );
    stays(
        "input %0 \"x\": f32[4] on cpu
         %1 = oflow.exp@1(%0): f32[4] on cpu
         %2 = oflow.relu@1(%1) into %1: f32[4] on cpu
         return %2",
    );
    // Results of other shapes, marks and divisions of integers.
    stays(
        "input %0 \"x\": f32[4] on cpu
         input %1 \"y\": f32[3, 4] on cpu
         %2 = oflow.exp@1(%0): f32[4] on cpu
         %3 = oflow.add@1(%1, %2): f32[3, 4] on cpu
         %4 = oflow.exp@1(%0): f32[4] on cpu recomputed backward
         %5 = oflow.neg@1(%4): f32[4] on cpu backward
         return %3, %5",
    );
    stays(
        "input %0 \"x\": i64[4] on cpu
         %1 = oflow.add@1(%0, %0): i64[4] on cpu
         %2 = oflow.remainder@1(%1, %0): i64[4] on cpu
         %3 = oflow.neg@1(%2): i64[4] on cpu
         return %3",
    );
}

#[test]
fn a_value_is_read_before_its_memory_is_written() {
    let text = |first: &str, second: &str| {
        format!(
            "variable %0: f32[4] on cpu
             %1 = oflow.exp@1(%0): f32[4] on cpu
             {first}
             {second}
             return %3"
        )
    };
    let (write, last) = ("%2 = oflow.add@1(%0, %0) into %0: f32[4] on cpu", "%3 = oflow.relu@1(%1): f32[4] on cpu");
    stays(&text(write, last));
    check(
        "fuse",
        &text(last, write),
        "variable %0: f32[4] on cpu
         %1 = oflow.fused@1(%0) {chain=\"exp(x0); relu(t0)\", compute=f32, dtype=f32}: f32[4] on cpu
         %2 = oflow.add@1(%0, %0) into %0: f32[4] on cpu
         return %1",
    );
}

#[test]
fn a_group_that_would_take_more_memory_is_not_made() {
    // Behind the large values the first call would find two operands in the place of one result.
    let text = |operand: &str| {
        format!(
            "input %0 \"x\": f32[64] on cpu
             %1 = oflow.softmax@1(%0) {{dim=0}}: f32[64] on cpu
             %2 = oflow.softmax@1(%1) {{dim=0}}: f32[64] on cpu
             %3 = oflow.add@1({operand}, %2): f32[64] on cpu
             %4 = oflow.concat@1(%0, %0) {{dim=0}}: f32[128] on cpu
             %5 = oflow.concat@1(%4, %4) {{dim=0}}: f32[256] on cpu
             %6 = oflow.sum@1(%5) {{dims=[], keepdim=false}}: f32[] on cpu
             %7 = oflow.mul@1(%3, %6): f32[64] on cpu
             return %7"
        )
    };
    stays(&text("%1"));
    check(
        "fuse",
        &text("%0"),
        "input %0 \"x\": f32[64] on cpu
         %1 = oflow.softmax@1(%0) {dim=0}: f32[64] on cpu
         %2 = oflow.softmax@1(%1) {dim=0}: f32[64] on cpu
         %3 = oflow.concat@1(%0, %0) {dim=0}: f32[128] on cpu
         %4 = oflow.concat@1(%3, %3) {dim=0}: f32[256] on cpu
         %5 = oflow.sum@1(%4) {dims=[], keepdim=false}: f32[] on cpu
         %6 = oflow.fused@1(%0, %2, %5) {chain=\"x0 + x1; t0 * x2\", compute=f32, dtype=f32}: f32[64] on cpu
         return %6",
    );
}
