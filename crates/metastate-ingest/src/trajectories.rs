//! Trajectories: tables by id, time and state; lines of text; arrays of integers. Nothing is counted across two of them.

use std::io::{BufReader, Read};

use metastate::workspace::folds::NO_STATE;
use metastate::{Label, LedgerUnit};

use crate::assemble::{CountedStates, Ends, Pairs};
use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::labels::{LabelSet, MISSING};
use crate::memory::Walk;
use crate::npy::NpyReader;
use crate::ordered;
use crate::progress::{Phase, ReadProgress, tell};
use crate::settings::InputSettings;
use crate::source::{Format, Source};
use crate::table::Tables;
use crate::trips::{plan_filter, slot};
use crate::window::Window;

/// No label is longer than this.
const LONGEST_LABEL: usize = 1 << 16;

/// What has been read so far.
pub(crate) struct Reading {
    pub window: Window,
    pub states: LabelSet,
    pub frames: u64,
    pub hints: Vec<String>,
}

impl Reading {
    /// The next frame; `-1` means unassigned. `place` is asked for only when a gap is noted.
    fn frame(&mut self, label: Option<u32>, place: impl Fn() -> String) -> Result<()> {
        self.frames += 1;
        match label {
            Some(state) => self.window.push(state),
            None => {
                self.window.ledger.add("unassigned-frame", LedgerUnit::Frames, 1, 1.0, std::iter::once_with(&place));
                self.window.end(place);
                Ok(())
            }
        }
    }
}

/// Reads all sources and counts their transitions.
pub(crate) fn read(sources: &[Source], settings: &InputSettings, progress: &mut dyn ReadProgress) -> Result<CountedStates> {
    let mut reading = begin(settings)?;
    let tables = sources.iter().filter(|s| s.format.is_table() || (s.format == Format::Unknown && settings.state.is_some())).count();
    if tables == sources.len() {
        table(sources, settings, &mut reading, progress)?;
    } else if tables > 0 {
        return Err(IngestError::new(Code::Format, "tables and other files are mixed")
            .file(&sources[0].name)
            .remedy("read them apart and merge the counts"));
    } else {
        if settings.state.is_some() || settings.id.is_some() || settings.time.is_some() || settings.where_.is_some() {
            return Err(needs_columns(&sources[0].name));
        }
        let total: u64 = sources.iter().map(|s| s.bytes).sum();
        let mut done = 0;
        for source in sources {
            match source.format {
                Format::Npy => array(source, settings, &mut reading)?,
                Format::Text | Format::Unknown => text(source, &mut reading, progress, done, total)?,
                _ => {
                    return Err(IngestError::new(Code::Format, "trajectories are tables, text or .npy files")
                        .file(&source.name)
                        .remedy("use --as counts or --as matrix for matrix files"));
                }
            }
            done += source.bytes;
            tell(progress, Phase::Reading, reading.frames, done, total)?;
        }
    }
    finish(reading, settings, &sources[0].name)
}

/// Counts the transitions of trajectories that are in memory.
pub(crate) fn read_walks<'a>(
    walks: impl IntoIterator<Item = Walk<'a>>,
    settings: &InputSettings,
    name: &str,
    progress: &mut dyn ReadProgress,
) -> Result<CountedStates> {
    let mut reading = begin(settings)?;
    if settings.state.is_some() || settings.id.is_some() || settings.time.is_some() || settings.where_.is_some() {
        return Err(needs_columns(name));
    }
    for (n, walk) in walks.into_iter().enumerate() {
        let frames = match walk {
            Walk::Numbers(list) => list.len(),
            Walk::Names(list) => list.len(),
        };
        for t in 0..frames {
            let state = match walk {
                Walk::Numbers(list) => (list[t] != -1).then(|| reading.states.integer(list[t])),
                Walk::Names(list) => (!list[t].is_empty() && list[t] != "-1").then(|| reading.states.text(&list[t])),
            };
            reading.frame(state, || format!("trajectory {}, frame {}", n + 1, t + 1))?;
            if t.is_multiple_of(1 << 20) {
                tell(progress, Phase::Reading, reading.frames, 0, 0)?;
            }
        }
        reading.window.end(|| format!("trajectory {}", n + 1));
    }
    finish(reading, settings, name)
}

