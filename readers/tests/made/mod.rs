//! Files of arrays, made byte by byte.

use std::io::Write;

/// A `.npy` file with this description of its dtype, and this shape as Python writes it.
pub fn npy(version: u8, descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    match version {
        1 => file.extend((header.len() as u16).to_le_bytes()),
        _ => file.extend((header.len() as u32).to_le_bytes()),
    }
    file.extend(header.bytes());
    file.extend(data);
    file
}

/// A zip file with these members.
pub fn zip(members: &[(&str, &[u8])], deflated: bool) -> Vec<u8> {
    let (mut file, mut directory) = (vec![], vec![]);
    for (name, bytes) in members {
        let stored = match deflated {
            false => bytes.to_vec(),
            true => {
                let mut encoder = flate2::write::DeflateEncoder::new(vec![], flate2::Compression::default());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
        };
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        let mut common = vec![];
        for half in [20u16, 0, if deflated { 8 } else { 0 }, 0, 0] {
            common.extend(half.to_le_bytes());
        }
        for word in [crc.sum(), stored.len() as u32, bytes.len() as u32] {
            common.extend(word.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        let offset = file.len() as u32;
        file.extend(b"PK\x03\x04");
        file.extend(&common);
        file.extend(0u16.to_le_bytes());
        file.extend(name.bytes());
        file.extend(&stored);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(&common);
        // Extra, comment, disk and attributes.
        directory.extend([0; 12]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.bytes());
    }
    let (size, offset, count) = (directory.len() as u32, file.len() as u32, members.len() as u16);
    file.extend(directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    file.extend([size.to_le_bytes(), offset.to_le_bytes()].concat());
    file.extend([0; 2]);
    file
}
