// SPDX-License-Identifier: Apache-2.0
// The transforms of where a batch's leaves lie, on a fake device and on a GPU.
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/device_table.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"
#include "rill/transforms/structure/cat_tensors.h"
#include "rill/transforms/structure/device_cast.h"
#include "rill/transforms/structure/dtype_cast.h"
#include "rill/transforms/structure/expand_as.h"
#include "rill/transforms/structure/flatten_tensor_dict.h"
#include "rill/transforms/structure/remove_empty_specs.h"
#include "rill/transforms/structure/rename.h"
#include "rill/transforms/structure/row_shapes.h"
#include "rill/transforms/structure/select.h"
#include "rill/transforms/structure/sequence_lines.h"
#include "rill/transforms/to_device.h"

namespace rill {
namespace {

TensorDict Batch() {
  TensorDict batch = *TedSpec().Random({4}, Rng(1, RngStream::kUser), 0);
  RILL_EXPECT_OK(batch.Set("note", NonTensor{"1"}));
  RILL_EXPECT_OK(batch.SetDimNames({"time"}));
  return batch;
}

DeviceCast::Options ThereAndBack() {
  return {.device = DeviceUnderTest(), .orig_device = Device::Cpu()};
}

TEST(ToDeviceTest, ForwardMovesEveryLeafAndKeepsTheValues) {
  RILL_ASSERT_OK_AND_ASSIGN(auto to_device,
                            ToDevice::Create(DeviceUnderTest()));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch,
                            TedSpec().Random({4}, Rng(1, RngStream::kUser), 0));
  const TensorDict before = batch;
  RILL_ASSERT_OK(to_device->Forward(&batch, nullptr));
  EXPECT_EQ(batch.device(), DeviceUnderTest());
  batch.ForEachLeaf([](absl::string_view key, const Tensor& leaf) {
    EXPECT_EQ(leaf.device(), DeviceUnderTest()) << key;
  });
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict back, batch.To(Device::Cpu()));
  RILL_EXPECT_OK(back.CheckEqual(before));
}

TEST(DeviceCastTest, LeavesGoThereAndBack) {
  auto cast = *DeviceCast::Create(ThereAndBack());
  TensorDict batch = Batch();
  RILL_ASSERT_OK(cast->Forward(&batch, nullptr));
  EXPECT_EQ(batch.device(), DeviceUnderTest());
  batch.ForEachLeaf([](absl::string_view key, const Tensor& leaf) {
    EXPECT_EQ(leaf.device(), DeviceUnderTest()) << key;
  });
  EXPECT_TRUE(batch.Contains("note"));
  EXPECT_EQ(batch.dim_names().size(), 1u);
  RILL_ASSERT_OK(cast->Inverse(&batch, nullptr));
  EXPECT_EQ(batch.device(), Device::Cpu());
  RILL_EXPECT_OK(batch.CheckEqual(Batch()));
}

TEST(PinMemoryTest, EveryLeafIsPinned) {
  auto pin = *PinMemory::Create({.pin_for = DeviceUnderTest()});
  TensorDict batch = Batch();
  EXPECT_FALSE(batch.is_pinned());
  RILL_ASSERT_OK(pin->Forward(&batch, nullptr));
  EXPECT_TRUE(batch.is_pinned());
  RILL_EXPECT_OK(batch.CheckEqual(Batch()));
  const std::byte* const pinned = batch.Find("action")->raw_data();
  RILL_ASSERT_OK(pin->Forward(&batch, nullptr));
  EXPECT_EQ(batch.Find("action")->raw_data(), pinned);
}

TEST(PinMemoryTest, LeavesOnADeviceStayThere) {
  auto pin = *PinMemory::Create({.pin_for = DeviceUnderTest()});
  TensorDict batch = *Batch().To(DeviceUnderTest());
  const std::byte* const before = batch.Find("action")->raw_data();
  RILL_ASSERT_OK(pin->Forward(&batch, nullptr));
  EXPECT_EQ(batch.Find("action")->raw_data(), before);
}

