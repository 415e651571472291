//! Trajectories by window functions: never across ids, never across a gap.

use metastate::CountMode;

use super::source::Table;
use super::{Answer, Dialect, Writer, condition};
use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::filter::Filter;
use crate::settings::InputSettings;
use crate::trajectories::check_lag;
use crate::trips::slot;

pub(super) fn write(inputs: &[String], settings: &InputSettings, dialect: Dialect, answer: Answer) -> Result<String> {
    check_lag(settings)?;
    let missing = |option: &str, remedy: &str| Err(IngestError::new(Code::Option, format!("{option} is missing")).remedy(remedy));
    let Some(state) = &settings.state else { return missing("--state", "name the column of states") };
    let Some(time) = &settings.time else {
        return missing("--time", "rows in a database have no order of their own: name the column that they are sorted by");
    };
    let filter = settings.where_.as_deref().map(Filter::parse).transpose()?;
    let mut wanted = Vec::new();
    for name in [Some(state), settings.id.as_ref(), Some(time)].into_iter().flatten().chain(filter.iter().flat_map(|f| f.columns())) {
        slot(&mut wanted, name);
    }
    let table = Table::new(inputs, &wanted, dialect)?;
    if settings.id.is_none() && table.many {
        return missing("--id", "several tables or files would become one trajectory: name the column that tells them apart");
    }
    let mut query = Writer::new(dialect);
    let id = settings.id.as_deref().map(|c| dialect.quoted(c));
    let holds = condition(settings, &table)?;
    let (moment, guard) = moment(&table, time);
    query.step(
        "ms_rows_read",
        format!(
            "SELECT {} AS trajectory, {moment} AS moment, {} AS state{}\n  FROM {}",
            id.as_deref().unwrap_or("0"),
            dialect.label(&dialect.quoted(state)),
            holds.as_ref().map_or_else(String::new, |holds| format!(",\n    COALESCE({holds}, FALSE) AS holds")),
            table.from
        ),
    );
    // Rows that the condition leaves out stay as gaps: closing them would invent transitions.
    let gap = if holds.is_some() { "WHEN NOT holds THEN 'where-not-true' " } else { "" };
    query.step(
        "ms_frames",
        format!("SELECT trajectory, moment, state, CASE {guard}{gap}WHEN COALESCE(state, '-1') = '-1' THEN 'unassigned-frame' END AS left_out\n  FROM ms_rows_read"),
    );
    // A row without a place in any trajectory cannot even be a gap.
    let there = |column: &str| {
        let text = format!("CAST({column} AS {})", dialect.text_type());
        let nan = dialect.is_float(column).map_or_else(String::new, |float| format!(" AND NOT ({float} AND LOWER({text}) = 'nan')"));
        format!("{text} <> ''{nan}")
    };
    let identified = if id.is_some() { there("trajectory") } else { "TRUE".to_owned() };
    let placed = format!("COALESCE({identified} AND {}, FALSE)", there("moment"));
    let in_order = "OVER (PARTITION BY trajectory ORDER BY moment";
    let tie = dialect.fail("two rows of one trajectory have the same time, so their order is not known", "moment", dialect.text_type());
    query.step(
        "ms_pieces",
        format!(
            "SELECT trajectory, moment, left_out,\n    CASE WHEN moment = LAG(moment) {in_order}) THEN {tie} ELSE state END AS state,\n    SUM(CASE WHEN left_out IS NULL THEN 0 ELSE 1 END) {in_order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS piece\n  FROM ms_frames WHERE {placed}"
        ),
    );
    let moves = MoveQuery { dialect, lag: settings.lag, strided: settings.count == CountMode::Strided };
    match answer {
        Answer::Triplets => moves.triplets(&mut query),
        Answer::WithLedger => moves.with_ledger(&mut query, &identified, &placed),
    }
    Ok(query.finish("ms_pairs", settings, answer))
}

/// Frames of the same piece that lie one after the other; a piece ends at a gap.
const IN_PIECE: &str = "OVER (PARTITION BY trajectory, piece ORDER BY moment)";

/// From frames to moves, and from moves to pairs.
struct MoveQuery {
    dialect: Dialect,
    lag: usize,
    strided: bool,
}

