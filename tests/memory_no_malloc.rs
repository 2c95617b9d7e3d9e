//! A warm allocation of a tensor's memory touches no heap.

use oflow::memory::{Allocator, AllocatorOptions};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: the system's allocator; counting touches only a thread-local cell that needs no allocation and no drop.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, data: *mut u8, layout: Layout) {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: passed on.
        unsafe { System.dealloc(data, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn warm_allocations_touch_no_heap() {
    let memory = Allocator::cpu(AllocatorOptions::default());
    let round = || {
        for bytes in [8, 64, 1000, 5000, 1 << 20, 3 << 20] {
            let blocks = [0; 4].map(|_| memory.alloc(bytes).unwrap());
            let shared = blocks[0].clone();
            shared.bump_version();
        }
    };
    round();
    let before = CALLS.get();
    round();
    assert_eq!(CALLS.get() - before, 0);
    // The counter counts.
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(CALLS.get() - before, 2);
    // 8 and 64 bytes are one class.
    assert_eq!(memory.stats().misses, 5 * 4);
}
