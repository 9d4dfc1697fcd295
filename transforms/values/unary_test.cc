// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/values/unary.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/wrong_parts.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// The mean of a row of float32, as float64[1].
Unary::Options Means(const std::string& in, const std::string& out) {
  return {.in_keys = {in},
          .out_keys = {out},
          .fn =
              [](const BoundLeaf& from, const BoundLeaf& to) {
                const int64_t n = from.shape.num_elements();
                for (int64_t i = 0; i < to.rows; ++i) {
                  double sum = 0;
                  for (int64_t k = 0; k < n; ++k) {
                    sum += from.As<float>()[static_cast<size_t>(i * n + k)];
                  }
                  to.As<double>()[static_cast<size_t>(i)] =
                      sum / static_cast<double>(n);
                }
                return absl::OkStatus();
              },
          .spec_fn = [](const LeafSpec& leaf) -> absl::StatusOr<LeafSpec> {
            if (leaf.dtype != DType::kFloat32) {
              return absl::InvalidArgumentError("got " + leaf.ToString() +
                                                ", want float32");
            }
            return LeafSpec::Unbounded(DType::kFloat64, {1});
          }};
}

absl::Status Negate(const BoundLeaf& from, const BoundLeaf& to) {
  for (size_t i = 0; i < to.As<float>().size(); ++i) {
    to.As<float>()[i] = -from.As<float>()[i];
  }
  return absl::OkStatus();
}

TensorDictSpec WithVectorAction() {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(
      spec.Set("action", LeafSpec::Bounded(DType::kFloat32, {3}, -2, 2)));
  return spec;
}

Unary::Options Negations() {
  return {.in_keys = {"observation"},
          .in_keys_inv = {"action"},
          .fn = Negate,
          .inv_fn = Negate};
}

TEST(UnaryTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto root,
      Unary::Create({.in_keys = {"observation"},
                     .fn = [](const BoundLeaf& from, const BoundLeaf& to) {
                       for (size_t i = 0; i < to.As<float>().size(); ++i) {
                         to.As<float>()[i] = std::sqrt(from.As<float>()[i]);
                       }
                       return absl::OkStatus();
                     }}));
  TensorDict batch({2});
  RILL_ASSERT_OK(batch.Set("observation", *Tensor::From<float>({4, 9}, {2})));
  RILL_ASSERT_OK(root->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(2, 3)));
}

TEST(UnaryTest, RowsMayGetAnotherDTypeAndShape) {
  auto means = *Unary::Create(Means("a", "mean"));
  TensorDict batch({2});
  RILL_ASSERT_OK(batch.Set("a", *Tensor::From<float>({1, 2, 3, 5}, {2, 2})));
  RILL_ASSERT_OK(means->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<double>("mean"), IsOkAndHolds(ElementsAre(1.5, 4)));
  EXPECT_TRUE(batch.Contains("a"));
}

TEST(UnaryTest, ErrorsOfTheFunctionsNameTheKey) {
  auto means = *Unary::Create(Means("done", "mean"));
  EXPECT_THAT(means->ForwardSpec(TedSpec()),
              StatusIs(kInvalidArgument, HasSubstr("\"done\": got bool[1]")));
  auto broken = *Unary::Create(
      {.in_keys = {"a"}, .fn = [](const BoundLeaf&, const BoundLeaf&) {
         return absl::InternalError("broken");
       }});
  TensorDict batch({1});
  RILL_ASSERT_OK(batch.Set("a", *Tensor::From<float>({1}, {1})));
  EXPECT_THAT(
      broken->Forward(&batch, nullptr),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("\"a\": broken")));
}

