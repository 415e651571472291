//! `x = reward + Q x` without subtractions, after Grassmann, Taksar and Heyman: the probability of leaving a state is added up
//! from where it may go, never taken as one minus something, so every entry of the answer is accurate however rarely the
//! chain leaves.

use crate::linalg::Mat;

/// The mean reward collected until the chain leaves through `exit`: the least non-negative solution of `x = reward + Q x`, where
/// `Q_j + exit_j` sums to one. Infinite where the chain may stay for ever and be rewarded for ever; the diagonal of Q is not read.
pub(crate) fn collected(q: &Mat, exit: &[f64], reward: &[f64]) -> Vec<f64> {
    let s = q.rows();
    // Who can get out at all, and who can get stuck where rewards go on.
    let leaves = reaches(q, exit.iter().map(|e| *e > 0.0).collect());
    let stuck: Vec<bool> = (0..s).map(|j| !leaves[j] && reward[j] > 0.0).collect();
    let endless = reaches(q, stuck);
    let live: Vec<usize> = (0..s).filter(|&j| leaves[j] && !endless[j]).collect();
    let mut x: Vec<f64> = (0..s).map(|j| if endless[j] { f64::INFINITY } else { 0.0 }).collect();
    // Being stuck without reward is one more way out.
    let lost = |j: usize| (0..s).filter(|&k| k != j && !leaves[k] && !endless[k]).map(|k| q[(j, k)]).sum::<f64>();
    let inner = Mat::from_fn(live.len(), live.len(), |a, b| q[(live[a], live[b])]);
    let exits = live.iter().map(|&j| exit[j] + lost(j)).collect();
    let rewards = live.iter().map(|&j| reward[j]).collect();
    live.iter().zip(eliminate(inner, exits, rewards)).for_each(|(&j, value)| x[j] = value);
    x
}

/// States from which `goal` can be reached, itself included.
pub(super) fn reaches(q: &Mat, goal: Vec<bool>) -> Vec<bool> {
    let s = q.rows();
    let mut found = goal;
    let mut queue: Vec<usize> = (0..s).filter(|&j| found[j]).collect();
    while let Some(k) = queue.pop() {
        for j in 0..s {
            if !found[j] && q[(j, k)] > 0.0 {
                found[j] = true;
                queue.push(j);
            }
        }
    }
    found
}

/// Censors the last state again and again; every state can get out.
fn eliminate(mut q: Mat, mut exit: Vec<f64>, mut reward: Vec<f64>) -> Vec<f64> {
    let s = q.rows();
    let mut leaving = vec![0.0; s];
    for n in (0..s).rev() {
        leaving[n] = q.row(n)[..n].iter().sum::<f64>() + exit[n];
        let last: Vec<f64> = q.row(n)[..n].to_vec();
        for i in 0..n {
            let through = q[(i, n)] / leaving[n];
            if through > 0.0 {
                q.row_mut(i)[..n].iter_mut().zip(&last).for_each(|(x, l)| *x += through * l);
                exit[i] += through * exit[n];
                reward[i] += through * reward[n];
            }
        }
    }
    let mut x = vec![0.0; s];
    for n in 0..s {
        let later: f64 = (0..n).map(|j| q[(n, j)] * x[j]).sum();
        x[n] = (reward[n] + later) / leaving[n];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_leaves_once_in_1e30_steps_keeps_all_digits() {
        // 0 <-> 1 quickly, out of 1 with 1e-30 only: x_1 = 1 + x_0/2 + x_1 (1/2 - 1e-30), x_0 = 2 + x_1.
        let q = Mat::from_vec(2, 2, vec![0.5, 0.5, 0.5, 0.5]).unwrap();
        let x = collected(&q, &[0.0, 1e-30], &[1.0, 1.0]);
        assert!((x[1] / 2e30 - 1.0).abs() < 1e-14 && (x[0] / 2e30 - 1.0).abs() < 1e-14, "{x:?}");
    }

    #[test]
    fn stuck_states_wait_for_ever_only_where_rewards_go_on() {
        // 0 -> 1 or out; 1 stays.
        let q = Mat::from_vec(2, 2, vec![0.0, 0.5, 0.0, 1.0]).unwrap();
        assert_eq!(collected(&q, &[0.5, 0.0], &[1.0, 1.0]), [f64::INFINITY, f64::INFINITY]);
        assert_eq!(collected(&q, &[0.5, 0.0], &[0.5, 0.0]), [0.5, 0.0]);
    }
}
