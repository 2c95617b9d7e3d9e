//! An allocator that counts what each thread holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that the thread holds, and the most that it has held since [`begin`].
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, and a count for each thread. What one thread takes and another gives back counts for both.
pub struct Counting;

fn count(bytes: isize) {
    // A thread that ends has no count any more.
    let _ending = HELD.try_with(|held| {
        let (now, most) = held.get();
        let now = now + bytes;
        held.set((now, most.max(now)));
    });
}

// SAFETY: the system's allocator does all the work; counting touches a cell of the thread that needs no memory and no drop.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: handed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: handed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: handed on.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Begins to watch what this thread takes.
pub fn begin() {
    HELD.with(|held| held.set((0, 0)));
}

/// The most bytes that this thread has held since then, beyond what it held then.
pub fn most() -> usize {
    HELD.with(|held| held.get().1.max(0) as usize)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_most_that_was_held_is_known() {
        super::begin();
        let all = vec![1u8; 5000];
        drop(vec![1u8; 100_000]);
        assert!((105_000..110_000).contains(&super::most()), "{}", super::most());
        drop(all);
        super::begin();
        assert_eq!(super::most(), 0);
    }
}
