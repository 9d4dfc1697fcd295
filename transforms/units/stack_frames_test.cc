// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/stack_frames.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/conformance/fake_sample_reader.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/unit_transform_conformance.h"
#include "rill/transforms/testing/fake_units.h"
#include "rill/transforms/units/row_arithmetic.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using Padding = StackFrames::Padding;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

std::unique_ptr<UnitTransform> Make(const StackFrames::Options& options) {
  return *RowArithmetic::Create({.frames = options});
}

// Observations 1 .. 6 with an end after 3; next observations 2, 3, 9, 5, 6, 9.
FakeSampleReader SixSteps() {
  TensorDict store({6});
  RILL_EXPECT_OK(store.Set("observation",
                           *Tensor::From<float>({1, 2, 3, 4, 5, 6}, {6, 1})));
  RILL_EXPECT_OK(store.Set("next/observation",
                           *Tensor::From<float>({2, 3, 9, 5, 6, 9}, {6, 1})));
  return FakeSampleReader(TensorDictSpec::Of(store), store);
}

const FakeUnits kSixUnits({false, false, true, false, false, true});

TEST(StackFramesTest, T5_SameRepeatsTheFirstFrame) {
  const auto frames = Make({.num_frames = 3, .keys = {"observation"}});
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      SixSteps().Read(*frames, kSixUnits.Frames({0, 1, 2, 3, 4, 5}, 3)));
  EXPECT_THAT(
      batch.Get("observation"),
      IsOkAndHolds(AllOf(TensorIs(DType::kFloat32, {6, 3}),
                         TensorElementsAre<float>(1, 1, 1, 1, 1, 2, 1, 2, 3,  //
                                                  4, 4, 4, 4, 4, 5, 4, 5, 6))));
  EXPECT_THAT(batch.Get("next/observation"),
              IsOkAndHolds(TensorElementsAre<float>(2, 3, 9, 5, 6, 9)));
}

TEST(StackFramesTest, T5_ConstantStandsBeforeTheFirstFrame) {
  const auto frames = Make({.num_frames = 3,
                            .keys = {"observation"},
                            .padding = Padding::kConstant});
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      SixSteps().Read(*frames, kSixUnits.Frames({0, 1, 2, 3, 4, 5}, 3)));
  EXPECT_THAT(batch.Get("observation"), IsOkAndHolds(TensorElementsAre<float>(
                                            0, 0, 1, 0, 1, 2, 1, 2, 3,  //
                                            0, 0, 4, 0, 4, 5, 4, 5, 6)));
}

// The stack that the environment would have shown one step later.
TEST(StackFramesTest, NextStackEndsWithTheOwnAndTheNextFrame) {
  for (const bool both : {false, true}) {
    std::vector<std::string> keys = {"next/observation"};
    if (both) keys.insert(keys.begin(), "observation");
    const auto frames = Make({.num_frames = 3,
                              .keys = keys,
                              .padding = Padding::kConstant,
                              .value = -1});
    RILL_ASSERT_OK_AND_ASSIGN(
        const TensorDict batch,
        SixSteps().Read(*frames, kSixUnits.Frames({0, 1, 2, 3}, 3)));
    EXPECT_THAT(batch.Get("next/observation"),
                IsOkAndHolds(TensorElementsAre<float>(-1, 1, 2, 1, 2, 3, 2, 3,
                                                      9, -1, 4, 5)));
    EXPECT_EQ(batch.Find("observation")->shape(), Shape({4, both ? 3 : 1}));
  }
}

TEST(StackFramesTest, OneAndTwoFrames) {
  const std::vector<std::string> keys = {"observation", "next/observation"};
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict batch, SixSteps().Read(*Make({.num_frames = 1, .keys = keys}),
                                        kSixUnits.Frames({2, 3}, 1)));
  EXPECT_THAT(batch.Get("observation"),
              IsOkAndHolds(TensorElementsAre<float>(3, 4)));
  EXPECT_THAT(batch.Get("next/observation"),
              IsOkAndHolds(TensorElementsAre<float>(9, 5)));
  RILL_ASSERT_OK_AND_ASSIGN(
      batch, SixSteps().Read(*Make({.num_frames = 2, .keys = keys}),
                             kSixUnits.Frames({2, 3}, 2)));
  EXPECT_THAT(batch.Get("observation"),
              IsOkAndHolds(TensorElementsAre<float>(2, 3, 4, 4)));
  EXPECT_THAT(batch.Get("next/observation"),
              IsOkAndHolds(TensorElementsAre<float>(3, 9, 4, 5)));
}

TEST(StackFramesTest, ReadsFramesOfTheRootAlone) {
  const auto frames =
      Make({.num_frames = 3, .keys = {"observation", "next/observation"}});
  RILL_ASSERT_OK_AND_ASSIGN(const auto reads, frames->PlanReads(TedSpec()));
  EXPECT_THAT(reads.rows.apart,
              UnorderedElementsAre("observation", "next/observation"));
  EXPECT_THAT(reads.rows.batch, Not(Contains("observation")));
  ASSERT_EQ(reads.context.size(), 1u);
  EXPECT_THAT(reads.context[0].apart, ElementsAre("observation"));
  EXPECT_THAT(reads.context[0].batch, ElementsAre());
}

