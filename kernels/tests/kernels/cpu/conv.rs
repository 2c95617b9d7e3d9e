//! Against the definition, over random shapes; the numbers are small integers, so every sum is exact.

use crate::owned::{Owned, read};
use crate::threads::with_threads;
use oflow_kernels::conv::Sliding;
use oflow_kernels::cpu::conv::*;
use oflow_kernels::{DType, View};

/// A number below `n`, from a generator with this state.
fn below(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    ((*state >> 33) % n as u64) as usize
}

fn tensor(state: &mut u64, dtype: DType, dims: &[usize]) -> Owned {
    let values: Vec<f64> = (0..dims.iter().product()).map(|_| below(state, 7) as f64 - 3.0).collect();
    Owned::from_f64(dtype, dims, &values)
}

/// Calls `f(element of x, of w, of y)` for every product of a convolution.
fn products(x: &[usize], w: &[usize], y: &[usize], s: &Sliding, mut f: impl FnMut(usize, usize, usize)) {
    let n = x.len() - 2;
    let at = |dims: &[usize], i: &[usize]| dims.iter().zip(i).fold(0, |at, (d, i)| at * d + i);
    let all = |dims: &[usize]| {
        let dims = dims.to_vec();
        (0..dims.iter().product()).map(move |mut i: usize| {
            let mut v = vec![0; dims.len()];
            for d in (0..dims.len()).rev() {
                (v[d], i) = (i % dims[d], i / dims[d]);
            }
            v
        })
    };
    for j in all(y) {
        for k in all(&w[1..]) {
            let group = j[1] / (w[0] / s.groups);
            let mut i = vec![j[0], group * w[1] + k[0]];
            let mut inside = true;
            for d in 0..n {
                let p =
                    (j[2 + d] * s.stride[3 - n + d] + k[1 + d] * s.dilation[3 - n + d]) as isize - s.padding[3 - n + d];
                inside &= (0..x[2 + d] as isize).contains(&p);
                i.push(p.max(0) as usize);
            }
            if inside {
                let wk = [&[j[1]], k.as_slice()].concat();
                f(at(x, &i), at(w, &wk), at(y, &j));
            }
        }
    }
}

/// A random geometry: dims of image, weight and result.
fn geometry(state: &mut u64) -> ([Vec<usize>; 3], Sliding) {
    let n = 1 + below(state, 3);
    let groups = [1, 1, 2, 3][below(state, 4)];
    let (channels, filters) = (1 + below(state, 4), 1 + below(state, [0, 36, 21, 9][n]));
    let mut list = |m: usize, from: i64| (0..n).map(|_| from + below(state, m) as i64).collect::<Vec<_>>();
    let (stride, padding, dilation, kernel) = (list(3, 1), list(4, -1), list(2, 1), list(4, 1));
    let s = Sliding::new(&stride, &padding, &dilation, groups).unwrap();
    let batch = 1 + below(state, 3);
    let most = [0, 230, 17, 6][n];
    let mut dims = [vec![batch, channels * groups], vec![filters * groups, channels], vec![batch, filters * groups]];
    for d in 0..n {
        let size = below(state, most) + 1;
        let reach = dilation[d] * (kernel[d] - 1);
        let result = (size as i64 + 2 * padding[d] - reach - 1).div_euclid(stride[d]) + 1;
        dims[0].push(size);
        dims[1].push(kernel[d] as usize);
        // Now and then more than the image has places for.
        dims[2].push(result.max(0) as usize + below(state, 2));
    }
    (dims, s)
}

