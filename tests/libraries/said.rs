//! What a C++ library can declare beside shapes and functions: half floats, lists of lists, when a kernel applies, devices, signatures
//! over several mesh axes, a struct of parameters.

use super::{build, options, source, vec};
use oflow::functional::Arg;
use oflow::libraries::build_and_load;
use oflow::ops::{AttrValue, KernelPred, find};
use oflow::prelude::*;
use oflow_tests::{cpp::cpp, gpus};

/// The library, if there is a compiler.
fn said() -> bool {
    if cpp() {
        build_and_load(&[source("said.cc")], options()).unwrap_or_else(|e| panic!("{e}"));
    }
    cpp()
}

fn call(name: &str, x: &Tensor, attrs: &[(&str, AttrValue)]) -> Result<Vec<Tensor>> {
    let attrs: Vec<(&str, Arg)> = attrs.iter().map(|(n, v)| (*n, Arg::Attr(v.clone()))).collect();
    oflow::call(&format!("said.{name}"), &[x.into()], &attrs)
}

/// What a C++ kernel makes of floats as (f16, bf16), by their bits.
fn halves_of(x: &[f32]) -> (Vec<u16>, Vec<u16>) {
    let made = call("halves", &vec(x), &[]).unwrap();
    let (h, b) = (made[0].to_vec::<half::f16>().unwrap(), made[1].to_vec::<half::bf16>().unwrap());
    (h.iter().map(|h| h.to_bits()).collect(), b.iter().map(|b| b.to_bits()).collect())
}

#[test]
fn half_floats_convert_to_float_and_back_as_the_crate_half_does() {
    if !said() {
        return;
    }
    let all: Vec<u16> = (0..=u16::MAX).collect();
    let h: Vec<half::f16> = all.iter().map(|i| half::f16::from_bits(*i)).collect();
    let b: Vec<half::bf16> = all.iter().map(|i| half::bf16::from_bits(*i)).collect();
    let (hs, bs): (Vec<f32>, Vec<f32>) =
        (h.iter().map(|h| h.to_f32()).collect(), b.iter().map(|b| b.to_f32()).collect());
    let h = from_vec(h, [all.len()], Device::Cpu).unwrap();
    let b = from_vec(b, [all.len()], Device::Cpu).unwrap();
    let floats = |x: &Tensor| call("float_of", x, &[]).unwrap()[0].to_vec::<f32>().unwrap();
    // To float: the same value, NaN for NaN with its sign.
    for (of, found, wanted) in [("f16", floats(&h), &hs), ("bf16", floats(&b), &bs)] {
        for (i, (found, wanted)) in found.iter().zip(wanted).enumerate() {
            let same = found.to_bits() == wanted.to_bits() || (found.is_nan() && wanted.is_nan());
            assert!(same && found.is_sign_negative() == wanted.is_sign_negative(), "{of} {i:#06x}: {found} {wanted}");
        }
    }
    // And back: each its own bits.
    let (back_h, _) = halves_of(&hs);
    let (_, back_b) = halves_of(&bs);
    for i in all {
        let (h, b) = (half::f16::from_bits(i), half::bf16::from_bits(i));
        let (found_h, found_b) = (back_h[usize::from(i)], back_b[usize::from(i)]);
        assert!(if h.is_nan() { half::f16::from_bits(found_h).is_nan() } else { found_h == i }, "f16 {i:#06x}");
        assert!(if b.is_nan() { half::bf16::from_bits(found_b).is_nan() } else { found_b == i }, "bf16 {i:#06x}");
    }
    // Rounding: each half way between two neighbours, a little above and below; and a walk over all floats.
    let mut x: Vec<f32> = vec![];
    for i in 0..0x7fff_u16 {
        let beside = |bits: u32| [bits - 1, bits, bits + 1].map(f32::from_bits);
        let (h, next) = (half::f16::from_bits(i).to_f32(), half::f16::from_bits(i + 1).to_f32());
        if next.is_finite() {
            x.extend(beside(((h + next) / 2.0).to_bits()).into_iter().flat_map(|x| [x, -x]));
        }
        x.extend(beside((u32::from(i) << 16) + 0x8000).into_iter().flat_map(|x| [x, -x]));
    }
    x.extend((0..1 << 17).map(|i: u32| f32::from_bits(i.wrapping_mul(32_771))));
    x.extend([0.0, -0.0, f32::INFINITY, -f32::INFINITY, f32::NAN, 65504.0, 65519.99, 65520.0, 65536.0, 1e-8, f32::MAX]);
    let (found_h, found_b) = halves_of(&x);
    for (i, x) in x.iter().enumerate() {
        let (h, b) = (half::f16::from_f32(*x), half::bf16::from_f32(*x));
        let nan = x.is_nan();
        let (fh, fb) = (half::f16::from_bits(found_h[i]), half::bf16::from_bits(found_b[i]));
        assert!(if nan { fh.is_nan() } else { fh.to_bits() == h.to_bits() }, "f16 of {x:e}: {fh} {h}");
        assert!(if nan { fb.is_nan() } else { fb.to_bits() == b.to_bits() }, "bf16 of {x:e}: {fb} {b}");
        // The crate of libraries in Rust rounds alike.
        let rust = oflow_op::F16::from_f32(*x);
        assert_eq!(rust.0, found_h[i], "{x:e}");
        assert!(nan || rust.to_f32() == h.to_f32(), "{x:e}");
    }
}

