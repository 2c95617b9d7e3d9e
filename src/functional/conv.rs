//! Convolutions and pooling over 1 to 3 spatial dims: the lists of PyTorch's functions, as the attributes of ops.

use super::{invoke1, op};
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::ops::{AttrValue, Attrs, Op};
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};

functions! {
    CONVOLUTIONS, "Networks";
    /// The convolution of `[batch, channels, length]`, or without the batch, with a weight `[filters, channels / groups, kernel]`, plus
    /// `bias` (one number a filter). Lists of one number stand for all spatial dims. By name `padding` may be `"valid"` or `"same"`,
    /// which gives as many elements as x has.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let (x, w) = (from_vec(vec![1.0f32, 2.0, 4.0], [1, 1, 3], Device::Cpu)?, ones([1, 1, 2], Device::Cpu)?);
    /// assert_eq!(x.conv1d(&w, None, 1, 0, 1, 1)?.to_vec::<f32>()?, [3.0, 6.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "conv1d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList dilation=[1], Int groups=1) -> Tensor" = conv1d;
    /// As `conv1d` for `[batch, channels, height, width]` and a weight `[filters, channels / groups, height, width]`.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let (x, w) = (ones([2, 3, 8, 8], Device::Cpu)?, ones([4, 3, 3, 3], Device::Cpu)?);
    /// assert_eq!(x.conv2d(&w, None, 2, 1, 1, 1)?.shape(), [2, 4, 4, 4]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "conv2d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList dilation=[1], Int groups=1) -> Tensor" = conv2d;
    /// As `conv1d` for 3 spatial dims.
    "conv3d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList dilation=[1], Int groups=1) -> Tensor" = conv3d;
    /// The transposed convolution of `[batch, channels, length]`, or without the batch, with a weight `[channels, filters / groups,
    /// kernel]`: the gradient of a convolution. `output_padding` adds elements at the end.
    "conv_transpose1d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList output_padding=[0], Int groups=1, IntList dilation=[1]) -> Tensor" = conv_transpose1d;
    /// As `conv_transpose1d` for 2 spatial dims.
    "conv_transpose2d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList output_padding=[0], Int groups=1, IntList dilation=[1]) -> Tensor" = conv_transpose2d;
    /// As `conv_transpose1d` for 3 spatial dims.
    "conv_transpose3d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], IntList padding=[0], IntList output_padding=[0], Int groups=1, IntList dilation=[1]) -> Tensor" = conv_transpose3d;
}

