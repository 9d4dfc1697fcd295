// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/weights/remote_weights.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/inproc/inproc_faults.h"
#include "rill/distributed/transport/inproc/inproc_transport.h"
#include "rill/distributed/transport/transport.h"
#include "rill/distributed/weights/weight_service.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr char kAddress[] = "learner";

// Each element is the version.
TensorDict Weights(int64_t version) {
  TensorDict weights;
  RILL_EXPECT_OK(
      weights.Set("w", *Tensor::From({version, version, version}, {3})));
  return weights;
}

std::unique_ptr<WeightStore> MakeStore(int64_t version = 0) {
  auto store =
      WeightStore::Create({.weights = Weights(version), .version = version});
  RILL_EXPECT_OK(store.status());
  return *std::move(store);
}

std::unique_ptr<Server> Serve(Transport& transport, const WeightStore& store,
                              const std::string& address = kAddress) {
  WeightService::Readers readers;
  readers["policy"] = *store.OpenReader();
  auto service = WeightService::Create(std::move(readers));
  RILL_EXPECT_OK(service.status());
  auto server = transport.Listen(address, *service);
  RILL_EXPECT_OK(server.status());
  return *std::move(server);
}

std::shared_ptr<InprocTransport> MakeInproc(const InprocFaults& faults = {}) {
  auto transport = InprocTransport::Create(faults);
  RILL_EXPECT_OK(transport.status());
  return *std::move(transport);
}

std::unique_ptr<RemoteWeights> MakeRemote(
    std::shared_ptr<Transport> transport,
    const std::string& address = kAddress) {
  auto weights = RemoteWeights::Create(
      {.server = {.transport = std::move(transport),
                  .address = address,
                  .reply_timeout = absl::Milliseconds(200)}});
  RILL_EXPECT_OK(weights.status());
  return *std::move(weights);
}

TEST(RemoteWeightsTest, Example) {
  const auto inproc = MakeInproc();
  const auto store = MakeStore();
  const auto server = Serve(*inproc, *store);
  const auto run = [](std::shared_ptr<Transport> transport,
                      const std::string& address) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(
        auto weights, RemoteWeights::Create({.server = {.transport = transport,
                                                        .address = address}}));
    RILL_ASSIGN_OR_RETURN(auto reader, weights->store().OpenReader());
    return weights->Pull().status();
  };
  RILL_EXPECT_OK(run(inproc, kAddress));
}

TEST(RemoteWeightsTest, VersionsAreThoseOfTheLearnerAndSomeAreSkipped) {
  const auto transport = MakeInproc();
  const auto store = MakeStore(/*version=*/10);
  const auto server = Serve(*transport, *store);
  const auto weights = MakeRemote(transport);
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader, weights->store().OpenReader());
  EXPECT_EQ(reader->Latest().version, 10);
  EXPECT_THAT(weights->Pull(), IsOkAndHolds(10));
  for (int64_t version = 11; version <= 15; ++version) {
    RILL_ASSERT_OK(store->Publish(Weights(version)).status());
  }
  EXPECT_EQ(reader->Latest().version, 10);
  EXPECT_THAT(weights->Pull(), IsOkAndHolds(15));
  const WeightStore::Snapshot latest = reader->Latest();
  EXPECT_EQ(latest.version, 15);
  RILL_EXPECT_OK(latest.weights.CheckEqual(Weights(15)));
}

TEST(RemoteWeightsTest, AProgramInBetweenServesWhatItPulled) {
  const auto transport = MakeInproc();
  const auto store = MakeStore();
  const auto server = Serve(*transport, *store);
  const auto between = MakeRemote(transport);
  const auto relay = Serve(*transport, between->store(), "relay");
  const auto weights = MakeRemote(transport, "relay");
  RILL_ASSERT_OK(store->Publish(Weights(1)).status());
  EXPECT_THAT(weights->Pull(), IsOkAndHolds(0));
  EXPECT_THAT(between->Pull(), IsOkAndHolds(1));
  EXPECT_THAT(weights->Pull(), IsOkAndHolds(1));
}

