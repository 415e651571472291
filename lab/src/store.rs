//! Finished cells on disk: one small JSON file each, written whole or not at all.

use std::path::{Path, PathBuf};

use metastate_report::folder::write_file;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, Result};

/// A cell that was made by other code is not taken for one of ours.
const SCHEMA: &str = "metastate-lab-2";

/// The folder of finished cells.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

#[derive(Serialize, serde::Deserialize)]
struct File<T> {
    schema: String,
    cell: String,
    seconds: f64,
    result: T,
}

impl Store {
    /// `cells` inside the output folder.
    pub fn new(out: &Path) -> Self {
        Store { folder: out.join("cells") }
    }

    fn place(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// Whether anything is there.
    pub fn is_empty(&self) -> bool {
        std::fs::read_dir(&self.folder).map_or(true, |mut entries| entries.next().is_none())
    }

    /// Whether this cell is finished.
    pub fn has(&self, name: &str) -> bool {
        self.place(name).exists()
    }

    /// Keeps a finished cell and how long it took.
    pub fn put<T: Serialize>(&self, name: &str, seconds: f64, result: &T) -> Result<()> {
        let file = File { schema: SCHEMA.into(), cell: name.into(), seconds, result };
        let text = serde_json::to_string(&file).map_err(|e| Error::Cell(format!("cell {name} cannot be written down ({e})")))?;
        Ok(write_file(&self.place(name), (text + "\n").as_bytes())?)
    }

    /// A finished cell; nothing when there is none.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        Ok(self.read::<T>(name)?.map(|f| f.result))
    }

    /// How long a finished cell took.
    pub fn seconds(&self, name: &str) -> Option<f64> {
        self.read::<serde::de::IgnoredAny>(name).ok().flatten().map(|f| f.seconds)
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<File<T>>> {
        let place = self.place(name);
        let text = match std::fs::read_to_string(&place) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|e| Error::Cell(format!("{} cannot be read ({e})", place.display())))?,
        };
        let wrong = |why: String| Error::Cell(format!("{} is no finished cell of this version ({why}); remove it", place.display()));
        let file: File<T> = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        if file.schema != SCHEMA || file.cell != name {
            return Err(wrong(format!("it says {}, {}", file.schema, file.cell)));
        }
        Ok(Some(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_back_and_foreign_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        assert!(store.is_empty() && store.get::<Vec<f64>>("a").unwrap().is_none());
        store.put("a", 1.5, &vec![0.1, 1.0 / 3.0]).unwrap();
        assert!(store.has("a") && !store.is_empty());
        assert_eq!(store.get::<Vec<f64>>("a").unwrap().unwrap(), vec![0.1, 1.0 / 3.0]);
        assert_eq!(store.seconds("a"), Some(1.5));
        std::fs::copy(store.place("a"), store.place("b")).unwrap();
        std::fs::write(store.place("c"), "{\"schema\":").unwrap();
        assert!(matches!(store.get::<Vec<f64>>("b"), Err(Error::Cell(_))));
        assert!(matches!(store.get::<Vec<f64>>("c"), Err(Error::Cell(_))));
    }
}
