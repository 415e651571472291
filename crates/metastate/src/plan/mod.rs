//! Controlled chains: what to do in each state, learnt from a log of what was tried.
//!
//! A record of the log says: in this state this action was taken, this was paid, and this was the next state. With rows = (state, action) and columns = next state the log is a
//! rectangular chain ([`Tried::sides`]), and the recipe gives `P_a = U_a V^T` with one V for all actions. Bellman's equation then closes on s numbers, the worths of the meta-states:
//!
//! `w = V^T max_a [ r(s, a) + gamma U_a(s) . w ]`,
//!
//! a contraction by `gamma`, so that the policy on all states and its values come from s numbers ([`Decisions::solve`]).
//!
//! | file | one purpose |
//! |---|---|
//! | `log` | records, the pairs of state and action that were tried, what was counted and paid there |
//! | `rewards` | rewards on the meta-states with standard errors; pairs with few records are drawn towards them |
//! | `decide` | the fixed point, the policy, the latent chain of each action |
//! | `untried` | pairs that were never tried: left out, or guessed from their neighbours where that is asked for |
//! | `bound` | how much a policy can lose at most where next states fall as often as they were counted |
//! | `check` | what the policy earns on held-out records: doubly robust, with an interval |

mod bound;
mod check;
mod decide;
mod log;
mod rewards;
mod untried;

pub use bound::{LossBound, loss_bound};
pub use check::{CheckSettings, Checked, Unit, check};
pub use decide::{Decisions, Plan, latent_of_actions};
pub use log::{BETWEEN, Log, Paid, Pairs, Records, Tried};
pub use rewards::{Rewards, rewards};
pub use untried::{Extended, with_untried};
