//! Sorting, selecting, counting and drawing: what no table of samples says. Views, nothing to choose from, NaN, split sequences, and what
//! bad calls are told.

use oflow::functional::{UniqueOfOptions, call, median_of_all, unique_of_with};
use oflow::prelude::*;

fn floats(values: &[f32]) -> Tensor {
    from_vec(values.to_vec(), [values.len()], Device::Cpu).unwrap()
}

fn ints(values: &[i64]) -> Tensor {
    from_vec(values.to_vec(), [values.len()], Device::Cpu).unwrap()
}

/// That a call is refused with an error that says all of this.
fn refused<T>(result: Result<T>, says: &[&str]) {
    let text = result.err().expect("it must be refused").to_string();
    for s in says {
        assert!(text.contains(s), "{text} does not say '{s}'");
    }
}

#[test]
fn views_are_sorted_like_their_copies() {
    let x = from_vec((0..24).map(|i| (i * 7 % 24) as f32).collect(), [4, 6], Device::Cpu).unwrap();
    let turned = x.transpose(0, 1).unwrap();
    let steps = x.slice(1, 0, 6, 2).unwrap();
    for view in [&turned, &steps] {
        let copy = view.copy().unwrap();
        for dim in [0, 1, -1] {
            let (a, b) = (view.sort(dim, true).unwrap(), copy.sort(dim, true).unwrap());
            assert_eq!(a[0].to_vec::<f32>().unwrap(), b[0].to_vec::<f32>().unwrap());
            assert_eq!(a[1].to_vec::<i64>().unwrap(), b[1].to_vec::<i64>().unwrap());
            let (a, b) = (view.cummax(dim).unwrap(), copy.cummax(dim).unwrap());
            assert_eq!(a[1].to_vec::<i64>().unwrap(), b[1].to_vec::<i64>().unwrap());
        }
    }
}

#[test]
fn nothing_to_choose_from() {
    let none = zeros([0, 3], Device::Cpu).unwrap();
    assert_eq!(none.sort(0, false).unwrap()[0].shape(), [0, 3]);
    assert_eq!(none.topk(0, 0, true, true).unwrap()[1].shape(), [0, 3]);
    assert_eq!(none.median(1).unwrap()[0].shape(), [0]);
    assert!(median_of_all(&none).unwrap().item().unwrap().is_nan());
    refused(none.median(0), &["median", "empty"]);
    refused(median_of_all(&none.cast(DType::I32).unwrap()), &["middle", "empty"]);
    refused(none.kthvalue(1, 0), &["kthvalue", "k is 1"]);
    assert_eq!(ints(&[]).bincount().unwrap().shape(), [0]);
    assert_eq!(ints(&[]).histc_of_floats(), vec![0.0; 2]);
    let all = UniqueOfOptions { return_inverse: true, return_counts: true, ..Default::default() };
    let found = unique_of_with(&none, &all).unwrap();
    assert_eq!((found[0].shape(), found[1].shape(), found[2].shape()), (&[0][..], &[0, 3][..], &[0][..]));
}

trait Histogram {
    fn histc_of_floats(&self) -> Vec<f32>;
}
impl Histogram for Tensor {
    fn histc_of_floats(&self) -> Vec<f32> {
        self.cast(DType::F32).unwrap().histc(2, 0.0, 0.0).unwrap().to_vec().unwrap()
    }
}

#[test]
fn nan_is_greatest_and_no_two_are_equal() {
    let x = floats(&[f32::NAN, 1.0, f32::NAN, -0.0, 0.0, 1.0]);
    let all = UniqueOfOptions { return_inverse: true, return_counts: true, ..Default::default() };
    let found = unique_of_with(&x, &all).unwrap();
    let values = found[0].to_vec::<f32>().unwrap();
    assert_eq!((values.len(), values[0], values[1]), (4, 0.0, 1.0));
    assert_eq!(found[1].to_vec::<i64>().unwrap(), [2, 1, 3, 0, 0, 1]);
    assert_eq!(found[2].to_vec::<i64>().unwrap(), [2, 2, 1, 1]);
    let largest = x.topk(3, 0, true, true).unwrap();
    assert_eq!(largest[1].to_vec::<i64>().unwrap(), [0, 2, 1]);
    assert_eq!(x.argsort(0, false).unwrap().to_vec::<i64>().unwrap(), [3, 4, 1, 5, 0, 2]);
    let one = unique_of_with(&full([], 3.5, Device::Cpu).unwrap(), &all).unwrap();
    assert_eq!((one[0].shape(), one[1].shape(), one[2].to_vec::<i64>().unwrap()), (&[1][..], &[][..], vec![1]));
}

