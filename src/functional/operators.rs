//! `+ - * /` and unary `-` on tensors and numbers. They return `Result<Tensor>`: `(&a + &b)?`.

use crate::error::Result;
use crate::tensor::Tensor;
use oflow_kernels::Scalar;
use std::ops::{Add, Div, Mul, Neg, Sub};

macro_rules! binary {
    ($($trait:ident $f:ident;)*) => {$(
        impl $trait<&Tensor> for &Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $f(self, other: &Tensor) -> Result<Tensor> { Tensor::$f(self, other) }
        }
        impl $trait<Tensor> for &Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $f(self, other: Tensor) -> Result<Tensor> { Tensor::$f(self, &other) }
        }
        impl $trait<&Tensor> for Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $f(self, other: &Tensor) -> Result<Tensor> { Tensor::$f(&self, other) }
        }
        impl $trait<Tensor> for Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $f(self, other: Tensor) -> Result<Tensor> { Tensor::$f(&self, &other) }
        }
        binary!(@scalar $trait $f f32 f64 i32 i64);
    )*};
    (@scalar $trait:ident $f:ident $($t:ty)*) => {$(
        impl $trait<$t> for &Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $f(self, other: $t) -> Result<Tensor> { Tensor::$f(self, Scalar::from(other)) }
        }
        impl $trait<$t> for Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $f(self, other: $t) -> Result<Tensor> { Tensor::$f(&self, Scalar::from(other)) }
        }
    )*};
}

binary! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

macro_rules! from_the_left {
    ($($t:ty)*) => {$(
        impl Add<&Tensor> for $t {
            type Output = Result<Tensor>;
            #[track_caller]
            fn add(self, x: &Tensor) -> Result<Tensor> { Tensor::add(x, Scalar::from(self)) }
        }
        impl Mul<&Tensor> for $t {
            type Output = Result<Tensor>;
            #[track_caller]
            fn mul(self, x: &Tensor) -> Result<Tensor> { Tensor::mul(x, Scalar::from(self)) }
        }
        impl Sub<&Tensor> for $t {
            type Output = Result<Tensor>;
            #[track_caller]
            fn sub(self, x: &Tensor) -> Result<Tensor> { x.rsub(self) }
        }
        impl Div<&Tensor> for $t {
            type Output = Result<Tensor>;
            #[track_caller]
            fn div(self, x: &Tensor) -> Result<Tensor> { x.rdiv(self) }
        }
    )*};
}
from_the_left!(f32 f64 i32 i64);

impl Neg for &Tensor {
    type Output = Result<Tensor>;
    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(self)
    }
}
