//! SHA-256 in hexadecimal.

use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::{Result, damaged, reading};

/// Of bytes in memory.
pub fn of_bytes(bytes: &[u8]) -> String {
    hexadecimal(Sha256::digest(bytes).as_slice())
}

/// Size and hash of a regular file; of anything else nothing would ever be known.
pub fn of_file(path: &Path) -> Result<(u64, String)> {
    if !path.metadata().map_err(reading(path))?.is_file() {
        return Err(damaged(path, "is not a regular file"));
    }
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
