// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/ensemble/offline_to_online.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kRows = 50;

// Steps 0, 1, ..., which nobody writes over.
std::shared_ptr<ReplayBuffer> MakeOffline() {
  std::shared_ptr<Storage> storage = MakeStorage(kRows);
  RILL_EXPECT_OK(storage->Extend(NumberedSteps(1, kRows)));
  return *ReplayBuffer::Create({.storage = std::move(storage),
                                .sampler = MakeUniformSampler(),
                                .writer = MakeImmutableWriter()});
}

std::shared_ptr<ReplayBuffer> MakeOnline() {
  return *ReplayBuffer::Create(
      {.storage = MakeStorage(kRows), .sampler = MakeUniformSampler()});
}

std::unique_ptr<OfflineToOnlineReplayBuffer> Make(Schedule fraction,
                                                  int64_t batch_size,
                                                  int64_t min_online_rows = 1) {
  return *OfflineToOnlineReplayBuffer::Create(
      {.offline = MakeOffline(),
       .online = MakeOnline(),
       .offline_fraction = std::move(fraction),
       .batch_size = batch_size,
       .min_online_rows = min_online_rows});
}

// Offline steps are below 1000, online ones not. Returns how many are offline.
int64_t CheckRows(const TensorDict& batch) {
  auto ids = batch.Flat<int64_t>("buffer_ids");
  auto actions = batch.Flat<int64_t>("action");
  RILL_EXPECT_OK(ids);
  RILL_EXPECT_OK(actions);
  int64_t offline = 0;
  for (size_t i = 0; i < ids->size(); ++i) {
    EXPECT_EQ((*ids)[i], (*actions)[i] < 1000 ? 0 : 1);
    offline += (*ids)[i] == 0;
  }
  return offline;
}

absl::StatusOr<TensorDict> RunExample(std::shared_ptr<ReplayBuffer> dataset,
                                      std::shared_ptr<ReplayBuffer> fresh,
                                      const TensorDict& steps) {
  RILL_ASSIGN_OR_RETURN(Schedule fraction, LinearSchedule(0.9, 0.1, 100));
  RILL_ASSIGN_OR_RETURN(auto buffer, OfflineToOnlineReplayBuffer::Create(
                                         {.offline = dataset,
                                          .online = fresh,
                                          .offline_fraction = fraction,
                                          .batch_size = 32}));
  RILL_RETURN_IF_ERROR(buffer->Extend(steps).status());
  RILL_ASSIGN_OR_RETURN(TensorDict batch, buffer->Sample());
  return batch;
}

TEST(OfflineToOnlineTest, Example) {
  auto online = MakeOnline();
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      RunExample(MakeOffline(), online, NumberedSteps(1, 10, 1000)));
  EXPECT_EQ(batch.batch_shape(), Shape({32}));
  EXPECT_EQ(CheckRows(batch), 29);
  EXPECT_EQ(online->size(), 10);
}

TEST(OfflineToOnlineTest, SharesFollowTheScheduleOverTheWholeRun) {
  RILL_ASSERT_OK_AND_ASSIGN(const Schedule fraction,
                            LinearSchedule(1.0, 0.0, 90));
  auto buffer = Make(fraction, 7);
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10, 1000)));
  double wanted = 0;
  int64_t offline = 0;
  TensorDict batch;
  for (int64_t i = 0; i < 100; ++i) {
    RILL_ASSERT_OK(buffer->SampleInto(&batch));
    wanted += 7 * fraction(i);
    offline += CheckRows(batch);
    ASSERT_LE(std::abs(wanted - static_cast<double>(offline)), 0.5 + 1e-9);
    if (i == 0) {
      EXPECT_EQ(offline, 7);
    }
  }
  EXPECT_EQ(CheckRows(batch), 0);
  EXPECT_THAT(buffer->GetStats().items, ElementsAre(offline, 700 - offline));
}

