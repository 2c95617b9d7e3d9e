//! Arguments of callbacks: views, types and attributes as structs of C. They borrow what the call has.

use crate::ops::{AttrDef, AttrKind, AttrValue, Attrs, InferCtx, OpDef, SbpHints, TensorType};
use crate::placement::{Device, Placement};
use crate::sbp::NdSbp;
use oflow_kernels::{DType, Scalar, ShardBox, View};
use oflow_op::abi::*;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::ptr;

/// The code of an element type in the interface, which is its number in declared order; that of its storage for a registered one.
pub(super) fn code(d: DType) -> u32 {
    d.storage() as u32
}

/// The element type of a code.
pub(super) fn dtype(found: u32) -> Option<DType> {
    DType::BUILTIN.into_iter().find(|d| code(*d) == found)
}

/// The code of a device in the interface; none of one that libraries do not know.
pub(super) fn device_code(d: Device) -> Option<u32> {
    [(Device::Cpu, OFLOW_CPU), (Device::Cuda, OFLOW_CUDA)].iter().find(|(known, _)| *known == d).map(|(_, code)| *code)
}

/// The device of a code.
pub(super) fn device(found: u32) -> Option<Device> {
    [Device::Cpu, Device::Cuda].into_iter().find(|d| device_code(*d) == Some(found))
}

/// Sizes and strides are 64-bit integers on both sides, and no size is beyond `i64::MAX`.
fn integers(sizes: &[usize]) -> *const i64 {
    sizes.as_ptr().cast()
}

/// A view; whatever borrows it lives as long as the view and the box.
pub(super) fn view(v: &View, of: Option<&ShardBox>, name: &str, device: u32) -> oflow_view {
    let none: &[usize] = &[];
    let (whole, start) = of.map_or((v.dims(), none), |b| (&b.logical, &b.offset));
    // A view without a box is the whole tensor: it starts at 0 in each dim.
    static ZEROS: [usize; 64] = [0; 64];
    let start = if start.len() == v.rank() { start } else { &ZEROS };
    let whole = if whole.len() == v.rank() { whole } else { v.dims() };
    let (scale, zero_point) = quantised(v.dtype());
    oflow_view {
        head: oflow_head::of::<oflow_view>(),
        name: oflow_str::of(name),
        data: v.ptr().cast(),
        dtype: code(v.dtype()),
        device,
        rank: v.rank() as u32,
        dims: integers(v.dims()),
        strides: v.strides().as_ptr().cast(),
        whole: integers(whole),
        start: integers(start),
        scale,
        zero_point,
    }
}

/// Scale and zero point of a quantised dtype; zeros of another.
pub(super) fn quantised(d: DType) -> (f64, i64) {
    d.quantization().map_or((0.0, 0), |q| (q.scale, q.zero))
}

pub(super) fn tensor_type(t: &TensorType, name: &str) -> oflow_type {
    let (scale, zero_point) = quantised(t.dtype);
    oflow_type {
        head: oflow_head::of::<oflow_type>(),
        name: oflow_str::of(name),
        dtype: code(t.dtype),
        rank: t.shape.len() as u32,
        dims: integers(&t.shape),
        scale,
        zero_point,
    }
}

/// The attributes of a call, with what their lists and texts point to.
#[derive(Default)]
pub(super) struct GivenAttrs {
    attrs: SmallVec<[oflow_attr; 4]>,
    /// Lists and texts that are made for the call; boxes, so that they stay where they are.
    integers: Vec<Box<[i64]>>,
    reals: Vec<Box<[f64]>>,
    texts: Vec<Box<[oflow_str]>>,
    shown: Vec<Box<str>>,
}

impl GivenAttrs {
    /// Adds plan attributes.
    pub(super) fn plan(&mut self, defs: &[AttrDef], values: &[AttrValue]) {
        for (i, def) in defs.iter().enumerate() {
            // Optional ones at the end may be left out of a call.
            self.add(&def.name, def.kind, values.get(i).unwrap_or(&AttrValue::Absent));
        }
    }

    /// Adds runtime attributes.
    pub(super) fn runtime(&mut self, defs: &[AttrDef], values: &[Scalar]) {
        for (def, value) in defs.iter().zip(values) {
            let mut attr = empty(&def.name);
            scalar(&mut attr, *value);
            self.attrs.push(attr);
        }
    }

