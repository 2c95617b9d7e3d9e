use crate::samples::*;
use oflow_base::Random;
use oflow_kernels::cpu::attention::*;
use oflow_kernels::{DType, View};

/// Attention by its definition on contiguous f64: output and lse.
fn oracle(q: &[f64], k: &[f64], v: &[f64], s: &Shape, settings: &Attention) -> (Vec<f64>, Vec<f64>) {
    let (mut out, mut lses) = (Vec::new(), Vec::new());
    for head in 0..s.b * s.h {
        for i in 0..s.tq {
            let keys =
                if settings.causal { (i as i64 + 1 + settings.offset).clamp(0, s.tk as i64) as usize } else { s.tk };
            let query = &q[(head * s.tq + i) * s.d..][..s.d];
            let exps: Vec<f64> = (0..keys)
                .map(|j| (inner(query, &k[(head * s.tk + j) * s.d..][..s.d]) * settings.scale).exp())
                .collect();
            let sum: f64 = exps.iter().sum();
            lses.push(sum.ln());
            out.extend((0..s.dv).map(|c| {
                let total: f64 = (0..keys).map(|j| exps[j] * v[(head * s.tk + j) * s.dv + c]).sum();
                if keys == 0 { 0.0 } else { total / sum }
            }));
        }
    }
    (out, lses)
}

struct Shape {
    b: usize,
    h: usize,
    tq: usize,
    tk: usize,
    d: usize,
    dv: usize,
}

impl Shape {
    fn dims(&self) -> [[usize; 4]; 4] {
        let Shape { b, h, tq, tk, d, dv } = *self;
        [[b, h, tq, d], [b, h, tk, d], [b, h, tk, dv], [b, h, tq, dv]]
    }
}

const fn shape(b: usize, h: usize, tq: usize, tk: usize, d: usize, dv: usize) -> Shape {
    Shape { b, h, tq, tk, d, dv }
}

const SHAPES: [Shape; 9] = [
    shape(1, 1, 1, 1, 1, 1),
    shape(2, 3, 5, 5, 4, 4),
    shape(1, 2, 65, 70, 8, 3),
    shape(2, 1, 70, 9, 5, 16),
    shape(1, 1, 130, 300, 16, 16),
    shape(1, 2, 300, 600, 4, 4),
    shape(0, 2, 3, 3, 2, 2),
    shape(1, 2, 0, 3, 2, 2),
    shape(1, 2, 3, 0, 2, 2),
];

/// Causal or not, and how much later than the first key the first query stands: queries that see all keys, and that see none.
const MASKS: [(bool, i64); 6] = [(false, 0), (true, 0), (true, 4), (true, -2), (true, 260), (true, -70)];

#[test]
fn forward_matches_the_definition() {
    let mut rng = Random::new(1);
    for s in &SHAPES {
        let [q_dims, k_dims, v_dims, o_dims] = s.dims();
        for dtype in FLOATS {
            for (causal, offset) in MASKS {
                let settings = Attention { scale: 1.7, causal, offset };
                let (q, k, v) = (
                    Tensor::random(&mut rng, dtype, &q_dims),
                    Tensor::random(&mut rng, dtype, &k_dims),
                    Tensor::random(&mut rng, dtype, &v_dims),
                );
                let out = Tensor::random(&mut rng, dtype, &o_dims);
                let lse = Tensor::random(&mut rng, statistic(dtype), &o_dims[..3]);
                let (qv, kv, vv) = (q.view(), k.view(), v.view());
                attention(&Qkv { q: &qv, k: &kv, v: &vv }, &out.view(), &lse.view(), &settings).unwrap();
                let (expected, lses) = oracle(&q.values(), &k.values(), &v.values(), s, &settings);
                out.expect(&expected, tolerance(dtype), "out");
                lse.expect(&lses, tolerance(lse.dtype), "lse");
            }
        }
    }
}

