// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/index.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/ops/oracle.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill::ops {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// --- The oracle: what torch's manual says, one element at a time -------------

// The indices that a Python slice visits.
std::vector<int64_t> Visited(const Range& range, int64_t size) {
  const auto place = [&](int64_t index, int64_t low, int64_t high) {
    if (index < 0) index += size;
    return std::min(std::max(index, low), high);
  };
  std::vector<int64_t> visited;
  if (range.step > 0) {
    int64_t i = place(range.begin.value_or(0), 0, size);
    const int64_t end = place(range.end.value_or(size), 0, size);
    for (; i < end; i += range.step) visited.push_back(i);
  } else {
    int64_t i = range.begin ? place(*range.begin, -1, size - 1) : size - 1;
    const int64_t end = range.end ? place(*range.end, -1, size - 1) : -1;
    for (; i > end; i += range.step) visited.push_back(i);
  }
  return visited;
}

// A dimension of the result (a list) or an index tensor, and the dimension of
// the source that it moves along (-1: none).
struct Part {
  int source;
  std::vector<int64_t> list;
  std::optional<Tensor> indices;
};

struct Oracle {
  std::vector<std::pair<int, int64_t>> fixed;
  std::vector<Part> parts;

  Oracle(const Shape& shape, const std::vector<DimIndex>& index) {
    int consumed = 0;
    for (const DimIndex& element : index) {
      const auto& value = element.value();
      if (const auto* tensor = std::get_if<Tensor>(&value)) {
        consumed += tensor->dtype() == DType::kBool ? tensor->rank() : 1;
      } else {
        consumed += value.index() < 2;
      }
    }
    int source = 0;
    const auto whole = [&] {
      parts.push_back({source, Visited({}, shape[source]), {}});
      ++source;
    };
    for (const DimIndex& element : index) {
      const auto& value = element.value();
      if (const auto* at = std::get_if<int64_t>(&value)) {
        fixed.push_back({source, *at < 0 ? *at + shape[source] : *at});
        ++source;
      } else if (const auto* range = std::get_if<Range>(&value)) {
        parts.push_back({source, Visited(*range, shape[source]), {}});
        ++source;
      } else if (std::holds_alternative<Ellipsis>(value)) {
        for (int i = consumed; i < shape.rank(); ++i) whole();
      } else if (std::holds_alternative<NewAxis>(value)) {
        parts.push_back({-1, {0}, {}});
      } else {
        AddTensor(shape, std::get<Tensor>(value), &source);
      }
    }
    while (source < shape.rank()) whole();
  }

  void AddTensor(const Shape& shape, const Tensor& tensor, int* source) {
    if (tensor.dtype() != DType::kBool) {
      if (tensor.rank() == 0) {
        const int64_t at = *tensor.Item<int64_t>();
        fixed.push_back({*source, at < 0 ? at + shape[*source] : at});
      } else {
        parts.push_back({*source, {}, tensor});
      }
      ++*source;
      return;
    }
    std::vector<std::vector<int64_t>> lists(std::max(tensor.rank(), 1));
    ForEachCoordinate(tensor.shape(), [&](const Coordinate& at) {
      if (ElementAt<uint8_t>(tensor, at) == 0) return;
      for (int d = 0; d < tensor.rank(); ++d) lists[d].push_back(at[d]);
      if (tensor.rank() == 0) lists[0].push_back(0);
    });
    for (const std::vector<int64_t>& list : lists) {
      const Tensor indices =
          *Tensor::From<int64_t>(list, {static_cast<int64_t>(list.size())});
      parts.push_back({tensor.rank() == 0 ? -1 : (*source)++, {}, indices});
    }
  }

  // The common shape of the index tensors.
  std::vector<int64_t> Block() const {
    std::vector<int64_t> block;
    for (const Part& part : parts) {
      if (!part.indices) continue;
      const Shape& shape = part.indices->shape();
      while (static_cast<int>(block.size()) < shape.rank()) {
        block.insert(block.begin(), 1);
      }
      for (int d = 0; d < shape.rank(); ++d) {
        int64_t& size = block[block.size() - shape.rank() + d];
        if (size == 1) size = shape[d];
      }
    }
    return block;
  }