/// Refuses a lag of no frames.
pub(crate) fn check_lag(settings: &InputSettings) -> Result<()> {
    if settings.lag == 0 || settings.lag > 1 << 31 {
        return Err(IngestError::new(Code::Option, "--lag must be at least 1 frame")
            .value(settings.lag.to_string())
            .remedy("give a whole number of frames"));
    }
    Ok(())
}

fn begin(settings: &InputSettings) -> Result<Reading> {
    check_lag(settings)?;
    let mut window = Window::new(settings.lag, settings.count, settings.memory_limit);
    window.recorded = settings.keep_frames.then(Vec::new);
    Ok(Reading { window, states: LabelSet::default(), frames: 0, hints: Vec::new() })
}

fn needs_columns(name: &str) -> IngestError {
    IngestError::new(Code::Option, "--state, --id, --time and --where need a table with named columns")
        .file(name)
        .remedy("leave them out for text and .npy files")
}

fn finish(mut reading: Reading, settings: &InputSettings, file: &str) -> Result<CountedStates> {
    reading.window.flush()?;
    let short = reading.window.ledger.get("too-short-for-lag", LedgerUnit::Trajectories).map_or(0, |e| e.count);
    if reading.window.kept == 0 && short > 1 && reading.frames == short {
        return Err(IngestError::new(Code::NothingLeft, format!("every one of the {short} trajectories has a single frame"))
            .file(file)
            .remedy("one line is one trajectory; a trajectory written as a column is read as a table: give it a header and name it with --state"));
    }
    let Reading { mut window, states, frames, hints } = reading;
    let (recorded, labels) = (window.recorded.take(), if settings.keep_frames { states.labels.clone() } else { Vec::new() });
    let pairs = Pairs {
        counter: Box::new(window.counter),
        rows_counter: None,
        second: None,
        labels: states.labels,
        pinned: Vec::new(),
        ends: Ends::Labels,
        ledger: window.ledger,
        noun: "frames",
        rows: frames,
        kept: window.kept,
        hints,
    };
    let mut counted = pairs.into_counts(settings, file)?.with_lag(settings.lag, settings.count)?;
    counted.frames = recorded.map(|frames| renumbered(frames, &labels, &counted));
    Ok(counted)
}

/// The frames by the numbers that the states have in the counts; states that were left out break their trajectory.
fn renumbered(mut frames: Vec<u32>, labels: &[Label], counted: &CountedStates) -> Vec<u32> {
    let number: Vec<u32> = labels.iter().map(|l| counted.counts.index().position(l).unwrap_or(NO_STATE)).collect();
    frames.iter_mut().filter(|s| **s != NO_STATE).for_each(|s| *s = number[*s as usize]);
    frames
}

/// A table: in the order of its rows, or by id and time.
fn table(sources: &[Source], settings: &InputSettings, reading: &mut Reading, progress: &mut dyn ReadProgress) -> Result<()> {
    let Some(state) = &settings.state else {
        return Err(IngestError::new(Code::Option, "--state is missing")
            .file(&sources[0].name)
            .remedy("name the column of states, and --id and --time where there are such columns"));
    };
    let mut wanted = Vec::new();
    let state_slot = slot(&mut wanted, state);
    let id = settings.id.as_ref().map(|c| slot(&mut wanted, c));
    let time = settings.time.as_ref().map(|c| slot(&mut wanted, c));
    let filter = plan_filter(settings, &mut wanted)?;
    let stored: u64 = sources.iter().map(|s| s.bytes).sum();
    let mut tables = Tables::open(sources, &wanted, settings.unpack_limit(stored), &settings.text)?;
    let plan = ordered::Plan { state: state_slot, id, time, filter, names: &wanted };
    if id.is_some() || time.is_some() {
        ordered::read(&mut tables, &plan, settings, reading, progress)?;
    } else {
        in_file_order(&mut tables, &plan, sources, reading, progress)?;
    }
    reading.hints.append(&mut tables.hints);
    Ok(())
}

