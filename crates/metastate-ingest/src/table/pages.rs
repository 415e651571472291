//! Looks at the page headers of a Parquet column before the decoder does.
//!
//! The decoder allocates what a page header promises, up to 2 GiB, before it unpacks the page. A forged header of a few bytes must
//! not get that far. Only the sizes are read here: a walk over Thrift's compact encoding that skips all else.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Pages above this size must be believable: no codec shrinks real data more than [`BEST_RATIO`] times.
const LARGE_PAGE: u64 = 16 << 20;
const BEST_RATIO: u64 = 1100;
/// Headers with long statistics; beyond, they are forged.
const LONGEST_HEADER: usize = 1 << 20;
/// Structures inside structures.
const DEEPEST: usize = 8;

/// Walks over the pages in `start..start + length`; says what is wrong with the first that is.
pub(super) fn check(file: &mut File, start: u64, length: u64) -> Result<(), String> {
    let end = start.saturating_add(length);
    let mut at = start;
    let mut buffer = Vec::new();
    while at < end {
        let header = read_header(file, at, end, &mut buffer)?;
        let (packed, unpacked) = (size(header.packed)?, size(header.unpacked)?);
        if unpacked > LARGE_PAGE && unpacked > packed.saturating_mul(BEST_RATIO) {
            return Err(format!("a page promises {unpacked} bytes from {packed}"));
        }
        if header.dictionary_values.is_some_and(|n| n < 0 || n as u64 > unpacked) {
            return Err("a dictionary promises more values than bytes".to_owned());
        }
        at = at.saturating_add(header.bytes).saturating_add(packed);
    }
    if at == end { Ok(()) } else { Err("a page goes on beyond its column".to_owned()) }
}

fn size(n: Option<i64>) -> Result<u64, String> {
    n.and_then(|n| u64::try_from(n).ok()).ok_or_else(|| "a page header has no valid sizes".to_owned())
}

#[derive(Default)]
struct PageHeader {
    unpacked: Option<i64>,
    packed: Option<i64>,
    dictionary_values: Option<i64>,
    /// Length of the header itself.
    bytes: u64,
}

fn read_header(file: &mut File, at: u64, end: u64, buffer: &mut Vec<u8>) -> Result<PageHeader, String> {
    let mut size = 256;
    loop {
        file.seek(SeekFrom::Start(at)).map_err(|e| e.to_string())?;
        buffer.clear();
        file.take((size as u64).min(end - at)).read_to_end(buffer).map_err(|e| e.to_string())?;
        let mut walk = PageWalk { bytes: buffer, at: 0 };
        if let Some(mut header) = walk.page() {
            header.bytes = walk.at as u64;
            return Ok(header);
        }
        // Either the header is longer than what was read, or there is none.
        if size >= LONGEST_HEADER || (buffer.len() as u64) < size as u64 {
            return Err("a page header cannot be read".to_owned());
        }
        size *= 16;
    }
}

struct PageWalk<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl PageWalk<'_> {
    fn byte(&mut self) -> Option<u8> {
        let b = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(b)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let b = self.byte()?;
            n |= u64::from(b & 0x7f) << shift;
            if b & 0x80 == 0 {
                return Some(n);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let n = self.varint()?;
        Some((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    fn skip_bytes(&mut self, n: u64) -> Option<()> {
        self.at = self.at.checked_add(usize::try_from(n).ok()?).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }

    /// The number and type of the next field; `Some(None)` at the end of the structure.
    fn field(&mut self, last: &mut i64) -> Option<Option<u8>> {
        let b = self.byte()?;
        if b == 0 {
            return Some(None);
        }
        *last = if b >> 4 == 0 { self.integer()? } else { last.checked_add(i64::from(b >> 4))? };
        Some(Some(b & 0x0f))
    }

    fn page(&mut self) -> Option<PageHeader> {
        let mut header = PageHeader::default();
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            match (id, kind) {
                (2, 5) => header.unpacked = Some(self.integer()?),
                (3, 5) => header.packed = Some(self.integer()?),
                (7, 12) => {
                    let mut inner = 0;
                    while let Some(kind) = self.field(&mut inner)? {
                        match (inner, kind) {
                            (1, 5) => header.dictionary_values = Some(self.integer()?),
                            _ => self.skip(kind, 1)?,
                        }
                    }
                }
                _ => self.skip(kind, 0)?,
            }
        }
        Some(header)
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match kind {
            1 | 2 => Some(()),
            3 => self.skip_bytes(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.skip_bytes(8),
            8 => {
                let n = self.varint()?;
                self.skip_bytes(n)
            }
            12 => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, depth + 1)?;
                }
                Some(())
            }
            _ => None, // page headers hold no lists and no maps
        }
    }
}
