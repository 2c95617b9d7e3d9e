use crate::owned::{Owned, read};
use crate::threads::with_threads;
use oflow_kernels::cpu::gather::*;
use oflow_kernels::{DType, Scalar};

#[test]
fn by_hand() {
    let x = Owned::from_f64(DType::F32, &[2, 3], &[1., 2., 3., 4., 5., 6.]);
    let ids = Owned::from_f64(DType::I64, &[2, 2], &[2., 0., 1., 1.]);
    let out = Owned::zeros(DType::F32, &[2, 2]);
    gather(&x.view(), &ids.view(), &out.view(), 1, 0, 3).unwrap();
    assert_eq!(read(&out.view()), [3., 1., 5., 5.]);
    // The columns from 1 on are here: column 0 is elsewhere.
    gather(&x.view(), &ids.view(), &out.view(), 1, 1, 4).unwrap();
    assert_eq!(read(&out.view()), [2., 0., 4., 4.]);
    let sums = Owned::zeros(DType::F32, &[2, 3]);
    let values = Owned::from_f64(DType::F32, &[2, 2], &[10., 20., 30., 40.]);
    scatter_sum(&values.view(), &ids.view(), &sums.view(), 1, 0, 3).unwrap();
    assert_eq!(read(&sums.view()), [20., 0., 10., 0., 70., 0.]);
    scatter(&x.view(), &ids.view(), &values.view(), &sums.view(), 1, 0, 3).unwrap();
    assert_eq!(read(&sums.view()), [20., 2., 10., 4., 40., 6.]);
    scatter_fill(&x.view(), &ids.view(), Scalar::Int(7), &sums.view(), 1, 0, 3).unwrap();
    assert_eq!(read(&sums.view()), [7., 2., 7., 4., 7., 6.]);
    // Both indices of the second row name its middle element: the last one reads it.
    gather_last(&x.view(), &ids.view(), &out.view(), 1, 0, 3).unwrap();
    assert_eq!(read(&out.view()), [3., 1., 0., 5.]);
    gather_last(&x.view(), &ids.view(), &out.view(), 1, 1, 4).unwrap();
    assert_eq!(read(&out.view()), [2., 0., 0., 4.]);
    // Any strides: the transposed table by one index for each row.
    let by = ids.view().sub_box(&[0, 0], &[2, 1]).unwrap();
    let turned = x.permuted(&[1, 0]);
    let across = Owned::zeros(DType::F32, &[3, 2]);
    // SAFETY: the first column of the indices, each index for both columns of the table.
    let repeated = unsafe { by.restride(0, [3, 2][..].into(), [0, 0][..].into()) };
    assert!(gather(&turned, &repeated, &across.view(), 0, 0, 3).is_ok());
    assert_eq!(read(&across.view()), [3., 6., 3., 6., 3., 6.]);
    assert!(gather(&x.view(), &ids.view(), &out.view(), 0, 0, 2).is_err());
    // An index that is nowhere is an error, also where the table has other rows.
    let bad = Owned::from_f64(DType::I64, &[2, 2], &[2., 0., 4., 1.]);
    for first in [0, 1] {
        for e in [
            gather(&x.view(), &bad.view(), &out.view(), 1, first, 4),
            scatter(&x.view(), &bad.view(), &values.view(), &sums.view(), 1, first, 4),
            scatter_fill(&x.view(), &bad.view(), Scalar::Int(1), &sums.view(), 1, first, 4),
            gather_last(&x.view(), &bad.view(), &out.view(), 1, first, 4),
            scatter_sum(&values.view(), &bad.view(), &sums.view(), 1, first, 4),
        ] {
            assert!(e.unwrap_err().to_string().contains("index 4 at position 2 is outside 0..4"));
        }
    }
}

#[test]
fn threads_do_not_matter() {
    let (rows, count, inner) = (50, 300, 70);
    let values: Vec<f64> = (0..2 * count * inner).map(|i| (i % 97) as f64 / 3.0).collect();
    let ids: Vec<f64> = (0..2 * count * inner).map(|i| ((i * 31) % rows) as f64).collect();
    for dtype in [DType::F32, DType::BF16, DType::I32] {
        let (v, i) = (
            Owned::from_f64(dtype, &[2, count, inner], &values),
            Owned::from_f64(DType::I32, &[2, count, inner], &ids),
        );
        let run = |threads| {
            with_threads(threads, || {
                let out = Owned::zeros(dtype, &[2, rows, inner]);
                scatter_sum(&v.view(), &i.view(), &out.view(), 1, 0, rows).unwrap();
                let back = Owned::zeros(dtype, &[2, count, inner]);
                gather(&out.view(), &i.view(), &back.view(), 1, 0, rows).unwrap();
                let last = Owned::zeros(dtype, &[2, count, inner]);
                gather_last(&out.view(), &i.view(), &last.view(), 1, 0, rows).unwrap();
                let filled = Owned::zeros(dtype, &[2, rows, inner]);
                scatter(&out.view(), &i.view(), &v.view(), &filled.view(), 1, 0, rows).unwrap();
                [read(&out.view()), read(&back.view()), read(&last.view()), read(&filled.view())]
            })
        };
        assert_eq!(run(1), run(4));
    }
}

#[test]
fn each_element_is_read_by_its_last_index() {
    // Few and many rows, one column and more than a task takes at a time.
    for (rows, count, inner) in [(7, 50, 1), (40, 3, 1), (9000, 20, 1), (9000, 5, 50), (3, 40, 200), (1, 4, 33)] {
        let values: Vec<f64> = (0..2 * rows * inner).map(|i| (i + 1) as f64).collect();
        let ids: Vec<usize> = (0..2 * count * inner).map(|i| (i * 7919 + i / 3) % rows).collect();
        let x = Owned::from_f64(DType::F64, &[2, rows, inner], &values);
        let by = Owned::from_f64(DType::I64, &[2, count, inner], &ids.iter().map(|i| *i as f64).collect::<Vec<_>>());
        let out = Owned::from_f64(DType::F64, &[2, count, inner], &vec![-1.0; 2 * count * inner]);
        gather_last(&x.view(), &by.view(), &out.view(), 1, 0, rows).unwrap();
        let mut expected = vec![];
        for at in 0..2 * count * inner {
            let (block, j, c) = (at / (count * inner), at / inner % count, at % inner);
            let later = (j + 1..count).any(|j| ids[(block * count + j) * inner + c] == ids[at]);
            expected.push(if later { 0.0 } else { values[(block * rows + ids[at]) * inner + c] });
        }
        assert_eq!(read(&out.view()), expected);
    }
}