  // The result's sizes and, by `at`, the coordinate in the source.
  std::vector<int64_t> Sizes(size_t* block_at) const {
    size_t first = parts.size();
    size_t last = 0;
    size_t count = 0;
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].indices) {
        first = std::min(first, i);
        last = i;
        ++count;
      } else {
        sizes.push_back(static_cast<int64_t>(parts[i].list.size()));
      }
    }
    *block_at = count > 0 && last - first + 1 == count ? first : 0;
    const std::vector<int64_t> block = Block();
    sizes.insert(sizes.begin() + *block_at, block.begin(), block.end());
    return sizes;
  }

  Coordinate SourceOf(const Shape& shape, const Coordinate& at) const {
    size_t block_at;
    Sizes(&block_at);
    const size_t rank = Block().size();
    Coordinate source(shape.rank());
    for (const auto& [dim, index] : fixed) source[dim] = index;
    size_t next = 0;
    for (const Part& part : parts) {
      int64_t place;
      if (part.indices) {
        const Shape& own = part.indices->shape();
        Coordinate in(own.rank());
        for (int d = 0; d < own.rank(); ++d) {
          in[d] = own[d] == 1 ? 0 : at[block_at + rank - own.rank() + d];
        }
        place = ElementAt<int64_t>(*part.indices, in);
        if (place < 0) place += shape[part.source];
      } else {
        if (next == block_at) next += rank;
        place = part.list[at[next++]];
      }
      if (part.source >= 0) source[part.source] = place;
    }
    return source;
  }
};

// A random expression that is right for `shape`.
std::vector<DimIndex> RandomIndex(const Shape& shape, Draws* draws) {
  std::vector<DimIndex> index;
  bool has_ellipsis = false;
  Shape block = draws->RandomShape(static_cast<int>(draws->Int(1, 3)), 3);
  int dim = 0;
  // Chosen elements must all have one number: masks only with other masks that
  // have it too are rare, so an expression has masks or index tensors.
  const bool masks = draws->Int(0, 2) == 0;
  bool has_mask = false;
  const auto random_range = [&](int64_t size) {
    Range range;
    if (draws->Int(0, 3) > 0) range.begin = draws->Int(-size - 2, size + 3);
    if (draws->Int(0, 3) > 0) range.end = draws->Int(-size - 2, size + 3);
    range.step = draws->Int(1, 4) * (draws->Int(0, 3) == 0 ? -1 : 1);
    return range;
  };
  while (dim <= shape.rank()) {
    const int64_t kind = draws->Int(0, 12);
    if (kind == 0) {
      index.push_back(kNewAxis);
    } else if (kind == 1 && !has_ellipsis) {
      index.push_back(kEllipsis);
      has_ellipsis = true;
      dim += static_cast<int>(draws->Int(0, shape.rank() - dim + 1));
      if (dim == shape.rank()) break;
    } else if (kind == 2 && masks && !has_mask) {
      const int rank = static_cast<int>(draws->Int(0, shape.rank() - dim + 1));
      const Shape covered = shape.Prefix(dim + rank).Suffix(dim);
      Tensor mask = *Tensor::Empty(DType::kBool, covered);
      for (int64_t i = 0; i < mask.num_elements(); ++i) {
        // Any byte but 0 is true.
        mask.raw_data()[i] = static_cast<std::byte>(draws->Int(0, 2) * 7);
      }
      index.push_back(mask);
      has_mask = true;
      dim += rank;
    } else if (dim == shape.rank()) {
      break;
    } else if (kind < 5) {
      if (shape[dim] == 0) break;
      index.push_back(draws->Int(-shape[dim], shape[dim]));
      ++dim;
    } else if (kind < 8 && !masks) {
      // Some of the block's sizes are 1, some leading ones missing.
      const int rank = static_cast<int>(draws->Int(0, block.rank() + 1));
      std::vector<int64_t> sizes;
      const Shape last = block.Suffix(block.rank() - rank);
      for (const int64_t size : last.sizes()) {
        sizes.push_back(draws->Int(0, 3) == 0 ? 1 : size);
      }
      const Shape own = *Shape::Create(sizes);
      if (shape[dim] == 0 && own.num_elements() > 0) break;
      Tensor indices = *Tensor::Empty(DType::kInt64, own);
      for (int64_t i = 0; i < own.num_elements(); ++i) {
        indices.data<int64_t>()[i] = draws->Int(-shape[dim], shape[dim]);
      }
      index.push_back(draws->Scattered(indices));
      ++dim;
    } else {
      index.push_back(random_range(shape[dim]));
      ++dim;
    }
  }
  return index;
}

