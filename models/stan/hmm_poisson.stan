data {
  int N;  // length of y
  int K;
  array[N] int y;
  vector[K] initial_concentration;
  array[K] vector[K] transition_concentration;
  vector[K] a;
  vector[K] b;
}
parameters {
  simplex[K] initial;
  array[K] simplex[K] transition;
  vector<lower=0>[K] rates;
}
model {
  matrix[K, K] moves;
  matrix[K, N] log_b;
  target += dirichlet_lpdf(initial | initial_concentration);
  target += gamma_lpdf(rates | a, b);
  for (k in 1 : K) {
    target += dirichlet_lpdf(transition[k] | transition_concentration[k]);
    moves[k] = transition[k]';
    for (n in 1 : N) {
      log_b[k, n] = poisson_lpmf(y[n] | rates[k]);
    }
  }
  target += hmm_marginal(log_b, moves, initial);
}
