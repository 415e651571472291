//! What the engines write differently: quotes, types, functions.

/// The SQL of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// DuckDB.
    DuckDb,
    /// Apache Spark SQL.
    Spark,
    /// PostgreSQL.
    Postgres,
    /// Google BigQuery.
    BigQuery,
}

use Dialect::{BigQuery, DuckDb, Postgres, Spark};

impl Dialect {
    /// As it is said to people.
    pub fn name(self) -> &'static str {
        match self {
            DuckDb => "DuckDB",
            Spark => "Spark",
            Postgres => "PostgreSQL",
            BigQuery => "BigQuery",
        }
    }

    /// A name in its quotes.
    pub(crate) fn quoted(self, name: &str) -> String {
        match self {
            DuckDb | Postgres => format!("\"{}\"", name.replace('"', "\"\"")),
            Spark => format!("`{}`", name.replace('`', "``")),
            BigQuery => format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`")),
        }
    }

    /// A text in its quotes. Spark and BigQuery read backslashes, and Spark once joined what stands around doubled quotes.
    pub(crate) fn text(self, text: &str) -> String {
        match self {
            DuckDb | Postgres => format!("'{}'", text.replace('\'', "''")),
            Spark | BigQuery => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n")),
        }
    }

    pub(crate) fn text_type(self) -> &'static str {
        match self {
            DuckDb => "VARCHAR",
            Postgres => "TEXT",
            Spark | BigQuery => "STRING",
        }
    }

    pub(crate) fn number_type(self) -> &'static str {
        match self {
            DuckDb | Spark => "DOUBLE",
            Postgres => "DOUBLE PRECISION",
            BigQuery => "FLOAT64",
        }
    }

    pub(crate) fn whole_type(self) -> &'static str {
        if self == BigQuery { "INT64" } else { "BIGINT" }
    }

    pub(crate) fn time_type(self) -> &'static str {
        "TIMESTAMP"
    }

    /// A number in double precision. A bare 0.001 is a decimal to some engines, and cells depend on the last bit.
    pub(crate) fn number(self, x: f64) -> String {
        format!("CAST('{x}' AS {})", self.number_type())
    }

    pub(crate) fn as_number(self, expression: &str) -> String {
        format!("CAST({expression} AS {})", self.number_type())
    }

    /// A whole number; NULL where there is none, if the engine can say that: it may look at rows before it leaves them out.
    pub(crate) fn as_whole(self, expression: &str) -> String {
        let cast = match self {
            DuckDb | Spark => "TRY_CAST",
            BigQuery => "SAFE_CAST",
            Postgres => "CAST",
        };
        format!("{cast}({expression} AS {})", self.whole_type())
    }

    pub(crate) fn is_nan(self, number: &str) -> String {
        match self {
            // DuckDB believes the statistics of Parquet files, which do not know NaN; of a text it has none.
            DuckDb => format!("CAST({number} AS VARCHAR) = 'nan'"),
            Spark => format!("isnan({number})"),
            Postgres => format!("{number} = CAST('NaN' AS DOUBLE PRECISION)"),
            BigQuery => format!("IS_NAN({number})"),
        }
    }

    /// An expression of the type `of` that ends the query with a sentence. PostgreSQL has no function for that: a text that is no number does it,
    /// and `met` keeps the planner from trying beforehand.
    pub(crate) fn fail(self, sentence: &str, met: &str, of: &str) -> String {
        let said = self.text(sentence);
        match self {
            DuckDb => format!("CAST(error({said}) AS {of})"),
            Spark => format!("CAST(raise_error({said}) AS {of})"),
            BigQuery => format!("CAST(ERROR({said}) AS {of})"),
            Postgres => format!("CAST(CAST(CAST({said} || ': ' || CAST({met} AS TEXT) AS INTEGER) AS TEXT) AS {of})"),
        }
    }

    /// Whether a column is of one of these types, where the engine can say.
    fn is_one_of(self, column: &str, duckdb: &str, spark: &str, postgres: &str) -> Option<String> {
        let list = |types: &str| types.split('|').map(|t| format!("'{t}'")).collect::<Vec<_>>().join(", ");
        match self {
            DuckDb => Some(format!("typeof({column}) IN ({})", list(duckdb))),
            Spark => Some(format!("typeof({column}) IN ({})", list(spark))),
            Postgres => Some(format!("CAST(pg_typeof({column}) AS TEXT) IN ({})", list(postgres))),
            BigQuery => None,
        }
    }

    /// Whether a column holds floating-point numbers.
    pub(crate) fn is_float(self, column: &str) -> Option<String> {
        self.is_one_of(column, "FLOAT|DOUBLE", "float|double", "real|double precision")
    }

    /// Whether a column holds texts.
    pub(crate) fn is_text(self, column: &str) -> Option<String> {
        self.is_one_of(column, "VARCHAR", "string", "text|character varying|character")
    }

    /// The label of a value as the reader writes it: whole numbers without a point, NULL for what is missing.
    pub(crate) fn label(self, column: &str) -> String {
        let text = format!("CAST({column} AS {})", self.text_type());
        let Some(is_float) = self.is_float(column) else {
            return format!("NULLIF({text}, '')"); // BigQuery writes 7.0 as 7
        };
        // Through its text, so that the expression fits columns of any type.
        let number = match self {
            Postgres => self.as_number(&text),
            _ => format!("TRY_CAST({text} AS {})", self.number_type()),
        };
        let fail = self.fail("a label that is a number must be whole", column, self.text_type());
        let whole = format!("CAST(CAST({number} AS {}) AS {})", self.whole_type(), self.text_type());
        format!(
            "CASE WHEN {is_float} THEN CASE WHEN {} THEN NULL WHEN {number} = FLOOR({number}) AND ABS({number}) < 9.0e15 THEN {whole} WHEN {number} IS NULL THEN NULL ELSE {fail} END ELSE NULLIF({text}, '') END",
            self.is_nan(&number)
        )
    }

    /// The label of a cell from its two numbers: its lower left corner, with as many digits as the side of a cell has.
    pub(crate) fn cell_label(self, (side, digits): (f64, usize), x: &str, y: &str) -> String {
        let side = self.number(side);
        match self {
            DuckDb => format!("printf('%.{digits}f,%.{digits}f', {x} * {side}, {y} * {side})"),
            Spark => format!("format_string('%.{digits}f,%.{digits}f', {x} * {side}, {y} * {side})"),
            BigQuery => format!("FORMAT('%.{digits}f,%.{digits}f', {x} * {side}, {y} * {side})"),
            Postgres => {
                let corner = |n: &str| format!("CAST(ROUND(CAST({n} * {side} AS NUMERIC), {digits}) AS TEXT)");
                format!("{} || ',' || {}", corner(x), corner(y))
            }
        }
    }
}
