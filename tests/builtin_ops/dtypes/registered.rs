//! Dtypes that a program registers, as another crate would (public API only): a quantised integer with a scale and a zero point
//! is moved through local and global tensors, computed with by ops of the program, and refused by everything else.

use oflow::comm::ReduceOp;
use oflow::functional::{call, from_bytes};
use oflow::kernels::Builtin;
use oflow::ops::{DTypeRule, Grad, OpDef, TensorType, register};
use oflow::prelude::*;
use oflow::sbp::Signature;
use oflow::{ErrorKind, Registered, box_many, from_boxes};
use oflow_tests::again::again;
use std::sync::Once;

/// Integers of 8 bits that stand for `(stored - zero) * scale`.
fn qint8(scale: f64, zero: i64) -> DType {
    let number = |d: DType, stored: Scalar| {
        let of = |name: &str| d.parameter(name).map_or(f64::NAN, Scalar::to_f64);
        (stored.to_f64() - of("zero")) * of("scale")
    };
    let declared = Registered::new("qint8", Builtin::I8).parameter("scale", scale).parameter("zero", zero);
    DType::register(declared.to_f64(number)).unwrap()
}

/// Elements of 8 bytes of which nothing is known.
fn opaque() -> DType {
    DType::register(Registered::new("opaque64", Builtin::I64)).unwrap()
}

/// Split along any dim, for an op on one tensor that keeps its shape.
fn elementwise(dims: usize) -> oflow::Result<Vec<Signature>> {
    (0..dims).map(|d| format!("S{d} -> S{d}").parse()).collect()
}

/// `quantize(x; dtype)` and `dequantize(x)`, with kernels that know the family.
fn register_ops() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let quantize = OpDef::new("quantize(x: float; dtype: dtype) -> y").unwrap();
        register(
            quantize
                .domain("test")
                .dtype(DTypeRule::Attr)
                .get_sbp(|c| elementwise(c.shape(0)?.len()))
                .cpu(|cx| {
                    let dtype = cx.output(0).dtype();
                    let of = |name: &str| dtype.parameter(name).map(|s| s.to_f64() as f32).unwrap();
                    let (scale, zero) = (of("scale"), of("zero"));
                    let to = cx.output(0).stored();
                    // SAFETY: the output is this call's own contiguous memory.
                    let to = unsafe { to.as_mut_slice::<i8>()? };
                    for (y, x) in to.iter_mut().zip(cx.input(0)?.as_slice::<f32>()?) {
                        *y = (x / scale).round() as i8 + zero as i8;
                    }
                    Ok(())
                })
                .grad(Grad::None),
        )
        .unwrap();
        let dequantize = OpDef::new("dequantize(x: any) -> y").unwrap();
        register(
            dequantize
                .domain("test")
                .dtype(DTypeRule::Fixed(vec![DType::F32]))
                .check(|c| match c.input(0)?.dtype {
                    d if d.family() == "qint8" => Ok(()),
                    d => Err(oflow::Error::dtype(format!("{d} is not quantised"))),
                })
                .get_sbp(|c| elementwise(c.shape(0)?.len()))
                .cpu(|cx| {
                    let x = cx.input(0)?;
                    let (dtype, stored) = (x.dtype(), x.stored());
                    // SAFETY: the output is this call's own contiguous memory.
                    let to = unsafe { cx.output(0).as_mut_slice::<f32>()? };
                    for (y, x) in to.iter_mut().zip(stored.as_slice::<i8>()?) {
                        *y = dtype.number((*x).into()).map_or(f32::NAN, |n| n.to_f64() as f32);
                    }
                    Ok(())
                })
                .grad(Grad::None),
        )
        .unwrap();
    });
}

/// Bytes that all differ, for tensors up to 256 of them.
fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 37 + 11) as u8).collect()
}

