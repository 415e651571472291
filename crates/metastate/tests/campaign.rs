//! Two hundred problems of the campaign: no certified lower bound is false, and no honest result is refused. The whole of it, with twenty
//! restarts a problem, is `examples/proof_campaign.rs`.

mod proof;

use proof::attack::{Effort, Outcome, SHARES, attack};
use proof::families::{self, Instance};
use rayon::prelude::*;

/// Problems larger than this are for the whole campaign.
const MOST_STATES: usize = 40;
/// Chains of each family, and lambdas for each of them.
const CHAINS: usize = 3;
const LAMBDAS: usize = 2;

/// A few chains of each family, the largest among them, each with two of the lambdas in turn.
fn chosen(instances: &[Instance]) -> Vec<(&Instance, Vec<f64>)> {
    let small: Vec<&Instance> = instances.iter().filter(|x| x.chain.states() <= MOST_STATES).collect();
    let mut chosen = Vec::new();
    for family in small.chunk_by(|a, b| a.family == b.family) {
        for k in 0..CHAINS.min(family.len()) {
            let at = (family.len() - 1) * (k + 1) / CHAINS.min(family.len());
            let first = 2 * chosen.len() % SHARES.len();
            let mut shares: Vec<f64> = (0..LAMBDAS).map(|l| SHARES[(first + 4 * l) % SHARES.len()]).collect();
            shares.sort_by(|a, b| b.total_cmp(a));
            chosen.push((family[at], shares));
        }
    }
    chosen
}

#[test]
fn no_bound_is_false_and_no_honest_result_is_refused() {
    let instances = families::small();
    let chosen = chosen(&instances);
    let outcomes: Vec<Outcome> =
        chosen.par_iter().with_max_len(1).flat_map_iter(|(instance, shares)| attack(instance, shares, &Effort::quick())).collect();
    assert!(outcomes.len() >= 200, "{} problems", outcomes.len());

    let mut broken = Vec::new();
    for o in &outcomes {
        let at = format!("{} at {:?} (lambda {:e})", o.name, o.share, o.lambda);
        for fit in o.false_bounds() {
            let bound = fit.lower_bound.unwrap_or(f64::NAN);
            broken.push(format!("false: {at}, {}: {bound:e} > {:e} ({}); {} by {}", fit.mode, o.best, o.best_from, fit.status, fit.proof));
        }
        for fit in o.false_checker_bounds() {
            broken
                .push(format!("false bound of the checker: {at}, {}: {:e} > {:e} ({})", fit.mode, fit.checker_bound, o.best, o.best_from));
        }
        for fit in o.refused() {
            broken.push(format!("refused: {at}, {}: {:?} {:?}", fit.mode, fit.refused, fit.failed));
        }
        broken.extend(o.lambda_max_wrong_by().map(|gain| format!("lambda_max: {at}: rank {} beats one by {gain:e}", o.best_rank)));
    }
    let fits = outcomes.iter().map(|o| o.fits.len()).sum::<usize>();
    assert!(broken.is_empty(), "{} of {fits} fits:\n{}", broken.len(), broken.join("\n"));
}
