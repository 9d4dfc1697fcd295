// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/rows/lane_sources.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/log_severity.h"
#include "absl/log/scoped_mock_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/flow/producers.h"
#include "rill/flow/sink.h"
#include "rill/flow/trajectory_id.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kLanes = 2;

// Something that steps an environment a lane and writes the steps to lanes
// [first, first + count). A row of "step" has the number of this source, the
// episode from bit 12 on and the time in it.
class Writer {
 public:
  Writer(int64_t number, WriteInfo info, int64_t count, bool stores_ids)
      : number_(number),
        info_(info),
        count_(count),
        stores_ids_(stores_ids),
        rng_(static_cast<uint64_t>(number)),
        episodes_(static_cast<size_t>(count)),
        times_(static_cast<size_t>(count)) {}

  // A batch of `steps`, and what is written with it.
  TensorDict Next(int64_t steps) {
    if (info_.source != 0) ++info_.sequence;
    const Shape shape = {count_, steps};
    TensorDict batch(shape);
    Tensor step = *Tensor::Zeros(DType::kInt64, shape.Concat({1}));
    Tensor ids = *Tensor::Zeros(DType::kInt64, shape);
    Tensor done = *Tensor::Zeros(DType::kBool, shape.Concat({1}));
    Tensor truncated = *Tensor::Zeros(DType::kBool, shape.Concat({1}));
    for (int64_t i = 0; i < count_ * steps; ++i) {
      int64_t& episode = episodes_[i / steps];
      int64_t& time = times_[i / steps];
      step.data<int64_t>()[i] = number_ << 32 | episode << 12 | time++;
      // By hand, as a user numbers episodes who thinks of one source.
      ids.data<int64_t>()[i] =
          info_.source == 0 ? episode : TrajectoryId(info_.producer, episode);
      if (rng_.Bits(0, drawn_++)[0] % 8 == 0) {
        done.data<bool>()[i] = true;
        ++episode;
        time = 0;
      }
    }
    RILL_EXPECT_OK(batch.Set("step", step));
    if (stores_ids_) {
      RILL_EXPECT_OK(batch.Set("collector/traj_ids", ids));
    }
    RILL_EXPECT_OK(batch.Set("next/done", done));
    RILL_EXPECT_OK(batch.Set("next/truncated", truncated));
    return batch;
  }
  const WriteInfo& info() const { return info_; }
  bool is_numbered() const { return info_.source != 0; }

 private:
  const int64_t number_;
  WriteInfo info_;
  const int64_t count_;
  const bool stores_ids_;
  const Rng rng_;
  uint32_t drawn_ = 0;
  std::vector<int64_t> episodes_;
  std::vector<int64_t> times_;
};

std::unique_ptr<ReplayBuffer> MakeBuffer(std::shared_ptr<Storage> storage,
                                         int64_t length = 2) {
  return *ReplayBuffer::Create(
      {.storage = std::move(storage),
       .sampler = *MakeSliceSampler({.length = length}),
       .batch_size = 100 * length});
}

std::shared_ptr<Storage> MakeStorage(int64_t lane_capacity,
                                     int64_t lanes = kLanes) {
  return *DenseStorage::Create(
      {.capacity = lanes * lane_capacity, .lanes = lanes});
}

// The steps of each slice follow one another.
void ExpectNeighbours(ReplayBuffer& buffer, int64_t length) {
  const auto batch = buffer.Sample();
  RILL_ASSERT_OK(batch);
  const Tensor* const steps = batch->Find("step");
  const int64_t* const step = steps->data<int64_t>();
  for (int64_t i = 0; i < steps->num_elements(); ++i) {
    if (i % length == 0) continue;
    ASSERT_EQ(step[i], step[i - 1] + 1)
        << std::hex << step[i - 1] << ", then " << step[i];
  }
}

