//! Checks of a shared library before it is mapped: a file that is cut off kills the process that reads behind its end.

use crate::error::{Error, Result};

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: u16 = 0;

/// Bytes of the header of a 64-bit file.
const HEADER: usize = 64;
/// Bytes of a program header.
const SEGMENT: usize = 56;
/// The type of a shared object.
const SHARED: u16 = 3;

/// The little-endian number of `size` bytes, 8 at most, from byte `at` on; none beyond the end.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut all = [0; 8];
    all[..size].copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
    Some(u64::from_le_bytes(all))
}

/// Checks the header and that all segments are there (ELF-64, Tool Interface Standard).
///
/// # Errors
/// The file is no shared library of this machine, or cut off.
pub(super) fn check(bytes: &[u8], file: &str) -> Result<()> {
    let no = |why: String, help: &str| Error::registry(format!("{file} cannot be loaded: {why}")).help(help);
    let other = "give the path of a shared library (.so) that was built for this machine";
    if bytes.get(..4) != Some(b"\x7fELF") {
        let begins = &bytes[..bytes.len().min(4)];
        return Err(no(
            format!("it is not a shared library: it begins with {begins:02x?}, not with 7f 45 4c 46"),
            other,
        ));
    }
    let cut = |need: u64| {
        let why = format!("it is cut off: it should have {need} bytes or more, and has {}", bytes.len());
        no(why, "build or copy it again")
    };
    if bytes.len() < HEADER {
        return Err(cut(HEADER as u64));
    }
    let half = |at: usize| number(bytes, at, 2).unwrap_or(0) as u16;
    let (class, order, kind, machine) = (bytes[4], bytes[5], half(16), half(18));
    if (class, order, kind) != (2, 1, SHARED) || (machine != MACHINE && MACHINE != 0) {
        let why = format!(
            "it is not a shared library of this machine (class {class}, order {order}, type {kind}, machine {machine})"
        );
        return Err(no(why, other));
    }
    let (table, size, count) = (number(bytes, 32, 8).unwrap_or(0), u64::from(half(54)), u64::from(half(56)));
    if size as usize != SEGMENT {
        return Err(no(format!("its program headers have {size} bytes, not {SEGMENT}"), other));
    }
    let end = table.saturating_add(size * count);
    if end > bytes.len() as u64 {
        return Err(cut(end));
    }
    for i in 0..count {
        let at = (table + i * size) as usize;
        let (from, length) = (number(bytes, at + 8, 8).unwrap_or(0), number(bytes, at + 32, 8).unwrap_or(0));
        let end = from.saturating_add(length);
        if end > bytes.len() as u64 {
            return Err(cut(end));
        }
    }
    Ok(())
}

/// Whether the file has a section of that name. Never where it has no table of sections.
pub(super) fn has_section(bytes: &[u8], name: &str) -> bool {
    let field = |at: usize, size: usize| number(bytes, at, size).and_then(|n| usize::try_from(n).ok());
    let (Some(table), Some(size), Some(count), Some(names)) = (field(40, 8), field(58, 2), field(60, 2), field(62, 2))
    else {
        return false;
    };
    let entry = |i: usize| table.checked_add(i.checked_mul(size)?);
    let Some(names) = entry(names).and_then(|at| field(at.checked_add(24)?, 8)) else { return false };
    let is_it = |i: usize| {
        let from = names.checked_add(field(entry(i)?, 4)?)?;
        let found = bytes.get(from..from.checked_add(name.len() + 1)?)?;
        Some(found.split_last() == Some((&0, name.as_bytes())))
    };
    (0..count).any(|i| is_it(i) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_found_by_their_whole_names() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(has_section(&own, ".text") && has_section(&own, ".dynsym"));
        assert!(
            !has_section(&own, ".tex")
                && !has_section(&own, ".nv_fatbin")
                && !has_section(&own[..own.len() / 2], ".text")
        );
    }

    /// A library that is there where tests run: this test's own program is one in form.
    #[test]
    fn every_cut_is_refused_and_the_whole_is_not() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        check(&own, "self").unwrap();
        let end = (0..own.len()).rev().find(|n| check(&own[..*n], "self").is_err()).unwrap();
        for length in (0..end).step_by(1 + end / 500).chain([0, 1, 3, 4, 63, 64, 65, end]) {
            let e = check(&own[..length], "lib.so").unwrap_err().to_string();
            assert!(e.contains("lib.so cannot be loaded: it is"), "{length}: {e}");
        }
        for (at, name) in [(4, "class"), (5, "order"), (16, "type"), (18, "machine")] {
            let mut other = own[..4096].to_vec();
            other[at] ^= 7;
            assert!(check(&other, "lib.so").unwrap_err().to_string().contains("of this machine"), "{name}");
        }
        // Any bytes give an error and no panic.
        let mut state = 7u64;
        for _ in 0..4000 {
            let mut changed = own[..4096].to_vec();
            for _ in 0..4 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                changed[(state >> 33) as usize % 1024] = (state >> 20) as u8;
            }
            let _ = (check(&changed, "lib.so"), has_section(&changed, ".text"));
        }
    }
}
