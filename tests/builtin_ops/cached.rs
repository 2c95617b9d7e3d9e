//! Attention from a cache of keys and values: position by position it gives what attention over the whole sequence gives, in every
//! layout, and so does a decoder that attends to a masked source.

use oflow::nn::{KeyValues, Masks, Module, MultiheadAttention, MultiheadOptions};
use oflow::prelude::*;

#[derive(oflow::nn::Module)]
struct Decoder {
    own: MultiheadAttention,
    cross: MultiheadAttention,
}

impl Decoder {
    fn new(separate: bool, t: impl IntoTarget) -> Result<Decoder> {
        let (t, width) = (t.into_target(), separate.then_some(8));
        let o = MultiheadOptions { batch_first: true, kdim: width, vdim: width, ..MultiheadOptions::new(8, 4) };
        Ok(Decoder { own: MultiheadAttention::new(o, &t)?, cross: MultiheadAttention::new(o, &t)? })
    }
    fn whole(&self, x: &Tensor, source: &Tensor, hidden: &Tensor) -> Result<Tensor> {
        let y = x.add(&self.own.forward_with(x, x, x, &Masks { causal: true, ..Default::default() })?.0)?;
        let masks = Masks { key_padding: Some(hidden), ..Default::default() };
        y.add(&self.cross.forward_with(&y, source, source, &masks)?.0)
    }
    fn by_position(&self, x: &Tensor, source: &Tensor, hidden: &Tensor) -> Result<Tensor> {
        let from = self.cross.keys_values(source, source)?;
        let (mut cache, mut all): (Option<KeyValues>, Vec<Tensor>) = (None, vec![]);
        for i in 0..x.shape()[1] {
            let x = x.narrow(1, i as i64, 1)?;
            let new = self.own.keys_values(&x, &x)?;
            let kept = match &cache {
                Some(before) => before.followed_by(&new)?,
                None => new,
            };
            assert_eq!(kept.positions(), i + 1);
            let y = x.add(&self.own.forward_from(&x, &kept, &Masks::default())?.0)?;
            let masks = Masks { key_padding: Some(hidden), ..Default::default() };
            all.push(y.add(&self.cross.forward_from(&y, &from, &masks)?.0)?);
            cache = Some(kept);
        }
        cat(&all, 1)
    }
}

fn numbers(mesh: &Placement, rows: &NdSbp, weights: [&NdSbp; 2], separate: bool) -> Result<Vec<Vec<f64>>> {
    manual_seed(2);
    let whole = NdSbp::broadcast(mesh.axes());
    let mut m = Decoder::new(separate, (mesh, whole.clone()).dtype(DType::F64))?;
    let all = if separate { "*_proj_weight" } else { "*in_proj_weight" };
    m.to_global(mesh, &[(all, weights[0].clone()), ("*out_proj.weight", weights[1].clone())])?;
    let leaf = |shape: [usize; 3]| randn(shape, (mesh, rows.clone()).dtype(DType::F64))?.requires_grad_(true);
    let (x, source) = (leaf([3, 5, 8])?, leaf([3, 4, 8])?);
    let hidden = from_vec((0..12).map(|i| i % 4 > i / 4 + 1).collect::<Vec<bool>>(), [3, 4], (mesh, whole))?;
    let mut all = vec![];
    for y in [m.whole(&x, &source, &hidden)?, m.by_position(&x, &source, &hidden)?] {
        y.square()?.sum(())?.backward()?;
        all.push(y.to_f64_vec()?);
        for p in m.parameters().iter().chain([&x, &source]) {
            all.push(p.grad().expect("a gradient").to_f64_vec()?);
            p.set_grad(None).unwrap();
        }
    }
    Ok(all)
}

#[test]
fn position_by_position_is_the_whole_sequence_on_every_mesh() {
    for separate in [false, true] {
        let run = |sizes: &[usize], rows: NdSbp, weights: [NdSbp; 2]| {
            let n = sizes.iter().product();
            let all = oflow::run_ranks(n, |_| {
                let mesh = Placement::new(Device::Cpu, &(0..n).collect::<Vec<_>>(), sizes)?;
                numbers(&mesh, &rows, [&weights[0], &weights[1]], separate)
            });
            all.unwrap().remove(0)
        };
        let want = run(&[1], sbp![B], [sbp![B], sbp![B]]);
        let close = |have: &[Vec<f64>], want: &[Vec<f64>], what: &str| {
            for (i, (have, want)) in have.iter().zip(want).enumerate() {
                let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * (1.0 + b.abs());
                assert!(have.len() == want.len() && have.iter().zip(want).all(near), "{what}, number {i}");
            }
        };
        let half = want.len() / 2;
        close(&want[half..], &want[..half], "with a cache");
        for (sizes, rows, weights) in [
            (&[2][..], sbp![S(0)], [sbp![B], sbp![B]]),
            (&[2], sbp![B], [sbp![S(0)], sbp![S(1)]]),
            (&[4], sbp![B], [sbp![S(0)], sbp![S(1)]]),
            (&[3], sbp![S(0)], [sbp![S(0)], sbp![S(1)]]),
            (&[2, 2], sbp![S(0), B], [sbp![B, S(0)], sbp![B, S(1)]]),
        ] {
            let what = format!("{sizes:?} {rows} {}, separate {separate}", weights[0]);
            close(&run(sizes, rows, weights), &want, &what);
        }
    }
}

#[test]
fn keys_of_another_batch_are_refused() {
    let m = Decoder::new(false, Device::Cpu).unwrap();
    let (x, y) = (ones([2, 1, 8], Device::Cpu).unwrap(), ones([3, 1, 8], Device::Cpu).unwrap());
    let kept = m.own.keys_values(&y, &y).unwrap();
    let e = m.own.forward_from(&x, &kept, &Masks::default()).expect_err("an error").to_string();
    assert!(e.contains("do not fit keys") && e.contains(file!()), "{e}");
    let e = kept.followed_by(&m.own.keys_values(&x, &x).unwrap()).expect_err("an error").to_string();
    assert!(e.contains(file!()), "{e}");
}