#[test]
fn local_tensors_are_moved_bit_by_bit() {
    for dtype in [qint8(0.5, 3), opaque()] {
        let (size, data) = (dtype.size(), bytes(24 * dtype.size()));
        let x = from_bytes(&data, [4, 6], Device::Cpu.dtype(dtype)).unwrap();
        let element = |i: usize| data[i * size..(i + 1) * size].to_vec();
        let elements = |at: &[usize]| at.iter().flat_map(|i| element(*i)).collect::<Vec<u8>>();
        let check = |t: Tensor, at: &[usize]| {
            assert_eq!(t.dtype(), dtype);
            assert_eq!(t.to_bytes().unwrap(), elements(at), "{t:?}");
        };
        let turned: Vec<usize> = (0..24).map(|i| i % 4 * 6 + i / 4).collect();
        check(x.reshape([2, 12]).unwrap(), &(0..24).collect::<Vec<_>>());
        check(x.t().unwrap(), &turned);
        check(x.t().unwrap().reshape([24]).unwrap(), &turned);
        check(x.slice(1, 1, 6, 2).unwrap(), &[1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23]);
        check(x.narrow(0, 1, 1).unwrap().expand([2, 6]).unwrap(), &[6, 7, 8, 9, 10, 11, 6, 7, 8, 9, 10, 11]);
        check(
            cat(&[&x.select(0, 3).unwrap(), &x.select(0, 0).unwrap()], 0).unwrap(),
            &[18, 19, 20, 21, 22, 23, 0, 1, 2, 3, 4, 5],
        );
        check(stack(&[&x.select(1, 0).unwrap(), &x.select(1, 5).unwrap()], 1).unwrap(), &[0, 5, 6, 11, 12, 17, 18, 23]);
        check(x.to_device(Device::Async).unwrap().t().unwrap(), &turned);
        let y = from_bytes(&vec![0; 24 * size], [4, 6], Device::Cpu.dtype(dtype)).unwrap();
        y.copy_(&x).unwrap();
        check(y, &(0..24).collect::<Vec<_>>());
    }
}

#[test]
fn values_are_read_and_printed_as_the_declaration_says() {
    let x = from_bytes(&[3, 5, 1, 253], [2, 2], Device::Cpu.dtype(qint8(0.5, 3))).unwrap();
    assert_eq!(x.to_f64_vec().unwrap(), [0.0, 1.0, -1.0, -3.0]);
    assert_eq!(x.select(0, 0).unwrap().select(0, 1).unwrap().item().unwrap(), 1.0);
    let text = x.to_string();
    assert!(text.contains("[ 0.,  1.]") && text.contains("qint8(scale=0.5, zero=3)"), "{text}");
    // Without numbers the stored ones are shown.
    let raw = from_bytes(&7i64.to_ne_bytes(), [1], Device::Cpu.dtype(opaque())).unwrap();
    assert!(raw.to_string().contains("[7]"), "{raw}");
    let e = raw.to_f64_vec().unwrap_err();
    assert!(e.to_string().contains("opaque64 was registered without numbers"), "{e}");
    let e = raw.to_vec::<i64>().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::DType);
    let e = from_bytes(&[1, 2, 3], [2], Device::Cpu.dtype(qint8(0.5, 3))).unwrap_err();
    assert!(e.to_string().contains("3 bytes do not fill qint8(scale=0.5, zero=3)[2] (2)"), "{e}");
}

/// Calls `f` on every rank of worlds with meshes [1], [2] and [2, 2].
fn on_meshes(f: impl Fn(&Placement) -> Result<()> + Sync) {
    for dims in [&[1][..], &[2], &[2, 2]] {
        let world = dims.iter().product();
        let ranks: Vec<usize> = (0..world).collect();
        oflow::run_ranks(world, |_| f(&Placement::new(Device::Cpu, &ranks, dims)?)).unwrap();
    }
}

/// All layouts of split and broadcast on a mesh, for tensors of two dims.
fn layouts(mesh: &Placement) -> Vec<NdSbp> {
    let one = [Sbp::Split(0), Sbp::Split(1), Sbp::Broadcast];
    match mesh.axes() {
        1 => one.iter().map(|s| NdSbp::new(&[*s])).collect(),
        _ => one.iter().flat_map(|a| one.iter().map(|b| NdSbp::new(&[*a, *b]))).collect(),
    }
}

#[test]
fn global_tensors_are_boxed_between_all_split_and_broadcast_layouts() {
    on_meshes(|mesh| {
        for dtype in [qint8(0.5, 3), opaque()] {
            // The second shape splits unevenly and leaves a rank without elements.
            for shape in [[4, 6], [3, 1]] {
                let data = bytes(shape[0] * shape[1] * dtype.size());
                for from in layouts(mesh) {
                    let x = from_bytes(&data, shape, (mesh, from).dtype(dtype))?;
                    assert_eq!(x.to_bytes()?, data, "{x:?}");
                    for to in layouts(mesh) {
                        let y = x.to_global(&to)?;
                        assert_eq!((y.sbp()?, y.dtype(), y.to_bytes()?), (&to, dtype, data.clone()), "{x:?}");
                    }
                    let turned: Vec<u8> = x.t()?.reshape([shape[0] * shape[1]])?.to_bytes()?;
                    let local = from_bytes(&data, shape, Device::Cpu.dtype(dtype))?.t()?;
                    assert_eq!(turned, local.to_bytes()?, "{x:?}");
                    let part = x.narrow(0, 1, 2)?.to_bytes()?;
                    assert_eq!(part, data[shape[1] * dtype.size()..][..2 * shape[1] * dtype.size()], "{x:?}");
                    assert_eq!(cat(&[&x, &x], 0)?.to_bytes()?, [&data[..], &data[..]].concat(), "{x:?}");
                }
            }
        }
        Ok(())
    });
}

