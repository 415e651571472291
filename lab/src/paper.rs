//! What the paper prints in section 6, digit for digit.

/// A row of the tables of 6.1 (exact matrices, r = 5, s0 = 300, epsilon = 5e-5).
#[derive(Debug, Clone, Copy)]
pub struct Exact {
    pub d: usize,
    pub lambda: f64,
    pub rank: usize,
    pub objective: f64,
    pub rel_re: f64,
    pub seconds: f64,
    pub errors: [f64; 4],
}

const fn exact(d: usize, lambda: f64, rank: usize, objective: f64, rel_re: f64, seconds: f64, errors: [f64; 4]) -> Exact {
    Exact { d, lambda, rank, objective, rel_re, seconds, errors }
}

/// Errors: relLE1, relLE2, GE, relDG.
pub const EXACT: [Exact; 12] = [
    exact(1000, 1e-6, 1, 1.14e-6, 1.31e-1, 13.8, [0.0, 6.7e-16, -1.0e-15, 2.8e-15]),
    exact(1000, 1e-7, 5, 1.60e-7, 2.15e-2, 38.2, [2.7e-3, 5.6e-3, 1.6e-3, 5.8e-4]),
    exact(1000, 1e-8, 5, 1.80e-8, 3.91e-4, 77.2, [2.3e-3, 2.4e-3, 1.7e-3, 2.6e-3]),
    exact(1000, 1e-9, 5, 1.84e-9, 6.76e-6, 99.4, [5.8e-2, 3.5e-2, 3.9e-2, 4.5e-2]),
    exact(2000, 1e-6, 1, 1.04e-6, 1.86e-1, 36.8, [2.0e-18, 7.6e-16, -1.0e-15, 2.4e-15]),
    exact(2000, 1e-7, 1, 1.27e-7, 1.08e-1, 37.7, [7.4e-18, 3.5e-6, 2.8e-11, 7.5e-9]),
    exact(2000, 1e-8, 5, 1.70e-8, 4.65e-3, 78.7, [1.4e-3, 2.3e-3, 1.8e-3, 2.7e-3]),
    exact(2000, 1e-9, 5, 1.80e-9, 7.35e-5, 140.7, [1.7e-2, 2.8e-2, 3.8e-2, 4.7e-2]),
    exact(5000, 1e-6, 1, 1.01e-6, 2.33e-1, 75.0, [0.0, 5.0e-14, -5.0e-14, 1.6e-14]),
    exact(5000, 1e-7, 1, 1.06e-7, 1.67e-1, 90.1, [3.0e-18, 3.4e-14, -5.9e-14, 1.1e-14]),
    exact(5000, 1e-8, 5, 1.39e-8, 8.61e-2, 121.8, [3.7e-4, 1.0e-3, 1.5e-3, 1.2e-3]),
    exact(5000, 1e-9, 5, 1.75e-9, 2.11e-3, 181.6, [1.3e-2, 2.0e-2, 1.3e-2, 5.3e-3]),
];

/// Singular values that the captions of 6.1 give: d, sigma_1, sigma_r.
pub const EXACT_SPECTRUM: [(usize, f64, f64); 3] = [(1000, 1.20e-3, 1.93e-4), (2000, 5.97e-4, 9.81e-5), (5000, 2.38e-4, 3.89e-5)];

/// One threshold of one column of the tables of 6.2.
#[derive(Debug, Clone, Copy)]
pub struct AtThreshold {
    pub rank: usize,
    pub objective: f64,
    pub rel_re: f64,
    pub seconds: f64,
    pub errors: [f64; 4],
}

/// One column of the tables of 6.2: `(d, r, n/d^2)`, lambda*, both thresholds, relSE, sigma_1, sigma_r, sigma_(r+1).
#[derive(Debug, Clone, Copy)]
pub struct Sampled {
    pub d: usize,
    pub r: usize,
    pub ratio: u64,
    pub lambda: f64,
    pub at: [AtThreshold; 2],
    pub rel_se: f64,
    pub sigma: [f64; 3],
}

/// The two thresholds.
pub const EPSILON: [f64; 2] = [1.5e-4, 5e-5];

const fn at(rank: usize, objective: f64, rel_re: f64, seconds: f64, errors: [f64; 4]) -> AtThreshold {
    AtThreshold { rank, objective, rel_re, seconds, errors }
}

