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
    let [from, to, count] = query.names();
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
        let fail = dialect.fail("a count or weight must be a finite number, zero or more", "weight", dialect.text_type());
        reasons.push("WHEN weight IS NULL THEN 'weight-missing'".to_owned());
        reasons.push(format!(
            "WHEN {} OR NOT (weight >= 0 AND weight <= {}) THEN {fail}",
            dialect.is_nan("weight"),
            dialect.number(LARGEST)
        ));
        reasons.push("WHEN weight = 0 THEN 'weight-zero'".to_owned());
    }
    let (keys, names): (Vec<(String, &str)>, [String; 2]) = match &plan.ends {
        PlanEnds::Labels(_) => {
            reasons.push("WHEN from_key IS NULL OR to_key IS NULL THEN 'label-missing'".to_owned());
            (vec![("from_key".into(), "from_key"), ("to_key".into(), "to_key")], ["from_key", "to_key"].map(|k| dialect.label(k)))
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
            (keys, [dialect.cell_label(squares, "from_x", "from_y"), dialect.cell_label(squares, "to_x", "to_y")])
        }
    };
    query.step("ms_rows_told", format!("SELECT *, CASE {} END AS left_out\n  FROM ms_rows_read", reasons.join("\n    ")));

    // Rows by pair, then the names of the pairs.
    let summed = |what: &str| dialect.as_number(what);
    let number = if plan.weight.is_some() { "SUM(weight)" } else { "COUNT(*)" };
    let labels = matches!(plan.ends, PlanEnds::Labels(_));
    let key_names = keys.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
    // Only of rows that are kept: others may have no cell, and an engine may look at them before it leaves them out.
    let keys: Vec<String> = keys.iter().map(|(key, name)| format!("CASE WHEN left_out IS NULL THEN {key} END AS {name}")).collect();
    match answer {
        Answer::Triplets => {
            query.step(
                "ms_kept_rows",
                format!("SELECT {}{}\n  FROM ms_rows_told WHERE left_out IS NULL", keys.join(", "), weight_too(&plan)),
            );
            query.step("ms_pairs", format!("SELECT {key_names}, {} AS {count}\n  FROM ms_kept_rows GROUP BY {key_names}", summed(number)));
            query.step("ms_named", format!("SELECT {} AS {from}, {} AS {to}, {count}\n  FROM ms_pairs", names[0], names[1]));
            if labels {
                query.step(
                    "ms_whole",
                    format!("SELECT {from}, {to}, {count}\n  FROM ms_named WHERE {from} IS NOT NULL AND {to} IS NOT NULL"),
                );
            }
            Ok(query.finish(if labels { "ms_whole" } else { "ms_named" }, settings, answer))
        }
        Answer::WithLedger => {
            query.step("ms_kept_rows", format!("SELECT {}, left_out{}\n  FROM ms_rows_told", keys.join(", "), weight_too(&plan)));
            query.step(
                "ms_pairs",
                format!(
                    "SELECT {key_names}, left_out, {} AS {count}, COUNT(*) AS ms_rows\n  FROM ms_kept_rows GROUP BY {key_names}, left_out",
                    summed(number)
                ),
            );
            let named = |name: &str| format!("CASE WHEN left_out IS NULL THEN {name} END");
            query.step(
                "ms_named",
                format!("SELECT {} AS {from}, {} AS {to}, {count}, ms_rows, left_out\n  FROM ms_pairs", named(&names[0]), named(&names[1])),
            );
            // A label that is an empty text, or NaN, is known only by its name.
            query.step(
                "ms_told",
                format!(
                    "SELECT {from}, {to}, {count}, ms_rows, CASE WHEN left_out IS NULL AND ({from} IS NULL OR {to} IS NULL) THEN 'label-missing' ELSE left_out END AS left_out\n  FROM ms_named"
                ),
            );
            Ok(query.finish("ms_told", settings, answer))
        }
    }
}

fn weight_too(plan: &Plan) -> &'static str {
    if plan.weight.is_some() { ", weight" } else { "" }
}
