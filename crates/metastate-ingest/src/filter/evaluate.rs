//! Conditions on batches of columns, with SQL's three-valued logic: an unknown comparison keeps no row.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Datum, Float64Array, Int64Array, Scalar, StringArray, TimestampMicrosecondArray,
};
use arrow::compute::kernels::cmp;
use arrow::compute::{and_kleene, cast, date_part, ilike, is_null, like, not, or_kleene, take};
use arrow::datatypes::{DataType, Int32Type, TimeUnit};
use arrow::error::ArrowError;

use super::{Comparison, Filter, Literal, Operand, Predicate, refuse, time};
use crate::codes::Code;
use crate::columns::numbers;
use crate::error::{IngestError, Result};
use crate::table::{Batch, Numbers, Places};

const MICROSECONDS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

impl Filter {
    /// Which rows to keep. `slots[k]` is the place of the filter's k-th column in the batch.
    pub(crate) fn keep(&self, batch: &Batch<'_>, slots: &[usize]) -> Result<BooleanArray> {
        let eval = Evaluation { batch, slots, names: &self.columns };
        let known = eval.predicate(&self.predicate)?;
        // Unknown counts as false.
        Ok(match known.nulls() {
            None => known,
            Some(nulls) => BooleanArray::new(known.values() & nulls.inner(), None),
        })
    }
}

struct Evaluation<'e> {
    batch: &'e Batch<'e>,
    slots: &'e [usize],
    names: &'e [String],
}

