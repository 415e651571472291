//! This method and its rivals on the same held-out transitions.
//!
//! Whatever is compared is fitted on all folds but one and scored on that one, each fold in turn. This package's own rows come from the recipe, [`fit`], run on the training part with
//! what was given and choosing the rest there: what is scored is what users get. The folds are those on which `fit` itself chooses.
//!
//! A model may call a transition impossible that then happens, so every model is smoothed before its likelihood is taken; and every one gets the smoothing that serves it best. On fold f that
//! is the one with the best mean score on the *other* folds, so that no transition has a part in the choice of what it is scored with.

mod blend;
mod slices;

pub use blend::Blend;
pub use slices::{SliceMethod, SliceScore, score_slices, zones_of_each};

use crate::aggregate::Partition;
use crate::aggregate::rivals::{self, Fitted, FittedModel, Rival, RivalSettings, Training};
use crate::chain::WeightPower;
use crate::counts::Folds;
use crate::error::{Error, Result};
use crate::fit::{Data, FitObserver, FitOptions, Model, Rank, Refit, RefitKind, fit};
use crate::linalg::Csr;
use crate::solve::Factors;
use crate::solve::score::{self, Score, Smoothing, score_at};
use crate::solve::select::HeldOut;

/// Who takes part.
///
/// The example of [`Arena`] judges two.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Contender {
    /// The proven solution of the penalised problem.
    Penalised,
    /// The same, refitted by least squares.
    LeastSquaresRefit,
    /// The same, refitted by likelihood with a prior: what `fit` shows unless told otherwise.
    LikelihoodRefit,
    /// Between the counts and this method: each row of counts shrunk towards its row of `U V^T` of the refit by likelihood.
    Blend,
    /// Another method.
    Rival(Rival),
    /// Known groups of the states: all states of a group have the same transition probabilities, estimated from their training counts together.
    Groups(Partition),
    /// The recipe with other options and weights.
    Recipe {
        /// What is asked of it, but for the seed.
        options: Box<FitOptions>,
        /// The power of the weights in its objective.
        weight_power: WeightPower,
    },
    /// A model from elsewhere that was not fitted to these transitions; it is scored unchanged.
    Fixed(Box<Factors>),
}

impl Contender {
    /// Those that need nothing from elsewhere, ours first.
    pub fn all() -> Vec<Contender> {
        let ours = [Contender::Penalised, Contender::LeastSquaresRefit, Contender::LikelihoodRefit, Contender::Blend];
        ours.into_iter().chain(Rival::ALL.map(Contender::Rival)).collect()
    }

    /// A short name for tables and options; what comes from elsewhere has none.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Contender::Penalised => "penalised",
            Contender::LeastSquaresRefit => "refit-least-squares",
            Contender::LikelihoodRefit => "refit-likelihood",
            Contender::Blend => "blend",
            Contender::Rival(rival) => rival.name(),
            Contender::Groups(_) => "groups",
            Contender::Recipe { .. } | Contender::Fixed(_) => "result",
        }
    }

    /// Whether it is this package's own. The blend is neither: it is half the counts.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        matches!(self, Contender::Penalised | Contender::LeastSquaresRefit | Contender::LikelihoodRefit)
    }
}

/// What a contender is fitted on.
///
/// [`Arena::fit`] and [`Arena::ours`] take one; see the example of [`Arena`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All transitions.
    Whole,
    /// All but those of this fold.
    Without(usize),
}

/// How a contender did.
///
/// See the example of [`Arena`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Judged {
    /// Its scores on the folds that hold transitions.
    pub held_out: HeldOut,
    /// The smoothing that serves it best on all folds together: the share of the marginal law, or the number of pseudo-counts a state for the counts and the blend.
    pub smoothing: f64,
}

/// Shares of the marginal law that a model may be mixed with.
const SHARES: [f64; 10] = [1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9];

