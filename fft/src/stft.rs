//! Transforms of short pieces of a signal, and back.

use crate::functions::{Dft, Norm, fft, int, irfft, rfft};
use oflow::CallSite;
use oflow::functional::PadOptions;
use oflow::prelude::*;

/// Options of [`stft`] and [`istft`].
#[derive(Clone, Debug)]
pub struct Stft {
    /// Samples from one piece to the next; a quarter of `n_fft` unless given.
    pub hop_length: Option<usize>,
    /// Numbers of the window, at most `n_fft`, which stand in the middle of a piece with zeros around them. Those of `window`, or `n_fft`,
    /// unless given.
    pub win_length: Option<usize>,
    /// The window. Ones unless given.
    pub window: Option<Tensor>,
    /// The signal is continued by half a piece on both sides, so that piece k has sample `k * hop_length` in its middle.
    pub center: bool,
    /// How it is continued: `reflect`, `replicate`, `circular` or `constant`.
    pub pad_mode: &'static str,
    /// Divides by √n_fft.
    pub normalized: bool,
    /// Whether only the first n_fft/2 + 1 numbers of a transform are given; for real signals unless said otherwise.
    pub onesided: Option<bool>,
}

impl Default for Stft {
    fn default() -> Stft {
        Stft {
            hop_length: None,
            win_length: None,
            window: None,
            center: true,
            pad_mode: "reflect",
            normalized: false,
            onesided: None,
        }
    }
}

impl Stft {
    fn hop(&self, n_fft: usize) -> Result<usize> {
        match self.hop_length.unwrap_or(n_fft / 4) {
            0 => Err(Error::argument("the hop length is 0").help("give a `hop_length` of at least 1")),
            hop => int(hop).map(|_| hop),
        }
    }

    /// The window with zeros around it; none for ones. What is made lies where x is.
    fn whole_window(&self, n_fft: usize, x: &Tensor) -> Result<Option<Tensor>> {
        let w = match (&self.window, self.win_length) {
            (Some(w), Some(n)) if w.shape() != [n] => {
                let have = w.shape();
                return Err(Error::shape(format!("the window has the shape {have:?}, its length is said to be {n}")));
            }
            (Some(w), _) => w.clone(),
            (None, Some(n)) if n > n_fft => {
                return Err(Error::shape(format!("a window of {n} numbers is longer than a piece of {n_fft}")));
            }
            (None, Some(n)) if n != n_fft => beside(ones([n], Device::Cpu.dtype(x.dtype().part()))?, x)?,
            (None, _) => return Ok(None),
        };
        match w.shape() {
            [n] if *n <= n_fft => {
                let before = (n_fft - n) / 2;
                w.pad([before as i64, (n_fft - n - before) as i64]).map(Some)
            }
            shape => {
                Err(Error::shape(format!("the window has the shape {shape:?}; it is [n] of at most {n_fft} numbers")))
            }
        }
    }

    fn norm(&self) -> Norm {
        if self.normalized { Norm::Ortho } else { Norm::Backward }
    }
}

/// A tensor of the CPU where x lies: whole on every rank of a global x.
fn beside(t: Tensor, x: &Tensor) -> Result<Tensor> {
    match x.is_global() {
        true => distribute(&t, (x.placement()?, NdSbp::broadcast(x.placement()?.axes()))),
        false => t.to_device(x.device()),
    }
}

fn checked(x: &Tensor, n_fft: usize, dims: [usize; 2]) -> Result<()> {
    if n_fft == 0 {
        return Err(Error::argument("pieces of 0 samples"));
    }
    match dims.contains(&x.ndim()) {
        true => Ok(()),
        false => Err(Error::shape(format!("the tensor has {} dims; {} or {} are needed", x.ndim(), dims[0], dims[1]))),
    }
}

/// The Fourier transforms of pieces of n_fft samples of a signal `[t]` or a batch of signals `[b, t]`, as `[.., frequency, piece]`.
///
/// ```
/// use oflow::prelude::*;
/// let x = ones([16], Device::Cpu)?;
/// let y = oflow_fft::stft(&x, 8, &Default::default())?;
/// assert_eq!((y.dtype(), y.shape()), (DType::C64, &[5, 9][..]));
/// assert_eq!(oflow_fft::istft(&y, 8, None, &Default::default())?.shape(), [16]);
/// # Ok::<(), oflow::Error>(())
/// ```
///
/// # Errors
/// The signal is shorter than a piece, or half a piece cannot be reflected; the window is longer than a piece.
#[track_caller]
pub fn stft(x: &Tensor, n_fft: usize, o: &Stft) -> Result<Tensor> {
    let body = || {
        checked(x, n_fft, [1, 2])?;
        let mut x = x.clone();
        if o.center {
            let half = (n_fft / 2) as i64;
            // Reflection wants a dim before.
            let lead = if x.ndim() == 1 { x.unsqueeze(0)? } else { x.clone() };
            let wide = lead.pad_with([half, half], &PadOptions { mode: o.pad_mode, ..Default::default() })?;
            x = if x.ndim() == 1 { wide.squeeze(0)? } else { wide };
        }
        let have = x.shape().last().copied().unwrap_or(0);
        if have < n_fft {
            return Err(Error::shape(format!("the signal has {have} samples, a piece {n_fft}")));
        }
        let mut pieces = x.unfold(-1, n_fft as i64, o.hop(n_fft)? as i64)?;
        if let Some(w) = o.whole_window(n_fft, &x)? {
            pieces = pieces.mul(&w)?;
        }
        let options = Dft { norm: o.norm(), ..Default::default() };
        let y = match o.onesided.unwrap_or(!pieces.dtype().is_complex()) {
            true => rfft(&pieces, options)?,
            false => fft(&pieces, options)?,
        };
        y.transpose(-1, -2)
    };
    CallSite::here().run(body).map_err(|e| e.within(|| format!("stft({}, {n_fft})", x.short())))
}

