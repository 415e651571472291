//! `--where`: a part of SQL's WHERE. sqlparser reads the syntax; what is not in the part is refused with the piece named.

mod evaluate;
mod write;

use arrow::compute::DatePart;
use arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use sqlparser::ast::{BinaryOperator, DataType as SqlType, DateTimeField, Expr, UnaryOperator, Value};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use crate::codes::Code;
use crate::error::{IngestError, Result, shorten};

/// Longer texts are refused: chains of AND become deep trees inside the parser.
const LONGEST: usize = 16 << 10;
/// Brackets and NOTs inside each other.
const DEEPEST: usize = 50;

/// A condition on rows, with the columns it needs.
#[derive(Debug, Clone)]
pub struct Filter {
    predicate: Predicate,
    columns: Vec<String>,
}

#[derive(Debug, Clone)]
enum Predicate {
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    Not(Box<Predicate>),
    Compare(Operand, Comparison, Operand),
    Like {
        operand: Operand,
        pattern: String,
        ignore_case: bool,
    },
    IsNull(Operand),
    /// A column of booleans standing alone.
    IsTrue(usize),
    Constant(Option<bool>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Debug, Clone)]
enum Operand {
    /// Place in [`Filter::columns`].
    Column(usize),
    Part(DatePart, usize),
    Literal(Literal),
}

#[derive(Debug, Clone)]
enum Literal {
    Integer(i64),
    Number(f64),
    Text(String),
    /// Microseconds since 1970.
    Time(i64),
    Boolean(bool),
    Null,
}

impl Filter {
    /// Reads a condition.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > LONGEST {
            return Err(refuse(format!("the condition is {} bytes long, {LONGEST} are allowed", text.len()))
                .remedy("filter the table with a database first"));
        }
        let syntax = |e: sqlparser::parser::ParserError| {
            refuse(format!("the condition cannot be read ({e})"))
                .value(text)
                .remedy("texts stand in 'single quotes', column names bare or in \"double quotes\"")
        };
        let mut parser = Parser::new(&GenericDialect {}).with_recursion_limit(DEEPEST).try_with_sql(text).map_err(syntax)?;
        let expression = parser.parse_expr().map_err(syntax)?;
        let next = parser.peek_token();
        if next.token != Token::EOF {
            return Err(refuse("the condition goes on after its end")
                .value(next.token.to_string())
                .remedy("join conditions with AND or OR"));
        }
        let mut columns = Vec::new();
        let predicate = predicate(&expression, &mut columns, 0)?;
        if columns.is_empty() {
            return Err(refuse("the condition names no column")
                .value(text)
                .remedy("compare a column with a value, such as service = 'yellow'"));
        }
        Ok(Filter { predicate, columns })
    }

    /// The columns it looks at.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }
}

fn refuse(sentence: impl Into<String>) -> IngestError {
    IngestError::new(Code::Where, sentence.into()).column("--where")
}

fn unsupported(e: &Expr) -> IngestError {
    let piece = shorten(&e.to_string());
    let remedy = match e {
        Expr::Function(_) => "date parts are written EXTRACT(HOUR FROM column); other functions are not known",
        Expr::InSubquery { .. } | Expr::Subquery(_) | Expr::Exists { .. } => "there is only one table; list the values",
        Expr::BinaryOp { .. } => "arithmetic is not known; compute the column beforehand",
        Expr::CompoundIdentifier(_) => "put a column name with a dot in \"double quotes\"",
        _ => "`metastate explain E-INGEST-WHERE` lists what is known",
    };
    refuse("this piece of the condition is not supported").value(piece).remedy(remedy)
}

