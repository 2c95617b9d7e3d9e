//! Gradients of boxing: what backward moves, and what it means to state the SBP of a gradient where local and global meet.

use oflow::BackwardOptions;
use oflow::boxing::{Layout, plan};
use oflow::prelude::*;
use oflow::sbp::dual;
use oflow_tests::world;

/// All nd-SBPs of B, P and splits of two dims.
fn layouts(axes: usize) -> Vec<NdSbp> {
    let one = [Sbp::Broadcast, Sbp::PARTIAL_SUM, Sbp::Split(0), Sbp::Split(1)];
    let mut all: Vec<Vec<Sbp>> = vec![vec![]];
    for _ in 0..axes {
        all = all.iter().flat_map(|n| one.iter().map(move |s| [n.as_slice(), &[*s]].concat())).collect();
    }
    all.iter().map(|n| NdSbp::new(n)).collect()
}

fn values() -> Vec<f64> {
    (0..15).map(|i| f64::from(i % 7) - 3.0).collect()
}

fn tensor(placement: &Placement, sbp: &NdSbp) -> Result<Tensor> {
    distribute(&from_vec(values(), [5, 3], Device::Cpu)?, (placement, sbp))
}

/// Bytes that backward moved since the comm records were last taken.
fn moved() -> u64 {
    oflow::take_comm_trace().iter().filter(|r| r.backward).map(|r| r.bytes_sent()).sum()
}

fn backward(y: &Tensor, dy: Tensor) -> Result<()> {
    oflow::take_comm_trace();
    y.backward_with(&BackwardOptions { gradient: Some(dy), ..Default::default() })
}

