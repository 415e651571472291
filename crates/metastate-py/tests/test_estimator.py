"""The scikit-learn estimator."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import metastate as ms

EXPECTED_FAILURES = {
    "check_positive_only_tag_during_fit": "negative counts are refused with the command's sentence, not with scikit-learn's",
    "check_fit2d_1sample": "a single state is refused with the command's sentence, not with scikit-learn's",
    "check_estimators_nan_inf": "the check's bad matrices are 10 x 3; that they are not square is told before the NaN is looked for",
}


@parametrize_with_checks([ms.StateAggregation(lambda_ratio=0.5, kind="counts")], expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_nan_and_infinity_are_refused(counts):
    for bad in (np.nan, np.inf, -1.0):
        dense = counts.toarray().astype(float)
        dense[3, 4] = bad
        with pytest.raises(ValueError, match=r"row 4, column 5"):
            ms.StateAggregation(kind="counts").fit(dense)


def test_parameters_clone_and_pickle(counts):
    model = ms.StateAggregation(lambda_ratio=0.3, max_rank=8)
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "StateAggregation(lambda_ratio=0.3, max_rank=8)"
    with pytest.raises(NotFittedError):
        model.transform(counts)
    with pytest.raises(ValueError, match="Invalid parameter 'ranks'"):
        model.set_params(ranks=3)
    model.fit(counts)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(other.memberships_, model.memberships_)
        assert np.array_equal(other.predict(counts), model.predict(counts))
        assert other.score(counts) == model.score(counts)
        assert other.certificate_ == model.certificate_
    assert not hasattr(clone(model), "result_")


def test_transform_and_predict(counts, walks):
    model = ms.StateAggregation(lambda_ratio=0.3).fit(counts)
    assert np.allclose(model.memberships_.sum(axis=1), 1) and np.allclose(model.profiles_.sum(axis=0), 1)
    assert np.abs(model.transform(counts) - model.memberships_).max() < 1e-4
    assert np.array_equal(model.predict(counts), model.labels_)
    assert np.array_equal(model.fit_predict(counts), model.labels_)
    assert list(model.get_feature_names_out()) == [f"stateaggregation{k}" for k in range(model.n_metastates_)]
    # New states by their transitions to old ones; nothing known gives NaN and -1.
    new = counts.toarray()[:3].copy()
    new[1] = 0
    assert np.isnan(model.transform(new)[1]).all() and model.predict(new)[1] == -1
    assert model.predict(new)[0] == model.labels_[0]
    with pytest.raises(ValueError, match="61 features"):
        model.transform(np.ones((2, 61)))
    # Trajectories by their labels.
    by_walk = ms.StateAggregation(lambda_ratio=0.3).fit(walks)
    soft = by_walk.transform(walks)
    assert [len(s) for s in soft] == [len(w) for w in walks]
    assert np.array_equal(by_walk.predict(walks[0]), by_walk.labels_[[by_walk.states_.index(s) for s in walks[0]]])


def test_refit_is_what_transform_speaks_of(counts):
    model = ms.StateAggregation(lambda_ratio=0.3, refit="likelihood", prior=0).fit(counts)
    assert not np.array_equal(model.memberships_, model.result_.factors[0])
    assert np.abs(model.transform(counts) - model.memberships_).max() < 2e-2
    assert model.score(counts) > ms.StateAggregation(lambda_ratio=0.3).fit(counts).score(counts)


def test_states_without_weight_are_left_out(counts):
    wide = np.zeros((62, 62))
    wide[:60, :60] = counts.toarray()
    model = ms.StateAggregation(lambda_ratio=0.3).fit(wide, labels=[f"s{k}" for k in range(62)])
    assert len(model.states_) == 60 and model.n_features_in_ == 62
    assert model.result_.summary["ledger"][0]["count"] == 2
    assert np.abs(model.transform(wide)[:60] - model.memberships_).max() < 1e-4


def test_score_is_that_of_the_library(walks):
    """By hand: (1 - e) p + e m, m the arrivals of the training data with one more each."""
    model = ms.StateAggregation(lambda_ratio=0.3).fit(walks[:8])
    d = len(model.states_)
    arrivals, held_out = np.zeros(d), np.zeros((d, d))
    for walk in walks[:8]:
        np.add.at(arrivals, walk[1:], 1)
    for walk in walks[8:]:
        np.add.at(held_out, (walk[:-1], walk[1:]), 1)
    marginal = (arrivals + 1) / (arrivals.sum() + d)
    p = model.memberships_ @ model.profiles_.T
    expected = (held_out * np.log(0.999 * p + 0.001 * marginal)).sum() / held_out.sum()
    assert model.score(walks[8:]) == pytest.approx(expected, rel=1e-12)


def test_strange_states_are_told(walks, caplog):
    model = ms.StateAggregation(lambda_ratio=0.3).fit(walks)
    with caplog.at_level("WARNING", "metastate"):
        model.score([np.array([0, 1, 99, 1, 2])])
    assert "2 of 4 transitions" in caplog.text


def test_cross_validation_and_grid_search_over_lam(walks):
    scores = cross_val_score(ms.StateAggregation(lambda_ratio=0.2), walks, cv=3)
    assert scores.shape == (3,) and np.isfinite(scores).all()
    most = ms.fit(walks, lambda_ratio=0.5).summary["lambda_max"]
    search = GridSearchCV(ms.StateAggregation(), {"lam": [0.9 * most, 0.2 * most, 0.05 * most]}, cv=3).fit(walks)
    assert search.best_params_["lam"] < 0.9 * most
    assert search.best_estimator_.n_metastates_ >= 2
    # A square matrix, cut as kernels are cut.
    c = np.kron(np.eye(2), np.ones((12, 12))) * 5 + 1
    assert np.isfinite(cross_val_score(ms.StateAggregation(lambda_ratio=0.2), [list(np.arange(6) % 3)] * 6, cv=2)).all()
    assert make_pipeline(FunctionTransformer(), ms.StateAggregation(lambda_ratio=0.2)).fit_transform(c).shape[0] == 24


def test_a_rank_that_is_given_is_the_rank_of_the_answer(counts):
    model = ms.StateAggregation(rank=3).fit(counts)
    assert model.n_metastates_ == 3 and model.memberships_.shape[1] == 3
    assert ms.verify(model)
    with pytest.raises(ValueError, match="rank"):
        ms.StateAggregation(rank=3, lambda_ratio=0.5).fit(counts)
    with pytest.raises(ValueError, match="rank is 0"):
        ms.StateAggregation(rank=0).fit(counts)