functions! {
    POOLING, "Networks";
    /// The largest element of each window of the last dim of `[batch, channels, length]`, or without the batch. `stride` is the kernel's size
    /// unless given; `padding` adds -inf on both sides, at most half of a kernel. `ceil_mode` keeps a last window that is cut off.
    "max_pool1d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> Tensor" = max_pool1d;
    /// As `max_pool1d` for 2 spatial dims.
    ///
    /// ```
    /// use oflow::prelude::*;
    /// let x = arange(16, Device::Cpu.dtype(DType::F32))?.reshape([1, 1, 4, 4])?;
    /// assert_eq!(x.max_pool2d(2, (), 0, 1, false)?.to_vec::<f32>()?, [5.0, 7.0, 13.0, 15.0]);
    /// # Ok::<(), oflow::Error>(())
    /// ```
    "max_pool2d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> Tensor" = max_pool2d;
    /// As `max_pool1d` for 3 spatial dims.
    "max_pool3d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> Tensor" = max_pool3d;
    /// `max_pool1d`, and where the elements are, counted over the spatial dims.
    "max_pool1d_with_indices(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> (Tensor values, Tensor indices)" = max_pool1d_with_indices;
    /// `max_pool2d`, and where the elements are, counted over the spatial dims.
    "max_pool2d_with_indices(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> (Tensor values, Tensor indices)" = max_pool2d_with_indices;
    /// `max_pool3d`, and where the elements are, counted over the spatial dims.
    "max_pool3d_with_indices(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], IntList dilation=[1], Bool ceil_mode=false) -> (Tensor values, Tensor indices)" = max_pool3d_with_indices;
    /// The average of each window of the last dim. With `count_include_pad` the zeros of the padding count as elements.
    "avg_pool1d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], Bool ceil_mode=false, Bool count_include_pad=true) -> Tensor" = avg_pool1d;
    /// As `avg_pool1d` for 2 spatial dims; `divisor_override` is divided by in place of the number of elements.
    "avg_pool2d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], Bool ceil_mode=false, Bool count_include_pad=true, Int? divisor_override) -> Tensor" = avg_pool2d;
    /// As `avg_pool2d` for 3 spatial dims.
    "avg_pool3d(Tensor x, IntList kernel_size, IntList stride=[], IntList padding=[0], Bool ceil_mode=false, Bool count_include_pad=true, Int? divisor_override) -> Tensor" = avg_pool3d;
    /// The largest elements of `output_size` windows of about one size, which cover the last dim.
    "adaptive_max_pool1d(Tensor x, IntList output_size) -> Tensor" = adaptive_max_pool1d;
    /// As `adaptive_max_pool1d` for 2 spatial dims.
    "adaptive_max_pool2d(Tensor x, IntList output_size) -> Tensor" = adaptive_max_pool2d;
    /// As `adaptive_max_pool1d` for 3 spatial dims.
    "adaptive_max_pool3d(Tensor x, IntList output_size) -> Tensor" = adaptive_max_pool3d;
    /// The averages of `output_size` windows of about one size, which cover the last dim.
    "adaptive_avg_pool1d(Tensor x, IntList output_size) -> Tensor" = adaptive_avg_pool1d;
    /// As `adaptive_avg_pool1d` for 2 spatial dims.
    "adaptive_avg_pool2d(Tensor x, IntList output_size) -> Tensor" = adaptive_avg_pool2d;
    /// As `adaptive_avg_pool1d` for 3 spatial dims.
    "adaptive_avg_pool3d(Tensor x, IntList output_size) -> Tensor" = adaptive_avg_pool3d;
}

by_name! {
    BY_NAME, "Networks", ByName;
    /// `conv1d` with the padding by a word: "valid" is none, "same" gives as many elements as x has.
    "conv1d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], *, String padding, IntList dilation=[1], Int groups=1) -> Tensor" = |b| worded(b, "conv1d", 1);
    /// `conv2d` with the padding by a word.
    "conv2d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], *, String padding, IntList dilation=[1], Int groups=1) -> Tensor" = |b| worded(b, "conv2d", 2);
    /// `conv3d` with the padding by a word.
    "conv3d(Tensor x, Tensor weight, Tensor? bias, IntList stride=[1], *, String padding, IntList dilation=[1], Int groups=1) -> Tensor" = |b| worded(b, "conv3d", 3);
}

pub(super) type List = SmallVec<[i64; 6]>;

/// A call over the last `n` dims of x: what errors say of it.
pub(super) struct Spatial<'a> {
    name: &'static str,
    n: usize,
    tensors: SmallVec<[&'a Tensor; 3]>,
    site: CallSite,
}

