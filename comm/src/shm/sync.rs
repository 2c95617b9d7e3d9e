//! The shim under the shared-memory protocol: atomics and futexes of the system, or loom's, so that the model test runs the
//! real code. The cfg is `oflow_loom` and not `loom`, because `--cfg loom` switches off half of tokio.

#[cfg(not(all(test, oflow_loom)))]
mod imp {
    use rustix::thread::futex;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    /// A word on which threads of several processes sleep. All zero is a valid new one.
    #[repr(transparent)]
    pub struct Word(AtomicU32);

    impl Word {
        pub fn load(&self) -> u32 {
            self.0.load(Ordering::Acquire)
        }
        pub fn swap(&self, new: u32) -> u32 {
            self.0.swap(new, Ordering::AcqRel)
        }
        pub fn fetch_or(&self, bits: u32) -> u32 {
            self.0.fetch_or(bits, Ordering::AcqRel)
        }
        pub fn compare_exchange(&self, old: u32, new: u32) -> Result<u32, u32> {
            self.0.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
        }
        /// Sleeps while the word is `expected`; false when the time is over. May wake for no reason.
        pub fn sleep(&self, expected: u32, timeout: Duration) -> bool {
            let time = futex::Timespec {
                tv_sec: timeout.as_secs().min(i64::MAX as u64) as i64,
                tv_nsec: timeout.subsec_nanos().into(),
            };
            // Not PRIVATE: the word is shared between processes at different addresses.
            let slept = futex::wait(&self.0, futex::Flags::empty(), expected, Some(&time));
            slept != Err(rustix::io::Errno::TIMEDOUT)
        }
        pub fn wake(&self) {
            // It fails only for an address that is not mapped, and `self` is.
            let _ = futex::wake(&self.0, futex::Flags::empty(), i32::MAX as u32);
        }
    }

    /// A cell whose accesses the protocol orders.
    #[repr(transparent)]
    pub struct Shared<T>(std::cell::UnsafeCell<T>);

    impl<T> Shared<T> {
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }

    pub use std::hint::spin_loop;
    pub use std::sync::atomic::fence;
}

#[cfg(all(test, oflow_loom))]
mod imp {
    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::sync::{Condvar, Mutex};
    use std::time::Duration;

    /// A futex as the kernel does it: comparing and falling asleep is one step under a lock.
    pub struct Word {
        value: AtomicU32,
        queue: Mutex<()>,
        wake: Condvar,
    }

    impl Default for Word {
        fn default() -> Self {
            Word { value: AtomicU32::new(0), queue: Mutex::new(()), wake: Condvar::new() }
        }
    }

    impl Word {
        pub fn load(&self) -> u32 {
            self.value.load(Ordering::Acquire)
        }
        pub fn swap(&self, new: u32) -> u32 {
            self.value.swap(new, Ordering::AcqRel)
        }
        pub fn fetch_or(&self, bits: u32) -> u32 {
            self.value.fetch_or(bits, Ordering::AcqRel)
        }
        pub fn compare_exchange(&self, old: u32, new: u32) -> Result<u32, u32> {
            self.value.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
        }
        pub fn sleep(&self, expected: u32, _timeout: Duration) -> bool {
            let queue = self.queue.lock().unwrap();
            // SeqCst stands for the kernel's lock of the futex queue: it reads the newest value.
            if self.value.fetch_or(0, Ordering::SeqCst) == expected {
                drop(self.wake.wait(queue).unwrap());
            }
            true
        }
        pub fn wake(&self) {
            let _queue = self.queue.lock().unwrap();
            self.wake.notify_all();
        }
    }

    pub struct Shared<T>(loom::cell::UnsafeCell<T>);

    impl<T: Default> Default for Shared<T> {
        fn default() -> Self {
            Shared(loom::cell::UnsafeCell::new(T::default()))
        }
    }

    impl<T> Shared<T> {
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            self.0.with(f)
        }
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            self.0.with_mut(f)
        }
    }

    pub fn spin_loop() {
        loom::thread::yield_now();
    }

    pub use loom::sync::atomic::fence;
}

pub use imp::{Shared, Word, fence, spin_loop};