/// Each file is one trajectory, row after row.
fn in_file_order(
    tables: &mut Tables<'_>,
    plan: &ordered::Plan<'_>,
    sources: &[Source],
    reading: &mut Reading,
    progress: &mut dyn ReadProgress,
) -> Result<()> {
    let mut current = 0;
    tables.scan(
        progress,
        |feed, file| {
            let mut unit = ordered::Unit::of(file);
            feed(&mut |batch| plan.take(batch, &mut unit))?;
            Ok(unit)
        },
        |units| {
            for unit in units {
                if unit.file != current {
                    reading.window.end(|| sources[current].name.clone());
                    current = unit.file;
                }
                let numbers: Vec<u32> = unit.labels.labels.iter().map(|l| reading.states.label(l)).collect();
                reading.window.ledger.merge(&unit.ledger);
                reading.frames += unit.states.len() as u64;
                for &k in &unit.states {
                    if k == MISSING {
                        reading.window.end(|| sources[current].name.clone());
                    } else {
                        reading.window.push(numbers[k as usize])?;
                    }
                }
            }
            Ok(())
        },
    )?;
    reading.window.end(|| sources[current].name.clone());
    Ok(())
}

/// One trajectory a line; labels separated by blanks or commas. Read as a stream: a line may be longer than memory.
fn text(source: &Source, reading: &mut Reading, progress: &mut dyn ReadProgress, done: u64, total: u64) -> Result<()> {
    let (reader, position) = source.open_counted()?;
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let mut buffer = vec![0u8; 1 << 16];
    let mut scanner = Scanner { source, line: 1, label: Vec::new(), after_comma: false, fresh: true, comment: false, comments: 0 };
    let mut first = true;
    let mut chunks = 0u64;
    loop {
        let n = reader.read(&mut buffer).map_err(|e| source.read_error(e))?;
        if n == 0 {
            break;
        }
        let skip = if first && buffer[..n].starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        first = false;
        for &byte in &buffer[skip..n] {
            scanner.byte(byte, reading)?;
        }
        chunks += 1;
        if chunks.is_multiple_of(64) {
            tell(progress, Phase::Reading, reading.frames, done + position.load(std::sync::atomic::Ordering::Relaxed), total)?;
        }
    }
    scanner.byte(b'\n', reading)?;
    if scanner.comments > 0 {
        reading.hints.push(format!("{}: {} lines that begin with # were passed over", source.name, scanner.comments));
    }
    Ok(())
}

struct Scanner<'s> {
    source: &'s Source,
    line: u64,
    label: Vec<u8>,
    /// The last separator was a comma, so that an empty field may follow.
    after_comma: bool,
    /// Nothing but blanks on this line so far.
    fresh: bool,
    comment: bool,
    comments: u64,
}

