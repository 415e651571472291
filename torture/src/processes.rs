//! What only whole processes can show: kills at any moment, and several runs that want the same place.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::chance::Chance;
use crate::doors;
use crate::watch::Campaign;

/// The command, beside this program.
pub fn program() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.with_file_name("metastate");
    std::env::var_os("METASTATE").map(PathBuf::from).or_else(|| beside.exists().then_some(beside))
}

fn counts(place: &Path, states: usize) -> std::io::Result<()> {
    let mut text = String::from("from,to,count\n");
    for (i, j) in (0..states).flat_map(|i| (0..states).map(move |j| (i, j))) {
        let near = if i % 4 == j % 4 { 20 } else { 1 };
        text += &format!("{i},{j},{}\n", near + (i * 7 + j * 13) % 5);
    }
    std::fs::write(place.join("counts.csv"), text)
}

fn whole(folder: &Path) -> bool {
    metastate_report::load(folder).is_ok_and(|r| r.changed.is_empty()) && folder.join("report.html").exists()
}

/// `kills` runs, each killed after a random time, every second one over an older result.
pub fn kills(seed: u64, kills: u64) -> Result<Campaign, String> {
    let program = program().ok_or("the command metastate is not beside this program; set METASTATE")?;
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    counts(place.path(), 16).map_err(|e| e.to_string())?;
    let out = place.path().join("out");
    let start = |force: bool| {
        let mut command = Command::new(&program);
        command.current_dir(place.path()).args([
            "fit",
            "counts.csv",
            "--folds",
            "2",
            "--max-rank",
            "3",
            "--checkpoint-every",
            "0",
            "--quiet",
            "--out",
            "out",
        ]);
        command.args(force.then_some("--force")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    };
    let begun = Instant::now();
    let status = start(false).and_then(|mut c| c.wait()).map_err(|e| e.to_string())?;
    let taken = begun.elapsed();
    if !status.success() {
        return Err(format!("the first run ends with {status}"));
    }
    // An older result for every second run.
    let elsewhere = tempfile::tempdir().map_err(|e| e.to_string())?;
    let first = elsewhere.path().join("first");
    crate::forge::copy(&out, &first).map_err(|e| e.to_string())?;
    let mut campaign = Campaign::default();
    for number in 0..kills {
        let mut chance = Chance::new(seed, number);
        let older = number % 2 == 0;
        let _ = std::fs::remove_dir_all(&out);
        if older {
            crate::forge::copy(&first, &out).map_err(|e| e.to_string())?;
        }
        let mut child = start(older).map_err(|e| e.to_string())?;
        std::thread::sleep(Duration::from_secs_f64(taken.as_secs_f64() * 1.1 * chance.share()));
        let _ = child.kill();
        let status = child.wait().map_err(|e| e.to_string())?;
        // A killed run may have taken the old one away a moment ago: the next run puts it back.
        metastate_report::folder::tidy(&out);
        let stands = out.exists();
        let kind = format!(
            "{}: {}, {}",
            if older { "over an older result" } else { "into a free place" },
            if status.success() { "done before the kill" } else { "killed" },
            if stands { "a whole result stands" } else { "nothing stands" }
        );
        *campaign.kinds.entry(kind).or_default() += 1;
        if (stands && !whole(&out)) || (older && !stands) {
            campaign.wrong.push(format!("kill {number}: the result is {}", if stands { "half" } else { "gone" }));
        }
    }
    // Whatever is left beside is tidied up by one more run.
    let _ = std::fs::remove_dir_all(&out);
    let status = start(false).and_then(|mut c| c.wait()).map_err(|e| e.to_string())?;
    let mut left: Vec<String> =
        std::fs::read_dir(place.path()).into_iter().flatten().flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    left.sort();
    if !status.success() || left != ["counts.csv", "out"] {
        campaign.wrong.push(format!("after one more run there are {left:?}"));
    }
    Ok(campaign)
}

/// `rounds` of four runs into one place: one is done, three are refused.
pub fn places(rounds: u64) -> Result<Campaign, String> {
    let program = program().ok_or("the command metastate is not beside this program; set METASTATE")?;
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    counts(place.path(), 8).map_err(|e| e.to_string())?;
    let out = place.path().join("out");
    let mut campaign = Campaign::default();
    for round in 0..rounds {
        let force = round % 4 == 3;
        let start = |ratio: &str| {
            let mut command = Command::new(&program);
            command.current_dir(place.path()).args(["fit", "counts.csv", "--lambda-ratio", ratio, "--quiet", "--out", "out"]);
            command.args(force.then_some("--force")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        };
        let children: Vec<_> = ["0.2", "0.4", "0.6", "0.8"].into_iter().filter_map(|ratio| start(ratio).ok()).collect();
        let codes: Vec<Option<i32>> = children.into_iter().filter_map(|mut c| c.wait().ok()).map(|s| s.code()).collect();
        let done = codes.iter().filter(|c| **c == Some(0)).count();
        let refused = codes.iter().filter(|c| **c == Some(2)).count();
        *campaign
            .kinds
            .entry(format!("{}: {done} done, {refused} refused", if force { "with --force" } else { "without --force" }))
            .or_default() += 1;
        let fine = done + refused == 4 && done >= 1 && (done == 1 || force) && whole(&out);
        let verified = doors::run(&["verify", &out.display().to_string()]);
        if !fine || verified.code != 0 {
            campaign.wrong.push(format!("round {round}: {codes:?}, {}", verified.told));
        }
        let _ = std::fs::remove_dir_all(&out);
    }
    Ok(campaign)
}
