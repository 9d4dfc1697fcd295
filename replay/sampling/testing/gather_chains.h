// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_SAMPLING_TESTING_GATHER_CHAINS_H_
#define RILL_REPLAY_SAMPLING_TESTING_GATHER_CHAINS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/specs/spec.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/rows/row_steps.h"
#include "rill/transforms/rows/rowwise_transform.h"

namespace rill {

// Chains of transforms that are parts of a gather, for tests of it.

using Transforms = std::vector<std::unique_ptr<BatchTransform>>;

// A step on one leaf, into that or another one.
class OneStep final : public RowwiseTransform {
 public:
  OneStep(const RowStep& step, std::string in, std::string out)
      : RowwiseTransform({.map = *MakeRowStep(step),
                          .in_keys = {std::move(in)},
                          .out_keys = {std::move(out)}}) {}
  absl::string_view name() const override { return "OneStep"; }
};

// A transform that is no part of a gather.
std::unique_ptr<BatchTransform> Nothing();

// Rows of several dtypes and shapes, with images and flags.
TensorDictSpec RowSpec();

// A number below n of the draws of one test.
class Draws {
 public:
  explicit Draws(uint64_t seed) : rng_(seed, RngStream::kUser) {}
  int64_t Below(int64_t n) { return rng_.UniformInt(0, next_++, n); }

 private:
  Rng rng_;
  uint32_t next_ = 0;
};

// Those of `tries` random links that fit what is before them, beginning with
// `spec`.
Transforms RandomChain(int tries, Draws* draws, TensorDictSpec spec);

}  // namespace rill

#endif  // RILL_REPLAY_SAMPLING_TESTING_GATHER_CHAINS_H_
