"""The prior of single weights of a regression, by the names of their terms, in the user's units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bayeszoo.data.read import Data
from bayeszoo.data.table.table import quoted
from bayeszoo.distributions.priors import Normal, prior_of
from bayeszoo.errors import InputError
from bayeszoo.families.linear.design import LinearTerms
from bayeszoo.foundation.named import Fields
from bayeszoo.model.base import Model, fields_of, require_instance
from bayeszoo.model.fields import hyperparameters


def weight_priors[M: Model](model: M, data: Data, priors: Mapping[str, object]) -> M:
    """Return a regression with the priors of some weights changed.

    Parameters
    ----------
    model : Model
        A regression whose weights have independent normal priors: `ridge`, `robust_regression`,
        `support_vector_regression`, or one with a link.
    data : Data
        The rows, which name the terms.
    priors : mapping of str to Prior or str
        ``{"w[age]": "Normal(0, 2)"}``: mean and standard deviation of the weight as printed, in units of its feature.
        Only the intercept may have a mean other than 0.

    Returns
    -------
    Model

    Raises
    ------
    InputError
        When the model has no normal priors of weights, a term does not exist, or a prior is not normal or not about 0.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> Ridge = bz.find("ridge")
    >>> data = bz.read(Ridge, {"y": [1.0, 3.0, 2.0], "age": [10.0, 20.0, 40.0]}, target="y")
    >>> model = bz.weight_priors(Ridge(scale=1), data, {"w[age]": "Normal(0, 2)"})
    >>> model.tau
    (np.float64(2.0),)
    """
    require_instance(model)
    declared, values = hyperparameters(model), fields_of(model)
    is_normal = "tau" in declared and declared["tau"].axes == ("slope",) and {"m0", "s0"} <= values.keys()
    if not (isinstance(model, LinearTerms) and model.dims.get("w") == ("term",) and is_normal):
        hint = "use --set, or take ridge, robust_regression or a regression with a link"
        raise InputError(
            f"weights of {model.name} have no normal priors of their own", "no_outer_parameters", hint=hint
        )
    return model.replaced(**_changed(model, values["s0"], data, priors))


def _changed(model: LinearTerms, s0: float, data: Data, priors: Mapping[str, object]) -> Fields:
    """Return the changed fields: those of the intercept, and the sd of each standardized term."""
    terms = [str(term) for term in model.coords(data)["term"]]
    units = model.units(model.nothing(data))
    scales = model.term_scales(len(terms), s0, "tau").tolist()
    changed: dict[str, Any] = {}
    for name, text in priors.items():
        label, prior = name.strip().removeprefix("w[").removesuffix("]"), prior_of(text)
        if name.strip() != f"w[{label}]" or label not in terms:
            hint = f"the weights are {quoted([f'w[{term}]' for term in terms])}"
            raise InputError(f"there is no weight {name}", "unknown_name", hint=hint)
        if not isinstance(prior, Normal):
            raise InputError(f"prior of {name}: weights have normal priors", "wrong_type", hint="write Normal(0, 2)")
        place = terms.index(label)
        scales[place] = prior.sd * units[place]
        if place < model.intercept:
            changed |= {"m0": prior.mean, "s0": scales[place]}
        elif prior.mean:
            hint = "subtract the mean times the feature from the outcome, or take mean 0"
            raise InputError(f"prior of {name}: the mean of a weight is 0", "out_of_range", hint=hint)
    slopes = scales[int(model.intercept) :]
    return {**changed, "tau": tuple(slopes)} if slopes else changed
