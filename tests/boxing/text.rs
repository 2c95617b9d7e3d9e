//! Plans as text, and plans for large meshes.

use super::oracle::mesh_of;
use expect_test::{Expect, expect};
use oflow::boxing::{BoxingPlan, Layout, plan};
use oflow::kernels::DType;
use oflow::placement::{Device, Placement};
use oflow::sbp;
use oflow::sbp::NdSbp;
use std::sync::Arc;
use std::time::Instant;

fn plan_text(shape: &[usize], src: (&Placement, &str), dst: (&Placement, &str)) -> Arc<BoxingPlan> {
    let layout = |(p, s): (&Placement, &str)| Layout::new(p, s.parse::<NdSbp>().unwrap());
    plan(shape, DType::F32, &layout(src), &layout(dst)).unwrap()
}

fn check(shape: &[usize], src: (&Placement, &str), dst: (&Placement, &str), expected: Expect) {
    expected.assert_eq(&plan_text(shape, src, dst).to_string());
}

#[test]
fn plans_read_well() {
    let line = Placement::of_world(Device::Cpu, 4).unwrap().mesh(&[("tp", 4)]).unwrap();
    let plane = Placement::of_world(Device::Cpu, 4).unwrap().mesh(&[("dp", 2), ("tp", 2)]).unwrap();
    let (a, b) = (plane.slice("dp", 0).unwrap(), plane.slice("dp", 1).unwrap());
    let one = Placement::new(Device::Cpu, &[0], &[1]).unwrap();
    let big = [1024, 1024];
    check(
        &big,
        (&line, "[P]"),
        (&line, "[B]"),
        expect![[r#"
        f32[1024, 1024] [P(sum)] on cpu[tp=4] -> [B]: 25165824 B, 635.6 us
          all-reduce(sum) along tp: [P(sum)] -> [B]
    "#]],
    );
    check(
        &big,
        (&line, "[P]"),
        (&line, "[S(1)]"),
        expect![[r#"
        f32[1024, 1024] [P(sum)] on cpu[tp=4] -> [S(1)]: 12582912 B, 321.1 us
          reduce-scatter(sum, dim 1) along tp: [P(sum)] -> [S(1)]
    "#]],
    );
    check(
        &big,
        (&line, "[S(0)]"),
        (&line, "[B]"),
        expect![[r#"
        f32[1024, 1024] [S(0)] on cpu[tp=4] -> [B]: 12582912 B, 321.1 us
          all-gather(dim 0) along tp: [S(0)] -> [B]
    "#]],
    );
    check(
        &big,
        (&line, "[S(0)]"),
        (&line, "[S(1)]"),
        expect![[r#"
        f32[1024, 1024] [S(0)] on cpu[tp=4] -> [S(1)]: 3145728 B, 85.1 us
          all-to-all(dim 0 to 1) along tp: [S(0)] -> [S(1)]
    "#]],
    );
    check(
        &big,
        (&line, "[P(max)]"),
        (&line, "[P]"),
        expect![[r#"
        f32[1024, 1024] [P(max)] on cpu[tp=4] -> [P(sum)]: 12582912 B, 426.1 us
          reduce-scatter(max, dim 0) along tp: [P(max)] -> [S(0)]
          pad(dim 0, sum) along tp: [S(0)] -> [P(sum)]
    "#]],
    );
    check(
        &big,
        (&line, "[B]"),
        (&line, "[B]"),
        expect![[r#"
        f32[1024, 1024] [B] on cpu[tp=4] -> [B]: 0 B, 0.0 us
    "#]],
    );
    check(
        &big,
        (&plane, "[S(0), S(0)]"),
        (&plane, "[B, S(0)]"),
        expect![[r#"
            f32[1024, 1024] [S(0), S(0)] on cpu[dp=2, tp=2] -> [B, S(0)]: 6291456 B, 215.8 us
              exchange: [S(0), S(0)] -> [B, S(0)]
        "#]],
    );
    check(
        &big,
        (&plane, "[P, P(max)]"),
        (&plane, "[B, S(0)]"),
        expect![[r#"
        f32[1024, 1024] [P(sum), P(max)] on cpu[dp=2, tp=2] -> [B, S(0)]: 16777216 B, 430.4 us
          reduce-scatter(max, dim 0) along tp: [P(sum), P(max)] -> [P(sum), S(0)]
          all-reduce(sum) along dp: [P(sum), S(0)] -> [B, S(0)]
    "#]],
    );
    check(
        &big,
        (&plane, "[P, S(0)]"),
        (&plane, "[P, S(1)]"),
        expect![[r#"
        f32[1024, 1024] [P(sum), S(0)] on cpu[dp=2, tp=2] -> [P(sum), S(1)]: 4194304 B, 110.4 us
          all-to-all(dim 0 to 1) along tp: [P(sum), S(0)] -> [P(sum), S(1)]
    "#]],
    );
    check(
        &big,
        (&plane, "[S(0), S(0)]"),
        (&line, "[S(0)]"),
        expect![[r#"
        f32[1024, 1024] [S(0), S(0)] on cpu[dp=2, tp=2] -> [S(0)] on cpu[tp=4]: 0 B, 26.5 us
          exchange: [S(0), S(0)] -> [S(0)] on cpu[tp=4]
    "#]],
    );
    check(
        &[1023, 7],
        (&plane, "[S(0), S(0)]"),
        (&line, "[S(0)]"),
        expect![[r#"
        f32[1023, 7] [S(0), S(0)] on cpu[dp=2, tp=2] -> [S(0)] on cpu[tp=4]: 0 B, 0.4 us
          exchange: [S(0), S(0)] -> [S(0)] on cpu[tp=4]
    "#]],
    );
    check(
        &big,
        (&a, "[B]"),
        (&b, "[B]"),
        expect![[r#"
            f32[1024, 1024] [B] on cpu[tp=2] -> [B] on cpu[tp=2] of ranks [2, 3]: 8388608 B, 425.0 us
              exchange: [B] -> [B] on cpu[tp=2] of ranks [2, 3]
        "#]],
    );
    check(
        &big,
        (&a, "[P]"),
        (&b, "[B]"),
        expect![[r#"
            f32[1024, 1024] [P(sum)] on cpu[tp=2] -> [B] on cpu[tp=2] of ranks [2, 3]: 12582912 B, 640.7 us
              exchange: [P(sum)] -> [S(0)] on cpu[tp=2] of ranks [2, 3]
              all-gather(dim 0) along tp: [S(0)] -> [B]
        "#]],
    );
    check(
        &big,
        (&one, "[B]"),
        (&line, "[B]"),
        expect![[r#"
            f32[1024, 1024] [B] on cpu[1] -> [B] on cpu[tp=4]: 15728640 B, 642.2 us
              exchange: [B] -> [S(0)] on cpu[tp=4]
              all-gather(dim 0) along tp: [S(0)] -> [B]
        "#]],
    );
    check(
        &big,
        (&line, "[P]"),
        (&one, "[B]"),
        expect![[r#"
            f32[1024, 1024] [P(sum)] on cpu[tp=4] -> [B] on cpu[1]: 15728640 B, 642.2 us
              reduce-scatter(sum, dim 0) along tp: [P(sum)] -> [S(0)]
              exchange: [S(0)] -> [B] on cpu[1]
        "#]],
    );
    check(
        &[8],
        (&line, "[P]"),
        (&one, "[B]"),
        expect![[r#"
            f32[8] [P(sum)] on cpu[tp=4] -> [B] on cpu[1]: 96 B, 6.6 us
              exchange: [P(sum)] -> [B] on cpu[1]
        "#]],
    );
}

#[test]
fn one_axis_has_its_own_collectives() {
    let line = mesh_of(&[3]);
    for shape in [[3, 4], [1000, 1001], [7, 5]] {
        for (src, dst, name) in [
            ("P", "B", "all-reduce"),
            ("P(max)", "B", "all-reduce"),
            ("P", "S(0)", "reduce-scatter"),
            ("P", "S(1)", "reduce-scatter"),
            ("S(0)", "B", "all-gather"),
            ("S(1)", "B", "all-gather"),
            ("S(0)", "S(1)", "all-to-all"),
            ("S(1)", "S(0)", "all-to-all"),
            ("B", "S(0)", "slice"),
            ("B", "P", "keep-first"),
            ("B", "P(min)", "keep-all"),
            ("S(0)", "P(max)", "pad"),
        ] {
            let plan = plan_text(&shape, (&line, src), (&line, dst));
            assert_eq!(plan.steps.len(), 1, "{plan}");
            assert!(plan.steps[0].to_string().starts_with(name), "{plan}");
        }
    }
}

#[test]
fn wrong_layouts_are_errors() {
    let line = mesh_of(&[2]);
    let l = |s: NdSbp| Layout::new(&line, s);
    let text = |dtype, src, dst| plan(&[4, 4], dtype, &l(src), &l(dst)).unwrap_err().to_string();
    assert!(text(DType::F32, sbp![S(2)], sbp![B]).contains("splits dim 2"));
    assert!(text(DType::F32, sbp![B], sbp![B, B]).contains("2 entries"));
    assert!(text(DType::Bool, sbp![P], sbp![B]).contains("cannot be P(sum)"));
}

#[test]
fn thousands_of_ranks_and_planning_time() {
    let square = mesh_of(&[64, 64]);
    let line = mesh_of(&[4096]);
    let shifted = Placement::new(Device::Cpu, &(4096..8192).collect::<Vec<_>>(), &[64, 64]).unwrap();
    let shape = [8192, 4096];
    for (src, dst) in [
        ((&square, "[P, S(0)]"), (&square, "[B, S(1)]")),
        ((&square, "[S(0), S(1)]"), (&square, "[S(1), S(0)]")),
        ((&square, "[S(0), S(0)]"), (&square, "[B, S(0)]")),
        ((&square, "[S(0), S(0)]"), (&line, "[S(0)]")),
        ((&line, "[S(0)]"), (&line, "[S(1)]")),
        ((&square, "[P, S(0)]"), (&shifted, "[S(1), B]")),
        ((&square, "[B, B]"), (&shifted, "[B, B]")),
    ] {
        let start = Instant::now();
        let plan = plan_text(&shape, src, dst);
        let took = start.elapsed();
        println!("{took:?} for {} steps on {:?} ranks", plan.steps.len(), src.0.dims());
        assert!(took.as_secs() < 10, "{took:?}");
        assert!(plan.program(4095).steps.len() == plan.steps.len());
    }
}

#[test]
fn planning_time_of_small_meshes() {
    let cube = mesh_of(&[2, 2, 2]);
    let all = super::oracle::nd_sbps(3, 3, DType::F32);
    let layouts: Vec<Layout> = all.into_iter().map(|s| Layout::new(&cube, s)).collect();
    let mut cold = Vec::new();
    let pairs: Vec<_> = (0..1000).map(|i| (i * 7919 % layouts.len(), i * 104_729 % layouts.len())).collect();
    for (i, (a, b)) in pairs.iter().enumerate() {
        let start = Instant::now();
        plan(&[64 + i, 96, 32], DType::F32, &layouts[*a], &layouts[*b]).unwrap();
        cold.push(start.elapsed());
    }
    let mut warm = Vec::new();
    for (i, (a, b)) in pairs.iter().enumerate() {
        let start = Instant::now();
        plan(&[64 + i, 96, 32], DType::F32, &layouts[*a], &layouts[*b]).unwrap();
        warm.push(start.elapsed());
    }
    for (name, times) in [("cold", &mut cold), ("warm", &mut warm)] {
        times.sort();
        println!("{name} plan on [2, 2, 2], rank 3: median {:?}, p99 {:?}", times[500], times[990]);
    }
}