    /// Adds a value of any kind; what a list is of is seen by its first member.
    pub(super) fn value(&mut self, name: &str, value: &AttrValue) {
        let kind = match value {
            AttrValue::List(all) => match all.first() {
                Some(AttrValue::Bool(_)) => AttrKind::Bools,
                Some(AttrValue::DType(_)) => AttrKind::DTypes,
                Some(AttrValue::Str(_)) => AttrKind::Strs,
                Some(AttrValue::Scalar(_)) => AttrKind::Scalars,
                Some(AttrValue::NdSbp(_)) => AttrKind::NdSbps,
                _ => AttrKind::IntLists,
            },
            _ => AttrKind::Int,
        };
        self.add(name, kind, value);
    }

    fn add(&mut self, name: &str, kind: AttrKind, value: &AttrValue) {
        let mut attr = empty(name);
        match value {
            AttrValue::Absent => {}
            AttrValue::Int(i) => (attr.kind, attr.integer) = (OFLOW_ATTR_INT, *i),
            AttrValue::Float(x) => (attr.kind, attr.real) = (OFLOW_ATTR_FLOAT, *x),
            AttrValue::Bool(b) => (attr.kind, attr.integer) = (OFLOW_ATTR_BOOL, i64::from(*b)),
            AttrValue::Scalar(s) => scalar(&mut attr, *s),
            AttrValue::Str(s) => (attr.kind, attr.text) = (OFLOW_ATTR_STR, oflow_str::of(s)),
            AttrValue::Ints(v) => {
                (attr.kind, attr.integers, attr.count) = (OFLOW_ATTR_INTS, v.as_ptr(), v.len());
            }
            AttrValue::Floats(v) => (attr.kind, attr.reals, attr.count) = (OFLOW_ATTR_FLOATS, v.as_ptr(), v.len()),
            AttrValue::DType(d) => (attr.kind, attr.integer) = (OFLOW_ATTR_DTYPE, i64::from(code(*d))),
            AttrValue::Device(d) => {
                attr.kind = OFLOW_ATTR_DEVICE;
                attr.text = self.show(d.to_string());
            }
            AttrValue::NdSbp(sbp) => {
                attr.kind = OFLOW_ATTR_SBP;
                attr.text = self.show(sbp.to_string());
            }
            AttrValue::List(all) => self.list(&mut attr, kind, all, value),
            other => {
                attr.kind = OFLOW_ATTR_OTHER;
                attr.text = self.show(other.to_string());
            }
        }
        self.attrs.push(attr);
    }

    /// The declaration says what a list is of: an empty one does not.
    fn list(&mut self, attr: &mut oflow_attr, kind: AttrKind, all: &[AttrValue], value: &AttrValue) {
        let integers = |of: &dyn Fn(&AttrValue) -> Option<i64>| all.iter().map(of).collect::<Option<Box<[i64]>>>();
        attr.count = all.len();
        match kind.member() {
            Some(AttrKind::Bool) => {
                let found = integers(&|v| if let AttrValue::Bool(b) = v { Some(i64::from(*b)) } else { None });
                self.hold(attr, OFLOW_ATTR_BOOLS, found.unwrap_or_default());
            }
            Some(AttrKind::DType) => {
                let found = integers(&|v| if let AttrValue::DType(d) = v { Some(i64::from(code(*d))) } else { None });
                self.hold(attr, OFLOW_ATTR_DTYPES, found.unwrap_or_default());
            }
            Some(AttrKind::Str) => {
                let text = |v: &AttrValue| if let AttrValue::Str(s) = v { Some(oflow_str::of(s)) } else { None };
                let found: Box<[oflow_str]> = all.iter().filter_map(text).collect();
                (attr.kind, attr.texts) = (OFLOW_ATTR_STRS, found.as_ptr());
                self.texts.push(found);
            }
            Some(AttrKind::Scalar) => {
                // Floats as soon as one of them is no integer.
                let number = |v: &AttrValue| v.to_scalar().unwrap_or(Scalar::Int(0));
                let whole = integers(&|v| if let Scalar::Int(i) = number(v) { Some(i) } else { None });
                match whole {
                    Some(found) => self.hold(attr, OFLOW_ATTR_INTS, found),
                    None => {
                        let found: Box<[f64]> = all.iter().map(|v| number(v).to_f64()).collect();
                        (attr.kind, attr.reals) = (OFLOW_ATTR_FLOATS, found.as_ptr());
                        self.reals.push(found);
                    }
                }
            }
            Some(AttrKind::Shape) => self.lists(attr, all),
            None if kind == AttrKind::IntLists => self.lists(attr, all),
            // Lists of placements and layouts have no place in the interface: their text.
            _ => (attr.kind, attr.text, attr.count) = (OFLOW_ATTR_OTHER, self.show(value.to_string()), 0),
        }
    }

