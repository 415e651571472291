//! `mpirun -n 4 metastate fit ...` starts this program beside every `metastate`: it speaks MPI, and carries what the fits say to each other. No mathematics is here, and no MPI is there.
//!
//! The fit is a child of this process. Its standard input is a socket, on which it asks for two things; all numbers are little-endian, lengths are 64 bits long:
//!
//! - `G`, then for each process where its part ends, then the own part: the answer is the whole, of 64-bit floating numbers.
//! - `X`, then for each process the length of the parcel for it in bytes, then the parcels: the answer has the same form.
//!
//! A fit that ends takes its carrier with it, and a carrier that ends its fit; one that ends with an error takes all of them.

#![forbid(unsafe_code)]

use std::io::{BufReader, Read, Write};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode};
use std::time::Duration;

use mpi::Count;
use mpi::datatype::{Partition, PartitionMut};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

/// What goes over at once: counts in MPI end at 2^31.
const WINDOW: usize = 1 << 24;
/// A refusal that all processes meet is told by the first; the others leave it this long to end them.
const PATIENCE: Duration = Duration::from_secs(4);

type Done<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let Some(universe) = mpi::initialize() else {
        eprintln!("error: MPI cannot be used");
        return ExitCode::FAILURE;
    };
    let world = universe.world();
    match carry(&world) {
        // All come to this point, and MPI ends with `universe`.
        Ok(0) => ExitCode::SUCCESS,
        Ok(code) => {
            if world.rank() > 0 {
                std::thread::sleep(PATIENCE);
            }
            world.abort(code)
        }
        Err(e) => {
            eprintln!("error: process {} of {} is gone, so all of them end: {e}; a checkpoint that was written is kept, and --resume goes on from it", world.rank() + 1, world.size());
            world.abort(1)
        }
    }
}

/// Starts the fit and serves it to its end; its exit code.
fn carry(world: &SimpleCommunicator) -> Done<i32> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut child = start(world, theirs)?;
    let mut requests = BufReader::with_capacity(1 << 16, ours.try_clone()?);
    let mut answers = ours;
    let mut what = [0u8];
    while requests.read(&mut what)? == 1 {
        let lengths = read_lengths(&mut requests, world.size())?;
        match what[0] {
            b'G' => gather(world, &lengths, &mut requests, &mut answers)?,
            b'X' => exchange(world, &lengths, &mut requests, &mut answers)?,
            other => return Err(format!("a message of unknown kind {other}").into()),
        }
    }
    let ended = child.wait()?;
    if let Some(signal) = ended.signal() {
        return Err(format!("it was killed (signal {signal})").into());
    }
    Ok(ended.code().unwrap_or(1))
}

/// The program `metastate` that started this one, or the one beside it.
fn start(world: &SimpleCommunicator, socket: UnixStream) -> Done<Child> {
    let program = match std::env::var_os("METASTATE_PROGRAM") {
        Some(program) => program.into(),
        None => std::env::current_exe()?.with_file_name("metastate"),
    };
    let mut command = Command::new(&program);
    command.args(std::env::args_os().skip(1)).stdin(OwnedFd::from(socket));
    command.env("METASTATE_TEAM", format!("{}/{}", world.rank(), world.size()));
    command.spawn().map_err(|e| format!("{}: {e}", program.display()).into())
}

fn read_lengths(from: &mut impl Read, n: i32) -> Done<Vec<usize>> {
    (0..n)
        .map(|_| {
            let mut bytes = [0u8; 8];
            from.read_exact(&mut bytes)?;
            Ok(usize::try_from(u64::from_le_bytes(bytes))?)
        })
        .collect()
}

/// Where the parts of each process lie when they are packed.
fn places(counts: &[Count]) -> Vec<Count> {
    counts.iter().scan(0, |at, n| Some(std::mem::replace(at, *at + n))).collect()
}

/// As much of a range as goes over in one turn.
fn window(range: Range<usize>, turn: usize) -> Range<usize> {
    let start = (range.start + turn * WINDOW).min(range.end);
    start..(start + WINDOW).min(range.end)
}

