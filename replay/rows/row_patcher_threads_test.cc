// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/flow/sink.h"
#include "rill/replay/rows/drawn_rows.h"
#include "rill/replay/rows/row_patcher.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/testing/watched_storage.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/slot.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::replay_internal {
namespace {

using ::testing::ElementsAre;

// Writes in place pass the turn on, as they do when their rows are retired, and
// then wait as long as the test holds them.
class HeldWriter final : public Writer {
 public:
  explicit HeldWriter(DrawnRows* drawn_rows)
      : Writer({.name = "HeldWriter"}), drawn_rows_(drawn_rows) {}

  void Hold() { is_holding_ = true; }
  void LetGo() { is_holding_ = false; }
  void AwaitHeld() const {
    while (held_ == 0) std::this_thread::yield();
  }

  absl::Status Attach(std::shared_ptr<Storage> storage) override {
    return inner_->Attach(std::move(storage));
  }
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override {
    return inner_->Extend(batch, info);
  }
  absl::Status WriteInPlace(absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace kind) override {
    drawn_rows_->Retired(static_cast<int64_t>(slots.size()));
    for (++held_; is_holding_;) std::this_thread::yield();
    return inner_->WriteInPlace(slots, rows, kind);
  }

 private:
  DrawnRows* const drawn_rows_;
  const std::unique_ptr<Writer> inner_ = MakeRoundRobinWriter();
  std::atomic<bool> is_holding_ = false;
  std::atomic<int> held_ = 0;
};

// A patcher over steps 0 .. 3 in slots 0 .. 3, whose actions are versions too.
class RowPatcherTest : public ::testing::Test {
 protected:
  RowPatcherTest() {
    RILL_EXPECT_OK(writer_.Attach(storage_));
    RILL_EXPECT_OK(storage_->AddObserver(sampler_->observer()));
    RILL_EXPECT_OK(writer_.Extend(NumberedSteps(1, 4), {}));
  }
  ~RowPatcherTest() override { storage_->RemoveObserver(sampler_->observer()); }

  static TensorDict PatchOf(const std::vector<Slot>& slots,
                            const std::vector<int64_t>& actions) {
    const auto n = static_cast<int64_t>(slots.size());
    TensorDict patch({n});
    RILL_EXPECT_OK(patch.Set("index", *Tensor::From<int64_t>(slots, {n})));
    RILL_EXPECT_OK(
        patch.Set("index_generation", *Tensor::Zeros(DType::kInt64, {n})));
    RILL_EXPECT_OK(patch.Set("action", *Tensor::From<int64_t>(actions, {n})));
    return patch;
  }

  std::vector<int64_t> Actions() const {
    TensorDict rows;
    RILL_EXPECT_OK(storage_->Read({0, 1, 2, 3}, &rows));
    const int64_t* const actions = rows.Find("action")->data<int64_t>();
    return {actions, actions + 4};
  }

  const std::shared_ptr<WatchedStorage> storage_ =
      std::make_shared<WatchedStorage>(MakeStorage(4));
  const std::unique_ptr<Sampler> sampler_ = MakeUniformSampler();
  DrawnRows drawn_rows_;
  HeldWriter writer_{&drawn_rows_};
  RowPatcher patcher_{storage_.get(), sampler_.get(), &writer_, &drawn_rows_};
};

// An older one that comes meanwhile would else see the version of before.
TEST_F(RowPatcherTest, VersionsAreReadWhenThePatchBeforeIsWritten) {
  const auto patch = [this](int64_t version) {
    RILL_EXPECT_OK(
        patcher_.Patch(PatchOf({0}, {version}), {.version_key = "action"}));
  };
  writer_.Hold();
  std::thread newer([&] { patch(10); });
  writer_.AwaitHeld();
  storage_->TakeReads();
  std::thread older([&] { patch(5); });
  for (int i = 0; i < 500; ++i) std::this_thread::yield();
  EXPECT_TRUE(storage_->TakeReads().empty());
  writer_.LetGo();
  newer.join();
  older.join();
  EXPECT_THAT(Actions(), ElementsAre(10, 1, 2, 3));
}

// Each row ends with the newest of all versions, in any order.
TEST_F(RowPatcherTest, TheNewestVersionStays) {
  constexpr int64_t kThreads = 3;
  constexpr int64_t kPatches = 200;
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] {
      const Rng rng(1, RngStream::kUser, thread);
      for (int64_t i = 0; i < kPatches; ++i) {
        // Versions 10 .. 609, each once, in another order in each thread.
        const int64_t version = 10 + kThreads * ((i * 77) % kPatches) + thread;
        const Slot slot = rng.UniformInt(i, 0, 2);
        RILL_EXPECT_OK(patcher_.Patch(PatchOf({slot, 2}, {version, version}),
                                      {.version_key = "action"}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Actions()[2], 10 + kThreads * kPatches - 1);
  EXPECT_EQ(Actions()[3], 3);
}

TEST_F(RowPatcherTest, APatchThatIsRefusedChangesNoRowAndEndsItsTurn) {
  TensorDict patch = PatchOf({0, 1}, {90, 91});
  RILL_ASSERT_OK(patch.Set("unknown", *Tensor::Zeros(DType::kInt64, {2})));
  EXPECT_FALSE(patcher_.Patch(patch, {}).ok());
  EXPECT_THAT(Actions(), ElementsAre(0, 1, 2, 3));
  RILL_EXPECT_OK(patcher_.Patch(PatchOf({0, 1}, {90, 91}), {}));
  EXPECT_THAT(Actions(), ElementsAre(90, 91, 2, 3));
}

}  // namespace
}  // namespace rill::replay_internal