#[test]
fn backward_never_moves_more_than_the_dual_of_the_forward_boxing() {
    let place = |ranks: &[usize], dims: &[usize]| Placement::new(Device::Cpu, ranks, dims).unwrap();
    let places = [
        place(&[0, 1], &[2]),
        place(&[2, 3], &[2]),
        place(&[1, 2, 3], &[3]),
        place(&[3, 1, 0, 2], &[4]),
        place(&[0, 1, 2, 3], &[2, 2]),
        place(&[0], &[1]),
    ];
    let cases: Vec<(&Placement, NdSbp, &Placement, NdSbp)> = places
        .iter()
        .flat_map(|p| places.iter().map(move |q| (p, q)))
        .flat_map(|(p, q)| layouts(p.axes()).into_iter().map(move |s| (p, s, q)))
        .flat_map(|(p, s, q)| layouts(q.axes()).into_iter().map(move |d| (p, s.clone(), q, d)))
        .collect();
    println!("{} pairs of layouts", cases.len());
    assert_eq!(cases.len(), 1296);
    world(4, |_, _| {
        for (p, src, q, dst) in &cases {
            let what = format!("{src} on {p:?} -> {dst} on {q:?}");
            let forward = plan(&[5, 3], DType::F64, &Layout::new(p, src.clone()), &Layout::new(q, dst.clone()))?;
            let (from, to) = (Layout::new(q, dual(dst)), Layout::new(p, dual(src)));
            let limit = if p == q { 0 } else { plan(&[5, 3], DType::F64, &from, &to)?.bytes_sent() };
            // The gradient as the dual of where the tensor went, and whole, which no way moves more of than the dual's.
            for arrives in [dual(dst), NdSbp::broadcast(q.axes())] {
                let here = Layout::new(q, arrives.clone());
                let limit = if p == q { 0 } else { limit.max(plan(&[5, 3], DType::F64, &here, &to)?.bytes_sent()) };
                let x = tensor(p, src)?.requires_grad_(true)?;
                let y = x.to_global((*q, dst))?;
                let dy = tensor(q, &arrives)?;
                // The leaf keeps the layout that arrives, so that only the boxing itself is counted.
                let _keep = no_sync();
                backward(&y, dy)?;
                let bytes = moved();
                let g = x.grad().unwrap();
                assert!(bytes <= limit, "{what}: {bytes} B back to {}, the dual moves {limit} B; {forward}", g.sbp()?);
                assert_eq!((g.placement()?, g.to_vec::<f64>()?), (*p, values()), "{what}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_stated_layout_is_where_the_gradient_goes() {
    world(4, |_, mesh| {
        let (front, back) = (Placement::new(Device::Cpu, &[0, 1], &[2])?, Placement::new(Device::Cpu, &[2, 3], &[2])?);
        for stated in layouts(1) {
            for to in [&front, &back, &mesh] {
                let x = tensor(&front, &sbp![S(0)])?.requires_grad_(true)?;
                let y = x.to_global((to, sbp![B]).grad_sbp(stated.clone()))?;
                let _keep = no_sync();
                backward(&y, tensor(to, &sbp![S(1)])?)?;
                let g = x.grad().unwrap();
                assert_eq!((g.sbp()?, g.placement()?, g.to_vec::<f64>()?), (&stated, &front, values()));
            }
        }
        Ok(())
    });
}

#[test]
fn an_input_that_was_boxed_gets_its_gradient_without_a_boxing() {
    world(2, |_, mesh| {
        // relu reduces P to shards; their gradient is the gradient of x as it stands.
        let x = tensor(&mesh, &sbp![P])?.requires_grad_(true)?;
        let y = x.relu()?;
        assert_eq!(y.sbp()?, &sbp![S(0)]);
        let keep = no_sync();
        backward(&y, tensor(&mesh, &sbp![S(0)])?)?;
        assert_eq!((moved(), x.grad().unwrap().sbp()?), (0, &sbp![S(0)]));
        drop(keep);
        // Two uses of one boxed copy: their gradients are added before anything moves.
        let w = ones([3, 4], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
        let x = ones([6, 3], (&mesh, sbp![S(0)]))?;
        let (a, b) = (x.matmul(&w)?, x.mul(2.0)?.matmul(&w)?);
        let loss = a.add(&b)?.square()?.sum(())?;
        oflow::take_comm_trace();
        loss.backward()?;
        let (from, to) = (Layout::new(&mesh, sbp![P]), Layout::new(&mesh, sbp![S(0)]));
        let dual_of_the_gather = plan(&[3, 4], DType::F32, &from, &to)?.bytes_sent();
        assert_eq!(moved(), dual_of_the_gather);
        // y = 3 + 6 everywhere; 6 rows give 2 · 9 · (1 + 2) each.
        assert_eq!(w.grad().unwrap().to_vec::<f32>()?, vec![324.0; 12]);
        Ok(())
    });
}

#[test]
fn the_gradient_of_a_leaf_moves_once_to_the_layout_of_the_leaf() {
    world(4, |_, mesh| {
        for (layout, arrives) in [("[B]", "[P(sum)]"), ("[S(0)]", "[P(sum)]"), ("[S(1)]", "[P(sum)]")] {
            let layout: NdSbp = layout.parse()?;
            let w = ones([8, 4], (&mesh, &layout))?.requires_grad_(true)?;
            let x = ones([64, 8], (&mesh, sbp![S(0)]))?;
            let y = x.matmul(&w.to_global(sbp![B])?)?;
            oflow::take_comm_trace();
            y.square()?.sum(())?.backward()?;
            let (from, to) = (Layout::new(&mesh, arrives.parse::<NdSbp>()?), Layout::new(&mesh, layout.clone()));
            assert_eq!(moved(), plan(&[8, 4], DType::F32, &from, &to)?.bytes_sent(), "{layout}");
            assert_eq!(w.grad().unwrap().sbp()?, &layout);
            assert_eq!(w.grad().unwrap().to_vec::<f32>()?, vec![64.0 * 2.0 * 8.0; 32]);
        }
        Ok(())
    });
}

/// The whole value on each rank, each rank's own half of the work: gradients are contributions.
#[test]
fn replicated_with_partial_gradients_is_the_default() {
    let losses = |w: &Tensor, rows: std::ops::Range<i64>| -> Result<Tensor> {
        let x = from_vec(values(), [5, 3], Device::Cpu)?.narrow(0, rows.start, rows.end - rows.start)?;
        x.mul(w)?.square()?.sum(())
    };
    let one = full([3], 2.0, Device::Cpu.dtype(DType::F64)).unwrap().requires_grad_(true).unwrap();
    losses(&one, 0..5).unwrap().backward().unwrap();
    let truth = one.grad().unwrap().to_vec::<f64>().unwrap();
    world(2, |world, mesh| {
        let w = full([3], 2.0, (&mesh, sbp![B]).dtype(DType::F64))?.requires_grad_(true)?;
        let mine = if world.rank() == 0 { 0..3 } else { 3..5 };
        losses(&w.to_local()?, mine.clone())?.backward()?;
        assert_eq!(w.grad().unwrap().to_vec::<f64>()?, truth, "contributions add up");
        // Taken as equal, the contributions would silently not be added: each rank has its own, wrong number.
        let w = full([3], 2.0, (&mesh, sbp![B]).dtype(DType::F64))?.requires_grad_(true)?;
        losses(&w.to_local_with(sbp![B])?, mine)?.backward()?;
        assert_ne!(w.grad().unwrap().shard()?.map(Tensor::from_local).unwrap().to_vec::<f64>()?, truth);
        Ok(())
    });
}

/// The whole value and the same work on each rank: each has the whole gradient.
#[test]
fn replicated_with_equal_gradients_is_stated() {
    world(3, |_, mesh| {
        let grad_of = |stated: bool| -> Result<Vec<f64>> {
            let w = full([3], 2.0, (&mesh, sbp![B]).dtype(DType::F64))?.requires_grad_(true)?;
            let l = if stated { w.to_local_with(sbp![B])? } else { w.to_local()? };
            l.square()?.sum(())?.backward()?;
            w.grad().unwrap().to_vec::<f64>()
        };
        assert_eq!(grad_of(true)?, [4.0; 3], "the gradient of one loss, known to all");
        assert_eq!(grad_of(false)?, [12.0; 3], "the gradient of the sum of three losses");
        Ok(())
    });
}

#[test]
fn shards_given_as_whole_get_contributions_or_the_whole_as_stated() {
    world(2, |world, mesh| {
        let loss = |stated: Option<NdSbp>| -> Result<(Vec<f64>, Vec<f64>)> {
            let l = full([2], 3.0, Device::Cpu.dtype(DType::F64))?.requires_grad_(true)?;
            let g = match stated {
                Some(s) => l.to_global((&mesh, sbp![B]).grad_sbp(s))?,
                None => l.to_global((&mesh, sbp![B]))?,
            };
            g.square()?.sum(())?.backward()?;
            let mine = l.grad().unwrap();
            Ok((mine.to_vec()?, mine.to_global((&mesh, sbp![P]))?.to_vec()?))
        };
        // By default the ranks' gradients add up to the whole: code that sums over ranks afterwards is right.
        let (mine, sum) = loss(None)?;
        assert_eq!(sum, [6.0; 2]);
        assert_eq!(mine, if world.rank() == 0 { [6.0; 2] } else { [0.0; 2] });
        assert_eq!(loss(Some(sbp![P]))?.1, [6.0; 2]);
        // Stated as B each rank has the whole: right for a parameter that every rank keeps and updates itself.
        assert_eq!(loss(Some(sbp![B]))?.0, [6.0; 2]);
        Ok(())
    });
}

#[test]
fn split_and_partial_shards_get_theirs() {
    world(2, |world, mesh| {
        let rank = world.rank() as f64;
        let l = full([2], 1.0 + rank, Device::Cpu.dtype(DType::F64))?.requires_grad_(true)?;
        l.to_global((&mesh, sbp![S(0)]))?.square()?.sum(())?.backward()?;
        assert_eq!(l.grad().unwrap().to_vec::<f64>()?, [2.0 * (1.0 + rank); 2]);
        // A summand has the gradient of the sum, whole, on each rank.
        let l = full([2], 1.0 + rank, Device::Cpu.dtype(DType::F64))?.requires_grad_(true)?;
        l.to_global((&mesh, sbp![P]))?.square()?.sum(())?.backward()?;
        assert_eq!(l.grad().unwrap().to_vec::<f64>()?, [6.0; 2]);
        // And the other way: the shards of P, used one by one, have the gradient of each.
        let g = full([2], 4.0, (&mesh, sbp![P]).dtype(DType::F64))?.requires_grad_(true)?;
        g.to_local()?.mul(5.0)?.sum(())?.backward()?;
        assert_eq!(g.grad().unwrap().to_vec::<f64>()?, [5.0; 2]);
        let g = tensor(&mesh, &sbp![S(0)])?.requires_grad_(true)?;
        g.to_local()?.square()?.sum(())?.backward()?;
        assert_eq!(g.grad().unwrap().to_vec::<f64>()?, values().iter().map(|v| 2.0 * v).collect::<Vec<_>>());
        Ok(())
    });
}

#[test]
fn wrong_statements_are_errors_before_anything_moves() {
    world(2, |_, mesh| {
        let text = |e: Result<Tensor>| e.unwrap_err().to_string();
        let has = |text: String, words: &[&str]| {
            for w in [words, &["boxing_gradients.rs"]].concat() {
                assert!(text.contains(w), "'{w}' is not in: {text}");
            }
        };
        let x = tensor(&mesh, &sbp![B])?.requires_grad_(true)?;
        let s = tensor(&mesh, &sbp![S(0)])?.requires_grad_(true)?;
        let l = ones([2, 3], Device::Cpu)?.requires_grad_(true)?;
        oflow::take_comm_trace();
        has(text(x.to_local_with(sbp![S(5)])), &["to_local(f64[5, 3] [B])", "cannot be [S(5)]", "splits dim 5"]);
        has(text(x.to_local_with(sbp![B, B])), &["[B, B] has 2 entries but cpu[2] has 1 mesh axes"]);
        has(text(x.to_local_with(sbp![S(0)])), &["along mesh axis 0 each rank has a shard of B", "state P there if"]);
        has(text(s.to_local_with(sbp![B])), &["each rank has a shard of S(0)", "state S(0) there"]);
        has(text(s.to_local_with(sbp![S(1)])), &["each rank has a shard of S(0)"]);
        has(text(x.to_local_with(sbp![P(max)])), &["gradients add up, they are never P(max)"]);
        has(text(x.to_global(sbp![S(0)].grad_sbp(sbp![S(5)]))), &["to_global(f64[5, 3] [B], [S(0)])", "splits dim 5"]);
        has(text(x.to_global(sbp![S(0)].grad_sbp(sbp![B, B]))), &["has 2 entries"]);
        has(text(x.to_global(sbp![S(0)].grad_sbp(sbp![P(min)]))), &["never P(min)"]);
        assert!(oflow::take_comm_trace().is_empty());
        has(text(l.to_global((&mesh, sbp![S(0)]).grad_sbp(sbp![S(1)]))), &["to_global(f32[2, 3], [S(0)])", "of S(0)"]);
        has(text(l.to_global((&mesh, sbp![B]).grad_sbp(sbp![S(0)]))), &["each rank has a shard of B"]);
        has(text(l.to_global((&mesh, sbp![B]).grad_sbp(sbp![P, P]))), &["has 2 entries"]);
        has(text(distribute(&l, (&mesh, sbp![B]).grad_sbp(sbp![P]))), &["distribute(f32[2, 3], [B])", "whole one"]);
        Ok(())
    });
}
