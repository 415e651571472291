//! What the inputs are when the user did not say: only where a wrong guess is impossible.

use std::io::{BufRead, BufReader, Read};

use crate::codes::Code;
use crate::countsfile::are_counts_files;
use crate::error::{IngestError, Result, shorten};
use crate::npy::NpyReader;
use crate::settings::{As, InputSettings};
use crate::source::{Format, Source};
use crate::table::Tables;

/// Formats that may hold rows and columns; text of unknown kind included.
pub(crate) fn may_be_table(format: Format) -> bool {
    format.is_table() || matches!(format, Format::Text | Format::Unknown)
}

/// What to read the sources as; `None` means a matrix file whose values will tell.
pub(crate) fn kind(sources: &[Source], settings: &InputSettings) -> Result<Option<As>> {
    if settings.as_.is_some() {
        return Ok(settings.as_);
    }
    if settings.coordinate_columns().iter().any(|(_, c)| c.is_some()) {
        return Ok(Some(As::Trips));
    }
    if settings.state.is_some() || settings.id.is_some() || settings.time.is_some() {
        return Ok(Some(As::Trajectories));
    }
    let source = &sources[0];
    if sources.iter().any(|s| may_be_table(s.format) != may_be_table(source.format)) {
        return Err(IngestError::new(Code::Format, "tables and matrix files are mixed")
            .file(&source.name)
            .remedy("read them apart and merge the counts"));
    }
    if settings.from.is_some() || settings.to.is_some() {
        return Ok(Some(As::Trips));
    }
    match source.format {
        Format::Npz | Format::Mtx => Ok(None),
        Format::Npy => array(source, settings),
        Format::Text if !settings.text.is_given() => {
            sources.iter().try_for_each(check_lines)?;
            Ok(Some(As::Trajectories))
        }
        _ => {
            if are_counts_files(sources, settings)? {
                return Ok(Some(As::Counts));
            }
            let columns = Tables::columns_of(source, settings.unpack_limit(source.bytes), &settings.text)?;
            if ["from", "to", "count"].iter().all(|c| columns.iter().any(|name| name == c)) {
                return Ok(Some(As::Counts));
            }
            let listed: Vec<String> = columns.iter().take(MOST_LISTED).map(|c| format!("`{}`", shorten(c))).collect();
            let more = if columns.len() > MOST_LISTED { format!(" and {} more", columns.len() - MOST_LISTED) } else { String::new() };
            Err(IngestError::new(Code::As, format!("it is not clear what this table holds; its columns are {}{more}", listed.join(", ")))
                .file(&source.name)
                .remedy(
                    "name columns: --from and --to for trips between labels, --from-lon, --from-lat, --to-lon and --to-lat for trips between points, --state (with --id and --time) for trajectories, --as counts with --weight for counts",
                ))
        }
    }
}

/// Columns named in a refusal, at most.
const MOST_LISTED: usize = 20;
/// Lines and bytes of a text that are looked at.
const LINES: usize = 200;
const LOOKED_AT: u64 = 1 << 18;
/// Lines of so many labels or fewer, all alike, may be the rows of a table.
const MOST_FIELDS: usize = 20;

/// A text is read as trajectories unless its lines look like rows: at least three, all with the same few fields, or fields with fractions.
fn check_lines(source: &Source) -> Result<()> {
    let head = BufReader::new(source.open()?.take(LOOKED_AT));
    let mut lines: Vec<String> = Vec::new();
    for line in head.split(b'\n').take(LINES) {
        let line = String::from_utf8_lossy(&line.map_err(|e| source.read_error(e))?).trim().to_owned();
        if !line.is_empty() && !line.starts_with('#') {
            lines.push(line);
        }
    }
    // The last one may be cut off.
    if lines.len() > 3 {
        lines.pop();
    }
    let fields = |line: &str| line.split([' ', '\t', ',']).filter(|f| !f.is_empty()).count();
    let count = lines.first().map_or(0, |line| fields(line));
    let alike = lines.len() >= 3 && count >= 2 && lines.iter().all(|line| fields(line) == count);
    let fraction = |line: &String| line.split([' ', '\t', ',']).any(|f| f.contains('.') && f.parse::<f64>().is_ok());
    if !alike || (count > MOST_FIELDS && !lines.iter().any(fraction)) {
        return Ok(());
    }
    Err(IngestError::new(Code::As, format!("every line of this text has {count} fields, so that it may be a table and no trajectories"))
        .file(&source.name)
        .line(1)
        .value(lines.first().cloned().unwrap_or_default())
        .remedy(
            "for a table say --from and --to by the names in its first line, or --no-header with --columns, such as --columns from,to,count --as counts; for trajectories of equal length say --as trajectories",
        ))
}