impl Evaluation<'_> {
    fn predicate(&self, p: &Predicate) -> Result<BooleanArray> {
        match p {
            Predicate::And(parts) => self.fold(parts, and_kleene),
            Predicate::Or(parts) => self.fold(parts, or_kleene),
            Predicate::Not(inner) => not(&self.predicate(inner)?).map_err(|e| self.failed(e)),
            Predicate::Constant(value) => Ok(BooleanArray::from(vec![*value; self.batch.rows])),
            Predicate::IsTrue(k) => {
                let array = self.column(*k);
                match array.data_type() {
                    DataType::Boolean => Ok(array.as_boolean().clone()),
                    other => {
                        Err(refuse(format!("the column `{}` is {other}, not true or false", self.names[*k]))
                            .remedy("compare it with a value"))
                    }
                }
            }
            Predicate::IsNull(operand) => match operand {
                Operand::Column(k) | Operand::Part(_, k) => is_null(self.column(*k)).map_err(|e| self.failed(e)),
                Operand::Literal(l) => Ok(BooleanArray::from(vec![matches!(l, Literal::Null); self.batch.rows])),
            },
            Predicate::Like { operand, pattern, ignore_case } => self.like(operand, pattern, *ignore_case),
            Predicate::Compare(a, op, b) => match (a, b) {
                (Operand::Literal(_), Operand::Literal(_)) => Err(refuse("two constants are compared").remedy("name a column on one side")),
                (Operand::Literal(l), x) => self.with_literal(x, mirrored(*op), l),
                (x, Operand::Literal(l)) => self.with_literal(x, *op, l),
                (x, y) => self.with_column(x, *op, y),
            },
        }
    }

    fn fold(
        &self,
        parts: &[Predicate],
        join: fn(&BooleanArray, &BooleanArray) -> std::result::Result<BooleanArray, ArrowError>,
    ) -> Result<BooleanArray> {
        let mut all: Option<BooleanArray> = None;
        for p in parts {
            let next = self.predicate(p)?;
            all = Some(match all {
                None => next,
                Some(so_far) => join(&so_far, &next).map_err(|e| self.failed(e))?,
            });
        }
        Ok(all.unwrap_or_else(|| BooleanArray::from(vec![false; self.batch.rows])))
    }

    fn column(&self, k: usize) -> &ArrayRef {
        &self.batch.columns[self.slots[k]]
    }

    fn failed(&self, e: ArrowError) -> IngestError {
        refuse(format!("the condition cannot be evaluated ({e})")).file(self.batch.file)
    }

    /// A column, or a part of its dates; the name for messages.
    fn operand(&self, operand: &Operand) -> Result<(ArrayRef, usize)> {
        match operand {
            Operand::Column(k) => Ok((self.column(*k).clone(), *k)),
            Operand::Part(part, k) => {
                let times = self.times(self.column(*k), *k)?;
                Ok((date_part(&times, *part).map_err(|e| self.failed(e))?, *k))
            }
            Operand::Literal(_) => Err(refuse("a constant stands where a column is needed")),
        }
    }

    fn with_literal(&self, operand: &Operand, op: Comparison, literal: &Literal) -> Result<BooleanArray> {
        let (array, k) = self.operand(operand)?;
        if matches!(literal, Literal::Null) {
            return Ok(BooleanArray::from(vec![None; self.batch.rows])); // a comparison with NULL is never true
        }
        if let DataType::Dictionary(_, value) = array.data_type()
            && **value == DataType::Utf8
        {
            if let Literal::Text(text) = literal {
                // Each distinct text is compared once.
                let dictionary = array.as_dictionary::<Int32Type>();
                let of_values =
                    compare(dictionary.values(), op, &Scalar::new(StringArray::from(vec![text.as_str()]))).map_err(|e| self.failed(e))?;
                let taken = take(&of_values, dictionary.keys(), None).map_err(|e| self.failed(e))?;
                return Ok(taken.as_boolean().clone());
            }
            let plain = cast(&array, &DataType::Utf8).map_err(|e| self.failed(e))?;
            return self.plain_with_literal(&plain, k, op, literal);
        }
        self.plain_with_literal(&array, k, op, literal)
    }

    fn plain_with_literal(&self, array: &ArrayRef, k: usize, op: Comparison, literal: &Literal) -> Result<BooleanArray> {
        let name = &self.names[k];
        let mismatch = |what: &str| {
            let kind = if is_text(array) { "text".to_owned() } else { array.data_type().to_string() };
            refuse(format!("the column `{name}` is {kind} and cannot be compared with {what}")).file(self.batch.file)
        };
        match literal {
            Literal::Text(text) if is_text(array) => {
                let plain = cast(array, &DataType::Utf8).map_err(|e| self.failed(e))?;
                self.done(compare(&plain, op, &Scalar::new(StringArray::from(vec![text.as_str()]))))
            }
            Literal::Text(text) if array.data_type().is_temporal() => match time(text) {
                Some(t) => self.with_time(array, k, op, t),
                None => Err(mismatch(&format!("'{text}'")).remedy("write the date as '2015-12-01' or '2015-12-01 08:30:00'")),
            },
            Literal::Text(text) => match super::number(text) {
                Ok(number) if array.data_type().is_numeric() => self.plain_with_literal(array, k, op, &number),
                _ => Err(mismatch(&format!("the text '{text}'")).remedy("write a number without quotes")),
            },
            Literal::Integer(n) if array.data_type().is_integer() && *array.data_type() != DataType::UInt64 => {
                let wide = cast(array, &DataType::Int64).map_err(|e| self.failed(e))?;
                self.done(compare(&wide, op, &Scalar::new(Int64Array::from(vec![*n]))))
            }
            Literal::Integer(_) | Literal::Number(_) if array.data_type().is_numeric() || is_text(array) => {
                let x = match literal {
                    Literal::Integer(n) => *n as f64,
                    Literal::Number(x) => *x,
                    _ => f64::NAN,
                };
                let wide = self.as_numbers(array, name)?;
                self.done(compare(&wide, op, &Scalar::new(Float64Array::from(vec![x]))))
            }
            Literal::Integer(_) | Literal::Number(_) => Err(mismatch("a number").remedy("compare it with a value of its own kind")),
            Literal::Time(t) => self.with_time(array, k, op, *t),
            Literal::Boolean(b) if *array.data_type() == DataType::Boolean => {
                self.done(compare(array, op, &Scalar::new(BooleanArray::from(vec![*b]))))
            }
            Literal::Boolean(b) if is_text(array) => self.plain_with_literal(array, k, op, &Literal::Text(b.to_string())),
            Literal::Boolean(_) => Err(mismatch("true or false").remedy("compare it with a value of its own kind")),
            Literal::Null => Ok(BooleanArray::from(vec![None; array.len()])),
        }
    }

    fn with_time(&self, array: &ArrayRef, k: usize, op: Comparison, t: i64) -> Result<BooleanArray> {
        let times = self.times(array, k)?;
        self.done(compare(&times, op, &Scalar::new(TimestampMicrosecondArray::from(vec![t]))))
    }

    fn with_column(&self, a: &Operand, op: Comparison, b: &Operand) -> Result<BooleanArray> {
        let ((x, i), (y, j)) = (self.operand(a)?, self.operand(b)?);
        if is_text(&x) && is_text(&y) {
            let (x, y) = (cast(&x, &DataType::Utf8).map_err(|e| self.failed(e))?, cast(&y, &DataType::Utf8).map_err(|e| self.failed(e))?);
            return self.done(compare(&x, op, &y));
        }
        if x.data_type().is_temporal() || y.data_type().is_temporal() {
            return self.done(compare(&self.times(&x, i)?, op, &self.times(&y, j)?));
        }
        let (x, y) = (self.as_numbers(&x, &self.names[i])?, self.as_numbers(&y, &self.names[j])?);
        self.done(compare(&x, op, &y))
    }

    fn like(&self, operand: &Operand, pattern: &str, ignore_case: bool) -> Result<BooleanArray> {
        let (array, k) = self.operand(operand)?;
        if !is_text(&array) {
            return Err(refuse(format!("LIKE needs a text column, `{}` is {}", self.names[k], array.data_type())).file(self.batch.file));
        }
        let (values, keys) = match array.data_type() {
            DataType::Dictionary(..) => {
                let dictionary = array.as_dictionary::<Int32Type>();
                (dictionary.values().clone(), Some(dictionary.keys().clone()))
            }
            _ => (array.clone(), None),
        };
        let values = cast(&values, &DataType::Utf8).map_err(|e| self.failed(e))?;
        let pattern = Scalar::new(StringArray::from(vec![pattern]));
        let matched = self.done(if ignore_case { ilike(&values, &pattern) } else { like(&values, &pattern) })?;
        match keys {
            None => Ok(matched),
            Some(keys) => Ok(take(&matched, &keys, None).map_err(|e| self.failed(e))?.as_boolean().clone()),
        }
    }

    fn done(&self, result: std::result::Result<BooleanArray, ArrowError>) -> Result<BooleanArray> {
        result.map_err(|e| self.failed(e))
    }

    /// Numbers of a column that may be text, with the place of what is none.
    fn as_numbers(&self, array: &ArrayRef, name: &str) -> Result<Float64Array> {
        let numbers_here = Numbers::List((0..self.batch.rows).map(|i| self.batch.places.number(i)).collect());
        let places = Places { lines: self.batch.places.lines, numbers: numbers_here };
        numbers(&Batch { file: self.batch.file, columns: vec![array.clone()], places, rows: self.batch.rows }, 0, name)
    }

    /// Dates and times in microseconds; texts are read as such.
    fn times(&self, array: &ArrayRef, k: usize) -> Result<ArrayRef> {
        let name = &self.names[k];
        if is_text(array) {
            let plain = cast(array, &DataType::Utf8).map_err(|e| self.failed(e))?;
            let mut out = TimestampMicrosecondArray::builder(plain.len());
            for (i, text) in plain.as_string::<i32>().iter().enumerate() {
                match text {
                    None => out.append_null(),
                    Some(text) => match time(text) {
                        Some(t) => out.append_value(t),
                        None => {
                            let e = IngestError::new(Code::Number, "this is not a date or time").value(text);
                            return Err(self.batch.at(e.remedy("dates are written 2015-12-01 or 2015-12-01 08:30:00"), i, name));
                        }
                    },
                }
            }
            return Ok(Arc::new(out.finish()));
        }
        match array.data_type() {
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => cast(array, &MICROSECONDS).map_err(|e| self.failed(e)),
            other => Err(refuse(format!("the column `{name}` is {other}, not a date or time")).file(self.batch.file)),
        }
    }
}

