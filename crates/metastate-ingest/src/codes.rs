//! The list of codes, each with the longer explanation that `metastate explain CODE` prints.

/// Reasons for a refusal, stable across versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // explained in the table below, which is what the user sees
pub enum Code {
    Open,
    Read,
    Write,
    Glob,
    EmptyFile,
    Format,
    As,
    Compressed,
    Utf8,
    Nul,
    Ragged,
    Quote,
    Line,
    Header,
    Json,
    Parquet,
    Npy,
    Npz,
    Mtx,
    Size,
    Column,
    Type,
    Number,
    Integer,
    Negative,
    NotFinite,
    Where,
    Coordinates,
    Swapped,
    NothingLeft,
    Option,
    Labels,
    Lag,
    RowSum,
    TooLarge,
    Cancelled,
}

/// A code and what `metastate explain` says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// The stable code.
    pub code: &'static str,
    /// What it means and what to do.
    pub text: &'static str,
}

const TABLE: &[(Code, &str, &str)] = &[
    (
        Code::Open,
        "E-INGEST-OPEN",
        "The input could not be opened: there is no such file, it is a directory, or there is no permission to read it. Check the spelling; for a directory give a pattern such as 'data/*.parquet' (in quotes, so that every file is named in the result).",
    ),
    (
        Code::Read,
        "E-INGEST-READ",
        "The operating system reported an error while an input was being read. A network disk that went away or a failing disk are the usual causes; run again, or copy the file first.",
    ),
    (
        Code::Write,
        "E-INGEST-WRITE",
        "A file could not be written: sorted runs of counts in the temporary directory, or the counts file. Check the free space; TMPDIR chooses another place for the former.",
    ),
    (
        Code::Glob,
        "E-INGEST-GLOB",
        "The pattern matches no file, or is not a valid pattern. `*` stands for any text, `?` for one character, `[ab]` for one of several, `**` for any depth of directories.",
    ),
    (
        Code::EmptyFile,
        "E-INGEST-EMPTY-FILE",
        "The file holds nothing, or a header and no rows. An export that failed half-way often leaves such a file.",
    ),
    (
        Code::Format,
        "E-INGEST-FORMAT",
        "The kind of file could not be recognised from its name and its first bytes, or cannot be used for this kind of input. Known are csv, tsv, jsonl, parquet, npy, npz, mtx and txt, the text formats also with .gz or .zst.",
    ),
    (
        Code::As,
        "E-INGEST-AS",
        "The file could hold more than one kind of input and a wrong guess would give a wrong answer without a warning. Say which with --as trips, trajectories, counts or matrix.",
    ),
    (
        Code::Compressed,
        "E-INGEST-COMPRESSED",
        "The gzip or zstd stream ends too early or is damaged. Nothing of such a file is used, for its missing tail would bias the counts. Fetch or compress it again.",
    ),
    (
        Code::Utf8,
        "E-INGEST-UTF8",
        "Text must be UTF-8. The line named holds bytes that are not, most often because the file was written as Latin-1 or UTF-16. Convert it: iconv -f LATIN1 -t UTF-8 old.csv > new.csv.",
    ),
    (
        Code::Nul,
        "E-INGEST-NUL",
        "A text file holds a NUL byte: it is a binary file, is UTF-16, or was damaged by a crash while being written.",
    ),
    (
        Code::Ragged,
        "E-INGEST-RAGGED",
        "A row has more or fewer fields than the header. Often a field holds the delimiter without being quoted. The row is not repaired by guessing; correct it or remove it.",
    ),
    (
        Code::Quote,
        "E-INGEST-QUOTE",
        "A quoted field is never closed, or text follows its closing quote. A quote inside a quoted field is written twice.",
    ),
    (Code::Line, "E-INGEST-LINE", "One record or label is far too long. Usually the file is not of the kind its name says."),
    (
        Code::Header,
        "E-INGEST-HEADER",
        "The header has no usable names: a name stands twice, or is empty where it is needed. The first line of a table must name its columns.",
    ),
    (
        Code::Json,
        "E-INGEST-JSON",
        "JSON lines must hold one object a line, `{\"from\": \"a\", \"to\": \"b\"}`, with texts, numbers, true, false or null as values. Flatten nested values first (for instance with jq).",
    ),
    (
        Code::Parquet,
        "E-INGEST-PARQUET",
        "The Parquet file is truncated, damaged, or uses an encoding or compression that is not built in (built in: none, snappy, gzip, zstd, lz4).",
    ),
    (
        Code::Npy,
        "E-INGEST-NPY",
        "The .npy file is damaged or has a content that cannot be read: booleans, integers and floats of either byte order and either memory order can; objects (pickles), complex numbers and structures cannot.",
    ),
    (
        Code::Npz,
        "E-INGEST-NPZ",
        "The .npz file is not one that scipy.sparse.save_npz writes in csr, csc or coo format, or is damaged. Convert other formats with matrix.tocsr() first.",
    ),
    (
        Code::Mtx,
        "E-INGEST-MTX",
        "The MatrixMarket file breaks its format: a bad banner, fewer or more entries than announced, an index out of range, or a field or symmetry that counts cannot have (complex, hermitian, skew-symmetric).",
    ),
    (
        Code::Size,
        "E-INGEST-SIZE",
        "Sizes do not agree: a header promises more than the file holds, a matrix is not square, or labels, weights and matrix have different lengths.",
    ),
    (
        Code::Column,
        "E-INGEST-COLUMN",
        "A column that was asked for is not in the file. Names are compared letter by letter, upper and lower case differing.",
    ),
    (
        Code::Type,
        "E-INGEST-TYPE",
        "A column has a type that cannot serve this purpose, such as a list, a structure or binary data as a label, or text where a number is needed.",
    ),
    (
        Code::Number,
        "E-INGEST-NUMBER",
        "A number was needed and something else was met. Correct the value or leave the row out with --where.",
    ),
    (Code::Integer, "E-INGEST-INTEGER", "A whole number within 64 bits was needed."),
    (Code::Negative, "E-INGEST-NEGATIVE", "Counts, weights and probabilities must be zero or more."),
    (Code::NotFinite, "E-INGEST-NOT-FINITE", "Counts, weights and probabilities must be finite; NaN or an infinity was met."),
    (
        Code::Where,
        "E-INGEST-WHERE",
        "--where takes a part of SQL's WHERE: columns, numbers, 'texts', DATE and TIMESTAMP '...'; = <> < <= > >=, AND, OR, NOT, IN (...), BETWEEN, LIKE, ILIKE, IS [NOT] NULL, EXTRACT(HOUR|MINUTE|SECOND|DOW|DAY|DOY|WEEK|MONTH|QUARTER|YEAR FROM column). Anything else is refused. Put \"double quotes\" around unusual column names and 'single quotes' around texts.",
    ),
    (
        Code::Coordinates,
        "E-INGEST-COORDINATES",
        "Coordinates must be degrees: longitudes within -180 and 180, latitudes within -90 and 90, west below east and south below north in --bbox.",
    ),
    (
        Code::Swapped,
        "E-INGEST-SWAPPED",
        "Longitude and latitude seem to be exchanged: exchanged, the points would fit. Exchange the columns given to --from-lon and --from-lat (and --to-lon, --to-lat); --bbox is west,south,east,north.",
    ),
    (
        Code::NothingLeft,
        "E-INGEST-NOTHING-LEFT",
        "Every row was left out; the message tells how many for which reason. Loosen the filter that took most.",
    ),
    (Code::Option, "E-INGEST-OPTION", "An option is missing, has a value outside its range, or does not go with the others."),
    (Code::Labels, "E-INGEST-LABELS", "The file of labels must hold one label a line, as many as the matrix has rows, all different."),
    (Code::Lag, "E-INGEST-LAG", "The counts files have different lags; counts of different lags cannot be added."),
    (
        Code::RowSum,
        "E-INGEST-ROW-SUM",
        "The rows of a transition matrix must sum to one. Normalise them, or give the matrix as counts with --as counts.",
    ),
    (
        Code::TooLarge,
        "E-INGEST-TOO-LARGE",
        "Reading this would need more memory than --memory-limit (or than any machine has). Raise it, or make the data smaller: larger --cell, --min-share, --where.",
    ),
    (Code::Cancelled, "E-INGEST-CANCELLED", "Reading was interrupted before its end; nothing was written."),
];

impl Code {
    /// The code as the user sees it.
    pub fn as_str(self) -> &'static str {
        // The table is short and this runs once per failed run.
        TABLE.iter().find(|row| row.0 == self).map_or("E-INGEST", |row| row.1)
    }
}

/// All codes with their explanations, in a sensible reading order.
pub fn codes() -> Vec<Explanation> {
    TABLE.iter().map(|&(_, code, text)| Explanation { code, text }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_table_once() {
        let all = codes();
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| b.code != a.code), "{} twice", a.code);
        }
        assert_eq!(all.len(), Code::Cancelled as usize + 1);
        assert!(TABLE.iter().all(|row| row.0.as_str() == row.1));
    }
}
