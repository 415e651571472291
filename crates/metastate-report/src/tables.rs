//! The CSV tables. Numbers are written with the fewest digits that give them back exactly.

use std::fmt::Write;
use std::io;

use metastate::aggregate::latent::LatentChain;
use metastate::solve::Factors;
use metastate::workspace::largest_entry;
use metastate::{Label, Mat};

use crate::disk::Target;
use crate::result::{FitResult, LargestMembership};

/// Bytes of a table that are written at a time.
const PIECE: usize = 1 << 16;
/// Anchor states and destinations named for each meta-state and for each zone.
pub(crate) const NAMED: usize = 5;

/// A number with as many digits as it takes to read it back bit for bit.
pub fn number(x: f64) -> String {
    format!("{x:?}")
}

/// A text as a field: quoted where it must be.
pub fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// The same for a spreadsheet: what it would take for a formula, and is no number, has an apostrophe before it.
pub fn spreadsheet_field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    if formula { csv_field(&format!("'{text}")) } else { csv_field(text) }
}

/// The rows of a CSV text, quotes undone. `None` when a quote is never closed.
pub fn parse_csv(text: &str) -> Option<Vec<Vec<String>>> {
    metastate_ingest::side::csv_records(text, "").ok()
}

/// `label`, `name` where names are known, `weight, metastate` (the largest membership), `zone` (of the partition), `membership_1..s`, and `lon, lat` where they are known.
pub(crate) fn states(file: &mut dyn Target, result: &FitResult, metastate: &[usize]) -> io::Result<()> {
    let u = &result.model.u;
    let mut out = String::from(if result.names.is_some() { "label,name,weight,metastate,zone" } else { "label,weight,metastate,zone" });
    (1..=u.cols()).for_each(|j| push(&mut out, format_args!(",membership_{j}")));
    out.push_str(if result.coordinates.is_some() { ",lon,lat\n" } else { "\n" });
    for (i, label) in result.labels.iter().enumerate() {
        let (metastate, zone) = (metastate[i] + 1, result.partition.labels[i] + 1);
        let name = result.names.map_or_else(String::new, |names| format!(",{}", csv_field(&names[i])));
        push(&mut out, format_args!("{}{name},{:?},{metastate},{zone}", csv_field(&label.to_string()), result.xi[i]));
        u.row(i).iter().for_each(|x| push(&mut out, format_args!(",{x:?}")));
        if let Some((lon, lat)) = result.coordinates.map(|c| c[i]) {
            push(&mut out, format_args!(",{lon:?},{lat:?}"));
        }
        out.push('\n');
        if out.len() >= PIECE {
            file.write_all(out.as_bytes())?;
            out.clear();
        }
    }
    file.write_all(out.as_bytes())
}

/// Size, mass, anchor states with their memberships (largest first, then by weight), top destinations with their shares, and, where the chain goes on, the share in the
/// stationary law of the latent chain (the one that the data's own law leads to, where there are several).
pub(crate) fn metastates(result: &FitResult, largest_membership: &LargestMembership) -> String {
    let (u, v) = (&result.model.u, &result.model.v);
    let (named, named_ends) = (NAMED.min(u.rows()), NAMED.min(v.rows()));
    let goes_on = result.destinations.is_none();
    let chain = goes_on.then(|| LatentChain::new(u, v).and_then(|chain| chain.stationary(result.xi)).ok()).flatten();
    let stationary = |j: usize| chain.as_ref().map_or(f64::NAN, |laws| laws.limit[j]);
    let mut out = String::from("metastate,size,mass");
    (1..=named).for_each(|k| push(&mut out, format_args!(",anchor_{k},membership_{k}")));
    (1..=named_ends).for_each(|k| push(&mut out, format_args!(",destination_{k},share_{k}")));
    out.push_str(if goes_on { ",stationary\n" } else { "\n" });
    for j in 0..u.cols() {
        push(&mut out, format_args!("{},{},{:?}", j + 1, largest_membership.sizes[j], largest_membership.masses[j]));
        for i in largest(u.rows(), named, |i| (u[(i, j)], result.xi[i])) {
            push(&mut out, format_args!(",{},{:?}", csv_field(&result.labels[i].to_string()), u[(i, j)]));
        }
        for i in largest(v.rows(), named_ends, |i| (v[(i, j)], result.destination_weight(i))) {
            push(&mut out, format_args!(",{},{:?}", csv_field(&result.destination(i)), v[(i, j)]));
        }
        if goes_on {
            push(&mut out, format_args!(",{:?}", stationary(j)));
        }
        out.push('\n');
    }
    out
}

