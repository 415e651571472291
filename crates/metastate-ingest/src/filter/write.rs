//! The condition as the SQL of an engine, meaning there what [`evaluate`](super::evaluate) means here.

use arrow::array::temporal_conversions::timestamp_us_to_datetime;
use arrow::compute::DatePart;

use super::{Comparison, Filter, Literal, Operand, Predicate};
use crate::sql::Dialect;

/// Whole numbers below this are exact in double precision.
const EXACT: u64 = 1 << 53;

impl Filter {
    /// The condition in this SQL. `texts` says that all columns are texts, as those of CSV files are.
    pub(crate) fn write(&self, dialect: Dialect, texts: bool) -> String {
        Writing { dialect, texts, columns: &self.columns }.predicate(&self.predicate)
    }
}

struct Writing<'w> {
    dialect: Dialect,
    texts: bool,
    columns: &'w [String],
}

impl Writing<'_> {
    fn predicate(&self, p: &Predicate) -> String {
        let join = |parts: &[Predicate], word: &str| {
            let all: Vec<String> = parts.iter().map(|p| self.predicate(p)).collect();
            if all.is_empty() { "FALSE".to_owned() } else { format!("({})", all.join(word)) }
        };
        match p {
            Predicate::And(parts) => join(parts, " AND "),
            Predicate::Or(parts) => join(parts, " OR "),
            Predicate::Not(inner) => format!("(NOT {})", self.predicate(inner)),
            Predicate::Constant(Some(true)) => "TRUE".to_owned(),
            Predicate::Constant(Some(false)) => "FALSE".to_owned(),
            Predicate::Constant(None) => "CAST(NULL AS BOOLEAN)".to_owned(),
            Predicate::IsTrue(k) => self.column(*k),
            Predicate::IsNull(operand) => match operand {
                Operand::Column(k) | Operand::Part(_, k) => format!("{} IS NULL", self.column(*k)),
                Operand::Literal(l) => (if matches!(l, Literal::Null) { "TRUE" } else { "FALSE" }).to_owned(),
            },
            Predicate::Like { operand, pattern, ignore_case } => self.like(&self.plain(operand), pattern, *ignore_case),
            Predicate::Compare(a, op, b) => match (a, b) {
                (x, Operand::Literal(l)) => format!("{} {} {}", self.beside(x, l), sign(*op), self.literal(l)),
                (Operand::Literal(l), x) => format!("{} {} {}", self.literal(l), sign(*op), self.beside(x, l)),
                (x, y) => format!("{} {} {}", self.plain(x), sign(*op), self.plain(y)),
            },
        }
    }

    fn column(&self, k: usize) -> String {
        self.dialect.quoted(&self.columns[k])
    }

    fn plain(&self, operand: &Operand) -> String {
        match operand {
            Operand::Column(k) => self.column(*k),
            Operand::Part(part, k) => self.part(*part, &self.column(*k)),
            Operand::Literal(l) => self.literal(l),
        }
    }

    /// An operand as it stands beside this literal.
    fn beside(&self, operand: &Operand, literal: &Literal) -> String {
        match (operand, literal) {
            (Operand::Column(k), Literal::Integer(_) | Literal::Number(_)) if self.texts => {
                self.dialect.as_number(&format!("NULLIF(TRIM({}), '')", self.column(*k)))
            }
            (Operand::Column(k), Literal::Time(_)) => format!("CAST({} AS {})", self.column(*k), self.dialect.time_type()),
            _ => self.plain(operand),
        }
    }

    fn literal(&self, literal: &Literal) -> String {
        match literal {
            // DuckDB would round a text to a whole number before it compares the two.
            Literal::Integer(n) if self.dialect == Dialect::DuckDb && n.unsigned_abs() < EXACT => self.dialect.number(*n as f64),
            Literal::Integer(n) => n.to_string(),
            Literal::Number(x) => self.dialect.number(*x),
            Literal::Text(text) => self.dialect.text(text),
            Literal::Time(t) => match timestamp_us_to_datetime(*t) {
                Some(moment) => format!("{} '{}'", self.dialect.time_type(), moment.format("%Y-%m-%d %H:%M:%S%.6f")),
                None => "NULL".to_owned(), // no moment that a calendar knows; the parser made it of one
            },
            Literal::Boolean(b) => (if *b { "TRUE" } else { "FALSE" }).to_owned(),
            Literal::Null => "NULL".to_owned(),
        }
    }

    fn like(&self, operand: &str, pattern: &str, ignore_case: bool) -> String {
        let text = self.dialect.text(pattern);
        match (self.dialect, ignore_case) {
            (Dialect::BigQuery, true) => format!("LOWER({operand}) LIKE LOWER({text})"),
            (Dialect::DuckDb, _) => format!("{operand} {} {text} ESCAPE '\\'", if ignore_case { "ILIKE" } else { "LIKE" }),
            (_, true) => format!("{operand} ILIKE {text}"),
            (_, false) => format!("{operand} LIKE {text}"),
        }
    }

    /// A part of a date: weeks are ISO's, Sunday is day 0 and Monday ISO's day 1, seconds are whole.
    fn part(&self, part: DatePart, column: &str) -> String {
        let extract = |word: &str| format!("EXTRACT({word} FROM CAST({column} AS {}))", self.dialect.time_type());
        let fractions = matches!(self.dialect, Dialect::Spark | Dialect::Postgres);
        match (part, self.dialect) {
            (DatePart::Second, _) if fractions => format!("FLOOR({})", extract("SECOND")),
            (DatePart::DayOfWeekSunday0, Dialect::Spark | Dialect::BigQuery) => format!("({} - 1)", extract("DAYOFWEEK")),
            (DatePart::DayOfWeekSunday0, _) => extract("DOW"),
            (DatePart::DayOfWeekMonday1, Dialect::BigQuery) => format!("(MOD({} + 5, 7) + 1)", extract("DAYOFWEEK")),
            (DatePart::DayOfWeekMonday1, Dialect::Spark) => extract("DAYOFWEEK_ISO"),
            (DatePart::DayOfWeekMonday1, _) => extract("ISODOW"),
            (DatePart::WeekISO, Dialect::BigQuery) => extract("ISOWEEK"),
            (DatePart::WeekISO, _) => extract("WEEK"),
            (DatePart::DayOfYear, Dialect::BigQuery) => extract("DAYOFYEAR"),
            (DatePart::DayOfYear, _) => extract("DOY"),
            (DatePart::Year, _) => extract("YEAR"),
            (DatePart::Quarter, _) => extract("QUARTER"),
            (DatePart::Month, _) => extract("MONTH"),
            (DatePart::Day, _) => extract("DAY"),
            (DatePart::Hour, _) => extract("HOUR"),
            (DatePart::Minute, _) => extract("MINUTE"),
            // The parser makes no other parts.
            (_, _) => extract("SECOND"),
        }
    }
}

fn sign(op: Comparison) -> &'static str {
    match op {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterEqual => ">=",
    }
}
