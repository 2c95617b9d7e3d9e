use oflow_kernels::View;
use oflow_kernels::view::*;

#[test]
fn contiguity() {
    assert_eq!(contiguous_strides(&[2, 3, 4]).as_slice(), &[12, 4, 1]);
    assert!(is_contiguous(&[2, 1, 4], &[4, 77, 1]));
    assert!(!is_contiguous(&[2, 4], &[1, 2]));
    assert!(is_contiguous(&[0, 4], &[9, 9]));
    // Without elements the other sizes may be of any product.
    for dims in [[0, 1 << 40, 1 << 40], [1 << 40, 0, 1 << 40], [1 << 40, 1 << 40, 0], [usize::MAX, usize::MAX, 0]] {
        assert!(is_contiguous(&dims, &contiguous_strides(&dims)), "{dims:?}");
    }
}

#[test]
fn sub_box_is_checked() {
    let data = [0f32, 1., 2., 3., 4., 5.];
    // SAFETY: `data` outlives the view, which is only read.
    let v = unsafe { View::from_slice(&data, &[2, 3]) };
    let b = v.sub_box(&[1, 1], &[1, 2]).unwrap();
    assert_eq!(b.as_slice::<f32>().unwrap(), &[4., 5.]);
    assert!(v.sub_box(&[1, 2], &[1, 2]).is_err());
    assert!(v.sub_box(&[usize::MAX, 0], &[2, 1]).is_err());
    assert!(v.sub_box(&[2, 3], &[0, 0]).unwrap().is_empty());
}
