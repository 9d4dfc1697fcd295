// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(TensorViewTest, IndexDropsDimensionZero) {
  const Tensor t = Iota<int32_t>({2, 3});
  EXPECT_THAT(t.Index(1), IsOkAndHolds(TensorElementsAre<int32_t>(3, 4, 5)));
  EXPECT_THAT(t.Index(2), StatusIs(absl::StatusCode::kOutOfRange,
                                   AllOf(HasSubstr("index 2 is outside [0, 2)"),
                                         HasSubstr("[2, 3]"))));
  EXPECT_THAT(t.Index(-1), IsOutOfRange());
  EXPECT_THAT(Iota<int32_t>({}).Index(0), IsInvalidArgument());
}

TEST(TensorViewTest, SelectAnyDimension) {
  const Tensor t = Iota<int32_t>({2, 3});
  EXPECT_THAT(t.Select(1, 2), IsOkAndHolds(TensorElementsAre<int32_t>(2, 5)));
  EXPECT_THAT(t.Select(2, 0), IsInvalidArgument("want one in [0, 2)"));
  EXPECT_THAT(t.Select(-1, 0), IsInvalidArgument());
}

TEST(TensorViewTest, SliceWithSteps) {
  const Tensor t = Iota<int32_t>({6});
  EXPECT_THAT(t.Slice(0, 1, 4),
              IsOkAndHolds(TensorElementsAre<int32_t>(1, 2, 3)));
  EXPECT_THAT(t.Slice(0, 1, 6, 2),
              IsOkAndHolds(TensorElementsAre<int32_t>(1, 3, 5)));
  EXPECT_THAT(t.Slice(0, 0, 6, kMax),
              IsOkAndHolds(TensorElementsAre<int32_t>(0)));
  EXPECT_THAT(t.Slice(0, 3, 3), IsOkAndHolds(TensorIs(DType::kInt32, {0})));
  EXPECT_THAT(t.Slice(0, 2, 7), IsOutOfRange("[2, 7) is not inside"));
  EXPECT_THAT(t.Slice(0, 3, 2), IsOutOfRange());
  EXPECT_THAT(t.Slice(0, -1, 2), IsOutOfRange());
  EXPECT_THAT(t.Slice(0, 0, 2, 0), IsInvalidArgument());
}

TEST(TensorViewTest, SqueezeAndUnsqueeze) {
  const Tensor t = Iota<int32_t>({2, 3});
  for (int dim = 0; dim <= 2; ++dim) {
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor longer, t.Unsqueeze(dim));
    EXPECT_EQ(longer.shape()[dim], 1);
    EXPECT_TRUE(longer.is_contiguous());
    EXPECT_THAT(longer.Squeeze(dim), IsOkAndHolds(BitEqualTo(t)));
  }
  EXPECT_THAT(t.Squeeze(0), IsInvalidArgument("got 2, want 1"));
  EXPECT_THAT(t.Unsqueeze(3), IsInvalidArgument());
  EXPECT_THAT(Iota<int32_t>({1, 1, 1, 1, 1, 1, 1, 1}).Unsqueeze(0),
              IsInvalidArgument("want less than 8"));
}

TEST(TensorViewTest, PermuteWantsEachDimensionOnce) {
  const Tensor t = Iota<int32_t>({2, 3});
  EXPECT_THAT(t.Permute({1, 0}),
              IsOkAndHolds(TensorElementsAre<int32_t>(0, 3, 1, 4, 2, 5)));
  for (const std::vector<int>& dims :
       {std::vector<int>{0}, {0, 0}, {0, 2}, {0, 1, 2}, {-1, 0}}) {
    EXPECT_THAT(t.Permute(dims), IsInvalidArgument());
  }
}

TEST(TensorViewTest, ExpandRepeats) {
  const Tensor t = Iota<int32_t>({2, 1});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor wide, t.Expand({2, 2, 3}));
  EXPECT_THAT(wide,
              TensorElementsAre<int32_t>(0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1));
  EXPECT_EQ(wide.buffer(), t.buffer());
  EXPECT_THAT(t.Expand({3, 3}), IsInvalidArgument("[2, 1]"));
  EXPECT_THAT(t.Expand({3}), IsInvalidArgument());
  EXPECT_THAT(t.Expand({kMax, 2, 3}), IsInvalidArgument());
}

