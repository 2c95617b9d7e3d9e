//! The kernels of the CPU: plain functions over [`View`](crate::View)s, one file a family. Start reading at [`lane`]
//! (element types), [`strided`] (layouts) and [`elementwise`]; for kernels along a dim at [`softmax`], for products at
//! [`matmul`].

pub(crate) mod acc;
pub mod accumulate;
pub mod argreduce;
pub mod attention;
pub(crate) mod bundle;
pub mod copy;
pub mod elementwise;
pub mod gather;
pub mod index;
pub mod lane;
pub mod loss;
pub mod matmul;
pub mod norm;
pub mod optim;
pub mod past_cache;
pub mod random;
pub mod reduce;
pub(crate) mod rowmath;
pub(crate) mod rows;
#[cfg(test)]
pub(crate) mod samples;
pub mod select;
pub mod softmax;
pub mod steps;
pub mod strided;
pub mod take;
#[cfg(test)]
pub(crate) mod testing;
mod turn;
