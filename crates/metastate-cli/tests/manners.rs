//! Small manners at the edges of a process: full pipes, limits of the shell, labels that mean to do harm.

mod common;

use std::process::{Command, Stdio};

use common::{Place, planted_counts, text, triplets_csv};

fn place() -> Place {
    let place = Place::new();
    place.write("counts.csv", triplets_csv(&planted_counts(12, 3)));
    place
}

const FIT: [&str; 6] = ["fit", "counts.csv", "--lambda-ratio", "0.3", "--out", "out"];

/// The command under `sh`, after some words of the shell.
fn shell(place: &Place, before: &str, arguments: &str) -> std::process::Output {
    let script = format!("{before}; exec {} {arguments}", env!("CARGO_BIN_EXE_metastate"));
    Command::new("sh").args(["-c", &script]).current_dir(place.path(".")).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_quiet_verify_says_what_does_not_stand() {
    let place = place();
    place.expect(0, &FIT);
    let (out, err) = place.expect(0, &["verify", "out", "--quiet"]);
    assert!(out.is_empty() && err.is_empty(), "{out}{err}");
    let summary = text(&place.read("out/summary.json"));
    let value: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let mut forged = value.clone();
    forged["objective"] = (value["objective"].as_f64().unwrap() * 0.9).into();
    place.write("out/summary.json", forged.to_string());
    let (out, err) = place.expect(1, &["verify", "out", "--quiet"]);
    assert!(out.is_empty() && err.contains("objective") && err.lines().count() < 6, "{out}{err}");
}

#[test]
fn labels_cannot_speak_to_the_terminal() {
    let place = place();
    place.write("evil.csv", "from,to,count\n\u{1b}[2Ja,b,5\nb,\u{1b}[2Ja,5\nb,b,9\n\u{1b}[2Ja,c,3\nc,b,4\n");
    place.expect(0, &["fit", "evil.csv", "--lambda-ratio", "0.3", "--out", "out"]);
    for arguments in [&["forecast", "out", "--from", "b"][..], &["forecast", "out", "--from", "\u{1b}[2J"], &["verify", "out"]] {
        let output = place.run(arguments);
        for bytes in [&output.stdout, &output.stderr] {
            assert!(!bytes.contains(&0x1b), "{arguments:?}: {}", String::from_utf8_lossy(bytes));
        }
    }
    let (told, _) = place.expect(0, &["forecast", "out", "--from", "b"]);
    assert!(told.contains("\\u{1b}[2Ja"), "{told}");
    // In the files they are as they were.
    assert!(text(&place.read("out/states.csv")).contains("\u{1b}[2Ja"));
}

#[test]
fn a_full_standard_error_is_no_failure() {
    let place = place();
    let output = shell(&place, "exec 2>/dev/full", "fit counts.csv --lambda-ratio 0.3 --out out");
    assert_eq!(output.status.code(), Some(0));
    let output = shell(&place, "exec 2>/dev/full", "fit no-such.csv --lambda-ratio 0.3 --out other");
    assert_eq!(output.status.code(), Some(2));
    let output = shell(&place, "exec >/dev/full", "fit counts.csv --lambda-ratio 0.3 --out third --json");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

#[test]
fn a_limit_of_the_shell_on_files_leaves_nothing_behind() {
    let place = place();
    // Blocks of 512 bytes or a kilobyte: less than a page in any case.
    let output = shell(&place, "ulimit -f 4", "fit counts.csv --lambda-ratio 0.3 --out out");
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("E-CLI-WRITE"), "{told}");
    assert_eq!(place.names(), ["counts.csv"], "{told}");
}

#[test]
fn what_a_full_disk_ends_goes_on_with_resume() {
    let place = place();
    let fit = "fit counts.csv --rank 2 --out out";
    // Room for the checkpoint, none for the page.
    let output = shell(&place, "ulimit -f 8", fit);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("E-CLI-WRITE") && told.contains("--resume: what was found so far is kept in out.path-checkpoint"), "{told}");
    assert_eq!(place.names(), ["counts.csv", "out.path-checkpoint"], "{told}");
    assert!(shell(&place, "true", &format!("{fit} --resume")).status.success());
    assert_eq!(place.names(), ["counts.csv", "out"]);
}

#[test]
fn any_number_of_threads_is_taken_and_none_is_wasted() {
    let place = place();
    place.expect(0, &[&FIT[..], &["--threads", "20000"]].concat());
    place.expect(0, &["fit", "counts.csv", "--lambda-ratio", "0.3", "--out", "one", "--threads", "1"]);
    common::assert_same_answer(&place.path("out"), &place.path("one"));
}

#[cfg(unix)]
#[test]
fn what_is_written_may_be_read_as_the_umask_says() {
    use std::os::unix::fs::PermissionsExt;
    let place = place();
    let mode = |name: &str| std::fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    for (mask, file, folder) in [("022", 0o644, 0o755), ("077", 0o600, 0o700), ("002", 0o664, 0o775)] {
        assert!(shell(&place, &format!("umask {mask}"), "fit counts.csv --lambda-ratio 0.3 --out out").status.success());
        assert!(shell(&place, &format!("umask {mask}"), "count counts.csv --as counts --out c.parquet").status.success());
        assert_eq!((mode("out"), mode("out/plots"), mode("out/factors.npz"), mode("c.parquet")), (folder, folder, file, file), "{mask}");
        std::fs::remove_dir_all(place.path("out")).unwrap();
        std::fs::remove_file(place.path("c.parquet")).unwrap();
    }
}

#[test]
fn a_decoder_that_gives_up_says_nothing_by_itself() {
    let place = Place::new();
    let bad = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../metastate-ingest/tests/bad");
    for entry in std::fs::read_dir(bad).unwrap().map(Result::unwrap).filter(|e| e.path().extension().is_some_and(|x| x == "parquet")) {
        let file = entry.path().display().to_string();
        let output = place.run(&["count", &file, "--as", "trips", "--from", "from", "--to", "to", "--out", "c.parquet", "--quiet"]);
        let told = text(&output.stderr);
        assert!(!told.contains("panicked") && (output.status.success() || told.starts_with("error[")), "{file}: {told}");
    }
}
