// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/legal_choices.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kLanes = 16;

// Each kind of choice, with and without dimensions before it.
std::vector<LeafSpec> Kinds() {
  return {LeafSpec::Categorical(5),
          LeafSpec::Categorical(3, DType::kUInt8, {2}),
          LeafSpec::Categorical(4, DType::kFloat32),
          LeafSpec::OneHot(4),
          LeafSpec::OneHot(3, DType::kFloat32, {2}),
          LeafSpec::MultiCategorical({2, 3}),
          LeafSpec::MultiCategorical({4, 2, 3}, DType::kInt32, {2}),
          LeafSpec::MultiOneHot({3, 2}),
          LeafSpec::MultiOneHot({2, 4}, DType::kInt64, {2})};
}

std::vector<int64_t> SizesOf(const LeafSpec& spec) {
  if (!spec.nvec().empty()) return {spec.nvec().begin(), spec.nvec().end()};
  return {spec.num_categories};
}

// A random mask with a legal option in each choice.
Tensor MaskFor(const LeafSpec& spec, const Rng& rng) {
  const Shape shape = Shape({kLanes}).Concat(*LegalMaskShape(spec));
  Tensor mask = *Tensor::Zeros(DType::kBool, shape);
  bool* at = mask.data<bool>();
  uint32_t draw = 0;
  const bool* const end = at + mask.num_elements();
  while (at != end) {
    for (const int64_t n : SizesOf(spec)) {
      for (int64_t i = 0; i < n; ++i) at[i] = rng.UniformInt(0, draw++, 2) == 0;
      at[rng.UniformInt(0, draw++, n)] = true;
      at += n;
    }
  }
  return mask;
}

// LeafSpec::WithMask is the oracle: a spec whose mask is that of these lanes.
TEST(LegalChoicesTest, DrawsAndChecksAsASpecWithTheMask) {
  for (const LeafSpec& spec : Kinds()) {
    SCOPED_TRACE(spec.ToString());
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const Tensor mask = MaskFor(spec, Rng(seed));
      const LegalChoices legal = {
          .key = "action", .mask_key = "mask", .spec = spec, .mask = mask};
      RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec oracle, spec.WithMask(mask));
      for (uint64_t batch = 0; batch < 4; ++batch) {
        const Rng rng(seed, RngStream::kPolicy);
        RILL_ASSERT_OK_AND_ASSIGN(const Tensor want,
                                  oracle.Random({kLanes}, rng, batch));
        // Written over what was there before.
        RILL_ASSERT_OK_AND_ASSIGN(const Tensor got, spec.One({kLanes}));
        RILL_ASSERT_OK(legal.Random("T", rng, batch, got));
        EXPECT_THAT(got, BitEqualTo(want));
        RILL_EXPECT_OK(legal.Check("T", got));
        // Draws of the whole domain, most of which the mask forbids somewhere.
        RILL_ASSERT_OK_AND_ASSIGN(const Tensor any,
                                  spec.Random({kLanes}, rng, batch));
        EXPECT_EQ(legal.Check("T", any).ok(),
                  oracle.CheckValues("action", {kLanes}, any).ok());
      }
    }
  }
}

TEST(LegalChoicesTest, AMaskOfTheSpecHoldsBesideIt) {
  const Tensor own = *Tensor::From<bool>({true, true, false}, {3});
  const LeafSpec spec = *LeafSpec::Categorical(3).WithMask(own);
  const Tensor mask =
      *Tensor::From<bool>({false, true, true, true, false, true}, {2, 3});
  const LegalChoices legal = {
      .key = "action", .mask_key = "mask", .spec = spec, .mask = mask};
  const Tensor out = *spec.Zero({2});
  for (uint64_t batch = 0; batch < 8; ++batch) {
    RILL_ASSERT_OK(legal.Random("T", Rng(1), batch, out));
    EXPECT_THAT(out, TensorElementsAre<int64_t>(1, 0));
  }
}

TEST(LegalChoicesTest, AForbiddenOptionNamesLaneChoiceAndLeaf) {
  const LeafSpec spec = LeafSpec::MultiCategorical({2, 3});
  const Tensor mask = *Tensor::From<bool>(
      {true, true, true, true, true, false, true, false, true, true}, {2, 5});
  const LegalChoices legal = {
      .key = "move", .mask_key = "legal", .spec = spec, .mask = mask};
  RILL_EXPECT_OK(
      legal.Check("T", *Tensor::From<int64_t>({0, 0, 1, 2}, {2, 2})));
  EXPECT_THAT(
      legal.Check("T", *Tensor::From<int64_t>({0, 0, 1, 0}, {2, 2})),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "T: lane 1, choice 1: \"move\": got option 0, want one that "
               "\"legal\" allows, say 1"));
  EXPECT_THAT(legal.Check("T", *Tensor::From<int64_t>({0, 3, 1, 1}, {2, 2})),
              IsInvalidArgument("lane 0, choice 1: \"move\": got no single"));
}

