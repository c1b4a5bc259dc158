data {
  int N;  // length of Y
  int D;  // length of column
  int K;
  array[N] vector[D] Y;
  real alpha;
  vector[D] m0;
  real kappa0;
  real nu0;
  matrix[D, D] Psi0;
}
parameters {
  simplex[K] weights;
  array[K] cov_matrix[D] covariances;
  array[K] vector[D] means;
}
model {
  array[K] matrix[D, D] L;
  target += dirichlet_lpdf(weights | rep_vector(alpha, K));
  for (k in 1 : K) {
    target += inv_wishart_lpdf(covariances[k] | nu0, Psi0);
    L[k] = cholesky_decompose(covariances[k]);
    target += multi_normal_cholesky_lpdf(means[k] | m0, L[k] / sqrt(kappa0));
  }
  for (n in 1 : N) {
    vector[K] terms = log(weights);
    for (k in 1 : K) {
      terms[k] += multi_normal_cholesky_lpdf(Y[n] | means[k], L[k]);
    }
    target += log_sum_exp(terms);
  }
}
