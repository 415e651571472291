//! `metastate report --places`, `--outline`, `--zone-names`: a result that stands gets a map, or names. It then is what a fit with these options would have
//! written, but for the rival's map, which needs the data.

use std::path::{Path, PathBuf};

use metastate::Label;
use metastate::aggregate::ZoneFlows;
use metastate_report::page::Extras;
use metastate_report::{Claim, FitResult, Ground, SavedResult, ZONE_FLOWS_FILE, load_zone_flows};

use crate::args::{FitArgs, ReportArgs, shell_words};
use crate::error::{CliError, Result};
use crate::verify::recorded_options;
use crate::zone_names::{self, ZoneNames};
use crate::{places, report};

/// Whether anything of this is asked for.
pub fn asks(command: &ReportArgs) -> bool {
    command.places.is_some() || command.outline.is_some() || command.zone_names.is_some()
}

/// Places and names of the states of a result.
struct GivenNames {
    coordinates: Option<Vec<(f64, f64)>>,
    names: Option<Vec<String>>,
    ground: Option<Ground>,
}

/// Gives the result in a folder what the options say.
pub fn give(place: &Path, command: &ReportArgs) -> Result<()> {
    let _claim = Claim::folder(place, true)?;
    let loaded = metastate_report::load(place)?;
    if let Some(name) = loaded.changed.first() {
        return Err(CliError::failed("E-CLI-RESULT", format!("{name} is not the file that `metastate fit` wrote"))
            .at(place.display().to_string())
            .remedy("it was changed or damaged afterwards; fit again, with --places and --zone-names where they are wanted"));
    }
    let fit = recorded_options(place, &loaded)?.1;
    let extras = metastate_report::load_extras(place, loaded.xi.len())?;
    let asked = asked_for(&fit, command, &loaded);
    let mut summary = loaded.summary.clone();
    let known = known(place, &loaded, &extras, &asked, command, &mut summary)?;

    let labels: Vec<Label> = loaded.labels();
    let texts: Vec<String> = labels.iter().map(Label::to_string).collect();
    let partition = report::partition(place, &loaded)?;
    let count = partition.clusters();
    let (flows, trips) = flows(place, &loaded, count)?;
    let given = asked.zone_names.as_deref().map(ZoneNames::read).transpose()?;
    let (zone_names, hints) = given.as_ref().map(|names| names.of(&partition, &texts)).unwrap_or_default();
    if let (Some(file), true) = (&asked.zone_names, command.zone_names.is_some()) {
        summary.inputs.retain(|f| f.role != zone_names::ROLE);
        let at = summary.inputs.iter().rposition(|f| f.role == "data" || f.role == "places").map_or(0, |k| k + 1);
        summary.inputs.insert(at, places::record(file, zone_names::ROLE)?);
        summary.hints.extend(hints);
    }
    let texts_alone = labels.iter().all(|l| matches!(l, Label::Text(_)));
    let zones_have_names = given.is_some() || known.names.is_some() || (!known.ground.is_some_and(Ground::is_cells) && texts_alone);
    let extras =
        Extras { cell: known.ground.and_then(Ground::side), outline: known.ground.and_then(Ground::outline), zones_have_names, ..extras };
    summary.settings["fit"] = serde_json::to_value(asked.resolved()).unwrap_or_default();
    summary.command = command_with(&summary.command, &asked, command);
    let destinations = loaded.destinations.as_ref().map(|d| d.labels());
    let mut result = FitResult {
        labels: &labels,
        destinations: destinations.as_deref(),
        xi: &loaded.xi,
        coordinates: known.coordinates.as_deref(),
        names: known.names.as_deref(),
        ground: known.ground,
        zone_names: &zone_names,
        zones_have_names,
        factors: &loaded.factors,
        model: loaded.going_on(),
        partition: &partition,
        flows: flows.as_ref(),
        trips: trips.as_ref(),
        refit: None,
        witness: &loaded.witness,
        slices: loaded.slices.as_ref().map(|slices| metastate_report::SlicedV { slices, v: &loaded.model().v }),
        extra: &[],
    };
    let all_names = result.zone_set().zone_names();
    result.zone_names = &all_names;
    metastate_report::put_places(place, summary, &result, &extras)?;
    Ok(())
}

/// The options of the fit with those that are given now. Files are named so that they are found from where the fit was run.
fn asked_for(fit: &FitArgs, command: &ReportArgs, loaded: &SavedResult) -> FitArgs {
    let same_folder = std::env::current_dir().is_ok_and(|d| d.as_path() == Path::new(&loaded.summary.directory));
    let found = |file: &PathBuf| if same_folder { file.clone() } else { file.canonicalize().unwrap_or_else(|_| file.clone()) };
    let mut asked = fit.clone();
    if let Some(file) = &command.places {
        asked.places = Some(found(file));
        asked.label = command.label.clone().unwrap_or_else(|| FitArgs::default().label);
        asked.lon = command.lon.clone().unwrap_or_else(|| FitArgs::default().lon);
        asked.lat = command.lat.clone().unwrap_or_else(|| FitArgs::default().lat);
        asked.name.clone_from(&command.name);
    }
    asked.outline = command.outline.unwrap_or(asked.outline);
    asked.zone_names = command.zone_names.as_ref().map(found).or(asked.zone_names);
    asked
}

