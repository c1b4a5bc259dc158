data {
  int N;  // length of counts
  int V;  // length of word
  int K;
  array[N, V] int counts;
  real alpha;
  vector[V] eta;
}
parameters {
  simplex[K] weights;
  array[K] simplex[V] topics;
}
model {
  target += dirichlet_lpdf(weights | rep_vector(alpha, K));
  for (k in 1 : K) {
    target += dirichlet_lpdf(topics[k] | eta);
  }
  for (n in 1 : N) {
    vector[K] terms = log(weights);
    for (k in 1 : K) {
      terms[k] += multinomial_lpmf(counts[n] | topics[k]);
    }
    target += log_sum_exp(terms);
  }
}
