//! What can be wrong with the data or the settings. Each message is one sentence: what happened, the value that was found, what to do.
//!
//! Not converging is never an error; it is a `Status`.

/// A reason why the library refuses its input.
///
/// ```
/// use metastate::{Label, StateIndex};
///
/// let error = StateIndex::from_labels(vec![Label::from("home"), Label::from("home")]).unwrap_err();
/// assert_eq!(error.code(), "E-DATA-LABEL");
/// assert_eq!(error.to_string(), "the label home stands for two states; labels must be distinct");
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the fields are named in the sentences
pub enum Error {
    /// A number that is NaN or infinite.
    #[error("{what} holds {value} at row {row}, column {column}; every entry must be a finite number")]
    NotFinite { what: &'static str, row: usize, column: usize, value: f64 },
    /// A number below zero where only counts, probabilities or weights may stand.
    #[error("{what} holds the negative value {value} at row {row}, column {column}; it must be zero or more")]
    Negative { what: &'static str, row: usize, column: usize, value: f64 },
    /// A row of a transition matrix that is no probability distribution.
    #[error("row {row} of the transition matrix sums to {sum}, not to 1; normalise it, or pass the matrix as counts")]
    RowSum { row: usize, sum: f64 },
    /// Nothing to work on.
    #[error("{what} is empty; at least one transition is needed")]
    Empty { what: &'static str },
    /// A chain with one state has nothing to aggregate.
    #[error("only one state was found ({label}); at least two are needed, check the state column or the filters")]
    OneState { label: String },
    /// Two things that must have the same size do not.
    #[error("{what} has size {found}, but {expected} is needed")]
    SizeMismatch { what: &'static str, expected: usize, found: usize },
    /// An index that points outside.
    #[error("{what} {index} is out of range; there are {len} states, numbered from 0")]
    IndexOutOfRange { what: &'static str, index: u64, len: usize },
    /// A setting outside its range.
    #[error("{name} is {value}; {allowed}")]
    Setting { name: &'static str, value: String, allowed: &'static str },
    /// The same label stands for two states.
    #[error("the label {label} stands for two states; labels must be distinct")]
    DuplicateLabel { label: String },
    /// A transition matrix where something must be chosen on held-out transitions.
    #[error(
        "a transition matrix has no transitions to hold out, so nothing can be chosen on them; lambda_max of this matrix is {lambda_max:.6e}"
    )]
    NothingToHoldOut { lambda_max: f64 },
    /// What an interrupted run left behind is not of this run, or was changed.
    #[error("what is left of an interrupted run cannot be used: {what}")]
    Unfinished { what: String },
    /// Something that needs a chain that goes on, asked of one that does not.
    #[error(
        "origins and destinations are two different sets, so that no transition can follow another: there is no latent chain, and no times, forecasts or stationary law"
    )]
    DoesNotGoOn,
    /// The caller's observer ended the work before there was a result.
    #[error("interrupted before there was a result")]
    Interrupted,
    /// More memory than the caller allows, found out before allocating.
    #[error("{what} would need about {bytes} bytes; {remedy}")]
    TooLarge { what: &'static str, bytes: u128, remedy: &'static str },
}

impl Error {
    /// A stable code for scripts and for `metastate explain`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Error::NotFinite { .. } => "E-DATA-NOT-FINITE",
            Error::Negative { .. } => "E-DATA-NEGATIVE",
            Error::RowSum { .. } => "E-DATA-ROW-SUM",
            Error::Empty { .. } => "E-DATA-EMPTY",
            Error::OneState { .. } => "E-DATA-ONE-STATE",
            Error::SizeMismatch { .. } => "E-DATA-SIZE",
            Error::IndexOutOfRange { .. } => "E-DATA-INDEX",
            Error::Setting { .. } => "E-SETTING",
            Error::DuplicateLabel { .. } => "E-DATA-LABEL",
            Error::NothingToHoldOut { .. } => "E-CLI-LAMBDA",
            Error::Unfinished { .. } => "E-CLI-CHECKPOINT",
            Error::DoesNotGoOn => "E-DATA-TWO-SIDED",
            Error::Interrupted => "E-CLI-INTERRUPTED",
            Error::TooLarge { .. } => "E-DATA-TOO-LARGE",
        }
    }
}

/// The library's result.
pub type Result<T> = std::result::Result<T, Error>;
