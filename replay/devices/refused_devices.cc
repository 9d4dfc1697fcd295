// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/devices/refused_devices.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/tiered/tiered_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/structure/device_cast.h"
#include "rill/transforms/to_device.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kCapacity = 100;
constexpr int64_t kSaved = 6;  // Rows in files.

ReplayBuffer::Options Over(std::shared_ptr<Storage> rows) {
  return {.storage = std::move(rows),
          .sampler = MakeUniformSampler(),
          .batch_size = 4};
}

struct Way {
  const char* name;
  // `rows` are those of a buffer that works.
  std::function<absl::Status(const std::shared_ptr<Storage>& rows)> take;
};

std::vector<Way> WaysOfStorages(const std::string& files) {
  using Rows = std::shared_ptr<Storage>;
  const Device device = Device::Cuda();
  const auto create = [device](MemoryKind kind, const TensorDictSpec& spec) {
    return [=](const Rows&) {
      return DenseStorage::Create({.capacity = 10,
                                   .device = device,
                                   .memory_kind = kind,
                                   .spec = spec})
          .status();
    };
  };
  const TensorDictSpec spec = TensorDictSpec::Of(NumberedSteps(1, 1));
  return {
      {"a storage on the device", create(MemoryKind::kPageable, {})},
      {"a storage with a spec", create(MemoryKind::kPageable, spec)},
      {"a pinned storage", create(MemoryKind::kPinned, spec)},
      {"a tiered storage",
       [=](const Rows&) {
         return TieredStorage::Create(
                    {.below = *MemmapStorage::Open({.directory = files}),
                     .fast_capacity = 4,
                     .device = device})
             .status();
       }},
  };
}

std::vector<Way> WaysOfBuffers(const std::string& saved) {
  using Rows = std::shared_ptr<Storage>;
  const Device device = Device::Cuda();
  return {
      {"ReplayBuffer::Options::device",
       [=](const Rows& rows) {
         ReplayBuffer::Options options = Over(rows);
         options.device = device;
         return ReplayBuffer::Create(std::move(options)).status();
       }},
      {"pin_memory",
       [=](const Rows& rows) {
         ReplayBuffer::Options options = Over(rows);
         options.pin_memory = true;
         return ReplayBuffer::Create(std::move(options)).status();
       }},
      {"a checkpoint, opened for the device",
       [=](const Rows&) {
         ReplayBuffer::Options options = Over(MakeStorage(kCapacity));
         options.device = device;
         return ReplayBuffer::Open(saved, std::move(options)).status();
       }},
      {"priorities",
       [=](const Rows&) {
         return MakePrioritizedSampler({.device = device}).status();
       }},
      {"ToDevice",
       [=](const Rows&) { return ToDevice::Create(device).status(); }},
      {"DeviceCast",
       [=](const Rows&) {
         return DeviceCast::Create({.device = device}).status();
       }},
      {"PinMemory",
       [=](const Rows&) {
         return PinMemory::Create({.pin_for = device}).status();
       }},
  };
}

// A step more, and a sample.
void ExpectWorks(ReplayBuffer& buffer, int64_t steps) {
  ASSERT_EQ(buffer.size(), steps);
  RILL_ASSERT_OK(buffer.Extend(NumberedSteps(1, 1, steps)).status());
  EXPECT_EQ(buffer.size(), steps + 1);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer.Sample());
  ExpectWholeSteps(batch, kCapacity);
}

}  // namespace

void ExpectDevicesAreRefused() {
  const std::string files = ::testing::TempDir() + "/files";
  const std::string saved = ::testing::TempDir() + "/saved";
  {
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto storage,
        MemmapStorage::Create({.directory = files, .capacity = kCapacity}));
    RILL_ASSERT_OK(storage->Extend(NumberedSteps(1, kSaved)).status());
  }
  const std::shared_ptr<Storage> rows = MakeStorage(kCapacity);
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer, ReplayBuffer::Create(Over(rows)));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, kSaved)).status());
  RILL_ASSERT_OK(buffer->Save(saved));

  std::vector<Way> ways = WaysOfStorages(files);
  for (Way& way : WaysOfBuffers(saved)) ways.push_back(std::move(way));
  int64_t steps = kSaved;
  for (const Way& way : ways) {
    SCOPED_TRACE(way.name);
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(way.take(rows),
                  StatusIs(absl::StatusCode::kFailedPrecondition,
                           AllOf(HasSubstr("cudaError"),
                                 HasSubstr("install a driver for CUDA"),
                                 HasSubstr("use cpu"))));
      ASSERT_NO_FATAL_FAILURE(ExpectWorks(*buffer, steps++));
    }
  }

  // The same rows and files by way of the host.
  RILL_ASSERT_OK_AND_ASSIGN(auto other, ReplayBuffer::Create(Over(rows)));
  ExpectWorks(*other, steps);
  RILL_ASSERT_OK_AND_ASSIGN(
      auto opened, ReplayBuffer::Open(saved, Over(MakeStorage(kCapacity))));
  ExpectWorks(*opened, kSaved);
  RILL_ASSERT_OK_AND_ASSIGN(std::shared_ptr<Storage> in_files,
                            MemmapStorage::Open({.directory = files}));
  RILL_ASSERT_OK_AND_ASSIGN(auto of_files,
                            ReplayBuffer::Create(Over(in_files)));
  ExpectWorks(*of_files, kSaved);
}

}  // namespace rill