// Sources of all kinds take turns in two lanes, lose batches, are replaced by
// others of their number, and another buffer writes to the storage too.
TEST(LaneSourcesTest, NoSliceHasStepsThatDoNotFollowOneAnother) {
  for (uint64_t history = 0; history < 60; ++history) {
    const Rng rng(history);
    const bool stores_ids = history % 2 == 0;
    const auto storage = MakeStorage(/*lane_capacity=*/40);
    const auto buffer = MakeBuffer(storage);
    const auto second = MakeBuffer(storage);
    const int64_t kinds = 1 + static_cast<int64_t>(history % 3);
    std::vector<std::unique_ptr<Writer>> writers;
    int64_t made = 0;
    const auto make = [&](size_t i) {
      const Rng::Block bits = rng.Bits(1, static_cast<uint32_t>(made));
      const bool by_hand = kinds > 1 && i == 0;
      const int64_t first = bits[0] % kLanes;
      WriteInfo info;
      // Two have the same number.
      info.producer = by_hand ? 7 : static_cast<int64_t>(i / 2);
      info.first_lane = first;
      info.source = by_hand ? 0 : NewSource();
      return std::make_unique<Writer>(
          made++, info, bits[1] % 2 == 0 ? 1 : kLanes - first, stores_ids);
    };
    for (size_t i = 0; i < 4; ++i) writers.push_back(make(i));
    Writer other(99, {.producer = 8}, kLanes, stores_ids);
    for (uint32_t turn = 0; turn < 60; ++turn) {
      const Rng::Block bits = rng.Bits(0, turn);
      const size_t who = bits[0] % writers.size();
      Writer& writer = *writers[who];
      const TensorDict batch = writer.Next(1 + bits[1] % 6);
      const uint32_t what = bits[2] % 10;
      if (what == 0 && writer.is_numbered()) continue;  // It is lost.
      RILL_ASSERT_OK(buffer->Write(batch, writer.info()));
      if (what == 1 && writer.is_numbered()) writers[who] = make(who);
      if (what == 2 && kinds == 3) {
        RILL_ASSERT_OK(second->Write(other.Next(3), other.info()));
      }
      if (turn > 5) ExpectNeighbours(*buffer, 2);
      if (HasFatalFailure()) FAIL() << "history " << history << ", " << turn;
    }
  }
}

int64_t Truncated(const Storage& storage) {
  std::vector<Slot> slots;
  const Lanes lanes = storage.lanes();
  for (int64_t lane = 0; lane < lanes.count; ++lane) {
    const int64_t written = storage.cursors()[lane].written;
    for (int64_t i = 0; i < std::min(written, lanes.capacity); ++i) {
      slots.push_back(lanes.SlotOf(lane, i));
    }
  }
  TensorDict rows;
  RILL_EXPECT_OK(storage.Read(slots, &rows));
  const bool* const flags = rows.Find("next/truncated")->data<bool>();
  return std::count(flags, flags + slots.size(), true);
}

TEST(LaneSourcesTest, NothingIsCutWhereRowsFollow) {
  const auto storage = MakeStorage(/*lane_capacity=*/400);
  const auto buffer = MakeBuffer(storage, /*length=*/12);
  Writer a(0, {.first_lane = 0, .source = NewSource()}, 1, false);
  Writer b(1, {.first_lane = 1, .source = NewSource()}, 1, false);
  for (int turn = 0; turn < 40; ++turn) {
    Writer& writer = turn % 2 == 0 ? a : b;
    const TensorDict batch = writer.Next(3);
    RILL_ASSERT_OK(buffer->Write(batch, writer.info()));
  }
  EXPECT_EQ(Truncated(*storage), 0);
  ExpectNeighbours(*buffer, 12);
  // By hand, without any number.
  const auto by_hand = MakeStorage(/*lane_capacity=*/400);
  const auto second = MakeBuffer(by_hand);
  Writer hand(2, {}, kLanes, false);
  for (int turn = 0; turn < 40; ++turn) {
    RILL_ASSERT_OK(second->Extend(hand.Next(3)).status());
  }
  EXPECT_EQ(Truncated(*by_hand), 0);
}

TEST(LaneSourcesTest, AResumedSourceGoesOnAndAFreshOneDoesNot) {
  for (const bool is_resumed : {true, false}) {
    const auto storage = MakeStorage(/*lane_capacity=*/400);
    WriteInfo info = {.producer = 3, .source = NewSource()};
    Writer writer(0, info, kLanes, true);
    {
      const auto buffer = MakeBuffer(storage);
      for (int turn = 0; turn < 3; ++turn) {
        const TensorDict batch = writer.Next(1);
        RILL_ASSERT_OK(buffer->Write(batch, writer.info()));
      }
    }
    const int64_t ended = Truncated(*storage);
    EXPECT_EQ(ended, 0);
    // Another process, so another source.
    const auto buffer = MakeBuffer(storage);
    Writer fresh(1, {.producer = 3, .source = NewSource()}, kLanes, true);
    const TensorDict batch = is_resumed ? writer.Next(1) : fresh.Next(1);
    WriteInfo now = is_resumed ? writer.info() : fresh.info();
    now.source = NewSource();
    RILL_ASSERT_OK(buffer->Write(batch, now));
    EXPECT_EQ(Truncated(*storage) > 0, !is_resumed);
    ExpectNeighbours(*buffer, 2);
  }
}

