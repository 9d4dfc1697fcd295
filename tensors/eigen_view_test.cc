// SPDX-License-Identifier: Apache-2.0
#include "rill/tensors/eigen_view.h"

#include <cstdint>

#include "Eigen/Core"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

absl::StatusOr<Eigen::VectorXf> RunExample(const Tensor& observation) {
  RILL_ASSIGN_OR_RETURN(auto x, EigenMatrix<float>(observation));
  Eigen::VectorXf mean = x.colwise().mean();
  return mean;
}

TEST(EigenViewTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(const Eigen::VectorXf mean,
                            RunExample(Iota<float>({2, 2, 3})));
  EXPECT_EQ(mean, Eigen::Vector3f(4.5, 5.5, 6.5));
}

TEST(EigenViewTest, MatrixSharesBytesRowMajor) {
  const Tensor t = Iota<double>({2, 3});
  RILL_ASSERT_OK_AND_ASSIGN(auto m, EigenMatrix<double>(t));
  EXPECT_EQ(m.rows(), 2);
  EXPECT_EQ(m.cols(), 3);
  EXPECT_EQ(m(1, 0), 3);
  m(0, 2) = 9;
  EXPECT_THAT(t, TensorElementsAre<double>(0, 1, 9, 3, 4, 5));
}

TEST(EigenViewTest, VectorsAreOneColumn) {
  const Tensor t = Iota<int64_t>({2, 3});
  RILL_ASSERT_OK_AND_ASSIGN(auto v, EigenVector<int64_t>(t));
  EXPECT_EQ(v.size(), 6);
  EXPECT_EQ(v.sum(), 15);
  RILL_ASSERT_OK_AND_ASSIGN(auto row, EigenMatrix<int64_t>(*t.Index(1)));
  EXPECT_EQ(row.rows(), 1);
  EXPECT_EQ(row.cols(), 3);
}

TEST(EigenViewTest, HalvesCompute) {
  const Tensor t = MakeTensor<Float16>({{0x3c00}, {0x4000}}, {2});  // 1, 2
  RILL_ASSERT_OK_AND_ASSIGN(auto v, EigenVector<Float16>(t));
  v += v;
  EXPECT_THAT(Cast(t, DType::kFloat32),
              IsOkAndHolds(TensorElementsAre<float>(2, 4)));
  const Tensor one = MakeTensor<BFloat16>({{0x3f80}}, {1});
  RILL_ASSERT_OK_AND_ASSIGN(auto brain, EigenVector<BFloat16>(one));
  EXPECT_EQ(static_cast<float>(brain(0)), 1.0f);
}

TEST(EigenViewTest, RefusesWhatItCannotMap) {
  const Tensor t = Iota<float>({2, 3});
  EXPECT_THAT(EigenMatrix<double>(t).status(), IsInvalidArgument());
  EXPECT_THAT(EigenMatrix<float>(*t.Permute({1, 0})).status(),
              IsFailedPrecondition());
  EXPECT_THAT(EigenMatrix<float>(*t.To(Device::Fake())).status(),
              IsFailedPrecondition());
  EXPECT_THAT(EigenMatrix<float>(Iota<float>({})).status(),
              IsInvalidArgument("got 0, want at least 1"));
  EXPECT_THAT(EigenVector<float>(Iota<float>({})).status(), IsOk());
}

TEST(EigenViewTest, NoElements) {
  RILL_ASSERT_OK_AND_ASSIGN(auto m, EigenMatrix<float>(Iota<float>({0, 3})));
  EXPECT_EQ(m.rows(), 0);
  EXPECT_EQ(m.cols(), 3);
}

}  // namespace
}  // namespace rill