#[test]
fn lists_of_lists_have_their_type() {
    if !said() {
        return;
    }
    let list = |all: &[&[i64]]| AttrValue::List(all.iter().map(|l| AttrValue::Ints((*l).into())).collect());
    let of = |attrs: &[(&str, AttrValue)]| call("nested", &vec(&[0.0]), attrs).unwrap()[0].to_vec::<f32>().unwrap();
    // One number for each list, and the shape rule reads the first shape.
    let given = [("lists", list(&[&[], &[7], &[1, 2], &[]])), ("shapes", list(&[&[6], &[], &[2, 3]]))];
    assert_eq!(of(&given)[..5], [3.0, 4.0, 623.0, 23.0, 1.0]);
    assert_eq!(of(&[("lists", list(&[]))]), [0.0, 0.0, 0.0, 0.0, 1.0]);
    let e = call("nested", &vec(&[0.0]), &[("lists", 3.0.into())]).unwrap_err().to_string();
    assert!(e.contains("'lists'"), "{e}");
}

#[test]
fn a_kernel_says_when_it_applies() {
    if !said() {
        return;
    }
    let of = |n: usize, attrs: &[(&str, AttrValue)]| {
        call("picks", &vec(&vec![0.0; n]), attrs).unwrap()[0].to_f64_vec().unwrap()[0]
    };
    assert_eq!(of(2, &[]), 1.0);
    assert_eq!(of(2, &[("dtype", DType::F64.into())]), 2.0);
    assert_eq!(of(2, &[("dtype", DType::F64.into()), ("exact", true.into())]), 1.0);
    assert_eq!([1i64, 2, 4, 5].map(|k| of(2, &[("k", k.into())])), [1.0, 3.0, 3.0, 1.0]);
    assert_eq!(["a", "b", "c d"].map(|m| of(2, &[("mode", m.into())])), [1.0, 3.0, 3.0]);
    assert_eq!(of(3, &[]), 4.0);
    // Code that fails is the error of the call.
    let e = call("picks", &vec(&[0.0; 2]), &[("k", 13i64.into())]).unwrap_err().to_string();
    assert!(e.contains("the condition of a kernel of op said.picks@1") && e.contains("13 is not a size"), "{e}");
    let kernels = oflow::backend::kernels_of(find("said.picks").unwrap());
    let odd = kernels.iter().find(|k| k.name == "odd_rows").unwrap();
    assert!(format!("{:?}", odd.pred).contains("y has an odd number of rows"), "{odd:?}");
}