/// The signal of which these are the transforms of pieces, `[.., frequency, piece]`: pieces are added up where they overlap, and divided by
/// the sum of the squares of their windows. `length` is that of the signal; without it what no whole piece reaches is missing.
///
/// # Errors
/// Sizes do not fit, or some sample is in no window.
#[track_caller]
pub fn istft(y: &Tensor, n_fft: usize, length: Option<usize>, o: &Stft) -> Result<Tensor> {
    let body = || {
        checked(y, n_fft, [2, 3])?;
        let (hop, pieces) = (o.hop(n_fft)?, y.shape()[y.ndim() - 1]);
        let rows = y.shape()[y.ndim() - 2];
        // As in PyTorch: as many frequencies as samples are both sides.
        let onesided = o.onesided.unwrap_or(rows != n_fft);
        let need = if onesided { n_fft / 2 + 1 } else { n_fft };
        if rows != need || pieces == 0 {
            return Err(Error::shape(format!(
                "there are {rows} frequencies of {pieces} pieces; {need} are needed, and a piece"
            )));
        }
        let turned = y.transpose(-1, -2)?;
        let options = Dft { n: Some(n_fft), norm: o.norm(), ..Default::default() };
        // A signal is real: its negative frequencies are not read.
        let half = turned.narrow(-1, 0, int(n_fft / 2 + 1)?)?;
        let x = irfft(&half, options)?;
        let whole = hop.checked_mul(pieces - 1).and_then(|n| n.checked_add(n_fft)).filter(|n| int(*n).is_ok());
        let whole = whole.ok_or_else(|| {
            Error::shape(format!(
                "{pieces} pieces that are {hop} samples apart reach further than elements can be addressed"
            ))
        })?;
        let places = (0..pieces).flat_map(|p| (0..n_fft).map(move |k| (p * hop + k) as i64)).collect::<Vec<_>>();
        let places = beside(from_vec(places, [pieces * n_fft], Device::Cpu)?, &x)?;
        let real = x.dtype().part();
        let window = match o.whole_window(n_fft, &x)? {
            Some(w) => w.cast(real)?,
            None => beside(ones([n_fft], Device::Cpu.dtype(real))?, &x)?,
        };
        let weighted = x.mul(&window)?;
        let lead = x.shape()[..x.ndim() - 2].to_vec();
        let flat = |t: &Tensor, lead: &[usize]| t.reshape([lead, &[pieces * n_fft]].concat());
        let added = |t: &Tensor, lead: &[usize]| -> Result<Tensor> {
            let zeros = beside(zeros([lead, &[whole]].concat(), Device::Cpu.dtype(t.dtype()))?, &x)?;
            zeros.index_add(-1, &places, &flat(t, lead)?)
        };
        let sum = added(&weighted, &lead)?;
        let squares = added(&window.square()?.expand([pieces, n_fft])?, &[])?;
        let start = if o.center { n_fft / 2 } else { 0 };
        let end = match length {
            Some(n) => start.saturating_add(n),
            None if o.center => whole.saturating_sub(n_fft / 2),
            None => whole,
        };
        let cut = |t: &Tensor| t.slice(-1, start as i64, end.min(whole) as i64, 1);
        let (sum, squares) = (cut(&sum)?, cut(&squares)?);
        if squares.numel() > 0 && squares.amin(())?.item()? < 1e-11 {
            return Err(Error::value("a sample is in no window: the overlapping windows are 0 there")
                .help("take a window without zeros at its ends, a smaller hop length, or `center`"));
        }
        let signal = sum.div(&squares)?;
        let have = signal.shape()[signal.ndim() - 1];
        match length {
            Some(n) if n > have => signal.pad([0, int(n - have)?]),
            _ => Ok(signal),
        }
    };
    CallSite::here().run(body).map_err(|e| e.within(|| format!("istft({}, {n_fft})", y.short())))
}
