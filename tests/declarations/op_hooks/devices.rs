//! Where an op runs, on which stream, where its outputs are, and inputs that are read in host memory.

use super::{add, run};
use oflow::ErrorKind;
use oflow::backend::{Backend, DeviceRt, Opening, SyncDevice, register, staged};
use oflow::memory::{Region, Storage};
use oflow::ops::{DTypeRule, Devices, Grad, OpDef, StreamKind};
use oflow::prelude::*;
use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex};

/// A device whose kernels are those of the CPU, and whose memory is known by its addresses.
struct Board;

static OWN: Mutex<Vec<Range<usize>>> = Mutex::new(Vec::new());

/// Whether an address is memory of the board.
fn on_board(at: *const u8) -> bool {
    OWN.lock().unwrap().iter().any(|r| r.contains(&at.addr()))
}

impl SyncDevice for Board {
    fn allocate(&self, bytes: usize) -> Result<Region> {
        let data: *mut u8 = Box::leak(vec![[0u8; 64]; bytes.div_ceil(64)].into_boxed_slice()).as_mut_ptr().cast();
        OWN.lock().unwrap().push(data.addr()..data.addr() + bytes);
        // SAFETY: never freed, and used by this device only.
        Ok(unsafe { Region::new(data, ()) })
    }
    unsafe fn copy_out(&self, from: *const u8, to: &mut [u8]) -> Result<()> {
        // SAFETY: by the contract of this function.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
        Ok(())
    }
    unsafe fn copy_in(&self, from: &[u8], to: *mut u8) -> Result<()> {
        // SAFETY: by the contract of this function.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        Ok(())
    }
    fn run(&self, _memory: &[Storage], kernel: &mut dyn FnMut(Option<&dyn Any>) -> Result<()>) -> Result<()> {
        kernel(None)
    }
}

struct Boards;

impl Backend for Boards {
    fn open(&self, at: &Opening<'_>) -> Result<DeviceRt> {
        Ok(staged(at, Arc::new(Board)))
    }
    fn kernels_of(&self) -> Option<Device> {
        Some(Device::Cpu)
    }
}

static BOARD: LazyLock<Device> = LazyLock::new(|| register("hooks_board", Boards).unwrap());

/// `park(x; to) -> y`: x on another device, computed where x is. Its gradient goes back.
fn park() -> Result<OpDef> {
    Ok(OpDef::new("park(x: f64; to: device) -> y")?
        .dtype(DTypeRule::Input(0))
        .devices(|c| {
            let on = c.inputs[0].unwrap_or(c.default);
            let to = c.call.device_attr("to")?;
            Ok(Devices { run_on: on, outputs: [to].into_iter().collect(), stream: StreamKind::Copy })
        })
        .signatures(&["S0 -> S0"])
        .cpu(|cx| Ok(oflow::kernels::cpu::copy::copy(cx.input(0)?, cx.output(0))?))
        .grad(Grad::rule(|g| {
            let (home, Some(dy)) = (g.input_device(), g.grad(0)) else { return Ok(()) };
            let dx = g.call("hooks.park", &[dy], &[("to", home.into())])?;
            g.set(0, dx)
        })))
}

#[test]
fn an_op_says_where_its_result_is() {
    let (board, cpu) = (*BOARD, Device::Cpu);
    add(park());
    let x = from_vec(vec![1.0f64, 2.0], [2], board).unwrap().requires_grad_(true).unwrap();
    for to in [cpu, board, Device::Async] {
        let y = run("park", &[&x], &[("to", to.into())]).unwrap().remove(0);
        assert_eq!((y.device(), y.to_vec::<f64>().unwrap()), (to, vec![1.0, 2.0]));
        assert!(y.requires_grad());
    }
    let y = run("park", &[&x], &[("to", cpu.into())]).unwrap().remove(0);
    y.mul(3.0).unwrap().sum(()).unwrap().backward().unwrap();
    let dx = x.grad().unwrap();
    assert_eq!((dx.device(), dx.to_vec::<f64>().unwrap()), (board, vec![3.0, 3.0]));
    // A global tensor is where its placement is.
    oflow::run_ranks(2, move |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = from_vec(vec![1.0f64, 2.0], [2], (&mesh, sbp![S(0)]))?;
        assert_eq!(run("park", &[&x], &[("to", cpu.into())])?[0].to_vec::<f64>()?, [1.0, 2.0]);
        let e = run("park", &[&x], &[("to", board.into())]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Placement);
        assert_eq!(e.message(), "hooks.park would leave cpu, but a global tensor is on the device of its placement");
        Ok(())
    })
    .unwrap();
}