TEST(OfflineToOnlineTest, HalfIsOfflineWhereNothingIsSaid) {
  auto buffer = Make(nullptr, 8);
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10, 1000)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  EXPECT_EQ(CheckRows(batch), 4);
}

TEST(OfflineToOnlineTest, WhileOnlineRowsAreTooFewAllIsOffline) {
  const Schedule quarter = [](int64_t) { return 0.25; };
  auto buffer = Make(quarter, 6, /*min_online_rows=*/5);
  TensorDict batch;
  for (int64_t rows = 0; rows < 5; ++rows) {
    RILL_ASSERT_OK(buffer->SampleInto(&batch));
    EXPECT_EQ(CheckRows(batch), 6);
    RILL_ASSERT_OK(buffer->Write(NumberedSteps(1, 1, 1000 + rows), {}));
  }
  RILL_ASSERT_OK(buffer->Flush());
  // From now on just the share, nothing is made up for.
  int64_t offline = 0;
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(buffer->SampleInto(&batch));
    offline += CheckRows(batch);
  }
  EXPECT_EQ(offline, 3);
  EXPECT_EQ(buffer->GetStats().batches, 7);

  auto strict = Make(quarter, 6, /*min_online_rows=*/0);
  EXPECT_THAT(strict->Sample(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("\"online\""), HasSubstr("0 rows"))));
}

TEST(OfflineToOnlineTest, PrioritiesAndStateAreTheEnsembles) {
  RILL_ASSERT_OK_AND_ASSIGN(const Schedule fraction,
                            LinearSchedule(0.9, 0.1, 10));
  auto whole = Make(fraction, 5);
  auto resumed = Make(fraction, 5);
  for (auto* buffer : {whole.get(), resumed.get()}) {
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10, 1000)));
  }
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, whole->Sample());
    RILL_EXPECT_OK(whole->UpdatePriorities(batch, {1.0f}));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, whole->SaveState());
  RILL_ASSERT_OK(resumed->LoadState(state));
  for (int i = 0; i < 10; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, whole->Sample());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, resumed->Sample());
    EXPECT_EQ(CheckRows(got), CheckRows(want));
  }
}

TEST(OfflineToOnlineTest, WhatDoesNotFitIsRefused) {
  const auto create = [](OfflineToOnlineReplayBuffer::Options options) {
    return OfflineToOnlineReplayBuffer::Create(std::move(options)).status();
  };
  const auto offline = MakeOffline();
  const auto online = MakeOnline();
  EXPECT_THAT(create({.online = online}),
              IsInvalidArgument("offline: got null"));
  EXPECT_THAT(create({.offline = offline}),
              IsInvalidArgument("online: got null"));
  EXPECT_THAT(create({.offline = offline, .online = offline}),
              IsInvalidArgument("of its own"));
  for (const int64_t rows : {int64_t{-1}, kRows + 1}) {
    EXPECT_THAT(
        create({.offline = offline, .online = online, .min_online_rows = rows}),
        IsInvalidArgument("min_online_rows"));
  }
  for (const double bad : {-0.1, 1.1, std::nan("")}) {
    EXPECT_THAT(create({.offline = offline,
                        .online = online,
                        .offline_fraction = [=](int64_t) { return bad; }}),
                IsInvalidArgument("offline_fraction of batch 0"));
  }
  auto later = Make([](int64_t i) { return i < 1 ? 1.0 : 2.0; }, 4);
  RILL_ASSERT_OK(later->Sample());
  EXPECT_THAT(later->Sample(), IsInvalidArgument("of batch 1: got 2"));
  EXPECT_EQ(later->GetStats().batches, 1);
  EXPECT_THAT(later->offline().Extend(NumberedSteps(1, 1)),
              IsFailedPrecondition());
  EXPECT_THAT(Make(nullptr, 0)->Sample(), IsFailedPrecondition("batch_size"));
}

}  // namespace
}  // namespace rill
