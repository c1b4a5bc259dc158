"""Names of the checks of the gate.

A check is stored under its code, which is stable between versions. Most codes also have a plain name for printing. A
name may have two parts: ``derived: r_hat``, or ``not_identified: rho`` with the parameter at fault.
"""

PLAIN = {
    "grid_evidence": "change of the log evidence when the grid is halved",
    "grid_outer_quantiles": "change of outer quantiles when the grid is halved, in probability",
    "grid_inner_quantiles": "change of inner quantiles when the grid is halved, in probability",
    "grid_quantiles": "change of quantiles when the grid is halved, in probability",
    "other_grid_evidence": "change of the log evidence on another grid",
    "drop_at_bounds": "drop of the log density towards the bounds, in nats",
    "mode_shares": "smallest ratio of a mode's share of draws to its share of mass",
    "unvisited_modes": "modes visited by other chains only",
    "gain_left": "gain left by Aitken's extrapolation",
    "restarts": "restarts that reached the best",
    "unseen_maxima": "chance that a further restart ends at an unseen maximum",
    "equal_maxima": "other maxima as high as the best",
    "small_step_gain": "gain of a small step",
    "stationary_distance": "distance to a stationary point in sd",
    "non_finite_numbers": "numbers not finite",
    "probability_sum": "error of the sum of probabilities",
    "label_asymmetry": "asymmetry between labels",
    "next_optimum_weight": "weight of the next-best optimum relative to the best, by the ELBO",
    "slope": "slope at the mode, in nats a standard deviation",
    "curvature": "least curvature at the mode, to its diagonal",
    "mean_change": "change of means in sd",
    "log_sd_change": "change of log sds",
    "last_divergence": "divergence of the last two fits",
    "second_start_gap": "ELBO gap of a second start",
    "quantile_inversion": "largest error of a quantile in probability",
    "evidence_spread": "sd of log evidence between runs",
    "tempering": "change of log evidence under finer tempering",
    "non_finite_evidence": "log evidences that are not finite",
    "starts": "starts that reached the maximum",
    "no_outer_maximum": "outer parameters without a maximum",
    "edge_gain": "nats gained halfway to the edge",
    "not_identified": "parameters not identified at the mode",
    "sweep_gain": "gain of a sweep over all rows, relative",
    "mean_gap": "largest error of a mean, in sd",
    "sd_ratio_least": "least ratio of an sd to the posterior's",
    "sd_ratio_most": "largest ratio of an sd to the posterior's",
    "quantile_gap": "largest error of a quantile, in sd",
    "closed_form_z": "draws against the closed form, |z|",
    "distance_to_posterior": "distance to the posterior",
    "tree_depth": "transitions at maximum tree depth",
    "stuck_chains": "stuck chains",
    "repeated_chains": "repeated chains",
    "non_finite_draws": "non-finite draws",
    "non_finite_log_densities": "non-finite log densities",
    "joint_modes": "modes of the density of weights and noise",
    "bridge_error": "standard error of the log evidence, in nats",
    "bridge_halves": "difference of the log evidences of the two halves of the draws, in standard errors",
    "bridge_functions": "difference to the log evidence by the geometric bridge, in standard errors",
    "bridge_overlap": "effective terms of the estimate",
    "score_z": "mean gradient of the log density over the draws, in standard errors",
    "symmetry_z": "draws against a symmetry of the density, in standard errors",
    "virial_z": "mean of coordinate times gradient over the draws against -1, in standard errors",
    "kkt_violation": "violation of the KKT conditions",
    "kkt_violation_sd": "violation of the KKT conditions, in nats a standard deviation",
    "not_gaussian": "skewness or curvature of drawn features given the other columns, |z|",
    "sigma2_distance": "distance of sigma2 from its mode, relative",
}
"""Plain name of each code that needs one."""
_FORMER = {
    **{plain: code for code, plain in PLAIN.items()},
    "log evidence changed by halving the grid": "grid_evidence",
    "probability by which halving the grid moves outer quantiles": "grid_outer_quantiles",
    "probability by which halving the grid moves inner quantiles": "grid_inner_quantiles",
    "probability by which halving the grid moves quantiles": "grid_quantiles",
    "log evidence changed by another grid": "other_grid_evidence",
    "nats by which the density falls off towards the bounds": "drop_at_bounds",
    "least share of a mode beside what its mass asks": "mode_shares",
    "earlier chains where these have no draws": "unvisited_modes",
    "modes visited by earlier chains only": "unvisited_modes",
    "preference for a label": "label_asymmetry",
    "weight of the next optimum beside the best, by the ELBO": "next_optimum_weight",
    "parameters that have other values as good at the mode": "not_identified",
}
"""Code of each name that earlier versions stored."""


def plain(name: str) -> str:
    """Return the name of a check as it is printed."""
    return ": ".join(PLAIN.get(part, part) for part in name.split(": "))


def code(name: str) -> str:
    """Return the code of a check that may have been stored by an earlier version."""
    return ": ".join(_FORMER.get(part, part) for part in name.split(": "))
