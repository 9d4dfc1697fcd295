// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_steps.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TensorDict One(Tensor tensor) {
  TensorDict dict;
  dict.Set("x", std::move(tensor)).IgnoreError();
  return dict;
}

TEST(CheckEqualTest, OrderAndLayoutDoNotMatter) {
  const TensorDict steps = MakeSteps(3);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict other,
                            steps.Clone()->Select({"next/done", "next/reward",
                                                   "action", "observation"}));
  RILL_EXPECT_OK(steps.CheckEqual(other));
  const Tensor turned = *Iota<int32_t>({2, 2}).Permute({1, 0});
  RILL_EXPECT_OK(One(turned).CheckEqual(One(*turned.Clone())));
}

TEST(CheckEqualTest, NamesKeyIndexAndValues) {
  const TensorDict got = MakeSteps(3);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, got.Clone());
  want.Find("observation")->data<float>()[6] = 0.5f;
  want.Find("observation")->data<float>()[7] = 0.5f;
  EXPECT_THAT(got.CheckEqual(want),
              IsFailedPrecondition(
                  "\"observation\" differs first at [1, 2]: got 12, want "
                  "0.5 (2 of 12 elements differ)"));
}

TEST(CheckEqualTest, NamesStructure) {
  const TensorDict steps = MakeSteps(3);
  EXPECT_THAT(steps.CheckEqual(MakeSteps(2)),
              IsFailedPrecondition("batch shape: got [3], want [2]"));
  TensorDict other = steps;
  RILL_ASSERT_OK(other.Rename("next/done", "next/end"));
  EXPECT_THAT(
      steps.CheckEqual(other),
      IsFailedPrecondition("keys of \"next\": got \"reward\", \"done\", want "
                           "\"reward\", \"end\""));
  other = steps;
  RILL_ASSERT_OK(other.Set("action", Iota<int32_t>({3})));
  EXPECT_THAT(steps.CheckEqual(other),
              IsFailedPrecondition("\"action\": got int64[3], want int32[3]"));
  RILL_ASSERT_OK(other.Set("action", NonTensor{"1"}));
  EXPECT_THAT(steps.CheckEqual(other),
              IsFailedPrecondition(
                  "\"action\": got a tensor, want a non-tensor value"));
}

TEST(CheckEqualTest, BitsCount) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  RILL_EXPECT_OK(One(MakeTensor<float>({nan}, {1}))
                     .CheckEqual(One(MakeTensor<float>({nan}, {1}))));
  EXPECT_THAT(One(MakeTensor<float>({0.0f}, {1}))
                  .CheckEqual(One(MakeTensor<float>({-0.0f}, {1}))),
              IsFailedPrecondition("got 0, want -0"));
}

TEST(CheckEqualTest, NonTensorValuesAndDevices) {
  TensorDict a, b;
  RILL_ASSERT_OK(a.Set("n", NonTensor{"1"}));
  RILL_ASSERT_OK(b.Set("n", NonTensor{"2"}));
  EXPECT_THAT(a.CheckEqual(b), IsFailedPrecondition("\"n\": got 1, want 2"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there,
                            MakeSteps(2).To(Device::Fake()));
  RILL_EXPECT_OK(there.CheckEqual(MakeSteps(2)));
  EXPECT_THAT(there.CheckEqual(MakeSteps(2, 1)),
              IsFailedPrecondition("observation"));
}

TEST(CheckCloseTest, UsesBothTolerances) {
  const TensorDict want = One(MakeTensor<float>({100, 0}, {2}));
  const TensorDict got = One(MakeTensor<float>({101, 0.5f}, {2}));
  RILL_EXPECT_OK(got.CheckClose(want, 0.5, 0.005));
  EXPECT_THAT(got.CheckClose(want, 0.5, 0.001),
              IsFailedPrecondition("[0]: got 101"));
  EXPECT_THAT(got.CheckClose(want, 0, 0.01),
              IsFailedPrecondition("[1]: got 0.5"));
}

TEST(CheckCloseTest, EqualBitsAreCloseAndNaNIsNotCloseToNumbers) {
  const TensorDict nan = One(MakeTensor<double>({NAN, INFINITY}, {2}));
  RILL_EXPECT_OK(nan.CheckClose(*nan.Clone(), 0, 0));
  EXPECT_THAT(
      nan.CheckClose(One(MakeTensor<double>({0, INFINITY}, {2})), 1e300, 1),
      IsFailedPrecondition("got nan"));
  RILL_EXPECT_OK(One(MakeTensor<double>({0.0}, {1}))
                     .CheckClose(One(MakeTensor<double>({-0.0}, {1})), 0, 0));
}

TEST(CheckCloseTest, KnowsHalvesAndComplexAndIsExactForIntegers) {
  RILL_EXPECT_OK(
      One(MakeTensor<Float16>({{0x3c00}}, {1}))
          .CheckClose(One(MakeTensor<Float16>({{0x3c01}}, {1})), 0.001, 0));
  RILL_EXPECT_OK(
      One(MakeTensor<std::complex<float>>({{3, 4}}, {1}))
          .CheckClose(One(MakeTensor<std::complex<float>>({{3, 4.5}}, {1})), 0,
                      0.1));
  EXPECT_THAT(One(Iota<int32_t>({1}))
                  .CheckClose(One(MakeTensor<int32_t>({1}, {1})), 10, 10),
              IsFailedPrecondition("got 0, want 1"));
}

TEST(CheckCloseTest, RefusesBadTolerances) {
  const TensorDict dict = One(Iota<float>({1}));
  EXPECT_THAT(dict.CheckClose(dict, -1, 0), IsInvalidArgument());
  EXPECT_THAT(dict.CheckClose(dict, 0, NAN), IsInvalidArgument());
}

TEST(DebugStringTest, ShowsTheTree) {
  TensorDict dict = MakeSteps(1);
  RILL_ASSERT_OK(dict.Set("name", NonTensor{"\"CartPole\""}));
  RILL_ASSERT_OK(dict.Set("empty", TensorDict({1})));
  EXPECT_EQ(dict.DebugString(),
            "TensorDict [1] {\n"
            "  observation: float32[1, 4] cpu {0, 1, 2, 3}\n"
            "  action: int64[1] cpu {0}\n"
            "  next: TensorDict [1] {\n"
            "    reward: float32[1, 1] cpu {0}\n"
            "    done: bool[1, 1] cpu {true}\n"
            "  }\n"
            "  name: \"CartPole\"\n"
            "  empty: TensorDict [1] {}\n"
            "}");
  std::ostringstream os;
  os << dict;
  EXPECT_EQ(os.str(), dict.DebugString());
  dict.Lock();
  EXPECT_THAT(dict.DebugString(), HasSubstr("TensorDict [1] locked {"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there, dict.To(Device::Fake()));
  EXPECT_THAT(there.DebugString(), AllOf(HasSubstr("[1] on fake:0"),
                                         HasSubstr("int64[1] fake:0 {0}")));
}

}  // namespace
}  // namespace rill
