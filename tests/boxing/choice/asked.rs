//! What a program asks for: `with_sbp` around a call, `pin_sbp` for a scope. Results, keys, gradients and refusals.

use oflow::prelude::*;
use oflow_tests::world;

/// Compares the error line by line; places in this file are `HERE`.
fn refused(e: Result<Tensor>, expected: &[&str]) {
    let text = e.unwrap_err().to_string();
    let mut parts = text.split("tests/boxing/choice/asked.rs:");
    let mut shown = parts.next().unwrap_or_default().to_string();
    for p in parts {
        shown += "HERE";
        shown += p.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    let lines: Vec<&str> = shown.lines().map(str::trim).collect();
    assert_eq!(lines, expected);
}

fn values(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i % 7) as f64 - 3.0).collect()
}

#[test]
fn the_result_lies_as_asked_and_has_the_same_value() {
    world(4, |_, line| {
        let plane = line.mesh(&[("dp", 2), ("tp", 2)])?;
        let x = distribute(&from_vec(values(32), [8, 4], Device::Cpu)?, (&plane, sbp![S(0), S(1)]))?;
        let w = distribute(&from_vec(values(24), [4, 6], Device::Cpu)?, (&plane, sbp![B, S(0)]))?;
        let free = x.matmul(&w)?;
        assert_eq!(free.sbp()?, &sbp![S(0), P]);
        let want = free.to_vec::<f64>()?;
        for s in [sbp![S(0), B], sbp![S(0), S(1)], sbp![B, B], sbp![S(1), S(0)], sbp![P, P], sbp![S(0), P]] {
            let y = with_sbp(s.clone(), || x.matmul(&w))?;
            assert_eq!((y.sbp()?, y.to_vec::<f64>()?), (&s, want.clone()));
        }
        // The same call again without it: what was asked is in the key.
        assert_eq!(x.matmul(&w)?.sbp()?, &sbp![S(0), P]);
        Ok(())
    });
}

#[test]
fn asking_chooses_the_signature_and_does_not_only_box_the_result() {
    world(2, |_, mesh| {
        let (a, b) = (ones([8, 4], (&mesh, sbp![S(0)]))?, ones([8, 4], (&mesh, sbp![S(1)]))?);
        oflow::take_comm_trace();
        let y = with_sbp(sbp![S(1)], || a.add(&b))?;
        let records = oflow::take_comm_trace();
        assert_eq!(y.sbp()?, &sbp![S(1)]);
        // One all-to-all of `a`, instead of one of `b` and one of the sum.
        assert_eq!(records.len(), 1);
        assert_eq!(
            (&records[0].plan().unwrap().src.sbp, &records[0].plan().unwrap().dst.sbp),
            (&sbp![S(0)], &sbp![S(1)])
        );
        assert_eq!(records[0].op, "add");
        Ok(())
    });
}

#[test]
fn what_a_function_calls_inside_is_free() {
    world(2, |_, mesh| {
        let x = ones([4, 6], (&mesh, sbp![S(0)]))?;
        // Products with vectors reshape first; a variance subtracts means; a stack unsqueezes: S(0) is of the result.
        let v = ones([6], (&mesh, sbp![B]))?;
        assert_eq!(with_sbp(sbp![S(0)], || x.matmul(&v))?.sbp()?, &sbp![S(0)]);
        assert_eq!(with_sbp(sbp![B], || x.var(()))?.sbp()?, &sbp![B]);
        assert_eq!(with_sbp(sbp![S(2)], || stack(&[&x, &x], 0))?.sbp()?, &sbp![S(2)]);
        assert_eq!(with_sbp(sbp![B], || x.select(0, 1))?.sbp()?, &sbp![B]);
        assert_eq!(with_sbp(sbp![S(0)], || x.mean(1))?.sbp()?, &sbp![S(0)]);
        let t = zeros([4], (&mesh, sbp![S(0)]).dtype(DType::I64))?;
        assert_eq!(with_sbp(sbp![B], || x.cross_entropy(&t))?.sbp()?, &sbp![B]);
        // Lowerings too: this softmax is one, of ops whose results are of other shapes.
        let s = ones([4, 6], (&mesh, sbp![S(1)]))?;
        assert_eq!(with_sbp(sbp![S(1)], || s.softmax(1))?.sbp()?, &sbp![S(1)]);
        Ok(())
    });
}