fn check(state: &mut u64, dtype: DType) {
    let ([dx, dw, dy], s) = geometry(state);
    let (x, w, y) = (tensor(state, dtype, &dx), tensor(state, dtype, &dw), tensor(state, dtype, &dy));
    let (vx, vw, vy) = (read(&x.view()), read(&w.view()), read(&y.view()));
    let size = |d: &[usize]| d.iter().product::<usize>();
    let (mut fy, mut fx, mut fw) = (vec![0.0; size(&dy)], vec![0.0; size(&dx)], vec![0.0; size(&dw)]);
    products(&dx, &dw, &dy, &s, |i, k, j| {
        fy[j] += vx[i] * vw[k];
        fx[i] += vy[j] * vw[k];
        fw[k] += vy[j] * vx[i];
    });
    let case = format!("{dtype} {dx:?} {dw:?} {dy:?} {s:?}");
    // Halves round large sums.
    let same = |got: &View, want: &[f64], what: &str| {
        for (g, w) in read(got).iter().zip(want) {
            let near = if dtype.is_half() { w.abs() / 128.0 } else { 0.0 };
            assert!((g - w).abs() <= near, "{what} of {case}: {g}, not {w}");
        }
    };
    let out = tensor(state, dtype, &dy);
    conv(&x.view(), &w.view(), None, &s, &out.view()).unwrap();
    same(&out.view(), &fy, "conv");
    let bias = tensor(state, dtype, &[dw[0]]);
    let places: usize = dy[2..].iter().product();
    conv(&x.view(), &w.view(), Some(&bias.view()), &s, &out.view()).unwrap();
    let b = read(&bias.view());
    let with: Vec<f64> = fy.iter().enumerate().map(|(i, y)| y + b[i / places % dy[1]]).collect();
    same(&out.view(), &with, "conv with a bias");
    let out = tensor(state, dtype, &dx);
    conv_transpose(&y.view(), &w.view(), None, &s, &out.view()).unwrap();
    same(&out.view(), &fx, "conv_transpose");
    let out = tensor(state, dtype, &dw);
    conv_weight(&x.view(), &y.view(), &s, &out.view()).unwrap();
    same(&out.view(), &fw, "conv_weight");
}

#[test]
fn convolutions_are_their_definition() {
    let state = &mut 7;
    for i in 0..400 {
        check(state, [DType::F32, DType::F64, DType::BF16, DType::F32, DType::F16][i % 5]);
    }
}

