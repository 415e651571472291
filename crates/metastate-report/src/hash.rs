//! SHA-256 in hexadecimal.

use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::{Result, reading};

/// Of bytes in memory.
pub fn of_bytes(bytes: &[u8]) -> String {
    hexadecimal(Sha256::digest(bytes).as_slice())
}

/// Size and hash of a file.
pub fn of_file(path: &Path) -> Result<(u64, String)> {
    let mut file = std::fs::File::open(path).map_err(reading(path))?;
    let (mut hash, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0u8; 1 << 18]);
    loop {
        match file.read(&mut buffer).map_err(reading(path))? {
            0 => return Ok((bytes, hexadecimal(hash.finalize().as_slice()))),
            n => {
                hash.update(&buffer[..n]);
                bytes += n as u64;
            }
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
