//! Size classes: multiples of 64 bytes up to 4 KiB, then eight steps a power of two, so that rounding up wastes at most an
//! eighth.

/// Every block starts at a multiple of this: a cache line, and the widest vector.
pub(super) const ALIGN: usize = 64;

const FINE: usize = 4096;
const FINE_CLASSES: usize = FINE / ALIGN;
const STEPS: usize = 8;
/// The largest blocks have 2⁴⁷ bytes, the user half of the address space.
const LAST_POWER: usize = 46;

/// Number of classes.
pub(super) const CLASSES: usize = FINE_CLASSES + (LAST_POWER - FINE.ilog2() as usize + 1) * STEPS;

/// The smallest class that holds that many bytes, and its size; none above 2⁴⁷.
pub(super) fn class_of(bytes: usize) -> Option<(usize, usize)> {
    if bytes <= FINE {
        let granules = bytes.div_ceil(ALIGN).max(1);
        return Some((granules - 1, granules * ALIGN));
    }
    // 2^power < bytes <= 2^(power + 1)
    let power = (bytes - 1).ilog2() as usize;
    if power > LAST_POWER {
        return None;
    }
    let (base, step) = (1 << power, (1 << power) / STEPS);
    let steps = (bytes - base).div_ceil(step);
    let class = FINE_CLASSES + (power - FINE.ilog2() as usize) * STEPS + steps - 1;
    Some((class, base + steps * step))
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
            assert!(bytes < FINE || (size - bytes) <= bytes.div_ceil(8), "{bytes} in {size}");
            expected += 1;
            bytes = size + 1;
        }
        assert_eq!(expected, CLASSES);
        assert_eq!(bytes, (1 << 47) + 1);
        assert_eq!(class_of(usize::MAX), None);
        assert_eq!(class_of(0), Some((0, 64)));
    }
}
