//! Functions of which the loop of f32 is not that of f64: against the f64 function, whose value is rounded once.

use oflow_kernels::cpu::elementwise::Program;
use oflow_kernels::expr::Expr;
use oflow_kernels::{DType, View};

/// An expression and its largest error in units of the last place. f64 alone costs half a unit, and a little.
const ROWS: &[(&str, f64)] = &[
    ("erfinv(a)", 3.0),
    ("ndtri(a)", 3.5),
    ("erfcx(a)", 0.51),
    ("i0(a)", 0.52),
    ("i0e(a)", 0.52),
    ("i1(a)", 0.52),
    ("i1e(a)", 0.52),
    ("bessel_j0(a)", 0.52),
    ("bessel_j1(a)", 0.52),
    ("bessel_y0(a)", 0.52),
    ("bessel_y1(a)", 0.52),
    ("bessel_k0(a)", 0.51),
    ("bessel_k1(a)", 0.51),
    ("bessel_k0e(a)", 0.51),
    ("bessel_k1e(a)", 0.51),
    ("spherical_j0(a)", 2.5),
    // The neighbours of the zeros 1 and 2 lose the most.
    ("lgamma(a)", 1.5),
    ("digamma(a)", 0.52),
    ("polygamma(1, a)", 0.51),
    // Not of order 1: the f64 function.
    ("polygamma(2, a)", 0.5),
    ("igamma(a, 2.5)", 0.51),
    ("igamma(3.25, a)", 0.51),
    ("igammac(a, 40)", 0.51),
    ("igammac(0.125, a)", 0.51),
];

/// Near their zeros, other than those that are factors: the error that f64 leaves there.
const ABSOLUTE: f64 = 2e-14;

/// The distance to the value in units of the last place of an f32; equal infinities and two NaNs are zero apart.
fn ulps(got: f32, want: f64) -> f64 {
    let rounded = want as f32;
    if got.is_nan() && rounded.is_nan() || got == rounded {
        return 0.0;
    }
    if !got.is_finite() || !rounded.is_finite() {
        return f64::INFINITY;
    }
    let exponent = (want.abs().log2().floor() as i32).max(-126);
    (f64::from(got) - want).abs() / 2f64.powi(exponent - 23)
}

/// Arguments of all sizes, a close grid around zero, the neighbours of whole and half numbers, and the ends.
fn arguments() -> Vec<f32> {
    let all = (0..=u32::MAX / 65_521).map(|i| f32::from_bits(i * 65_521));
    let grid = (0..60_000).map(|i| (i - 30_000) as f32 * 1.0007e-3);
    let unit = (0..20_001).map(|i| (i - 10_000) as f32 * 1e-4);
    let halves = (-80..80).flat_map(|k| (-2..=2).map(move |d| (k as f32 * 0.5, d)));
    let near = halves.map(|(x, d): (f32, i32)| f32::from_bits(x.to_bits().wrapping_add_signed(d)));
    let ends = [0.0, -0.0, 1e-45, -1e-45, f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e6, -1e6];
    all.chain(grid).chain(unit).chain(near).chain(ends).collect()
}

fn expr(text: &str) -> Expr {
    Expr::parse(text, &["a", "b"], &[]).unwrap()
}

fn run(text: &str, inputs: &[&[f32]]) -> Vec<f32> {
    let mut out = vec![0.0f32; inputs[0].len()];
    let program = Program::compile(&expr(text), &vec![DType::F32; inputs.len()], DType::F32).unwrap();
    // SAFETY: the slices live until the program has run.
    let views: Vec<View> = inputs.iter().map(|x| unsafe { View::from_slice(x, &[x.len()]) }).collect();
    // SAFETY: so does the output.
    let to = unsafe { View::from_mut(&mut out, &[inputs[0].len()]) };
    program.run(&views, &[], &to).unwrap();
    out
}

#[test]
fn values_are_those_of_f64() {
    let xs = arguments();
    for (text, bound) in ROWS {
        // The f64 function is slow.
        let step = if text.starts_with("polygamma(2") { 41 } else { 1 };
        let xs: Vec<f32> = xs.iter().copied().step_by(step).collect();
        let oracle = expr(text);
        for (x, got) in xs.iter().zip(run(text, &[&xs])) {
            let want = oracle.eval(&[f64::from(*x)], f64::NAN, &[]);
            let (off, absolute) = (ulps(got, want), (f64::from(got) - want).abs());
            let zero = want as f32 == 0.0 && got == 0.0;
            let near = absolute <= ABSOLUTE && absolute <= 1e-5 * want.abs();
            assert!(off <= *bound || near, "{text} at {x:e} is {got:e}, not {want:e}: {off} ulp");
            assert!(!zero || got.is_sign_negative() == (want as f32).is_sign_negative(), "sign of {text} at {x:e}");
        }
    }
}

