//! Signals, kill -9 and --resume: the folder is absent or whole, and the answer is the same to the last bit.
#![cfg(unix)]

mod common;

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use common::{Place, assert_same_answer, planted_counts, text, triplets_csv};

/// A run of a few seconds with a safe point at every round and a checkpoint at every safe point.
const FIT: &[&str] =
    &["fit", "counts.csv", "--lambda-ratio", "0.02", "--max-rank", "12", "--tolerance", "1e-9", "--checkpoint-every", "0", "--out", "out"];

fn place() -> Place {
    let place = Place::new();
    place.write("counts.csv", triplets_csv(&planted_counts(90, 5)));
    place
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// The uninterrupted answer, moved aside, and how long it took.
fn reference(place: &Place) -> Duration {
    let start = Instant::now();
    place.expect(0, FIT);
    let taken = start.elapsed();
    std::fs::rename(place.path("out"), place.path("reference")).unwrap();
    assert!(!place.path("out.checkpoint").exists(), "a finished run leaves no checkpoint");
    taken
}

#[test]
fn a_terminated_run_resumes_to_the_same_bytes() {
    let place = place();
    let taken = reference(&place);
    let mut interrupted = 0;
    for part in [0, 1, 3] {
        let mut child = place.command(FIT).spawn().unwrap();
        // Before the first safe point there is nothing to keep.
        while !place.path("out.checkpoint").exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(taken * part / 10);
        signal(&child, "-TERM");
        let start = Instant::now();
        let output = child.wait_with_output().unwrap();
        let waited = start.elapsed();
        if output.status.code() == Some(0) {
            std::fs::remove_dir_all(place.path("out")).unwrap();
            continue;
        }
        interrupted += 1;
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        assert!(waited < Duration::from_millis(2500), "it took {waited:?} to stop");
        assert!(!place.path("out").exists());
        let told = text(&output.stderr);
        assert!(told.contains("--resume"), "{told}");
        let (_, told) = place.expect(0, &[FIT, &["--resume"]].concat());
        assert!(told.contains("resuming at sweep"), "{told}");
        assert_same_answer(&place.path("reference"), &place.path("out"));
        assert!(!place.path("out.checkpoint").exists());
        std::fs::remove_dir_all(place.path("out")).unwrap();
    }
    assert!(interrupted > 0, "the run of {taken:?} was never caught");
}

#[test]
fn a_choice_that_is_interrupted_is_kept() {
    let place = place();
    let choose = ["fit", "counts.csv", "--folds", "3", "--gap", "0.05", "--out", "out"];
    let child = place.command(&choose).spawn().unwrap();
    while std::fs::read_dir(place.path("out.path-checkpoint"))
        .into_iter()
        .flatten()
        .flatten()
        .all(|e| e.file_name().to_string_lossy().starts_with('.') || !e.path().join("points.json").exists())
    {
        std::thread::sleep(Duration::from_millis(2));
    }
    signal(&child, "-TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let told = text(&output.stderr);
    assert!(told.contains("what was finished so far is kept") && told.contains("--resume"), "{told}");
    let (_, told) = place.expect(0, &[&choose[..], &["--resume"]].concat());
    assert!(told.contains("resuming the choice after"), "{told}");
    assert!(!place.path("out.path-checkpoint").exists());
}

#[test]
fn another_question_is_not_resumed_and_damage_is_found() {
    let place = place();
    reference(&place);
    let mut child = place.command(FIT).spawn().unwrap();
    // Killed as soon as two checkpoints stand.
    let checkpoints = || {
        let names = std::fs::read_dir(place.path("out.checkpoint")).into_iter().flatten().flatten();
        let mut numbers: Vec<u64> = names.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    };
    while checkpoints().len() < 2 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    signal(&child, "-KILL");
    child.wait_with_output().unwrap();
    let (_, err) = place.expect(2, &[FIT, &["--resume", "--gap", "0.5"]].concat());
    assert!(err.contains("E-CLI-RESUME") && err.contains("fit.gap"), "{err}");
    // The newest checkpoint is damaged: the one before it is taken, and leads to the same end.
    let numbers = checkpoints();
    assert!(numbers.len() >= 2, "{numbers:?}");
    let damage = |number: u64| place.write(&format!("out.checkpoint/{number}/snapshot.npz"), b"nothing");
    damage(numbers[numbers.len() - 1]);
    place.expect(0, &[FIT, &["--resume"]].concat());
    assert_same_answer(&place.path("reference"), &place.path("out"));
}

/// METASTATE_KILLS sets how often; 20 unless given.
#[test]
fn kill_at_any_moment_leaves_the_folder_absent_or_whole() {
    let kills: u32 = std::env::var("METASTATE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let place = place();
    let taken = reference(&place);
    let mut resumed = 0;
    for k in 0..kills {
        let child = place.command(&[FIT, &["--resume"]].concat()).spawn().unwrap();
        // Spread over the run by the golden ratio.
        std::thread::sleep(taken.mul_f64((f64::from(k) * 0.618_034).fract() * 1.05));
        signal(&child, "-KILL");
        child.wait_with_output().unwrap();
        if place.path("out").exists() {
            assert_same_answer(&place.path("reference"), &place.path("out"));
            assert!(place.path("out/summary.json").is_file());
            std::fs::remove_dir_all(place.path("out")).unwrap();
        }
        let (_, told) = place.expect(0, &[FIT, &["--resume"]].concat());
        resumed += u32::from(told.contains("resuming at sweep"));
        assert_same_answer(&place.path("reference"), &place.path("out"));
        std::fs::remove_dir_all(place.path("out")).unwrap();
    }
    let left: Vec<String> = place.names().into_iter().filter(|n| n.starts_with('.')).collect();
    assert!(left.is_empty(), "{left:?}");
    println!("{resumed} of {kills} runs were resumed from a checkpoint; an uninterrupted run takes {taken:?}");
    assert!(resumed > 0);
}
