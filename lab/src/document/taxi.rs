//! Section 6.3.

use super::Page;
use crate::Result;
use crate::numbers::{rough, short};
use crate::plan::{Cell, Scale, TAXI_RATIOS};
use crate::run::Asked;
use crate::store::Store;
use crate::taxi::{TaxiDefault, TaxiResult};

/// Pairs of maps in the document.
const PAIRS: usize = 6;

pub fn write(page: &mut Page, asked: &Asked, store: &Store) -> Result<()> {
    page.line("## 6.3 Taxi trips (`taxi`)");
    page.line(
        "The paper: 1.1 × 10⁷ yellow cab trips of January 2016, 2017 states, 7.5 × 10⁶ trips kept, λ = 1.5e-10 to 1.8e-10, 6 to 9 regions. That file is not at hand; the data below is \
         one whole day and a sample of the paper's month. Preprocessing as in the paper (80.07W-60.92W, 30.69N-50.85N, 0.001° cells, pick-up share at least 1e-4, ξ by pick-ups); cells that keep \
         more than 99 % of their trips to themselves (garages, stuck receivers) are left out, of which the paper does not speak. Early stopping with 5,000 directions from s₀ = 1, local solves by our `fast` solver; \
         k-means with 500 replicates on U; the rival: k-means with 500 replicates on Ξ⁻¹ times the left singular vectors, at the same k. Coherence: the share of neighbouring cells in one zone, beyond chance \
         (1: no borders, 0: as good as chance).",
    );
    let ratios: &[f64] = if asked.scale == Scale::Full { &TAXI_RATIOS } else { &TAXI_RATIOS[..1] };
    let mut maps: Vec<(usize, TaxiResult)> = Vec::new();
    for file in 0..asked.data.len() {
        let mut lines = Vec::new();
        let mut facts = None;
        for &ratio in ratios {
            let Some(x) = store.get::<TaxiResult>(&Cell::Taxi { file, ratio }.name())? else { continue };
            let s = &x.solved;
            lines.push(vec![
                format!("{ratio}"),
                short(x.lambda),
                s.rank.to_string(),
                s.status.clone(),
                format!("{:.3}", x.coherence[0]),
                format!("{:.3}", x.coherence[1]),
                format!("{:.3} ({})", x.coherence[2], x.prior),
                rough(s.errors[2]),
                rough(s.certified),
            ]);
            facts = Some(x.facts.clone());
            maps.push((file, x));
        }
        let default = store.get::<TaxiDefault>(&Cell::TaxiDefault { file }.name())?;
        let Some(facts) = facts.or(default.as_ref().map(|d| d.facts.clone())) else { continue };
        page.line(format!("### `{}`", facts.name));
        page.line(format!("{} rows, {} states, {} trips between them.", facts.rows, facts.states, facts.transitions));
        let head = [
            "λ/λ_max",
            "λ",
            "zones",
            "ended by",
            "coherence, early stopping",
            "SVD rival",
            "likelihood refit (prior chosen)",
            "GE",
            "certified gap",
        ];
        page.table(&head, &lines);
        if let Some(d) = default {
            page.line(format!(
                "Default, nothing given: {} zones (rank by held-out trips, prior {}), λ = {} ({:.3} λ_max), certified gap {} ({}). Held-out log-likelihood a trip {:.4}; the counts themselves {:.4}, one \
                 law for all {:.4}. Coherence of the refit's zones {:.3}, of the SVD partition at the same k {:.3}.",
                d.solved.rank,
                d.prior,
                short(d.solved.lambda),
                d.solved.lambda / d.lambda_max,
                rough(d.solved.certified),
                d.solved.status,
                d.held_out[0],
                d.held_out[1],
                d.held_out[2],
                d.coherence[0],
                d.coherence[1]
            ));
            page.figure(&format!("taxi-{file}-default"), &format!("{}: our default beside the SVD partition", facts.name), Some(d.map));
        }
    }
    page.line("### Pairs of maps at equal k");
    page.line("Left the paper's method, right the SVD rival; Manhattan and its neighbourhood, other cells are outside of the frame.");
    // One pair for each number of zones and file, those nearest to the paper's 6 to 9 first.
    let away = |k: usize| if k < 6 { 6 - k } else { k.saturating_sub(9) };
    maps.sort_by_key(|(file, x)| (x.solved.rank < 2, away(x.solved.rank), *file, x.solved.rank));
    maps.dedup_by_key(|(file, x)| (*file, x.solved.rank));
    maps.truncate(PAIRS);
    maps.sort_by_key(|(file, x)| (*file, x.solved.rank));
    for (file, x) in maps {
        let caption = format!("{}: {} zones, coherence {:.2} and {:.2}", x.facts.name, x.solved.rank, x.coherence[0], x.coherence[1]);
        page.figure(&format!("taxi-{file}-{}", x.solved.rank), &caption, Some(x.map));
    }
    page.line(
        "What deviates from the paper: λ is larger by three orders of magnitude for as many zones. ‖ΞP‖² and with it λ_max depend on the number of trips only through their noise, and 261,000 trips are noisier than 7.5 \
         million; λ over λ_max is the number to compare, which the paper does not give. Whether the whole month has its 6 to 9 zones at 1.5e-10 was **not tested**: the file is not at hand. \
         The paper finds its own zones more coherent than the SVD's by eye. On these data the coherence of early stopping is **below** the SVD's (table); the likelihood refit of the same solution \
         is what comes out above it where trips are many. Cause tested: the solution, the number of zones and the clustering are the same in both columns, so it is the penalty's bias that blurs the memberships.",
    );
    Ok(())
}
