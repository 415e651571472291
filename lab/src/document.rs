//! `reproduction.md` and its figures, made of the finished cells alone: the same cells give the same bytes.

mod exact;
mod sampled;
mod taxi;
mod traps;

use std::fmt::Write;

use crate::Result;
use crate::plan::{Cell, Scale, What};
use crate::run::{Asked, span};
use crate::store::Store;

/// The document as it grows, with its figures.
#[derive(Debug, Default)]
pub(crate) struct Page {
    text: String,
    figures: Vec<(String, String)>,
}

impl Page {
    fn line(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.text, "{}\n", text.as_ref());
    }

    fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        if !rows.is_empty() {
            self.text += &crate::numbers::table(head, rows);
        }
    }

    /// A figure and its place in the text.
    fn figure(&mut self, name: &str, caption: &str, svg: Option<String>) {
        if let Some(svg) = svg {
            let _ = writeln!(self.text, "![{caption}](reproduction/{name}.svg)\n");
            self.figures.push((format!("{name}.svg"), svg));
        }
    }
}

/// The whole document.
pub fn write(asked: &Asked, store: &Store, cells: &[Cell]) -> Result<(String, Vec<(String, String)>)> {
    let mut page = Page::default();
    head(&mut page, asked, store, cells);
    if asked.what.holds(What::TableExact) {
        exact::write(&mut page, asked, store)?;
    }
    for table in [What::TableD, What::TableR, What::TableN] {
        if asked.what.holds(table) {
            sampled::write(&mut page, asked, store, table)?;
        }
    }
    if asked.what.holds(What::Taxi) {
        taxi::write(&mut page, asked, store)?;
    }
    if asked.what != What::Taxi {
        traps::write(&mut page, asked, store)?;
    }
    let text = page.text.trim_end().to_owned() + "\n";
    Ok((text, page.figures))
}

fn head(page: &mut Page, asked: &Asked, store: &Store, cells: &[Cell]) {
    let names: Vec<String> = cells.iter().map(Cell::name).collect();
    let missing: Vec<&String> = names.iter().filter(|n| !store.has(n)).collect();
    let seconds: f64 = names.iter().filter_map(|n| store.seconds(n)).sum();
    page.line("# The paper's section 6, reproduced");
    page.line(
        "Duan, Wang, Wen, Yuan, *Adaptive Low-Nonnegative-Rank Approximation for State Aggregation of Markov Chains*. Made by `metastate reproduce all --data FILES --out DIR`; \
         nothing here was written or corrected by hand. The paper's values are as printed. Our chains come from the paper's generator with seeds of our own, \
         so small differences are differences of chains. **Bold: more than 10 % from the paper**; the causes follow each table, each with the \
         measurement that tests it, or the words *not explained*.",
    );
    if asked.scale == Scale::Quick {
        page.line("**This is the quick version: small chains, for which the paper has no values.**");
    }
    page.line(format!(
        "{} pieces of work, {} in all, one after the other on two cores of a shared machine (times of ours are therefore no measurements of speed).",
        names.len() - missing.len(),
        span(seconds)
    ));
    if !missing.is_empty() {
        // By kind and size: `path-d1000` and so on.
        let mut kinds: Vec<(String, usize)> = Vec::new();
        for name in &missing {
            let kind = name.split('-').take(2).collect::<Vec<_>>().join("-");
            match kinds.iter_mut().find(|k| k.0 == kind) {
                Some(k) => k.1 += 1,
                None => kinds.push((kind, 1)),
            }
        }
        let list = kinds.iter().map(|(kind, n)| format!("`{kind}` {n}")).collect::<Vec<_>>().join(", ");
        page.line(format!("**Not computed in this run ({} pieces; the same command with `--resume` adds them):** {list}.", missing.len()));
    }
    if asked.scale == Scale::Full {
        page.line(
            "Left out or reduced, for the time they take: n/d² = 1000 everywhere (10⁹ transitions a trajectory) and 500 but for r = 5; fewer than the paper's 5 \
             trajectories for large chains (the tables say how many). \
             The paper gives one chain and five trajectories; here chain and trajectory are both drawn anew, so the spread holds both.",
        );
    }
    page.line(
        "Who made what. *Paper mode*: Algorithm 1 with PALM, Barzilai-Borwein steps, local rule (5.6) at 10⁻³, exact rule at 10⁻³ (the paper does not print its ε_Exa), random start. \
         The text does not say what ends the run when a column is appended for a decrease of 10⁻⁵ and removed again; here that is the end (`cycle`). \
         *Ours*: the `fast` solver from its spectral start. *Convex*: the nuclear relaxation of the convex problem, solved at whatever rank it needs until the bound that steers it is 3e-4 away (an estimate, no proof); \
         it is used where relRE must be followed along λ, and trap 9 below measures how near it is to the nonnegative solution. *Default*: rank and prior chosen on \
         held-out transitions as `metastate fit` does, λ the smallest at which no further meta-state pays, certified gap, \
         likelihood refit; no truth is used. *Certified gap*: (F - lower bound)/F with a lower bound that is proven; a dash where nothing was proven, in a mean where one of the rows was not.",
    );
}