TEST(RemoteWeightsTest, SnapshotsAreWholeWhateverTheLineDoes) {
  const auto transport = MakeInproc({.seed = 4,
                                     .lose_request = 0.1,
                                     .lose_reply = 0.1,
                                     .repeat = 0.2,
                                     .late = 0.1});
  const auto store = MakeStore();
  const auto server = Serve(*transport, *store);
  std::atomic<bool> is_done = false;
  std::thread learner([&] {
    for (int64_t version = 1; !is_done; ++version) {
      RILL_EXPECT_OK(store->Publish(Weights(version)).status());
    }
  });
  const auto weights = MakeRemote(transport);
  RILL_ASSERT_OK_AND_ASSIGN(const auto reader, weights->store().OpenReader());
  int64_t newest = 0;
  for (int i = 0; i < 100; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const int64_t version, weights->Pull());
    EXPECT_GE(version, newest);
    newest = version;
    const WeightStore::Snapshot latest = reader->Latest();
    EXPECT_EQ(latest.version, version);
    RILL_EXPECT_OK(latest.weights.CheckEqual(Weights(version)));
  }
  is_done = true;
  learner.join();
}

TEST(RemoteWeightsTest, ALearnerThatIsAwayLeavesTheLatest) {
  const auto transport = MakeInproc();
  const auto store = MakeStore(/*version=*/5);
  auto server = Serve(*transport, *store);
  absl::StatusOr<std::unique_ptr<RemoteWeights>> weights = nullptr;
  do {
    weights = RemoteWeights::Create({.server = {
                                         .transport = transport,
                                         .address = kAddress,
                                         .timeout = absl::Milliseconds(20),
                                     }});
  } while (absl::IsDeadlineExceeded(weights.status()));
  RILL_ASSERT_OK(weights.status());
  server = nullptr;
  EXPECT_THAT((*weights)->Pull(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("learner")));
  EXPECT_EQ((*weights)->store().version(), 5);
}

TEST(RemoteWeightsTest, ALearnerThatBeganAnewIsRefused) {
  const auto transport = MakeInproc();
  auto store = MakeStore(/*version=*/5);
  auto server = Serve(*transport, *store);
  const auto weights = MakeRemote(transport);
  RILL_ASSERT_OK(store->Publish(Weights(6)).status());
  server = nullptr;
  server = Serve(*transport, *store);
  EXPECT_THAT(weights->Pull(), IsOkAndHolds(6));
  server = nullptr;
  store = MakeStore(/*version=*/0);
  server = Serve(*transport, *store);
  EXPECT_THAT(weights->Pull(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("got version 0, want at least 6")));
  EXPECT_EQ(weights->store().version(), 6);
}

TEST(RemoteWeightsTest, WeightsOfOtherLeavesAreRefused) {
  const auto transport = MakeInproc();
  const auto store = MakeStore();
  auto server = Serve(*transport, *store);
  const auto weights = MakeRemote(transport);
  TensorDict other;
  RILL_ASSERT_OK(other.Set("v", *Tensor::From({1.0f}, {1})));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto others, WeightStore::Create({.weights = other, .version = 9}));
  server = nullptr;
  server = Serve(*transport, *others);
  EXPECT_THAT(weights->Pull(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"w\"")));
  EXPECT_EQ(weights->store().version(), 0);
}

TEST(RemoteWeightsTest, AWrongNameIsAnErrorAtOnce) {
  const auto transport = MakeInproc();
  const auto store = MakeStore();
  const auto server = Serve(*transport, *store);
  EXPECT_THAT(RemoteWeights::Create({.server = {.transport = transport,
                                                .address = kAddress,
                                                .timeout = absl::Hours(1)},
                                     .name = "critic"}),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(RemoteWeights::Create({}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("transport: got null")));
}

}  // namespace
}  // namespace rill
