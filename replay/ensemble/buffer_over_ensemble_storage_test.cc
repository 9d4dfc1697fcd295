// SPDX-License-Identifier: Apache-2.0
// One buffer over an EnsembleStorage is one over a storage of all lanes.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/ensemble/ensemble_storage.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kLaneRows = 20;
constexpr int kSlices = 1;

std::shared_ptr<Storage> MakeEnsembleStorage() {
  std::vector<std::unique_ptr<Storage>> members;
  for (const int64_t lanes : {2, 1, 1}) {
    auto member =
        *DenseStorage::Create({.capacity = lanes * kLaneRows, .lanes = lanes});
    members.push_back(std::move(member));
  }
  return *EnsembleStorage::Create(std::move(members));
}

std::unique_ptr<Sampler> MakeSampler(int kind) {
  absl::StatusOr<std::unique_ptr<Sampler>> sampler = MakeUniformSampler();
  if (kind == kSlices) sampler = MakeSliceSampler({.length = 4});
  if (kind == 2) sampler = MakePrioritizedSampler({.alpha = 0.7, .beta = 0.5});
  RILL_EXPECT_OK(sampler);
  return *std::move(sampler);
}

// Expects slices of 4 consecutive steps of one lane each.
void ExpectSlices(const TensorDict& batch) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto actions, batch.Flat<int64_t>("action"));
  ASSERT_EQ(actions.size(), 16u);
  for (size_t i = 0; i < actions.size(); ++i) {
    EXPECT_EQ(actions[i], actions[i - i % 4] + static_cast<int64_t>(i % 4));
  }
}

TEST(BufferOverEnsembleStorageTest, BatchesAreThoseOfOneStorage) {
  for (const int kind : {0, 1, 2}) {
    std::vector<std::unique_ptr<ReplayBuffer>> buffers;
    for (std::shared_ptr<Storage> storage :
         {MakeEnsembleStorage(), MakeStorage(4 * kLaneRows, 4)}) {
      auto buffer = ReplayBuffer::Create({.storage = std::move(storage),
                                          .sampler = MakeSampler(kind),
                                          .batch_size = 16,
                                          .seed = 3});
      RILL_ASSERT_OK(buffer);
      buffers.push_back(*std::move(buffer));
    }
    for (int64_t i = 0; i < 12; ++i) {
      std::vector<TensorDict> batches(2);
      for (size_t b = 0; b < 2; ++b) {
        ReplayBuffer& buffer = *buffers[b];
        RILL_ASSERT_OK(buffer.Extend(NumberedSteps(4, 5, 5 * i)));
        RILL_ASSERT_OK(buffer.SampleInto(&batches[b]));
        ExpectWholeSteps(batches[b], kLaneRows);
        std::vector<float> priorities;
        for (int row = 0; row < 16; ++row) {
          priorities.push_back(static_cast<float>(1 + (row * 7 + i) % 5));
        }
        RILL_ASSERT_OK(buffer.UpdatePriorities(batches[b], priorities));
      }
      if (kind == kSlices) {
        // Which trajectory has which number depends on the order of events.
        ExpectSlices(batches[0]);
      } else {
        RILL_EXPECT_OK(batches[0].CheckEqual(batches[1]));
      }
    }
  }
}

}  // namespace
}  // namespace rill
