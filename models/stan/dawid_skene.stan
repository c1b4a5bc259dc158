data {
  int N;  // length of item
  int J;  // length of rater
  int K;
  array[N, J, K] int counts;
  vector[K] alpha;
  real eta;
  real stay;
}
parameters {
  simplex[K] weights;
  array[K, J] simplex[K] confusion;
}
model {
  target += dirichlet_lpdf(weights | alpha);
  for (k in 1 : K) {
    for (j in 1 : J) {
      target += dirichlet_lpdf(confusion[k, j] | eta + stay * one_hot_vector(K, k));
    }
  }
  for (n in 1 : N) {
    vector[K] terms = log(weights);
    for (k in 1 : K) {
      for (j in 1 : J) {
        terms[k] += dot_product(to_vector(counts[n, j]), log(confusion[k, j]));
      }
    }
    target += log_sum_exp(terms);
  }
}
