//! libnccl.
