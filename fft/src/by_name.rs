//! The functions by name, `fft.rfft` and so on, with PyTorch's parameters.

use crate::functions::*;
use crate::stft::{Stft, istft, stft};
use oflow::functional::{Bound, FnBody, FnDef, register_function};
use oflow::prelude::*;
use std::sync::Arc;

type Code = fn(&Bound) -> Result<Vec<Tensor>>;

/// The parameters of a function along one dim.
fn along_one(b: &Bound) -> Result<Dft> {
    Ok(Dft { n: b.attr(1).map(|_| length(b.int(1)?)).transpose()?, dim: b.int(2)?, norm: norm(b)? })
}

/// The parameters of a function along several dims.
fn along_several(b: &Bound) -> Result<DftN> {
    let s = b.attr(1).map(|_| b.ints(1)?.iter().map(|n| length(*n)).collect::<Result<_>>()).transpose()?;
    let dims = b.attr(2).map(|_| b.ints(2).map(|d| d.to_vec())).transpose()?;
    Ok(DftN { s, dims, norm: norm(b)? })
}

fn length(n: i64) -> Result<usize> {
    usize::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| Error::argument(format!("a transform of length {n}")))
}

fn norm(b: &Bound) -> Result<Norm> {
    b.attr(3).map_or(Ok(Norm::default()), |_| Norm::named(b.text(3)?))
}

fn shifted_dims(b: &Bound) -> Result<Option<Vec<i64>>> {
    b.attr(1).map(|_| b.ints(1).map(|d| d.to_vec())).transpose()
}

/// The parameters of stft and istft from parameter `i` on: hop length, length and numbers of the window, whether it is centred.
fn pieces(b: &Bound, i: usize) -> Result<Stft> {
    let given = |i: usize| b.attr(i).map(|_| length(b.int(i)?)).transpose();
    let (hop_length, win_length, window) = (given(i)?, given(i + 1)?, b.tensor(i + 2).cloned());
    Ok(Stft { hop_length, win_length, window, center: b.bool(i + 3)?, ..Default::default() })
}

fn onesided(b: &Bound, i: usize) -> Result<Option<bool>> {
    b.attr(i).map(|_| b.bool(i)).transpose()
}

/// PyTorch's words for how a signal is continued.
fn pad_mode(name: &str) -> Result<&'static str> {
    let all = ["reflect", "replicate", "circular", "constant"];
    let found = all.into_iter().find(|m| *m == name);
    found.ok_or_else(|| Error::argument(format!("pad_mode '{name}' is none of {}", all.join(", "))))
}

