//! `docs/reference/options.md` says what the catalogue says.

use metastate_options::{Kind, commands, reference};

/// Renews the file where this variable is set.
const RENEW: &str = "METASTATE_RENEW";

#[test]
fn the_reference_is_up_to_date() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/options.md");
    let wanted = reference();
    if std::env::var_os(RENEW).is_some() {
        std::fs::create_dir_all(std::path::Path::new(file).parent().unwrap()).unwrap();
        std::fs::write(file, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/reference/options.md is not what the catalogue says; renew it with\n  {RENEW}=1 cargo test -p metastate-options --test reference"
    );
}

#[test]
fn every_option_is_told_in_a_sentence() {
    for command in commands().iter().flat_map(|c| std::iter::once(c).chain(&c.commands)) {
        let mut names: Vec<&str> = command.entries().map(|e| e.name.as_str()).collect();
        for entry in command.entries() {
            let place = format!("{} --{}", command.name, entry.name);
            assert!(entry.help.len() > 8 && entry.help.ends_with('.'), "{place}: {}", entry.help);
            assert_eq!(entry.kind == Kind::Word, !entry.words.is_empty(), "{place}");
            for other in entry.conflicts.iter().chain(&entry.requires) {
                assert!(command.entry(other).is_some(), "{place} speaks of --{other}, which is not there");
            }
        }
        // One name, one option.
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(all, names.len(), "{}", command.name);
        assert!(command.examples.starts_with("Example"), "{}", command.name);
    }
}
