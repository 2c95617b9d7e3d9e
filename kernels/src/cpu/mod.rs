//! The kernels of the CPU: plain functions over [`View`](crate::View)s, one file a family. Start reading at [`lane`]
//! (element types), [`strided`] (layouts) and [`elementwise`].

pub mod accumulate;
pub mod argreduce;
pub mod copy;
pub mod elementwise;
pub mod index;
pub mod lane;
pub mod random;
pub mod reduce;
pub mod strided;
#[cfg(test)]
pub(crate) mod testing;