/// Data, folds and rank that all contenders share.
///
/// ```
/// use metastate::compare::{Arena, Contender};
/// use metastate::{Counts, Data, Estimate, FitOptions, Silent, StateIndex};
///
/// let clicks = [(0, 1), (1, 0), (2, 3), (3, 2)].repeat(40).into_iter().chain([(1, 2), (2, 1)]);
/// let counts = Counts::from_pairs(StateIndex::numbered(4), clicks)?;
/// let data = Data::from_counts(&counts, &Estimate::default())?;
/// let mut arena = Arena::new(&data, 5, Some(2), &FitOptions::default(), 0, &mut Silent)?;
/// let ours = arena.judge(&Contender::LikelihoodRefit, None, &mut Silent)?;
/// let one_law = arena.judge(&Contender::all()[11], None, &mut Silent)?;
/// assert!(ours.held_out.log_likelihood() > one_law.held_out.log_likelihood());
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug)]
pub struct Arena<'a> {
    data: &'a Data,
    folds: Folds,
    /// All but one fold each, the whole last.
    training: Vec<(Data, Training)>,
    /// Our fits to them, as far as they were needed.
    ours: Vec<Option<Model>>,
    options: FitOptions,
    rank: usize,
    seed: u64,
}

impl<'a> Arena<'a> {
    /// `folds` parts of the data, dealt with this seed. `options` are those of the recipe but for rank, folds and seed; where no rank is given, the recipe chooses it on all data, and every contender
    /// gets that one.
    pub fn new(
        data: &'a Data,
        folds: usize,
        rank: Option<usize>,
        options: &FitOptions,
        seed: u64,
        observer: &mut dyn FitObserver,
    ) -> Result<Self> {
        let parts = data.parts().ok_or(Error::Empty { what: "the list of transitions" })?;
        let folds = parts.folds(folds, seed)?;
        let without = |f: usize| -> Result<(Data, Training)> {
            let data = data.without(&folds, f)?;
            let training = Training::new(data.chain())?;
            Ok((data, training))
        };
        let mut training = (0..folds.len()).map(without).collect::<Result<Vec<_>>>()?;
        training.push((data.clone(), Training::new(data.chain())?));
        let mut ours: Vec<Option<Model>> = (0..training.len()).map(|_| None).collect();
        let options = options.clone().seed(seed);
        let rank = match rank {
            Some(rank) => rank,
            None => {
                let model = fit(data, &options, observer)?;
                let rank = model.rank();
                *ours.last_mut().ok_or(Error::Empty { what: "the list of folds" })? = Some(model);
                rank
            }
        };
        Ok(Arena { data, options: at_rank(options, rank)?, folds, training, ours, rank, seed })
    }

    /// The rank that every contender gets.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The folds.
    #[must_use]
    pub fn folds(&self) -> &Folds {
        &self.folds
    }

    /// The place of a part in the lists.
    fn place(&self, part: Part) -> usize {
        match part {
            Part::Whole => self.folds.len(),
            Part::Without(f) => f,
        }
    }

    /// The recipe on a part. A part has a seed of its own: with that of the folds, the folds inside it would be dealt by the same random numbers.
    fn recipe(&self, options: &FitOptions, power: WeightPower, part: Part, observer: &mut dyn FitObserver) -> Result<Model> {
        let seed = match part {
            Part::Whole => self.seed,
            Part::Without(f) => self.seed.wrapping_add(1 + f as u64),
        };
        let data = self.training[self.place(part)].0.clone().with_weight_power(power);
        fit(&data, &options.clone().seed(seed), observer)
    }

    /// Our own fit to a part, made once.
    pub fn ours(&mut self, part: Part, observer: &mut dyn FitObserver) -> Result<&Model> {
        let place = self.place(part);
        let made = match self.ours[place].take() {
            Some(made) => made,
            None => self.recipe(&self.options, self.data.chain().weight_power(), part, observer)?,
        };
        Ok(self.ours[place].insert(made))
    }

