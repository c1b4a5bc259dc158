"""The answer of each family: effects of features, components of rows, states over time, topics, factors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo.answers.checks.leave_out import MAX_DISTINCT
from bayeszoo.answers.classes.classify import MOST_CELLS, classifier, classify
from bayeszoo.answers.classes.scores import confusion
from bayeszoo.answers.effects import seen_rows
from bayeszoo.answers.group_estimates import group_estimates
from bayeszoo.answers.information import has_information, mutual_information
from bayeszoo.answers.judged import FAR
from bayeszoo.answers.latent.assign import assign
from bayeszoo.answers.latent.topics import topics as words_of
from bayeszoo.data.inputs.features.levels import products
from bayeszoo.errors import InputError, Untrustworthy
from bayeszoo.families.lasso.path import lasso_path
from bayeszoo.model.capabilities.linear_predictor import has_slopes
from bayeszoo.model.views import FIRST_SCREENS, View
from bayeszoo.plots.clusters import plot_clusters
from bayeszoo.plots.drawable import with_draws, withheld
from bayeszoo.plots.families.classes import plot_classes
from bayeszoo.plots.families.discriminants import can_be_drawn, plot_discriminants
from bayeszoo.plots.families.effects import (
    MOST_EFFECTS,
    MOST_SLOPES,
    explained,
    plot_effects,
    plot_slopes,
    slopes,
)
from bayeszoo.plots.families.factors import plot_ard, plot_biplot, plot_scree
from bayeszoo.plots.families.information import plot_information
from bayeszoo.plots.families.lasso_path import plot_lasso_path
from bayeszoo.plots.families.latent import plot_states, plot_topics
from bayeszoo.plots.families.pooling import plot_pooling
from bayeszoo.plots.style import COLOURS, panels, short
from bayeszoo.report.blocks import Block, Folded, Section, Skipped, Words, picture, skipping, table
from bayeszoo.report.densities import hero
from bayeszoo.report.families.classes import ABOUT_PLUGGED_IN, MOST_CLASSES, about_rows, confusion_rows, score_rows
from bayeszoo.report.families.function import about_function, function, nodes
from bayeszoo.report.families.judged import about_judged
from bayeszoo.report.families.levels import levels, next_of_lags, next_rows
from bayeszoo.report.families.pooling import ABOUT_RANKS, about_estimates, highest_first, pooling_rows, rank_rows
from bayeszoo.report.families.profile import profiles
from bayeszoo.report.text.numbers import number, with_error
from bayeszoo.report.text.tables import topic_rows
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import best, best_of_components, document

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_ROWS_SHOWN = 12
_OF_ONE = "Scores of one trial"
_PLANE = "Rows along the axes on which the class means differ most, in standard deviations within classes. Ellipses "
_PLANE += "hold 95% of a class; boundaries between decisions are drawn at the posterior means (bold) and at 50 draws."


class Answer(NamedTuple):
    """The answer of a fit: next to (``beside``) and ``under`` the verdicts, and wide parts ``below``."""

    beside: Sequence[Any] = ()
    below: Sequence[Any] = ()
    under: Sequence[Any] = ()


def answer(fits: Sequence[Fit], left_out: list[Skipped]) -> Answer:
    """Return the answer of the model; without one, or if it is withheld, the densities of its parameters."""
    answers: list[Answer] = []
    with skipping("the answer of the first screen", left_out):
        views = best_of_components(fits).model.views()
        answers += [_SCREENS[view](fits) for view in [view for view in FIRST_SCREENS if view in views][:1]]
    return answers[0] if answers else Answer([hero(fits)] if with_draws(fits) else ())


def sections(fits: Sequence[Fit]) -> Iterator[tuple[str, Callable[[], Section]]]:
    """Yield the name of each section that the model can have, and a function that makes it."""
    fit = best(fits)
    views = fit.model.views()
    if View.PATH in views:
        yield "path of the coefficients", partial(path, fit)
    if View.CLASSES in views and not withheld(fit):
        yield "classes", partial(classes, fit)


def regression(fits: Sequence[Fit]) -> Answer:
    """Draw the slopes of all fits on one axis, and the effects of the features by the best fit."""
    shown = [fit for fit in fits if has_slopes(fit.model) and not withheld(fit)]
    if not shown:
        raise Untrustworthy("the slopes of all fits are withheld", "withheld")
    main = best(shown)
    drawn = [main, *(fit for fit in shown if fit is not main)]
    interval = "" if main.kind == "point estimate" else ", with 95% intervals"
    total = len(slopes(main))
    model = main.model
    assert has_slopes(model)
    to = "outcome" if model.has_identity_link else model.predicted_quantity
    caption = f"Change of the {to} per standard deviation of each feature{interval}"
    caption += f"; the {MOST_SLOPES} largest of {total}." if total > MOST_SLOPES else "."
    below = [picture(partial(plot_effects, main.tree), "effects of the features", _effects(main, interval), wide=True)]
    under = [*next_of_lags(main), *_shares(drawn)]
    return Answer(
        [picture(partial(plot_slopes, [fit.tree for fit in drawn]), "slopes per standard deviation", caption)],
        below,
        under,
    )


def _effects(main: Fit, interval: str) -> str:
    """Return the caption of a picture of effects, with the command for effects that it leaves out."""
    model = main.model
    assert has_slopes(model)
    used = model.separate_features(seen_rows(main))
    mean = "mean outcome" if model.has_identity_link else model.mean_quantity
    caption = f"By {main.method} of {model.name}: the {mean} as one feature varies from its least to its "
    caption += f"greatest value, or over its levels, with other features at their means{interval}."
    if products(seen_rows(main)["feature"]):
        caption += " Colours: values of a second feature, with which it interacts."
    if len(used) > MOST_EFFECTS:
        caption += f" The {MOST_EFFECTS} features of {len(used)} with the greatest effects; for another: "
        caption += "bz.plot_effects(bz.load(FILE), features=[NAME])."
    return caption


def _shares(fits: Sequence[Fit]) -> list[Block]:
    """Return the share of the variance that each model explains, by its first fit, or why it is unknown."""
    firsts, shares, skipped = dict[str, Fit](), list[str](), list[Any]()
    for fit in fits:
        if has_slopes(model := fit.model) and model.has_identity_link:
            firsts.setdefault(fit.tree.attrs["model"], fit)
    for name, fit in firsts.items():
        with skipping(f"R2 of {name}", skipped):
            share = explained(fit)
            span = "" if np.isnan(share["q025"]) else f" (95% interval {share['q025']:.2f} to {share['q975']:.2f})"
            shares.append(f"{share['mean']:.2f}{span} by {name}")
    return [Words(f"R2, the share of the variance explained: {'; '.join(shares)}.")] * bool(shares) + skipped


def states(fit: Fit) -> Answer:
    """Draw the path of the states over time."""
    caption = "The probability of each state given all rows, and the most probable path."
    if "symbol" not in fit.data:
        caption = f"Rows with the mean of each row's state. {caption}"
    drawn = picture(partial(plot_states, fit.tree), "states over time", caption, wide=True)
    return Answer(below=[drawn, *profiled(fit)])


def profiled(fit: Fit) -> list[Block]:
    """Return the profiles of components or states as tables."""
    blocks: list[Any] = []
    for title, columns, rows, words in profiles(fit, document(fit)):
        texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
        blocks.append(
            table(columns, texts, title, words=words, sortable=False) if columns else Words(f"{title}.", "note")
        )
    return blocks


def topics(fit: Fit) -> Answer:
    """Draw the words of the topics, and list them with facts about each topic."""
    top = min(10, fit.tree["posterior"]["topics"].shape[-1])
    frame = words_of(fit.tree, top)
    caption = "The most probable words of each topic: the mean as a bar, the 95% interval as a line."
    drawn = picture(partial(plot_topics, fit.tree, top), "words of each topic", caption, True)
    columns, rows = topic_rows(frame)
    rounded = [[cell if isinstance(cell, str) else f"{cell:.3f}" for cell in row] for row in rows]
    return Answer([table(columns, rounded, words=["words"])], [drawn])


def groups(fit: Fit) -> Answer:
    """Draw the groups of a hierarchy, and list the highest."""
    frame = highest_first(group_estimates(fit.tree))
    caption = "Points with 95% intervals: partially pooled. Line: fully pooled."
    caption = "Circles: raw estimates. " * bool(frame["raw"].notna().any()) + caption
    drawn = picture(partial(plot_pooling, fit.tree), "estimates of groups", caption, wide=True)
    shown = frame.head(_ROWS_SHOWN)
    count = f"The {len(shown)} highest of {len(frame)} groups" if len(shown) < len(frame) else "Groups"
    listed = [table(*pooling_rows(shown), count), *(Words(line, "note") for line in about_estimates(shown))]
    if fit.kind != "point estimate":
        listed += [table(*rank_rows(shown), f"Ranks among {len(frame)} groups"), Words(ABOUT_RANKS, "note")]
    listed += [Words(line, "note") for line in about_judged(frame)]
    return Answer(below=[drawn, *listed])


def factors(fit: Fit) -> Answer:
    """Draw rows and columns along the first two factors, and the variance of each factor."""
    pictures = [
        (plot_biplot, "biplot", "Rows as points, columns as arrows, along the first two principal axes; bars: one sd."),
        (plot_scree, "scree", "Eigenvalues of the covariance, of the fit and of the sample; dotted: the noise."),
        (plot_ard, "ard", "Relevance precisions, sorted: large ones switch factors off."),
    ]
    shown = pictures if "alpha" in fit.tree["posterior"].data_vars else pictures[:2]
    first, *further = [picture(partial(draw, fit.tree), alt, words) for draw, alt, words in shown]
    return Answer([first], under=further)


def path(fit: Fit) -> Section:
    """Draw the modes of a lasso under tighter and wider priors."""
    modes = lasso_path(fit.model, fit.data)
    caption = "Modes under tighter (left) and wider priors (right): where each coefficient leaves zero."
    drawn = picture(partial(plot_lasso_path, modes), "lasso path", caption)
    return Section("path", "The path of the coefficients", [drawn])


def classes(fit: Fit) -> Section:
    """Draw calibration and ROC curves of the class probabilities, and count the decisions, with each row left out.

    Rows are not left out of a point estimate, nor if there are many.
    """
    notes = list[Any]()
    count = len(classifier(fit.model).classes(fit.like))
    if fit.data.rows * count > MOST_CELLS:
        line = f"The table of rows and {count} classes is too large: bz.classify decides on some rows at a time."
        return Section("classes", "Classes", [Words(line, "note")])
    can_leave_out = fit.kind != "point estimate" and fit.data.rows <= MAX_DISTINCT
    frame = classify(fit.tree, leave_one_out=can_leave_out)
    if can_leave_out and frame.attrs["rows_withheld"] == len(frame):
        frame = classify(fit.tree)
    of_rows = "left out one by one" if frame.attrs["rows_are"] == "left out" else "of the fit"
    attributes = {str(name): value for name, value in frame.attrs.items()}
    notes += [Words(line, "note") for line in about_rows(attributes, len(frame))]
    notes += [Words(line, "note") for line in about_judged(frame)]
    notes += [Words(ABOUT_PLUGGED_IN, "note")] * (fit.kind == "point estimate")
    plane = [picture(partial(plot_discriminants, fit.tree), "coordinates", _PLANE)] * can_be_drawn(fit)
    drawn, decided = _of_each_class(frame, of_rows) if count <= MOST_CLASSES else ([], [])
    scores = table(*score_rows(attributes if decided else {**attributes, "auc": {}}), _OF_ONE, sortable=False)
    return Section("classes", "Classes", [*drawn, *plane, *decided, scores, *notes, *_of_information(fit)])


def _of_each_class(frame: pd.DataFrame, of_rows: str) -> tuple[list[Block], list[Block]]:
    """Return the pictures of calibration and ROC curves, and the table of true classes by decision."""
    drawn = picture(partial(plot_classes, frame), "calibration and ROC curve", f"Rows {of_rows}.", wide=True)
    counts = confusion_rows(confusion(frame))
    return [drawn], [table(*counts, "True classes by decision, with equal losses of all mistakes")]


def _of_information(fit: Fit) -> list[Block]:
    """Draw the mutual information of each feature and the class, if features have a distribution."""
    if fit.kind == "point estimate" or not has_information(fit.model):
        return []
    caption = "Mutual information of each single feature and the class; dashed, if in range: the entropy of the class."
    return [
        picture(lambda: plot_information(mutual_information(fit.tree)), "mutual information with the class", caption)
    ]


def responsibilities(fit: Fit) -> Answer:
    """Show the component of each row, with its probability."""
    assigned = assign(fit.tree)
    if "component" not in assigned:
        raise InputError("the latent variable of a row is a number, not a component", "no_components")
    frame, data, about_withheld = _known_rows(fit, assigned)
    lead = f"Each row has the label of its most probable component; of {len(frame)} labels "
    wrong, error = float(frame["expected_loss"].sum()), assigned.attrs["mcse_expected_errors"]
    lead += f"{with_error(wrong, error, f'{wrong:.3g}')} are expected to be wrong.{about_withheld}"
    counts = frame.groupby("component", sort=True)["expected_loss"].agg(["size", "mean"])
    rows = [[str(name), int(size), number(mean, 2)] for name, size, mean in counts.itertuples()]
    least = frame.sort_values("expected_loss", ascending=False, kind="stable").head(_ROWS_SHOWN)
    shown = [[str(row), str(label), loss] for row, label, loss in least[["component", "expected_loss"]].itertuples()]
    unsure = table(["row", "component", "probability that it is another"], shown, words=["component"])
    caption = "Colour: the most probable component; pale: unsure."
    if (values := _numbers(frame, data)) is None:
        caption = "The probability of each component, row by row."
    elif values.shape[1] > 2:
        caption += f" The two of {values.shape[1]} columns in which the components differ most."
    by_component = table(["component", "rows", "mean probability that it is another"], rows, sortable=False)
    drawn = picture(partial(_draw, frame, data), "rows by component", caption)
    return Answer([drawn], under=[*profiled(fit), Words(lead), by_component, Folded("The least sure rows", [unsure])])


def _known_rows(fit: Fit, frame: pd.DataFrame) -> tuple[pd.DataFrame, Any, str]:
    """Return the rows whose component is not withheld, their data, and a sentence on those left out."""
    indices = np.flatnonzero(frame["component"].notna())
    if len(indices) == len(frame):
        return frame, fit.data, ""
    labels = {"component": frame["component"].iloc[indices].map(_whole)}
    about_withheld = f" {len(frame) - len(indices)} of the {len(frame)} rows are withheld: {FAR}."
    return frame.iloc[indices].assign(**labels), fit.model.inputs.reordered(fit.data, indices), about_withheld


def _whole(label: Any) -> Any:
    """Return the number of a component as an integer: next to NaN it is a float."""
    return int(label) if isinstance(label, float) else label


def together(fit: Fit) -> Answer:
    """Draw which rows are together, and list how many clusters there are; clusters have no labels."""
    caption = "The probability that two rows are in one cluster, rows sorted by the groups of one partition; "
    caption += "of one column also the density of a new row with its 95% interval."
    return Answer([picture(partial(plot_clusters, fit.tree), "rows together", caption)], under=profiled(fit))


def _numbers(frame: pd.DataFrame, data: Any) -> np.ndarray | None:
    """Return the numbers of the rows, if there are two or more per row."""
    tables = (values for values in data.values() if values.ndim == 2 and values.dtype.kind == "f")
    return next((values for values in tables if len(values) == len(frame) and values.shape[1] >= 2), None)


def _apart(values: np.ndarray, components: pd.Series) -> np.ndarray:
    """Return the indices of the two columns whose variance the components explain best, in order."""
    import pandas as pd

    columns = pd.DataFrame(values)
    shares = columns.groupby(components.to_numpy()).transform("mean").var() / columns.var()
    return np.sort(shares.fillna(0).sort_values(ascending=False, kind="stable").index[:2])


def _draw(frame: pd.DataFrame, data: Any) -> Figure:
    """Draw rows of two or more numbers in two columns; else the sorted component probabilities of the rows."""
    figure, (axes,) = panels(1, 6.4, 4.0)
    if (values := _numbers(frame, data)) is not None:
        pair = _apart(values, frame["component"])
        sure = np.clip(1 - frame["expected_loss"].to_numpy(), 0.15, 1)
        for i, label in enumerate(sorted(frame["component"].unique(), key=str)):
            is_in_component = (frame["component"] == label).to_numpy()
            x, y = values[is_in_component][:, pair].T
            axes.scatter(x, y, 16, COLOURS[i % len(COLOURS)], lw=0, alpha=sure[is_in_component], label=label)
        names = next((data[name] for name in ("column", "feature") if name in data), np.arange(values.shape[1]) + 1)
        axes.set_xlabel(short(names[pair[0]]), parse_math=False)
        axes.set_ylabel(short(names[pair[1]]), parse_math=False)
    else:
        columns = [name for name in frame.columns if str(name).startswith("p[")]
        order, places = frame.sort_values(columns, ascending=False, kind="stable"), np.arange(1, len(frame) + 1)
        colours = [COLOURS[i % len(COLOURS)] for i in range(len(columns))]
        names = [name[2:-1] for name in columns]
        axes.stackplot(places, order[columns].to_numpy().T, labels=names, colors=colours, step="mid", lw=0)
        axes.set(xlabel="rows, by probability", ylabel="probability", ylim=(0, 1), xlim=(0.5, len(order) + 0.5))
    axes.legend(title="component", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


_SCREENS: dict[View, Callable[[Sequence[Fit]], Answer]] = {
    View.TOPICS: lambda fits: topics(best_of_components(fits)),
    View.GROUPS: lambda fits: groups(best_of_components(fits)),
    View.STATES: lambda fits: states(best_of_components(fits)),
    View.LEVELS: lambda fits: Answer(under=next_rows(best(fits)), below=[levels(best(fits))]),
    View.SLOPES: regression,
    View.FUNCTION: lambda fits: Answer(
        profiled(best(fits)),
        under=about_function(best(fits)),
        below=[function(best(fits))],
    ),
    View.NODES: lambda fits: Answer(below=[nodes(best(fits))]),
    View.FACTORS: lambda fits: factors(best(fits)),  # pictures of factors do not depend on labels
    View.CLUSTERS: lambda fits: together(best_of_components(fits)),
    View.COMPONENTS: lambda fits: responsibilities(best_of_components(fits)),
}