#[test]
fn a_condition_that_cannot_be_read_is_refused_when_the_library_is_loaded() {
    let op = oflow::ops::OpDef::new(
        "f(x: float, xs...: float; k: int = 1, flag: bool = false, mode: str = \"up\", l: ints = [], r: runtime float = 1.0) -> y",
    );
    let op = op.unwrap();
    for (text, says) in [
        ("", "a name is missing"),
        ("flag and", "a name is missing"),
        ("(flag", "a ')' is missing"),
        ("flag)", "')' is too much"),
        ("z: f32", "'z' is neither an input nor an output of f"),
        ("z", "'z' is neither an input, an output nor an attribute of f"),
        ("xs: f32", "stands for several tensors"),
        ("x: f33", "'f33' is not an element type"),
        ("x", "'x' is a tensor"),
        ("r", "is a runtime attribute"),
        ("l == 1", "is an attribute of type ints"),
        ("k", "a comparison of 'k' is missing"),
        ("k ~ 1", "'~' has no meaning here"),
        ("k < -9223372036854775808", "no integer is <"),
        ("mode in up", "behind 'in' stands a list"),
        ("mode == \"up", "a text has no end"),
        (&("not ".repeat(100) + "flag"), "nested deeper than 64"),
        (&"flag or ".repeat(1000), "at most 4096 are read"),
    ] {
        let e = KernelPred::parse(text, &op).unwrap_err().to_string();
        assert!(e.contains(says), "{text}: {e}");
    }
    for text in
        ["x: f32|f64 and not flag", "x.size >= 1024 or x.size == 3", "k != 2 and k in (1, -3)", "mode != \"a ü\""]
    {
        KernelPred::parse(text, &op).unwrap_or_else(|e| panic!("{text}: {e}"));
    }
    for (infer, extra, valid, says) in [
        ("", "[S(0)] -> S(0)", "", "'S(0)' has no brackets"),
        ("", "[S(0)], [B] -> [S(0)]", "", "it is of 2 inputs and 1 outputs, op has 1 and 1"),
        ("", "[S(0)]", "", "it has no '->'"),
        ("[S(0), B] -> [S(0)]", "", "", "its tensors have different numbers of axes"),
        ("[S(0)] -> [Q]", "", "", "is not a signature over several mesh axes"),
        ("", "", "not * -> *", "no tensor says an SBP"),
        ("", "", "[S(0), *] -> S(0)", "'S(0)' is neither an nd-SBP nor *"),
    ] {
        let op = oflow::ops::OpDef::new("op(x: f32) -> y").unwrap();
        let [infer, extra, valid] =
            [infer, extra, valid].map(|row| if row.is_empty() { vec![] } else { vec![row.to_string()] });
        let e = op.nd_rows(&infer, &extra, &valid).err().unwrap().to_string();
        assert!(e.contains(says), "{says}: {e}");
    }
    if !cpp() {
        return;
    }
    for (said, says) in [
        (".cpu(k).when(\"x: f33\")", "'f33' is not an element type"),
        (".cpu(k).nd_extra({\"[S(0)], [B] -> [S(0)]\"})", "it is of 2 inputs and 1 outputs, op has 1 and 1"),
        (".when(\"x: f32\")", "add a kernel first"),
        (
            ".cpu(k).nd_infer({\"[B] -> [B]\"}).nd_infer_rule([](const oflow::Infer &) { return std::vector<std::string>(); })",
            "it has two nd_infer rules, a text and a function",
        ),
        (
            ".cpu(k).nd_extra({\"[B] -> [B]\"}).nd_infer_rule([](const oflow::Infer &) { return std::vector<std::string>(); })",
            "it has nd_infer and nd_extra",
        ),
    ] {
        let file = super::cache().join("refused.cc");
        let text = format!(
            "#include \"oflow_op.hpp\"\nstatic void k(const oflow::Call &) {{}}\n\
             OFLOW_LIBRARY(refused) {{ library.op(\"op(x: f32) -> y\").gradient(\"none\"){said}; }}\n"
        );
        std::fs::write(&file, text).unwrap();
        let e = build_and_load(&[&file], options()).unwrap_err().to_string();
        assert!(e.contains(says), "{said}: {e}");
    }
}

#[test]
fn a_device_rule_in_cpp() {
    if !said() {
        return;
    }
    let x = vec(&[1.0, 2.0]);
    assert_eq!(call("here", &x, &[]).unwrap()[0].to_vec::<f32>().unwrap(), [1.0, 2.0]);
    let e = call("here", &vec(&[0.0; 13]), &[]).unwrap_err().to_string();
    assert!(e.contains("the device rule of op said.here@1") && e.contains("no device takes 13 rows"), "{e}");
    let e = call("many", &x, &[]).unwrap_err().to_string();
    assert!(e.contains("it gives devices for 2 outputs, the call makes 1"), "{e}");
    if gpus::cuda() {
        // From the CPU to the GPU by one op, and back by another.
        let moved = oflow::run_ranks(1, |_| {
            let away = call("away", &vec(&[1.0, 2.0]), &[])?.remove(0);
            let back = call("here", &away, &[])?.remove(0);
            Ok((away.device(), back.device(), back.to_vec::<f32>()?))
        });
        assert_eq!(moved.unwrap()[0], (Device::Cuda, Device::Cpu, vec![1.0, 2.0]));
    }
}