TEST(TensorViewTest, ViewAsSharesOrRefuses) {
  const Tensor t = Iota<int32_t>({4, 6});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor seen, t.ViewAs({2, 2, 3, 2}));
  EXPECT_EQ(seen.raw_data(), t.raw_data());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor turned, t.Permute({1, 0}));
  EXPECT_THAT(turned.ViewAs({24}), IsFailedPrecondition("use Reshape"));
  // A dimension of a strided tensor may still be cut in two.
  EXPECT_THAT(turned.ViewAs({2, 3, 4}), IsOk());
  EXPECT_THAT(t.ViewAs({5, 5}), IsInvalidArgument("got 25"));
}

TEST(TensorViewTest, ReshapeCopiesWhereItMust) {
  const Tensor t = Iota<int32_t>({2, 3});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor same, t.Reshape({3, 2}));
  EXPECT_EQ(same.raw_data(), t.raw_data());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor turned, t.Permute({1, 0}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor copied, turned.Reshape({6}));
  EXPECT_NE(copied.raw_data(), t.raw_data());
  EXPECT_THAT(copied, TensorElementsAre<int32_t>(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(t.Reshape({7}), IsInvalidArgument());
}

TEST(TensorViewTest, NoElementsNoTrouble) {
  const Tensor t = Iota<int32_t>({0, 3});
  EXPECT_THAT(t.Select(1, 2), IsOkAndHolds(TensorIs(DType::kInt32, {0})));
  EXPECT_THAT(t.Slice(1, 1, 3), IsOkAndHolds(TensorIs(DType::kInt32, {0, 2})));
  EXPECT_THAT(t.Permute({1, 0}), IsOkAndHolds(TensorIs(DType::kInt32, {3, 0})));
  EXPECT_THAT(t.ViewAs({5, 0, 2}),
              IsOkAndHolds(TensorIs(DType::kInt32, {5, 0, 2})));
  EXPECT_THAT(t.Expand({2, 0, 3}), IsOk());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor copy, t.Clone());
  EXPECT_TRUE(copy.is_contiguous());
}

// --- Random chains of views against an oracle that keeps, for each element in
// row-major order, the number of the element of the first tensor. -------------

struct Oracle {
  std::vector<int64_t> sizes;
  std::vector<int64_t> elements;

  int64_t stride(size_t dim) const {
    return std::accumulate(sizes.begin() + static_cast<int64_t>(dim) + 1,
                           sizes.end(), int64_t{1}, std::multiplies<>());
  }
  // The result of shape `to`, whose element at index i is this one's at
  // source(i).
  template <typename Fn>
  Oracle Make(std::vector<int64_t> to, Fn source) const {
    Oracle result = {std::move(to), {}};
    std::vector<int64_t> index(result.sizes.size());
    int64_t count = 1;
    for (const int64_t size : result.sizes) count *= size;
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i;
      for (size_t d = result.sizes.size(); d-- > 0;) {
        index[d] = rest % result.sizes[d];
        rest /= result.sizes[d];
      }
      const std::vector<int64_t> from = source(index);
      int64_t flat = 0;
      for (size_t d = 0; d < sizes.size(); ++d) flat += from[d] * stride(d);
      result.elements.push_back(elements[static_cast<size_t>(flat)]);
    }
    return result;
  }
};

class Dice {
 public:
  explicit Dice(uint64_t batch) : batch_(batch) {}
  int64_t Below(int64_t bound) {
    return rng_.UniformInt(batch_, draw_++, bound);
  }

 private:
  Rng rng_{3};
  uint64_t batch_;
  uint32_t draw_ = 0;
};

using Index = std::vector<int64_t>;

