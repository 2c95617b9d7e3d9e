//! Kernels on the emulated GPU beside the CPU's: the same tensors, laid out in the same way, in both memories.

use crate::samples::Tensor;
use oflow_kernels::cuda::{DeviceMemory, FaultSlot, Gpu, Queue, Stream};
use oflow_kernels::{DType, Dims, Strides, View};
use std::sync::Arc;

/// A stream of the emulated GPU.
pub(crate) struct Rig {
    gpu: Arc<Gpu>,
    stream: Stream,
    pub(crate) faults: FaultSlot,
}

/// A tensor's memory on the GPU.
pub(crate) struct OnGpu {
    memory: DeviceMemory,
    words: usize,
    view: View,
}

impl Rig {
    /// None, with the reason printed, on a machine where the emulator cannot run.
    pub(crate) fn new() -> Option<Rig> {
        if let Err(reason) = oflow_emulator::activate() {
            eprintln!("skipped: {reason}");
            return None;
        }
        let gpu = Gpu::open(0).unwrap();
        Some(Rig { stream: Stream::new(&gpu, false).unwrap(), faults: FaultSlot::new(&gpu).unwrap(), gpu })
    }

    pub(crate) fn queue(&self) -> Queue<'_> {
        Queue::new(&self.stream, &self.faults, 7)
    }

    /// The tensor in the GPU's memory, with the gaps between its elements.
    pub(crate) fn put(&self, t: &Tensor) -> OnGpu {
        self.put_as(t, &t.view())
    }

    /// A window onto the tensor's memory.
    pub(crate) fn put_as(&self, t: &Tensor, window: &View) -> OnGpu {
        let bytes = t.bytes();
        let memory = DeviceMemory::new(&self.gpu, bytes.len() * 8).unwrap();
        // SAFETY: as many bytes on both sides; waited for before they go.
        unsafe { self.stream.copy_to_device(memory.data(), bytes.as_ptr().cast(), bytes.len() * 8).unwrap() };
        self.stream.synchronize().unwrap();
        let from_first = window.ptr() as isize - t.view().ptr() as isize;
        let at = memory.data().wrapping_add(t.start()).wrapping_offset(from_first);
        let (dims, strides) = (Dims::from(window.dims()), Strides::from(window.strides()));
        // SAFETY: the same window onto the same number of bytes; tests keep the memory while they use the view.
        let view = unsafe { View::from_raw(at, t.dtype, dims, strides) };
        OnGpu { memory, words: bytes.len(), view }
    }

    /// Scratch memory.
    pub(crate) fn scratch(&self, bytes: usize) -> OnGpu {
        let memory = DeviceMemory::new(&self.gpu, bytes).unwrap();
        let (dims, strides) = (Dims::from_slice(&[bytes]), Strides::from_slice(&[1]));
        // SAFETY: as above.
        let view = unsafe { View::from_raw(memory.data(), DType::U8, dims, strides) };
        OnGpu { memory, words: bytes / 8, view }
    }

    /// What the GPU's memory holds when all work is done.
    pub(crate) fn get(&self, t: &OnGpu) -> Vec<u64> {
        let mut bytes = vec![0u64; t.words];
        // SAFETY: as many bytes on both sides; waited for before they go.
        unsafe { self.stream.copy_to_host(bytes.as_mut_ptr().cast(), t.memory.data(), t.words * 8).unwrap() };
        self.stream.synchronize().unwrap();
        bytes
    }

    /// Fails unless the GPU's memory holds what the CPU's does: floats within `relative * (1 + |expected|)`, NaN as NaN,
    /// everything else (and what lies between the elements) bit for bit.
    #[track_caller]
    pub(crate) fn expect(&self, got: &OnGpu, want: &Tensor, relative: f64, what: &str) {
        let (got, want_bytes) = (self.get(got), want.bytes());
        let (a, b) = (numbers(want.dtype, &got), numbers(want.dtype, &want_bytes));
        for (i, (x, y)) in a.iter().zip(&b).enumerate() {
            let close = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= relative * (1.0 + y.abs());
            assert!(close, "{what}: {} {:?} word {i}: {x} on the GPU, {y} on the CPU", want.dtype, want.dims);
        }
        if relative == 0.0 && !want.dtype.is_float() {
            assert!(got == want_bytes, "{what}: {} {:?}: the bytes differ", want.dtype, want.dims);
        }
    }
}

impl OnGpu {
    pub(crate) fn view(&self) -> View {
        self.view.clone()
    }
}

fn numbers(dtype: DType, bytes: &[u64]) -> Vec<f64> {
    let bytes: Vec<u8> = bytes.iter().flat_map(|w| w.to_ne_bytes()).collect();
    let one = |b: &[u8]| dtype.cast().unwrap().decode(b).unwrap().to_f64();
    bytes.chunks(dtype.size()).map(one).collect()
}
