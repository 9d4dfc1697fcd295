// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/test_specs.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/specs/domains/choice_domain.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

// Draws of one spec, counted up.
struct Dice {
  const Rng& rng;
  uint64_t batch;
  uint32_t draw = 0;

  int64_t Roll(int64_t low, int64_t high) {
    return low + rng.UniformInt(batch, draw++, high - low + 1);
  }
};

double RollBound(Dice& dice) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const int64_t kind = dice.Roll(0, 9);
  if (kind == 0) return -kInfinity;
  if (kind == 1) return kInfinity;
  if (kind == 2) return 0.1 * static_cast<double>(dice.Roll(-20, 20));
  return static_cast<double>(dice.Roll(-3, 3));
}

LeafSpec RollBounded(Dice& dice, DType dtype, const Shape& shape) {
  if (dice.Roll(0, 1) == 0) {
    for (;;) {
      const double low = RollBound(dice);
      const double high = RollBound(dice);
      const LeafSpec spec = LeafSpec::Bounded(dtype, shape, low, high);
      if (spec.CheckDomain().ok() && low < INFINITY && high > -INFINITY) {
        return spec;
      }
    }
  }
  const int64_t most = dtype == DType::kBool ? 1 : 3;
  const int64_t least =
      dtype == DType::kBool || dtype == DType::kUInt8 ? 0 : -most;
  std::vector<int64_t> lows;
  std::vector<int64_t> highs;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    lows.push_back(dice.Roll(least, most));
    highs.push_back(dice.Roll(lows.back(), most));
  }
  const Tensor low = *Tensor::From<int64_t>(lows, shape);
  const Tensor high = *Tensor::From<int64_t>(highs, shape);
  return *LeafSpec::Bounded(*Cast(low, dtype), *Cast(high, dtype));
}

LeafSpec RollMask(Dice& dice, const LeafSpec& spec) {
  Shape shape = tensor_internal::LeadOf(spec);
  shape = shape.Suffix(static_cast<int>(dice.Roll(0, shape.rank())));
  const int64_t options = tensor_internal::NumOptions(spec);
  for (;;) {
    const Tensor mask = *Tensor::Empty(DType::kBool, shape.Concat({options}));
    for (int64_t i = 0; i < mask.num_elements(); ++i) {
      mask.data<bool>()[i] = dice.Roll(0, 2) > 0;
    }
    auto masked = spec.WithMask(mask);
    if (masked.ok()) return *std::move(masked);
  }
}

}  // namespace

LeafSpec RandomLeafSpec(const Rng& rng, uint64_t i) {
  Dice dice{rng, i};
  constexpr int kArithmetic = static_cast<int>(DType::kFloat64) + 1;
  const DType dtype = static_cast<DType>(dice.Roll(0, kArithmetic - 1));
  Shape shape;
  for (int64_t rank = dice.Roll(0, 2); rank > 0; --rank) {
    shape = shape.Concat({dice.Roll(1, 3)});
  }
  std::vector<int64_t> nvec;
  for (int64_t n = dice.Roll(1, 2); n > 0; --n) {
    nvec.push_back(dice.Roll(1, dtype == DType::kBool ? 2 : 3));
  }
  LeafSpec spec;
  switch (static_cast<LeafSpec::Domain>(i % 7)) {
    case LeafSpec::Domain::kUnbounded:
      return LeafSpec::Unbounded(
          static_cast<DType>(dice.Roll(0, kNumDTypes - 1)), shape);
    case LeafSpec::Domain::kBounded:
      return RollBounded(dice, dtype, shape);
    case LeafSpec::Domain::kBinary:
      return LeafSpec::Binary(shape, dtype);
    case LeafSpec::Domain::kCategorical:
      spec = LeafSpec::Categorical(nvec[0], dtype, shape);
      break;
    case LeafSpec::Domain::kOneHot:
      spec = LeafSpec::OneHot(nvec[0], dtype, shape);
      break;
    case LeafSpec::Domain::kMultiCategorical:
      spec = LeafSpec::MultiCategorical(nvec, dtype, shape);
      break;
    case LeafSpec::Domain::kMultiOneHot:
      spec = LeafSpec::MultiOneHot(nvec, dtype, shape);
      break;
  }
  return dice.Roll(0, 1) == 0 ? spec : RollMask(dice, spec);
}

TensorDictSpec RandomSpec(const Rng& rng, uint64_t i) {
  // Draws beyond those of any leaf.
  Dice dice{rng, i, uint32_t{1} << 31};
  TensorDictSpec spec;
  const int64_t leaves = dice.Roll(0, 5);
  for (int64_t leaf = 0; leaf < leaves; ++leaf) {
    const std::string key =
        absl::StrCat(dice.Roll(0, 1) == 0 ? "" : "next/",
                     dice.Roll(0, 3) == 0 ? R"(a\/b \\ "é)" : "x", leaf);
    const absl::Status status =
        dice.Roll(0, 5) == 0
            ? spec.SetNonTensor(key, {R"({"a":[1,"é"]})"})
            : spec.Set(key, RandomLeafSpec(rng, dice.Roll(0, 1 << 20)));
    status.IgnoreError();
  }
  return spec;
}

}  // namespace rill