/// Registers them.
///
/// # Errors
/// Another crate has registered functions of these names.
pub(crate) fn register() -> Result<()> {
    const ONE: &str = "(Tensor x, Int? n, Int dim=-1, String? norm) -> Tensor";
    const SEVERAL: &str = "(Tensor x, IntList? s, IntList? dim, String? norm) -> Tensor";
    const TWO: &str = "(Tensor x, IntList? s, IntList dim=[-2, -1], String? norm) -> Tensor";
    const FREQUENCIES: &str = "(Int n, Target target, Float d=1.0, *, DataType dtype=f32) -> Tensor";
    let all: [(&str, &str, &str, Code); 24] = [
        ("fft", ONE, "The discrete Fourier transform along a dim.", |b| Ok(vec![fft(b.given(0)?, along_one(b)?)?])),
        ("ifft", ONE, "The inverse of fft.", |b| Ok(vec![ifft(b.given(0)?, along_one(b)?)?])),
        ("rfft", ONE, "The first n/2 + 1 numbers of the transform of real ones.", |b| {
            Ok(vec![rfft(b.given(0)?, along_one(b)?)?])
        }),
        ("irfft", ONE, "The inverse of rfft: n real numbers, 2(m - 1) of m unless given.", |b| {
            Ok(vec![irfft(b.given(0)?, along_one(b)?)?])
        }),
        ("hfft", ONE, "The real transform of numbers of which the second half are conjugates of the first.", |b| {
            Ok(vec![hfft(b.given(0)?, along_one(b)?)?])
        }),
        ("ihfft", ONE, "The inverse of hfft.", |b| Ok(vec![ihfft(b.given(0)?, along_one(b)?)?])),
        ("fftn", SEVERAL, "fft along several dims, all by default.", |b| {
            Ok(vec![fftn(b.given(0)?, along_several(b)?)?])
        }),
        ("ifftn", SEVERAL, "ifft along several dims, all by default.", |b| {
            Ok(vec![ifftn(b.given(0)?, along_several(b)?)?])
        }),
        ("rfftn", SEVERAL, "rfft along the last of several dims, fft along the others.", |b| {
            Ok(vec![rfftn(b.given(0)?, along_several(b)?)?])
        }),
        ("irfftn", SEVERAL, "The inverse of rfftn.", |b| Ok(vec![irfftn(b.given(0)?, along_several(b)?)?])),
        ("fft2", TWO, "fft along two dims.", |b| Ok(vec![fft2(b.given(0)?, along_several(b)?)?])),
        ("ifft2", TWO, "ifft along two dims.", |b| Ok(vec![ifft2(b.given(0)?, along_several(b)?)?])),
        ("rfft2", TWO, "rfftn along two dims.", |b| Ok(vec![rfft2(b.given(0)?, along_several(b)?)?])),
        ("irfft2", TWO, "irfftn along two dims.", |b| Ok(vec![irfft2(b.given(0)?, along_several(b)?)?])),
        ("hfftn", SEVERAL, "hfft along the last of several dims, fft along the others.", |b| {
            Ok(vec![hfftn(b.given(0)?, along_several(b)?)?])
        }),
        ("ihfftn", SEVERAL, "The inverse of hfftn.", |b| Ok(vec![ihfftn(b.given(0)?, along_several(b)?)?])),
        ("hfft2", TWO, "hfftn along two dims.", |b| Ok(vec![hfft2(b.given(0)?, along_several(b)?)?])),
        ("ihfft2", TWO, "ihfftn along two dims.", |b| Ok(vec![ihfft2(b.given(0)?, along_several(b)?)?])),
        ("fftfreq", FREQUENCIES, "The frequencies of fft of n samples that are d apart.", |b| {
            Ok(vec![fftfreq(length(b.int(0)?)?, b.float(2)?, b.target_of(1, Some(3))?)?])
        }),
        ("rfftfreq", FREQUENCIES, "The frequencies of rfft of n samples that are d apart.", |b| {
            Ok(vec![rfftfreq(length(b.int(0)?)?, b.float(2)?, b.target_of(1, Some(3))?)?])
        }),
        ("fftshift", "(Tensor x, IntList? dim) -> Tensor", "Moves frequency 0 to the middle of each dim.", |b| {
            Ok(vec![fftshift(b.given(0)?, shifted_dims(b)?.as_deref())?])
        }),
        ("ifftshift", "(Tensor x, IntList? dim) -> Tensor", "The inverse of fftshift.", |b| {
            Ok(vec![ifftshift(b.given(0)?, shifted_dims(b)?.as_deref())?])
        }),
        (
            "stft",
            "(Tensor x, Int n_fft, Int? hop_length, Int? win_length, Tensor? window, Bool center=true, String pad_mode=\"reflect\", \
             Bool normalized=false, Bool? onesided) -> Tensor",
            "The Fourier transforms of pieces of n_fft samples of a signal, as [.., frequency, piece].",
            |b| {
                let o = Stft {
                    pad_mode: pad_mode(b.text(6)?)?,
                    normalized: b.bool(7)?,
                    onesided: onesided(b, 8)?,
                    ..pieces(b, 2)?
                };
                Ok(vec![stft(b.given(0)?, length(b.int(1)?)?, &o)?])
            },
        ),
        (
            "istft",
            "(Tensor x, Int n_fft, Int? hop_length, Int? win_length, Tensor? window, Bool center=true, Bool normalized=false, \
             Bool? onesided, Int? length) -> Tensor",
            "The signal of which these are the transforms of pieces: the inverse of stft.",
            |b| {
                let o = Stft { normalized: b.bool(6)?, onesided: onesided(b, 7)?, ..pieces(b, 2)? };
                let samples = b.attr(8).map(|_| length(b.int(8)?)).transpose()?;
                Ok(vec![istft(b.given(0)?, length(b.int(1)?)?, samples, &o)?])
            },
        ),
    ];
    for (name, parameters, doc, code) in all {
        let def = FnDef::new(&format!("fft.{name}{parameters}"), FnBody::Code(Arc::new(code)))?;
        register_function(def.doc(doc))?;
    }
    Ok(())
}