TEST(IndexTest, Example) {
  TensorDict batch({5, 2, 6});
  ASSERT_TRUE(batch.Set("x", Iota<int32_t>({5, 2, 6, 3})).ok());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict part,
                            At(batch, {3, kEllipsis, Range{1, 5}}));
  EXPECT_EQ(part.batch_shape(), Shape({2, 4}));
  EXPECT_EQ(part.Find("x")->data<int32_t>()[0], 3 * 36 + 3);
  const Tensor mask = MakeTensor<bool>({true, false, false, true, true}, {5});
  RILL_ASSERT_OK_AND_ASSIGN(part, At(batch, {mask}));
  EXPECT_EQ(part.batch_shape(), Shape({3, 2, 6}));
  RILL_ASSERT_OK_AND_ASSIGN(part, At(batch, {std::vector<int64_t>{0, 0, -1}}));
  EXPECT_EQ(part.batch_shape(), Shape({3, 2, 6}));
  EXPECT_EQ(part.Find("x")->data<int32_t>()[72], 4 * 36);
}

TEST(IndexTest, D3NewAxisMaskAndIndexListGiveTorchsBatchSizes) {
  const TensorDict steps = MakeSteps(3);
  EXPECT_EQ(At(steps, {kNewAxis})->batch_shape(), Shape({1, 3}));
  EXPECT_EQ(At(steps, {kNewAxis})->Find("observation")->shape(),
            Shape({1, 3, 4}));
  const Tensor mask = MakeTensor<bool>({true, false, true}, {3});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict masked, At(steps, {mask}));
  EXPECT_EQ(masked.batch_shape(), Shape({2}));
  EXPECT_THAT(*masked.Find("action"), TensorElementsAre<int64_t>(0, 2));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows,
                            At(steps, {std::vector<int64_t>{0, 0, 1}}));
  EXPECT_EQ(rows.batch_shape(), Shape({3}));
  EXPECT_THAT(*rows.Find("action"), TensorElementsAre<int64_t>(0, 0, 1));
}

// Thousands of random expressions on tensors and dictionaries: read, then
// written and read again.
TEST(IndexTest, AgreesWithTheOracle) {
  Draws draws(11);
  int advanced = 0;
  int compared = 0;
  for (int round = 0; round < 6000; ++round) {
    const Shape batch = draws.RandomShape(static_cast<int>(draws.Int(0, 5)), 4);
    const TensorDict dict = MakeNested(batch, &draws);
    const std::vector<DimIndex> index = RandomIndex(batch, &draws);
    const absl::StatusOr<TensorDict> result = At(dict, index);
    if (!result.ok()) {
      // Behind an ellipsis RandomIndex does not know the sizes it meets.
      ASSERT_TRUE(std::any_of(index.begin(), index.end(), [](const auto& e) {
        return std::holds_alternative<Ellipsis>(e.value());
      })) << result.status();
      continue;
    }
    ++compared;
    const Oracle oracle(batch, index);
    size_t block_at;
    const Shape shape = *Shape::Create(oracle.Sizes(&block_at));
    ASSERT_EQ(result->batch_shape(), shape) << round;
    const bool copies = !oracle.Block().empty();
    advanced += copies;
    const Tensor& got = *result->Find("n/b");
    ASSERT_EQ(got.shape(), shape.Concat({3}));
    ASSERT_EQ(result->Find("n/c/d")->shape(), shape.Concat({2}));
    if (got.num_elements() > 0) {
      ASSERT_EQ(got.buffer() == dict.Find("n/b")->buffer(), !copies);
    }
    ForEachCoordinate(got.shape(), [&](const Coordinate& at) {
      Coordinate from = oracle.SourceOf(batch, {at.begin(), at.end() - 1});
      from.push_back(at.back());
      ASSERT_EQ(ElementAt<int32_t>(got, at),
                ElementAt<int32_t>(*dict.Find("n/b"), from))
          << round;
    });

    // Writing: what was not named stays, the last one wins.
    TensorDict want = *dict.Clone();
    TensorDict source = *result->Clone();
    source.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
      for (int64_t i = 0; i < leaf.num_elements(); ++i) {
        leaf.data<int32_t>()[i] = 1000 + static_cast<int32_t>(i);
      }
    });
    want.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
      const Tensor& from = *source.Find(key);
      ForEachCoordinate(from.shape(), [&](const Coordinate& at) {
        Coordinate to =
            oracle.SourceOf(batch, {at.begin(), at.begin() + shape.rank()});
        to.insert(to.end(), at.begin() + shape.rank(), at.end());
        ElementAt<int32_t>(leaf, to) = ElementAt<int32_t>(from, at);
      });
    });
    RILL_ASSERT_OK(SetAt(dict, index, source));
    ASSERT_THAT(dict, BitEqualTo(want)) << round;
  }
  EXPECT_GT(advanced, 1000);
  EXPECT_GT(compared, 4000);
}

