//! Trips, by labels or by coordinates, and counts given as rows.

use super::source::Table;
use super::{Answer, Dialect, Writer, condition};
use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::settings::InputSettings;
use crate::trips::{Plan, PlanEnds};

/// The largest finite number.
const LARGEST: f64 = f64::MAX;

pub(super) fn write(
    inputs: &[String],
    settings: &InputSettings,
    defaults: Option<[&str; 3]>,
    dialect: Dialect,
    answer: Answer,
) -> Result<String> {
    let plan = Plan::new(settings, defaults)?;
    let table = Table::new(inputs, &plan.wanted, dialect)?;
    let mut query = Writer::new(dialect);
    let column = |k: usize| plan.wanted[k].as_str();

    // Each row with its ends, its weight, and why it is left out.
    let weight = plan.weight.map(|k| table.number(column(k)));
    let ends: Vec<(&str, String)> = match &plan.ends {
        PlanEnds::Labels([a, b]) => vec![("from_key", dialect.quoted(column(*a))), ("to_key", dialect.quoted(column(*b)))],
        PlanEnds::Points(slots, _) => {
            ["from_lon", "from_lat", "to_lon", "to_lat"].into_iter().zip(slots.map(|k| table.number(column(k)))).collect()
        }
    };
    let mut reasons = Vec::new();
    let mut selected: Vec<(&str, String)> = ends.into_iter().chain(weight.map(|w| ("weight", w))).collect();
    let mut only = String::new();
    if let Some(condition) = condition(settings, &table)? {
        match answer {
            Answer::Triplets => only = format!("\n  WHERE {condition}"),
            // Rows that the condition leaves out are told, and nothing of them is looked at.
            Answer::WithLedger => {
                selected.iter_mut().for_each(|(_, value)| *value = format!("CASE WHEN {condition} THEN {value} END"));
                selected.push(("holds", format!("COALESCE({condition}, FALSE)")));
                reasons.push("WHEN NOT holds THEN 'where-not-true'".to_owned());
            }
        }
    }
    let selected: Vec<String> = selected.iter().map(|(name, value)| format!("{value} AS {name}")).collect();
    query.step("ms_rows_read", format!("SELECT {}\n  FROM {}{only}", selected.join(", "), table.from));

    if plan.weight.is_some() {
        reasons.extend(weight_reasons(dialect));
    }
    let ends = ends_of(&plan, dialect, &mut reasons)?;
    query.step("ms_rows_told", format!("SELECT *, CASE {} END AS left_out\n  FROM ms_rows_read", reasons.join("\n    ")));

    let rows = RowQuery { plan: &plan, dialect, ends };
    let last = match answer {
        Answer::Triplets => rows.triplets(&mut query),
        Answer::WithLedger => rows.with_ledger(&mut query),
    };
    Ok(query.finish(last, settings, answer))
}

/// Why a weight is not counted; one that is no weight at all ends the query.
fn weight_reasons(dialect: Dialect) -> [String; 3] {
    let fail = dialect.fail("a count or weight must be a finite number, zero or more", "weight", dialect.text_type());
    [
        "WHEN weight IS NULL THEN 'weight-missing'".to_owned(),
        format!("WHEN {} OR NOT (weight >= 0 AND weight <= {}) THEN {fail}", dialect.is_nan("weight"), dialect.number(LARGEST)),
        "WHEN weight = 0 THEN 'weight-zero'".to_owned(),
    ]
}