#[test]
fn signatures_over_several_axes_in_cpp() {
    if !cpp() {
        return;
    }
    let library = build(&[source("said.cc")]);
    let found = oflow::run_ranks(4, |_| {
        let mesh = Placement::new(Device::Cpu, &[0, 1, 2, 3], &[2, 2])?;
        let x = from_vec((0..24).map(|i| i as f32).collect(), [4, 6], Device::Cpu)?;
        let of = |name: &str, sbp: NdSbp| -> Result<String> {
            let y = call(name, &x.to_global((&mesh, sbp![B, B]))?.to_global((&mesh, sbp))?, &[])?.remove(0);
            assert_eq!(y.to_vec::<f32>()?, x.to_vec::<f32>()?, "{name}");
            Ok(y.sbp()?.to_string())
        };
        Ok([
            of("tiles", sbp![S(0), S(1)])?,
            of("listed", sbp![S(1), S(0)])?,
            of("listed", sbp![S(0), S(0)])?,
            of("apart", sbp![S(1), S(0)])?,
            of("apart", sbp![S(0), S(1)])?,
        ])
    });
    for [tiles, listed, whole, swapped, apart] in found.unwrap() {
        assert_eq!([&tiles[..], &listed, &swapped], ["[S(0), S(1)]", "[S(1), S(0)]", "[S(1), S(0)]"]);
        assert!(["[B, B]", "[S(1), S(0)]"].contains(&whole.as_str()), "{whole}");
        assert_ne!(apart, "[S(0), S(1)]");
    }
    let tested = ["tiles", "listed", "apart", "takes", "lists", "leaky"];
    let ops = library.ops().iter().filter(|op| tested.contains(&op.sig.name.as_str()));
    ops.for_each(|op| println!("{}", oflow::testing::conformance(op).unwrap_or_else(|e| panic!("{e}"))));
}

#[test]
fn rules_in_cpp_and_rust_see_the_layouts_that_a_call_has_and_is_asked_for() {
    if said() {
        oflow_tests::hinted::check("said");
    }
    let library = build(&[source("hinted.rs")]);
    oflow_tests::hinted::check("hinted_rs");
    super::conforms(&library);
}

#[test]
fn one_struct_declares_the_parameters_of_an_op_and_of_its_gradient_op() {
    if !said() {
        return;
    }
    let text = "times: int = 1, mode: str = \"plain\", skip: ints = [], most?: float, flip: bool = false; alpha: runtime float = 0.01";
    let shown = find("said.leaky").unwrap().sig.to_string();
    for part in text.split(['=', ';', ',']).map(str::trim) {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let x = from_vec(vec![-2.0, 4.0], [2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let given = [("alpha", 0.5.into()), ("times", 3i64.into()), ("flip", true.into()), ("most", 3.5.into())];
    let y = call("leaky", &x, &given).unwrap().remove(0);
    assert_eq!(y.to_vec::<f64>().unwrap(), [3.0, 3.5]);
    y.sum(()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [-1.5, 0.0]);
    // A rule reads the plan attributes; runtime attributes have their defaults there.
    let e = call("leaky", &x, &[("alpha", 0.5.into()), ("mode", "bent".into())]).unwrap_err().to_string();
    assert!(e.contains("the mode 'bent' is not plain"), "{e}");
}

/// What the fuzzer starts from says each part of an op once, these too.
#[test]
fn the_libraries_that_the_fuzzer_starts_from_are_taken() {
    for bytes in oflow::libraries::fuzz::recorded() {
        let made = oflow::libraries::fuzz::load(&bytes).unwrap_or_else(|e| panic!("{e}"));
        oflow::libraries::unload(&made.library).unwrap();
    }
}