#[test]
fn ops_of_the_program_quantise_where_the_shards_lie() {
    register_ops();
    on_meshes(|mesh| {
        let q = qint8(0.25, -5);
        let x: Vec<f32> = (0..24).map(|i| i as f32 - 12.3).collect();
        let want: Vec<f64> = x.iter().map(|x| f64::from((x / 0.25).round() * 0.25)).collect();
        for sbp in layouts(mesh) {
            let global = from_vec(x.clone(), [4, 6], (mesh, sbp.clone()))?;
            oflow::take_comm_trace();
            let y = call("test.quantize", &[(&global).into()], &[("dtype", q.into())])?.remove(0);
            let z = call("test.dequantize", &[(&y).into()], &[])?.remove(0);
            assert!(oflow::take_comm_trace().is_empty(), "boxed");
            assert_eq!((y.dtype(), y.sbp()?, z.dtype(), z.sbp()?), (q, &sbp, DType::F32, &sbp));
            assert_eq!(y.to_f64_vec()?, want);
            assert_eq!(z.to_f64_vec()?, want);
            // Arithmetic is possible where the program has made numbers.
            assert_eq!(z.add(&z)?.to_f64_vec()?, want.iter().map(|x| x * 2.0).collect::<Vec<_>>());
        }
        let e = call("test.dequantize", &[(&from_bytes(&[0; 8], [1], Device::Cpu.dtype(opaque()))?).into()], &[]);
        assert!(e.unwrap_err().to_string().contains("opaque64 is not quantised"));
        Ok(())
    });
}

type Refused = (&'static str, fn(&Tensor, &Tensor) -> Result<Tensor>, &'static str);

/// What is refused: `x` has a registered dtype, `f` is f32 of the same layout.
const REFUSED: [Refused; 19] = [
    ("add", |x, _| x.add(x), "input 'a' must be real or complex, not qint8(scale=0.5, zero=3)"),
    ("add f32", |x, f| f.add(x), "input 'b' must be real"),
    ("add number", |x, _| x.add(1.0), "must be real"),
    ("relu", |x, _| x.relu(), "input 'x' must be real"),
    ("exp", |x, _| x.exp(), "must be"),
    ("equal", |x, _| x.eq(x), "must be real"),
    ("sum", |x, _| x.sum(()), "input 'x' must be"),
    ("max", |x, _| x.cumsum(0), "input 'x' must be"),
    ("matmul", |x, f| x.matmul(f), "must be num, not qint8(scale=0.5, zero=3)"),
    ("softmax", |x, _| x.softmax(0), "must be float, not qint8(scale=0.5, zero=3)"),
    ("cast from", |x, _| x.cast(DType::F32), "input 'x' must be built-in"),
    ("cast to", |x, f| f.cast(x.dtype()), "the result cannot be qint8(scale=0.5, zero=3)"),
    ("cat", |x, f| cat(&[x, f], 0), "qint8(scale=0.5, zero=3) and f32 do not promote to a common dtype"),
    ("copy_", |x, f| f.copy_(x).cloned(), "f32 and qint8(scale=0.5, zero=3) do not promote"),
    ("gradient", |x, _| x.detach().requires_grad_(true), "only float and complex tensors can"),
    ("arange", |x, _| arange(3, Device::Cpu.dtype(x.dtype())), "the result cannot be qint8(scale=0.5, zero=3)"),
    (
        "randint",
        |x, _| randint(0, 9, [2], Device::Cpu.dtype(x.dtype())),
        "the result cannot be qint8(scale=0.5, zero=3)",
    ),
    (
        "bernoulli",
        |x, _| bernoulli([2], 0.5, Device::Cpu.dtype(x.dtype())),
        "the result cannot be qint8(scale=0.5, zero=3)",
    ),
    ("zeros", |x, _| zeros([2], Device::Cpu.dtype(x.dtype())), "the result cannot be qint8(scale=0.5, zero=3)"),
];