TEST(UnaryTest, BadOptionsAreNamed) {
  EXPECT_THAT(Unary::Create({.in_keys = {"a"}}),
              StatusIs(kInvalidArgument, HasSubstr("fn: got none")));
  EXPECT_THAT(Unary::Create({.fn = Negate}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
  EXPECT_THAT(Unary::Create({.in_keys_inv = {"a"}, .fn = Negate}),
              StatusIs(kInvalidArgument, HasSubstr("inv_fn: got none")));
  EXPECT_THAT(Unary::Create({.in_keys = {"a"}, .fn = Negate, .inv_fn = Negate}),
              StatusIs(kInvalidArgument, HasSubstr("inv_fn: got one")));
}

// --- Transforms that break a promise -----------------------------------------

constexpr char kKey[] = "observation";

// Twice the observation, and half of it; otherwise where a fault says so.
class Doubling final : public BatchTransform {
 public:
  enum class Fault {
    kNone,
    kMakesAnotherDType,
    kLeavesTheDomain,
    kInverseWritesTheCallersBytes,
    kInverseDividesByThree,
    kDropsOtherEntries,
    kWritesBeforeItLooks,
    kSpecTakesAll,
    kCountsInAMember,
    kWritesIntoTheOldState,
    kGrowsItsState,
    kHasAStateUnsaid,
    kReadsPastStrides,
    kIsNamedByItsNumber,
  };
  explicit Doubling(Fault fault) : fault_(fault) {
    if (fault == Fault::kIsNamedByItsNumber) {
      name_ = absl::StrCat("Doubling", ++made_);
    }
  }

  absl::string_view name() const override { return name_; }
  bool is_stateful() const override {
    return fault_ == Fault::kWritesIntoTheOldState ||
           fault_ == Fault::kGrowsItsState;
  }
  absl::StatusOr<TensorDict> InitialState() const override {
    TensorDict state;
    if (is_stateful() || fault_ == Fault::kHasAStateUnsaid) {
      RILL_RETURN_IF_ERROR(
          state.Set("calls", *Tensor::Zeros(DType::kInt64, {1})));
    }
    return state;
  }
  absl::Status Forward(TensorDict* batch, TensorDict* state) const override {
    return Scale(fault_ == Fault::kLeavesTheDomain ? 3.0f : 2.0f, batch, state);
  }
  absl::Status Inverse(TensorDict* batch, TensorDict* state) const override {
    if (fault_ == Fault::kInverseWritesTheCallersBytes) {
      RILL_RETURN_IF_ERROR(CheckLeaf(*batch));
      batch->Find(kKey)->data<float>()[0] = 0;
    }
    const bool is_wrong = fault_ == Fault::kInverseDividesByThree;
    return Scale(is_wrong ? 1 / 3.0f : 0.5f, batch, state);
  }
  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override {
    return SpecOf(spec, 2);
  }
  absl::StatusOr<TensorDictSpec> InverseSpec(
      const TensorDictSpec& spec) const override {
    return SpecOf(spec, 0.5);
  }

 private:
  absl::Status Misfit() const {
    return InvalidArgument(name_, ": observation does not fit");
  }
  absl::Status CheckLeaf(const TensorDict& batch) const {
    const Tensor* const leaf = batch.Find(kKey);
    const bool fits = leaf != nullptr && leaf->dtype() == DType::kFloat32 &&
                      leaf->shape() == batch.batch_shape().Concat({4}) &&
                      leaf->device().is_cpu();
    return fits ? absl::OkStatus() : Misfit();
  }
  absl::StatusOr<TensorDictSpec> SpecOf(const TensorDictSpec& spec,
                                        double factor) const {
    if (fault_ == Fault::kSpecTakesAll) return spec;
    const LeafSpec* const leaf = spec.Find(kKey);
    const bool fits = leaf != nullptr && leaf->dtype == DType::kFloat32 &&
                      leaf->shape == Shape({4}) &&
                      spec.device().value_or(Device::Cpu()).is_cpu();
    if (!fits) return Misfit();
    LeafSpec after = *leaf;
    if (leaf->domain == LeafSpec::Domain::kBounded) {
      RILL_ASSIGN_OR_RETURN(
          after, leaf->MapBounds([&](double x) { return factor * x; }));
    }
    TensorDictSpec scaled = spec;
    RILL_RETURN_IF_ERROR(scaled.Set(kKey, after));
    return scaled;
  }
  absl::Status Count(TensorDict* state) const {
    Tensor calls = *state->Find("calls");
    if (fault_ != Fault::kWritesIntoTheOldState) calls = *calls.Clone();
    calls.data<int64_t>()[0] += 1;
    if (fault_ == Fault::kGrowsItsState) {
      RILL_RETURN_IF_ERROR(state->Set("more", calls));
    }
    return state->Set("calls", calls);
  }
  absl::Status Scale(float factor, TensorDict* batch, TensorDict* state) const {
    if (fault_ == Fault::kWritesBeforeItLooks) {
      RILL_RETURN_IF_ERROR(batch->Set(
          "seen", *Tensor::Zeros(DType::kInt8, batch->batch_shape())));
    }
    RILL_RETURN_IF_ERROR(CheckLeaf(*batch));
    Tensor made = *batch->Find(kKey)->Clone();
    if (fault_ == Fault::kReadsPastStrides) {
      std::memcpy(made.raw_data(), batch->Find(kKey)->raw_data(),
                  static_cast<size_t>(made.size_bytes()));
    }
    if (fault_ == Fault::kCountsInAMember) {
      factor += static_cast<float>(++calls_);
    }
    const absl::Span<float> values = *made.Flat<float>();
    for (float& x : values) x *= factor;
    if (fault_ == Fault::kMakesAnotherDType) {
      made = *Cast(made, DType::kFloat64);
    }
    if (fault_ == Fault::kDropsOtherEntries) *batch = *batch->Select({kKey});
    RILL_RETURN_IF_ERROR(batch->Set(kKey, made));
    if (state == nullptr || state->Find("calls") == nullptr) {
      return absl::OkStatus();
    }
    return Count(state);
  }

  const Fault fault_;
  std::string name_ = "Doubling";
  mutable int calls_ = 0;
  static inline int made_ = 0;
};

TransformUnderTest DoublingUnderTest(Doubling::Fault fault) {
  return {.make = [fault] { return std::make_unique<Doubling>(fault); },
          .batch_spec = TedSpec(),
          .inverse_tolerance = 0};
}

WrongPart<TransformConformanceTest> Wrong(std::string name, std::string test,
                                          std::string says,
                                          Doubling::Fault fault) {
  return {std::move(name), std::move(test), std::move(says),
          [fault] { return DoublingUnderTest(fault); }};
}

std::vector<WrongPart<TransformConformanceTest>> WrongTransforms() {
  using Fault = Doubling::Fault;
  const std::string misfits = "BatchesThatDoNotFitStayAsTheyAre";
  const std::string old_states = "OldStatesStayAsTheyWere";
  return {
      Wrong("MakesAnotherDType", "SpecsPredictWhatForwardAndInverseMake",
            "float64", Fault::kMakesAnotherDType),
      Wrong("LeavesTheDomain", "SpecsPredictTheValuesDomains",
            "forward.CheckValues", Fault::kLeavesTheDomain),
      Wrong("InverseWritesTheCallersBytes", "InverseLeavesTheCallersBytes",
            "callers.CheckEqual(before)", Fault::kInverseWritesTheCallersBytes),
      Wrong("InverseDividesByThree", "InverseUndoesForward",
            "observation, element 0", Fault::kInverseDividesByThree),
      Wrong("DropsOtherEntries", "KeepsNamesOfDimensionsAndNonTensorValues",
            "note of the test", Fault::kDropsOtherEntries),
      Wrong("WritesBeforeItLooks", misfits, "misfit.batch.CheckEqual(before)",
            Fault::kWritesBeforeItLooks),
      Wrong("SpecTakesAll", misfits, "observation is missing",
            Fault::kSpecTakesAll),
      Wrong("IsNamedByItsNumber", "EqualTransformsMakeEqualThings", "a->name()",
            Fault::kIsNamedByItsNumber),
      Wrong("HasAStateUnsaid", "OnlyStatefulTransformsHaveAState",
            "state.empty()", Fault::kHasAStateUnsaid),
      Wrong("GrowsItsState", "StatesKeepTheirLayout", "CheckTransformState",
            Fault::kGrowsItsState),
      Wrong("CountsInAMember", old_states, "CheckEqual",
            Fault::kCountsInAMember),
      Wrong("WritesIntoTheOldState", old_states, "old.CheckEqual(copy)",
            Fault::kWritesIntoTheOldState),
      Wrong("ReadsPastStrides", "RowsMayLieAtAnyDistance", "Forward",
            Fault::kReadsPastStrides),
  };
}
RILL_REFUSES_WRONG_PARTS(TransformConformanceTest, WrongTransforms);

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Means,
                                  InABuffer<Unary>(Means("observation", "mean"),
                                                   TedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(Negations,
                                  InABuffer<Unary>(Negations(),
                                                   WithVectorAction()));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    NegationsAndBack, InABuffer<Unary>({.in_keys = {"observation"},
                                        .in_keys_inv = {"observation"},
                                        .fn = Negate,
                                        .inv_fn = Negate},
                                       TedSpec(), /*inverse_tolerance=*/0));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Means, BesideAnEnvironment<Unary>(Means("observation", "mean"), TedSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Negations, BesideAnEnvironment<Unary>(Negations(), WithVectorAction()));

INSTANTIATE_TRANSFORM_CONFORMANCE(Doubling,
                                  DoublingUnderTest(Doubling::Fault::kNone));

}  // namespace rill