// --- Against a plain oracle --------------------------------------------------

// Leaves of each width of a piece and of nested keys.
TensorDictSpec ManyLeaves() {
  TensorDictSpec spec = TedSpec();
  const auto add = [&spec](const char* key, const LeafSpec& leaf) {
    RILL_EXPECT_OK(spec.Set(key, leaf));
    RILL_EXPECT_OK(spec.Set(std::string("next/") + key, leaf));
  };
  add("a/byte", LeafSpec::Unbounded(DType::kUInt8, {2, 3, 4}));
  add("a/half", LeafSpec::Unbounded(DType::kFloat16, {2, 3, 1}));
  add("double", LeafSpec::Bounded(DType::kFloat64, {2, 2, 5}, -1, 1));
  add("choice", LeafSpec::OneHot(5, DType::kInt32, {1, 2}));
  add("none", LeafSpec::Unbounded(DType::kInt32, {3, 0, 2}));
  return spec;
}

StackFrames::Options ManyLeavesOptions(int dim, bool new_dim, Padding padding) {
  return {.num_frames = 4,
          .keys = {"a/byte", "next/a/byte", "a/half", "double", "next/double",
                   "next/choice", "choice", "none", "next/none"},
          .dim = dim,
          .new_dim = new_dim,
          .padding = padding,
          .value = padding == Padding::kSame ? 0.0 : 1.0};
}

// By the book: frames joined as Tensors.
Tensor Join(std::vector<Tensor> frames, int dim, bool new_dim) {
  std::vector<TensorDict> parts;
  for (Tensor& frame : frames) {
    if (new_dim) frame = *frame.Unsqueeze(frame.rank() + 1 + dim);
    TensorDict part(frame.shape().Prefix(frame.rank() + dim + 1));
    RILL_EXPECT_OK(part.Set("frame", frame));
    parts.push_back(part);
  }
  return *Cat(parts, frames[0].rank() + dim)->Get("frame");
}

void ExpectStacks(const StackFrames::Options& options, const FakeUnits& units,
                  const FakeSampleReader& reader,
                  const std::vector<Slot>& anchors) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      reader.Read(*Make(options), units.Frames(anchors, options.num_frames)));
  for (const std::string& key : options.keys) {
    const bool is_next = key.rfind("next/", 0) == 0;
    const Tensor root = *reader.store().Find(is_next ? key.substr(5) : key);
    for (size_t i = 0; i < anchors.size(); ++i) {
      std::vector<Tensor> frames;
      const int64_t back = options.num_frames - (is_next ? 2 : 1);
      for (Slot slot = anchors[i] - back; slot <= anchors[i]; ++slot) {
        const Slot first = units.First(anchors[i]);
        Tensor frame = *root.Index(std::max(slot, first))->Clone();
        if (slot < first && options.padding == Padding::kConstant) {
          frame = *Cast(*Tensor::From<double>({1}, {1}), frame.dtype());
          frame = *frame.Index(0)->Expand(root.shape().Suffix(1))->Contiguous();
        }
        frames.push_back(frame);
      }
      if (is_next)
        frames.push_back(*reader.store().Find(key)->Index(anchors[i]));
      EXPECT_THAT(*batch.Find(key)->Index(static_cast<int64_t>(i)),
                  BitEqualTo(Join(frames, options.dim, options.new_dim)))
          << key << " of draw " << i << ", dim " << options.dim;
    }
  }
}

TEST(StackFramesTest, T5_AgreesWithJoinedTensorsForEveryDimension) {
  constexpr int64_t kRows = 60;
  const Rng rng(5, RngStream::kUser);
  uint64_t round = 0;
  for (const bool new_dim : {false, true}) {
    for (const Padding padding : {Padding::kSame, Padding::kConstant}) {
      for (int dim = -1; dim >= (new_dim ? -4 : -3); --dim, ++round) {
        std::vector<bool> ends;
        for (uint32_t i = 0; i < kRows; ++i) {
          ends.push_back(rng.UniformInt(round, i, 6) == 0);
        }
        std::vector<Slot> anchors;
        for (uint32_t i = 0; i < 30; ++i) {
          anchors.push_back(rng.UniformInt(round, 100 + i, kRows));
        }
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict store,
                                  ManyLeaves().Random({kRows}, rng, round));
        ExpectStacks(ManyLeavesOptions(dim, new_dim, padding), FakeUnits(ends),
                     FakeSampleReader(ManyLeaves(), store), anchors);
      }
    }
  }
}

// --- Specs and errors --------------------------------------------------------