#[test]
fn images_without_a_copy() {
    let state = &mut 3;
    for places in [1, 15, 16, 17, 48, 100, 191, 192, 193, 400] {
        let (x, w) = (tensor(state, DType::F32, &[2, 5, places]), tensor(state, DType::F32, &[7, 5, 1]));
        let out = tensor(state, DType::F32, &[2, 7, places]);
        conv(&x.view(), &w.view(), None, &Sliding::new(&[1], &[0], &[1], 1).unwrap(), &out.view()).unwrap();
        let (vx, vw) = (read(&x.view()), read(&w.view()));
        for (i, y) in read(&out.view()).iter().enumerate() {
            let (n, f, j) = (i / (7 * places), i / places % 7, i % places);
            let want: f64 = (0..5).map(|c| vx[(n * 5 + c) * places + j] * vw[f * 5 + c]).sum();
            assert_eq!(*y, want, "{places} places, element {i}");
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let state = &mut 11;
    let s = Sliding::new(&[1, 2], &[1, 0], &[1, 1], 1).unwrap();
    let fractions = |state: &mut u64, dims: &[usize]| {
        let values: Vec<f64> = (0..dims.iter().product()).map(|_| below(state, 1000) as f64 / 999.0).collect();
        Owned::from_f64(DType::F32, dims, &values)
    };
    for batch in [1, 5] {
        let (x, w) = (fractions(state, &[batch, 6, 20, 30]), fractions(state, &[9, 6, 3, 3]));
        let all = |threads: usize| {
            with_threads(threads, || {
                let y = Owned::zeros(DType::F32, &[batch, 9, 20, 14]);
                conv(&x.view(), &w.view(), None, &s, &y.view()).unwrap();
                let dx = Owned::zeros(DType::F32, &[batch, 6, 20, 30]);
                conv_transpose(&y.view(), &w.view(), None, &s, &dx.view()).unwrap();
                let dw = Owned::zeros(DType::F32, &[9, 6, 3, 3]);
                conv_weight(&x.view(), &y.view(), &s, &dw.view()).unwrap();
                [y.bytes(), dx.bytes(), dw.bytes()]
            })
        };
        assert!(all(1) == all(3));
    }
}

#[test]
fn numbers_that_are_not_finite_stay_where_they_are() {
    // The corner of the image is seen by one tap only.
    let mut values = vec![1.0; 16];
    values[0] = f64::INFINITY;
    let (x, dy) = (Owned::from_f64(DType::F32, &[1, 1, 4, 4], &values), tensor(&mut 5, DType::F32, &[1, 1, 2, 2]));
    let out = Owned::zeros(DType::F32, &[1, 1, 3, 3]);
    let s = Sliding::new(&[1, 1], &[0, 0], &[1, 1], 1).unwrap();
    conv_weight(&x.view(), &dy.view(), &s, &out.view()).unwrap();
    let (got, dy) = (read(&out.view()), read(&dy.view()));
    assert!(!got[0].is_finite(), "{got:?}");
    assert!(got[1..].iter().all(|g| *g == dy.iter().sum::<f64>()), "{got:?}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let s = Sliding::new(&[1], &[0], &[1], 2).unwrap();
    let t = |dims: &[usize]| Owned::zeros(DType::F32, dims);
    let (x, w, y) = (t(&[1, 4, 8]), t(&[6, 2, 3]), t(&[1, 6, 6]));
    assert!(conv(&x.view(), &w.view(), None, &s, &y.view()).is_ok());
    for (x, w, y) in [
        (t(&[1, 3, 8]), t(&[6, 2, 3]), t(&[1, 6, 6])),
        (t(&[1, 4, 8]), t(&[5, 2, 3]), t(&[1, 5, 6])),
        (t(&[2, 4, 8]), t(&[6, 2, 3]), t(&[1, 6, 6])),
        (t(&[1, 4, 8, 1]), t(&[6, 2, 3]), t(&[1, 6, 6])),
        (t(&[4, 8]), t(&[6, 2]), t(&[6, 6])),
    ] {
        assert!(conv(&x.view(), &w.view(), None, &s, &y.view()).is_err());
    }
    assert!(conv(&x.view(), &w.view(), Some(&t(&[5]).view()), &s, &y.view()).is_err());
    for (stride, padding, dilation, groups) in
        [(0, 0, 1, 1), (1, 0, 0, 1), (1, 0, 1, 0), (-1, 0, 1, 1), (1, i64::MIN, 1, 1), (i64::MAX, 0, 1, 1)]
    {
        assert!(Sliding::new(&[stride], &[padding], &[dilation], groups).is_err());
    }
    assert!(Sliding::new(&[1; 4], &[0; 4], &[1; 4], 1).is_err() && Sliding::new(&[], &[], &[], 1).is_err());
}

#[test]
fn an_image_whose_copy_does_not_go_into_memory_is_refused() {
    let t = |dims: &[usize]| Owned::zeros(DType::F32, dims);
    // 2^38 places between the taps are 1 TiB; three times of that are beyond what can be counted.
    for n in [1, 3] {
        let dims: Vec<usize> = [1, 1].into_iter().chain(std::iter::repeat_n(2, n)).collect();
        let s = Sliding::new(&vec![1; n], &vec![0; n], &vec![1 << 38; n], 1).unwrap();
        for refused in [
            conv(&t(&dims).view(), &t(&dims).view(), None, &s, &t(&dims).view()),
            conv_transpose(&t(&dims).view(), &t(&dims).view(), None, &s, &t(&dims).view()),
            conv_weight(&t(&dims).view(), &t(&dims).view(), &s, &t(&dims).view()),
        ] {
            assert!(refused.unwrap_err().to_string().contains("no memory for an image of"));
        }
    }
    // No channels, and a kernel that cannot be counted through.
    let s = Sliding::new(&[1], &[0], &[1], 1).unwrap();
    let refused = conv(&t(&[1, 0, 2]).view(), &t(&[1, 0, 1 << 60]).view(), None, &s, &t(&[1, 1, 2]).view());
    assert!(refused.unwrap_err().to_string().contains("too large"));
}
