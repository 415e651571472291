//! JSON lines: one object a line. Values become texts, as in CSV, so that a number is kept digit by digit.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{ArrayRef, StringBuilder};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::lines::Pieces;
use super::{Batch, Numbers, Places, as_text};
use crate::codes::Code;
use crate::error::{IngestError, Result, did_you_mean};
use crate::source::Source;

/// What the first line says.
pub(super) struct Layout {
    /// Keys of the first object; others may follow later.
    pub names: Vec<String>,
    /// Which wanted columns were met on any line.
    seen: Vec<AtomicBool>,
}

impl Layout {
    pub fn open(source: &Source, wanted: &[String]) -> Result<Self> {
        let Some((raw, line)) = Pieces::plain(source)?.header(source)? else {
            return Err(IngestError::new(Code::EmptyFile, "this file holds no rows").file(&source.name).remedy("check how it was written"));
        };
        let text = as_text(&raw, line, &source.name)?;
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(text.trim()).map_err(|e| refuse(&e.to_string(), &source.name, line, text))?;
        let names = object.keys().cloned().collect();
        Ok(Layout { names, seen: wanted.iter().map(|_| AtomicBool::new(false)).collect() })
    }

    /// A key may be missing on some lines, but not on all.
    pub fn check_seen(&self, source: &Source, wanted: &[String]) -> Result<()> {
        match self.seen.iter().zip(wanted).find(|(seen, _)| !seen.load(Ordering::Relaxed)) {
            None => Ok(()),
            Some((_, want)) => Err(IngestError::new(Code::Column, format!("no line has the key `{want}`"))
                .file(&source.name)
                .remedy(did_you_mean(want, &self.names))),
        }
    }

    pub fn decode<'a>(&self, file: &'a str, data: &[u8], first_line: u64, wanted: &[String]) -> Result<Batch<'a>> {
        let text = as_text(data, first_line, file)?;
        let mut columns: Vec<StringBuilder> = wanted.iter().map(|_| StringBuilder::new()).collect();
        let mut numbers = Vec::new();
        let mut values: Vec<Option<&RawValue>> = vec![None; wanted.len()];
        for (k, record) in text.split('\n').enumerate() {
            let (record, line) = (record.trim(), first_line + k as u64);
            if record.is_empty() {
                continue;
            }
            values.fill(None);
            let mut parser = serde_json::Deserializer::from_str(record);
            let parsed = Pick { wanted, values: &mut values }.deserialize(&mut parser).and_then(|()| parser.end());
            parsed.map_err(|e| refuse(&e.to_string(), file, line, record))?;
            for (slot, value) in values.iter().enumerate() {
                if value.is_some() {
                    self.seen[slot].store(true, Ordering::Relaxed);
                }
                let value = value.map(|v| plain(v.get(), file, line, &wanted[slot])).transpose()?.flatten();
                columns[slot].append_option(value);
            }
            numbers.push(line);
        }
        let columns = columns.into_iter().map(|mut b| Arc::new(b.finish()) as ArrayRef).collect();
        Ok(Batch { file, columns, rows: numbers.len(), places: Places { lines: true, numbers: Numbers::List(numbers) } })
    }
}

fn refuse(why: &str, file: &str, line: u64, record: &str) -> IngestError {
    // The parser's own "line 1" would contradict the line given here.
    let why = why.split(" at line ").next().unwrap_or(why);
    IngestError::new(Code::Json, format!("this line is not a JSON object ({why})"))
        .file(file)
        .line(line)
        .value(record.trim())
        .remedy("write one object a line, such as {\"from\": \"a\", \"to\": \"b\"}")
}

/// The text of a scalar; `None` for null and the empty text.
fn plain<'v>(raw: &'v str, file: &str, line: u64, column: &str) -> Result<Option<Cow<'v, str>>> {
    let refused = |code: Code, sentence: &str| IngestError::new(code, sentence).file(file).line(line).column(column).value(raw);
    match raw.as_bytes().first() {
        Some(b'"') => {
            let text: String = serde_json::from_str(raw).map_err(|_| refused(Code::Json, "this text cannot be read"))?;
            Ok(if text.is_empty() { None } else { Some(Cow::Owned(text)) })
        }
        Some(b'{' | b'[') => {
            Err(refused(Code::Json, "this value is nested, where a text or a number is needed").remedy("flatten the data first"))
        }
        _ if raw == "null" => Ok(None),
        _ => Ok(Some(Cow::Borrowed(raw))),
    }
}

/// Picks the wanted keys of an object and passes over the others without building them.
struct Pick<'p, 'de> {
    wanted: &'p [String],
    values: &'p mut [Option<&'de RawValue>],
}

impl<'de> DeserializeSeed<'de> for Pick<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Pick<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match self.wanted.iter().position(|w| *w == key) {
                Some(slot) if self.values[slot].is_some() => {
                    return Err(serde::de::Error::custom(format!("the key `{key}` stands twice")));
                }
                Some(slot) => self.values[slot] = Some(map.next_value()?),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};

    fn read(data: &str) -> Result<Batch<'static>> {
        let layout = Layout { names: Vec::new(), seen: vec![AtomicBool::new(false), AtomicBool::new(false)] };
        layout.decode("f", data.as_bytes(), 1, &["a".into(), "b".into()])
    }

    #[test]
    fn scalars_are_kept_digit_by_digit() {
        let batch = read("{\"a\": 18446744073709551616, \"x\": [1]}\n\n{\"b\": \"q\\n\", \"a\": null}\n").unwrap();
        let (a, b) = (batch.columns[0].as_string::<i32>(), batch.columns[1].as_string::<i32>());
        assert_eq!((a.value(0), a.is_null(1)), ("18446744073709551616", true));
        assert_eq!((b.is_null(0), b.value(1)), (true, "q\n"));
        assert_eq!(batch.places.number(1), 3);
    }

    #[test]
    fn nested_and_broken_lines_are_refused() {
        assert_eq!(read("{\"a\": {\"c\": 1}}").err().unwrap().code(), "E-INGEST-JSON");
        assert_eq!(read("{\"a\": 1}\n[1]").err().unwrap().place().line, Some(2));
        assert!(read("{\"a\": 1, \"a\": 2}").err().unwrap().to_string().contains("twice"));
    }
}