#[test]
fn makers_local_tensors_and_pins_elsewhere_are_left_alone() {
    world(2, |_, mesh| {
        let plane = mesh.mesh(&[("dp", 2), ("tp", 1)])?;
        let pin = pin_sbp("add", sbp![B])?;
        let x = with_sbp(sbp![S(1)], || ones([4, 6], (&mesh, sbp![S(0)])))?;
        assert_eq!(x.sbp()?, &sbp![S(0)]);
        let l = ones([3], Device::Cpu)?;
        assert!(!with_sbp(sbp![S(1)], || l.add(&l))?.is_global());
        // A pin is of its op, and of meshes with as many axes.
        assert_eq!(x.add(&x)?.sbp()?, &sbp![B]);
        assert_eq!(x.sub(&x)?.sbp()?, &sbp![S(0)]);
        let y = x.to_global((&plane, sbp![S(0), B]))?;
        assert_eq!(y.add(&y)?.sbp()?, &sbp![S(0), B]);
        // In place the tensor keeps its layout.
        assert_eq!(x.add_(&x)?.sbp()?, &sbp![S(0)]);
        // The innermost counts.
        assert_eq!(with_sbp(sbp![S(1)], || x.add(&x))?.sbp()?, &sbp![S(1)]);
        {
            let _inner = pin_sbp("add", sbp![S(1)])?;
            assert_eq!(x.add(&x)?.sbp()?, &sbp![S(1)]);
        }
        let nested = with_sbp(sbp![S(1)], || {
            let _inner = pin_sbp("add", sbp![P])?;
            Ok::<_, Error>((x.add(&x)?, x.sub(&x)?))
        })?;
        assert_eq!((nested.0.sbp()?, nested.1.sbp()?), (&sbp![P], &sbp![S(1)]));
        drop(pin);
        assert_eq!(x.add(&x)?.sbp()?, &sbp![S(0)]);
        Ok(())
    });
}

#[test]
fn a_pin_reaches_the_ops_inside_functions_but_not_their_lowerings() {
    world(2, |_, mesh| {
        // A product with a vector is a product of matrices and a reshape.
        let (x, v) = (ones([4, 6], (&mesh, sbp![S(0)]))?, ones([6], (&mesh, sbp![B]))?);
        assert_eq!(x.matmul(&v)?.sbp()?, &sbp![S(0)]);
        let _pin = pin_sbp("matmul", sbp![B])?;
        assert_eq!(x.matmul(&v)?.sbp()?, &sbp![B]);
        // softmax of a long split dim divides inside: a pin on `div` does not reach there.
        let s = ones([4, 32768], (&mesh, sbp![S(1)]))?;
        let want = s.softmax(1)?.to_vec::<f32>()?;
        oflow::take_comm_trace();
        s.softmax(1)?;
        let free = oflow::take_comm_trace().len();
        let _div = pin_sbp("div", sbp![P])?;
        let y = s.softmax(1)?;
        assert_eq!(oflow::take_comm_trace().len(), free);
        assert_eq!((y.sbp()?, y.to_vec::<f32>()?), (&sbp![S(1)], want));
        Ok(())
    });
}