/// What tells one end of a trip from another while rows are summed, and the labels made of that afterwards.
struct EndColumns {
    /// Expressions with their names.
    keys: Vec<(String, &'static str)>,
    /// The labels of origin and destination.
    names: [String; 2],
}

/// The ends, and the reasons for which a row has none.
fn ends_of(plan: &Plan, dialect: Dialect, reasons: &mut Vec<String>) -> Result<EndColumns> {
    match &plan.ends {
        PlanEnds::Labels(_) => {
            reasons.push("WHEN from_key IS NULL OR to_key IS NULL THEN 'label-missing'".to_owned());
            let keys = vec![("from_key".into(), "from_key"), ("to_key".into(), "to_key")];
            Ok(EndColumns { keys, names: ["from_key", "to_key"].map(|k| dialect.label(k)) })
        }
        PlanEnds::Points(_, grid) => {
            let points = ["from_lon", "from_lat", "to_lon", "to_lat"];
            let all = |low: [f64; 2], high: [f64; 2]| {
                let side =
                    |k: usize| format!("{0} >= {1} AND {0} <= {2}", points[k], dialect.number(low[k % 2]), dialect.number(high[k % 2]));
                (0..4).map(side).collect::<Vec<_>>().join(" AND ")
            };
            let earth = all([-180.0, -90.0], [180.0, 90.0]);
            let inside = grid.bbox().map_or_else(|| earth.clone(), |b| all([b.west, b.south], [b.east, b.north]));
            let missing = points.map(|p| format!("{p} IS NULL OR {}", dialect.is_nan(p))).join(" OR ");
            reasons.push(format!("WHEN {missing} THEN 'coordinate-missing'"));
            reasons.push(format!("WHEN {inside} THEN NULL"));
            reasons.push(format!("WHEN {earth} THEN 'outside-bbox'"));
            reasons.push("ELSE 'coordinate-out-of-range'".to_owned());
            let squares = grid.squares().ok_or_else(|| {
                IngestError::new(Code::Option, "there is no query for hexagons: engines do not agree on functions for H3")
                    .column("--cell")
                    .remedy("give the side of square cells in degrees, such as --cell 0.001, or count with metastate count")
            })?;
            let cell = |p: &str| dialect.as_whole(&format!("FLOOR({p} / {})", dialect.number(squares.0)));
            let keys = points.into_iter().zip(["from_x", "from_y", "to_x", "to_y"]).map(|(p, name)| (cell(p), name)).collect();
            Ok(EndColumns { keys, names: [dialect.cell_label(squares, "from_x", "from_y"), dialect.cell_label(squares, "to_x", "to_y")] })
        }
    }
}

/// The rows with their reasons, to be summed by pair and named.
struct RowQuery<'a> {
    plan: &'a Plan,
    dialect: Dialect,
    ends: EndColumns,
}

impl RowQuery<'_> {
    fn key_names(&self) -> String {
        self.ends.keys.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
    }

    /// Only of rows that are kept: others may have no cell, and an engine may look at them before it leaves them out.
    fn keys(&self) -> String {
        self.ends
            .keys
            .iter()
            .map(|(key, name)| format!("CASE WHEN left_out IS NULL THEN {key} END AS {name}"))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// The number of trips of a pair.
    fn number(&self) -> String {
        self.dialect.as_number(if self.plan.weight.is_some() { "SUM(weight)" } else { "COUNT(*)" })
    }

    /// Adds the steps to pairs with their labels; the name of the last one.
    fn triplets(&self, query: &mut Writer) -> &'static str {
        let [from, to, count] = query.names();
        let key_names = self.key_names();
        query.step("ms_kept_rows", format!("SELECT {}{}\n  FROM ms_rows_told WHERE left_out IS NULL", self.keys(), weight_too(self.plan)));
        query.step("ms_pairs", format!("SELECT {key_names}, {} AS {count}\n  FROM ms_kept_rows GROUP BY {key_names}", self.number()));
        query
            .step("ms_named", format!("SELECT {} AS {from}, {} AS {to}, {count}\n  FROM ms_pairs", self.ends.names[0], self.ends.names[1]));
        if matches!(self.plan.ends, PlanEnds::Points(..)) {
            return "ms_named";
        }
        query.step("ms_whole", format!("SELECT {from}, {to}, {count}\n  FROM ms_named WHERE {from} IS NOT NULL AND {to} IS NOT NULL"));
        "ms_whole"
    }

    /// The same with the rows that are left out, by reason.
    fn with_ledger(&self, query: &mut Writer) -> &'static str {
        let [from, to, count] = query.names();
        let key_names = self.key_names();
        query.step("ms_kept_rows", format!("SELECT {}, left_out{}\n  FROM ms_rows_told", self.keys(), weight_too(self.plan)));
        query.step(
            "ms_pairs",
            format!(
                "SELECT {key_names}, left_out, {} AS {count}, COUNT(*) AS ms_rows\n  FROM ms_kept_rows GROUP BY {key_names}, left_out",
                self.number()
            ),
        );
        let named = |name: &str| format!("CASE WHEN left_out IS NULL THEN {name} END");
        query.step(
            "ms_named",
            format!(
                "SELECT {} AS {from}, {} AS {to}, {count}, ms_rows, left_out\n  FROM ms_pairs",
                named(&self.ends.names[0]),
                named(&self.ends.names[1])
            ),
        );
        // A label that is an empty text, or NaN, is known only by its name.
        query.step(
            "ms_told",
            format!(
                "SELECT {from}, {to}, {count}, ms_rows, CASE WHEN left_out IS NULL AND ({from} IS NULL OR {to} IS NULL) THEN 'label-missing' ELSE left_out END AS left_out\n  FROM ms_named"
            ),
        );
        "ms_told"
    }
}

fn weight_too(plan: &Plan) -> &'static str {
    if plan.weight.is_some() { ", weight" } else { "" }
}
