//! Options of `compare` and `assign`.

use std::path::PathBuf;

use metastate::WeightPower;
use metastate::fit::FOLDS;

use super::InputArgs;
use crate::entry::{Many, allowed, free};

options! {
    /// What to compare.
    CompareArgs, Some("Compare"), free, {
        /// Number of meta-states that every method gets. Without it, the number that `metastate fit` chooses on all the data.
        rank: Option<usize> = None => |e| e.value("K").bounds(allowed::METASTATES);
        /// Number of parts into which the data are cut: each part is held out once, and models fitted to the other parts are scored on it. `metastate fit` with
        /// the same number and the same --seed cuts the same parts, so that the scores of both can be compared.
        folds: usize = FOLDS => |e| e.bounds(allowed::FOLDS);
        /// Compare only these methods, separated by commas. Without it, all of them.
        methods: Vec<String> = Vec::new() => |e| e.value("LIST").many(Many::Commas);
        /// A result folder to compare as well; the option may be given several times. A result that was fitted to these same inputs has already seen what is
        /// held out, so it is fitted again on each part, with its own options; a result of other inputs is scored unchanged.
        with: Vec<PathBuf> = Vec::new() => |e| e.value("RESULT").many(Many::Repeated);
        /// Names of columns that hold known groups of the states, separated by commas. Each column is scored like a method whose states behave alike within a
        /// group. The columns are read from the inputs or from --groups-from; states without a value form one group.
        groups: Vec<String> = Vec::new() => |e| e.value("COL,...").many(Many::Commas);
        /// CSV table with the columns of --groups for each state. States are found by the column --label, or by `lon` and `lat` where states are cells.
        groups_from: Option<PathBuf> = None => |e| e.requires("groups");
        /// How much each further meta-state costs in the objective of this package's method, which then uses at most --rank meta-states. Without it, chosen as
        /// `metastate fit` does.
        lambda: Option<f64> = None => |e| e.bounds(allowed::POSITIVE).conflicts("lambda-ratio");
        /// The same cost as a share of lambda_max, the value above which a single meta-state is best.
        lambda_ratio: Option<f64> = None => |e| e.value("R").bounds(allowed::POSITIVE);
        /// The power to which the weights of the states are raised in the objective. Take 0.5 where rare states matter.
        #[serde(with = "super::values::weight_power")]
        weight_power: WeightPower = WeightPower::One => |e| e.value("1|0.5|0");
        /// Strength of the prior in this package's likelihood refit: the number of transitions that it adds to every state. Without it, chosen within
        /// each training part by itself.
        prior: Option<f64> = None => |e| e.bounds(allowed::NOT_NEGATIVE);
        /// Share of the overall distribution of arrivals that is mixed into every model before it is scored, so that no transition has probability zero.
        /// Without it, every model gets the share that gives it the best score on the other parts.
        smoothing: Option<f64> = None => |e| e.value("E").bounds(allowed::SHARE);
        /// How each state gets one meta-state from its memberships. Without it: by k-means, except for this package's refits, which take the largest membership
        /// as `metastate fit` does.
        hard: Option<HardKind> = None => |e| e;
        /// Name of a column with known groups of the states, in the inputs or in --reference-from. The table then says how well the meta-states of each method
        /// agree with these groups.
        reference: Option<String> = None => |e| e.value("COL");
        /// CSV table with the column of --reference for each state. States are found by the column --label, or by `lon` and `lat` where states are cells.
        reference_from: Option<PathBuf> = None => |e| e.requires("reference");
        /// CSV table with the columns `lon` and `lat` for each state. The comparison then says how often neighbouring places are in the same meta-state. Not
        /// needed where states are cells.
        places: Option<PathBuf> = None => |e| e;
        /// Name of the column with the labels of the states, in the tables of --groups-from, --reference-from and --places.
        label: String = "label".to_owned() => |e| e.value("COL");
        /// The folder to write.
        out: PathBuf = PathBuf::new() => |e| e.value("DIR").required_unless("estimate");
        /// Only say how much memory and how many minutes the comparison would take, as `metastate fit --estimate` does. Nothing is compared or written.
        estimate: bool = false => |e| e;
        /// Replace the folder if there is one already.
        force: bool = false => |e| e;
    }
}

words! {
    /// `--hard`.
    HardKind {
        /// k-means on the memberships, as in the paper
        Kmeans,
        /// The largest membership
        Membership,
    }
}

/// `metastate compare`.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareCommand {
    /// The inputs.
    pub input: InputArgs,
    /// What to compare.
    pub compare: CompareArgs,
}

options! {
    /// What is assigned, and where to.
    AssignArgs, None, free, {
        /// The result folder of the fit whose meta-states are used.
        result: PathBuf = PathBuf::new() => |e| e.value("RESULT").positional().required();
        /// How the membership of a state is computed from its transitions. Without it, in the way in which the result's own model was fitted.
        by: Option<AssignKind> = None => |e| e;
        /// The table to write, in the format CSV.
        out: PathBuf = PathBuf::new() => |e| e.required();
        /// Replace the file if there is one already.
        force: bool = false => |e| e;
    }
}

words! {
    /// `--by`.
    AssignKind {
        /// By the problem of the fit, including the cost lambda: a state of the fit with the same transitions gets its own membership back
        Penalised,
        /// By least squares, without the cost of lambda
        LeastSquares,
        /// By maximum likelihood
        Likelihood,
    }
}

/// `metastate assign`. Whatever is not said about the input is taken from the fit.
#[derive(Debug, Clone, PartialEq)]
pub struct AssignCommand {
    /// What is assigned, and where to.
    pub assign: AssignArgs,
    /// The inputs.
    pub input: InputArgs,
    /// The options that were given, by their names: also those given their default.
    pub given: Vec<String>,
}
