//! Options that say what the inputs are and how they are counted, and those of `count`.

use std::path::PathBuf;

use super::values::Cell;
use crate::entry::{Many, free};
use crate::error::{OptionError, OptionProblem};

/// Stands for data that came from memory, where a file would be named.
pub const MEMORY: &str = "(memory)";

options! {
    /// The inputs and how to read them.
    InputArgs, Some("Input"), free, {
        /// Files to read: their names, patterns in quotes such as 'taxi-*.parquet', or `-` for standard input. All of them together are one data
        /// set.
        inputs: Vec<String> = Vec::new() => |e| e.value("INPUT").positional().required();
        /// What a row of the inputs is: a trip, a frame of a trajectory, a count, or a row of a transition matrix. Without it, this is recognised from the file
        /// where only one reading is possible.
        #[serde(rename = "as")]
        as_: Option<InputKind> = None => |e| e.value("KIND");
        /// A text file has no header: its first line already holds data. Columns are then called 1, 2, ..., unless --columns names them.
        no_header: bool = false => |e| e;
        /// What separates the columns of a text: comma, semicolon, tab, bar, blanks, or any other single character. Without it, this is recognised from the
        /// first line.
        delimiter: Option<String> = None => |e| e.value("SIGN").hyphens();
        /// Names for the columns of a text from left to right, separated by commas. They replace the names in its first line; with --no-header there are none
        /// to replace.
        columns: Vec<String> = Vec::new() => |e| e.value("LIST").many(Many::Commas);
        /// Name of the column that says where a trip begins.
        from: Option<String> = None => |e| e.value("COL");
        /// Name of the column that says where a trip ends.
        to: Option<String> = None => |e| e.value("COL");
        /// Name of the column with the longitude where a trip begins, in degrees. States are then square cells of a map; see --cell.
        from_lon: Option<String> = None => |e| e.value("COL");
        /// Name of the column with the latitude where a trip begins, in degrees.
        from_lat: Option<String> = None => |e| e.value("COL");
        /// Name of the column with the longitude where a trip ends, in degrees.
        to_lon: Option<String> = None => |e| e.value("COL");
        /// Name of the column with the latitude where a trip ends, in degrees.
        to_lat: Option<String> = None => |e| e.value("COL");
        /// The cells of the map, where states are cells: the side of a square in degrees (0.001 is about 100 metres), or h3:R for the hexagons of H3 at resolution R (h3:8 is about 500
        /// metres, h3:9 about 200). Larger cells give fewer states with more trips each.
        cell: Cell = Cell::default() => |e| e.value("DEGREES|h3:R").texts(|t| t.parse::<Cell>().is_ok(), "it must be a side in degrees, such as 0.001, or a resolution of H3 between 0 and 15, such as h3:8");
        /// Keep only trips that begin and end inside this box, given as west,south,east,north in degrees.
        bbox: Option<String> = None => |e| e.value("W,S,E,N").hyphens();
        /// Name of the column that says how much a row counts. Without it, every row counts once.
        weight: Option<String> = None => |e| e.value("COL");
        /// Split the trips into slices, for example by the hour of the day: all slices share one set of meta-states, and each slice has its own destinations.
        /// EXPR is a column whose values are the slices, or hour(COL), weekday(COL) (1 is Monday), month(COL) or date(COL) of a column with dates and times, in
        /// the time zone of that column. For fit, path and compare.
        slice: Option<String> = None => |e| e.value("EXPR");
        /// Name of the column with the action that was taken: each row is then a step of a controlled chain, from the state in --from by this action to the
        /// next state in --to. With --id (and --time) rows are the steps of episodes. For fit and path.
        action: Option<String> = None => |e| e.value("COL").conflicts("weight").conflicts("slice");
        /// Name of the column with the reward of a step, a number. Needs --action.
        reward: Option<String> = None => |e| e.value("COL").requires("action");
        /// Keep only rows for which this condition holds, written as after WHERE in SQL: "service = 'yellow' AND fare > 0".
        #[serde(rename = "where")]
        where_: Option<String> = None => |e| e.value("CONDITION");
        /// Leave out states with less than this share of all departures, such as 1e-4. They are counted in the ledger.
        min_share: f64 = 0.0 => |e| e.value("SHARE");
        /// Leave out states where more than this share of the departures lead back to the same state.
        max_self_share: Option<f64> = None => |e| e.value("SHARE");
        /// Name of the column that says which trajectory a row belongs to.
        id: Option<String> = None => |e| e.value("COL");
        /// Name of the column that the rows of a trajectory are sorted by. Without it, rows count in the order of the file.
        time: Option<String> = None => |e| e.value("COL");
        /// Name of the column that says in which state a trajectory is.
        state: Option<String> = None => |e| e.value("COL");
        /// Number of frames between the two ends of a transition. A larger lag shows slower processes.
        lag: usize = 1 => |e| e;
        /// Which pairs of frames, --lag apart, count as transitions.
        count: CountKind = CountKind::Sliding => |e| e;
        /// Text file with the names of the states of a matrix, one on each line.
        labels: Option<String> = None => |e| e.value("FILE");
        /// File with the weight of each row of a transition matrix. Without it, the matrix's stationary law is used.
        weights: Option<String> = None => |e| e.value("FILE");
        /// Memory that may be used, such as 4G. Counting that needs more sorts its parts on disk, which is slower and gives the same counts; a matrix or a fit
        /// that needs more is refused before it begins. Without it, counting has no limit, and matrices and fits may use all that the machine or its control
        /// group has.
        memory_limit: Option<u64> = None => |e| e.bytes();
    }
}

