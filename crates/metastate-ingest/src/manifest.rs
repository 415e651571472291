//! Which bytes a result came from: name, size and SHA-256 of every input.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest, Sha256};

use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::source::Source;

/// One input as it was read.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct InputRecord {
    /// As the user gave it, or as the pattern expanded.
    pub name: String,
    /// Size as stored.
    pub bytes: u64,
    /// SHA-256 of the stored bytes, in hexadecimal.
    pub sha256: String,
}

/// SHA-256 of a text, in hexadecimal.
pub(crate) fn hash_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Hashes all sources in the background of the reading; `stop` ends it early.
pub(crate) fn hash_all(sources: &[Source], stop: &AtomicBool) -> Result<Vec<InputRecord>> {
    let mut records = Vec::with_capacity(sources.len());
    let mut buffer = vec![0u8; 1 << 18];
    for source in sources {
        let mut file = source.open_stored()?;
        let mut hash = Sha256::new();
        let mut bytes = 0u64;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(IngestError::new(Code::Cancelled, "hashing was interrupted"));
            }
            let n = file.read(&mut buffer).map_err(|e| source.read_error(e))?;
            if n == 0 {
                break;
            }
            hash.update(&buffer[..n]);
            bytes += n as u64;
        }
        if bytes != source.bytes {
            return Err(IngestError::new(Code::Read, format!("this file had {} bytes at first and then {bytes}", source.bytes))
                .file(&source.name)
                .remedy("wait until it is written"));
        }
        let sha256 = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        records.push(InputRecord { name: source.name.clone(), bytes, sha256 });
    }
    Ok(records)
}
