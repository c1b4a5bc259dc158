data {
  int N;  // length of y
  int K;
  vector[N] y;
  vector[K] initial_concentration;
  array[K] vector[K] transition_concentration;
  vector[K] m0;
  vector[K] kappa0;
  vector[K] a0;
  vector[K] b0;
}
parameters {
  simplex[K] initial;
  array[K] simplex[K] transition;
  vector<lower=0>[K] variances;
  vector[K] means;
}
model {
  matrix[K, K] moves;
  matrix[K, N] log_b;
  target += dirichlet_lpdf(initial | initial_concentration);
  target += inv_gamma_lpdf(variances | a0, b0);
  target += normal_lpdf(means | m0, sqrt(variances ./ kappa0));
  for (k in 1 : K) {
    target += dirichlet_lpdf(transition[k] | transition_concentration[k]);
    moves[k] = transition[k]';
    for (n in 1 : N) {
      log_b[k, n] = normal_lpdf(y[n] | means[k], sqrt(variances[k]));
    }
  }
  target += hmm_marginal(log_b, moves, initial);
}
