//! The kernels of the CPU: plain functions over [`View`](crate::View)s, one file a family. Start reading at [`lane`]
//! (element types), [`strided`] (layouts) and [`elementwise`]; for kernels along a dim at [`softmax`], for products at
//! [`matmul`].

pub(crate) mod acc;
pub mod accumulate;
pub mod argreduce;
pub mod attention;
pub mod batch_norm;
pub(crate) mod bundle;
pub mod conv;
pub mod copy;
pub mod count;
pub mod elementwise;
pub mod embedding;
pub mod gather;
pub mod grouped_norm;
pub mod index;
pub mod lane;
pub mod loss;
pub mod matmul;
pub mod norm;
pub mod optim;
pub mod past_cache;
pub mod pool;
pub mod random;
pub mod reduce;
pub mod resample;
pub mod rotary;
pub(crate) mod rowmath;
pub(crate) mod rows;
pub mod scan;
pub mod select;
pub mod softmax;
pub mod sort;
pub mod steps;
pub mod strided;
pub mod take;
mod turn;
