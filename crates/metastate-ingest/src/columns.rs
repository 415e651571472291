//! Columns as numbers, whatever type the file gave them, with the place of the first value that is none.

use arrow::array::{Array, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type};

use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::table::Batch;

/// A column as `f64`; nulls stay nulls. Single precision is widened, never the other way: cells depend on it.
pub(crate) fn numbers(batch: &Batch<'_>, slot: usize, name: &str) -> Result<Float64Array> {
    let array = &batch.columns[slot];
    match array.data_type() {
        DataType::Utf8 => parse(batch, array.as_string::<i32>().iter(), name),
        DataType::Dictionary(_, value) if **value == DataType::Utf8 => {
            let dictionary = array.as_dictionary::<Int32Type>();
            let texts = dictionary.downcast_dict::<arrow::array::StringArray>();
            match texts {
                Some(texts) => parse(batch, texts.into_iter(), name),
                None => Err(no_number(batch, slot, name)),
            }
        }
        DataType::Float64 => Ok(array.as_primitive().clone()),
        kind if kind.is_numeric() => {
            let wide = cast(array, &DataType::Float64).map_err(|_| no_number(batch, slot, name))?;
            Ok(wide.as_primitive().clone())
        }
        _ => Err(no_number(batch, slot, name)),
    }
}

fn no_number(batch: &Batch<'_>, slot: usize, name: &str) -> IngestError {
    IngestError::new(Code::Type, format!("this column is {}, where numbers are needed", batch.columns[slot].data_type()))
        .file(batch.file)
        .column(name)
        .remedy("name another column")
}

fn parse<'t>(batch: &Batch<'_>, texts: impl Iterator<Item = Option<&'t str>>, name: &str) -> Result<Float64Array> {
    let mut out = Float64Array::builder(batch.rows);
    for (i, text) in texts.enumerate() {
        match text.map(str::trim) {
            None | Some("") => out.append_null(),
            Some(t) => match t.parse::<f64>() {
                Ok(x) => out.append_value(x),
                Err(_) => {
                    let comma = t.contains(',') && t.replace(',', ".").parse::<f64>().is_ok();
                    if comma {
                        let e = IngestError::new(Code::Number, "this number has a decimal comma").value(t);
                        let remedy = "write numbers with a decimal point, for instance: sed 's/\\([0-9]\\),\\([0-9]\\)/\\1.\\2/g', where commas separate nothing else";
                        return Err(batch.at(e.remedy(remedy), i, name));
                    }
                    let remedy = format!(
                        "correct it, or leave such rows out with --where \"{name} <> '{}'\"",
                        t.chars().take(20).collect::<String>()
                    );
                    return Err(batch.at(IngestError::new(Code::Number, "this is not a number").value(t).remedy(remedy), i, name));
                }
            },
        }
    }
    Ok(out.finish())
}

/// A column of finite numbers of either sign; nulls stay nulls.
pub(crate) fn finite(batch: &Batch<'_>, slot: usize, name: &str) -> Result<Float64Array> {
    let values = numbers(batch, slot, name)?;
    match (0..values.len()).find(|&i| !values.is_null(i) && !values.value(i).is_finite()) {
        None => Ok(values),
        Some(i) => {
            let e = IngestError::new(Code::NotFinite, "this must be a finite number").value(values.value(i).to_string());
            Err(batch.at(e.remedy("correct it, or leave the row out with --where"), i, name))
        }
    }
}

/// Weights: present, finite, zero or more.
pub(crate) fn weights(batch: &Batch<'_>, slot: usize, name: &str) -> Result<Vec<Option<f64>>> {
    let values = numbers(batch, slot, name)?;
    let mut out = Vec::with_capacity(values.len());
    for i in 0..values.len() {
        if values.is_null(i) {
            out.push(None);
            continue;
        }
        let x = values.value(i);
        if !x.is_finite() {
            let e = IngestError::new(Code::NotFinite, "a count or weight must be a finite number").value(x.to_string());
            return Err(batch.at(e.remedy("correct it, or leave the row out with --where"), i, name));
        }
        if x < 0.0 {
            let e = IngestError::new(Code::Negative, "a count or weight must be zero or more").value(x.to_string());
            return Err(batch.at(e.remedy("correct it, or leave the row out with --where"), i, name));
        }
        out.push(Some(x));
    }
    Ok(out)
}
