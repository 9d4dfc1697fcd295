// SPDX-License-Identifier: Apache-2.0
// Batches are those of host memory wherever environment, policy and batches
// lie.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/devices/testing/cart_pole_collector.h"
#include "rill/collectors/sync_collector.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/envs/device/testing/async_policy.h"
#include "rill/slots/slot.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

// Copies of a batch on the device, made in the order of the stream.
absl::StatusOr<TensorDict> EnqueueCopy(const TensorDict& batch,
                                       const Stream& stream) {
  TensorDict copy(batch.batch_shape());
  for (const std::string& key : batch.LeafKeys()) {
    const Tensor& from = *batch.Find(key);
    RILL_ASSIGN_OR_RETURN(const Tensor to,
                          Tensor::Empty(from.dtype(), from.shape(),
                                        {.device = DeviceUnderTest()}));
    RILL_RETURN_IF_ERROR(to.CopyFromAsync(from, stream));
    RILL_RETURN_IF_ERROR(copy.Set(key, to));
  }
  return copy;
}

enum class Hand { kNext, kPending, kNoCudaSync };

class CollectorPlacementTest
    : public ::testing::TestWithParam<std::tuple<bool, bool, bool, Hand>> {};

// On the fake device every copy has a delay of its own. A wait or an order that
// is missing gives another batch. Where all is on the device and nobody waits
// there are 200,000 steps, elsewhere some.
TEST_P(CollectorPlacementTest, BatchesEqualThoseOfHostMemory) {
  const auto [env_there, policy_there, stored_there, hand] = GetParam();
  const bool is_long =
      env_there && policy_there && stored_there && hand == Hand::kNoCudaSync;
  const int64_t batches = (is_long ? 200'000 : 8'000) / kFrames + 1;
  RILL_ASSERT_OK_AND_ASSIGN(const std::vector<TensorDict> want,
                            HostCartPoleBatches(batches));
  const auto place = [](bool there) {
    return there ? DeviceUnderTest() : Device::Cpu();
  };
  if (DeviceUnderTest().type == Device::Type::kFake) {
    FakeBackend::Install({.run_some_seed = 3});
  }
  AsyncPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(DeviceUnderTest()));
  SyncCollector::Options options = CartPoleCollectorOptions(&policy);
  options.policy_device = place(policy_there);
  options.storing_device = place(stored_there);
  options.no_cuda_sync = hand == Hand::kNoCudaSync;
  const bool has_device = env_there || policy_there || stored_there;
  // Half of them on the default stream.
  if (has_device && stored_there == policy_there) options.stream = &stream;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto collector, CollectCartPole(place(env_there), std::move(options)));

  EXPECT_EQ(collector->spec().device().value_or(Device::Cpu()),
            place(stored_there));

  // Read when everything is over, each in the order of the stream.
  std::vector<TensorDict> copies;
  RILL_ASSERT_OK_AND_ASSIGN(
      const Stream used,
      Stream::Borrow(DeviceUnderTest(),
                     has_device && stored_there == policy_there
                         ? stream.handle()
                         : StreamHandle()));
  for (int64_t i = 0; i < batches; ++i) {
    TensorDict batch;
    if (hand == Hand::kPending) {
      RILL_ASSERT_OK_AND_ASSIGN(const auto pending, collector->NextPending());
      if (pending.copied != nullptr) {
        RILL_ASSERT_OK(pending.copied->Synchronize());
      }
      batch = pending.batch;
    } else {
      RILL_ASSERT_OK_AND_ASSIGN(batch, collector->Next());
    }
    ASSERT_EQ(batch.Find("action")->device(), place(stored_there));
    if (hand == Hand::kNoCudaSync && (env_there || stored_there)) {
      RILL_ASSERT_OK_AND_ASSIGN(copies.emplace_back(),
                                EnqueueCopy(batch, used));
    } else if (stored_there) {
      RILL_ASSERT_OK_AND_ASSIGN(batch, batch.To(Device::Cpu()));
      RILL_ASSERT_OK(batch.CheckEqual(want[i]));
    } else {
      RILL_ASSERT_OK(batch.CheckEqual(want[i]));
    }
  }
  EXPECT_EQ(collector->frames(), batches * kFrames);
  RILL_ASSERT_OK(used.Synchronize());
  for (size_t i = 0; i < copies.size(); ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict copy,
                              copies[i].To(Device::Cpu()));
    RILL_ASSERT_OK(copy.CheckEqual(want[i])) << "batch " << i;
  }
}

// A write to a storage there returns before the device has read the batch,
// which the collector fills anew on a stream of its own.
TEST(CollectorPlacementStorageTest, ABatchThatIsReadIsNotWrittenOver) {
  constexpr int64_t kBatches = 40;
  RILL_ASSERT_OK_AND_ASSIGN(const std::vector<TensorDict> want,
                            HostCartPoleBatches(kBatches));
  if (DeviceUnderTest().type == Device::Type::kFake) {
    FakeBackend::Install({});  // Work waits as long as it can.
  }
  AsyncPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(DeviceUnderTest()));
  SyncCollector::Options options = CartPoleCollectorOptions(&policy);
  options.policy_device = options.storing_device = DeviceUnderTest();
  options.stream = &stream;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto collector,
      CollectCartPole(DeviceUnderTest(), std::move(options)));
  const Shape shape = want[0].batch_shape();
  const auto make = [&](Device device) {
    return DenseStorage::Create({.capacity = kBatches * shape.num_elements(),
                                 .lanes = shape[0],
                                 .device = device});
  };
  RILL_ASSERT_OK_AND_ASSIGN(const auto there, make(DeviceUnderTest()));
  RILL_ASSERT_OK_AND_ASSIGN(const auto host, make(Device::Cpu()));
  std::vector<Slot> slots(host->lanes().num_slots());
  std::iota(slots.begin(), slots.end(), 0);
  RILL_ASSERT_OK_AND_ASSIGN(const Stream writes,
                            Stream::Create(DeviceUnderTest()));
  const StreamScope scope(writes);
  for (const TensorDict& batch : want) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict collected, collector->Next());
    RILL_ASSERT_OK(there->Extend(collected));
    RILL_ASSERT_OK(host->Extend(batch));
  }
  TensorDict got, expected;
  RILL_ASSERT_OK(there->Read(slots, &got));
  RILL_ASSERT_OK(host->Read(slots, &expected));
  RILL_ASSERT_OK_AND_ASSIGN(got, got.To(Device::Cpu()));
  RILL_EXPECT_OK(got.CheckEqual(expected));
}

std::string NameOf(
    const ::testing::TestParamInfo<CollectorPlacementTest::ParamType>& info) {
  const auto [env_there, policy_there, stored_there, hand] = info.param;
  const auto place = [](bool there) { return there ? "Device" : "Host"; };
  const absl::string_view way = hand == Hand::kNext      ? "Next"
                                : hand == Hand::kPending ? "Pending"
                                                         : "NoCudaSync";
  return absl::StrCat("Env", place(env_there), "Policy", place(policy_there),
                      "Stored", place(stored_there), way);
}

INSTANTIATE_TEST_SUITE_P(
    All, CollectorPlacementTest,
    ::testing::Combine(::testing::Bool(), ::testing::Bool(), ::testing::Bool(),
                       ::testing::Values(Hand::kNext, Hand::kPending,
                                         Hand::kNoCudaSync)),
    NameOf);

}  // namespace
}  // namespace rill
