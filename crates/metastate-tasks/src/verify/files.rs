//! The list of files in `summary.json`: whole, and true to the folder.

use std::collections::BTreeSet;

use super::checks::Checks;
use super::subject::Subject;
use crate::args::{ObjectiveKind, RefitKind};

/// Files that every result of these options has.
fn expected(subject: &Subject) -> BTreeSet<&'static str> {
    let fit = subject.fit;
    let mut names: BTreeSet<&str> =
        BTreeSet::from(["factors.npz", "certificate.npz", "states.csv", "states.parquet", "metastates.csv", "zones.csv", "page.json"]);
    let mut when = |it_is: bool, more: &[&'static str]| names.extend(more.iter().filter(|_| it_is));
    when(subject.goes_on(), &["kinetics.npz", "latent.csv", "zone_flows.csv"]);
    when(!subject.goes_on(), &["destinations.csv"]);
    when(subject.data.data.slices().is_some(), &["slices.csv", "profiles.parquet", "slices.npz"]);
    when(subject.result.summary.slices.as_ref().is_some_and(|s| s.change.is_some()), &["changes.csv"]);
    when(subject.on_a_map(), &["zones.geojson"]);
    when(subject.has_outlines(), &["zones.parquet"]);
    when(subject.data.control.is_some(), &["pairs.csv", "actions.csv"]);
    when(subject.data.control.as_ref().is_some_and(|c| c.tried.paid.is_some()), &["rewards.csv"]);
    when(fit.chooses() && subject.data.parts().is_some(), &["path.csv", "ranks.csv"]);
    when(fit.refit_kind() != RefitKind::None, &["refit.npz"]);
    when(fit.objective == ObjectiveKind::Whitened, &["prices.npz"]);
    when(subject.draws() > 0, &["uncertainty.csv"]);
    names
}

/// Everything in the folder, files of `plots/` included.
fn present(subject: &Subject) -> BTreeSet<String> {
    let list = |place: &std::path::Path, before: &str| -> Vec<String> {
        let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
        entries.map(|e| format!("{before}{}", e.file_name().to_string_lossy())).collect()
    };
    let mut names: BTreeSet<String> = list(subject.folder, "").into_iter().collect();
    if names.remove("plots") {
        names.extend(list(&subject.folder.join("plots"), "plots/"));
    }
    names
}

/// The list, and what stands beside it.
pub fn check(checks: &mut Checks, subject: &Subject, remade: &BTreeSet<String>) {
    let listed = &subject.result.summary.files;
    let expected = expected(subject);
    let missing = expected.iter().find(|name| !listed.contains_key(**name)).map(|name| format!("{name} is not listed"));
    let changed = subject.result.changed.first().map(|name| format!("{name} was changed"));
    checks.table("files", changed.or(missing));
    let further: Vec<&str> = listed.keys().map(String::as_str).filter(|name| !expected.contains(name)).collect();
    if !further.is_empty() {
        checks.hash_only("further files", &further.join(", "));
    }
    let known = |name: &String| {
        listed.contains_key(name) || remade.contains(name) || name == "summary.json" || super::plan::FILES.contains(&name.as_str())
    };
    let unknown: Vec<String> = present(subject).into_iter().filter(|name| !known(name)).collect();
    if !unknown.is_empty() {
        checks.not_checked("files that no result has", unknown.join(", "), "in no list, origin unknown");
    }
}
