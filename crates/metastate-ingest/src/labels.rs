//! Labels and the numbers they get, for one unit of work and for the whole data set.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type};
use metastate::Label;

use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::table::Batch;

/// Stands for "no label": a null, an empty text, NaN.
pub(crate) const MISSING: u32 = u32::MAX;
/// Not looked up yet, inside a dictionary's map.
const UNKNOWN: u32 = u32::MAX - 1;
/// Integers from 0 up to this are found by their place in a list.
const SMALL: i64 = 1 << 16;

/// Distinct labels in the order of their first appearance.
#[derive(Default)]
pub(crate) struct LabelSet {
    small: Vec<u32>,
    // Seeded hashes: fast, and no file can be made to collide on purpose. Nothing depends on their order.
    integers: HashMap<i64, u32, ahash::RandomState>,
    texts: HashMap<Box<str>, u32, ahash::RandomState>,
    pub labels: Vec<Label>,
    /// The dictionary looked at last, with the numbers of its values.
    dictionary: Option<(ArrayRef, Vec<u32>)>,
    /// Texts met are longer than anybody's labels: nothing but a file read as what it is not.
    pub longest: usize,
}

impl LabelSet {
    #[inline]
    pub fn integer(&mut self, n: i64) -> u32 {
        if (0..SMALL).contains(&n) {
            let at = n as usize;
            if at >= self.small.len() {
                self.small.resize((at + 1).next_power_of_two(), MISSING);
            }
            if self.small[at] == MISSING {
                self.small[at] = self.labels.len() as u32;
                self.labels.push(Label::Integer(n));
            }
            return self.small[at];
        }
        let next = self.labels.len() as u32;
        let id = *self.integers.entry(n).or_insert(next);
        if id == next {
            self.labels.push(Label::Integer(n));
        }
        id
    }

    #[inline]
    pub fn text(&mut self, s: &str) -> u32 {
        if s.is_empty() {
            return MISSING;
        }
        if let Some(n) = canonical_integer(s) {
            return self.integer(n);
        }
        if let Some(&id) = self.texts.get(s) {
            return id;
        }
        let id = self.labels.len() as u32;
        self.longest = self.longest.max(s.len());
        self.texts.insert(s.into(), id);
        self.labels.push(Label::Text(s.into()));
        id
    }

    pub fn label(&mut self, label: &Label) -> u32 {
        match label {
            Label::Integer(n) => self.integer(*n),
            Label::Text(s) => self.text(s),
        }
    }

    /// The numbers of the labels of a column, [`MISSING`] where there is none.
    pub fn ids(&mut self, batch: &Batch<'_>, slot: usize, name: &str) -> Result<Vec<u32>> {
        let array = &batch.columns[slot];
        macro_rules! integers {
            ($type:ty) => {{
                let values = array.as_primitive::<$type>();
                let raw = values.values();
                if values.null_count() == 0 {
                    raw.iter().map(|&n| self.integer(n as i64)).collect()
                } else {
                    (0..raw.len()).map(|i| if values.is_null(i) { MISSING } else { self.integer(raw[i] as i64) }).collect()
                }
            }};
        }
        macro_rules! floats {
            ($type:ty) => {{
                let values = array.as_primitive::<$type>();
                let mut ids = Vec::with_capacity(values.len());
                for i in 0..values.len() {
                    let x = f64::from(values.value(i));
                    ids.push(if values.is_null(i) || x.is_nan() {
                        MISSING
                    } else if x.fract() == 0.0 && x.abs() < 9.0e15 {
                        self.integer(x as i64)
                    } else {
                        return Err(batch.at(not_whole(x), i, name));
                    });
                }
                ids
            }};
        }
        let ids: Vec<u32> = match array.data_type() {
            DataType::Int8 => integers!(Int8Type),
            DataType::Int16 => integers!(Int16Type),
            DataType::Int32 => integers!(Int32Type),
            DataType::Int64 => integers!(Int64Type),
            DataType::UInt8 => integers!(UInt8Type),
            DataType::UInt16 => integers!(UInt16Type),
            DataType::UInt32 => integers!(UInt32Type),
            DataType::Float32 => floats!(Float32Type),
            DataType::Float64 => floats!(Float64Type),
            DataType::Utf8 => {
                let values = array.as_string::<i32>();
                (0..values.len()).map(|i| if values.is_null(i) { MISSING } else { self.text(values.value(i)) }).collect()
            }
            DataType::Dictionary(key, value) if **key == DataType::Int32 && **value == DataType::Utf8 => {
                self.dictionary_ids(array.as_dictionary::<Int32Type>())
            }
            other => {
                // Booleans, dates, times, decimals and large unsigned integers are labels by their text.
                let cast = arrow::compute::cast(array, &DataType::Utf8).map_err(|e| {
                    IngestError::new(Code::Type, format!("a column of type {other} cannot give labels ({e})"))
                        .file(batch.file)
                        .column(name)
                        .remedy("use a column of texts or whole numbers")
                })?;
                let values = cast.as_string::<i32>();
                (0..values.len()).map(|i| if values.is_null(i) { MISSING } else { self.text(values.value(i)) }).collect()
            }
        };
        if self.longest > 1 << 16 {
            return Err(IngestError::new(
                Code::Line,
                format!("a label of {} bytes was met; labels have at most 65536 bytes", self.longest),
            )
            .file(batch.file)
            .column(name)
            .remedy("check the delimiter and the column"));
        }
        if self.labels.len() >= UNKNOWN as usize {
            return Err(IngestError::new(Code::TooLarge, "there are more than four thousand million labels").file(batch.file).column(name));
        }
        Ok(ids)
    }

