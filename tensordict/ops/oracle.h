// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_ORACLE_H_
#define RILL_TENSORDICT_OPS_ORACLE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "rill/base/rng.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_tensors.h"

// Plain ways to look at tensors one element at a time, for this package's
// property tests.
namespace rill::ops {

using Coordinate = std::vector<int64_t>;

template <typename T>
T& ElementAt(const Tensor& tensor, const Coordinate& at) {
  std::byte* place = tensor.raw_data();
  for (int d = 0; d < tensor.rank(); ++d) {
    place += at[d] * tensor.strides_bytes()[d];
  }
  return *reinterpret_cast<T*>(place);
}

// fn(coordinate) for all coordinates of `shape`, row-major.
template <typename Fn>
void ForEachCoordinate(const Shape& shape, Fn&& fn) {
  if (shape.num_elements() == 0) return;
  Coordinate at(shape.rank(), 0);
  for (;;) {
    fn(at);
    int d = shape.rank() - 1;
    for (; d >= 0 && ++at[d] == shape[d]; --d) at[d] = 0;
    if (d < 0) return;
  }
}

// Draws in order, from one seed.
class Draws {
 public:
  explicit Draws(uint64_t seed) : rng_(seed) {}
  // In [low, high).
  int64_t Int(int64_t low, int64_t high) {
    return low + rng_.UniformInt(batch_++, 0, high - low);
  }
  double Double() { return rng_.UniformDouble(batch_++, 0); }
  Shape RandomShape(int rank, int64_t max_size) {
    std::vector<int64_t> sizes(rank);
    for (int64_t& size : sizes) {
      size = Int(0, 8) == 0 ? 0 : Int(1, max_size + 1);
    }
    return *Shape::Create(sizes);
  }
  // `tensor` with its elements laid out in another order in memory.
  Tensor Scattered(const Tensor& tensor) {
    std::vector<int> order(tensor.rank());
    std::vector<int> back(tensor.rank());
    for (int d = 0; d < tensor.rank(); ++d) order[d] = d;
    for (int d = 0; d < tensor.rank(); ++d) {
      std::swap(order[d], order[Int(d, tensor.rank())]);
    }
    for (int d = 0; d < tensor.rank(); ++d) back[order[d]] = d;
    return *tensor.Permute(order)->Clone()->Permute(back);
  }

 private:
  Rng rng_;
  uint64_t batch_ = 0;
};

// A dictionary of int32 leaves "a" [batch], "n/b" [batch, 3] (laid out in
// another order) and "n/c/d" [batch, 2], and of a value without a shape. "n/c"
// is a nested dictionary with the batch shape [batch, 2]. Elements count up.
inline TensorDict MakeNested(const Shape& batch, Draws* draws) {
  TensorDict inner(batch.Concat({2}));
  inner.Set("d", Iota<int32_t>(batch.Concat({2}))).IgnoreError();
  TensorDict dict(batch);
  dict.Set("a", Iota<int32_t>(batch)).IgnoreError();
  dict.Set("n/b", draws->Scattered(Iota<int32_t>(batch.Concat({3}))))
      .IgnoreError();
  dict.Set("n/c", std::move(inner)).IgnoreError();
  dict.Set("name", NonTensor{"\"cart\""}).IgnoreError();
  return dict;
}

}  // namespace rill::ops

#endif  // RILL_TENSORDICT_OPS_ORACLE_H_
