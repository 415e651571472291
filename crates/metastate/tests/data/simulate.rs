use metastate::simulate::{AliasTable, planted, planted_groups};
use metastate::{Chain, CountMode, Counts, Error, Estimate, StateIndex};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{assert_close, dense, with_threads};

#[test]
fn alias_tables_draw_in_proportion() {
    let weights = [0.0, 1.0, 5.0, 0.25, 0.0, 3.75];
    let table = AliasTable::new(&weights).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let n = 1_000_000;
    let mut seen = [0.0; 6];
    (0..n).for_each(|_| seen[table.draw(&mut rng) as usize] += 1.0);
    assert_eq!((seen[0], seen[4]), (0.0, 0.0));
    for k in [1, 2, 3, 5] {
        let p = weights[k] / 10.0;
        let sigma = (n as f64 * p * (1.0 - p)).sqrt();
        assert!((seen[k] - n as f64 * p).abs() < 5.0 * sigma, "outcome {k}: {}", seen[k]);
    }
    for bad in [&[][..], &[0.0, 0.0], &[1.0, -1.0], &[f64::NAN], &[f64::INFINITY]] {
        assert!(AliasTable::new(bad).is_none());
    }
    assert_eq!(AliasTable::new(&[2.0]).unwrap().draw(&mut rng), 0);
}

#[test]
fn planted_factors_are_distributions_and_xi_is_stationary() {
    let p = planted(200, 7, 3).unwrap();
    for i in 0..200 {
        assert!((p.u.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-14);
        assert!((p.p_row(i).iter().sum::<f64>() - 1.0).abs() < 1e-13);
    }
    (0..7).for_each(|k| assert!((p.v.column(k).iter().sum::<f64>() - 1.0).abs() < 1e-14));
    let mut moved = vec![0.0; 200];
    (0..200).for_each(|i| moved.iter_mut().zip(p.p_row(i)).for_each(|(m, x)| *m += p.xi[i] * x));
    assert_close(&moved, &p.xi, 1e-16);
    let chain = p.chain().unwrap();
    assert_eq!((chain.states(), chain.xi()), (200, &p.xi[..]));
    assert!(chain.ledger().is_empty());
    // Uniform on the simplex: an entry of a row of U has mean 1/r and second moment 2 / (r (r + 1)).
    let p = planted(20_000, 4, 8).unwrap();
    let second: f64 = p.u.as_slice().iter().map(|x| x * x).sum::<f64>() / 80_000.0;
    assert!((second - 0.1).abs() < 2e-3, "{second}");
    assert_ne!(planted(200, 7, 4).unwrap().u, planted(200, 7, 3).unwrap().u);
    assert!(matches!(planted(1, 1, 0), Err(Error::Setting { .. })));
    assert!(matches!(planted(5, 0, 0), Err(Error::Setting { .. })));
    assert!(matches!(planted(5, 6, 0), Err(Error::Setting { .. })));
}

#[test]
fn sampled_counts_are_those_of_one_trajectory() {
    let p = planted(30, 3, 5).unwrap();
    let n = 40_000;
    let counts = with_threads(|| p.sample_counts(n, 11).unwrap());
    let walk = p.sample_trajectory(n as usize, 11).unwrap();
    assert_eq!(walk.len() as u64, n + 1);
    let again =
        Counts::from_trajectories(StateIndex::numbered(30), [walk.iter().map(|&i| Some(i)).collect::<Vec<_>>()], 1, CountMode::Sliding)
            .unwrap();
    assert_eq!(counts, again);
    assert_eq!(counts.transitions(), n as f64);
    // One trajectory: what is reached is left, but for the two ends.
    let balance: f64 = counts.departures().iter().zip(counts.arrivals()).map(|(a, b)| (a - b).abs()).sum();
    assert!(balance <= 2.0);
    assert_ne!(counts, p.sample_counts(n, 12).unwrap());
    assert_eq!(p.sample_counts(0, 1).unwrap().transitions(), 0.0);
}

#[test]
fn sampled_counts_follow_the_planted_chain() {
    let (d, n) = (40, 2_000_000u64);
    let p = planted(d, 4, 6).unwrap();
    let counts = p.sample_counts(n, 2).unwrap();
    let (c, departures) = (dense(counts.csr()), counts.departures());
    let mut chi2 = 0.0;
    for i in 0..d {
        for (j, p) in p.p_row(i).into_iter().enumerate() {
            let expected = departures[i] * p;
            chi2 += (c[(i, j)] - expected).powi(2) / expected;
        }
    }
    // Given its departures a row has d - 1 degrees of freedom.
    let freedom = (d * (d - 1)) as f64;
    assert!((chi2 - freedom).abs() < 6.0 * (2.0 * freedom).sqrt(), "chi2 {chi2} for {freedom} degrees");
    let xi: Vec<f64> = departures.iter().map(|n_i| n_i / n as f64).collect();
    assert_close(&xi, &p.xi, 2e-3);
}

#[test]
fn planted_groups_lead_where_their_latent_chain_says() {
    let drawn = with_threads(|| {
        let g = planted_groups(4000, 6, 50, 9).unwrap();
        (g.counts, g.group, g.latent)
    });
    let (counts, group, latent) = drawn;
    assert_eq!((counts.states(), group.len()), (4000, 4000));
    assert!((counts.transitions() / 200_000.0 - 1.0).abs() < 0.05, "{}", counts.transitions());
    let mut flow = vec![vec![0.0; 6]; 6];
    counts.csr().triplets().for_each(|(i, j, n)| flow[group[i as usize] as usize][group[j as usize] as usize] += n);
    for g in 0..6 {
        let total: f64 = flow[g].iter().sum();
        let shares: Vec<f64> = flow[g].iter().map(|x| x / total).collect();
        assert_close(&shares, latent.row(g), 0.02);
        assert!(latent[(g, g)] >= 0.6 && latent[(g, g)] < 0.8);
        assert!((latent.row(g).iter().sum::<f64>() - 1.0).abs() < 1e-15);
    }
    let departures = counts.departures();
    let (least, most) = departures.iter().fold((f64::MAX, 0.0f64), |(a, b), &x| (a.min(x), b.max(x)));
    assert!(most > 3.0 * least, "activity must vary: {least} to {most}");
    assert!(Chain::estimate(&counts, &Estimate::default()).unwrap().states() > 3990);
    assert!(matches!(planted_groups(1, 1, 1, 0), Err(Error::Setting { .. })));
    assert!(matches!(planted_groups(10, 11, 1, 0), Err(Error::Setting { .. })));
    assert!(matches!(planted_groups(10, 2, 0, 0), Err(Error::Setting { .. })));
    assert_eq!(planted_groups(10, 1, 3, 0).unwrap().latent.as_slice(), [1.0]);
}