    fn dictionary_ids(&mut self, array: &DictionaryArray<Int32Type>) -> Vec<u32> {
        let values = array.values();
        // Batches of one row group share their dictionary; its map stays good as long as it is the same memory.
        let same = |(known, _): &(ArrayRef, Vec<u32>)| known.len() == values.len() && known.to_data().ptr_eq(&values.to_data());
        let mut map = match self.dictionary.take().filter(same) {
            Some((_, map)) => map,
            None => vec![UNKNOWN; values.len()],
        };
        let texts = values.as_string::<i32>();
        let keys = array.keys();
        let mut ids = Vec::with_capacity(keys.len());
        let mut look_up = |set: &mut LabelSet, key: i32| {
            // The decoder checks keys against the dictionary; a key beyond it would be its bug, met without a panic.
            let Some(slot) = map.get_mut(key as usize) else { return MISSING };
            if *slot == UNKNOWN {
                *slot = if texts.is_null(key as usize) { MISSING } else { set.text(texts.value(key as usize)) };
            }
            *slot
        };
        if keys.null_count() == 0 {
            for &key in keys.values() {
                ids.push(look_up(self, key));
            }
        } else {
            for i in 0..keys.len() {
                ids.push(if keys.is_null(i) { MISSING } else { look_up(self, keys.value(i)) });
            }
        }
        self.dictionary = Some((values.clone(), map));
        ids
    }
}

fn not_whole(x: f64) -> IngestError {
    if x.fract() == 0.0 {
        return IngestError::new(
            Code::Type,
            "this number is stored as a float and too large for one to hold exactly, so that different labels may have become the same",
        )
        .value(format!("{x}"))
        .remedy("store the column as text or as 64-bit integers");
    }
    IngestError::new(Code::Type, "a label that is a number must be whole")
        .value(x.to_string())
        .remedy("use a column of texts or whole numbers, or cells with --from-lon and the like")
}

/// The integer that is written exactly so; the same rule as the library's, without making a label.
fn canonical_integer(s: &str) -> Option<i64> {
    let digits = s.strip_prefix('-').unwrap_or(s).as_bytes();
    match digits {
        [b'0'] if s.len() == 1 => Some(0),
        [b'1'..=b'9', rest @ ..] if rest.len() < 19 && rest.iter().all(u8::is_ascii_digit) => s.parse().ok(),
        _ => None,
    }
}

/// The order of states in a result: integers by size, then texts. `order[new] = old`.
pub(crate) fn sorted_order(labels: &[Label]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..labels.len() as u32).collect();
    order.sort_unstable_by(|&a, &b| labels[a as usize].cmp(&labels[b as usize]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_follow_the_librarys_rule() {
        for s in [
            "0",
            "-0",
            "7",
            "007",
            "+7",
            "-12",
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775808",
            "1e3",
            " 1",
            "-",
            "x",
        ] {
            let mut set = LabelSet::default();
            set.text(s);
            assert_eq!(set.labels[0], Label::from(s), "{s}");
        }
    }

    #[test]
    fn the_same_label_gets_the_same_number() {
        let mut set = LabelSet::default();
        assert_eq!([set.text("b"), set.integer(5), set.text("5"), set.integer(-3), set.text("b"), set.text("")], [0, 1, 1, 2, 0, MISSING]);
        assert_eq!(sorted_order(&set.labels), [2, 1, 0]);
    }
}