// Rows with done alone.
TensorDict Uncuttable() {
  TensorDict batch({1, 4});
  RILL_EXPECT_OK(
      batch.Set("next/done", *Tensor::Zeros(DType::kBool, {1, 4, 1})));
  return batch;
}

TEST(LaneSourcesTest, RowsThatCannotBeCutAreRefused) {
  const auto buffer = MakeBuffer(MakeStorage(/*lane_capacity=*/40, 1));
  WriteInfo a = {.producer = 0, .source = NewSource()};
  RILL_ASSERT_OK(buffer->Write(Uncuttable(), a));
  RILL_ASSERT_OK(buffer->Write(Uncuttable(), a));
  EXPECT_THAT(
      buffer->Write(Uncuttable(), {.source = NewSource()}),
      IsFailedPrecondition("want one of them to tell where a trajectory "
                           "was cut"));
  RILL_EXPECT_OK(buffer->Write(Uncuttable(), a));
  EXPECT_EQ(buffer->size(), 12);
}

// Nobody knows whether they follow on each other.
TEST(LaneSourcesTest, ByHandTheyAreToldOnce) {
  absl::ScopedMockLog log(absl::MockLogDefault::kIgnoreUnexpected);
  EXPECT_CALL(log, Log(absl::LogSeverity::kWarning, _,
                       HasSubstr("samples join their rows")))
      .Times(1);
  log.StartCapturingLogs();
  const auto buffer = MakeBuffer(MakeStorage(/*lane_capacity=*/40, 1));
  for (int64_t turn = 0; turn < 6; ++turn) {
    RILL_ASSERT_OK(buffer->Write(Uncuttable(), {.producer = turn % 2}));
  }
  EXPECT_EQ(buffer->size(), 24);
}

TEST(LaneSourcesTest, NamesLanesThatNobodyWritesOnce) {
  absl::ScopedMockLog log(absl::MockLogDefault::kIgnoreUnexpected);
  EXPECT_CALL(log,
              Log(absl::LogSeverity::kWarning, _,
                  AllOf(HasSubstr("lanes [2, 4)"), HasSubstr("2 of 4 lanes"))))
      .Times(1);
  log.StartCapturingLogs();
  for (const int64_t lanes : {4, 2}) {
    const auto buffer = MakeBuffer(MakeStorage(/*lane_capacity=*/400, lanes));
    Writer writer(0, {.source = NewSource()}, kLanes, true);
    for (int turn = 0; turn < 300; ++turn) {
      const TensorDict batch = writer.Next(1);
      RILL_ASSERT_OK(buffer->Write(batch, writer.info()));
    }
  }
}

TEST(LaneSourcesTest, SaysOnceThatABatchIsLongerThanALane) {
  absl::ScopedMockLog log(absl::MockLogDefault::kIgnoreUnexpected);
  EXPECT_CALL(
      log, Log(absl::LogSeverity::kWarning, _,
               AllOf(HasSubstr("batch of 12 steps a lane"),
                     HasSubstr("which has 8 slots"), HasSubstr("oldest 8 rows"),
                     HasSubstr("at least 24"))))
      .Times(1);
  log.StartCapturingLogs();
  const auto buffer = MakeBuffer(MakeStorage(/*lane_capacity=*/8));
  Writer writer(0, {.source = NewSource()}, kLanes, true);
  for (const int64_t steps : {8, 12, 12}) {
    RILL_ASSERT_OK(buffer->Write(writer.Next(steps), writer.info()));
  }
}

TEST(LaneSourcesTest, SaysOnceThatSourcesShareLanes) {
  absl::ScopedMockLog log(absl::MockLogDefault::kIgnoreUnexpected);
  EXPECT_CALL(log, Log(absl::LogSeverity::kWarning, _,
                       HasSubstr("several sources write there in turn")))
      .Times(1);
  log.StartCapturingLogs();
  const auto buffer = MakeBuffer(MakeStorage(/*lane_capacity=*/400));
  Writer a(0, {.producer = 0}, kLanes, false);
  Writer b(1, {.producer = 1}, kLanes, false);
  for (int turn = 0; turn < 20; ++turn) {
    Writer& writer = turn % 2 == 0 ? a : b;
    RILL_ASSERT_OK(buffer->Write(writer.Next(2), writer.info()));
  }
}

}  // namespace
}  // namespace rill