impl MoveQuery {
    /// With strided counting, only frames on the stride begin a move.
    fn on_stride(&self) -> String {
        if self.strided { format!(" AND MOD(place - 1, {}) = 0", self.lag) } else { String::new() }
    }

    fn triplets(&self, query: &mut Writer) {
        let ([from, to, count], lag, on_stride) = (query.names(), self.lag, self.on_stride());
        let number = self.dialect.as_number("COUNT(*)");
        let place = if self.strided { format!(",\n    ROW_NUMBER() {IN_PIECE} AS place") } else { String::new() };
        query.step(
            "ms_moves",
            format!("SELECT state AS {from}, LEAD(state, {lag}) {IN_PIECE} AS {to}{place}\n  FROM ms_pieces WHERE left_out IS NULL"),
        );
        query.step(
            "ms_pairs",
            format!("SELECT {from}, {to}, {number} AS {count}\n  FROM ms_moves WHERE {to} IS NOT NULL{on_stride} GROUP BY {from}, {to}"),
        );
    }

    /// The same with the frames that lead nowhere, by reason.
    fn with_ledger(&self, query: &mut Writer, identified: &str, placed: &str) {
        let ([from, to, count], lag, on_stride, dialect) = (query.names(), self.lag, self.on_stride(), self.dialect);
        // The last frame of a piece that is too short tells its length; frames that lead nowhere are frames all the same.
        query.step(
            "ms_moves",
            format!(
                "SELECT state AS {from}, LEAD(state, {lag}) {IN_PIECE} AS {to},\n    ROW_NUMBER() {IN_PIECE} AS place, LEAD(state, 1) {IN_PIECE} AS next\n  FROM ms_pieces WHERE left_out IS NULL"
            ),
        );
        let stays = format!("{to} IS NOT NULL{on_stride}");
        query.step(
            "ms_told",
            format!(
                "SELECT CASE WHEN {stays} THEN {from} END AS {from}, CASE WHEN {stays} THEN {to} END AS {to},\n    CASE WHEN next IS NULL AND place <= {lag} THEN place ELSE 1 END AS weight,\n    CASE WHEN {stays} THEN NULL WHEN next IS NULL AND place <= {lag} THEN 'too-short-for-lag' ELSE 'no-later-frame' END AS left_out\n  FROM ms_moves"
            ),
        );
        let gone = format!("SELECT CAST(NULL AS {0}) AS {from}, CAST(NULL AS {0}) AS {to}, 1 AS weight", dialect.text_type());
        let unplaced = format!("CASE WHEN {identified} THEN 'time-missing' ELSE 'id-missing' END");
        query.step(
            "ms_every",
            format!(
                "SELECT {from}, {to}, weight, left_out FROM ms_told\n  UNION ALL {gone}, left_out FROM ms_pieces WHERE left_out IS NOT NULL\n  UNION ALL {gone}, {unplaced} AS left_out FROM ms_frames WHERE NOT ({placed})"
            ),
        );
        query.step(
            "ms_pairs",
            format!(
                "SELECT {from}, {to}, left_out, {} AS {count}, COUNT(*) AS ms_rows\n  FROM ms_every GROUP BY {from}, {to}, left_out",
                dialect.as_number("SUM(weight)")
            ),
        );
    }
}

/// What the rows are sorted by, and what stands against it. Texts are numbers or dates to the reader; an engine would sort them by their letters.
fn moment(table: &Table, time: &str) -> (String, String) {
    let (dialect, column) = (table.dialect, table.dialect.quoted(time));
    let fail = |met: &str, of: &str| dialect.fail("a time must be a number or a date; cast the column, or make a view that does", met, of);
    if table.texts {
        // Only DuckDB reads CSV files here.
        let text = format!("NULLIF(TRIM({column}), '')");
        let read = format!(
            "COALESCE(TRY_CAST({text} AS DOUBLE), CAST(epoch_us(TRY_CAST({text} AS TIMESTAMP)) AS DOUBLE), {})",
            fail(&column, "DOUBLE")
        );
        return (format!("CASE WHEN {text} IS NOT NULL THEN {read} END"), String::new());
    }
    let guard =
        dialect.is_text("moment").map_or_else(String::new, |text| format!("WHEN {text} THEN {} ", fail("moment", dialect.text_type())));
    (column, guard)
}