const fn column(key: (usize, usize, u64), lambda: f64, coarse: AtThreshold, fine: AtThreshold, rel_se: f64, sigma: [f64; 3]) -> Sampled {
    Sampled { d: key.0, r: key.1, ratio: key.2, lambda, at: [coarse, fine], rel_se, sigma }
}

/// `r/d = 0.01, n/d^2 = 10`; the paper prints 13 as the rank for d = 1200, where r = 12.
pub const TABLE_D: [Sampled; 6] = [
    column(
        (500, 5, 10),
        1.6e-7,
        at(5, 4.70e-7, 5.70e-3, 19.5, [1.6e-3, 2.3e-3, 1.3e-1, 7.1e-2]),
        at(13, 4.70e-7, 5.96e-3, 19.5, [1.8e-3, 1.4e-3, 4.9e-2, 2.7e-2]),
        6.30e-2,
        [2.38e-3, 3.72e-4, 6.39e-5],
    ),
    column(
        (700, 7, 10),
        6.2e-8,
        at(7, 2.10e-7, 5.85e-3, 28.9, [2.1e-4, 5.6e-4, 1.6e-1, 7.9e-2]),
        at(18, 2.09e-7, 5.83e-3, 79.2, [8.2e-4, 1.4e-3, 5.6e-2, 2.8e-2]),
        7.03e-2,
        [1.63e-3, 1.85e-4, 3.81e-5],
    ),
    column(
        (1000, 10, 10),
        2.4e-8,
        at(10, 9.16e-8, 5.45e-3, 49.4, [1.7e-3, 4.5e-3, 2.0e-1, 8.7e-2]),
        at(22, 9.15e-8, 5.61e-3, 58.5, [5.6e-3, 6.9e-3, 8.8e-2, 3.9e-2]),
        7.73e-2,
        [1.10e-3, 8.61e-5, 2.16e-5],
    ),
    column(
        (1200, 12, 10),
        1.5e-8,
        at(13, 6.09e-8, 5.43e-3, 90.0, [5.7e-4, 1.0e-3, 2.0e-1, 8.5e-2]),
        at(27, 6.09e-8, 5.77e-3, 153.0, [3.2e-3, 9.5e-3, 5.2e-2, 2.2e-2]),
        7.98e-2,
        [9.05e-4, 6.18e-5, 1.63e-5],
    ),
    column(
        (1500, 15, 10),
        7.5e-9,
        at(15, 3.53e-8, 4.51e-3, 256.5, [2.6e-3, 5.1e-3, 2.1e-1, 8.0e-2]),
        at(33, 3.55e-8, 5.21e-3, 183.8, [2.1e-3, 7.0e-3, 9.9e-2, 3.8e-2]),
        8.38e-2,
        [7.10e-4, 4.03e-5, 1.15e-5],
    ),
    column(
        (2000, 20, 10),
        3.5e-9,
        at(20, 1.86e-8, 4.31e-3, 257.0, [8.8e-4, 3.4e-3, 2.6e-1, 9.5e-2]),
        at(42, 1.86e-8, 4.38e-3, 370.0, [2.9e-3, 1.3e-2, 1.6e-1, 5.8e-2]),
        8.76e-2,
        [5.24e-4, 2.23e-5, 7.36e-6],
    ),
];

/// `d = 1000, n/d^2 = 10`.
pub const TABLE_R: [Sampled; 4] = [
    column(
        (1000, 5, 10),
        3.2e-8,
        at(5, 1.04e-7, 3.77e-3, 63.3, [5.0e-3, 8.6e-3, 1.9e-1, 9.3e-2]),
        at(14, 1.04e-7, 3.86e-3, 68.3, [1.8e-3, 1.6e-3, 7.6e-2, 3.8e-2]),
        6.31e-2,
        [1.20e-3, 1.73e-4, 2.33e-5],
    ),
    column(
        (1000, 7, 10),
        2.8e-8,
        at(8, 9.83e-8, 4.62e-3, 85.8, [1.2e-3, 2.3e-3, 1.2e-1, 5.6e-2]),
        at(19, 9.82e-8, 4.74e-3, 77.1, [4.8e-3, 2.2e-3, 5.5e-2, 2.6e-2]),
        6.99e-2,
        [1.14e-3, 1.28e-4, 2.27e-5],
    ),
    TABLE_D[2],
    column(
        (1000, 15, 10),
        2.1e-8,
        at(16, 8.42e-8, 6.20e-3, 65.4, [2.3e-4, 1.1e-3, 1.5e-1, 6.3e-2]),
        at(39, 8.58e-8, 6.67e-3, 136.4, [5.6e-4, 1.7e-3, 3.3e-2, 1.4e-2]),
        8.36e-2,
        [1.06e-3, 5.74e-5, 2.09e-5],
    ),
];