impl Scanner<'_> {
    fn byte(&mut self, byte: u8, reading: &mut Reading) -> Result<()> {
        match byte {
            b'\n' => {
                if !self.comment {
                    let waiting = self.end_label(reading)?;
                    if waiting && self.after_comma {
                        reading.frame(None, || place(self.source, self.line))?; // "1,2," ends with an empty field
                    }
                }
                reading.window.end(|| place(self.source, self.line));
                self.line += 1;
                (self.after_comma, self.fresh, self.comment) = (false, true, false);
            }
            _ if self.comment => {}
            b'#' if self.fresh => {
                self.comment = true;
                self.comments += 1;
            }
            b',' => {
                let empty = self.end_label(reading)?;
                if empty && (self.after_comma || self.fresh) {
                    reading.frame(None, || place(self.source, self.line))?;
                }
                (self.after_comma, self.fresh) = (true, false);
            }
            b' ' | b'\t' | b'\r' => {
                self.end_label(reading)?;
            }
            0 => {
                return Err(IngestError::new(Code::Nul, "this line holds a NUL byte, so this is no text file")
                    .file(&self.source.name)
                    .line(self.line)
                    .remedy("check that the file is what its name says and is whole"));
            }
            _ => {
                self.fresh = false;
                self.label.push(byte);
                if self.label.len() > LONGEST_LABEL {
                    return Err(IngestError::new(Code::Line, "a label is far too long")
                        .file(&self.source.name)
                        .line(self.line)
                        .remedy("check that the file is what its name says"));
                }
            }
        }
        Ok(())
    }

    /// Hands out the label, if there is one; true when there was none.
    fn end_label(&mut self, reading: &mut Reading) -> Result<bool> {
        if self.label.is_empty() {
            return Ok(true);
        }
        let Ok(text) = std::str::from_utf8(&self.label) else {
            let bytes = self.label.iter().take(8).map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
            return Err(IngestError::new(Code::Utf8, "this line is not UTF-8")
                .file(&self.source.name)
                .line(self.line)
                .value(bytes)
                .remedy("convert the file, for instance: iconv -f LATIN1 -t UTF-8"));
        };
        let state = if text == "-1" { None } else { Some(reading.states.text(text)) };
        reading.frame(state, || place(self.source, self.line))?;
        self.label.clear();
        self.after_comma = false;
        Ok(false)
    }
}

fn place(source: &Source, line: u64) -> String {
    format!("{}, line {line}", source.name)
}

/// One array: one trajectory, or one a row.
fn array(source: &Source, settings: &InputSettings, reading: &mut Reading) -> Result<()> {
    let file = source.seekable(settings.unpack_limit(source.bytes))?;
    let handle = BufReader::new(file.open().map_err(|e| source.read_error(e))?);
    let mut reader = NpyReader::open(handle, file.bytes, &source.name)?;
    let header = reader.header.clone();
    if !header.is_integer() {
        return Err(IngestError::new(Code::Npy, "trajectories must be whole numbers, this array holds others")
            .file(&source.name)
            .remedy("save the numbers of the states: array.astype('int64')"));
    }
    let (rows, cols) = match header.shape[..] {
        [n] => (1, n),
        [rows, cols] => (rows, cols),
        _ => {
            return Err(IngestError::new(Code::Npy, "trajectories have one dimension, or two with one trajectory a row")
                .file(&source.name)
                .value(format!("{:?}", header.shape))
                .remedy("reshape the array"));
        }
    };
    let push = |n: i64, at: u64, reading: &mut Reading| {
        let state = if n == -1 { None } else { Some(reading.states.integer(n)) };
        reading.frame(state, || format!("{}, frame {}", source.name, at + 1))?;
        if (at + 1).is_multiple_of(cols) {
            reading.window.end(|| format!("{}, row {}", source.name, at / cols + 1));
        }
        Ok(())
    };
    let mut chunk = Vec::new();
    if header.fortran && rows > 1 {
        // Column after column: the rows have to be put together first.
        while reader.integers(1 << 13, &mut chunk)? {}
        for i in 0..rows {
            for j in 0..cols {
                push(chunk[(j * rows + i) as usize], i * cols + j, reading)?;
            }
        }
        return Ok(());
    }
    let mut at = 0;
    while reader.integers(1 << 13, &mut chunk)? {
        for n in chunk.drain(..) {
            push(n, at, reading)?;
            at += 1;
        }
    }
    Ok(())
}

/// Whether a label means that a frame was not assigned to any state.
pub(crate) fn is_unassigned(label: &Label) -> bool {
    matches!(label, Label::Integer(-1))
}