#[test]
fn gradients_match_differences_and_other_dtypes() {
    let mut rng = Random::new(2);
    for s in &SHAPES {
        let dims = s.dims();
        for (causal, offset) in MASKS {
            let settings = Attention { scale: 0.9, causal, offset };
            let d = DType::F64;
            let inputs = [0, 1, 2].map(|i| Tensor::random(&mut rng, d, &dims[i]));
            let dout = Tensor::random(&mut rng, d, &dims[3]);
            let run = |dtype: DType, rng: &mut Random| {
                let inputs = [0, 1, 2].map(|i| Tensor::of(dtype, &dims[i], &inputs[i].values()));
                let [q, k, v] = inputs.each_ref().map(Tensor::view);
                let inputs = Qkv { q: &q, k: &k, v: &v };
                let dout = Tensor::of(dtype, &dims[3], &dout.values());
                let out = Tensor::random(rng, dtype, &dims[3]);
                let lse = Tensor::random(rng, statistic(dtype), &dims[3][..3]);
                attention(&inputs, &out.view(), &lse.view(), &settings).unwrap();
                let grads = [0, 1, 2].map(|i| Tensor::random(rng, dtype, &dims[i]));
                let [dq, dk, dv] = grads.each_ref().map(Tensor::view);
                let to = Qkv { q: &dq, k: &dk, v: &dv };
                attention_grad(&dout.view(), &inputs, &out.view(), &lse.view(), &to, &settings).unwrap();
                grads
            };
            let exact = run(d, &mut rng);
            if s.tq * s.tk <= 65 * 70 && s.tq > 0 && s.b > 0 {
                let values = inputs.each_ref().map(Tensor::values);
                for i in 0..3 {
                    // Differences in a few elements only of the large shapes: each costs two whole attentions.
                    let stride = if s.tq > 9 { 37 } else { 1 };
                    let picked: Vec<usize> = (0..values[i].len()).step_by(stride).collect();
                    let start: Vec<f64> = picked.iter().map(|p| values[i][*p]).collect();
                    let slopes = differences(&start, |x| {
                        let mut moved = values.clone();
                        picked.iter().zip(x).for_each(|(p, x)| moved[i][*p] = *x);
                        inner(&dout.values(), &oracle(&moved[0], &moved[1], &moved[2], s, &settings).0)
                    });
                    let got: Vec<f64> = picked.iter().map(|p| exact[i].values()[*p]).collect();
                    Tensor::of(d, &[got.len()], &got).expect(&slopes, 1e-7, "gradient");
                }
            }
            for dtype in FLOATS {
                for (got, exact) in run(dtype, &mut rng).iter().zip(&exact) {
                    got.expect(&exact.values(), 4.0 * tolerance(dtype), "gradient in another dtype");
                }
            }
        }
    }
}

#[test]
fn rows_without_any_finite_score() {
    // All scores are minus infinity: zero, as in PyTorch's attention. Where only the first block of scores is, all weight goes to the last.
    let keys = KEYS + 1;
    let mut k = vec![f64::NEG_INFINITY; keys];
    k[keys - 1] = 0.0;
    let ones = vec![1.0; keys];
    let (q, k, v) = (
        Tensor::of(DType::F32, &[1, 1, 1, 1], &[1.0]),
        Tensor::of(DType::F32, &[1, 1, keys, 1], &k),
        Tensor::of(DType::F32, &[1, 1, keys, 1], &ones),
    );
    let (out, lse) = (Tensor::of(DType::F32, &[1, 1, 1, 1], &[0.0]), Tensor::of(DType::F32, &[1, 1, 1], &[0.0]));
    let (qv, kv, vv) = (q.view(), k.view(), v.view());
    let settings = Attention { scale: 1.0, causal: false, offset: 0 };
    attention(&Qkv { q: &qv, k: &kv, v: &vv }, &out.view(), &lse.view(), &settings).unwrap();
    out.expect(&[1.0], 0.0, "out");
    lse.expect(&[0.0], 0.0, "lse");
    let first = |view: &View| view.sub_box(&[0, 0, 0, 0], &[1, 1, KEYS, 1]).unwrap();
    attention(&Qkv { q: &qv, k: &first(&kv), v: &first(&vv) }, &out.view(), &lse.view(), &settings).unwrap();
    out.expect(&[0.0], 0.0, "out");
    lse.expect(&[f64::NEG_INFINITY], 0.0, "lse");
    let grads = [1, KEYS, KEYS].map(|t| Tensor::of(DType::F32, &[1, 1, t, 1], &vec![7.0; t]));
    let [dq, dk, dv] = grads.each_ref().map(Tensor::view);
    let inputs = Qkv { q: &qv, k: &first(&kv), v: &first(&vv) };
    let to = Qkv { q: &dq, k: &dk, v: &dv };
    attention_grad(&qv, &inputs, &out.view(), &lse.view(), &to, &settings).unwrap();
    grads[1].expect(&[0.0; KEYS], 0.0, "dk");
    grads[2].expect(&[0.0; KEYS], 0.0, "dv");
}