TEST(StackFramesTest, DomainIsKeptWhereStacksHaveIt) {
  const auto stacked = [](const StackFrames::Options& options,
                          const char* key) {
    auto spec = Make(options)->BatchSpec(ManyLeaves());
    RILL_EXPECT_OK(spec);
    return *spec->Find(key);
  };
  EXPECT_EQ(stacked(ManyLeavesOptions(-2, false, Padding::kSame), "double"),
            LeafSpec::Bounded(DType::kFloat64, {2, 8, 5}, -1, 1));
  EXPECT_EQ(stacked(ManyLeavesOptions(-3, true, Padding::kConstant), "double"),
            LeafSpec::Bounded(DType::kFloat64, {2, 4, 2, 5}, -1, 1));
  EXPECT_EQ(stacked(ManyLeavesOptions(-2, false, Padding::kSame), "choice"),
            LeafSpec::OneHot(5, DType::kInt32, {1, 8}));
  EXPECT_EQ(stacked(ManyLeavesOptions(-1, false, Padding::kSame), "choice"),
            LeafSpec::Unbounded(DType::kInt32, {1, 2, 20}));
}

TEST(StackFramesTest, OptionsOutOfRangeAreNamed) {
  const std::vector<std::string> keys = {"observation"};
  for (const int64_t n : {int64_t{0}, int64_t{-4}, int64_t{1} << 40}) {
    EXPECT_THAT(StackFrames::Create({.num_frames = n, .keys = keys}),
                StatusIs(kInvalidArgument, HasSubstr("num_frames")));
  }
  for (const int dim : {0, 2, -9}) {
    EXPECT_THAT(StackFrames::Create({.keys = keys, .dim = dim}),
                StatusIs(kInvalidArgument, HasSubstr("dim")));
  }
  EXPECT_THAT(StackFrames::Create({}),
              StatusIs(kInvalidArgument, HasSubstr("keys")));
  EXPECT_THAT(StackFrames::Create({.keys = {"a", "a"}}),
              StatusIs(kInvalidArgument, HasSubstr("twice")));
}

TEST(StackFramesTest, RowsThatItCannotWorkOnAreNamed) {
  const auto spec_of = [](const StackFrames::Options& options,
                          const TensorDictSpec& rows) {
    return Make(options)->BatchSpec(rows).status();
  };
  EXPECT_THAT(spec_of({.keys = {"observation"}, .dim = -2}, TedSpec()),
              StatusIs(kInvalidArgument, HasSubstr("new_dim")));
  EXPECT_THAT(spec_of({.keys = {"next/reward"}}, TedSpec()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"reward\"")));
  EXPECT_THAT(spec_of({.keys = {"action"},
                       .new_dim = true,
                       .padding = Padding::kConstant,
                       .value = std::nan("")},
                      TedSpec()),
              StatusIs(kInvalidArgument, HasSubstr("int64")));
  TensorDictSpec rows = TedSpec();
  RILL_ASSERT_OK(
      rows.Set("next/observation", LeafSpec::Unbounded(DType::kFloat32, {5})));
  EXPECT_THAT(spec_of({.keys = {"next/observation"}}, rows),
              StatusIs(kInvalidArgument, HasSubstr("next/observation")));
  RILL_ASSERT_OK(rows.Set(
      "observation",
      LeafSpec::Unbounded(DType::kUInt8, {int64_t{1} << 40, 1 << 20})));
  EXPECT_THAT(spec_of({.num_frames = 16, .keys = {"observation"}}, rows),
              StatusIs(kInvalidArgument, HasSubstr("limits")));
  RILL_ASSERT_OK(rows.Set(
      "observation", LeafSpec::Unbounded(DType::kFloat64, {int64_t{1} << 61})));
  EXPECT_THAT(spec_of({.num_frames = 2, .keys = {"observation"}}, rows),
              StatusIs(kInvalidArgument, HasSubstr("limits")));
}

TEST(StackFramesTest, PlansOfAnotherNumberOfFramesAreRefused) {
  const auto frames = Make({.num_frames = 3, .keys = {"observation"}});
  for (const int64_t n : {1, 2, 4}) {
    EXPECT_THAT(SixSteps().Read(*frames, kSixUnits.Frames({1, 3}, n)),
                StatusIs(absl::StatusCode::kInternal,
                         HasSubstr("want 2 frames before")));
  }
}

UnitTransformUnderTest UnderTest(const StackFrames::Options& options) {
  return {.make = [options] { return Make(options); },
          .rows = ManyLeaves(),
          .plan =
              [options](const std::vector<Slot>& anchors) {
                return FakeUnits::OfSevens(UnitTransformUnderTest::kRows)
                    .Frames(anchors, options.num_frames);
              },
          .changes = options.keys};
}

}  // namespace

INSTANTIATE_UNIT_TRANSFORM_CONFORMANCE(
    Same, UnderTest(ManyLeavesOptions(-1, false, Padding::kSame)));
INSTANTIATE_UNIT_TRANSFORM_CONFORMANCE(
    Constant, UnderTest(ManyLeavesOptions(-2, true, Padding::kConstant)));

}  // namespace rill