#[test]
fn a_copy_has_the_elements_and_memory_of_its_own() {
    let bytes: Vec<u8> = (0..24).map(|i| i * 11).collect();
    for dtype in [qint8(0.5, 3), opaque()] {
        let n = 24 / dtype.size();
        let x = from_bytes(&bytes, [n / 3, 3], Device::Cpu.dtype(dtype)).unwrap();
        let y = x.copy().unwrap();
        assert_eq!((y.dtype(), y.to_bytes().unwrap()), (dtype, bytes.clone()));
        let turned = x.transpose(0, 1).unwrap();
        assert_eq!(turned.copy().unwrap().to_bytes().unwrap(), turned.to_bytes().unwrap());
        y.copy_(&from_bytes(&[7; 24], [n / 3, 3], Device::Cpu.dtype(dtype)).unwrap()).unwrap();
        assert_eq!((x.to_bytes().unwrap(), y.to_bytes().unwrap()), (bytes.clone(), vec![7; 24]));
        oflow::run_ranks(2, |_| {
            let mesh = Placement::all(Device::Cpu)?;
            let whole = from_bytes(&bytes, [n / 3, 3], Device::Cpu.dtype(dtype))?;
            let split = distribute(&whole, (&mesh, sbp![S(1)]))?.copy()?;
            assert_eq!((split.sbp()?.clone(), split.to_bytes()?), (sbp![S(1)], bytes.clone()));
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn i18_what_computes_is_refused_alike_on_all_ranks_before_a_byte_moves() {
    let (q, other) = (qint8(0.5, 3), qint8(0.25, 3));
    let texts = |x: &Tensor, f: &Tensor| -> Result<Vec<String>> {
        let mut texts = vec![];
        for (name, run, why) in REFUSED {
            let e = run(x, f).err().unwrap_or_else(|| panic!("{name} is not refused"));
            assert!(e.to_string().contains(why), "{name}: {e}");
            texts.push(e.to_string());
        }
        Ok(texts)
    };
    let local =
        |shape: [usize; 2], d: DType| from_bytes(&vec![0; shape[0] * shape[1] * d.size()], shape, Device::Cpu.dtype(d));
    texts(&local([4, 4], q).unwrap(), &local([4, 4], DType::F32).unwrap()).unwrap();
    // Two dtypes of a family are two dtypes.
    let e = cat(&[&local([1, 4], q).unwrap(), &local([1, 4], other).unwrap()], 0).unwrap_err();
    let both = "qint8(scale=0.5, zero=3) and qint8(scale=0.25, zero=3) do not promote";
    assert!(e.kind() == ErrorKind::DType && e.to_string().contains(both), "{e}");
    let ranks = oflow::run_ranks(4, |_| {
        let mesh = Placement::all(Device::Cpu)?.mesh(&[("dp", 2), ("tp", 2)])?;
        let x = from_bytes(&bytes(16), [4, 4], (&mesh, sbp![S(0), S(1)]).dtype(q))?;
        let f = zeros([4, 4], (&mesh, sbp![S(0), S(1)]))?;
        oflow::take_comm_trace();
        let mut all = texts(&x, &f)?;
        for op in [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min] {
            let partial = NdSbp::new(&[Sbp::Broadcast, Sbp::Partial(op)]);
            let e = x.to_global(&partial).unwrap_err();
            assert!(e.to_string().contains(&format!("cannot be P({op}): a registered dtype has no {op}")), "{e}");
            all.push(e.to_string());
            let e = from_bytes(&bytes(16), [4, 4], (&mesh, &partial).dtype(q)).unwrap_err();
            assert!(e.to_string().contains("a registered dtype has no"), "{e}");
            all.push(e.to_string());
        }
        assert!(oflow::take_comm_trace().is_empty(), "something was boxed");
        Ok(all)
    });
    let ranks = ranks.unwrap();
    assert!(ranks.iter().all(|r| *r == ranks[0]), "{ranks:?}");
}

#[test]
fn a_slice_of_a_split_dim_is_boxed_and_never_partial() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = from_bytes(&bytes(8), [8], (&mesh, sbp![S(0)]).dtype(qint8(0.5, 3)))?;
        let y = x.narrow(0, 3, 2)?;
        assert!(!y.sbp()?.to_string().contains('P'), "{y:?}");
        assert_eq!(y.to_bytes()?, &bytes(8)[3..5]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn files_and_checkpoints_keep_the_dtype() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let q = qint8(0.125, 7);
    let x = from_bytes(&bytes(24), [4, 6], Device::Cpu.dtype(q)).unwrap();
    let f = ones([3], Device::Cpu).unwrap();
    oflow::save_file(&path, &[("x", &x), ("f", &f)]).unwrap();
    for (name, t) in oflow::load_file(&path, Device::Cpu).unwrap() {
        let want = if name == "x" { &x } else { &f };
        assert_eq!((t.dtype(), t.to_bytes().unwrap()), (want.dtype(), want.to_bytes().unwrap()));
    }
    // Other readers find the stored integers.
    let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
    assert!(text.contains(r#""oflow.dtype:x":"qint8(scale=0.125, zero=7)""#), "{text}");
    assert!(text.contains(r#""x":{"dtype":"I8","shape":[4,6]"#), "{text}");
    // Sharded over two ranks, and loaded in another layout.
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let whole = from_bytes(&bytes(24), [4, 6], (&mesh, sbp![S(1)]).dtype(q))?;
        let dir = folder.path().join("sharded.safetensors");
        oflow::save_file(&dir, &[("x", &whole)])?;
        let back = oflow::load_file(&dir, (&mesh, sbp![S(0)]))?.remove(0).1;
        assert_eq!((back.dtype(), back.to_bytes()?), (q, bytes(24)));
        Ok(())
    })
    .unwrap();
    // A family that this process has not registered.
    let mut stranger = std::fs::read(&path).unwrap();
    let at = stranger.windows(6).position(|w| w == b"qint8(").unwrap();
    stranger[at + 4] = b'9';
    std::fs::write(&path, stranger).unwrap();
    let e = oflow::load_file(&path, Device::Cpu).unwrap_err();
    assert!(e.to_string().contains("qint9(scale=0.125, zero=7)"), "{e}");
}

#[test]
fn types_are_known_by_their_text() {
    let t = TensorType::new(&[2, 3], qint8(0.5, 3));
    assert_eq!((t.to_string(), t.bytes()), ("qint8(scale=0.5, zero=3)[2, 3]".to_string(), 6));
    assert_eq!("qint8(scale=0.5, zero=3)".parse::<DType>().unwrap(), qint8(0.5, 3));
}

/// The body of the two processes below; on its own it does nothing.
#[test]
fn rank_process() {
    let Ok(mode) = std::env::var("OFLOW_TEST_DTYPES") else { return };
    // Rank 1 has registered other dtypes before, and these two the other way round.
    let (a, b) = match mode.as_str() {
        "1" => {
            let _others: Vec<DType> = (0..5).map(|i| qint8(f64::from(i) + 10.0, 0)).collect();
            let b = opaque();
            (qint8(0.5, 3), b)
        }
        _ => (qint8(0.5, 3), opaque()),
    };
    let run = || -> Result<()> {
        let world = oflow::init()?;
        let mesh = Placement::all(Device::Cpu)?;
        let mine = from_bytes(&bytes(4)[2 * world.rank()..][..2], [2], Device::Cpu.dtype(a))?;
        let x = mine.to_global((&mesh, sbp![S(0)]))?;
        assert_eq!((x.dtype(), x.to_bytes()?), (a, bytes(4)));
        let mine = from_bytes(&bytes(16)[8 * world.rank()..][..8], [1], Device::Cpu.dtype(b))?;
        let y = from_boxes(&[(&[world.rank()], &mine)], [2], (&mesh, sbp![B]))?;
        assert_eq!((y.dtype(), y.to_bytes()?), (b, bytes(16)));
        // Exchanges of several dtypes in one batch: their order is that of the texts.
        let back = Placement::new(Device::Cpu, &[1, 0], &[2])?;
        let moved = box_many(&[(&y, (&back, sbp![S(0)])), (&x, (&back, sbp![S(0)]))])?;
        assert_eq!((moved[0].to_bytes()?, moved[1].to_bytes()?), (bytes(16), bytes(4)));
        let e = x.add(&x).unwrap_err();
        assert!(e.to_string().contains("not qint8(scale=0.5, zero=3)"), "{e}");
        println!("rank {} agrees", world.rank());
        Ok(())
    };
    if let Err(e) = run() {
        println!("failed: {e}");
        std::process::exit(3);
    }
}

#[test]
fn processes_that_register_in_different_orders_agree() {
    let folder = tempfile::Builder::new().prefix("oflow-d").tempdir_in("/tmp").unwrap();
    let children: Vec<_> = (0..2)
        .map(|rank| {
            let mut child = again("dtypes::registered::rank_process");
            child.env("OFLOW_TEST_DTYPES", rank.to_string());
            child.env("RANK", rank.to_string()).env("WORLD_SIZE", "2").env("XDG_RUNTIME_DIR", folder.path());
            child.env("MASTER_ADDR", "localhost").env("MASTER_PORT", "4713").env("OFLOW_THREADS", "1");
            child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for (rank, child) in children.into_iter().enumerate() {
        let out = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && text.contains(&format!("rank {rank} agrees")), "{text}");
    }
}
