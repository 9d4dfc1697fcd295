// SPDX-License-Identifier: Apache-2.0
// Sink::Cut of a replay buffer: nothing that is sampled goes over the place.
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/flow/sink.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/list/list_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kLanes = 2;
constexpr int64_t kCapacity = 10;  // Of a lane.
constexpr int64_t kSteps = 4;      // A batch's.

// Open trajectories, [lanes, time]; the flags that `keys` name.
TensorDict Open(const std::vector<std::string>& flags = {"next/done",
                                                         "next/terminated",
                                                         "next/truncated"},
                const Shape& shape = {kLanes, kSteps}) {
  TensorDict batch(shape);
  RILL_EXPECT_OK(batch.Set("next/reward",
                           *Tensor::Zeros(DType::kFloat32, shape.Concat({1}))));
  for (const std::string& key : flags) {
    RILL_EXPECT_OK(
        batch.Set(key, *Tensor::Zeros(DType::kBool, shape.Concat({1}))));
  }
  return batch;
}

absl::StatusOr<SampleUnit> NStep() {
  return MakeTransitions(
      {.n_step = NStepReturns::Options{.num_steps = 3, .gamma = 0.5}});
}
absl::StatusOr<SampleUnit> Slices() {
  return MakeSlices({.slices = {.length = 3}, .marks = std::nullopt});
}
absl::StatusOr<SampleUnit> Sequences() {
  return MakeSequences({.sequences = {.length = 2, .burn_in = 1, .period = 1}});
}

struct Subject {
  std::shared_ptr<Storage> storage =
      *DenseStorage::Create({.capacity = kLanes * kCapacity, .lanes = kLanes});
  std::unique_ptr<ReplayBuffer> buffer;

  explicit Subject(absl::StatusOr<SampleUnit> unit,
                   std::unique_ptr<Writer> writer = nullptr,
                   std::shared_ptr<Storage> over = nullptr) {
    if (over != nullptr) storage = std::move(over);
    buffer = *ReplayBuffer::Create(
        {.storage = storage,
         .sampler = unit.ok() ? *MakeUniformSamplerOver(*std::move(unit))
                              : MakeUniformSampler(),
         .batch_size = 12,
         .writer = std::move(writer)});
  }
};

absl::Status NoUnit() { return absl::NotFoundError("no unit"); }

std::vector<int64_t> Flags(const Storage& storage, const std::string& key) {
  std::vector<Slot> slots;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    for (int64_t i = 0; i < storage.size() / kLanes; ++i) {
      slots.push_back(lane * kCapacity + i);
    }
  }
  TensorDict rows;
  RILL_EXPECT_OK(storage.ReadLeaves(slots, {key}, &rows));
  std::vector<int64_t> set;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (rows.Find(key)->data<bool>()[i]) set.push_back(slots[i]);
  }
  return set;
}

// How many items of 100 batches go on over the place between the two batches,
// in each lane.
std::vector<int64_t> CountSpans(ReplayBuffer& buffer) {
  std::vector<int64_t> spans(kLanes);
  for (int i = 0; i < 100; ++i) {
    auto batch = buffer.Sample();
    RILL_EXPECT_OK(batch);
    if (!batch.ok()) return {-1};
    const Tensor& index = *batch->Find("index");
    const Tensor* const steps = batch->Find("steps_to_next_obs");
    for (int64_t row = 0; row < index.num_elements(); ++row) {
      const Slot first = index.data<int64_t>()[row];
      // Rows of slices and sequences are threes.
      const Slot last = steps == nullptr
                            ? index.data<int64_t>()[row - row % 3 + 2]
                            : first + steps->data<int64_t>()[row] - 1;
      const int64_t lane = first / kCapacity;
      const Slot place = lane * kCapacity + kSteps;
      spans[lane] += first < place && last >= place;
    }
  }
  return spans;
}

TEST(ReplayBufferCutTest, NoItemGoesOverTheCut) {
  for (const auto make : {NStep, Slices, Sequences}) {
    Subject subject(make());
    RILL_ASSERT_OK(subject.buffer->Write(Open(), {}));
    RILL_ASSERT_OK(subject.buffer->Cut(0, {.first = 1, .count = 1}));
    RILL_ASSERT_OK(subject.buffer->Write(Open(), {}));
    const std::vector<int64_t> spans = CountSpans(*subject.buffer);
    EXPECT_GT(spans[0], 0);  // Was not cut.
    EXPECT_EQ(spans[1], 0);
  }
}

