// SPDX-License-Identifier: Apache-2.0
// A write to several members of an EnsembleStorage is one write to the buffer.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/ensemble/ensemble_storage.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kLaneRows = 8;

// Calls `then` when a write to the first lane is done, before it returns.
class AfterFirstLane final : public WriteObserver {
 public:
  explicit AfterFirstLane(std::function<void()> then)
      : then_(std::move(then)) {}
  void OnAttach(const Lanes&, absl::Span<const Cursor>) override {}
  void OnRetire(const WriteEvent&) override {}
  void OnWrite(const WriteEvent& event) override {
    if (event.retired.empty() || event.written[0].first >= kLaneRows) return;
    then_();
  }
  void OnClear() override {}

 private:
  const std::function<void()> then_;
};

TEST(BufferOverEnsembleStorageThreadsTest, NoDrawComesBetweenTheMembersWrites) {
  std::vector<std::unique_ptr<Storage>> members;
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(members.emplace_back(),
                              DenseStorage::Create({.capacity = kLaneRows}));
  }
  RILL_ASSERT_OK_AND_ASSIGN(std::shared_ptr<Storage> storage,
                            EnsembleStorage::Create(std::move(members)));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto buffer, ReplayBuffer::Create({.storage = storage,
                                               .sampler = MakeUniformSampler(),
                                               .batch_size = 256}));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(2, kLaneRows, 0)));

  TensorDict batch;
  std::thread sampling;
  AfterFirstLane hook([&] {
    std::atomic<bool> has_begun = false;
    sampling = std::thread([&] {
      has_begun = true;
      RILL_EXPECT_OK(buffer->SampleInto(&batch));
    });
    while (!has_begun) std::this_thread::yield();
    for (int i = 0; i < 200; ++i) std::this_thread::yield();
  });
  RILL_ASSERT_OK(storage->AddObserver(&hook));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(2, kLaneRows / 2, kLaneRows)));
  sampling.join();
  storage->RemoveObserver(&hook);

  RILL_ASSERT_OK_AND_ASSIGN(const auto actions, batch.Flat<int64_t>("action"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto generations,
                            batch.Flat<int64_t>("index_generation"));
  for (size_t i = 0; i < actions.size(); ++i) {
    // The row that was drawn, not the one that came in its place.
    EXPECT_EQ(actions[i] % 1000 / kLaneRows, generations[i]) << actions[i];
  }
}

}  // namespace
}  // namespace rill
