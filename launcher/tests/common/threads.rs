//! The number of tests that run at once.

/// Sets it for a test program, whatever the number of cores. `RUST_TEST_THREADS` of the environment and `--test-threads` still say
/// otherwise.
macro_rules! test_threads {
    ($threads:literal) => {
        /// The harness reads the variable when `main` begins, so it is set before.
        // SAFETY: the C library calls what lies in this section as functions without arguments that it needs, before `main`.
        #[used]
        #[unsafe(link_section = ".init_array")]
        static SET_TEST_THREADS: extern "C" fn() = {
            extern "C" fn set() {
                let (name, value) = (c"RUST_TEST_THREADS", $threads);
                // SAFETY: both are texts of C, and there is no other thread yet. What is set already stays.
                unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 0) };
            }
            set
        };
    };
}
pub(crate) use test_threads;
