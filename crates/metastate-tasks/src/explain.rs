//! `metastate explain CODE`.

use crate::error::{CliError, Result};

/// Codes of the library and of the command, each with what to do.
const OWN: &[(&str, &str)] = &[
    (
        "E-DATA-NOT-FINITE",
        "A NaN or an infinite number stands where a count, a probability or a weight should. The message names row and column; find out where it comes from before you leave it out.",
    ),
    (
        "E-DATA-NEGATIVE",
        "A number below zero stands where only counts, probabilities or weights may stand. Differences and logarithms are no counts.",
    ),
    (
        "E-DATA-ROW-SUM",
        "A row of a transition matrix does not sum to one within 1e-6. If the numbers are counts, say --as counts; if they were rounded, divide each row by its sum.",
    ),
    ("E-DATA-EMPTY", "Nothing is left to work on: there are no transitions, or none between states that carry weight."),
    ("E-DATA-ONE-STATE", "All transitions stay in one state. Usually the wrong column was named, or a filter kept one place only."),
    ("E-DATA-SIZE", "Two things that belong together have different sizes: labels and matrix, weights and matrix, or two factors."),
    ("E-DATA-INDEX", "An index points beyond the last state. States are numbered from 0."),
    ("E-SETTING", "An option lies outside its range; the message says which and what is allowed."),
    ("E-DATA-LABEL", "One label stands for two states. Labels must be distinct; otherwise the rows of the result could not be told apart."),
    (
        "E-DATA-TWO-SIDED",
        "Origins and destinations are two different sets, so that no transition can follow another. A latent chain, timescales, forecasts, committors and a stationary law need columns that are also rows.",
    ),
    (
        "E-DATA-TOO-LARGE",
        "The work would need more memory than is allowed; this was found out before anything was allocated. The message says what to do instead.",
    ),
    ("E-CLI-ARGUMENT", "An option has a value that cannot be used. See metastate COMMAND --help."),
    (
        "E-CLI-LAMBDA",
        "lambda says how much each further meta-state costs in the objective. It is chosen on held-out transitions when it is not given; a transition matrix has no transitions to hold out, so --lambda, --lambda-ratio or --rank must be given there. lambda_max is the value above which a single meta-state is best; shares of it (--lambda-ratio) between 0.9 and 0.01 are usual. Smaller values give more meta-states.",
    ),
    (
        "E-CLI-EXISTS",
        "There is already a file or folder at the place where the result should go. Results are never overwritten by accident: name another place, or say --force to replace a folder that metastate wrote (a result, a comparison, a forecast, a simulated chain). Anything else, and an input, is never overwritten.",
    ),
    (
        "E-CLI-TIME-LIMIT",
        "--time-limit counts from the start of the command. From the beginning of the solve there is always an answer, which is written together with what is proven about it; before that, what was tried so far is kept for --resume.",
    ),
    (
        "E-DATA-SCALE",
        "Counts, weights or options lie so far apart, or so near to zero, that an answer would hold numbers that are not finite. Counts may have any unit: divide or multiply all of them by one number. States that hardly occur are left out by --min-share.",
    ),
    (
        "E-CLI-BUSY",
        "Another run writes to the same place. Each place belongs to one run from before it reads until its result is written; when that run ends, in whatever way, the place is free again.",
    ),
    (
        "E-CLI-WRITE",
        "A file could not be written. The result folder is written beside its place and renamed when whole, so no half result is left.",
    ),
    (
        "E-PY-PANIC",
        "There is a bug in the Python package. The interpreter and all objects are unchanged; please report it, with the data if you can.",
    ),
    ("E-CLI-RESULT", "The folder is not a result of metastate fit, or one of its files is missing or damaged."),
    (
        "E-CLI-INPUTS-GONE",
        "verify counts again from the inputs named in summary.json. They are not there any more, or their bytes have changed (SHA-256), so the numbers of the result could not be checked against the data.",
    ),
    (
        "E-CLI-STATE",
        "forecast was asked about states that the result does not have, or with a law that cannot be used. Labels are those of states.csv, written exactly so.",
    ),
    (
        "E-CLI-CHECKPOINT",
        "The checkpoint is damaged: a file is missing or its checksum does not match, and so does the one before it. Remove the folder DIR.checkpoint and start again.",
    ),
    (
        "E-CLI-RESUME",
        "--resume continues a run with the same inputs, options and version only; otherwise the answer would belong to neither run. The message names what differs.",
    ),
    (
        "E-CLI-TRUTH",
        "--truth needs .npy files of float64: the true transition matrix, or its two factors U and V. Rows are matched to states by number when all labels are numbers, by place otherwise.",
    ),
    ("E-CLI-INIT", "--init RESULT needs the folder of an earlier result that has some of the states of these data."),
    (
        "E-CLI-REFERENCE",
        "compare was given labels or places for the states that it cannot use: the table or the column is not there, or none of the states is in it. States are found by the column --label, or by lon and lat where they are cells.",
    ),
    (
        "E-CLI-ASSIGN",
        "assign computes memberships from transitions into states of the fit. There are none in these inputs, or the options read them differently from those of the fit: with other cells, another lag, weight or column. Labels must be written as in states.csv; options that are not given are taken from the fit.",
    ),
    (
        "E-CLI-PLACES",
        "The table of --places does not go with the data: none of the states is in its column of labels (--label names it), a longitude or latitude is no place on earth, or the states are cells of a map and have their places already.",
    ),
    ("E-CLI-SIGNAL", "The operating system did not let the program listen to Ctrl-C. Without that, a checkpoint could be lost."),
    (
        "E-CLI-PROGRAM",
        "metastate reproduce starts the program metastate-reproduce, which holds the paper's experiments. It must be in the folder of metastate or on the PATH; in the source tree, cargo build --release -p metastate-lab makes it.",
    ),
    ("E-CLI-THREADS", "The threads asked for could not be started. Give a smaller --threads."),
    ("E-CLI-CODE", "There is no such code. metastate explain without a code lists all."),
    (
        "E-CLI-INTERRUPTED",
        "The run was stopped by Ctrl-C or SIGTERM (exit code 130). The checkpoint is kept; the same command with --resume goes on to the same answer.",
    ),
];