/// The file of the destinations, where they are another set than the states.
pub const DESTINATIONS_FILE: &str = "destinations.csv";

/// `label, weight` (share of all arrivals), `metastate` (the one that sends most there), `profile_1..s` (V), and `lon, lat` where they are known.
pub fn destinations_csv(labels: &[Label], arrivals: &[f64], model: &Factors, xi: &[f64], places: Option<&[(f64, f64)]>) -> String {
    let (mass, total) = (model.mass(xi), arrivals.iter().sum::<f64>());
    let mut out = String::from("label,weight,metastate");
    (1..=model.rank()).for_each(|k| push(&mut out, format_args!(",profile_{k}")));
    out.push_str(if places.is_some() { ",lon,lat\n" } else { "\n" });
    for (j, label) in labels.iter().enumerate() {
        let v = model.v.row(j);
        let sent: Vec<f64> = v.iter().zip(&mass).map(|(v, m)| v * m).collect();
        push(&mut out, format_args!("{},{:?},{}", csv_field(&label.to_string()), arrivals[j] / total, largest_entry(&sent) + 1));
        v.iter().for_each(|x| push(&mut out, format_args!(",{x:?}")));
        if let Some((lon, lat)) = places.map(|p| p[j]) {
            push(&mut out, format_args!(",{lon:?},{lat:?}"));
        }
        out.push('\n');
    }
    out
}

/// K = V^T U: a step of the chain on meta-states.
pub(crate) fn latent(k: &Mat) -> String {
    let mut out = String::from("metastate");
    (1..=k.cols()).for_each(|j| push(&mut out, format_args!(",to_{j}")));
    out.push('\n');
    for i in 0..k.rows() {
        push(&mut out, format_args!("{}", i + 1));
        k.row(i).iter().for_each(|x| push(&mut out, format_args!(",{x:?}")));
        out.push('\n');
    }
    out
}

fn push(out: &mut String, text: std::fmt::Arguments) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(text);
}

/// The rows with the largest keys, in falling order; ties by row.
pub(crate) fn largest(rows: usize, count: usize, key: impl Fn(usize) -> (f64, f64)) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    let falling = |a: &usize, b: &usize| {
        let ((a1, a2), (b1, b2)) = (key(*a), key(*b));
        b1.total_cmp(&a1).then(b2.total_cmp(&a2)).then(a.cmp(b))
    };
    if count < rows {
        order.select_nth_unstable_by(count, falling);
        order.truncate(count);
    }
    order.sort_by(falling);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back() {
        let fields = ["a", "-73.987,40.750", "say \"x\"", "", "two\nlines"];
        let line: Vec<String> = fields.iter().map(|f| csv_field(f)).collect();
        assert_eq!(parse_csv(&format!("{}\n", line.join(","))).unwrap(), [fields]);
        assert!(parse_csv("a,\"b\n").is_none());
    }

    #[test]
    fn a_spreadsheet_finds_no_formula() {
        let escaped = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "=a,b"].map(spreadsheet_field);
        assert_eq!(escaped, ["'=1+1", "'+cmd|' /C calc'!A0", "'-2+3", "'@SUM(A1)", "'\t=1", "\"'=a,b\""]);
        // Numbers stay numbers, and all else stays as it is.
        let same = ["-0.5", "+3", "-1e-300", "-inf", "plain", "a=b", "", "Zürich"];
        assert_eq!(same.map(spreadsheet_field), same);
    }
}
