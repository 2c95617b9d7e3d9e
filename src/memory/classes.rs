//! Size classes: multiples of 64 bytes up to 4 KiB, then eight steps a power of two, from 8 MiB on 64 steps. Rounding
//! up wastes at most an eighth of a block, and at most a 64th of a large one.

/// Every block starts at a multiple of this: a cache line, and the widest vector.
pub(super) const ALIGN: usize = 64;

const FINE_POWER: usize = 12;
const FINE: usize = 1 << FINE_POWER;
const FINE_CLASSES: usize = FINE / ALIGN;
const STEPS: usize = 8;
const LARGE_POWER: usize = 23;
const LARGE_STEPS: usize = 64;
/// The largest blocks have 2⁴⁷ bytes, the user half of the address space.
const LAST_POWER: usize = 46;
/// Classes up to 8 MiB.
const SMALL_CLASSES: usize = FINE_CLASSES + (LARGE_POWER - FINE_POWER) * STEPS;

/// Number of classes.
pub(super) const CLASSES: usize = SMALL_CLASSES + (LAST_POWER - LARGE_POWER + 1) * LARGE_STEPS;

/// The smallest class that holds that many bytes, and its size; none above 2⁴⁷.
pub(super) fn class_of(bytes: usize) -> Option<(usize, usize)> {
    if bytes <= FINE {
        let granules = bytes.div_ceil(ALIGN).max(1);
        return Some((granules - 1, granules * ALIGN));
    }
    // 2^power < bytes <= 2^(power + 1)
    let power = (bytes - 1).ilog2() as usize;
    let (first, count) = match power {
        p if p > LAST_POWER => return None,
        p if p >= LARGE_POWER => (SMALL_CLASSES + (p - LARGE_POWER) * LARGE_STEPS, LARGE_STEPS),
        p => (FINE_CLASSES + (p - FINE_POWER) * STEPS, STEPS),
    };
    let (base, step) = (1 << power, (1 << power) / count);
    let steps = (bytes - base).div_ceil(step);
    Some((first + steps - 1, base + steps * step))
}

/// The size of the block that an allocator hands out for that many bytes; the bytes themselves where they are more than any block has.
pub fn block_bytes(bytes: usize) -> usize {
    class_of(bytes).map_or(bytes, |(_, size)| size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_dense_monotone_and_waste_at_most_an_eighth() {
        let mut expected = 0;
        let mut bytes = 0;
        while let Some((class, size)) = class_of(bytes) {
            assert_eq!(class, expected, "{bytes}");
            assert_eq!(class_of(size), Some((class, size)));
            assert!(size >= bytes && size % ALIGN == 0);
            let part = if bytes > 1 << LARGE_POWER { 64 } else { 8 };
            assert!(bytes < FINE || (size - bytes) <= bytes.div_ceil(part), "{bytes} in {size}");
            expected += 1;
            bytes = size + 1;
        }
        assert_eq!(expected, CLASSES);
        assert_eq!(bytes, (1 << 47) + 1);
        assert_eq!(class_of(usize::MAX), None);
        assert_eq!(class_of(0), Some((0, 64)));
    }
}
