//! Every change that a run makes to the disk fails in turn: afterwards there stands the old result or the new one, never half of either.

use std::collections::BTreeMap;
use std::path::Path;

use metastate_report::disk::faults;
use metastate_report::hash;

use crate::doors;
use crate::watch::Campaign;

/// A full disk, a broken one, a call that a signal interrupts.
pub const KINDS: [(&str, i32); 3] = [("ENOSPC", 28), ("EIO", 5), ("EINTR", 4)];

/// Name and hash of every file of a folder.
fn contents(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            found.extend(contents(&entry.path()).into_iter().map(|(inner, sha)| (format!("{name}/{inner}"), sha)));
        } else {
            found.insert(name, hash::of_bytes(&std::fs::read(entry.path()).unwrap_or_default()));
        }
    }
    found
}

/// Whether the files of a result are those that its summary names, and all of them are there.
fn whole(folder: &Path) -> bool {
    metastate_report::load(folder).is_ok_and(|r| r.changed.is_empty()) && folder.join("report.html").exists()
}

/// All faults, of a run into a free place and of one that replaces an older result. `every` n-th change only.
pub fn all(every: usize) -> Result<Campaign, String> {
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    let counts: String = (0..36).map(|k| format!("{},{},{}\n", k / 6, k % 6, if k / 6 % 2 == k % 2 { 9 } else { 1 })).collect();
    let input = place.path().join("counts.csv");
    std::fs::write(&input, format!("from,to,count\n{counts}")).map_err(|e| e.to_string())?;
    let (input, out) = (input.display().to_string(), place.path().join("out"));
    let target = out.display().to_string();
    let old = ["fit", &input, "--lambda-ratio", "0.9", "--max-rank", "2", "--out", &target];
    let new = ["fit", &input, "--lambda-ratio", "0.3", "--max-rank", "3", "--checkpoint-every", "0", "--out", &target, "--force"];
    let mut campaign = Campaign::default();
    for replaces in [false, true] {
        let prepare = || {
            let _ = std::fs::remove_dir_all(&out);
            if replaces { doors::run(&old).code } else { 0 }
        };
        if prepare() != 0 {
            return Err("the older result could not be made".to_owned());
        }
        faults::arm(None);
        let end = doors::run(&new);
        let changes = faults::disarm();
        if end.code != 0 {
            return Err(end.told);
        }
        for (name, errno) in KINDS {
            for at in (0..changes).step_by(every.max(1)) {
                prepare();
                let before = contents(&out);
                faults::arm(Some((at, errno)));
                let end = doors::run(&new);
                faults::disarm();
                let after = contents(&out);
                let stands = if !out.exists() {
                    "nothing"
                } else if after == before {
                    "the old result"
                } else {
                    "the new result"
                };
                let fine = match end.code {
                    0 => stands == "the new result",
                    1 => stands != "nothing" || !replaces,
                    _ => false,
                };
                let kind = format!("{name}: exit {}, {stands} stands", end.code);
                *campaign.kinds.entry(kind.clone()).or_default() += 1;
                if !fine || (out.exists() && !whole(&out)) {
                    campaign.wrong.push(format!("change {at} of {changes}: {kind} ({})", end.told));
                }
                // The next run finds everything in order.
                let entries = std::fs::read_dir(place.path()).into_iter().flatten().flatten();
                let left: Vec<String> =
                    entries.map(|e| e.file_name().to_string_lossy().into_owned()).filter(|n| n != "out" && n != "counts.csv").collect();
                let ours = |n: &String| n.starts_with(".out.") || n.starts_with("out.checkpoint");
                if let Some(other) = left.iter().find(|n| !ours(n)) {
                    campaign.wrong.push(format!("change {at}: {other} is left"));
                }
                left.iter().for_each(|n| drop(std::fs::remove_dir_all(place.path().join(n))));
            }
        }
    }
    Ok(campaign)
}
