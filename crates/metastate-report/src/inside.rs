//! The files of a folder that somebody else may have made. Its author chooses every byte and every kind of file, so nothing is opened before it is known to be
//! a regular file inside the folder: a pipe would never end, a device neither, and a link may lead anywhere.

use std::fs::Metadata;
use std::io::Read;
use std::path::{Component, Path};

use crate::error::{Result, damaged, reading};

/// A file of a result may take this share of the memory that there is: its content is held beside it, as text and as numbers.
const SHARE_OF_MEMORY: u64 = 8;

/// The file of this name in `folder`, known to be a regular one; none when there is nothing of this name.
pub fn look(folder: &Path, name: &str) -> Result<Option<Metadata>> {
    let path = folder.join(name);
    let mut at = folder.to_path_buf();
    let mut found = None;
    for part in Path::new(name).components() {
        let Component::Normal(part) = part else { return Err(damaged(&path, "has a name that leads out of the folder of the result")) };
        at.push(part);
        match at.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => {
                return Err(damaged(&at, "is a link, and links are not followed out of the folder of a result"));
            }
            Ok(meta) => found = Some(meta),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(reading(&at)(e)),
        }
    }
    match found {
        Some(meta) if meta.is_file() => Ok(Some(meta)),
        _ => Err(damaged(&path, "is not a regular file")),
    }
}

/// The folder and the name of a file.
pub fn split(path: &Path) -> (&Path, &str) {
    (path.parent().unwrap_or(Path::new(".")), path.file_name().and_then(|n| n.to_str()).unwrap_or_default())
}

/// Its bytes.
pub fn read(folder: &Path, name: &str) -> Result<Vec<u8>> {
    read_if_there(folder, name)?.ok_or_else(|| {
        let path = folder.join(name);
        reading(&path)(std::io::Error::from(std::io::ErrorKind::NotFound))
    })
}

/// The same; none when there is no such file.
pub fn read_if_there(folder: &Path, name: &str) -> Result<Option<Vec<u8>>> {
    let path = folder.join(name);
    let Some(meta) = look(folder, name)? else { return Ok(None) };
    let most = metastate_ingest::available_memory() / SHARE_OF_MEMORY;
    if meta.len() > most {
        return Err(damaged(&path, format!("has {} bytes, and this machine has memory for a file of {most}", meta.len())));
    }
    let mut bytes = Vec::new();
    let reserved = bytes.try_reserve_exact(meta.len() as usize);
    reserved.map_err(|_| damaged(&path, format!("has {} bytes, more than there is memory for", meta.len())))?;
    // No more than was there when it was looked at.
    std::fs::File::open(&path).and_then(|file| file.take(meta.len()).read_to_end(&mut bytes)).map_err(reading(&path))?;
    Ok(Some(bytes))
}

/// Its text.
pub fn read_text(folder: &Path, name: &str) -> Result<String> {
    String::from_utf8(read(folder, name)?).map_err(|_| damaged(&folder.join(name), "is not UTF-8"))
}

/// A folder inside the folder, made when it is not there: never one behind a link.
pub fn make_folder(folder: &Path, name: &str) -> Result<()> {
    let path = folder.join(name);
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(meta) if meta.is_symlink() => {
            Err(damaged(&path, "is a link, and nothing is written through links out of the folder of a result"))
        }
        Ok(_) => Err(damaged(&path, "is not a folder")),
        Err(_) => std::fs::create_dir(&path).map_err(crate::error::writing(&path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_inside_the_folder_are_opened() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("result");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("a.txt"), "a").unwrap();
        std::fs::write(place.path().join("secret"), "b").unwrap();
        std::fs::create_dir(folder.join("plots")).unwrap();
        assert_eq!(read(&folder, "a.txt").unwrap(), b"a");
        assert_eq!(read_if_there(&folder, "b.txt").unwrap(), None);
        for name in ["../secret", "/dev/zero", "plots", "."] {
            assert!(read(&folder, name).is_err(), "{name}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../secret", folder.join("link")).unwrap();
            std::os::unix::fs::symlink(place.path(), folder.join("out")).unwrap();
            for name in ["link", "out/secret"] {
                assert!(read(&folder, name).unwrap_err().to_string().contains("is a link"), "{name}");
            }
            assert!(make_folder(&folder, "out").unwrap_err().to_string().contains("is a link"));
            assert!(make_folder(&folder, "new").is_ok() && folder.join("new").is_dir());
        }
    }
}