impl<'a> Spatial<'a> {
    pub(super) fn new(name: &'static str, n: usize, tensors: &[&'a Tensor], site: CallSite) -> Result<Spatial<'a>> {
        let call = Spatial::of(name, n, tensors, site);
        match call.x().ndim() {
            rank if rank == n + 1 || rank == n + 2 => Ok(call),
            rank => Err(call.refused(
                Error::shape(format!("x has {rank} dims"))
                    .help(format!("it is [batch, channels, {n} spatial dims], or without the batch")),
            )),
        }
    }
    /// A call over `n` dims of something that need not be x.
    pub(super) fn of(name: &'static str, n: usize, tensors: &[&'a Tensor], site: CallSite) -> Spatial<'a> {
        Spatial { name, n, tensors: tensors.into(), site }
    }
    pub(super) fn x(&self) -> &'a Tensor {
        self.tensors[0]
    }
    pub(super) fn refused(&self, e: Error) -> Error {
        let text =
            || format!("{}({})", self.name, self.tensors.iter().map(|t| t.short()).collect::<Vec<_>>().join(", "));
        e.in_call(text).at(self.site)
    }
    pub(super) fn bad(&self, message: String) -> Error {
        self.refused(Error::argument(message))
    }
    /// The spatial dims of x.
    pub(super) fn size(&self) -> List {
        self.x().shape()[self.x().ndim() - self.n..].iter().map(|d| *d as i64).collect()
    }
    /// An error where one of the last `dims` dims is empty: pooling needs elements.
    pub(super) fn has_elements(&self, dims: usize) -> Result<()> {
        let shape = self.x().shape();
        let first = shape.len() - dims;
        match shape[first..].iter().position(|d| *d == 0) {
            None => Ok(()),
            Some(d) => Err(self.refused(
                Error::shape(format!("dim {} of x has 0 elements", first + d)).help("only the batch may be empty"),
            )),
        }
    }
    /// One number for each spatial dim, at least `least`.
    pub(super) fn list(&self, what: &str, given: &[i64], least: i64) -> Result<List> {
        let all: List = match given {
            [one] => smallvec![*one; self.n],
            all if all.len() == self.n => all.into(),
            _ => {
                let n = self.n;
                return Err(self.bad(format!("{what} is {given:?}; it needs 1 number, or {n}, one per spatial dim")));
            }
        };
        match all.iter().find(|v| **v < least || **v > i64::from(i32::MAX)) {
            Some(v) => Err(self.bad(format!("{what} is {given:?}; {v} is not between {least} and 2147483647"))),
            None => Ok(all),
        }
    }
    /// x with a batch of one, if it has none; runs the call; takes the batch out again.
    pub(super) fn batched(&self, run: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        if self.x().ndim() == self.n + 2 {
            return run(self.x());
        }
        let inner = inner_calls();
        let shape: Vec<usize> = std::iter::once(1).chain(self.x().shape().iter().copied()).collect();
        let y = run(&self.x().reshape_at(&shape, self.site)?)?;
        drop(inner);
        Ok(y.reshape_at(&y.shape()[1..], self.site)?.into_result())
    }
}

/// A convolution's numbers.
struct Lists {
    stride: List,
    padding: List,
    dilation: List,
    size: List,
}

impl Lists {
    fn attrs(self, groups: i64) -> Attrs {
        smallvec![
            AttrValue::Ints(self.stride),
            AttrValue::Ints(self.padding),
            AttrValue::Ints(self.dilation),
            AttrValue::Ints(self.size),
            groups.into()
        ]
    }
}

/// The sizes of the kernel, which must have elements.
fn kernel_of(call: &Spatial<'_>, weight: &Tensor) -> Result<List> {
    if weight.ndim() != call.n + 2 {
        let n = call.n;
        return Err(call.refused(Error::shape(format!("the weight has {} dims, not {}", weight.ndim(), n + 2))));
    }
    let kernel: List = weight.shape()[2..].iter().map(|d| *d as i64).collect();
    match kernel.contains(&0) {
        true => Err(call.refused(Error::shape(format!("the kernel {:?} has no elements", &weight.shape()[2..])))),
        false => Ok(kernel),
    }
}

fn with_bias<'a>(x: &'a Tensor, weight: &'a Tensor, bias: Option<&'a Tensor>) -> SmallVec<[&'a Tensor; 3]> {
    [Some(x), Some(weight), bias].into_iter().flatten().collect()
}

