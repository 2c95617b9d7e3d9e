use crate::owned::{Owned, read};
use oflow_kernels::cpu::pool::*;
use oflow_kernels::pool::{Divisor, PoolGeometry, Windows};
use oflow_kernels::{DType, ShardBox, View};

fn whole(image: &View, result: &View) -> PoolGeometry {
    PoolGeometry::of(&ShardBox::whole(image.dims()), &ShardBox::whole(result.dims()), 1).unwrap()
}

fn line(values: &[f64]) -> Owned {
    Owned::from_f64(DType::F32, &[1, values.len()], values)
}

#[test]
fn windows_at_the_edges() {
    let slides = |k: i64, s: i64, p: i64, d: i64| Windows::sliding(&[k], &[s], &[p], &[d]).unwrap();
    let w = |windows: &Windows, j: usize, size: usize| {
        let w = windows.window(2, j, 9, size);
        (w.start, w.end, w.span)
    };
    let three = slides(3, 2, 1, 1);
    assert_eq!([w(&three, 0, 4), w(&three, 1, 4), w(&three, 2, 4)], [(0, 2, 3), (1, 4, 3), (3, 4, 2)]);
    let apart = slides(2, 1, 1, 3);
    // Elements -1 and 2, then 0 and 3.
    assert_eq!([w(&apart, 0, 5), w(&apart, 1, 5)], [(2, 5, 6), (0, 5, 6)]);
    let all: Vec<_> = (0..3).map(|j| Windows::Adaptive.window(2, j, 3, 5)).map(|w| (w.start, w.end)).collect();
    assert_eq!(all, [(0, 2), (1, 4), (3, 5)]);
    for bad in [(0, 1, 0, 1), (1, 0, 0, 1), (1, 1, -1, 1), (1, 1, 0, 0), (i64::MAX, 1, 0, 1)] {
        assert!(Windows::sliding(&[bad.0], &[bad.1], &[bad.2], &[bad.3]).is_err());
    }
}

#[test]
fn by_hand() {
    let x = line(&[1.0, 5.0, f64::NAN, 2.0, 2.0, -1.0]);
    let windows = Windows::sliding(&[2], &[2], &[0], &[1]).unwrap();
    let (y, at) = (Owned::zeros(DType::F32, &[1, 3]), Owned::zeros(DType::I64, &[1, 3]));
    max(&x.view(), &windows, &whole(&x.view(), &y.view()), &y.view()).unwrap();
    max_index(&x.view(), &windows, &whole(&x.view(), &at.view()), &at.view()).unwrap();
    let got = read(&y.view());
    assert!(got[0] == 5.0 && got[1].is_nan() && got[2] == 2.0, "{got:?}");
    assert_eq!(read(&at.view()), [1.0, 2.0, 4.0]);
    let x = line(&[1.0, 2.0, 3.0, 4.0]);
    let windows = Windows::sliding(&[3], &[2], &[1], &[1]).unwrap();
    for (divisor, want) in
        [(Divisor::Inside, [1.5, 3.0]), (Divisor::WithPadding, [1.0, 3.0]), (Divisor::Fixed(2), [1.5, 4.5])]
    {
        let y = Owned::zeros(DType::F32, &[1, 2]);
        avg(&x.view(), &windows, divisor, &whole(&x.view(), &y.view()), &y.view()).unwrap();
        assert_eq!(read(&y.view()), want, "{divisor:?}");
        // The gradient is the transposed map.
        let dx = Owned::zeros(DType::F32, &[1, 4]);
        avg_grad(&y.view(), &windows, divisor, &whole(&dx.view(), &y.view()), &dx.view()).unwrap();
        let dot = |a: &Owned, b: &[f64]| read(&a.view()).iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (forth, back) = (dot(&y, &want), dot(&dx, &[1.0, 2.0, 3.0, 4.0]));
        assert!((forth - back).abs() < 1e-6, "{divisor:?}: {forth} {back}");
    }
}

