// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/conformance/device_agreement.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rill/device/current_stream.h"
#include "rill/device/stream.h"
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
  } else {
    RILL_EXPECT_OK(back.CheckClose(want, tolerance, tolerance));
  }
}

}  // namespace rill
