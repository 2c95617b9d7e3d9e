//! One line: its keys with their positions, sorted or chosen from.

use super::key::Word;

/// Lines up to this length are sorted by comparisons.
const SHORT: usize = 192;
/// The first elements of a line up to this many are kept in order while the line is read.
const KEPT: usize = 48;
/// Keys that are compared with a limit at once.
const TOGETHER: usize = 16;

/// Scratch memory for one line, kept from line to line.
pub(super) struct Room<W: Word> {
    /// Pairs; after a call of a function here the result stands in front.
    pub(super) pairs: Vec<W::Pair>,
    other: Vec<W::Pair>,
    counts: Vec<u32>,
}

impl<W: Word> Room<W> {
    pub(super) fn new() -> Room<W> {
        Room { pairs: vec![], other: vec![], counts: vec![] }
    }

    fn fill(&mut self, keys: &[W]) {
        self.pairs.clear();
        self.pairs.extend(keys.iter().enumerate().map(|(i, k)| k.at(i)));
    }

    /// Sorts a line whose keys differ in the lowest `bytes` bytes only.
    pub(super) fn sort(&mut self, keys: &[W], bytes: usize) {
        self.fill(keys);
        if keys.len() <= SHORT || keys.len() > u32::MAX as usize {
            self.pairs.sort_unstable();
        } else {
            self.radix(bytes);
        }
    }

    /// Sorts by the bytes of the keys, the lowest first. Each pass keeps the order of what is equal in its byte, and the pairs stand
    /// in the order of their positions before the first.
    fn radix(&mut self, bytes: usize) {
        let n = self.pairs.len();
        self.counts.clear();
        self.counts.resize(256 * bytes, 0);
        let counts = &mut self.counts[..];
        for p in &self.pairs {
            for b in 0..bytes {
                counts[b * 256 + W::byte(*p, b)] += 1;
            }
        }
        self.other.resize(n, W::Pair::default());
        for b in 0..bytes {
            let starts: &mut [u32; 256] = (&mut counts[b * 256..(b + 1) * 256]).try_into().expect("256 counts");
            if starts[W::byte(self.pairs[0], b)] as usize == n {
                continue;
            }
            let mut sum = 0;
            for c in starts.iter_mut() {
                sum += std::mem::replace(c, sum);
            }
            for p in &self.pairs {
                let to = &mut starts[W::byte(*p, b)];
                self.other[*to as usize] = *p;
                *to += 1;
            }
            std::mem::swap(&mut self.pairs, &mut self.other);
        }
    }

    /// The `count` least of a line, in order.
    pub(super) fn least(&mut self, keys: &[W], count: usize, bytes: usize) {
        match count {
            0 => self.pairs.clear(),
            1..=KEPT => self.keep(keys, count),
            _ if count > keys.len() / 2 => self.sort(keys, bytes),
            _ => {
                self.select(keys, count);
                self.pairs.sort_unstable();
            }
        }
    }

    /// The `count` least of a line: those of what was read are kept in order.
    fn keep(&mut self, keys: &[W], count: usize) {
        self.fill(&keys[..count]);
        let kept = &mut self.pairs[..];
        kept.sort_unstable();
        let mut limit = W::key(kept[count - 1]);
        let mut offer = |key: W, at: usize, limit: &mut W| {
            if key < *limit {
                let pair = key.at(at);
                let mut to = count - 1;
                while to > 0 && kept[to - 1] > pair {
                    kept[to] = kept[to - 1];
                    to -= 1;
                }
                kept[to] = pair;
                *limit = W::key(kept[count - 1]);
            }
        };
        let mut at = count;
        let (groups, rest) = keys[count..].as_chunks::<TOGETHER>();
        for group in groups {
            // An equal key stands behind those that are kept.
            if group.iter().fold(false, |any, k| any | (*k < limit)) {
                group.iter().enumerate().for_each(|(i, k)| offer(*k, at + i, &mut limit));
            }
            at += TOGETHER;
        }
        rest.iter().enumerate().for_each(|(i, k)| offer(*k, at + i, &mut limit));
    }

    /// The `count` least of a line, in no order: what may belong to them is collected, and the others are dropped from time to time.
    fn select(&mut self, keys: &[W], count: usize) {
        let most = count + (count / 2).max(256);
        let first = most.min(keys.len());
        self.fill(&keys[..first]);
        let pairs = &mut self.pairs;
        let cut = |pairs: &mut Vec<W::Pair>| {
            let limit = W::key(*pairs.select_nth_unstable(count - 1).1);
            pairs.truncate(count);
            limit
        };
        let mut limit = cut(pairs);
        for (at, key) in keys.iter().enumerate().skip(first) {
            if *key < limit {
                pairs.push(key.at(at));
                if pairs.len() == most {
                    limit = cut(pairs);
                }
            }
        }
        cut(pairs);
    }

    /// The pair at place `place` of the sorted line.
    pub(super) fn nth(&mut self, keys: &[W], place: usize) {
        self.fill(keys);
        let pair = *self.pairs.select_nth_unstable(place).1;
        self.pairs[0] = pair;
    }
}
