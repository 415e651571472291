//! Where the paper's text leaves a choice: what was done, and what it changes.

use super::Page;
use crate::Result;
use crate::plan::{Cell, TRAPS};
use crate::run::Asked;
use crate::store::Store;
use crate::traps::{TrapResult, key};

/// Title, and what was done.
const TEXTS: [(&str, &str); TRAPS] = [
    (
        "Step sizes (5.4) contain λ/ε₀ = λ · 10¹⁴",
        "They are correct and useless. Offered as `palm-lipschitz`; paper mode uses the Barzilai-Borwein steps (5.5), as the paper's experiments do. F over the best value at rank r, from the same random start of 2 r columns (below zero: more columns than r):",
    ),
    (
        "The line search of (5.5) asks for a decrease of η c ‖∇F‖²",
        "At a constrained optimum the gradient is not zero, so the test can never hold there. We ask for η ‖U_next − U‖²/c, the length of the projected step. At the solution of rank r (η = 1e-4, which the paper does not print either):",
    ),
    (
        "The local rule (5.6), a decrease below 10⁻³ over 30 steps",
        "Kept in paper mode; our default ends on the KKT residuals (1e-5). Paper mode with other values (ε = 4 % of ‖ΞP‖, which is what 5e-5 is at d = 1000):",
    ),
    (
        "GE and relDG rest on a local search",
        "A local search for Ω° gives a lower bound of it: GE is optimistic and the scaled dual point may be infeasible. We print both for comparison and prove a gap besides (the certified gap). The same solutions, searches of different strength:",
    ),
    (
        "μ averages over u_ij ≠ 0",
        "After a projection tiny positives may be left, and they say nothing of μ. We count memberships above 1e-9 of the row's largest:",
    ),
    (
        "The redundancy threshold ε is absolute",
        "5e-5 and 1.5e-4 are 4 % and 12 % of ‖ΞP‖ at d = 1000, and more than σ_r for d ≥ 1000, r ≥ 10. Paper mode takes ε as it is; our default a relative 1e-4, and only where F does not rise:",
    ),
    (
        "Early stopping by 5,000 random directions",
        "In many dimensions random points of the nonnegative sphere all lie near the uniform direction, so the rule stops early (largest φ; the rule stops at 1 or below; the last column is what an ascent finds at the same point). Kept as `--stop early`:",
    ),
    (
        "ξ counts arrivals (2.1) or pick-ups (6.3)",
        "Arrivals for trajectories, departures for trips, as the paper does in each place; the power of ξ is an option of ours. One trajectory, so the two differ by its ends only:",
    ),
    (
        "λ* and the number of columns (ours, not among the eight)",
        "The relaxation that stands for the convex problem in the paths above, beside nonnegative factors grown until their gap is 3e-4 by the bound that steers them (in parentheses their rank and what was then proven; a dash where nothing was), and beside the solution held at rank r:",
    ),
    (
        "Where redundant columns are sought (ours, not among the eight)",
        "The paper asks for vectors α with Σ α_j U_j V_jᵀ = 0 and allows ‖ΞΔ‖ ≤ ε for Δ, but does not say how α and θ are found when the sum is only nearly zero. Three ways, all to the letter of the test; the rank depends on the way, F and relRE hardly do as long as no true meta-state goes:",
    ),
];

pub fn write(page: &mut Page, asked: &Asked, store: &Store) -> Result<()> {
    let k = key(asked.scale);
    page.line("## Where the paper's text leaves a choice");
    page.line(format!(
        "Measured on one chain with d = {}, r = {}, n/d² = {}, λ = 1.2 σ_(r+1)/d, near its λ*. Besides these: the text of 6.2 says s₀ = 300 and its captions s₀ = 0.1 d (we follow the captions); what ends a \
         cycle of appending and removing is not said (see the top); ε_Exa, η, δ, γ₁, γ₂ and the grid of λ are not printed.",
        k.d, k.r, k.ratio
    ));
    for (at, (title, text)) in TEXTS.iter().enumerate() {
        let number = at + 1;
        let Some(found) = store.get::<TrapResult>(&Cell::Trap { number }.name())? else { continue };
        page.line(format!("### {number}. {title}"));
        page.line(text);
        let head: Vec<&str> = found.head.iter().map(String::as_str).collect();
        page.table(&head, &found.rows);
    }
    Ok(())
}