    /// Lists of integers, one after the other.
    fn lists(&mut self, attr: &mut oflow_attr, all: &[AttrValue]) {
        let members = |v: &AttrValue| if let AttrValue::Ints(v) = v { v.clone() } else { SmallVec::new() };
        let all: Vec<SmallVec<[i64; 6]>> = all.iter().map(members).collect();
        let lengths: Box<[i64]> = all.iter().map(|v| v.len() as i64).collect();
        attr.lengths = lengths.as_ptr();
        self.integers.push(lengths);
        self.hold(attr, OFLOW_ATTR_INT_LISTS, all.into_iter().flatten().collect());
    }

    fn hold(&mut self, attr: &mut oflow_attr, kind: u32, found: Box<[i64]>) {
        (attr.kind, attr.integers) = (kind, found.as_ptr());
        self.integers.push(found);
    }

    fn show(&mut self, text: String) -> oflow_str {
        let text = text.into_boxed_str();
        let shown = oflow_str::of(&text);
        self.shown.push(text);
        shown
    }

    /// References to the attributes, which C reads as a list of pointers. They borrow: few attributes lie in this struct itself, so it must
    /// stay where it is as long as a library may read them.
    pub(super) fn list_of(&self) -> SmallVec<[&oflow_attr; 4]> {
        self.attrs.iter().collect()
    }
}

fn empty(name: &str) -> oflow_attr {
    oflow_attr {
        head: oflow_head::of::<oflow_attr>(),
        name: oflow_str::of(name),
        kind: OFLOW_ATTR_ABSENT,
        integer: 0,
        real: 0.0,
        text: oflow_str::EMPTY,
        integers: ptr::null(),
        reals: ptr::null(),
        texts: ptr::null(),
        count: 0,
        lengths: ptr::null(),
    }
}

fn scalar(attr: &mut oflow_attr, value: Scalar) {
    match value {
        Scalar::Int(i) => (attr.kind, attr.integer) = (OFLOW_ATTR_INT, i),
        // A complex number has no place in the interface: `infer` refuses it.
        Scalar::Float(x) | Scalar::Complex(x, _) => (attr.kind, attr.real) = (OFLOW_ATTR_FLOAT, x),
        Scalar::Bool(b) => (attr.kind, attr.integer) = (OFLOW_ATTR_BOOL, i64::from(b)),
    }
}

/// The name of the `i`-th tensor that a call is given.
pub(super) fn input_name(op: &OpDef, i: usize) -> &str {
    op.sig.input_def(i).map_or("", |d| d.name.as_str())
}

/// The names of the `n` outputs that a call makes; `given`: whether the i-th tensor of the call is there.
pub(super) fn output_names<'a>(
    op: &'a OpDef,
    attrs: &Attrs,
    given: impl Iterator<Item = bool>,
    n: usize,
) -> SmallVec<[&'a str; 2]> {
    let sig = &op.sig;
    let given: SmallVec<[bool; 8]> = given.collect();
    let made = if sig.outputs_vary() { sig.outputs_made(attrs, &given) } else { None };
    let name = |o: usize| {
        let place = made.as_ref().map_or(Some(o), |m| m.get(o).copied()).unwrap_or(o);
        sig.outputs.get(place).or(sig.outputs.last()).map_or("", |n| n.as_str())
    };
    (0..n).map(name).collect()
}

