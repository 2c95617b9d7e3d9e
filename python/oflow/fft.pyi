# Made by `cargo xtask codegen` from the texts of the functions; do not edit.

import builtins
from collections.abc import Sequence
from typing import Any, overload

from ._oflow import Number, Sbp, Tensor, float32
from ._oflow import device as _device, dtype as _dtype, placement as _placement

def c2c(x: Tensor, dim: builtins.int = -1, inverse: builtins.bool = False) -> Tensor:
    """The discrete Fourier transform along a dim, without a factor; the inverse one if `inverse`."""
def c2r(y: Tensor, dim: builtins.int = -1, n: builtins.int = 1) -> Tensor:
    """The n real numbers whose Fourier transform along a dim has these first n/2 + 1 numbers, times n. Imaginary parts of numbers that are their own conjugates do not count."""
def fft(x: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along a dim."""
def fft2(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None) -> Tensor:
    """fft along two dims."""
def fftfreq(n: builtins.int, d: builtins.float = 1.0, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """The frequencies of fft of n samples that are d apart."""
def fftn(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None) -> Tensor:
    """fft along several dims, all by default."""
@overload
def fftshift(x: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    """Moves frequency 0 to the middle of each dim."""
@overload
def fftshift(x: Tensor, *dim: builtins.int) -> Tensor:
    """Moves frequency 0 to the middle of each dim."""
def hfft(x: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None) -> Tensor:
    """The real transform of numbers of which the second half are conjugates of the first."""
def hfft2(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None) -> Tensor:
    """hfftn along two dims."""
def hfftn(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None) -> Tensor:
    """hfft along the last of several dims, fft along the others."""
def ifft(x: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None) -> Tensor:
    """The inverse of fft."""
def ifft2(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None) -> Tensor:
    """ifft along two dims."""
def ifftn(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None) -> Tensor:
    """ifft along several dims, all by default."""
@overload
def ifftshift(x: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    """The inverse of fftshift."""
@overload
def ifftshift(x: Tensor, *dim: builtins.int) -> Tensor:
    """The inverse of fftshift."""
def ihfft(x: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None) -> Tensor:
    """The inverse of hfft."""
def ihfft2(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None) -> Tensor:
    """ihfftn along two dims."""
def ihfftn(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None) -> Tensor:
    """The inverse of hfftn."""
def irfft(x: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None) -> Tensor:
    """The inverse of rfft: n real numbers, 2(m - 1) of m unless given."""
def irfft2(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None) -> Tensor:
    """irfftn along two dims."""
def irfftn(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None) -> Tensor:
    """The inverse of rfftn."""
def istft(x: Tensor, n_fft: builtins.int, hop_length: builtins.int | None = None, win_length: builtins.int | None = None, window: Tensor | None = None, center: builtins.bool = True, normalized: builtins.bool = False, onesided: builtins.bool | None = None, length: builtins.int | None = None) -> Tensor:
    """The signal of which these are the transforms of pieces: the inverse of stft."""
def r2c(x: Tensor, dim: builtins.int = -1) -> Tensor:
    """The first n/2 + 1 numbers of the Fourier transform of n real ones along a dim, without a factor; the others are their conjugates."""
def rfft(x: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None) -> Tensor:
    """The first n/2 + 1 numbers of the transform of real ones."""
def rfft2(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None) -> Tensor:
    """rfftn along two dims."""
def rfftfreq(n: builtins.int, d: builtins.float = 1.0, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False) -> Tensor:
    """The frequencies of rfft of n samples that are d apart."""
def rfftn(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None) -> Tensor:
    """rfft along the last of several dims, fft along the others."""
def stft(x: Tensor, n_fft: builtins.int, hop_length: builtins.int | None = None, win_length: builtins.int | None = None, window: Tensor | None = None, center: builtins.bool = True, pad_mode: str = "reflect", normalized: builtins.bool = False, onesided: builtins.bool | None = None) -> Tensor:
    """The Fourier transforms of pieces of n_fft samples of a signal, as [.., frequency, piece]."""