/// `d = 1000, r = 5`.
pub const TABLE_N: [Sampled; 6] = [
    column(
        (1000, 5, 5),
        4.1e-8,
        at(6, 1.67e-7, 5.77e-3, 87.3, [4.0e-3, 5.3e-3, 2.3e-1, 9.3e-2]),
        at(17, 1.69e-7, 6.40e-3, 108.8, [2.0e-3, 1.4e-3, 8.8e-2, 3.7e-2]),
        1.26e-1,
        [1.20e-3, 1.74e-4, 3.29e-5],
    ),
    TABLE_R[0],
    column(
        (1000, 5, 20),
        2.4e-8,
        at(5, 6.67e-8, 2.33e-3, 32.5, [1.6e-3, 2.8e-3, 1.4e-1, 8.3e-2]),
        at(14, 6.67e-8, 2.34e-3, 38.4, [1.9e-3, 2.4e-3, 3.9e-2, 2.4e-2]),
        3.15e-2,
        [1.20e-3, 1.87e-4, 1.70e-5],
    ),
    column(
        (1000, 5, 50),
        1.7e-8,
        at(5, 3.97e-8, 1.18e-3, 42.0, [2.4e-3, 3.9e-3, 6.5e-2, 4.6e-2]),
        at(17, 3.97e-8, 1.20e-3, 47.9, [2.5e-3, 3.7e-3, 1.2e-2, 8.4e-3]),
        1.27e-2,
        [1.20e-3, 1.72e-4, 1.04e-5],
    ),
    column(
        (1000, 5, 100),
        1.2e-8,
        at(5, 2.61e-8, 6.37e-4, 42.7, [3.2e-3, 4.8e-3, 7.0e-2, 5.2e-2]),
        at(18, 2.62e-8, 6.83e-4, 28.6, [3.8e-3, 2.6e-3, 1.5e-2, 1.2e-2]),
        6.37e-3,
        [1.20e-3, 1.71e-4, 7.33e-6],
    ),
    column(
        (1000, 5, 200),
        9.0e-9,
        at(5, 1.85e-8, 3.91e-4, 43.0, [7.4e-3, 1.2e-2, 2.7e-2, 2.1e-2]),
        at(12, 1.85e-8, 3.94e-4, 45.8, [2.0e-2, 5.5e-3, 3.7e-2, 2.0e-2]),
        3.23e-3,
        [1.20e-3, 1.72e-4, 5.25e-6],
    ),
];

/// A line of the regression tables: what is fixed, constant, slope, squared correlation.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    pub fixed: (f64, f64),
    pub constant: f64,
    pub slope: f64,
    pub r2: f64,
}

const fn line(fixed: (f64, f64), constant: f64, slope: f64, r2: f64) -> Line {
    Line { fixed, constant, slope, r2 }
}

/// `ln relRE* = A_1 + B_1 ln d`, fixed `(r/d, n/d^2)`.
pub const LINES_D: [Line; 3] =
    [line((0.01, 5.0), -3.115, -0.228, 0.997), line((0.01, 10.0), -4.030, -0.186, 0.998), line((0.01, 20.0), -4.536, -0.201, 0.996)];
/// `ln relRE* = A_2 + B_2 ln (r/d)`, fixed `(d, n/d^2)`.
pub const LINES_R: [Line; 3] =
    [line((700.0, 5.0), -0.962, 0.525, 0.9994), line((1000.0, 5.0), -1.026, 0.507, 0.9990), line((1500.0, 5.0), -1.122, 0.477, 0.9998)];
/// `ln relRE* = A_3 + B_3 ln (n/d^2)`, fixed `(d, r/d)`.
pub const LINES_N: [Line; 3] = [
    line((1000.0, 0.005), -1.372, -0.930, 0.99987),
    line((1000.0, 0.010), -1.539, -0.916, 0.99990),
    line((1000.0, 0.015), -1.231, -0.910, 0.99950),
];
