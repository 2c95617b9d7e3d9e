use crate::owned::{Owned, read};
use crate::threads::with_threads;
use oflow_kernels::DType;
use oflow_kernels::cpu::embedding::*;

#[test]
fn a_split_table_adds_up_to_the_whole_lookup() {
    let ids = Owned::from_f64(DType::I32, &[2, 3], &[4., 0., 2., 4., 1., 3.]);
    for d in [DType::F32, DType::BF16, DType::F64] {
        let table = Owned::from_f64(d, &[5, 3], &(0..15).map(f64::from).collect::<Vec<_>>());
        let out = Owned::zeros(d, &[2, 3, 3]);
        embedding(&table.view(), &ids.view(), &out.view(), 0).unwrap();
        let want: Vec<f64> = [4, 0, 2, 4, 1, 3].iter().flat_map(|r| (0..3).map(move |c| (r * 3 + c) as f64)).collect();
        assert_eq!(read(&out.view()), want);
        let mut sum = vec![0.0; 18];
        for (first, rows) in [(0, 2), (2, 3)] {
            let shard = table.view().sub_box(&[first, 0], &[rows, 3]).unwrap();
            embedding(&shard, &ids.view(), &out.view(), first as i64).unwrap();
            sum.iter_mut().zip(read(&out.view())).for_each(|(s, x)| *s += x);
        }
        assert_eq!(sum, want);
    }
}

#[test]
fn the_gradient_sums_repeated_rows_whatever_the_threads() {
    for (n, width, rows) in [(3000, 150, 40), (3000, 1, 40), (500, 3, 40), (500, 5, 40)] {
        the_gradient_of(n, width, rows);
    }
}

fn the_gradient_of(n: usize, width: usize, rows: usize) {
    let ids: Vec<f64> = (0..n).map(|i| ((i * 31) % 47) as f64).collect();
    let dy: Vec<f64> = (0..n * width).map(|i| (i % 17) as f64).collect();
    for d in [DType::F32, DType::F16, DType::F64] {
        let (ids, dy) = (Owned::from_f64(DType::I64, &[n], &ids), Owned::from_f64(d, &[n, width], &dy));
        let first = 3;
        let mut want = vec![0.0; rows * width];
        let (id, g) = (read(&ids.view()), read(&dy.view()));
        for i in 0..n {
            if let Some(r) = usize::try_from(id[i] as i64 - first).ok().filter(|r| *r < rows) {
                (0..width).for_each(|c| want[r * width + c] += g[i * width + c]);
            }
        }
        for threads in [1, 2] {
            let dw = Owned::from_f64(d, &[rows, width], &vec![5.0; rows * width]);
            with_threads(threads, || embedding_grad(&dy.view(), &ids.view(), &dw.view(), first, 47).unwrap());
            assert_eq!(read(&dw.view()), want, "{d}");
            let refused = embedding_grad(&dy.view(), &ids.view(), &dw.view(), first, 46).unwrap_err();
            assert!(refused.to_string().contains("is outside 0..46"), "{refused}");
        }
    }
}

/// Rows are ordered by counting, or by sorting where the table has many more of them than there are indices.
#[test]
fn the_gradient_of_a_table_of_many_rows() {
    let ids = [900.0, 2.0, 900.0, 4000.0];
    for rows in [20usize, 5000] {
        let view = Owned::from_f64(DType::I32, &[4], &ids);
        let dy = Owned::from_f64(DType::F32, &[4, 2], &(1..9).map(f64::from).collect::<Vec<_>>());
        let dw = Owned::zeros(DType::F32, &[rows, 2]);
        let first = 890;
        embedding_grad(&dy.view(), &view.view(), &dw.view(), first, 6000).unwrap();
        let mut want = vec![0.0; rows * 2];
        (want[20], want[21]) = (1.0 + 5.0, 2.0 + 6.0);
        if rows > 4000 - 890 {
            (want[2 * 3110], want[2 * 3110 + 1]) = (7.0, 8.0);
        }
        assert_eq!(read(&dw.view()), want, "{rows}");
    }
}
