"""The evidence of Bayesian PCA of two columns and one factor by quadrature, with nothing of the library in it."""

import math

import numpy as np
import scipy


def by_quadrature(model, Y, nodes=60, alpha=None):
    """Log evidence and E[variance] of D = 2, q = 1: alpha, unless given, and mean by hand, W and variance by Gauss."""
    n, ybar = len(Y), Y.mean(axis=0)
    scatter, a, b = (Y - ybar).T @ (Y - ybar), model.a0, model.b0
    x, weights = np.polynomial.legendre.leggauss(nodes)
    r, variance = np.exp(5 * x), np.exp(6 * x)  # radius of W, and the variance
    angle = (x + 1) * np.pi / 2  # by symmetry in W half of the circle
    shape = np.array(np.meshgrid(r, angle, variance, indexing="ij")).reshape(3, -1)
    R, A, V = shape
    W = np.stack([R * np.cos(A), R * np.sin(A)], axis=1)
    C = W[:, :, None] * W[:, None, :] + V[:, None, None] * np.eye(2)
    inverse, log_det = np.linalg.inv(C), np.linalg.slogdet(C)[1]
    about = C / n + model.s0**2 * np.eye(2)  # the row mean
    off = ybar - model.m0
    value = -(n - 1) * (np.log(2 * np.pi) + log_det / 2) - np.sum(inverse * scatter, axis=(1, 2)) / 2 - np.log(n)
    value -= (
        np.log(2 * np.pi)
        + np.linalg.slogdet(about)[1] / 2
        + np.einsum("i,nij,j->n", off, np.linalg.inv(about), off) / 2
    )
    # in polar coordinates r dr dangle, and r d log r
    if alpha is None:  # Student t
        value += math.lgamma(a + 1) - math.lgamma(a) + a * math.log(b) - math.log(2 * np.pi)
        value -= (a + 1) * np.log(b + R**2 / 2)
    else:
        value += math.log(alpha / (2 * np.pi)) - alpha * R**2 / 2
    value += 2 * np.log(R) + scipy.stats.invgamma(model.c0, scale=model.d0).logpdf(V) + np.log(V)
    log_weights = np.log(weights)
    grid = log_weights[:, None, None] + log_weights[:, None] + log_weights + math.log(2 * 5 * 6 * np.pi / 2)
    log_terms = value + grid.ravel()
    evidence = scipy.special.logsumexp(log_terms)
    return evidence, np.exp(log_terms - evidence) @ V