fn predicate(e: &Expr, columns: &mut Vec<String>, depth: usize) -> Result<Predicate> {
    if depth > DEEPEST {
        return Err(refuse(format!("the condition is nested more than {DEEPEST} deep")).remedy("write it flatter"));
    }
    let negate = |negated: bool, p: Predicate| if negated { Predicate::Not(Box::new(p)) } else { p };
    Ok(match e {
        Expr::Nested(inner) => predicate(inner, columns, depth + 1)?,
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => Predicate::Not(Box::new(predicate(expr, columns, depth + 1)?)),
        Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } => {
            let parts = chain(e, op).into_iter().map(|p| predicate(p, columns, depth + 1)).collect::<Result<Vec<_>>>()?;
            if *op == BinaryOperator::And { Predicate::And(parts) } else { Predicate::Or(parts) }
        }
        Expr::BinaryOp { left, op, right } => {
            let Some(comparison) = comparison(op) else { return Err(unsupported(e)) };
            Predicate::Compare(operand(left, columns)?, comparison, operand(right, columns)?)
        }
        Expr::Between { expr, negated, low, high } => {
            let (x, low, high) = (operand(expr, columns)?, operand(low, columns)?, operand(high, columns)?);
            let both =
                vec![Predicate::Compare(x.clone(), Comparison::GreaterEqual, low), Predicate::Compare(x, Comparison::LessEqual, high)];
            negate(*negated, Predicate::And(both))
        }
        Expr::InList { expr, list, negated } => {
            let x = operand(expr, columns)?;
            let any = list
                .iter()
                .map(|item| Ok(Predicate::Compare(x.clone(), Comparison::Equal, operand(item, columns)?)))
                .collect::<Result<Vec<_>>>()?;
            negate(*negated, Predicate::Or(any))
        }
        Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
            negate(*negated, like(operand(expr, columns)?, pattern, false)?)
        }
        Expr::ILike { negated, any: false, expr, pattern, escape_char: None } => {
            negate(*negated, like(operand(expr, columns)?, pattern, true)?)
        }
        Expr::IsNull(x) => Predicate::IsNull(operand(x, columns)?),
        Expr::IsNotNull(x) => negate(true, Predicate::IsNull(operand(x, columns)?)),
        Expr::IsTrue(x) => predicate(x, columns, depth + 1)?,
        Expr::Identifier(_) => match operand(e, columns)? {
            Operand::Column(slot) => Predicate::IsTrue(slot),
            _ => return Err(unsupported(e)),
        },
        Expr::Value(v) => match &v.value {
            Value::Boolean(b) => Predicate::Constant(Some(*b)),
            Value::Null => Predicate::Constant(None),
            _ => return Err(unsupported(e)),
        },
        other => return Err(unsupported(other)),
    })
}

/// The members of `a AND b AND c`, which the parser gives as a tree leaning to the left, found without recursion.
fn chain<'e>(e: &'e Expr, op: &BinaryOperator) -> Vec<&'e Expr> {
    let mut parts = Vec::new();
    let mut at = e;
    while let Expr::BinaryOp { left, op: found, right } = at {
        if found != op {
            break;
        }
        parts.push(right.as_ref());
        at = left;
    }
    parts.push(at);
    parts.reverse();
    parts
}

fn comparison(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterEqual,
        _ => return None,
    })
}

fn like(operand: Operand, pattern: &Expr, ignore_case: bool) -> Result<Predicate> {
    match literal(pattern)? {
        Some(Literal::Text(pattern)) => Ok(Predicate::Like { operand, pattern, ignore_case }),
        _ => Err(refuse("LIKE needs a text in single quotes").value(pattern.to_string())),
    }
}

fn column(name: &str, columns: &mut Vec<String>) -> usize {
    columns.iter().position(|c| c == name).unwrap_or_else(|| {
        columns.push(name.to_owned());
        columns.len() - 1
    })
}

fn operand(e: &Expr, columns: &mut Vec<String>) -> Result<Operand> {
    // Brackets around an operand are counted by the parser's own limit.
    let mut e = e;
    while let Expr::Nested(inner) = e {
        e = inner;
    }
    if let Some(literal) = literal(e)? {
        return Ok(Operand::Literal(literal));
    }
    match e {
        Expr::Identifier(name) => Ok(Operand::Column(column(&name.value, columns))),
        Expr::Extract { field, expr, .. } => {
            let Some(part) = date_part(field) else { return Err(unsupported(e)) };
            match expr.as_ref() {
                Expr::Identifier(name) => Ok(Operand::Part(part, column(&name.value, columns))),
                other => Err(unsupported(other)),
            }
        }
        other => Err(unsupported(other)),
    }
}

