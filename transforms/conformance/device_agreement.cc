// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/conformance/device_agreement.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/backend.h"
#include "rill/device/current_stream.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/specs/layout_difference.h"
#include "rill/specs/spec.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

absl::Status Run(const BatchTransform& transform, TransformCall call,
                 TensorDict* batch) {
  TensorDict state = *transform.InitialState();
  return call == TransformCall::kForward ? transform.Forward(batch, &state)
                                         : transform.Inverse(batch, &state);
}

// Each call of the fake device fails in turn, behind a call whose work is under
// way. It is an error, or the values are there all the same, and nothing is
// freed too early. The next call finds all as it was.
void ExpectErrorsOfDevice(const BatchTransform& transform, TransformCall call,
                          const TensorDict& batch, const TensorDict& want,
                          Device device) {
  auto& fake = *static_cast<FakeBackend*>(*GetBackend(device));
  const Stream stream = *Stream::Create(device);
  const StreamScope scope(stream);
  const auto expect_right = [&](const TensorDict& got) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict back, got.To(Device::Cpu()));
    RILL_EXPECT_OK(back.CheckEqual(want));
  };
  bool has_failed = true;
  for (int64_t nth = 1; has_failed && !::testing::Test::HasFailure(); ++nth) {
    SCOPED_TRACE(absl::StrCat("call ", nth));
    std::vector<Tensor> in_flight;
    std::vector<TensorDict> batches;
    for (int i = 0; i < 3; ++i) {
      batches.push_back(*batch.ToAsync(stream, &in_flight));
    }
    RILL_ASSERT_OK(Run(transform, call, &batches[0]));
    fake.FailCall(nth, absl::UnavailableError("fell off the bus"));
    const absl::Status status = Run(transform, call, &batches[1]);
    has_failed = fake.Recover();
    RILL_ASSERT_OK(Run(transform, call, &batches[2]));
    RILL_ASSERT_OK(stream.Synchronize());
    EXPECT_THAT(fake.TakeMisuse(), ::testing::IsEmpty());
    expect_right(batches[0]);
    expect_right(batches[2]);
    if (status.ok()) {
      expect_right(batches[1]);
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    }
  }
}

}  // namespace

void ExpectSameOnDevice(const BatchTransform& transform, TransformCall call,
                        const TensorDict& batch, Device device,
                        double tolerance) {
  SCOPED_TRACE(transform.name());
  const bool is_forward = call == TransformCall::kForward;
  TensorDict want = *batch.Clone();
  RILL_ASSERT_OK(Run(transform, call, &want));

  const Stream stream = *Stream::Create(device);
  std::vector<Tensor> in_flight;
  TensorDict got = *batch.ToAsync(stream, &in_flight);
  TensorDictSpec spec = TensorDictSpec::Of(batch);
  spec.set_device(device);
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDictSpec after,
      is_forward ? transform.ForwardSpec(spec) : transform.InverseSpec(spec));
  {
    const StreamScope scope(stream);
    RILL_ASSERT_OK(Run(transform, call, &got));
  }
  RILL_ASSERT_OK(stream.Synchronize());
  got.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    EXPECT_EQ(leaf.device(), device) << key;
    EXPECT_TRUE(leaf.is_contiguous()) << key;
  });
  EXPECT_EQ(after.device(), device);
  EXPECT_EQ(LayoutDifference(TensorDictSpec::Of(got), after), "");
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict back, got.To(Device::Cpu()));
  if (tolerance == 0 || device.type == Device::Type::kFake) {
    RILL_EXPECT_OK(back.CheckEqual(want));
    if (device.type == Device::Type::kFake) {
      ExpectErrorsOfDevice(transform, call, batch, want, device);
    }
  } else {
    RILL_EXPECT_OK(back.CheckClose(want, tolerance, tolerance));
  }
}

}  // namespace rill