TEST(LegalChoicesTest, NothingLegalIsTheMasksFaultAndNamesIt) {
  const LeafSpec spec = LeafSpec::Categorical(2);
  const Tensor mask =
      *Tensor::From<bool>({true, true, false, false, true, false}, {3, 2});
  const LegalChoices legal = {
      .key = "move", .mask_key = "legal", .spec = spec, .mask = mask};
  const auto nothing =
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("lane 1: \"legal\" allows no option of "
                               "\"move\"")));
  EXPECT_THAT(legal.Check("T", *Tensor::From<int64_t>({1, 1, 0}, {3})),
              nothing);
  EXPECT_THAT(legal.Random("T", Rng(1), 0, *spec.Zero({3})), nothing);
  std::vector<double> sums(3);
  EXPECT_THAT(legal.AddLogProbs("T", 1, absl::MakeSpan(sums)), nothing);
  // A wrong option has precedence.
  EXPECT_THAT(legal.Check("T", *Tensor::From<int64_t>({1, 1, 1}, {3})),
              IsInvalidArgument("lane 2"));
}

// A byte of a bool from elsewhere that is neither 0 nor 1.
TEST(LegalChoicesTest, ABoolByteOfTwoIsTrue) {
  const LeafSpec spec = LeafSpec::Categorical(2);
  const Tensor mask = *Tensor::Zeros(DType::kBool, {1, 2});
  mask.raw_data()[1] = std::byte{2};
  const LegalChoices legal = {
      .key = "move", .mask_key = "legal", .spec = spec, .mask = mask};
  const Tensor out = *spec.Zero({1});
  RILL_ASSERT_OK(legal.Random("T", Rng(1), 0, out));
  EXPECT_THAT(out, TensorElementsAre<int64_t>(1));
}

TEST(LegalChoicesTest, LogProbabilitiesAreThoseOfTheDraws) {
  for (const LeafSpec& spec : Kinds()) {
    SCOPED_TRACE(spec.ToString());
    const Tensor mask = MaskFor(spec, Rng(3));
    const LegalChoices legal = {
        .key = "action", .mask_key = "mask", .spec = spec, .mask = mask};
    // Rows of choices of a lane: the dimensions before a row's.
    const bool has_row = spec.domain != LeafSpec::Domain::kCategorical;
    const int64_t lead =
        spec.shape.Prefix(spec.shape.rank() - (has_row ? 1 : 0)).num_elements();
    for (const int64_t parts : {int64_t{1}, lead}) {
      std::vector<double> sums(kLanes * parts, 0.5);
      RILL_ASSERT_OK(legal.AddLogProbs("T", parts, absl::MakeSpan(sums)));
      // The options of a part of a lane, in the order of the mask.
      const bool* at = mask.data<bool>();
      for (const double sum : sums) {
        double want = 0.5;
        for (int64_t row = 0; row < lead / parts; ++row) {
          for (const int64_t n : SizesOf(spec)) {
            want -= std::log(std::count(at, at + n, true));
            at += n;
          }
        }
        EXPECT_NEAR(sum, want, 1e-12);
      }
    }
  }
}

TEST(LegalChoicesTest, OtherLayoutsAreRefused) {
  EXPECT_THAT(LegalMaskShape(LeafSpec::Binary({2})).status(),
              IsInvalidArgument("want choices"));
  const LeafSpec spec = LeafSpec::Categorical(3);
  const Tensor bytes = *Tensor::Zeros(DType::kUInt8, {2, 3});
  const LegalChoices wrong = {
      .key = "move", .mask_key = "legal", .spec = spec, .mask = bytes};
  EXPECT_THAT(
      wrong.Check("T", *spec.Zero({2})),
      IsInvalidArgument("\"legal\": got uint8[2, 3] on cpu, want contiguous "
                        "bool[2, 3]"));
  const Tensor mask = *Tensor::Zeros(DType::kBool, {2, 3});
  const LegalChoices legal = {
      .key = "move", .mask_key = "legal", .spec = spec, .mask = mask};
  EXPECT_THAT(legal.Check("T", *spec.Zero({3})),
              IsInvalidArgument("\"move\": got int64[3]"));
  EXPECT_THAT(legal.Random("T", Rng(1), 0, *spec.Zero({3})),
              IsInvalidArgument("\"move\": got int64[3]"));
  std::vector<double> sums(2);
  EXPECT_THAT(legal.AddLogProbs("T", 2, absl::MakeSpan(sums)),
              IsInvalidArgument("2 parts of 1 choices"));
}

}  // namespace
}  // namespace rill
