//! The inner loops of complex arithmetic. What is a few operations on parts has a loop of its own; other functions are called element
//! by element.

use super::joined::{Basic, Compare, Power, pairs};
use super::loops::Lanes;
use super::maps::{Block, map1, map2, map3, select};
use crate::cmath::{add, binary, mul, real, sub, unary};
use crate::cpu::lane::Lane;
use crate::expr::{BinaryOp, UnaryOp};
use crate::{Builtin, Complex, Element, Scalar};

macro_rules! lanes {
    ($part:ident $dtype:ident) => {
        impl Lane for Complex<$part> {
            const DTYPE: Builtin = Builtin::$dtype;
            #[inline(always)]
            fn to_f32(self) -> f32 {
                self.re as f32
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.re as f64
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self.re as i64
            }
            #[inline(always)]
            fn from_f32(x: f32) -> Self {
                real(x as $part)
            }
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                real(x as $part)
            }
            #[inline(always)]
            fn from_i64(x: i64) -> Self {
                real(x as $part)
            }
        }

        impl Lanes for Complex<$part> {
            fn from_scalar(s: Scalar) -> Self {
                Element::from_scalar(s)
            }
            unsafe fn unary(op: UnaryOp, x: Block<Self>) {
                // SAFETY: by the contract of this function, for every arm.
                unsafe {
                    match op {
                        UnaryOp::Neg => map1(x, |z| Complex { re: -z.re, im: -z.im }),
                        UnaryOp::Conj => map1(x, |z| Complex { re: z.re, im: -z.im }),
                        UnaryOp::Re => map1(x, |z| real(z.re)),
                        UnaryOp::Im => map1(x, |z| real(z.im)),
                        op => map1(x, |z| unary(op, z)),
                    }
                }
            }
            unsafe fn binary(op: BinaryOp, x: Block<Self>) {
                // SAFETY: by the contract of this function, for every arm.
                unsafe {
                    match op {
                        BinaryOp::Add => map2(x, add),
                        BinaryOp::Sub => map2(x, sub),
                        BinaryOp::Mul => map2(x, mul),
                        op => map2(x, |a, b| binary(op, a, b)),
                    }
                }
            }
            unsafe fn pair(first: Basic, second: Basic, c: *const Self, x: Block<Self>) {
                // SAFETY: by the contract of this function.
                unsafe { pairs!(first, second, c, x, add, sub, mul) }
            }
            unsafe fn select(condition: *const Self, x: Block<Self>) {
                // SAFETY: by the contract of this function.
                unsafe { select(condition, x, Complex { re: 0.0, im: 0.0 }) }
            }
            unsafe fn clamp(_: *const Self, _: Block<Self>) {
                unreachable!("complex numbers have no order; programs of them are compiled without it")
            }
            unsafe fn select_by(_: Compare, _: [*const Self; 2], _: Block<Self>) {
                unreachable!("programs of complex numbers are compiled without it")
            }
            fn power(_: Self) -> Option<Power> {
                None
            }
            unsafe fn raised(_: Power, _: Block<Self>) {
                unreachable!("programs of complex numbers take powers by the logarithm")
            }
        }
    };
}

lanes!(f32 C64);
lanes!(f64 C128);
