"""References in posteriordb's layout: the files hold the known numbers, and posteriordb's package reads them."""

import hashlib
import json
import zipfile

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.tools.references import posteriors as kept
from tests.refusals import raises

NAMES = ("placenta_previa-beta_bernoulli", "galaxies_8-gaussian_mixture")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("references") / "database"
    assert bz.export_references(path, NAMES) == [*NAMES]
    return path


def draws_of(folder, name):
    with zipfile.ZipFile(folder / "reference_posteriors/draws/draws" / f"{name}.json.zip") as archive:
        chains = json.loads(archive.read(f"{name}.json"))
    return {entry: np.array([chain[entry] for chain in chains]) for entry in chains[0]}


def test_draws_evidence_and_moments_agree_with_scipy_s_beta_distribution(folder):
    import scipy

    known = json.loads((folder / "reference_posteriors/exact" / f"{NAMES[0]}.json").read_text())
    posterior, draws = scipy.stats.beta(438, 544), draws_of(folder, NAMES[0])["theta"]
    assert draws.shape == (10, 1000)
    assert abs(draws.mean() - posterior.mean()) < 5 * posterior.std() / 100
    np.testing.assert_allclose(known["summary"]["theta"]["mean"], posterior.mean(), rtol=1e-12)
    np.testing.assert_allclose(known["log_evidence"], scipy.special.betaln(438, 544), rtol=1e-12)


def test_components_have_labels_at_random(folder):
    means = np.stack([draws_of(folder, NAMES[1])[f"means[{k},1]"] for k in (1, 2)], axis=-1)
    assert 0.45 < np.mean(means[..., 0] < means[..., 1]) < 0.55  # 10 sd of a fair coin


def test_posteriordb_s_checks_pass_and_digests_are_of_the_files(folder):
    for name in NAMES:
        info = json.loads((folder / "reference_posteriors/draws/info" / f"{name}.info.json").read_text())
        assert set(info["checks_made"].values()) == {True, None}
    digests = json.loads((folder / "digests.json").read_text())
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert digests.keys() == files - {"digests.json"}
    assert all(hashlib.sha256((folder / path).read_bytes()).hexdigest() == own for path, own in digests.items())


def test_the_package_of_posteriordb_reads_the_folder(folder):
    database = pytest.importorskip("posteriordb").PosteriorDatabase(str(folder))
    assert sorted(database.posterior_names()) == sorted(NAMES)
    for posterior in database.posteriors():
        assert len(posterior.reference_draws()) == 10
        assert "pm.Model" in posterior.model.code("pymc")
        assert posterior.data.values()


def test_names_and_folders_that_cannot_be_are_refused(folder):
    with raises(bz.InputError, "unknown_name", "nothing"):
        next(bz.references(["nothing"]))
    with raises(bz.InputError, "file_exists"):
        bz.export_references(folder, NAMES)


def test_there_are_enough_candidates():
    known = dict(kept._known())
    assert len(known) >= 55
    assert sum(few > 0 for _, _, few in known.values()) >= 20


@pytest.mark.slow  # every reference is computed
def test_at_least_fifty_references_pass_their_checks():
    every = list(bz.references())
    assert len(every) >= 50
    assert sum("multimodal" in reference.keywords for reference in every) >= 16
    for reference in every:
        assert False not in reference.checks().values(), reference.name
        for name, row in reference.summary.items():
            draws, mean, sd = (
                np.asarray(v) for v in (reference.draws[name], row.get("mean", 0), row.get("sd", np.inf))
            )
            z = np.abs(draws.mean(axis=(0, 1)) - mean) / np.where(sd > 0, sd, np.inf) * 100
            assert (np.nan_to_num(z) < 5).all(), (reference.name, name)  # NaN where a posterior has no mean