/// Arguments of some rules beside inputs and attributes.
#[derive(Default)]
pub(super) struct RuleArgs<'a> {
    /// The outputs, where they are known.
    pub(super) outputs: &'a [TensorType],
    /// The devices of the inputs and that of the call, for a device rule.
    pub(super) devices: Option<(&'a [u32], u32)>,
    /// The mesh and the layouts, for a rule over all axes of a mesh.
    pub(super) sbps: Option<(&'a Placement, &'a SbpHints<'a>)>,
}

/// Hands a rule what it reads.
pub(super) fn with_infer<R>(
    ctx: &InferCtx<'_>,
    args: &RuleArgs<'_>,
    user: *mut c_void,
    body: impl FnOnce(&oflow_infer) -> R,
) -> R {
    let mut given = GivenAttrs::default();
    given.plan(&ctx.op.sig.attrs, ctx.attrs);
    let attrs = given.list_of();
    let typed = |(i, t): (usize, &Option<TensorType>)| t.as_ref().map(|t| tensor_type(t, input_name(ctx.op, i)));
    let inputs: SmallVec<[Option<oflow_type>; 4]> = ctx.inputs.iter().enumerate().map(typed).collect();
    let inputs: SmallVec<[*const oflow_type; 4]> =
        inputs.iter().map(|t| t.as_ref().map_or(ptr::null(), ptr::from_ref)).collect();
    let names = output_names(ctx.op, ctx.attrs, ctx.inputs.iter().map(|i| i.is_some()), args.outputs.len());
    let made: SmallVec<[oflow_type; 2]> = args.outputs.iter().zip(names).map(|(t, n)| tensor_type(t, n)).collect();
    let made: SmallVec<[*const oflow_type; 2]> = made.iter().map(ptr::from_ref).collect();
    let shown = |sbp: Option<&NdSbp>| sbp.map_or(String::new(), NdSbp::to_string);
    let asked = shown(args.sbps.and_then(|(_, hints)| hints.output));
    let texts: Vec<String> = args.sbps.map_or(vec![], |(_, h)| h.inputs.iter().map(|s| shown(s.as_ref())).collect());
    let sbps: Vec<oflow_str> = texts.iter().map(|s| oflow_str::of(s)).collect();
    body(&oflow_infer {
        head: oflow_head::of::<oflow_infer>(),
        inputs: inputs.as_ptr(),
        input_count: inputs.len(),
        outputs: made.as_ptr(),
        output_count: made.len(),
        attrs: attrs.as_ptr().cast(),
        attr_count: attrs.len(),
        user,
        devices: args.devices.map_or(ptr::null(), |(inputs, _)| inputs.as_ptr()),
        default_device: args.devices.map_or(OFLOW_NO_DEVICE, |(_, default)| default),
        mesh: args.sbps.map_or(ptr::null(), |(mesh, _)| integers(mesh.dims())),
        mesh_axes: args.sbps.map_or(0, |(mesh, _)| mesh.axes()),
        sbps: args.sbps.map_or(ptr::null(), |_| sbps.as_ptr()),
        asked: oflow_str::of(&asked),
        keep: args.sbps.map_or(0, |(_, hints)| u32::from(hints.keep)),
    })
}

/// Where a callback says why it failed.
pub(super) struct Room<const N: usize = 1024> {
    text: [u8; N],
}

/// Room for the text of an error of oflow, with the overloads that it lists.
pub(super) type LongRoom = Room<8192>;

impl<const N: usize> Room<N> {
    pub(super) fn new() -> Room<N> {
        Room { text: [0; N] }
    }
    pub(super) fn message(&mut self) -> oflow_message {
        oflow_message {
            head: oflow_head::of::<oflow_message>(),
            text: self.text.as_mut_ptr(),
            capacity: self.text.len(),
            len: 0,
        }
    }
    /// Text that the callback has written.
    pub(super) fn said(&self, len: usize) -> String {
        String::from_utf8_lossy(&self.text[..len.min(self.text.len())]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_know_every_dtype_by_its_number() {
        let texts = [include_str!("../../op-abi/src/abi.rs"), include_str!("../../op-abi/include/oflow_value.hpp")];
        for d in DType::BUILTIN {
            let constant = format!("pub const OFLOW_{}: u32 = {};", d.name().to_uppercase(), code(d));
            assert!(texts[0].contains(&constant), "{constant}");
            assert!(texts.iter().all(|t| t.contains(&format!("\"{d}\""))), "{d}");
            assert_eq!(dtype(code(d)), Some(d));
        }
    }
}