fn counts(ranges: &[Range<usize>]) -> Vec<Count> {
    ranges.iter().map(|r| r.len() as Count).collect()
}

/// Everybody's part of a list of numbers, for everybody.
fn gather(world: &SimpleCommunicator, ends: &[usize], from: &mut impl Read, to: &mut impl Write) -> Done<()> {
    let rank = usize::try_from(world.rank())?;
    let part = |r: usize| 8 * (if r == 0 { 0 } else { ends[r - 1] })..8 * ends[r];
    let mut whole = vec![0u8; 8 * ends.last().copied().unwrap_or(0)];
    from.read_exact(&mut whole[part(rank)])?;
    let turns = (0..ends.len()).map(|r| part(r).len().div_ceil(WINDOW)).max().unwrap_or(0);
    for turn in 0..turns {
        let now: Vec<Range<usize>> = (0..ends.len()).map(|r| window(part(r), turn)).collect();
        let counts = counts(&now);
        let at = places(&counts);
        let own = whole[now[rank].clone()].to_vec();
        let mut all = vec![0u8; now.iter().map(Range::len).sum()];
        world.all_gather_varcount_into(&own[..], &mut PartitionMut::new(&mut all[..], counts, &at[..]));
        for (range, at) in now.into_iter().zip(at) {
            let start = usize::try_from(at)?;
            let n = range.len();
            whole[range].copy_from_slice(&all[start..start + n]);
        }
    }
    Ok(to.write_all(&whole)?)
}

/// A parcel from everybody to everybody.
fn exchange(world: &SimpleCommunicator, sizes: &[usize], from: &mut impl Read, to: &mut impl Write) -> Done<()> {
    let sizes64: Vec<u64> = sizes.iter().map(|n| *n as u64).collect();
    let mut arriving64 = vec![0u64; sizes.len()];
    world.all_to_all_into(&sizes64[..], &mut arriving64[..]);
    let mut longest = vec![0u64; sizes.len()];
    world.all_gather_into(&sizes64.iter().copied().max().unwrap_or(0), &mut longest[..]);
    let arriving: Vec<usize> = arriving64.iter().map(|n| usize::try_from(*n)).collect::<Result<_, _>>()?;
    let mut parcels: Vec<Vec<u8>> = Vec::with_capacity(sizes.len());
    for n in sizes {
        let mut parcel = vec![0u8; *n];
        from.read_exact(&mut parcel)?;
        parcels.push(parcel);
    }
    let mut arrived: Vec<Vec<u8>> = arriving.iter().map(|n| Vec::with_capacity(*n)).collect();
    let turns = longest.iter().map(|n| n.div_ceil(WINDOW as u64)).max().unwrap_or(0);
    for turn in 0..usize::try_from(turns)? {
        let out: Vec<Range<usize>> = sizes.iter().map(|n| window(0..*n, turn)).collect();
        let into: Vec<Range<usize>> = arriving.iter().map(|n| window(0..*n, turn)).collect();
        let (sent, received) = (counts(&out), counts(&into));
        let packed: Vec<u8> = parcels.iter().zip(out).flat_map(|(parcel, range)| parcel[range].iter().copied()).collect();
        let mut unpacked = vec![0u8; into.iter().map(Range::len).sum()];
        let (here, there) = (places(&sent), places(&received));
        world.all_to_all_varcount_into(
            &Partition::new(&packed[..], sent, here),
            &mut PartitionMut::new(&mut unpacked[..], received, &there[..]),
        );
        for ((arrived, at), range) in arrived.iter_mut().zip(there).zip(into) {
            let start = usize::try_from(at)?;
            arrived.extend_from_slice(&unpacked[start..start + range.len()]);
        }
    }
    arriving64.iter().try_for_each(|n| to.write_all(&n.to_le_bytes()))?;
    Ok(arrived.iter().try_for_each(|parcel| to.write_all(parcel))?)
}