TEST(ReplayBufferCutTest, TheNewestStepIsTruncatedInEveryKindOfStorage) {
  const std::string directory = testing::TempDir() + "/cut_memmap";
  const std::vector<std::shared_ptr<Storage>> storages = {
      *DenseStorage::Create({.capacity = kLanes * kCapacity, .lanes = kLanes}),
      *ListStorage::Create({.capacity = kLanes * kCapacity, .lanes = kLanes}),
      *MemmapStorage::Create({.directory = directory,
                              .capacity = kLanes * kCapacity,
                              .lanes = kLanes})};
  for (const std::shared_ptr<Storage>& storage : storages) {
    Subject subject(NoUnit(), nullptr, storage);
    RILL_ASSERT_OK(subject.buffer->Write(Open(), {}));
    RILL_ASSERT_OK(subject.buffer->Cut(0, {.first = 0, .count = kLanes}));
    RILL_ASSERT_OK(subject.buffer->Write(Open(), {}));
    EXPECT_THAT(Flags(*storage, "next/truncated"), ElementsAre(3, 13));
    EXPECT_THAT(Flags(*storage, "next/done"), ElementsAre(3, 13));
    EXPECT_THAT(Flags(*storage, "next/terminated"), IsEmpty());
  }
}

// Ends the process where an append begins to overwrite rows.
class KillerOfWriter final : public WriteObserver {
 public:
  void OnAttach(const Lanes&, absl::Span<const Cursor>) override {}
  void OnRetire(const WriteEvent&) override { raise(SIGKILL); }
  void OnWrite(const WriteEvent&) override {}
  void OnClear() override {}
};

TEST(ReplayBufferCutTest, ALaneThatAKilledWriterTookHasNothingOpen) {
  const MemmapStorage::Options options = {
      .directory = testing::TempDir() + "/cut_killed",
      .capacity = kLanes * kCapacity,
      .lanes = kLanes};
  RILL_ASSERT_OK_AND_ASSIGN(std::shared_ptr<Storage> storage,
                            MemmapStorage::Create(options));
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(storage->Extend(Open()).status());
  storage.reset();
  const pid_t writer = fork();
  if (writer == 0) {
    KillerOfWriter killer;
    storage = *MemmapStorage::Open(options);
    storage->AddObserver(&killer).IgnoreError();
    storage
        ->Extend(Open({"next/done", "next/terminated", "next/truncated"},
                      {1, kCapacity}))
        .IgnoreError();
    _exit(1);
  }
  int how = 0;
  ASSERT_EQ(waitpid(writer, &how, 0), writer);
  ASSERT_TRUE(WIFSIGNALED(how));
  RILL_ASSERT_OK_AND_ASSIGN(storage, MemmapStorage::Open(options));
  ASSERT_EQ(storage->size(), kCapacity);  // Of lane 1.
  Subject subject(NoUnit(), nullptr, storage);
  RILL_EXPECT_OK(subject.buffer->Cut(0, {.first = 0, .count = 1}));
  RILL_ASSERT_OK(subject.buffer->Cut(0, {.first = 0, .count = kLanes}));
  TensorDict newest;
  RILL_ASSERT_OK(
      storage->Read({kCapacity + (3 * kSteps - 1) % kCapacity}, &newest));
  EXPECT_TRUE(*newest.Find("next/truncated")->data<bool>());
  EXPECT_TRUE(*newest.Find("next/done")->data<bool>());
}

TEST(ReplayBufferCutTest, WhatHasEndedStaysAsItIs) {
  Subject subject(Slices());
  TensorDict batch = Open();
  batch.Find("next/done")->data<bool>()[kSteps - 1] = true;
  batch.Find("next/terminated")->data<bool>()[kSteps - 1] = true;
  RILL_ASSERT_OK(subject.buffer->Write(batch, {}));
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(subject.buffer->Cut(0, {.first = 0, .count = kLanes}));
  }
  RILL_ASSERT_OK(subject.buffer->Write(Open(), {}));
  EXPECT_THAT(Flags(*subject.storage, "next/truncated"), ElementsAre(13));
  EXPECT_THAT(Flags(*subject.storage, "next/done"), ElementsAre(3, 13));
}

TEST(ReplayBufferCutTest, RowsWithoutDoneAreCutAndEndByItsParts) {
  const std::vector<std::string> parts = {"next/terminated", "next/truncated"};
  for (const auto make : {NStep, Slices, Sequences}) {
    Subject subject(make());
    TensorDict batch = Open(parts);
    batch.Find("next/terminated")->data<bool>()[kSteps - 1] = true;
    RILL_ASSERT_OK(subject.buffer->Write(batch, {}));
    RILL_ASSERT_OK(subject.buffer->Cut(0, {.first = 0, .count = kLanes}));
    RILL_ASSERT_OK(subject.buffer->Write(Open(parts), {}));
    EXPECT_THAT(Flags(*subject.storage, "next/truncated"), ElementsAre(13));
    EXPECT_THAT(Flags(*subject.storage, "next/terminated"), ElementsAre(3));
    EXPECT_THAT(CountSpans(*subject.buffer), ElementsAre(0, 0));
  }
}