#[test]
fn backward_is_not_affected_and_gradients_pass_through() {
    world(2, |_, mesh| {
        let run = |ask: Option<NdSbp>, pins: bool| -> Result<(Vec<f64>, Vec<f64>, Vec<String>)> {
            let x =
                distribute(&from_vec(values(12), [4, 3], Device::Cpu)?, (&mesh, sbp![S(1)]))?.requires_grad_(true)?;
            let w =
                distribute(&from_vec(values(15), [3, 5], Device::Cpu)?, (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
            let y = match ask {
                Some(s) => with_sbp(s, || x.matmul(&w))?,
                None => x.matmul(&w)?,
            };
            let loss = y.square()?.sum(())?;
            oflow::take_comm_trace();
            {
                // matmul and mul are what the gradients are made of.
                let _pins = if pins { vec![pin_sbp("matmul", sbp![P])?, pin_sbp("mul", sbp![P])?] } else { vec![] };
                with_sbp(sbp![B], || loss.backward())?;
            }
            let moved = oflow::take_comm_trace().iter().map(|r| r.moved.to_string()).collect();
            Ok((x.grad().unwrap().to_vec()?, w.grad().unwrap().to_vec()?, moved))
        };
        let free = run(None, false)?;
        for s in [sbp![B], sbp![S(0)], sbp![S(1)], sbp![P]] {
            let asked = run(Some(s.clone()), false)?;
            assert_eq!((&asked.0, &asked.1), (&free.0, &free.1), "{s}");
            assert_eq!(run(Some(s), true)?, asked);
        }
        Ok(())
    });
}

#[test]
fn what_cannot_be_is_refused_with_the_call_and_both_lines() {
    world(2, |_, mesh| {
        let x = ones([4, 6], (&mesh, sbp![S(0)]))?;
        refused(
            with_sbp(sbp![S(2)], || x.relu()),
            &[
                "relu(f32[4, 6] [S(0)]) on cpu[2]: the result f32[4, 6] cannot be [S(2)], which `with_sbp` at HERE asks for: S(2) splits dim 2, but the tensor [4, 6] has 2 dims",
                "at HERE",
                "help: ask for a layout that the result can have, around that call alone",
            ],
        );
        refused(
            with_sbp(sbp![B, B], || x.relu()),
            &[
                "relu(f32[4, 6] [S(0)]) on cpu[2]: the result f32[4, 6] cannot be [B, B], which `with_sbp` at HERE asks for: [B, B] has 2 entries but cpu[2] has 1 mesh axes",
                "at HERE",
                "help: give one SBP per mesh axis, outermost first",
            ],
        );
        refused(
            with_sbp(sbp![P], || x.gt(0.0)),
            &[
                "gt_scalar(f32[4, 6] [S(0)]) on cpu[2]: the result bool[4, 6] cannot be [P(sum)], which `with_sbp` at HERE asks for: a bool tensor cannot be P(sum)",
                "at HERE",
                "help: use P(max) for or, P(min) for and",
            ],
        );
        refused(
            with_sbp(sbp![B], || x.add_(1.0).cloned()),
            &[
                "add_scalar(f32[4, 6] [S(0)]) on cpu[2]: the result is written in place into a tensor that is [S(0)], but `with_sbp` at HERE asks for [B]",
                "at HERE",
                "help: use the op that returns a new tensor",
            ],
        );
        let pin = pin_sbp("sum", sbp![S(0)])?;
        refused(
            x.sum(()),
            &[
                "sum(f32[4, 6] [S(0)]) on cpu[2]: the result f32[] cannot be [S(0)], which `pin_sbp` at HERE asks for: S(0) splits dim 0, but the tensor [] has 0 dims",
                "at HERE",
                "help: ask for a layout that the result can have, around that call alone",
            ],
        );
        drop(pin);
        let e = pin_sbp("matmull", sbp![B]).err().unwrap().to_string();
        assert!(e.contains("matmull") && e.contains("asked.rs"), "{e}");
        // In place in its own layout is fine, and a refused call leaves nothing behind.
        with_sbp(sbp![S(0)], || x.add_(1.0).cloned())?;
        assert_eq!(x.relu()?.sbp()?, &sbp![S(0)]);
        Ok(())
    });
}

#[test]
fn what_is_changed_in_place_is_never_boxed() {
    world(2, |_, mesh| {
        let p = ones([4], (&mesh, sbp![S(0)]))?.sum_keepdim(())?;
        assert_eq!(p.sbp()?, &sbp![P]);
        refused(
            p.relu().and_then(|_| p.add_(1.0).cloned()),
            &[
                "add_scalar(f32[1] [P(sum)]) on cpu[2]: no legal signature gives an output [P(sum)] in place",
                "at HERE",
                "help: use the op that returns a new tensor, or box this one with `to_global` first; legal along one mesh axis:",
                "B -> B",
                "S(0) -> S(0)",
                "P(max) -> P(max)",
                "P(min) -> P(min)",
            ],
        );
        // `copy_` changes its first input: the other one moves, whatever it costs.
        let (x, big) = (zeros([64, 64], (&mesh, sbp![S(0)]))?, ones([64, 64], (&mesh, sbp![P]))?);
        oflow::take_comm_trace();
        x.copy_(&big)?;
        let records = oflow::take_comm_trace();
        assert_eq!(x.sbp()?, &sbp![S(0)]);
        assert_eq!(records.len(), 1);
        assert_eq!((&records[0].plan().unwrap().src.sbp, &records[0].plan().unwrap().dst.sbp), (&sbp![P], &sbp![S(0)]));
        assert_eq!(x.to_vec::<f32>()?, vec![1.0; 64 * 64]);
        x.add_(&big)?;
        assert_eq!((x.sbp()?, x.to_vec::<f32>()?), (&sbp![S(0)], vec![2.0; 64 * 64]));
        Ok(())
    });
}

#[test]
fn inputs_on_different_placements_are_an_error_that_says_how_to_move_them() {
    oflow::run_ranks(3, |_| {
        let (a, b) = (Placement::new(Device::Cpu, &[0, 1], &[2])?, Placement::new(Device::Cpu, &[1, 2], &[2])?);
        let (x, y) = (ones([4, 6], (&a, sbp![S(0)]))?, ones([4, 6], (&b, sbp![B]))?);
        oflow::take_comm_trace();
        refused(x.add(&y), &[
                "add(f32[4, 6] [S(0)], f32[4, 6] [B]) on cpu[2]: inputs are on different placements: f32[4, 6] [S(0)] on cpu[2] and f32[4, 6] [B] on cpu[2] of ranks [1, 2]",
                "at HERE",
                "help: oflow never moves a tensor between placements silently; give the one on cpu[2] of ranks [1, 2] as `x.to_global((&placement, sbp![B]))`, with the placement cpu[2]",
            ]);
        refused(x.matmul(&y.t()?), &[
                "matmul(f32[4, 6] [S(0)], f32[6, 4] [B]) on cpu[2]: inputs are on different placements: f32[4, 6] [S(0)] on cpu[2] and f32[6, 4] [B] on cpu[2] of ranks [1, 2]",
                "at HERE",
                "help: oflow never moves a tensor between placements silently; give the one on cpu[2] of ranks [1, 2] as `x.to_global((&placement, sbp![B]))`, with the placement cpu[2]",
            ]);
        refused(cat(&[&x, &x, &y], 0), &[
                "concat(f32[4, 6] [S(0)], f32[4, 6] [S(0)], f32[4, 6] [B]) on cpu[2]: inputs are on different placements: f32[4, 6] [S(0)] on cpu[2] and f32[4, 6] [B] on cpu[2] of ranks [1, 2]",
                "at HERE",
                "help: oflow never moves a tensor between placements silently; give the one on cpu[2] of ranks [1, 2] as `x.to_global((&placement, sbp![B]))`, with the placement cpu[2]",
            ]);
        refused(x.add_(&y).cloned(), &[
                "add(f32[4, 6] [S(0)], f32[4, 6] [B]) on cpu[2]: inputs are on different placements: f32[4, 6] [S(0)] on cpu[2] and f32[4, 6] [B] on cpu[2] of ranks [1, 2]",
                "at HERE",
                "help: oflow never moves a tensor between placements silently; give the one on cpu[2] of ranks [1, 2] as `x.to_global((&placement, sbp![B]))`, with the placement cpu[2]",
            ]);
        refused(x.add(&ones([4, 6], Device::Cpu)?), &[
                "add(f32[4, 6] [S(0)], f32[4, 6]) on cpu[2]: local and global inputs are mixed: f32[4, 6] [S(0)] on cpu[2] and f32[4, 6] on cpu",
                "at HERE",
                "help: make the local one global with `distribute` (every rank has the logical value) or `to_global` (every rank has its shard)",
            ]);
        assert!(oflow::take_comm_trace().is_empty(), "nothing moves silently");
        assert_eq!(x.add(&y.to_global((&a, sbp![S(0)]))?)?.to_vec::<f32>()?, vec![2.0; 24]);
        Ok(())
    })
    .unwrap();
}
