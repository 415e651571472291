//! What the words of a forecast mean, for somebody who meets them for the first time.

use metastate_report::Forecast;

/// The words that the tables of this forecast have.
pub fn of(f: &Forecast) -> String {
    let mut lines = vec![
        "stationary: share of a very long run that is spent there; stay: probability of being there one step later; return: mean time until it is there again, in frames",
        "share: the part of all departures that belongs to it; possible share: how small and how large the share could be in another factorisation of the same X in which only this profile differs; ambiguity: the largest distance of this profile from another one that could replace it (total variation; 0: no other one could)",
        "anchor states: those that belong to it alone; they determine the meta-state. Where there are none, `purest` is the largest membership of any state",
        "timescale: frames after which only 37 % (1/e) of the influence of the start is left, from the modulus of its eigenvalue; 90 %: its interval, after --bootstrap",
    ];
    if f.rank > 1 {
        lines.push("mean first passage time: frames on average from the one to the first arrival in the other");
    }
    if !f.rates.is_empty() {
        lines.push("flux: number of passages from the first to the second in one frame, without a return to the first on the way; rate: the flux divided by the share of time in which the chain was last in the first and not yet in the second; strongest way: the meta-states through which the largest part of the flux goes");
    }
    if !f.fates.is_empty() {
        lines.push("closed class: meta-states that are never left once entered");
    }
    if !f.check.is_empty() {
        lines.push("Chapman-Kolmogorov: n steps of the model, compared with what was counted at n lags; where they disagree, the lag is too short or the meta-states are too few");
    }
    lines.iter().fold("What the words mean".to_owned(), |text, line| format!("{text}\n  {line}"))
}