words! {
    /// `--as`.
    InputKind {
        /// One row is one move from a state to another
        Trips,
        /// The states that were visited, one after another
        Trajectories,
        /// How often each pair of states was seen
        Counts,
        /// Transition probabilities; each row sums to one
        Matrix,
    }
}

words! {
    /// `--count`.
    CountKind {
        /// Every pair that is --lag frames apart
        Sliding,
        /// Only every --lag-th pair, so that no two overlap
        Strided,
    }
}

impl InputArgs {
    /// Reads these files with everything else by default.
    pub fn files(inputs: Vec<String>) -> Self {
        InputArgs { inputs, ..InputArgs::default() }
    }
}

options! {
    /// Where counts go.
    CountArgs, None, CountArgs::consistent, {
        /// The counts file to write, in the format Parquet.
        out: PathBuf = PathBuf::new() => |e| e.conflicts("print-sql");
        /// Replace the file if there is one already.
        force: bool = false => |e| e.requires("out");
        /// Count nothing; print an SQL query that does the counting in the database that holds the data. Its result has the columns from, to and count, which
        /// `fit --as counts` reads. INPUT is then the name of a table, or of files that the database can read.
        print_sql: bool = false => |e| e;
        /// The database for which the SQL query is printed.
        dialect: SqlDialect = SqlDialect::Duckdb => |e| e.requires("print-sql");
    }
}

words! {
    /// `--dialect`.
    SqlDialect {
        /// DuckDB; reads tables, Parquet and CSV files
        Duckdb,
        /// Apache Spark; reads tables, views and Parquet files
        Spark,
        /// PostgreSQL; reads tables
        Postgres,
        /// Google BigQuery; reads tables
        Bigquery,
    }
}

impl CountArgs {
    fn consistent(&self) -> Result<(), OptionError> {
        if self.out.as_os_str().is_empty() && !self.print_sql {
            return Err(OptionError::new("out", OptionProblem::Missing).remedy("name the counts file to write, or give --print-sql"));
        }
        Ok(())
    }
}

/// `metastate count`.
#[derive(Debug, Clone, PartialEq)]
pub struct CountCommand {
    /// The inputs.
    pub input: InputArgs,
    /// The file to write.
    pub count: CountArgs,
}
