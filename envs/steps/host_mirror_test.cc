// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/host_mirror.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Tensor> OnDevice(int index, std::initializer_list<float> values,
                                const Shape& shape) {
  auto host = Tensor::From<float>(values, shape);
  if (!host.ok()) return host.status();
  return host->To(Device::Fake(index));
}

TEST(HostMirrorTest, LeavesInHostMemoryAreThemselves) {
  HostMirror mirror;
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor leaf,
                            Tensor::Zeros(DType::kFloat32, {3}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor host, mirror.Add(leaf));
  EXPECT_EQ(host.raw_data(), leaf.raw_data());
  RILL_EXPECT_OK(mirror.Update());
}

// Nothing on the fake device happens until somebody waits.
TEST(HostMirrorTest, UpdateWaitsForItsCopies) {
  FakeBackend::Install({});
  HostMirror mirror;
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor a, OnDevice(0, {1, 2}, {2}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor b, OnDevice(0, {3}, {1, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor host_a, mirror.Add(a));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor host_b, mirror.Add(b));
  EXPECT_TRUE(host_a.is_pinned());
  RILL_ASSERT_OK(mirror.Update());
  EXPECT_THAT(host_a, TensorElementsAre<float>(1, 2));
  EXPECT_THAT(host_b, TensorElementsAre<float>(3));
}

TEST(HostMirrorTest, UpdateComesBehindTheWorkOfTheDefaultStream) {
  FakeBackend::Install({});
  HostMirror mirror;
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor leaf, OnDevice(0, {1, 2}, {2}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor host, mirror.Add(leaf));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor late,
                            Tensor::From<float>({5, 6}, {2}));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Default(Device::Fake()));
  RILL_ASSERT_OK(leaf.CopyFromAsync(late, stream));
  RILL_ASSERT_OK(mirror.Update());
  EXPECT_THAT(host, TensorElementsAre<float>(5, 6));
}

TEST(HostMirrorTest, RefusesAnotherDeviceAndStrides) {
  FakeBackend::Install({});
  HostMirror mirror;
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor leaf, OnDevice(0, {1, 2}, {1, 2}));
  RILL_ASSERT_OK(mirror.Add(leaf).status());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor other, OnDevice(1, {1, 2}, {2}));
  EXPECT_THAT(mirror.Add(other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got one on fake:1; want a contiguous one on "
                                 "fake:0")));
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor column,
      OnDevice(0, {1, 2, 3, 4}, {2, 2}).value().Slice(1, 0, 1));
  EXPECT_THAT(mirror.Add(column), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("not contiguous")));
}

TEST(HostMirrorTest, ErrorsOfTheDeviceComeBack) {
  FakeBackend* const fake = FakeBackend::Install({});
  HostMirror mirror;
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor leaf, OnDevice(0, {1, 2}, {2}));
  RILL_ASSERT_OK(mirror.Add(leaf).status());
  fake->FailNext(FakeBackend::Operation::kCopy, 1,
                 absl::UnavailableError("copy engine"));
  EXPECT_THAT(mirror.Update(), StatusIs(absl::StatusCode::kUnavailable));
  fake->Recover();
}

}  // namespace
}  // namespace rill
