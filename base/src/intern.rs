//! Interning: equal values share one `Arc` and one small process-local id.
//!
//! Ids are never sent, compared between ranks, used for ordering, or printed. A table holds weak references and removes dead ones
//! whenever it has doubled in size, so its size is bounded by the number of live values.

use indexmap::IndexMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, Mutex, Weak};

/// A fixed-seed multiplicative hasher (the FxHash mix): the same on every rank and in every run.
#[derive(Default, Clone, Copy)]
pub struct FixedHasher(u64);

impl Hasher for FixedHasher {
    fn finish(&self) -> u64 {
        // The high bits are the well mixed ones; tables use the low ones.
        self.0.rotate_left(26)
    }
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0u8; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, x: u8) {
        self.write_u64(x as u64);
    }
    fn write_u32(&mut self, x: u32) {
        self.write_u64(x as u64);
    }
    fn write_u64(&mut self, x: u64) {
        self.0 = (self.0.rotate_left(5) ^ x).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }
    fn write_usize(&mut self, x: usize) {
        self.write_u64(x as u64);
    }
}

/// An [`IndexMap`] with the fixed hasher: insertion-ordered and deterministic.
pub type FixedMap<K, V> = IndexMap<K, V, BuildHasherDefault<FixedHasher>>;

/// An interned value.
pub struct Interned<T> {
    id: u64,
    value: T,
}

impl<T> Interned<T> {
    /// Returns the process-local id. Equal ids mean equal values; ids are never reused.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl<T> Deref for Interned<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

/// A table of interned values of one type.
pub struct Interner<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    map: FixedMap<T, Weak<Interned<T>>>,
    next_id: u64,
    sweep_at: usize,
}

impl<T: Hash + Eq + Clone> Default for Interner<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Hash + Eq + Clone> Interner<T> {
    /// Makes an empty table.
    pub const fn new() -> Self {
        Interner {
            state: Mutex::new(State {
                map: IndexMap::with_hasher(BuildHasherDefault::new()),
                next_id: 1,
                sweep_at: 256,
            }),
        }
    }

    /// Returns the one `Arc` for this value.
    pub fn intern(&self, value: T) -> Arc<Interned<T>> {
        let mut s = self.state.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(found) = s.map.get(&value).and_then(Weak::upgrade) {
            return found;
        }
        let arc = Arc::new(Interned { id: s.next_id, value: value.clone() });
        s.next_id += 1;
        s.map.insert(value, Arc::downgrade(&arc));
        if s.map.len() >= s.sweep_at {
            s.map.retain(|_, w| w.strong_count() > 0);
            s.sweep_at = (s.map.len() * 2).max(256);
        }
        arc
    }

    /// Returns the number of entries, including dead ones.
    pub fn entries(&self) -> usize {
        self.state.lock().unwrap_or_else(|e| e.into_inner()).map.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_and_the_table_is_bounded() {
        let table: Interner<u32> = Interner::new();
        let a = table.intern(7);
        assert!(Arc::ptr_eq(&a, &table.intern(7)));
        for i in 0..100_000 {
            table.intern(i);
        }
        assert!(table.entries() < 600, "{}", table.entries());
        assert_eq!(table.intern(7).id(), a.id());
    }
}