    /// Fits a contender to a part.
    pub fn fit(&mut self, contender: &Contender, part: Part, observer: &mut dyn FitObserver) -> Result<Fitted> {
        let place = self.place(part);
        let alone = |model: FittedModel| Fitted { model, own_partition: None };
        Ok(match contender {
            Contender::Rival(rival) => rivals::fit(*rival, &self.training[place].1, &RivalSettings { rank: self.rank, seed: self.seed })?,
            Contender::Groups(partition) => rivals::lump(&self.training[place].1, partition.clone())?,
            Contender::Fixed(factors) => alone(FittedModel::Factors((**factors).clone())),
            Contender::Recipe { options, weight_power } => shown(&self.recipe(options, *weight_power, part, observer)?),
            Contender::LikelihoodRefit => shown(self.ours(part, observer)?),
            Contender::Blend => alone(FittedModel::Blend(self.ours(part, observer)?.factors().clone())),
            Contender::Penalised => alone(FittedModel::Factors(self.ours(part, observer)?.solution.factors.clone())),
            Contender::LeastSquaresRefit => {
                self.ours(part, observer)?;
                let (model, options) = (self.ours[place].as_ref(), &self.options);
                let refit = model.map(|m| m.refitted(&self.training[place].0, options, RefitKind::LeastSquares, observer)).transpose()?;
                let refit = refit.flatten().ok_or(Error::Empty { what: "the refit" })?;
                alone(FittedModel::Factors(Refit::factors(&refit).clone()))
            }
        })
    }

    /// Fits a contender to every training part and scores it on what was held out: with this smoothing, or with the one that serves it best.
    pub fn judge(&mut self, contender: &Contender, smoothing: Option<Smoothing>, observer: &mut dyn FitObserver) -> Result<Judged> {
        let mut scores = Vec::new();
        for f in 0..self.folds.len() {
            if self.folds.held_out(f).nonzeros() > 0 {
                let fitted = self.fit(contender, Part::Without(f), observer)?;
                let counts = self.training[f].1.observed().counts();
                scores.push(at_strengths(&fitted.model, counts, &self.folds.held_out(f), smoothing)?);
            }
        }
        Judged::of(&scores)
    }

    /// The data of which the folds are.
    #[must_use]
    pub fn data(&self) -> &Data {
        self.data
    }
}

/// The options at a rank: that rank, or no more than it where lambda is given.
fn at_rank(options: FitOptions, rank: usize) -> Result<FitOptions> {
    let most = options.solver_settings().max_rank.max(rank);
    match options.chooses() {
        true => options.max_rank(most)?.rank(Rank::Given(rank)),
        false => options.max_rank(rank),
    }
}

/// What a model shows, with its zones.
fn shown(model: &Model) -> Fitted {
    Fitted { model: FittedModel::Factors(model.factors().clone()), own_partition: Some(model.zones.clone()) }
}

/// The scores with each smoothing that the model may have.
fn at_strengths<'m>(model: &'m FittedModel, training: &Csr, held_out: &Csr, given: Option<Smoothing>) -> Result<Vec<(f64, Score)>> {
    let mixed = |model: score::Model| -> Result<Vec<(f64, Score)>> {
        let shares: Vec<Smoothing> = given.map_or_else(|| SHARES.map(|share| Smoothing { share }).to_vec(), |one| vec![one]);
        let scores = score_at(model, training, held_out, &shares)?;
        Ok(shares.iter().map(|s| s.share).zip(scores).collect())
    };
    let shrunk = |model: &dyn Fn(f64) -> score::Model<'m>| -> Result<Vec<(f64, Score)>> {
        let one = |pseudo: f64| Ok((pseudo, score_at(model(pseudo), training, held_out, &[given.unwrap_or_default()])?[0]));
        score::pseudo_counts().map(one).collect()
    };
    match model {
        FittedModel::Factors(x) => mixed(score::Model::LowRank(x)),
        FittedModel::Clipped(x) => mixed(score::Model::Rows(x)),
        FittedModel::RankOne => mixed(score::Model::Independent),
        FittedModel::Blend(factors) => shrunk(&|pseudo| score::Model::Blend { factors, pseudo }),
        FittedModel::Empirical => shrunk(&|pseudo| score::Model::Empirical { pseudo }),
    }
}

/// The number of the smoothing with the best sum of log-likelihoods over all folds but one; of several with the same sum the first, and none where no fold is left.
fn best_strength(scores: &[Vec<(f64, Score)>], but: Option<usize>) -> Option<usize> {
    let others: Vec<&Vec<(f64, Score)>> = scores.iter().enumerate().filter(|(f, _)| Some(*f) != but).map(|(_, s)| s).collect();
    let sum = |k: usize| others.iter().map(|s| s[k].1.log_likelihood).sum::<f64>();
    let number = others.first()?.len();
    (0..number).reduce(|a, b| if sum(b) > sum(a) { b } else { a })
}