/// Where the largest element is, by the definition, of images of few values, so that equals and NaN are everywhere.
#[test]
fn the_first_of_equals_and_the_last_nan() {
    let mut state = 1u64;
    let mut next = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let values = [f64::NEG_INFINITY, -1.0, 2.0, 2.0, f64::INFINITY, f64::NAN];
    for round in 0..200 {
        let dims = [2, 1 + next(3) as usize, 1 + next(6) as usize, 1 + next(7) as usize];
        let count: usize = dims.iter().product();
        let few = 1 + next(values.len() as u64);
        let image: Vec<f64> = (0..count).map(|_| values[next(few) as usize]).collect();
        let (kernel, stride): (Vec<i64>, Vec<i64>) =
            dims[1..].iter().map(|n| (1 + next(*n as u64) as i64, 1 + next(3) as i64)).unzip();
        let size: Vec<usize> = (0..3).map(|d| (dims[d + 1] - kernel[d] as usize) / stride[d] as usize + 1).collect();
        let x = Owned::from_f64(if round % 2 == 0 { DType::F32 } else { DType::F64 }, &dims, &image);
        let got = Owned::zeros(DType::I64, &[2, size[0], size[1], size[2]]);
        let windows = Windows::sliding(&kernel, &stride, &[0; 3], &[1; 3]).unwrap();
        let place =
            PoolGeometry::of(&ShardBox::whole(x.view().dims()), &ShardBox::whole(got.view().dims()), 3).unwrap();
        max_index(&x.view(), &windows, &place, &got.view()).unwrap();
        let mut want = vec![];
        let plane: usize = dims[1..].iter().product();
        for p in 0..2 {
            for at in 0..size.iter().product() {
                let start = [at / size[2] / size[1], at / size[2] % size[1], at % size[2]];
                let place = |t: [usize; 3]| {
                    let [d, h, w]: [usize; 3] = std::array::from_fn(|i| start[i] * stride[i] as usize + t[i]);
                    (d * dims[2] + h) * dims[3] + w
                };
                let mut best = (f64::NEG_INFINITY, place([0, 0, 0]));
                for d in 0..kernel[0] as usize {
                    for h in 0..kernel[1] as usize {
                        for w in 0..kernel[2] as usize {
                            let value = image[p * plane + place([d, h, w])];
                            if value > best.0 || value.is_nan() {
                                best = (value, place([d, h, w]));
                            }
                        }
                    }
                }
                want.push(best.1 as f64);
            }
        }
        assert_eq!(read(&got.view()), want, "{dims:?} {kernel:?} {stride:?} {image:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (x, y) = (Owned::zeros(DType::F32, &[2, 0]), Owned::zeros(DType::F32, &[2, 1]));
    assert!(max(&x.view(), &Windows::Adaptive, &whole(&x.view(), &y.view()), &y.view()).is_err());
    let (x, y) = (Owned::zeros(DType::F32, &[2, 4]), Owned::zeros(DType::F32, &[3, 1]));
    assert!(max(&x.view(), &Windows::Adaptive, &whole(&x.view(), &y.view()), &y.view()).is_err());
    let ints = Owned::zeros(DType::I64, &[2, 4]);
    assert!(
        avg(&ints.view(), &Windows::Adaptive, Divisor::Inside, &whole(&ints.view(), &ints.view()), &ints.view())
            .is_err()
    );
}

#[test]
fn parts_give_parts_of_the_whole() {
    let x = line(&[3.0, 1.0, f64::NAN, 2.0, 7.0, 0.0, 4.0]);
    let slides = |k: i64, s: i64, p: i64, d: i64| Windows::sliding(&[k], &[s], &[p], &[d]).unwrap();
    for (windows, count) in [(slides(3, 2, 1, 1), 4), (slides(2, 1, 1, 3), 6), (Windows::Adaptive, 3)] {
        let (y, at) = (Owned::zeros(DType::F32, &[1, count]), Owned::zeros(DType::I64, &[1, count]));
        let mean = Owned::zeros(DType::F32, &[1, count]);
        max(&x.view(), &windows, &whole(&x.view(), &y.view()), &y.view()).unwrap();
        max_index(&x.view(), &windows, &whole(&x.view(), &at.view()), &at.view()).unwrap();
        avg(&x.view(), &windows, Divisor::WithPadding, &whole(&x.view(), &y.view()), &mean.view()).unwrap();
        for j in 0..count {
            let w = windows.window(2, j, count, 7);
            let (image, result) = (
                ShardBox {
                    logical: [1, 7][..].into(),
                    offset: [0, w.start][..].into(),
                    size: [1, w.end - w.start][..].into(),
                },
                ShardBox { logical: [1, count][..].into(), offset: [0, j][..].into(), size: [1, 1][..].into() },
            );
            let place = PoolGeometry::of(&image, &result, 1).unwrap();
            let part = line(&read(&x.view())[w.start..w.end]);
            let one = |dtype| Owned::zeros(dtype, &[1, 1]);
            let (a, b, c) = (one(DType::F32), one(DType::I64), one(DType::F32));
            max(&part.view(), &windows, &place, &a.view()).unwrap();
            max_index(&part.view(), &windows, &place, &b.view()).unwrap();
            avg(&part.view(), &windows, Divisor::WithPadding, &place, &c.view()).unwrap();
            for (got, want) in [(a, &y), (b, &at), (c, &mean)] {
                let (got, want) = (read(&got.view())[0], read(&want.view())[j]);
                assert!(got == want || got.is_nan() && want.is_nan(), "{windows:?} {j}: {got} for {want}");
            }
        }
    }
}
