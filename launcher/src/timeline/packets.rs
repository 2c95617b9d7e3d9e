//! The packets of a trace file.

use std::io::{self, Read};

/// Bytes of a packet that are read: more is no packet of a timeline.
const LARGEST: u64 = 64 << 20;

/// Reads the packets of a trace one after the other. A file is a message whose field 1 repeats; what is not such a field ends it.
pub struct Packets<R> {
    from: R,
    packet: Vec<u8>,
    whole: u64,
}

impl<R: Read> Packets<R> {
    pub fn new(from: R) -> Packets<R> {
        Packets { from, packet: vec![], whole: 0 }
    }

    /// Bytes of the packets that have been read: what comes behind a packet that is cut off would be read as its end.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// The next packet; `None` at the end, and where no whole packet follows.
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        // The field `packet`, then the length of the packet in groups of seven bits.
        if self.byte()? != Some(0x0a) {
            return Ok(None);
        }
        let (mut length, mut read) = (0u64, 1u64);
        loop {
            let Some(b) = self.byte()? else { return Ok(None) };
            length |= u64::from(b & 0x7f).checked_shl(7 * (read as u32 - 1)).unwrap_or(0);
            read += 1;
            if b < 0x80 {
                break;
            }
            if read > 10 {
                return Ok(None);
            }
        }
        self.packet.clear();
        if length > LARGEST || ((&mut self.from).take(length).read_to_end(&mut self.packet)? as u64) < length {
            return Ok(None);
        }
        self.whole += read + length;
        Ok(Some(&self.packet))
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let mut b = [0];
        Ok((self.from.read(&mut b)? == 1).then_some(b[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> u64 {
        let mut packets = Packets::new(bytes);
        while packets.next().unwrap().is_some() {}
        packets.whole()
    }

    #[test]
    fn broken_lengths_end_the_file() {
        for bytes in [&[][..], &[1, 2], &[0x0a], &[0x0a, 0x80], &[0x0a, 5, 1], &[0x0a; 8], &[0xff; 12]] {
            assert_eq!(whole(bytes), 0, "{bytes:?}");
        }
        // Three packets of ten bytes, and one that is cut off.
        assert_eq!(whole(&[0x0a; 40]), 36);
        assert_eq!(whole(&[vec![0x0a], vec![0xff; 20]].concat()), 0);
        // A length of an exbibyte.
        assert_eq!(whole(&[&[0x0a][..], &[0x80; 8], &[0x10, 1, 2]].concat()), 0);
    }
}