/// The numbers of a convolution, and its padding: the same on both sides, or by a word.
enum Padding<'a> {
    Both(&'a [i64]),
    Word(&'a str),
}

#[allow(clippy::too_many_arguments)]
fn conv(
    name: &'static str,
    n: usize,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    [stride, dilation]: [&[i64]; 2],
    padding: Padding<'_>,
    groups: i64,
    site: CallSite,
) -> Result<Tensor> {
    let call = Spatial::new(name, n, &with_bias(x, weight, bias), site)?;
    let (kernel, image) = (kernel_of(&call, weight)?, call.size());
    let (stride, dilation) = (call.list("stride", stride, 1)?, call.list("dilation", dilation, 1)?);
    // Elements that a kernel reaches over after its first one.
    let reach: List = kernel.iter().zip(&dilation).map(|(k, d)| (k - 1).saturating_mul(*d)).collect();
    let (padding, both): (List, List) = match padding {
        Padding::Both(p) => {
            let p = call.list("padding", p, 0)?;
            let both = p.iter().map(|p| 2 * p).collect();
            (p, both)
        }
        Padding::Word("valid") => (smallvec![0; n], smallvec![0; n]),
        Padding::Word("same") if stride.iter().all(|s| *s == 1) => {
            (reach.iter().map(|r| r / 2).collect(), reach.clone())
        }
        Padding::Word("same") => return Err(call.bad(format!("padding 'same' needs a stride of 1, not {stride:?}"))),
        Padding::Word(w) => {
            let e = Error::argument(format!("unknown padding '{w}'")).help("it is 'valid', 'same', or numbers");
            return Err(call.refused(e));
        }
    };
    let mut size: List = smallvec![];
    for d in 0..n {
        let room = image[d].saturating_add(both[d]) - reach[d];
        if room < 1 {
            return Err(call.refused(Error::shape(format!(
                "the kernel reaches over {} elements; spatial dim {d} has {} with its padding",
                reach[d] + 1,
                image[d] + both[d]
            ))));
        }
        size.push((room - 1) / stride[d] + 1);
    }
    let lists = Lists { stride, padding, dilation, size };
    call.batched(|x| invoke1(op!("conv"), &[Some(x), Some(weight), bias], lists.attrs(groups), smallvec![], site))
}

fn worded(b: &super::Bound, name: &'static str, n: usize) -> Result<Vec<Tensor>> {
    let (x, weight) = (b.given(0)?, b.given(1)?);
    let lists = [b.ints(3)?, b.ints(5)?];
    let padding = Padding::Word(b.text(4)?);
    let y = conv(name, n, x, weight, b.tensor(2), lists, padding, b.int(6)?, b.site)?;
    Ok(vec![y])
}

#[allow(clippy::too_many_arguments)]
fn conv_transpose(
    name: &'static str,
    n: usize,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    [stride, padding, extra, dilation]: [&[i64]; 4],
    groups: i64,
    site: CallSite,
) -> Result<Tensor> {
    let call = Spatial::new(name, n, &with_bias(x, weight, bias), site)?;
    let (kernel, image) = (kernel_of(&call, weight)?, call.size());
    let (stride, dilation) = (call.list("stride", stride, 1)?, call.list("dilation", dilation, 1)?);
    let (padding, extra) = (call.list("padding", padding, 0)?, call.list("output_padding", extra, 0)?);
    let mut size: List = smallvec![];
    for d in 0..n {
        if extra[d] >= stride[d].max(dilation[d]) {
            return Err(call.bad(format!(
                "output_padding {extra:?} must be less than the stride {stride:?} or the dilation {dilation:?}"
            )));
        }
        let reach = (kernel[d] - 1).saturating_mul(dilation[d]);
        let long = (image[d] - 1).saturating_mul(stride[d]).saturating_add(reach).saturating_add(extra[d] + 1);
        let long = long - 2 * padding[d];
        if long < 1 {
            return Err(call.refused(Error::shape(format!("spatial dim {d} of the result would have {long} elements"))));
        }
        size.push(long);
    }
    let lists = Lists { stride, padding, dilation, size };
    let run = |x: &Tensor| {
        invoke1(op!("conv_transpose"), &[Some(x), Some(weight), bias], lists.attrs(groups), smallvec![], site)
    };
    call.batched(run)
}

macro_rules! convolutions {
    ($($name:ident $transposed:ident $n:literal;)*) => {$(
        #[allow(clippy::too_many_arguments)]
        pub(super) fn $name(
            x: &Tensor,
            weight: &Tensor,
            bias: Option<&Tensor>,
            stride: &[i64],
            padding: &[i64],
            dilation: &[i64],
            groups: i64,
            site: CallSite,
        ) -> Result<Tensor> {
            conv(stringify!($name), $n, x, weight, bias, [stride, dilation], Padding::Both(padding), groups, site)
        }
        #[allow(clippy::too_many_arguments)]
        pub(super) fn $transposed(
            x: &Tensor,
            weight: &Tensor,
            bias: Option<&Tensor>,
            stride: &[i64],
            padding: &[i64],
            output_padding: &[i64],
            groups: i64,
            dilation: &[i64],
            site: CallSite,
        ) -> Result<Tensor> {
            let lists = [stride, padding, output_padding, dilation];
            conv_transpose(stringify!($transposed), $n, x, weight, bias, lists, groups, site)
        }
    )*};
}
convolutions! { conv1d conv_transpose1d 1; conv2d conv_transpose2d 2; conv3d conv_transpose3d 3; }

/// The attributes of sliding windows, without what averages and maxima add, and their number in each dim.
fn sliding(
    call: &Spatial<'_>,
    [kernel, stride, padding, dilation]: [&[i64]; 4],
    ceil: bool,
) -> Result<([List; 4], List)> {
    call.has_elements(call.n + 1)?;
    let kernel = call.list("kernel_size", kernel, 1)?;
    let stride = if stride.is_empty() { kernel.clone() } else { call.list("stride", stride, 1)? };
    let (padding, dilation) = (call.list("padding", padding, 0)?, call.list("dilation", dilation, 1)?);
    let (image, mut size): (List, List) = (call.size(), smallvec![]);
    for d in 0..call.n {
        let room = image[d] + 2 * padding[d] - (kernel[d] - 1).saturating_mul(dilation[d]) - 1;
        let mut count =
            if ceil { (room + stride[d] - 1).div_euclid(stride[d]) } else { room.div_euclid(stride[d]) } + 1;
        // A window that begins in the padding after the end is none.
        if ceil && (count - 1).saturating_mul(stride[d]) >= image[d] + padding[d] {
            count -= 1;
        }
        if count < 1 {
            return Err(call.refused(Error::shape(format!(
                "spatial dim {d} has {} elements, which have no window of {} elements",
                image[d], kernel[d]
            ))));
        }
        size.push(count);
    }
    Ok(([kernel, stride, padding, dilation], size))
}

pub(super) fn pooled(
    op: Result<&'static Op>,
    call: &Spatial<'_>,
    lists: impl IntoIterator<Item = AttrValue>,
) -> Result<Tensor> {
    invoke1(op, &[Some(call.x())], lists.into_iter().collect(), smallvec![], call.site)
}

/// The lists and the number of windows, as a maximum takes them.
fn of_max((lists, size): ([List; 4], List)) -> impl Iterator<Item = AttrValue> {
    lists.into_iter().chain([size]).map(AttrValue::Ints)
}

macro_rules! pooling {
    ($($n:literal $max:ident $both:ident $adaptive_max:ident $adaptive_avg:ident;)*) => {$(
        pub(super) fn $max(
            x: &Tensor, kernel: &[i64], stride: &[i64], padding: &[i64], dilation: &[i64], ceil: bool, site: CallSite,
        ) -> Result<Tensor> {
            let call = Spatial::new(stringify!($max), $n, &[x], site)?;
            let windows = sliding(&call, [kernel, stride, padding, dilation], ceil)?;
            pooled(op!("max_pool"), &call, of_max(windows))
        }
        pub(super) fn $both(
            x: &Tensor, kernel: &[i64], stride: &[i64], padding: &[i64], dilation: &[i64], ceil: bool, site: CallSite,
        ) -> Result<Vec<Tensor>> {
            let call = Spatial::new(stringify!($both), $n, &[x], site)?;
            let windows = sliding(&call, [kernel, stride, padding, dilation], ceil)?;
            let ids = pooled(op!("max_pool_index"), &call, of_max(windows.clone()))?;
            Ok(vec![pooled(op!("max_pool"), &call, of_max(windows))?, ids])
        }
        pub(super) fn $adaptive_max(x: &Tensor, output_size: &[i64], site: CallSite) -> Result<Tensor> {
            let call = Spatial::new(stringify!($adaptive_max), $n, &[x], site)?;
            call.has_elements(x.ndim() - 1)?;
            let size = call.list("output_size", output_size, 0)?;
            pooled(op!("adaptive_max_pool"), &call, [AttrValue::Ints(size)])
        }
        pub(super) fn $adaptive_avg(x: &Tensor, output_size: &[i64], site: CallSite) -> Result<Tensor> {
            let call = Spatial::new(stringify!($adaptive_avg), $n, &[x], site)?;
            call.has_elements($n)?;
            let size = call.list("output_size", output_size, 0)?;
            pooled(op!("adaptive_avg_pool"), &call, [AttrValue::Ints(size)])
        }
    )*};
}
pooling! {
    1 max_pool1d max_pool1d_with_indices adaptive_max_pool1d adaptive_avg_pool1d;
    2 max_pool2d max_pool2d_with_indices adaptive_max_pool2d adaptive_avg_pool2d;
    3 max_pool3d max_pool3d_with_indices adaptive_max_pool3d adaptive_avg_pool3d;
}

/// Averages over windows of these sizes.
struct Averages<'a> {
    lists: [&'a [i64]; 3],
    ceil: bool,
    count_padding: bool,
    divisor: Option<i64>,
}

fn avg_pool(name: &'static str, n: usize, x: &Tensor, a: &Averages<'_>, site: CallSite) -> Result<Tensor> {
    let call = Spatial::new(name, n, &[x], site)?;
    if a.divisor == Some(0) {
        return Err(call.bad("divisor_override is 0".into()));
    }
    let [kernel, stride, padding] = a.lists;
    let ([kernel, stride, padding, _], size) = sliding(&call, [kernel, stride, padding, &[1]], a.ceil)?;
    let divisor = a.divisor.map_or(AttrValue::Absent, AttrValue::Int);
    let lists = [kernel, stride, padding].map(AttrValue::Ints);
    pooled(op!("avg_pool"), &call, lists.into_iter().chain([a.count_padding.into(), divisor, AttrValue::Ints(size)]))
}

pub(super) fn avg_pool1d(
    x: &Tensor,
    kernel: &[i64],
    stride: &[i64],
    padding: &[i64],
    ceil: bool,
    count_padding: bool,
    site: CallSite,
) -> Result<Tensor> {
    let a = Averages { lists: [kernel, stride, padding], ceil, count_padding, divisor: None };
    avg_pool("avg_pool1d", 1, x, &a, site)
}

macro_rules! averages {
    ($($name:ident $n:literal;)*) => {$(
        #[allow(clippy::too_many_arguments)]
        pub(super) fn $name(
            x: &Tensor,
            kernel: &[i64],
            stride: &[i64],
            padding: &[i64],
            ceil: bool,
            count_padding: bool,
            divisor: Option<i64>,
            site: CallSite,
        ) -> Result<Tensor> {
            let a = Averages { lists: [kernel, stride, padding], ceil, count_padding, divisor };
            avg_pool(stringify!($name), $n, x, &a, site)
        }
    )*};
}
averages! { avg_pool2d 2; avg_pool3d 3; }
