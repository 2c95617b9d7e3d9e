# Made by `cargo xtask codegen` from the texts of the functions; do not edit.

import builtins
from collections.abc import Sequence
from typing import Any, overload

from ._oflow import Number, Sbp, Tensor, float32
from ._oflow import device as _device, dtype as _dtype, placement as _placement

def c2c(x: Tensor, dim: builtins.int = -1, inverse: builtins.bool = False, factor: builtins.float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform along a dim times `factor`; with `inverse` the inverse one, whose own factor of 1/n is not in it."""
def c2r(y: Tensor, dim: builtins.int = -1, n: builtins.int = 1, factor: builtins.float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """The n real numbers whose Fourier transform along a dim has these first n/2 + 1 numbers, times n. Imaginary parts of numbers that are their own conjugates do not count. All are multiplied by `factor`."""
@overload
def fft(x: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform along a dim."""
@overload
def fft(input: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def fft2(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """fft along two dims."""
@overload
def fft2(input: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor: ...
def fftfreq(n: builtins.int, d: builtins.float = 1.0, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The frequencies of fft of n samples that are d apart."""
@overload
def fftn(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """fft along several dims, all by default."""
@overload
def fftn(input: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def fftshift(x: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, *, out: Tensor | None = None) -> Tensor:
    """Moves frequency 0 to the middle of each dim."""
@overload
def fftshift(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def fftshift(x: Tensor, *dim: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def hfft(x: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The real transform of numbers of which the second half are conjugates of the first."""
@overload
def hfft(input: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor: ...
def hfft2(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """hfftn along two dims."""
def hfftn(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """hfft along the last of several dims, fft along the others."""
@overload
def ifft(x: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of fft."""
@overload
def ifft(input: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ifft2(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """ifft along two dims."""
@overload
def ifft2(input: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ifftn(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """ifft along several dims, all by default."""
@overload
def ifftn(input: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ifftshift(x: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of fftshift."""
@overload
def ifftshift(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def ifftshift(x: Tensor, *dim: builtins.int, out: Tensor | None = None) -> Tensor: ...
@overload
def ihfft(x: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of hfft."""
@overload
def ihfft(input: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor: ...
def ihfft2(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """ihfftn along two dims."""
def ihfftn(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of hfftn."""
@overload
def irfft(x: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of rfft: n real numbers, 2(m - 1) of m unless given."""
@overload
def irfft(input: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def irfft2(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """irfftn along two dims."""
@overload
def irfft2(input: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def irfftn(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of rfftn."""
@overload
def irfftn(input: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor: ...
def istft(x: Tensor, n_fft: builtins.int, hop_length: builtins.int | None = None, win_length: builtins.int | None = None, window: Tensor | None = None, center: builtins.bool = True, normalized: builtins.bool = False, onesided: builtins.bool | None = None, length: builtins.int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The signal of which these are the transforms of pieces: the inverse of stft."""
def r2c(x: Tensor, dim: builtins.int = -1, factor: builtins.float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """The first n/2 + 1 numbers of the Fourier transform of n real ones along a dim times `factor`; the others are their conjugates."""
@overload
def rfft(x: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The first n/2 + 1 numbers of the transform of real ones."""
@overload
def rfft(input: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def rfft2(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """rfftn along two dims."""
@overload
def rfft2(input: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor: ...
def rfftfreq(n: builtins.int, d: builtins.float = 1.0, *, dtype: _dtype = float32, device: _device | str | None = None, placement: _placement | None = None, sbp: Sbp | str | Sequence[Sbp | str] | None = None, requires_grad: builtins.bool = False, out: Tensor | None = None) -> Tensor:
    """The frequencies of rfft of n samples that are d apart."""
@overload
def rfftn(x: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """rfft along the last of several dims, fft along the others."""
@overload
def rfftn(input: Tensor, s: builtins.int | Sequence[builtins.int] | None = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor: ...
def stft(x: Tensor, n_fft: builtins.int, hop_length: builtins.int | None = None, win_length: builtins.int | None = None, window: Tensor | None = None, center: builtins.bool = True, pad_mode: str = "reflect", normalized: builtins.bool = False, onesided: builtins.bool | None = None, *, out: Tensor | None = None) -> Tensor:
    """The Fourier transforms of pieces of n_fft samples of a signal, as [.., frequency, piece]."""
