//! The dispatch stream: its hash covers what an op is, by content, and nothing of how the process came to know it.

use oflow::functional::{Arg, call};
use oflow::prelude::*;
use oflow_tests::again::again;

/// The hash after one call from one line, in a world of 2.
fn hash_after(name: &str, shape: &[usize], dtype: DType, sbp: NdSbp, args: &[(&str, f64)]) -> u64 {
    let hashes = oflow::run_ranks(2, |world| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = ones(shape, (&mesh, sbp.clone()))?.cast(dtype)?;
        let named: Vec<(&str, Arg)> = args.iter().map(|(n, v)| (*n, (*v).into())).collect();
        call(name, &[(&x).into()], &named)?;
        Ok(world.ctx().recorder().marks_after(0).last().map_or(0, |m| m.1))
    });
    let hashes = hashes.unwrap();
    assert_eq!(hashes[0], hashes[1], "equal on all ranks");
    hashes[0]
}

fn leaky() -> u64 {
    hash_after("leaky_relu", &[4, 4], DType::F32, sbp![S(0)], &[("alpha", 0.5)])
}

#[test]
fn every_single_difference_changes_the_hash() {
    let same = leaky();
    assert_eq!(leaky(), same);
    for (what, other) in [
        ("op", hash_after("relu", &[4, 4], DType::F32, sbp![S(0)], &[])),
        ("attribute", hash_after("leaky_relu", &[4, 4], DType::F32, sbp![S(0)], &[("alpha", 0.25)])),
        ("shape", hash_after("leaky_relu", &[4, 6], DType::F32, sbp![S(0)], &[("alpha", 0.5)])),
        ("dtype", hash_after("leaky_relu", &[4, 4], DType::F64, sbp![S(0)], &[("alpha", 0.5)])),
        ("sbp", hash_after("leaky_relu", &[4, 4], DType::F32, sbp![S(1)], &[("alpha", 0.5)])),
    ] {
        assert_ne!(other, same, "{what}");
    }
}

fn first(x: &Tensor, value: f64) -> Result<Tensor> {
    x.mul(value)
}

fn second(x: &Tensor, value: f64) -> Result<Tensor> {
    x.mul(value)
}

#[test]
fn values_of_runtime_attributes_and_lines_count() {
    let stream = |value: f64, other_line: bool| {
        let hashes = oflow::run_ranks(2, |world| {
            let mesh = Placement::all(Device::Cpu)?;
            let x = ones([4], (&mesh, sbp![S(0)]))?;
            if other_line {
                second(&x, value)?
            } else {
                first(&x, value)?
            };
            Ok(world.ctx().recorder().marks_after(0).last().map_or(0, |m| m.1))
        });
        hashes.unwrap()[0]
    };
    assert_eq!(stream(0.5, false), stream(0.5, false));
    assert_ne!(stream(0.5, false), stream(0.25, false), "a scalar operand");
    assert_ne!(stream(0.5, false), stream(0.5, true), "the line");
}

#[test]
fn a_random_op_of_another_seed_differs() {
    let stream = |seed: u64| {
        let hashes = oflow::run_ranks(2, |world| {
            manual_seed(seed);
            let mesh = Placement::all(Device::Cpu)?;
            rand([4], (&mesh, sbp![S(0)]))?;
            Ok(world.ctx().recorder().marks_after(0).last().map_or(0, |m| m.1))
        });
        hashes.unwrap()[0]
    };
    assert_eq!(stream(1), stream(1));
    assert_ne!(stream(1), stream(2));
}

#[test]
fn local_ops_are_left_out() {
    let ops = oflow::run_ranks(1, |world| {
        from_vec(vec![1.0f32], [1], Device::Cpu)?.relu()?;
        Ok(world.ctx().ops_issued())
    });
    assert_eq!(ops.unwrap(), [0]);
}

/// Run by the test below in processes of its own.
#[test]
fn print_the_hash() {
    if let Ok(history) = std::env::var("OFLOW_TEST_HISTORY") {
        // Other types, ops, files and texts are interned first.
        for i in 0..history.parse::<usize>().unwrap() {
            hash_after("exp", &[i + 1, 2], DType::F64, sbp![B], &[]);
        }
        println!("hash {:016x}", leaky());
    }
}

#[test]
fn processes_with_other_histories_have_the_same_hash() {
    let hash = |history: &str| {
        let child = again("stream::print_the_hash").env("OFLOW_TEST_HISTORY", history).output().unwrap();
        let text = String::from_utf8(child.stdout).unwrap();
        let at = text.find("hash ").unwrap_or_else(|| panic!("{text}"));
        text[at + 5..at + 21].to_string()
    };
    let (none, long) = (hash("0"), hash("37"));
    assert_eq!(none, long);
}
