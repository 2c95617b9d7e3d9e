//! Scalar expressions.
