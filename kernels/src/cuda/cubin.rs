//! Registers, stack and shared memory of compiled CUDA kernels, read from a CUBIN: an ELF file whose section `.nv.info` lists
//! attributes of functions.

use crate::{KernelError, Result};

/// Resources of one kernel (`__global__` function).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Name of the kernel's symbol.
    pub entry: String,
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of stack per thread: spilled registers, and arrays indexed at run time.
    pub stack: u32,
    /// Bytes of static shared memory per block.
    pub shared: u32,
}

/// Attribute `EIATTR_FRAME_SIZE`: bytes of stack per thread.
const FRAME_SIZE: u8 = 0x11;
/// Attribute `EIATTR_REGCOUNT`: registers per thread.
const REGISTER_COUNT: u8 = 0x2f;
/// Format `EIFMT_SVAL`: the header's last two bytes are the length of the value that follows it.
const SIZED: u8 = 4;

/// Returns the resources of each kernel of a CUBIN, sorted by name.
///
/// # Errors
/// If `code` is not a CUBIN.
pub fn usage(code: &[u8]) -> Result<Vec<Usage>> {
    parse(code).ok_or_else(|| KernelError::device("not machine code of a GPU (a CUBIN)"))
}

fn word(code: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(code.get(at..at + 4)?.try_into().ok()?))
}

fn long(code: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(code.get(at..at + 8)?.try_into().ok()?)).ok()
}

fn text(code: &[u8], at: usize) -> Option<&str> {
    let rest = code.get(at..)?;
    std::str::from_utf8(&rest[..rest.iter().position(|b| *b == 0)?]).ok()
}

struct Section<'a> {
    name: &'a str,
    at: usize,
    size: usize,
    link: usize,
}

fn parse(code: &[u8]) -> Option<Vec<Usage>> {
    if code.get(..5)? != b"\x7fELF\x02" {
        return None;
    }
    let half = |at: usize| Some(u16::from_le_bytes(code.get(at..at + 2)?.try_into().ok()?) as usize);
    let (table, each, count, names) = (long(code, 0x28)?, half(0x3a)?, half(0x3c)?, half(0x3e)?);
    let names = long(code, table + names * each + 0x18)?;
    let sections: Vec<Section> = (0..count)
        .map(|i| {
            let s = table + i * each;
            let name = text(code, names + word(code, s)? as usize)?;
            Some(Section {
                name,
                at: long(code, s + 0x18)?,
                size: long(code, s + 0x20)?,
                link: word(code, s + 0x28)? as usize,
            })
        })
        .collect::<Option<_>>()?;
    let symbols = sections.iter().find(|s| s.name == ".symtab")?;
    let strings = sections.get(symbols.link)?.at;
    let symbol = |i: u32| text(code, strings + word(code, symbols.at + i as usize * 24)? as usize);
    let mut found: Vec<Usage> = vec![];
    // On GPUs where CUDA reserves shared memory in each block, the size of `.nv.shared.*` includes it.
    for s in &sections {
        if let Some(entry) = s.name.strip_prefix(".nv.constant0.") {
            let shared =
                sections.iter().find(|x| x.name.strip_prefix(".nv.shared.") == Some(entry)).map_or(0, |x| x.size);
            found.push(Usage { entry: entry.to_string(), registers: 0, stack: 0, shared: shared as u32 });
        }
    }
    let info = sections.iter().find(|s| s.name == ".nv.info")?;
    let (mut at, end) = (info.at, info.at + info.size);
    while at + 4 <= end {
        let (form, attribute, size) = (*code.get(at)?, *code.get(at + 1)?, half(at + 2)?);
        at += 4;
        if form != SIZED {
            continue;
        }
        if size >= 8 && matches!(attribute, FRAME_SIZE | REGISTER_COUNT) {
            let (of, value) = (symbol(word(code, at)?)?, word(code, at + 4)?);
            if let Some(u) = found.iter_mut().find(|u| u.entry == of) {
                match attribute {
                    FRAME_SIZE => u.stack = value,
                    _ => u.registers = value,
                }
            }
        }
        at += size;
    }
    found.sort_by(|a, b| a.entry.cmp(&b.entry));
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_machine_code_is_refused() {
        for code in [&b""[..], b"\x7fELF\x02", b"something else entirely"] {
            assert_eq!(usage(code).unwrap_err().to_string(), "not machine code of a GPU (a CUBIN)");
        }
    }
}