TEST(ReplayBufferCutTest, AnOpenedBufferKeepsTheCut) {
  Subject subject(Slices());
  RILL_ASSERT_OK(subject.buffer->Write(Open(), {}));
  RILL_ASSERT_OK(subject.buffer->Cut(0, {.first = 0, .count = kLanes}));
  const std::string directory = testing::TempDir() + "/cut_saved";
  RILL_ASSERT_OK(subject.buffer->Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto opened,
      ReplayBuffer::Open(
          directory, {.storage = *DenseStorage::Create(
                          {.capacity = kLanes * kCapacity, .lanes = kLanes}),
                      .sampler = *MakeUniformSamplerOver(*Slices()),
                      .batch_size = 12}));
  RILL_ASSERT_OK(opened->Write(Open(), {}));
  EXPECT_THAT(CountSpans(*opened), ElementsAre(0, 0));
}

TEST(ReplayBufferCutTest, RowsThatCannotTellACutRefuseIt) {
  Subject slices(Slices());
  RILL_ASSERT_OK(slices.buffer->Cut(0, {.first = 0, .count = 2}));  // No rows.
  RILL_ASSERT_OK(slices.buffer->Write(Open({"next/done"}), {}));
  EXPECT_THAT(slices.buffer->Cut(0, {.first = 0, .count = 1}),
              IsFailedPrecondition("write \"next/truncated\" too"));
  // Single rows know no order.
  Subject rows(NoUnit());
  RILL_ASSERT_OK(rows.buffer->Write(Open({"next/done"}), {}));
  RILL_EXPECT_OK(rows.buffer->Cut(0, {.first = 0, .count = 1}));
  EXPECT_THAT(Flags(*rows.storage, "next/done"), IsEmpty());
}

// Units are told of other ends than the cut sets, so they would go over it.
TEST(ReplayBufferCutTest, EndsOfOtherNamesThanACutSetsRefuseIt) {
  TensorDict batch = Open();
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor stop,
                            Tensor::Zeros(DType::kBool, {kLanes, kSteps, 1}));
  RILL_ASSERT_OK(batch.Set("stop", stop));
  for (const bool has_both : {false, true}) {
    EventKeys keys = {.ends = {"stop"}};
    if (has_both) keys.ends.push_back("next/truncated");
    Subject subject(Slices(), nullptr,
                    *DenseStorage::Create({.capacity = kLanes * kCapacity,
                                           .lanes = kLanes,
                                           .event_keys = keys}));
    RILL_ASSERT_OK(subject.buffer->Write(batch, {}));
    const absl::Status cut =
        subject.buffer->Cut(0, {.first = 0, .count = kLanes});
    if (has_both) {
      RILL_ASSERT_OK(cut);
      RILL_ASSERT_OK(subject.buffer->Write(batch, {}));
      EXPECT_THAT(CountSpans(*subject.buffer), ElementsAre(0, 0));
      continue;
    }
    EXPECT_THAT(cut, IsFailedPrecondition("EventKeys::ends"));
  }
}

TEST(ReplayBufferCutTest, TrajectoryIdsTellWithoutFlags) {
  Subject subject(Slices());
  TensorDict batch = Open({});
  for (int64_t id = 0; id < 2; ++id) {
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor ids,
                              Tensor::Zeros(DType::kInt64, {kLanes, kSteps}));
    std::fill_n(ids.data<int64_t>(), ids.num_elements(), id);
    RILL_ASSERT_OK(batch.Set("collector/traj_ids", ids));
    RILL_ASSERT_OK(subject.buffer->Write(batch, {}));
    RILL_ASSERT_OK(subject.buffer->Cut(0, {.first = 0, .count = kLanes}));
  }
  EXPECT_THAT(CountSpans(*subject.buffer), ElementsAre(0, 0));
}

TEST(ReplayBufferCutTest, LanesAndWritersAreChecked) {
  Subject subject(Slices());
  RILL_ASSERT_OK(subject.buffer->Write(Open(), {}));
  for (const LaneRange lanes :
       {LaneRange{-1, 1}, LaneRange{0, 3}, LaneRange{1, 2}, LaneRange{3, 0},
        LaneRange{0, -1}, LaneRange{INT64_MAX, INT64_MAX}}) {
    EXPECT_THAT(subject.buffer->Cut(0, lanes),
                IsOutOfRange("want lanes in [0, 2)"));
  }
  RILL_EXPECT_OK(subject.buffer->Cut(0, {.first = kLanes, .count = 0}));
  EXPECT_THAT(Flags(*subject.storage, "next/done"), IsEmpty());
  Subject dataset(NoUnit(), MakeImmutableWriter(), subject.storage);
  EXPECT_THAT(dataset.buffer->Cut(0, {.first = 0, .count = 1}),
              IsFailedPrecondition());
}

}  // namespace
}  // namespace rill
