//! `metastate reproduce` knows its options and hands over to the program `metastate-reproduce`; what that does is tested in the lab.

mod common;

use common::Place;

#[test]
fn help_and_refusals_need_no_other_program() {
    let place = Place::new();
    let (help, _) = place.expect(0, &["reproduce", "--help"]);
    assert!(help.contains("Example") && help.contains("table-exact") && help.contains("--trajectories"), "{help}");
    place.expect(2, &["reproduce", "table-x", "--out", "lab"]);
    place.expect(2, &["reproduce", "all"]);
}

/// In a folder of its own, the command finds only what is put there.
#[cfg(unix)]
#[test]
fn the_program_beside_it_gets_the_same_arguments() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let own = place.path("metastate");
    std::fs::copy(env!("CARGO_BIN_EXE_metastate"), &own).unwrap();
    let run = || {
        let mut command = std::process::Command::new(&own);
        command.env("PATH", "").args(["--seed", "7", "reproduce", "all", "--data", "a b", "--out", "lab"]).output().unwrap()
    };
    let alone = run();
    let said = common::text(&alone.stderr);
    assert_eq!(alone.status.code(), Some(2), "{said}");
    assert!(said.contains("E-CLI-PROGRAM") && said.contains("cargo build --release -p metastate-lab"), "{said}");
    let program = place.path("metastate-reproduce");
    std::fs::write(&program, "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 9\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let both = run();
    assert_eq!((both.status.code(), common::text(&both.stdout).as_str()), (Some(9), "<--seed><7><all><--data><a b><--out><lab>"));
}
