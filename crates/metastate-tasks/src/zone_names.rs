//! What somebody calls the zones (`--zone-names`). Numbers of zones change from fit to fit, so a zone may also be told by a state that is in it.

use std::collections::BTreeMap;
use std::path::Path;

use metastate::aggregate::Partition;
use metastate_ingest::side::SideTable;

use crate::args::FitArgs;
use crate::data::Dataset;
use crate::error::{CliError, Result};
use crate::places;

/// The role of the file among the inputs of a result.
pub const ROLE: &str = "zone-names";

/// Names as the table has them.
#[derive(Debug, Clone, PartialEq)]
pub struct ZoneNames {
    file: String,
    /// By the number of the zone, from 1.
    numbers: BTreeMap<usize, String>,
    /// By a state, in the order of the file.
    states: Vec<(String, String)>,
}

impl ZoneNames {
    /// Reads the names that the options ask for.
    pub fn apply(data: &mut Dataset, fit: &FitArgs) -> Result<()> {
        let Some(file) = &fit.zone_names else { return Ok(()) };
        data.zone_names = Some(ZoneNames::read(file)?);
        data.inputs.push(places::record(file, ROLE)?);
        Ok(())
    }

    /// Reads a table with the columns `zone` and `name`, or `label` and `name`.
    pub fn read(file: &Path) -> Result<Self> {
        let bad = |sentence: String| CliError::bad("E-CLI-PLACES", sentence).at(file.display().to_string());
        let table = SideTable::read(file, &["name"], &["zone", "label"])?;
        let name = table.required("name")?;
        let mut names = ZoneNames { file: file.display().to_string(), numbers: BTreeMap::new(), states: Vec::new() };
        let (zone, label) = (table.column("zone"), table.column("label"));
        if zone.is_none() && label.is_none() {
            return Err(bad("there is neither a column `zone` nor a column `label`".to_owned())
                .remedy("give the number of each zone in a column `zone`, or one of its states in a column `label`"));
        }
        for row in 0..table.rows() {
            let Some(name) = table.value(row, name).filter(|name| !name.is_empty()) else { continue };
            let number = zone.and_then(|column| table.value(row, column));
            let state = label.and_then(|column| table.value(row, column));
            match (number, state) {
                (Some(number), _) => {
                    let number = number.parse::<usize>().ok().filter(|z| *z > 0);
                    let number = number
                        .ok_or_else(|| bad(format!("row {} names no zone by its number", row + 1)).remedy("zones are numbered from 1"))?;
                    names.numbers.entry(number).or_insert_with(|| name.to_owned());
                }
                (None, Some(state)) => names.states.push((state.to_owned(), name.to_owned())),
                (None, None) => {}
            }
        }
        Ok(names)
    }

    /// The name of each zone, empty where none is given; with sentences about what could not be used.
    pub fn of(&self, partition: &Partition, labels: &[String]) -> (Vec<String>, Vec<String>) {
        let (mut names, mut hints) = (vec![String::new(); partition.clusters()], Vec::new());
        for (number, name) in &self.numbers {
            match names.get_mut(number - 1) {
                Some(place) => name.clone_into(place),
                None => hints.push(format!("{} names zone {number} {name}; there are {} zones", self.file, partition.clusters())),
            }
        }
        for (state, name) in &self.states {
            let zone = labels.iter().position(|l| l == state).map(|i| partition.labels[i] as usize);
            match zone {
                None => hints.push(format!("{} calls the zone of {state} {name}; there is no such state", self.file)),
                Some(z) if names[z].is_empty() => name.clone_into(&mut names[z]),
                Some(z) if names[z] != *name => {
                    hints.push(format!("{} has two names for zone {}: {} and {name}; the first one is taken", self.file, z + 1, names[z]));
                }
                Some(_) => {}
            }
        }
        (names, hints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_told_by_its_number_or_by_a_state() {
        let file = tempfile::NamedTempFile::with_suffix(".csv").unwrap();
        std::fs::write(file.path(), "zone,label,name\n2,,Harbour\n,a,Old Town\n,b,Other\n9,,Nowhere\n,x,Ghost\n").unwrap();
        let names = ZoneNames::read(file.path()).unwrap();
        let partition = Partition::numbered(vec![0, 0, 1, 2], &[0.25; 4], 3);
        let labels = ["a", "b", "c", "d"].map(str::to_owned);
        let (found, hints) = names.of(&partition, &labels);
        assert_eq!(found, ["Old Town", "Harbour", ""]);
        assert_eq!(hints.len(), 3, "{hints:?}");
        std::fs::write(file.path(), "zone,name\n0,Nowhere\n").unwrap();
        assert!(ZoneNames::read(file.path()).unwrap_err().to_string().contains("numbered from 1"));
        std::fs::write(file.path(), "number,name\n1,A\n").unwrap();
        assert!(ZoneNames::read(file.path()).unwrap_err().to_string().contains("neither a column"));
    }
}