TEST(StructureDeviceTest, PlacementIsAsDocumented) {
  std::vector<DeviceCase> cases;
  const auto add = [&](std::unique_ptr<BatchTransform> transform,
                       TransformCall call = TransformCall::kForward) {
    cases.push_back({std::move(transform), DeviceCaseBatch(), call});
  };
  for (const TransformCall call :
       {TransformCall::kForward, TransformCall::kInverse}) {
    add(*DTypeCast::Create(
            {.dtype_in = DType::kFloat32, .dtype_out = DType::kBFloat16}),
        call);
    add(*DTypeCast::Create({.dtype_in = DType::kInt64,
                            .dtype_out = DType::kUInt8,
                            .in_keys = {"info/count"},
                            .out_keys = {"counts/small"}}),
        TransformCall::kForward);
    add(*DoubleToFloat::Create({}), call);
  }
  add(*DeviceCast::Create({.device = DeviceUnderTest()}));
  add(*PinMemory::Create({.pin_for = DeviceUnderTest()}));
  ExpectAsDocumented("Placement and casts", cases, DeviceUnderTest());
}

TEST(StructureDeviceTest, StructureIsAsDocumented) {
  std::vector<DeviceCase> cases;
  const auto add = [&](std::unique_ptr<BatchTransform> transform,
                       TransformCall call = TransformCall::kForward) {
    cases.push_back({std::move(transform), DeviceCaseBatch(), call});
  };
  add(*Select::Create({.selected_keys = {"observation", "next"}}));
  add(*Exclude::Create({.excluded_keys = {"next/pixels", "info"}}));
  add(*Exclude::Create({.excluded_keys = {"left"}, .inverse = true}),
      TransformCall::kInverse);
  for (const bool copies : {true, false}) {
    add(*Rename::Create({.in_keys = {"observation", "next", "left"},
                         .out_keys = {"state", "after", "eyes/left"},
                         .create_copy = copies}));
  }
  add(*CatTensors::Create(
      {.in_keys = {"observation", "torque"}, .out_key = "all", .dim = -1}));
  add(*CatTensors::Create({.in_keys = {"right", "left"},
                           .out_key = "both",
                           .dim = -2,
                           .del_keys = false,
                           .sort = false}));
  for (const int dim : {-1, -2, -3}) {
    add(*StackTensors::Create(
        {.in_keys = {"left", "right"}, .out_key = "eyes", .dim = dim}));
  }
  add(*FlattenObservation::Create({.first_dim = -3, .last_dim = -2}));
  add(*FlattenObservation::Create({.first_dim = -2,
                                   .last_dim = -1,
                                   .in_keys = {"pixels", "left"},
                                   .out_keys = {"flat", "left"}}));
  add(*Unsqueeze::Create({.dim = -2, .in_keys = {"observation", "left"}}));
  add(*Squeeze::Create({.dim = -1, .in_keys = {"info/count"}}));
  for (const TransformCall call :
       {TransformCall::kForward, TransformCall::kInverse}) {
    add(*Unsqueeze::Create({.dim = -1,
                            .in_keys = {"observation"},
                            .out_keys = {"column"},
                            .in_keys_inv = {"info/count"}}),
        call);
    add(*Permute::Create({.dims = {-1, -3, -2},
                          .in_keys = {"pixels", "planes"},
                          .in_keys_inv = {"planes", "next/pixels"}}),
        call);
  }
  add(*ExpandAs::Create(
      {.in_key = "info/count", .ref_key = "left", .out_key = "many"}));
  add(*ExpandAs::Create({.in_key = "torque", .ref_key = "left"}));
  add(*FlattenTensorDict::Create({}), TransformCall::kInverse);
  add(*FlattenTensorDict::Create({.inverse = false}));
  add(*RemoveEmptySpecs::Create());
  for (const bool has_steps : {true, false}) {
    TensorDict batch = DeviceCaseBatch({12});
    std::vector<int64_t> steps;
    std::vector<bool> done;
    for (int64_t i = 0; i < 12; ++i) {
      steps.push_back(i % 4);
      done.push_back(i % 4 == 3);
    }
    if (has_steps) {
      RILL_ASSERT_OK(
          batch.Set("step_in_sequence", *Tensor::From<int64_t>(steps, {12})));
    } else {
      RILL_ASSERT_OK(
          batch.Set("next/done", *Tensor::From<bool>(done, {12, 1})));
    }
    cases.push_back({*SequenceLines::Create({.length = 4}), std::move(batch)});
  }
  ExpectAsDocumented("Structure: ", cases, DeviceUnderTest());
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(
    ToDevice, {.make = [] { return *ToDevice::Create(DeviceUnderTest()); },
               .batch_spec = TedSpec()});
INSTANTIATE_TRANSFORM_CONFORMANCE(DeviceCast,
                                  InABuffer<DeviceCast>(ThereAndBack(),
                                                        TedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    PinMemory, InABuffer<PinMemory>({.pin_for = DeviceUnderTest()}, TedSpec()));

}  // namespace rill