/// Where the states are: as the table says that is given now, else as the folder has it.
fn known(
    place: &Path,
    loaded: &SavedResult,
    extras: &Extras,
    asked: &FitArgs,
    command: &ReportArgs,
    summary: &mut metastate_report::Summary,
) -> Result<GivenNames> {
    let coordinates = loaded.coordinates()?;
    let before = extras.ground(coordinates.as_deref());
    let cells = before.is_some_and(Ground::is_cells);
    let Some(file) = asked.places.as_deref().filter(|_| command.places.is_some()) else {
        if command.outline.is_some() && (cells || coordinates.is_none()) {
            return Err(CliError::bad("E-CLI-PLACES", "--outline needs a list of places, and the states of this result have none")
                .at(place.display().to_string())
                .remedy("give their places with --places, or leave out --outline"));
        }
        let ground = if cells { before } else { coordinates.as_ref().map(|_| places::ground(asked)) };
        return Ok(GivenNames { coordinates, names: loaded.column("name").ok(), ground });
    };
    if cells {
        return Err(places::cells_have_places(file));
    }
    let texts: Vec<String> = loaded.labels().iter().map(Label::to_string).collect();
    let found = places::find(&texts, file, asked)?;
    summary.inputs.retain(|f| f.role != "places");
    let at = summary.inputs.iter().rposition(|f| f.role == "data").map_or(0, |k| k + 1);
    summary.inputs.insert(at, found.record);
    summary.hints.extend(found.hints);
    Ok(GivenNames { coordinates: Some(found.coordinates), names: found.names, ground: Some(places::ground(asked)) })
}

/// What moves between the zones, from the table in the folder.
fn flows(place: &Path, loaded: &SavedResult, zones: usize) -> Result<(Option<ZoneFlows>, Option<metastate::Mat>)> {
    if loaded.destinations.is_some() {
        return Ok((None, None));
    }
    match load_zone_flows(place, zones)? {
        Some((flows, trips)) => Ok((Some(ZoneFlows { flows }), trips)),
        None => Err(CliError::failed("E-CLI-RESULT", format!("the result has no {ZONE_FLOWS_FILE}: an earlier version wrote it"))
            .at(place.display().to_string())
            .remedy("fit again with --places")),
    }
}

/// The recorded command with the options that are given now in place of its own. A call from Python stays as it is.
fn command_with(recorded: &str, asked: &FitArgs, command: &ReportArgs) -> String {
    let words = shell_words(recorded);
    if words.first().map(String::as_str) != Some("metastate") {
        return recorded.to_owned();
    }
    let path = |p: &Option<PathBuf>| p.as_ref().map(|p| p.display().to_string());
    let mut now: Vec<(&str, Option<String>)> = Vec::new();
    if command.places.is_some() {
        now.extend([
            ("places", path(&asked.places)),
            ("label", Some(asked.label.clone())),
            ("lon", Some(asked.lon.clone())),
            ("lat", Some(asked.lat.clone())),
            ("name", asked.name.clone()),
        ]);
    }
    if command.outline.is_some() {
        now.push(("outline", Some(asked.outline.word())));
    }
    if command.zone_names.is_some() {
        now.push(("zone-names", path(&asked.zone_names)));
    }
    let end = words.iter().position(|w| w == "--").unwrap_or(words.len());
    let mut kept: Vec<String> = Vec::new();
    let mut k = 0;
    while k < end {
        let named = words[k].strip_prefix("--").map(|w| w.split('=').next().unwrap_or_default());
        let dropped = named.is_some_and(|name| now.iter().any(|(option, _)| *option == name));
        match dropped {
            true if !words[k].contains('=') => k += 1,
            true => {}
            false => kept.push(words[k].clone()),
        }
        k += 1;
    }
    for (option, value) in now {
        kept.extend(value.into_iter().flat_map(|value| [format!("--{option}"), value]));
    }
    kept.extend(words[end..].iter().cloned());
    kept.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_command_says_what_was_given_afterwards() {
        let command = ReportArgs { places: Some("my stations.csv".into()), ..ReportArgs::default() };
        let asked = FitArgs { places: command.places.clone(), label: "id".into(), ..FitArgs::default() };
        let recorded = "metastate fit trips.csv --label old --lon=x --from 'a b' --out out -- --t.csv";
        assert_eq!(
            command_with(recorded, &asked, &command),
            "metastate fit trips.csv --from 'a b' --out out --places 'my stations.csv' --label id --lon lon --lat lat -- --t.csv"
        );
        assert_eq!(command_with("metastate.fit(trips)", &asked, &command), "metastate.fit(trips)");
    }
}
