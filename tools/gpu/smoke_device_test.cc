// SPDX-License-Identifier: Apache-2.0
// The first thing to run on a machine: rows that go to a device and come back.
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

// From host memory or from the device: small writes, and those in parts.
TEST(SmokeDeviceTest, RowsComeBackAsTheyWereWritten) {
  for (const bool is_there : {false, true}) {
    for (const int64_t rows : {int64_t{3}, int64_t{1} << 20}) {
      std::vector<int64_t> numbers(static_cast<size_t>(rows));
      std::iota(numbers.begin(), numbers.end(), 0);
      TensorDict batch({rows});
      RILL_ASSERT_OK(batch.Set(
          "number", *Tensor::From(absl::MakeConstSpan(numbers), {rows})));
      if (is_there) batch = *batch.To(DeviceUnderTest());
      RILL_ASSERT_OK_AND_ASSIGN(
          const auto storage,
          DenseStorage::Create(
              {.capacity = rows, .device = DeviceUnderTest()}));
      RILL_ASSERT_OK(storage->Extend(batch));
      batch = TensorDict();
      TensorDict read;
      RILL_ASSERT_OK(storage->Read({rows - 1, 0, rows / 2, rows / 3}, &read));
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, read.To(Device::Cpu()));
      EXPECT_THAT(*host.Flat<int64_t>("number"),
                  ElementsAre(rows - 1, 0, rows / 2, rows / 3));
    }
  }
}

}  // namespace
}  // namespace rill
