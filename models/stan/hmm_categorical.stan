data {
  int N;  // length of y
  int K;
  int S;  // length of symbol
  array[N] int y;
  vector[K] initial_concentration;
  array[K] vector[K] transition_concentration;
  array[K] vector[S] emission_concentration;
}
parameters {
  simplex[K] initial;
  array[K] simplex[K] transition;
  array[K] simplex[S] emission;
}
model {
  matrix[K, K] moves;
  matrix[K, N] log_b;
  target += dirichlet_lpdf(initial | initial_concentration);
  for (k in 1 : K) {
    target += dirichlet_lpdf(transition[k] | transition_concentration[k]);
    target += dirichlet_lpdf(emission[k] | emission_concentration[k]);
    moves[k] = transition[k]';
    for (n in 1 : N) {
      log_b[k, n] = log(emission[k, y[n] + 1]);
    }
  }
  target += hmm_marginal(log_b, moves, initial);
}
