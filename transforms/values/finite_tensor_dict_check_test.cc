// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/values/finite_tensor_dict_check.h"

#include <complex>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

absl::Status Check(TensorDict batch) {
  return (*FiniteTensorDictCheck::Create())->Forward(&batch, nullptr);
}

TEST(FiniteTensorDictCheckTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto check, FiniteTensorDictCheck::Create());
  EXPECT_EQ(check->name(), "FiniteTensorDictCheck");
}

TEST(FiniteTensorDictCheckTest, FiniteBatchesPassUnchanged) {
  const TensorDict before =
      *TedSpec().Random({7, 3}, Rng(1, RngStream::kUser), 0);
  TensorDict batch = before;
  RILL_ASSERT_OK((*FiniteTensorDictCheck::Create())->Forward(&batch, nullptr));
  RILL_EXPECT_OK(batch.CheckEqual(before));
}

TEST(FiniteTensorDictCheckTest, EveryPlaceOfEveryDTypeIsLookedAt) {
  for (const DType dtype :
       {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const double bad : {kNaN, kInfinity, -kInfinity}) {
      for (const int64_t at : {0, 1, 255, 256, 599}) {
        const Tensor values = *Tensor::Zeros(DType::kFloat64, {300, 2});
        // The greatest float16 passes.
        values.data<double>()[7] = 65504;
        TensorDict batch({300});
        RILL_ASSERT_OK(batch.Set("next/a", *Cast(values, dtype)));
        RILL_EXPECT_OK(Check(batch)) << dtype;
        values.data<double>()[at] = bad;
        RILL_ASSERT_OK(batch.Set("next/a", *Cast(values, dtype)));
        const std::string index =
            "at [" + std::to_string(at / 2) + ", " + std::to_string(at % 2);
        EXPECT_THAT(Check(batch),
                    StatusIs(kInvalidArgument,
                             AllOf(HasSubstr("FiniteTensorDictCheck"),
                                   HasSubstr("\"next/a\""), HasSubstr(index))))
            << dtype;
      }
    }
  }
}

template <typename T>
void ExpectBothPartsAreLookedAt() {
  for (const std::complex<T> bad : {std::complex<T>(static_cast<T>(kNaN), 0),
                                    std::complex<T>(0, kInfinity)}) {
    const Tensor values = *Tensor::Zeros(DTypeOf<std::complex<T>>, {3});
    TensorDict batch({3});
    RILL_ASSERT_OK(batch.Set("a", values));
    RILL_EXPECT_OK(Check(batch));
    values.data<std::complex<T>>()[2] = bad;
    EXPECT_THAT(Check(batch), StatusIs(kInvalidArgument, HasSubstr("at [2]")));
  }
}

TEST(FiniteTensorDictCheckTest, BothPartsOfComplexNumbersAreLookedAt) {
  ExpectBothPartsAreLookedAt<float>();
  ExpectBothPartsAreLookedAt<double>();
}

TEST(FiniteTensorDictCheckTest, TensorsOfLazyStacksAndRaggedRowsAreLookedAt) {
  const Tensor numbers = *Tensor::From<float>({1, 2, 3}, {3});
  TensorDict member((Shape()));
  RILL_ASSERT_OK(member.Set("x", numbers));
  TensorDict batch({2});
  RILL_ASSERT_OK(batch.Set("deep/lazy",
                           *LazyStack::Create({TensorDict(Shape()), member})));
  RILL_EXPECT_OK(Check(batch));
  numbers.data<float>()[1] = kNaN;
  EXPECT_THAT(Check(batch),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("\"x\""), HasSubstr("at [1]"),
                             HasSubstr("member 1 of \"deep/lazy\""))));

  TensorDict rows({2});
  RILL_ASSERT_OK(rows.Set(
      "rows",
      *RaggedTensor::Create(numbers, *Tensor::From<int64_t>({1, 2}, {2, 1}))));
  EXPECT_THAT(Check(rows), StatusIs(kInvalidArgument, HasSubstr("\"rows\"")));
}

TEST(FiniteTensorDictCheckTest, LeavesOnADeviceAreAnError) {
  TensorDict batch({1});
  RILL_ASSERT_OK(batch.Set("a", *Tensor::Zeros(DType::kFloat32, {1})));
  EXPECT_THAT(Check(*batch.To(Device::Fake(0))),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("a")));
}

TEST(FiniteTensorDictCheckTest, StepsAreChecked) {
  auto check = *FiniteTensorDictCheck::Create();
  const TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(spec, 2, check.get()));
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  TensorDict made({2});
  RILL_ASSERT_OK(
      made.Set("next/reward",
               *Tensor::From<float>({1, static_cast<float>(kNaN)}, {2, 1})));
  EXPECT_THAT(environment.Step(made),
              StatusIs(kInvalidArgument, AllOf(HasSubstr("\"next/reward\""),
                                               HasSubstr("[1, 0]"))));
  // Other steps of the same layout.
  TensorDictSpec other = spec;
  other.Erase("next/reward");
  RILL_ASSERT_OK(
      other.Set("next/gain", LeafSpec::Unbounded(DType::kFloat32, {1})));
  RILL_ASSERT_OK(check->PlanSteps(other));
  EXPECT_THAT(environment.Step(made),
              StatusIs(kInvalidArgument,
                       HasSubstr("\"next/gain\" or \"next/reward\"")));
}

TEST(FiniteTensorDictCheckTest, ResetsAreCheckedInTheMaskedLanes) {
  auto check = *FiniteTensorDictCheck::Create();
  float observations[] = {0, 0, 0, static_cast<float>(kInfinity)};
  bool done = false;
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("pixels", LeafSpec::Unbounded(DType::kFloat32, {2})));
  RILL_ASSERT_OK(spec.Set("next/done", LeafSpec::Binary({1})));
  RILL_ASSERT_OK(check->PlanSteps(spec));
  const auto bound = [](auto* data, int64_t rows, DType dtype, Shape shape) {
    return BoundLeaf{.data = reinterpret_cast<std::byte*>(data),
                     .width = shape.num_elements() * DTypeSize(dtype),
                     .dtype = dtype,
                     .rows = rows,
                     .shape = shape};
  };
  const BoundLeaf leaves[] = {bound(observations, 2, DType::kFloat32, {2}),
                              bound(&done, 1, DType::kBool, {1})};
  RILL_EXPECT_OK(check->OnReset({1, 0}, leaves, nullptr));
  EXPECT_THAT(check->OnReset({0, 1}, leaves, nullptr),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("\"pixels\""), HasSubstr("[1, 1]"))));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(
    FiniteTensorDictCheck,
    {.make = [] { return *FiniteTensorDictCheck::Create(); },
     .batch_spec = TedSpec()});
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    FiniteTensorDictCheck,
    {.make = [] { return *FiniteTensorDictCheck::Create(); },
     .step_spec = TedSpec()});

}  // namespace rill
