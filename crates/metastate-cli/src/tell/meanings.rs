//! What the words of a forecast mean, for somebody who meets them for the first time.

use metastate_report::Forecast;

/// The words that the tables of this forecast have.
pub fn of(f: &Forecast) -> String {
    let mut lines = vec![
        "stationary: share of a very long run that is spent there; stay: probability of being there one step later; return: mean time until it is there again, in frames",
        "share: the part of all departures that belongs to it; possible share: how small and how large that may be in another factorisation of the same X in which only this profile differs; ambiguity: how far this profile may lie from one that could stand in its place (total variation; 0: none could)",
        "anchor states: those that belong to it alone; they are what pins a meta-state down. Where there are none, `purest` is the largest membership of any state",
        "timescale: frames after which a process has forgotten all but 37 % (1/e) of where it began, from the modulus of its eigenvalue; 90 %: its interval, after --bootstrap",
    ];
    if f.rank > 1 {
        lines.push("mean first passage time: frames on average from the one to the first arrival in the other");
    }
    if !f.rates.is_empty() {
        lines.push("flux: journeys from the first to the second in a frame, without a return on the way; rate: the same over the share of time that is spent after a visit of the first and before one of the second; strongest way: the meta-states by which the largest part of the flux goes");
    }
    if !f.fates.is_empty() {
        lines.push("closed class: meta-states that are never left once entered");
    }
    if !f.check.is_empty() {
        lines.push("Chapman-Kolmogorov: n steps of the model beside what was counted at n lags; where they disagree, the lag is too short or the meta-states are too few");
    }
    lines.iter().fold("What the words mean".to_owned(), |text, line| format!("{text}\n  {line}"))
}