/// All codes with what to do, in the order of the alphabet.
fn all() -> Vec<(&'static str, &'static str)> {
    let mut all: Vec<(&str, &str)> = OWN.to_vec();
    all.extend(metastate_ingest::codes().iter().map(|c| (c.code, c.text)));
    all.sort_unstable();
    all
}

/// `docs/reference/errors.md`; a test holds the file against it.
pub fn reference() -> String {
    let mut out = String::from(
        "# All errors\n\nMade from the catalogue behind `metastate explain`; do not edit. An error is told as one sentence with its code, where it was met and what to try; in Python it is a `ValueError`\n\
         (or another of Python's own kinds) with the same sentence. Exit codes: 0 done, 2 bad arguments or bad input (nothing written), 1 anything else, 130 interrupted (checkpoint kept).\n\n\
         | code | what it means and what to do |\n|---|---|\n",
    );
    for (code, text) in all() {
        out += &format!("| `{code}` | {} |\n", text.replace('|', "\\|").replace('\n', " "));
    }
    out
}

/// The explanation of a code, or the list of all.
pub fn explain(code: Option<&str>) -> Result<String> {
    let all = all();
    let Some(code) = code else {
        return Ok(all.iter().map(|(code, _)| *code).collect::<Vec<_>>().join("\n"));
    };
    let wanted = code.to_ascii_uppercase();
    match all.iter().find(|(code, _)| *code == wanted) {
        Some((code, text)) => Ok(format!("{code}\n\n{text}")),
        None => Err(CliError::bad("E-CLI-CODE", format!("there is no code `{code}`")).remedy("metastate explain lists all codes")),
    }
}
