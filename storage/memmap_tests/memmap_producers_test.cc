// SPDX-License-Identifier: Apache-2.0
// Producers in processes of their own fill one MemmapStorage through a channel.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/flow/channel/record_channel.h"
#include "rill/flow/sink.h"
#include "rill/specs/spec.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kRows = 10;
constexpr int64_t kWidth = 100;

TensorDictSpec Spec() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(
      spec.Set("wide", LeafSpec{.dtype = DType::kInt64, .shape = {kWidth}}));
  return spec;
}

int64_t ValueOf(int64_t producer, int64_t row) { return 100 * producer + row; }

TensorDict Row(int64_t value) {
  TensorDict row({1, 1});
  const std::vector<int64_t> values(kWidth, value);
  EXPECT_THAT(row.Set("wide", *Tensor::From<int64_t>(values, {1, 1, kWidth})),
              IsOk());
  return row;
}

// A child that writes kRows rows, one a batch; killed in the middle of row
// `killed_at`, if it is one.
pid_t Fork(RecordChannel* channel, int64_t producer, int64_t killed_at) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  auto sink = channel->OpenProducer(producer);
  if (!sink.ok()) _exit(2);
  for (int64_t row = 0; row < kRows; ++row) {
    ScopedFaultHook hook([&](absl::string_view point, absl::string_view) {
      if (row == killed_at && point == "channel.commit") raise(SIGKILL);
      return absl::OkStatus();
    });
    if (!(*sink)->Write(Row(ValueOf(producer, row)), {}).ok()) _exit(3);
  }
  sink->reset();
  _exit(0);
}

class MemmapProducersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string directory =
        JoinPath(::testing::TempDir(), "memmap_producers");
    RILL_ASSERT_OK(RemoveAll(directory));
    RILL_ASSERT_OK_AND_ASSIGN(storage_,
                              MemmapStorage::Create({.directory = directory,
                                                     .capacity = 2 * kRows,
                                                     .lanes = 2,
                                                     .spec = Spec()}));
    RILL_ASSERT_OK_AND_ASSIGN(
        channel_, RecordChannel::Create({.spec = Spec(), .producers = 2}));
  }

  // Fills the storage, a lane a producer, until no producer is left.
  void FillFrom(const std::vector<pid_t>& producers) {
    FunctionSink sink([&](const TensorDict& batch, const WriteInfo& info) {
      return storage_->Extend(batch, {.first_lane = info.producer}).status();
    });
    absl::Status status;
    while ((status = channel_->Wait(absl::InfiniteDuration())).ok()) {
      RILL_ASSERT_OK(channel_->Drain(&sink).status());
    }
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    for (const pid_t pid : producers) {
      int how = 0;
      EXPECT_EQ(waitpid(pid, &how, 0), pid);
    }
  }
  void ExpectRows(int64_t producer, int64_t rows) {
    EXPECT_EQ(storage_->cursors()[producer].written, rows);
    for (int64_t row = 0; row < rows; ++row) {
      TensorDict stored;
      RILL_ASSERT_OK(storage_->Read({producer * kRows + row}, &stored));
      const std::vector<int64_t> want(kWidth, ValueOf(producer, row));
      EXPECT_THAT(*stored.Flat<int64_t>("wide"),
                  ::testing::ElementsAreArray(want));
    }
  }

  std::unique_ptr<Storage> storage_;
  std::unique_ptr<RecordChannel> channel_;
};

TEST_F(MemmapProducersTest, F5TwoProducersOfTenRowsLeaveTwenty) {
  FillFrom({Fork(channel_.get(), 0, -1), Fork(channel_.get(), 1, -1)});
  EXPECT_EQ(storage_->size(), 2 * kRows);
  ExpectRows(0, kRows);
  ExpectRows(1, kRows);
}

TEST_F(MemmapProducersTest, F5AProducerKilledInMidRowHoldsUpNobody) {
  FillFrom({Fork(channel_.get(), 0, -1), Fork(channel_.get(), 1, 4)});
  EXPECT_EQ(channel_->producer_state(1), RecordChannel::ProducerState::kDied);
  EXPECT_EQ(storage_->size(), kRows + 4);
  ExpectRows(0, kRows);
  ExpectRows(1, 4);
}

}  // namespace
}  // namespace rill