/// Keys and values that some queries see and others in the same tile do not, and queries that do not see all keys.
#[test]
fn what_is_not_seen_does_not_count() {
    for (dtype, t) in [(DType::F32, 9), (DType::F64, 70), (DType::BF16, 300)] {
        let (mut rng, dims) = (Random::new(6), [1, 2, t, 4]);
        let settings = Attention { scale: 0.3, causal: true, offset: 0 };
        let given: Vec<Vec<f64>> = (0..4).map(|_| (0..t * 8).map(|_| rng.signed()).collect()).collect();
        // q, k, v and dout with some rows of both heads infinite or NaN.
        let run = |spoilt: &[(usize, usize)]| {
            let [q, k, v, dout] = [0, 1, 2, 3].map(|i| {
                let mut x = given[i].clone();
                for (_, row) in spoilt.iter().filter(|s| s.0 == i) {
                    [f64::INFINITY, f64::NAN, -1.0, 0.5].iter().enumerate().for_each(|(c, bad)| {
                        (x[row * 4 + c], x[(t + row) * 4 + c]) = (*bad, *bad);
                    });
                }
                Tensor::of(dtype, &dims, &x)
            });
            let [out, dq, dk, dv] = [0; 4].map(|_| Tensor::of(dtype, &dims, &vec![0.0; t * 8]));
            let lse = Tensor::of(statistic(dtype), &dims[..3], &vec![0.0; t * 2]);
            let [qv, kv, vv] = [&q, &k, &v].map(Tensor::view);
            let inputs = Qkv { q: &qv, k: &kv, v: &vv };
            attention(&inputs, &out.view(), &lse.view(), &settings).unwrap();
            let [a, b, c] = [&dq, &dk, &dv].map(Tensor::view);
            let to = Qkv { q: &a, k: &b, v: &c };
            attention_grad(&dout.view(), &inputs, &out.view(), &lse.view(), &to, &settings).unwrap();
            [out, dq, dk, dv].map(|t| t.values())
        };
        let plain = run(&[]);
        let same = |got: &[f64], want: &[f64], rows: std::ops::Range<usize>, what: &str| {
            for row in rows.clone().chain(rows.start + t..rows.end + t) {
                let at = row * 4..row * 4 + 4;
                let near = got[at.clone()]
                    .iter()
                    .zip(&want[at])
                    .all(|(a, b)| (a - b).abs() <= 4.0 * tolerance(dtype) * (1.0 + b.abs()));
                assert!(near, "{what} of {dtype} {t}, row {row}");
            }
        };
        // The last key and value: all queries but the last.
        let got = run(&[(1, t - 1), (2, t - 1)]);
        same(&got[0], &plain[0], 0..t - 1, "out");
        same(&got[1], &plain[1], 0..t - 1, "dq");
        assert!(got[0][(t - 1) * 4..t * 4].iter().any(|x| x.is_nan()), "the last query sees them");
        // The first query, which sees the first key alone: all other keys and values.
        let got = run(&[(0, 0), (3, 0)]);
        same(&got[2], &plain[2], 1..t, "dk");
        same(&got[3], &plain[3], 1..t, "dv");
        assert!(got[2][..4].iter().any(|x| x.is_nan()), "the first key is seen");
    }
}