TEST(IndexTest, TensorsAreIndexedLikeBatches) {
  const Tensor t = Iota<int32_t>({3, 4});
  EXPECT_THAT(At(t, {Range{.step = -2}, -1}),
              IsOkAndHolds(TensorElementsAre<int32_t>(11, 3)));
  EXPECT_THAT(At(t, {std::vector<int64_t>{2, 0}, std::vector<int64_t>{-1, 1}}),
              IsOkAndHolds(TensorElementsAre<int32_t>(11, 1)));
  RILL_ASSERT_OK(SetAt(t, {kEllipsis, 0}, MakeTensor<int32_t>({-5}, {})));
  EXPECT_THAT(
      t, TensorElementsAre<int32_t>(-5, 1, 2, 3, -5, 5, 6, 7, -5, 9, 10, 11));
  // Parts of a tensor are written to other parts of it.
  RILL_ASSERT_OK(SetAt(t, {std::vector<int64_t>{0, 1}}, *At(t, {Range{1}})));
  EXPECT_THAT(
      t, TensorElementsAre<int32_t>(-5, 5, 6, 7, -5, 9, 10, 11, -5, 9, 10, 11));
}

TEST(IndexTest, RepeatedElementsAreReadAsOftenAsTheyStand) {
  const Tensor t = *Iota<int32_t>({1, 3}).Expand({2, 3});
  EXPECT_THAT(At(t, {Range{}, std::vector<int64_t>{2, 0}}),
              IsOkAndHolds(TensorElementsAre<int32_t>(2, 0, 2, 0)));
}

TEST(IndexTest, AdvancedDimensionsStandAsInTorch) {
  const Tensor t = Iota<int32_t>({2, 3, 4, 5});
  const std::vector<int64_t> two = {0, 1};
  const auto shape = [&](const std::vector<DimIndex>& index) {
    return At(t, index)->shape();
  };
  EXPECT_EQ(shape({Range{}, two, two}), Shape({2, 2, 5}));
  EXPECT_EQ(shape({two, Range{}, two}), Shape({2, 3, 5}));
  EXPECT_EQ(shape({Range{}, two, kNewAxis, two}), Shape({2, 2, 1, 5}));
  EXPECT_EQ(shape({0, Range{}, two}), Shape({3, 2, 5}));  // NumPy: 2, 3, 5.
  EXPECT_EQ(shape({two, 0, two}), Shape({2, 5}));
  EXPECT_EQ(shape({Range{}, MakeTensor<int64_t>({0, 1, 2}, {3, 1}), two}),
            Shape({2, 3, 2, 5}));
}

TEST(IndexTest, SourcesAreBroadcast) {
  TensorDict dict = MakeSteps(4);
  const TensorDict row = *MakeSteps(1, 9).Clone();
  RILL_ASSERT_OK(SetAt(dict, {Range{1, 3}}, row));
  EXPECT_THAT(*dict.Find("action"), TensorElementsAre<int64_t>(0, 9, 9, 3));
  RILL_ASSERT_OK(SetAt(dict, {std::vector<int64_t>{0, 3}}, *row.Index(0)));
  EXPECT_THAT(*dict.Find("action"), TensorElementsAre<int64_t>(9, 9, 9, 9));
  EXPECT_THAT(dict.Index(3), IsOkAndHolds(BitEqualTo(*row.Index(0))));
}

