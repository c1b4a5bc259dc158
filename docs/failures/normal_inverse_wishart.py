"""More columns than rows.

What breaks: With four columns and three rows the likelihood grows without bound as the covariance becomes singular.

How it looks: `mle` raises. The posterior is proper, because the prior is, and what it says of the covariance is
mostly the prior.

What to do: Say the prior and mean it; compare the posterior's standard deviations under two of them.
"""

import numpy as np

import bayeszoo as bz

Iris = bz.find("normal_inverse_wishart")
few = bz.example(Iris, "iris_setosa")["Y"][:3]
weak = Iris.weak(bz.read(Iris, few))
raised = None
try:
    bz.fit(weak, few, "mle", seed=1)
except bz.NumericalError as error:
    raised = error
print("mle:", raised)
wider = Iris(mu0=weak.mu0, kappa0=weak.kappa0, nu0=weak.nu0, Psi0=4 * np.asarray(weak.Psi0))
for name, model in (("weak", weak), ("Psi0 four times as large", wider)):
    Sigma = bz.summarize(bz.fit(model, few, "exact", seed=1))["Sigma"]["mean"]
    print(f"{name}: mean variances {np.round(np.diag(Sigma), 4).tolist()}")

assert raised is not None