#[test]
fn an_op_takes_inputs_from_several_devices() {
    let (board, cpu) = (*BOARD, Device::Cpu);
    let text = "gather_sum(xs...: f64) -> y";
    add(OpDef::new(text).map(|o| {
        o.dtype(DTypeRule::Input(0))
            .devices(|c| Ok(Devices::all(c.inputs.last().copied().flatten().unwrap_or(c.default), 1)))
            .cpu(|cx| {
                // SAFETY: the output of this call, which nothing else uses while the kernel runs.
                let y = unsafe { cx.output(0).as_mut_slice::<f64>()? };
                y.fill(0.0);
                for x in cx.inputs_of("xs")? {
                    y.iter_mut().zip(x.as_slice::<f64>()?).for_each(|(y, x)| *y += x);
                }
                Ok(())
            })
    }));
    let make = |v: f64, d: Device| from_vec(vec![v, -v], [2], d).unwrap();
    for to in [board, cpu, Device::Async] {
        let y = run("gather_sum", &[&make(1.0, cpu), &make(2.0, board), &make(4.0, to)], &[]).unwrap().remove(0);
        assert_eq!((y.device(), y.to_vec::<f64>().unwrap()), (to, vec![7.0, -7.0]));
    }
    // What does not go together with a device rule is refused when the op is registered.
    let view =
        OpDef::new("moved_view(x) -> y").unwrap().view(|_, _, _, _| None).devices(|c| Ok(Devices::all(c.default, 1)));
    let e = oflow::ops::register(view.domain("hooks")).err().unwrap();
    assert_eq!(
        e.message(),
        "op moved_view: with a device rule it can have no view, lowering, length by values or mutable input"
    );
}

#[test]
fn a_kernel_reads_an_input_in_host_memory() {
    let board = *BOARD;
    // The first `n[0]` elements, the others are zero. The kernel looks at n; the elements stay on the device.
    add(OpDef::new("keep_first(x: f64[1], n: no_grad host i64[1]) -> y").map(|o| {
        o.dtype(DTypeRule::Input(0)).signatures(&["P, B -> P"]).grad(Grad::None).cpu(|cx| {
            let (x, n) = (cx.input("x")?, cx.input("n")?.as_slice::<i64>()?);
            assert_eq!(on_board(x.as_slice::<f64>()?.as_ptr().cast()), on_board(cx.output(0).ptr()));
            assert!(!on_board(n.as_ptr().cast()), "n is not in host memory");
            // SAFETY: the output of this call, which nothing else uses while the kernel runs.
            let y = unsafe { cx.output(0).as_mut_slice::<f64>()? };
            let first = usize::try_from(n[0]).unwrap_or(0).min(y.len());
            y.fill(0.0);
            y[..first].copy_from_slice(&x.as_slice::<f64>()?[..first]);
            Ok(())
        })
    }));
    for device in [Device::Cpu, board, Device::Async] {
        let x = from_vec(vec![1.0f64, 2.0, 3.0], [3], device).unwrap();
        for home in [Device::Cpu, device] {
            let n = from_vec(vec![2i64], [1], home).unwrap();
            let y = run("keep_first", &[&x, &n], &[]).unwrap().remove(0);
            assert_eq!((y.device(), y.to_vec::<f64>().unwrap()), (device, vec![1.0, 2.0, 0.0]));
        }
    }
    // Only such an input may be elsewhere.
    let x = from_vec(vec![1.0f64], [1], Device::Cpu).unwrap();
    let e = run("keep_first", &[&x, &from_vec(vec![1i64], [1], board).unwrap()], &[]).unwrap_err();
    assert!(e.message().starts_with("inputs are on different devices"), "{e}");
    oflow::run_ranks(2, move |_| {
        let mesh = Placement::all(board)?;
        let x = from_vec(vec![1.0f64, 2.0, 3.0], [3], (&mesh, sbp![B]))?;
        let n = from_vec(vec![1i64], [1], (&mesh, sbp![B]))?;
        assert_eq!(run("keep_first", &[&x, &n], &[])?[0].to_vec::<f64>()?, [1.0, 0.0, 0.0]);
        Ok(())
    })
    .unwrap();
}
