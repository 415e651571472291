//! A team whose messages another process carries: `metastate-mpi` (`cluster/mpi`), which speaks MPI and has this process as its child. What goes over the socket is written down there.

use std::fmt;
use std::io::{BufReader, BufWriter, Read, Result, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use metastate::linalg::team::Team;

/// Numbers that are turned into bytes at once.
const AT_ONCE: usize = 1 << 13;

/// This process and the others.
pub struct Carried {
    rank: usize,
    size: usize,
    wire: Mutex<Wire>,
    received: AtomicU64,
    /// What to do when the carrier is gone: it must end the process.
    lost: Box<dyn Fn() + Send + Sync>,
}

struct Wire {
    from: Box<dyn Read + Send>,
    to: Box<dyn Write + Send>,
}

impl fmt::Debug for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {}", self.rank + 1, self.size)
    }
}

impl Carried {
    /// Over a socket, from both of its ends. `lost` is called when nothing comes any more, and must end the process.
    pub fn new(
        (rank, size): (usize, usize),
        from: impl Read + Send + 'static,
        to: impl Write + Send + 'static,
        lost: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let wire =
            Wire { from: Box::new(BufReader::with_capacity(8 * AT_ONCE, from)), to: Box::new(BufWriter::with_capacity(8 * AT_ONCE, to)) };
        Carried { rank, size, wire: Mutex::new(wire), received: AtomicU64::new(0), lost: Box::new(lost) }
    }

    /// One question and its answer. There is none when the carrier is gone, and then this process goes, too.
    fn ask<T>(&self, what: impl FnOnce(&mut Wire) -> Result<T>, otherwise: T) -> T {
        let mut wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        what(&mut wire).unwrap_or_else(|_| {
            (self.lost)();
            otherwise
        })
    }
}

impl Wire {
    fn begin(&mut self, kind: u8, lengths: impl Iterator<Item = usize>) -> Result<()> {
        self.to.write_all(&[kind])?;
        lengths.into_iter().try_for_each(|n| self.to.write_all(&(n as u64).to_le_bytes()))
    }

    fn numbers(&mut self, numbers: &[f64]) -> Result<()> {
        numbers.iter().try_for_each(|x| self.to.write_all(&x.to_le_bytes()))?;
        self.to.flush()
    }

    fn answer(&mut self, numbers: &mut [f64]) -> Result<()> {
        let mut bytes = vec![0u8; 8 * AT_ONCE];
        for part in numbers.chunks_mut(AT_ONCE) {
            let bytes = &mut bytes[..8 * part.len()];
            self.from.read_exact(bytes)?;
            for (x, b) in part.iter_mut().zip(bytes.chunks_exact(8)) {
                *x = f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
            }
        }
        Ok(())
    }
}

impl Team for Carried {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    fn gather(&self, whole: &mut [f64], ends: &[usize]) {
        let start = if self.rank == 0 { 0 } else { ends[self.rank - 1] };
        let own = start..ends[self.rank];
        let all = ends.last().copied().unwrap_or(0);
        self.received.fetch_add(8 * (all - own.len()) as u64, Ordering::Relaxed);
        self.ask(
            |wire| {
                wire.begin(b'G', ends.iter().copied())?;
                wire.numbers(&whole[own])?;
                wire.answer(&mut whole[..all])
            },
            (),
        );
    }

    fn exchange(&self, parcels: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let arrived = self.ask(
            |wire| {
                wire.begin(b'X', parcels.iter().map(Vec::len))?;
                parcels.iter().try_for_each(|parcel| wire.to.write_all(parcel))?;
                wire.to.flush()?;
                drop(parcels);
                let mut lengths = Vec::with_capacity(self.size);
                for _ in 0..self.size {
                    let mut bytes = [0u8; 8];
                    wire.from.read_exact(&mut bytes)?;
                    lengths.push(u64::from_le_bytes(bytes) as usize);
                }
                let one = |n: usize| {
                    let mut parcel = vec![0u8; n];
                    wire.from.read_exact(&mut parcel)?;
                    Ok(parcel)
                };
                lengths.into_iter().map(one).collect::<Result<Vec<_>>>()
            },
            vec![Vec::new(); self.size],
        );
        self.received.fetch_add(arrived.iter().map(|p| p.len() as u64).sum(), Ordering::Relaxed);
        arrived
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_lost_carrier_is_told_once_and_nothing_waits() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let calls = std::sync::Arc::new(AtomicU64::new(0));
        let seen = std::sync::Arc::clone(&calls);
        let team = Carried::new((0, 2), ours.try_clone().unwrap(), ours, move || {
            seen.fetch_add(1, Ordering::Relaxed);
        });
        drop(theirs);
        team.gather(&mut [1.0, 2.0], &[1, 2]);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert_eq!((team.rank(), team.size(), team.received()), (0, 2, 8));
    }

    #[test]
    fn numbers_and_parcels_go_over_as_they_are() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let carrier = std::thread::spawn(move || {
            // G, the ends 1 and 3, one number; the answer is the whole.
            let mut asked = [0u8; 1 + 16 + 8];
            theirs.read_exact(&mut asked).unwrap();
            assert_eq!((asked[0], asked[1], asked[9]), (b'G', 1, 3));
            for x in [0.1, -2.5, f64::MIN_POSITIVE] {
                theirs.write_all(&f64::to_le_bytes(x)).unwrap();
            }
            let mut asked = [0u8; 1 + 16 + 5];
            theirs.read_exact(&mut asked).unwrap();
            assert_eq!((asked[0], &asked[17..]), (b'X', &[7, 7, 1, 2, 3][..]));
            theirs.write_all(&[2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 7, 9]).unwrap();
        });
        let team = Carried::new((0, 2), ours.try_clone().unwrap(), ours, || panic!("it is there"));
        let mut whole = [0.1, 0.0, 0.0];
        team.gather(&mut whole, &[1, 3]);
        assert_eq!(whole, [0.1, -2.5, f64::MIN_POSITIVE]);
        assert_eq!(team.exchange(vec![vec![7, 7], vec![1, 2, 3]]), [vec![7, 7], vec![9]]);
        carrier.join().unwrap();
    }
}
