//! `Generator`: a stream of random numbers of its own, apart from that of the rank, the same whatever the layout.

use oflow::functional::{Arg, DropoutOptions, call};
use oflow::prelude::*;
use oflow::state::{LoadState, SaveState, Stateful};
use oflow::{Generator, GeneratorState};

fn floats(t: &Tensor) -> Vec<f64> {
    t.to_f64_vec().unwrap()
}

#[test]
fn a_generator_is_a_stream_of_its_own() {
    let (a, b) = (Generator::new(5), Generator::new(5));
    manual_seed(1);
    let alone = rand([4], Device::Cpu).unwrap();
    manual_seed(1);
    let x = rand([4], Device::Cpu.generator(&a)).unwrap();
    // The rank's own generator has not moved.
    assert_eq!(floats(&rand([4], Device::Cpu).unwrap()), floats(&alone));
    assert_eq!(floats(&rand([4], Device::Cpu.generator(&b)).unwrap()), floats(&x));
    assert_ne!(floats(&x), floats(&alone));
    // A clone is the same stream, and the next numbers are others.
    let y = rand([4], Device::Cpu.generator(&a.clone())).unwrap();
    assert_ne!(floats(&y), floats(&x));
    assert_eq!((a.seed(), a.state()), (5, GeneratorState { seed: 5, ordinal: 2 }));
    // All random functions draw.
    let state = a.state();
    let all = |g: &Generator| -> Vec<Vec<f64>> {
        let on = || Device::Cpu.generator(g);
        let dropout = DropoutOptions { generator: Some(g.clone()) };
        [
            rand([9], on()),
            randn([9], on()),
            randint(0, 100, [9], on()),
            bernoulli([9], 0.5, on().dtype(DType::F64)),
            ones([9], Device::Cpu).unwrap().dropout_with(0.5, &dropout),
        ]
        .map(|t| floats(&t.unwrap()))
        .to_vec()
    };
    let first = all(&a);
    assert_eq!(a.state().ordinal, 7);
    a.set_state(state).unwrap();
    assert_eq!(all(&a), first);
    assert_ne!(all(&a), first);
    assert_eq!(a.manual_seed(9).state(), GeneratorState { seed: 9, ordinal: 0 });
    let e = a.set_state(GeneratorState { seed: 0, ordinal: u64::MAX }).unwrap_err();
    assert_eq!(e.message(), "18446744073709551615 is not an ordinal of a random op");
    // Factories that draw nothing do not move it.
    zeros([2], Device::Cpu.generator(&a)).unwrap();
    assert_eq!(a.state().ordinal, 0);
}

#[test]
fn by_name() {
    let g = Generator::new(3);
    let cpu = || Arg::from(Device::Cpu.into_target().target().clone());
    let with = |name: &str, args: &[Arg]| call(name, args, &[("generator", (&g).into())]).unwrap().remove(0);
    let x = with("rand", &[vec![5i64].into(), cpu()]);
    let y = with("dropout", &[(&x).into()]);
    let z = with("randint", &[0.into(), 50.into(), vec![5i64].into(), cpu()]);
    assert_eq!(g.state().ordinal, 3);
    g.manual_seed(3);
    assert_eq!(floats(&rand([5], Device::Cpu.generator(&g)).unwrap()), floats(&x));
    let half = DropoutOptions { generator: Some(g.clone()) };
    assert_eq!(floats(&x.dropout_with(0.5, &half).unwrap()), floats(&y));
    assert_eq!(floats(&randint(0, 50, [5], Device::Cpu.generator(&g)).unwrap()), floats(&z));
    let e = call("rand", &[vec![5i64].into(), cpu()], &[("generator", 3.into())]).unwrap_err().to_string();
    assert!(e.contains("'generator' must be Generator, not 3"), "{e}");
}

#[test]
fn numbers_do_not_depend_on_the_layout() {
    let want = floats(&randn([6, 4], Device::Cpu.generator(&Generator::new(11))).unwrap());
    for (ranks, mesh) in [(2, vec![2]), (4, vec![2, 2]), (3, vec![3])] {
        oflow::run_ranks(ranks, |_| {
            let all: Vec<usize> = (0..ranks).collect();
            let place = Placement::new(Device::Cpu, &all, &mesh)?;
            for sbp in [Sbp::Broadcast, Sbp::Split(0), Sbp::Split(1)] {
                let g = Generator::new(11);
                let layout = NdSbp::new(&vec![sbp; mesh.len()]);
                let x = randn([6, 4], (&place, layout.clone()).generator(&g))?;
                assert_eq!(x.to_f64_vec()?, want, "{layout}");
                // Some ranks have no part in this one, and draw for it all the same.
                rand([3], (&Placement::new(Device::Cpu, &[1], &[1])?, sbp![B]).generator(&g))?;
                assert_eq!(g.state().ordinal, 2);
                let kept = x.dropout_with(0.5, &DropoutOptions { generator: Some(g) })?;
                let again = Generator::new(11);
                again.set_state(GeneratorState { seed: 11, ordinal: 2 })?;
                let local = from_vec(want.clone(), [6, 4], Device::Cpu.dtype(DType::F32))?;
                let local = local.dropout_with(0.5, &DropoutOptions { generator: Some(again) })?;
                assert_eq!(kept.to_f64_vec()?, local.to_f64_vec()?);
            }
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn the_gradient_of_dropout_has_its_mask() {
    let g = Generator::new(2);
    let x = ones([64], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let y = x.dropout_with(0.5, &DropoutOptions { generator: Some(g) }).unwrap();
    y.sum(()).unwrap().backward().unwrap();
    assert_eq!(floats(&x.grad().unwrap()), floats(&y));
}

#[test]
fn a_generator_that_two_ranks_share_is_refused() {
    let shared = Generator::new(1);
    let errors = oflow::run_ranks(2, |world| {
        // One after the other, so that it is known which is first.
        let place = Placement::all(Device::Cpu)?;
        if world.rank() == 0 {
            rand([2], Device::Cpu.generator(&shared))?;
        }
        ones([1], (&place, sbp![P]))?.to_global(sbp![B])?.item()?;
        Ok(match world.rank() {
            0 => None,
            _ => rand([2], Device::Cpu.generator(&shared)).err().map(|e| e.to_string()),
        })
    })
    .unwrap();
    let e = errors[1].clone().unwrap();
    assert!(e.contains("rank 1 draws from the generator of rank 0") && e.contains("tests/tensors/generator.rs"), "{e}");
}

#[test]
fn a_dry_run_leaves_it_alone() {
    let g = Generator::new(1);
    oflow::dry_run(4, 0, |_| {
        let place = Placement::all(Device::Cpu)?;
        rand([8], (&place, sbp![S(0)]).generator(&g)).map(drop)
    })
    .unwrap();
    assert_eq!(g.state().ordinal, 0);
}

#[test]
fn the_state_is_saved() {
    let mut g = Generator::new(4);
    rand([2], Device::Cpu.generator(&g)).unwrap();
    let mut to = SaveState::new();
    g.save_state(&mut to).unwrap();
    let (_, values) = to.into_parts();
    let next = floats(&rand([2], Device::Cpu.generator(&g)).unwrap());
    g.manual_seed(0);
    g.load_state(&mut LoadState::new([], &values)).unwrap();
    assert_eq!(floats(&rand([2], Device::Cpu.generator(&g)).unwrap()), next);
}