void RandomPermute(Dice& dice, Tensor& tensor, Oracle& oracle) {
  const int rank = tensor.rank();
  std::vector<int> dims(static_cast<size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  for (int d = rank - 1; d > 0; --d) {
    std::swap(dims[static_cast<size_t>(d)],
              dims[static_cast<size_t>(dice.Below(d + 1))]);
  }
  Index sizes;
  for (const int dim : dims) sizes.push_back(tensor.shape()[dim]);
  oracle = oracle.Make(sizes, [&](const Index& index) {
    Index from(index.size());
    for (size_t d = 0; d < dims.size(); ++d) {
      from[static_cast<size_t>(dims[d])] = index[d];
    }
    return from;
  });
  tensor = *tensor.Permute(dims);
}

void RandomUnsqueeze(Dice& dice, Tensor& tensor, Oracle& oracle) {
  const int rank = tensor.rank();
  const auto dim = static_cast<size_t>(dice.Below(rank + 1));
  if (rank == Shape::kMaxRank) return;
  Index sizes = oracle.sizes;
  sizes.insert(sizes.begin() + static_cast<int64_t>(dim), 1);
  oracle.sizes = sizes;
  tensor = *tensor.Unsqueeze(static_cast<int>(dim));
}

void RandomExpand(Dice& dice, Tensor& tensor, Oracle& oracle) {
  const int rank = tensor.rank();
  Index sizes = oracle.sizes;
  if (rank < 4) sizes.insert(sizes.begin(), dice.Below(2) + 1);
  const size_t added = sizes.size() - oracle.sizes.size();
  for (int64_t& size : sizes) {
    if (size == 1) size = dice.Below(2) + 1;
  }
  const Oracle old = oracle;
  oracle = oracle.Make(sizes, [&](const Index& index) {
    Index from(index.begin() + static_cast<int64_t>(added), index.end());
    for (size_t d = 0; d < from.size(); ++d) {
      if (old.sizes[d] == 1) from[d] = 0;
    }
    return from;
  });
  tensor = *tensor.Expand(*Shape::Create(sizes));
}

// Two neighbours joined, by a view or a copy.
void RandomReshape(Dice& dice, Tensor& tensor, Oracle& oracle) {
  const int rank = tensor.rank();
  if (rank < 2) return;
  const auto dim = static_cast<size_t>(dice.Below(rank - 1));
  oracle.sizes[dim] *= oracle.sizes[dim + 1];
  oracle.sizes.erase(oracle.sizes.begin() + static_cast<int64_t>(dim) + 1);
  const Shape shape = *Shape::Create(oracle.sizes);
  const auto view = tensor.ViewAs(shape);
  tensor = view.ok() ? *view : *tensor.Reshape(shape);
}

void RandomSelect(Dice& dice, Tensor& tensor, Oracle& oracle) {
  if (tensor.rank() < 2) return;
  const int64_t dim = dice.Below(tensor.rank());
  const int64_t size = tensor.shape()[static_cast<int>(dim)];
  if (size == 0) return;
  const int64_t selected = dice.Below(size);
  Index sizes = oracle.sizes;
  sizes.erase(sizes.begin() + dim);
  oracle = oracle.Make(sizes, [&](Index index) {
    index.insert(index.begin() + dim, selected);
    return index;
  });
  tensor = *tensor.Select(static_cast<int>(dim), selected);
}

void RandomSlice(Dice& dice, Tensor& tensor, Oracle& oracle) {
  if (tensor.rank() == 0) return;
  const int64_t dim = dice.Below(tensor.rank());
  const int64_t size = tensor.shape()[static_cast<int>(dim)];
  const auto at = static_cast<size_t>(dim);
  const int64_t begin = dice.Below(size + 1);
  const int64_t end = begin + dice.Below(size - begin + 1);
  const int64_t step = dice.Below(3) + 1;
  if (begin == end && dice.Below(4) > 0) return;  // Few tensors go empty.
  Index sizes = oracle.sizes;
  sizes[at] = (end - begin + step - 1) / step;
  oracle = oracle.Make(sizes, [&](Index index) {
    index[at] = begin + index[at] * step;
    return index;
  });
  tensor = *tensor.Slice(static_cast<int>(dim), begin, end, step);
}

constexpr void (*kOperations[])(Dice&, Tensor&, Oracle&) = {
    RandomPermute, RandomUnsqueeze, RandomExpand,
    RandomReshape, RandomSelect,    RandomSlice};

TEST(TensorViewTest, RandomChainsAgreeWithTheOracle) {
  for (uint64_t round = 0; round < 2000; ++round) {
    SCOPED_TRACE(round);
    Dice dice(round);
    Index sizes(static_cast<size_t>(dice.Below(4) + 1));
    for (int64_t& size : sizes) size = dice.Below(4) + 1;
    Tensor tensor = Iota<int64_t>(*Shape::Create(sizes));
    Oracle oracle = {sizes, {}};
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      oracle.elements.push_back(i);
    }
    for (int step = 0; step < 6 && oracle.elements.size() < 1000; ++step) {
      kOperations[dice.Below(6)](dice, tensor, oracle);
      ASSERT_THAT(tensor.shape().sizes(), ElementsAreArray(oracle.sizes));
      RILL_ASSERT_OK_AND_ASSIGN(const Tensor copy, tensor.Clone());
      ASSERT_THAT(*copy.Flat<int64_t>(), ElementsAreArray(oracle.elements));
      EXPECT_TRUE(copy.is_contiguous());
      EXPECT_THAT(tensor.BitEquals(copy), IsOkAndHolds(true));
    }
  }
}

}  // namespace
}  // namespace rill