#[test]
fn derivatives_of_the_second_order_go_where_the_elements_stood() {
    let x = floats(&[3.0, -1.0, 2.0]).requires_grad_(true).unwrap();
    let cubes = x.mul(&x).unwrap().mul(&x).unwrap();
    let y = cubes.topk(2, 0, true, true).unwrap()[0].mul(&floats(&[1.0, 10.0])).unwrap().sum(()).unwrap();
    let options = oflow::BackwardOptions { create_graph: true, ..Default::default() };
    let first = oflow::functional::grad(&[&y], &[&x], &options).unwrap().remove(0).unwrap();
    assert_eq!(first.to_vec::<f32>().unwrap(), [27.0, 0.0, 120.0]);
    let sum = first.sum(()).unwrap();
    let second = oflow::functional::grad(&[&sum], &[&x], &Default::default()).unwrap().remove(0).unwrap();
    assert_eq!(second.to_vec::<f32>().unwrap(), [18.0, 0.0, 120.0]);
}

#[test]
fn bad_calls_are_told_what_is_wrong() {
    let (x, n) = (floats(&[1.0, 2.0]), ints(&[1, -1, 3]));
    refused(x.topk(3, 0, true, true), &["topk", "k is 3, dim 0 has 2 elements"]);
    refused(x.topk(-1, 0, true, true), &["topk"]);
    refused(x.sort(1, false), &["sort", "dim 1"]);
    refused(x.kthvalue(0, 0), &["kthvalue", "k is 0"]);
    refused(x.bincount(), &["bincount", "integers"]);
    refused(n.bincount(), &["count_index", "-1"]);
    refused(ints(&[-5, -2]).bincount(), &["bincount", "expected numbers from 0 on, got -2"]);
    refused(call("bincount", &[(&ints(&[1])).into()], &[("minlength", (-1i64).into())]), &["bincount", "-1"]);
    refused(x.histc(0, 0.0, 1.0), &["histc", "0 intervals cannot be counted in"]);
    refused(x.histc(3, 2.0, 1.0), &["histc", "from 2 to 1"]);
    refused(n.histc(3, 0.0, 1.0), &["histc", "i64"]);
    refused(floats(&[f32::NAN]).histc(3, 0.0, 0.0), &["histc", "NaN"]);
    refused(n.searchsorted(&x), &["searchsorted", "i64"]);
    refused(
        x.reshape([1, 2]).unwrap().searchsorted(&zeros([2, 2], Device::Cpu).unwrap()),
        &["searchsorted", "last dim"],
    );
    refused(x.bucketize(&zeros([1, 2], Device::Cpu).unwrap()), &["bucketize", "one dim"]);
    refused(randperm(-2, Device::Cpu), &["randperm", "-2"]);
    refused(x.multinomial(3, false), &["multinomial", "3 indices cannot be drawn of 2"]);
    refused(x.multinomial(0, true), &["multinomial", "0 indices"]);
    refused(n.multinomial(1, true), &["multinomial", "floats"]);
}

#[test]
fn sequences_and_lists_may_be_split_unevenly_and_on_more_ranks_than_elements() {
    let sorted: Vec<f32> = vec![-2.0, -0.5, 0.0, 0.0, 1.5, f32::INFINITY, f32::NAN];
    let asked = vec![-3.0, -2.0, 0.0, 0.1, 9.0, f32::INFINITY, f32::NAN, f32::NEG_INFINITY];
    let numbers: Vec<i64> = vec![3, 0, 3, 5, 1];
    for ranks in [1, 2, 3, 5, 8] {
        for right in [false, true] {
            let options = oflow::functional::SearchsortedOptions { right, ..Default::default() };
            let want = floats(&sorted).searchsorted_with(&floats(&asked), &options).unwrap().to_vec::<i64>().unwrap();
            let have = oflow::run_ranks(ranks, |_| {
                let mesh = Placement::all(Device::Cpu)?;
                let s = from_vec(sorted.clone(), [7], (&mesh, sbp![S(0)]))?;
                let a = from_vec(asked.clone(), [8], (&mesh, sbp![B]))?;
                let y = s.searchsorted_with(&a, &options)?;
                assert!(ranks == 1 || y.sbp()?.to_string().contains("P(sum)"), "{y:?}");
                y.to_vec::<i64>()
            });
            assert!(have.unwrap().into_iter().all(|h| h == want), "{ranks} ranks");
        }
        let counts = oflow::run_ranks(ranks, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            from_vec(numbers.clone(), [5], (&mesh, sbp![S(0)]))?.bincount()?.to_vec::<i64>()
        });
        assert!(counts.unwrap().into_iter().all(|c| c == [1, 1, 0, 2, 0, 1]));
    }
}
