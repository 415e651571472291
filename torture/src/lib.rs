//! What can go wrong is made to go wrong, in large numbers and with a seed: files of strangers, forged results and checkpoints, numbers at the edge, faults of
//! the disk, kills, and runs that want the same place. `scripts/torture` runs all of it and writes `docs/reliability.md`.

#![forbid(unsafe_code)]

pub mod chance;
pub mod checkpoints;
pub mod doors;
pub mod extremes;
pub mod faults;
pub mod folders;
pub mod forge;
pub mod inputs;
pub mod processes;
pub mod watch;
