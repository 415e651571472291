//! What flows between zones.

use super::clusters::Partition;
use crate::linalg::{Mat, Operator, thin};

/// Moves between the zones of a partition.
///
/// ```
/// use metastate::aggregate::{Partition, ZoneFlows};
/// use metastate::{DenseOperator, Mat};
///
/// let p = DenseOperator::new(Mat::from_vec(3, 3, vec![0.5, 0.5, 0.0, 0.5, 0.25, 0.25, 0.0, 0.5, 0.5])?);
/// let zones = Partition::numbered(vec![0, 0, 1], &[0.25, 0.5, 0.25], 2);
/// let flows = ZoneFlows::new(&p, &[1.0, 2.0, 1.0], &zones); // states 0 and 1, and state 2
/// assert_eq!(flows.flows.as_slice(), [0.625, 0.125, 0.125, 0.125]);
/// assert_eq!(flows.trade(1).self_share, 0.5);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ZoneFlows {
    /// `F_ab`: transitions from zone a to zone b, as shares of all; the sum is one.
    pub flows: Mat,
}

/// How a zone trades with the others.
///
/// See the example of [`ZoneFlows`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trade {
    /// Share of all transitions that come in from other zones.
    pub inflow: f64,
    /// Share of all transitions that leave for other zones.
    pub outflow: f64,
    /// Share of the zone's departures that stay in it; zero where there are no departures.
    pub self_share: f64,
}

impl ZoneFlows {
    /// From P, whose columns are its rows, and the transitions out of each state: `F = Z^T diag(n) P Z` with Z the indicator of the zones.
    pub fn new(p: &dyn Operator, departures: &[f64], partition: &Partition) -> Self {
        let k = partition.clusters();
        let zone = |i: usize| partition.labels[i] as usize;
        let indicator = Mat::from_fn(p.cols(), k, |i, j| f64::from(u8::from(zone(i) == j)));
        let mut arriving = Mat::default();
        p.apply(&indicator, &mut arriving);
        let mut flows = Mat::zeros(k, k);
        for (i, n) in departures.iter().enumerate() {
            flows.row_mut(zone(i)).iter_mut().zip(arriving.row(i)).for_each(|(f, a)| *f += n * a);
        }
        let total: f64 = thin::column_sums(&flows).iter().sum();
        if total > 0.0 {
            flows.as_mut_slice().iter_mut().for_each(|f| *f /= total);
        }
        ZoneFlows { flows }
    }

    /// In, out and within.
    #[must_use]
    pub fn trade(&self, zone: usize) -> Trade {
        let k = self.flows.rows();
        let own = self.flows[(zone, zone)];
        let others = || (0..k).filter(|&a| a != zone);
        let outflow: f64 = others().map(|b| self.flows[(zone, b)]).sum();
        let inflow: f64 = others().map(|a| self.flows[(a, zone)]).sum();
        Trade { inflow, outflow, self_share: if own + outflow > 0.0 { own / (own + outflow) } else { 0.0 } }
    }

    /// The other zones that receive most from this one, with their share of its departures.
    #[must_use]
    pub fn destinations(&self, zone: usize) -> Vec<(usize, f64)> {
        let out: f64 = self.flows.row(zone).iter().sum();
        let mut list: Vec<(usize, f64)> = (0..self.flows.rows())
            .filter(|&b| b != zone && self.flows[(zone, b)] > 0.0)
            .map(|b| (b, self.flows[(zone, b)] / out))
            .collect();
        list.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::DenseOperator;

    #[test]
    fn flows_add_up() {
        let p = Mat::from_vec(3, 3, vec![0.5, 0.25, 0.25, 0.0, 1.0, 0.0, 0.5, 0.0, 0.5]).unwrap();
        let partition = Partition::ordered_by_mass(&[0, 0, 1], &[2.0, 1.0, 1.0], 2);
        let flows = ZoneFlows::new(&DenseOperator::new(p), &[4.0, 2.0, 2.0], &partition);
        assert_eq!(flows.flows.as_slice(), [5.0 / 8.0, 1.0 / 8.0, 1.0 / 8.0, 1.0 / 8.0]);
        assert_eq!(flows.trade(0), Trade { inflow: 0.125, outflow: 0.125, self_share: 5.0 / 6.0 });
        assert_eq!(flows.destinations(1), [(0, 0.5)]);
    }
}