/// Whether the options themselves say what the inputs are.
pub(crate) fn says_kind(settings: &InputSettings) -> bool {
    let columns = [&settings.from, &settings.to, &settings.state, &settings.id, &settings.time];
    columns.iter().any(|c| c.is_some()) || settings.coordinate_columns().iter().any(|(_, c)| c.is_some())
}

fn array(source: &Source, settings: &InputSettings) -> Result<Option<As>> {
    let file = source.seekable(settings.unpack_limit(source.bytes))?;
    let handle = BufReader::new(file.open().map_err(|e| source.read_error(e))?);
    let header = NpyReader::open(handle, file.bytes, &source.name)?.header;
    match header.shape[..] {
        [_] if header.is_integer() => Ok(Some(As::Trajectories)),
        [rows, cols] if header.is_integer() && rows != cols => Ok(Some(As::Trajectories)),
        [_, _] if header.is_integer() => Err(IngestError::new(Code::As, "a square array of integers could be counts or trajectories")
            .file(&source.name)
            .value(format!("{:?}", header.shape))
            .remedy("say --as counts or --as trajectories")),
        _ => Ok(None),
    }
}

/// Options that the kind of input cannot use are refused: the user would think that they did something.
pub(crate) fn check_options(as_: Option<As>, sources: &[Source], settings: &InputSettings) -> Result<()> {
    let typed = |s: &Source| matches!(s.format, Format::Parquet | Format::JsonLines | Format::Memory);
    let rows = match (sources.iter().all(|s| may_be_table(s.format)), sources.iter().any(typed)) {
        (true, false) => HasRows::Text,
        (true, true) => HasRows::Typed,
        (false, _) => HasRows::None,
    };
    check(as_, rows, &sources[0].name, settings)
}

/// The same for rows of a table, wherever it is.
pub(crate) fn check_options_of_rows(as_: As, name: &str, settings: &InputSettings) -> Result<()> {
    check(Some(as_), HasRows::Typed, name, settings)
}

/// Whether the inputs have rows and columns, and whether these have to be found in a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HasRows {
    None,
    Typed,
    Text,
}

fn check(as_: Option<As>, rows: HasRows, input: &str, settings: &InputSettings) -> Result<()> {
    let (trips, walks, counts, matrix) =
        (as_ == Some(As::Trips), as_ == Some(As::Trajectories), as_ == Some(As::Counts), as_.is_none() || as_ == Some(As::Matrix));
    let table_counts = counts && rows != HasRows::None;
    let matrix = matrix || (counts && rows == HasRows::None);
    let some = |o: &Option<String>| o.is_some();
    let coordinates = settings.coordinate_columns().iter().any(|(_, c)| c.is_some());
    let text_table = rows == HasRows::Text && !(walks && settings.state.is_none());
    let second = match settings.second.as_ref().map(|s| s.option) {
        Some("action") => "--action",
        _ => "--slice",
    };
    let checks = [
        ("--no-header, --delimiter and --columns", settings.text.is_given(), text_table),
        ("--from and --to", some(&settings.from) || some(&settings.to), trips || table_counts),
        ("--from-lon, --from-lat, --to-lon and --to-lat", coordinates, trips),
        ("--bbox", settings.bbox.is_some(), trips),
        (second, settings.second.is_some(), trips || table_counts),
        ("--weight", some(&settings.weight), trips || table_counts),
        ("--where", some(&settings.where_), trips || table_counts || walks),
        ("--min-share", settings.min_share != 0.0, trips || table_counts || walks),
        ("--max-self-share", settings.max_self_share.is_some(), trips || table_counts || walks),
        ("--id, --time and --state", some(&settings.id) || some(&settings.time) || some(&settings.state), walks),
        ("--lag", settings.lag != 1, walks),
        ("--labels", some(&settings.labels), matrix),
        ("--weights", some(&settings.weights), matrix),
    ];
    let name = as_.map_or("a matrix file", As::name);
    match checks.iter().find(|(_, given, allowed)| *given && !allowed) {
        None => Ok(()),
        Some((option, ..)) => Err(IngestError::new(Code::Option, format!("{option} cannot be used with {name}"))
            .file(input)
            .remedy("leave it out, or say with --as what the input is")),
    }
}