fn date_part(field: &DateTimeField) -> Option<DatePart> {
    Some(match field {
        DateTimeField::Year => DatePart::Year,
        DateTimeField::Quarter => DatePart::Quarter,
        DateTimeField::Month => DatePart::Month,
        DateTimeField::Week(None) | DateTimeField::IsoWeek => DatePart::WeekISO,
        DateTimeField::Day => DatePart::Day,
        DateTimeField::Dow | DateTimeField::DayOfWeek => DatePart::DayOfWeekSunday0,
        DateTimeField::Isodow => DatePart::DayOfWeekMonday1,
        DateTimeField::Doy | DateTimeField::DayOfYear => DatePart::DayOfYear,
        DateTimeField::Hour => DatePart::Hour,
        DateTimeField::Minute => DatePart::Minute,
        DateTimeField::Second => DatePart::Second,
        _ => return None,
    })
}

fn literal(e: &Expr) -> Result<Option<Literal>> {
    Ok(match e {
        Expr::Value(v) => match &v.value {
            Value::Number(digits, _) => Some(number(digits)?),
            Value::SingleQuotedString(s) => Some(Literal::Text(s.clone())),
            Value::Boolean(b) => Some(Literal::Boolean(*b)),
            Value::Null => Some(Literal::Null),
            _ => return Err(unsupported(e)),
        },
        Expr::UnaryOp { op: op @ (UnaryOperator::Minus | UnaryOperator::Plus), expr } => match (literal(expr)?, op) {
            (Some(Literal::Integer(n)), UnaryOperator::Minus) => Some(Literal::Integer(-n)),
            (Some(Literal::Number(x)), UnaryOperator::Minus) => Some(Literal::Number(-x)),
            (Some(same @ (Literal::Integer(_) | Literal::Number(_))), _) => Some(same),
            _ => return Err(unsupported(e)),
        },
        Expr::TypedString(typed) => match (&typed.data_type, &typed.value.value) {
            (SqlType::Date | SqlType::Timestamp(..) | SqlType::Datetime(..), Value::SingleQuotedString(s)) => match time(s) {
                Some(t) => Some(Literal::Time(t)),
                None => {
                    return Err(refuse("this is not a date or time")
                        .value(s.as_str())
                        .remedy("write DATE '2015-12-01' or TIMESTAMP '2015-12-01 08:30:00'"));
                }
            },
            _ => return Err(unsupported(e)),
        },
        _ => None,
    })
}

fn number(digits: &str) -> Result<Literal> {
    if let Ok(n) = digits.parse::<i64>() {
        return Ok(Literal::Integer(n));
    }
    match digits.parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(Literal::Number(x)),
        _ => Err(refuse("this is not a number").value(digits)),
    }
}

/// Microseconds since 1970 of a date, or a date and time.
pub(crate) fn time(s: &str) -> Option<i64> {
    string_to_timestamp_nanos(s.trim()).ok().map(|n| n.div_euclid(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_the_part_is_refused_with_its_piece() {
        for (text, piece) in [
            ("hour(t) = 3", "hour(t)"),
            ("a + 1 = 2", "a + 1"),
            ("a IN (SELECT b FROM c)", "a IN (SELECT b FROM c)"),
            ("a = 1 extra", "extra"),
            ("t.a = 1", "t.a"),
            ("a LIKE b", "b"),
            ("d > DATE 'soon'", "soon"),
        ] {
            let e = Filter::parse(text).unwrap_err();
            assert_eq!(e.code(), "E-INGEST-WHERE");
            assert_eq!(e.value_met(), Some(piece), "{text}: {e}");
        }
        for bad in ["", "a =", "1 = 1", "a = 'x", "(((", ";", "a = 1; DROP TABLE x"] {
            assert!(Filter::parse(bad).is_err(), "`{bad}` gives {:?}", Filter::parse(bad));
        }
    }

    #[test]
    fn deep_and_long_conditions_do_not_overflow() {
        assert!(Filter::parse(&format!("{}a = 1{}", "(".repeat(5000), ")".repeat(5000))).is_err());
        assert!(Filter::parse(&"NOT ".repeat(4000)).is_err());
        assert!(Filter::parse(&format!("a = {}1", "- ".repeat(5000))).is_err());
        let long = vec!["a=1"; 1500].join(" OR ");
        assert_eq!(Filter::parse(&long).unwrap().columns(), ["a"]);
    }
}