/// Remainders are exact: C's is the standard library's, the others have their definition by it.
#[test]
fn remainders_are_exact() {
    let mut xs = arguments();
    xs.truncate(60_000);
    let ends = [
        0.0,
        -0.0,
        1.0,
        -3.0,
        0.1,
        1e-45,
        -1e-38,
        f32::MAX,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        268_435_456.0,
        -268_435_450.0,
    ];
    let pairs: Vec<(f32, f32)> = (0..xs.len())
        .map(|i| (xs[i], xs[(i * 7919 + 13) % xs.len()]))
        // Quotients of moderate size, whole and nearly so.
        .chain((0..60_000u32).map(|i| (f32::from_bits(0x3f80_0000 + i * 7919), 1.0 + (i % 97) as f32 * 0.173)))
        .chain((1..40_000u32).map(|i| {
            let b = 1.0 + (i % 97) as f32 * 0.173;
            (b * i as f32, -b)
        }))
        .chain(ends.iter().flat_map(|a| ends.iter().map(move |b| (*a, *b))))
        .collect();
    let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
    let (fmod, remainder) = (run("fmod(a, b)", &[&a, &b]), run("remainder(a, b)", &[&a, &b]));
    let floor = run("floordiv(a, b)", &[&a, &b]);
    let same = |got: f32, want: f32| got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
    for (i, (a, b)) in pairs.into_iter().enumerate() {
        let r = a % b;
        assert!(same(fmod[i], r), "fmod({a:e}, {b:e}) is {:e}, not {r:e}", fmod[i]);
        let turned = r != 0.0 && ((r < 0.0) != (b < 0.0));
        let want = if turned { r + b } else { r };
        assert!(same(remainder[i], want), "remainder({a:e}, {b:e}) is {:e}, not {want:e}", remainder[i]);
        let q = (a - r) / b - if turned { 1.0 } else { 0.0 };
        let down = q.floor() + if q - q.floor() > 0.5 { 1.0 } else { 0.0 };
        let want = if b == 0.0 {
            a / b
        } else if q != 0.0 {
            down
        } else {
            0f32.copysign(a / b)
        };
        assert!(same(floor[i], want), "floordiv({a:e}, {b:e}) is {:e}, not {want:e}", floor[i]);
    }
}

/// Alone, among others, in place and read from every second place an element has the same bits, also beside ones of another way.
#[test]
fn bits_do_not_depend_on_neighbours_and_layout() {
    let xs: Vec<f32> = arguments().into_iter().step_by(577).chain([f32::NAN, 1.5, f32::INFINITY, -0.75, 3e7]).collect();
    let n = xs.len();
    let texts = ROWS.iter().map(|(text, _)| *text).chain(["fmod(a, 0.3)", "remainder(a, -7)", "floordiv(a, 0.3)"]);
    for text in texts {
        let bits = |v: &[f32]| v.iter().map(|x| if x.is_nan() { 0 } else { x.to_bits() }).collect::<Vec<u32>>();
        let together = bits(&run(text, &[&xs]));
        let alone: Vec<f32> = xs.iter().flat_map(|x| run(text, &[&[*x]])).collect();
        assert_eq!(bits(&alone), together, "{text} alone");
        let program = Program::compile(&expr(text), &[DType::F32], DType::F32).unwrap();
        let mut place = xs.clone();
        // SAFETY: the vector lives until the program has run.
        let view = unsafe { View::from_mut(&mut place, &[n]) };
        program.run(std::slice::from_ref(&view), &[], &view).unwrap();
        assert_eq!(bits(&place), together, "{text} in place");
        let spread: Vec<f32> = xs.iter().flat_map(|x| [*x, 0.5]).collect();
        let mut out = vec![0.0f32; n];
        // SAFETY: every second element of the vector, which lives until the program has run; so does the output.
        let (from, to) = unsafe {
            let all = View::from_slice(&spread, &[2 * n]);
            (all.restride(0, [n].as_slice().into(), [2isize].as_slice().into()), View::from_mut(&mut out, &[n]))
        };
        program.run(&[from], &[], &to).unwrap();
        assert_eq!(bits(&out), together, "{text} of a strided view");
    }
}