fn is_text(array: &ArrayRef) -> bool {
    match array.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, value) => **value == DataType::Utf8,
        _ => false,
    }
}

fn compare(a: &dyn Datum, op: Comparison, b: &dyn Datum) -> std::result::Result<BooleanArray, ArrowError> {
    match op {
        Comparison::Equal => cmp::eq(a, b),
        Comparison::NotEqual => cmp::neq(a, b),
        Comparison::Less => cmp::lt(a, b),
        Comparison::LessEqual => cmp::lt_eq(a, b),
        Comparison::Greater => cmp::gt(a, b),
        Comparison::GreaterEqual => cmp::gt_eq(a, b),
    }
}

fn mirrored(op: Comparison) -> Comparison {
    match op {
        Comparison::Less => Comparison::Greater,
        Comparison::LessEqual => Comparison::GreaterEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterEqual => Comparison::LessEqual,
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{BooleanBuilder, DictionaryArray, Int16Array, TimestampMillisecondArray};

    fn kept(text: &str) -> std::result::Result<Vec<usize>, String> {
        let mut flag = BooleanBuilder::new();
        [Some(true), Some(false), None, Some(true)].into_iter().for_each(|b| flag.append_option(b));
        let all: Vec<(&str, ArrayRef)> = vec![
            ("n", Arc::new(Int16Array::from(vec![Some(1), Some(2), None, Some(-4)]))),
            ("x", Arc::new(Float64Array::from(vec![0.5, 1.5, f64::NAN, -2.0]))),
            ("s", Arc::new(StringArray::from(vec![Some("10"), Some("9"), None, Some("2")]))),
            ("mixed", Arc::new(StringArray::from(vec![Some("10"), Some("n/a"), None, Some("2")]))),
            ("d", Arc::new(vec![Some("yellow"), Some("green"), None, Some("yellow")].into_iter().collect::<DictionaryArray<Int32Type>>())),
            // 2015-12-01 (a Tuesday) 08:30, the next days at the same time
            ("t", Arc::new(TimestampMillisecondArray::from_iter_values((0..4).map(|i| 1_448_958_600_000 + i * 86_400_000)))),
            ("day", Arc::new(StringArray::from(vec!["2015-12-01", "2015-12-02 10:00:00", "2015-12-03", "2015-12-04"]))),
            ("flag", Arc::new(flag.finish())),
        ];
        let filter = Filter::parse(text).map_err(|e| e.to_string())?;
        let slots: Vec<usize> = filter.columns().iter().map(|c| all.iter().position(|(n, _)| n == c).unwrap()).collect();
        let places = Places { lines: true, numbers: Numbers::From(2) };
        let batch = Batch { file: "f.csv", columns: all.into_iter().map(|(_, a)| a).collect(), places, rows: 4 };
        let keep = filter.keep(&batch, &slots).map_err(|e| format!("{} {e}", e.code()))?;
        Ok((0..4).filter(|&i| keep.value(i)).collect())
    }

    #[test]
    fn conditions_keep_the_rows_sql_keeps() {
        for (text, rows) in [
            ("n > 1", vec![1]),
            ("NOT n > 1", vec![0, 3]),
            ("1 < n OR n = -4", vec![1, 3]),
            ("n BETWEEN 1 AND 2", vec![0, 1]),
            ("n NOT IN (1, -4)", vec![1]),
            ("n IN (2, NULL)", vec![1]),
            ("n IS NULL", vec![2]),
            ("n IS NOT NULL AND x < 1.0", vec![0, 3]),
            ("n = '2'", vec![1]),
            ("n < 1.5", vec![0, 3]),
            ("s > 5", vec![0, 1]),
            ("s > '5'", vec![1]),
            ("d = 'yellow'", vec![0, 3]),
            ("d <> 'yellow'", vec![1]),
            ("d LIKE 'y%' AND flag", vec![0, 3]),
            ("d NOT ILIKE 'Y%'", vec![1]),
            ("d IN ('green', 'blue')", vec![1]),
            ("EXTRACT(DOW FROM t) = 2", vec![0]),
            ("EXTRACT(HOUR FROM t) BETWEEN 8 AND 9", vec![0, 1, 2, 3]),
            ("EXTRACT(HOUR FROM day) = 10", vec![1]),
            ("t >= '2015-12-03'", vec![2, 3]),
            ("t < TIMESTAMP '2015-12-01 08:30:01'", vec![0]),
            ("day > DATE '2015-12-02'", vec![1, 2, 3]),
            ("s = n OR x > n", vec![3]),
            ("flag = false", vec![1]),
            ("n = 2 OR NULL", vec![1]),
        ] {
            // NaN is the largest number for Arrow's comparison, as in PostgreSQL.
            assert_eq!(kept(text), Ok(rows), "{text}");
        }
    }

    #[test]
    fn unlike_kinds_are_refused() {
        assert!(kept("mixed > 5").unwrap_err().starts_with("E-INGEST-NUMBER f.csv, line 3, column mixed"));
        assert!(kept("n = 'two'").unwrap_err().contains("cannot be compared with the text 'two'"));
        assert!(kept("t > 5").unwrap_err().contains("cannot be compared with a number"));
        assert!(kept("n > DATE '2015-12-01'").unwrap_err().contains("not a date"));
        assert!(kept("n LIKE 'a'").unwrap_err().contains("LIKE needs a text column"));
        assert!(kept("n").unwrap_err().contains("not true or false"));
    }
}