#[test]
fn what_is_not_seen_is_not_read() {
    // Keys and values that no query sees are NaN.
    let (tq, tk, offset) = (70, 600, 20);
    let mut rng = Random::new(5);
    let mut tensor = |dims: &[usize]| Tensor::contiguous(&mut rng, DType::F32, dims);
    let (q, out, lse) = (tensor(&[1, 1, tq, 4]), tensor(&[1, 1, tq, 4]), tensor(&[1, 1, tq]));
    let values: Vec<f64> = (0..tk * 4).map(|i| if i < (tq + 20) * 4 { (i % 7) as f64 } else { f64::NAN }).collect();
    let k = Tensor::of(DType::F32, &[1, 1, tk, 4], &values);
    let [dq, dk, dv] = [tq, tk, tk].map(|t| tensor(&[1, 1, t, 4]));
    let (qv, kv) = (q.view(), k.view());
    let (inputs, settings) = (Qkv { q: &qv, k: &kv, v: &kv }, Attention { scale: 0.1, causal: true, offset });
    attention(&inputs, &out.view(), &lse.view(), &settings).unwrap();
    let [a, b, c] = [&dq, &dk, &dv].map(Tensor::view);
    attention_grad(&q.view(), &inputs, &out.view(), &lse.view(), &Qkv { q: &a, k: &b, v: &c }, &settings).unwrap();
    for t in [&out, &lse, &dq, &dk, &dv] {
        assert!(t.values().iter().all(|x| x.is_finite()));
    }
    assert!(dk.values()[(tq + 20) * 4..].iter().all(|x| *x == 0.0));
}

#[test]
fn bits_do_not_depend_on_threads() {
    same_bits_on_any_threads(|| {
        let mut rng = Random::new(3);
        let dims = [2, 3, 200, 32];
        let mut tensor = |dims: &[usize]| Tensor::contiguous(&mut rng, DType::F32, dims);
        let (q, k, v, out, dout) = (tensor(&dims), tensor(&dims), tensor(&dims), tensor(&dims), tensor(&dims));
        let (lse, dq, dk, dv) = (tensor(&dims[..3]), tensor(&dims), tensor(&dims), tensor(&dims));
        let (qv, kv, vv) = (q.view(), k.view(), v.view());
        let (dqv, dkv, dvv) = (dq.view(), dk.view(), dv.view());
        let settings = Attention { scale: 0.2, causal: true, offset: 0 };
        let inputs = Qkv { q: &qv, k: &kv, v: &vv };
        attention(&inputs, &out.view(), &lse.view(), &settings).unwrap();
        let grads = Qkv { q: &dqv, k: &dkv, v: &dvv };
        attention_grad(&dout.view(), &inputs, &out.view(), &lse.view(), &grads, &settings).unwrap();
        [&out, &lse, &dq, &dk, &dv].into_iter().flat_map(Tensor::bytes).collect()
    });
}

#[test]
fn refusals_say_why() {
    let mut rng = Random::new(4);
    let mut tensor = |dtype, dims: &[usize]| Tensor::contiguous(&mut rng, dtype, dims);
    let q = tensor(DType::F32, &[1, 2, 3, 4]);
    let k = tensor(DType::F32, &[1, 2, 5, 3]);
    let lse = tensor(DType::F32, &[1, 2, 3]);
    let settings = Attention { scale: 1.0, causal: false, offset: 0 };
    let (qv, kv, lv) = (q.view(), k.view(), lse.view());
    let run = |q, k, v| attention(&Qkv { q, k, v }, &qv, &lv, &settings).unwrap_err().0;
    assert_eq!(run(&qv, &kv, &qv), "k has dims [1, 2, 5, 3], expected [1, 2, 5, 4]");
    assert!(run(&lv, &kv, &qv).contains("need dims [B, H, T, D]"));
    let other = tensor(DType::F64, &[1, 2, 3, 4]);
    assert_eq!(run(&qv, &other.view(), &qv), "k is f64, expected f32");
}