TEST(IndexTest, RefusedWritesChangeNothing) {
  const TensorDict dict = MakeSteps(4);
  const TensorDict before = *dict.Clone();
  const std::vector<DimIndex> all_kinds[] = {{Range{0, 2}},
                                             {std::vector<int64_t>{0, 2}}};
  for (const std::vector<DimIndex>& index : all_kinds) {
    TensorDict source = *MakeSteps(2, 7).Clone();
    ASSERT_TRUE(source.Delete("next/done").ok());
    EXPECT_THAT(SetAt(dict, index, source),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("next/done")));
    ASSERT_TRUE(source.Set("next/done", Iota<int32_t>({2, 1})).ok());
    EXPECT_THAT(SetAt(dict, index, source),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("got int32[2, 1]"),
                               HasSubstr("want bool[2, 1]"))));
    source = MakeSteps(2, 7);
    ASSERT_TRUE(source.Set("more", Iota<int32_t>({2})).ok());
    EXPECT_THAT(SetAt(dict, index, source),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("more")));
    EXPECT_THAT(SetAt(dict, index, MakeSteps(3)),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(dict, BitEqualTo(before));

  // The last leaf repeats its elements.
  TensorDict repeats = *MakeSteps(4).Clone();
  const Tensor wide = *Iota<int32_t>({1}).Expand({4});
  ASSERT_TRUE(repeats.Set("wide", wide).ok());
  TensorDict source = *MakeSteps(2, 7).Clone();
  ASSERT_TRUE(source.Set("wide", Iota<int32_t>({2})).ok());
  for (const std::vector<DimIndex>& index : all_kinds) {
    EXPECT_THAT(SetAt(repeats, index, source),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_THAT(*repeats.Find("action"), TensorElementsAre<int64_t>(0, 1, 2, 3));
}

TEST(IndexTest, ErrorsNameWhatDoesNotFit) {
  const TensorDict dict = MakeSteps(4);
  const auto code = [&](const std::vector<DimIndex>& index) {
    return At(dict, index).status();
  };
  EXPECT_THAT(code({4}), StatusIs(absl::StatusCode::kOutOfRange,
                                  AllOf(HasSubstr("index 4 is outside [-4, 4)"),
                                        HasSubstr("batch shape [4]"))));
  EXPECT_THAT(code({kMin}), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(code({std::vector<int64_t>{0, -5}}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("index -5")));
  EXPECT_THAT(code({0, 0}), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("for 2 dimensions")));
  EXPECT_THAT(code({kEllipsis, kEllipsis}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(code({Range{.step = 0}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(code({Iota<int32_t>({2})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got int32, want int64")));
  EXPECT_THAT(code({*Tensor::Zeros(DType::kBool, {3})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got [3], want [4]")));
  EXPECT_THAT(code({kNewAxis, kNewAxis, kNewAxis, kNewAxis, kNewAxis, kNewAxis,
                    kNewAxis}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const Tensor two = *Tensor::Zeros(DType::kInt64, {2});
  EXPECT_THAT(
      At(Iota<int32_t>({3, 3}), {two, *Tensor::Zeros(DType::kInt64, {3})}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("sizes 2 and 3")));
  // A list of 2^40 indices is not tried.
  const Tensor many = *Tensor::Zeros(DType::kInt64, {1 << 20, 1});
  const Tensor across = *many.Permute({1, 0});
  EXPECT_THAT(At(Iota<int32_t>({3, 3}), {many, across}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(IndexTest, RangesOfAnyNumbersAreCut) {
  const Tensor t = Iota<int32_t>({5});
  EXPECT_THAT(At(t, {Range{kMin, kMax, kMax}}),
              IsOkAndHolds(TensorElementsAre<int32_t>(0)));
  EXPECT_THAT(At(t, {Range{kMax, kMin, kMin}}),
              IsOkAndHolds(TensorElementsAre<int32_t>(4)));
  EXPECT_THAT(At(t, {Range{4, 1, 1}}),
              IsOkAndHolds(TensorIs(DType::kInt32, {0})));
  EXPECT_THAT(At(t, {Range{1, 4, -1}}),
              IsOkAndHolds(TensorIs(DType::kInt32, {0})));
  EXPECT_THAT(At(t, {Range{-2}}),
              IsOkAndHolds(TensorElementsAre<int32_t>(3, 4)));
}

TEST(IndexSelectTest, MaskedSelectTakesTrueRowsInOrder) {
  TensorDict dict({2, 3});
  ASSERT_TRUE(dict.Set("x", Iota<int32_t>({2, 3, 2})).ok());
  const Tensor mask =
      MakeTensor<bool>({true, false, true, false, false, true}, {2, 3});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows, MaskedSelect(dict, mask));
  EXPECT_EQ(rows.batch_shape(), Shape({3}));
  EXPECT_THAT(*rows.Find("x"), TensorElementsAre<int32_t>(0, 1, 4, 5, 10, 11));
  EXPECT_EQ(
      MaskedSelect(dict, MakeTensor<bool>({false, true}, {2}))->batch_shape(),
      Shape({1, 3}));
  EXPECT_THAT(MaskedSelect(dict, *mask.Permute({1, 0})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MaskedSelect(dict, Iota<int64_t>({2})),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(IndexSelectTest, GatherAlongAgreesWithCoordinates) {
  Draws draws(12);
  for (int round = 0; round < 500; ++round) {
    const int rank = static_cast<int>(draws.Int(1, 4));
    const Shape batch = draws.RandomShape(rank, 4);
    const TensorDict dict = MakeNested(batch, &draws);
    const int dim = static_cast<int>(draws.Int(0, rank));
    std::vector<int64_t> sizes(rank);
    for (int d = 0; d < rank; ++d) {
      sizes[d] = d == dim ? draws.Int(0, 5) * (batch[d] > 0)
                          : draws.Int(0, batch[d] + 1);
    }
    Tensor index = *Tensor::Empty(DType::kInt64, *Shape::Create(sizes));
    for (int64_t i = 0; i < index.num_elements(); ++i) {
      index.data<int64_t>()[i] = draws.Int(-batch[dim], batch[dim]);
    }
    index = draws.Scattered(index);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict result,
                              GatherAlong(dict, dim - rank, index));
    const Tensor& got = *result.Find("n/b");
    ASSERT_EQ(got.shape(), index.shape().Concat({3}));
    ForEachCoordinate(got.shape(), [&](const Coordinate& at) {
      Coordinate from = at;
      from[dim] = ElementAt<int64_t>(index, {at.begin(), at.end() - 1});
      if (from[dim] < 0) from[dim] += batch[dim];
      ASSERT_EQ(ElementAt<int32_t>(got, at),
                ElementAt<int32_t>(*dict.Find("n/b"), from));
    });
  }
  const TensorDict dict = MakeSteps(3);
  EXPECT_THAT(GatherAlong(dict, 0, MakeTensor<int64_t>({3}, {1})),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("index 3")));
  EXPECT_THAT(GatherAlong(dict, 0, Iota<int64_t>({1, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(GatherAlong(dict, 1, Iota<int64_t>({1})),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(IndexSelectTest, WhereTakesRowsOfOneSideOrTheOther) {
  const TensorDict a = MakeSteps(3, 0);
  const TensorDict b = MakeSteps(3, 100);
  const Tensor mask = MakeTensor<bool>({false, true, false}, {3});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict mixed, Where(mask, a, b));
  EXPECT_THAT(mixed.Index(0), IsOkAndHolds(BitEqualTo(*b.Index(0))));
  EXPECT_THAT(mixed.Index(1), IsOkAndHolds(BitEqualTo(*a.Index(1))));
  EXPECT_THAT(mixed.Index(2), IsOkAndHolds(BitEqualTo(*b.Index(2))));
  EXPECT_THAT(*b.Find("action"), TensorElementsAre<int64_t>(100, 101, 102));

  Draws draws(13);
  const Tensor x = draws.Scattered(Iota<int32_t>({3, 2, 2}));
  const Tensor y = draws.Scattered(*Tensor::Zeros(DType::kInt32, {3, 2, 2}));
  EXPECT_THAT(Where(*mask.Unsqueeze(1)->Expand({3, 2}), x, y),
              IsOkAndHolds(TensorElementsAre<int32_t>(0, 0, 0, 0, 4, 5, 6, 7, 0,
                                                      0, 0, 0)));
  EXPECT_THAT(Where(mask, x, Iota<float>({3, 2, 2})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Where(mask, a, *b.Exclude({"action"})),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("action")));
  EXPECT_THAT(Where(mask, *a.Exclude({"action"}), b),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("action")));
  EXPECT_THAT(Where(mask, *a.Slice(0, 0, 2), *b.Slice(0, 0, 2)),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace rill::ops
