// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/replay/replay_service.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/replay/replay_protocol.h"
#include "rill/distributed/transport/inproc/inproc_transport.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/replay/rate_limiter.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/structure/sequence_lines.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using namespace replay_protocol;  // NOLINT: its names alone.

std::unique_ptr<ReplayBuffer> MakeBuffer() {
  auto buffer = ReplayBuffer::Create({.storage = MakeStorage(100),
                                      .sampler = MakeUniformSampler(),
                                      .batch_size = 4});
  RILL_EXPECT_OK(buffer.status());
  return *std::move(buffer);
}

ReplayService::Tables OneTable(std::unique_ptr<ReplayBuffer> buffer) {
  ReplayService::Tables tables;
  tables["replay"] = std::move(buffer);
  return tables;
}

std::shared_ptr<ReplayService> MakeService() {
  auto service = ReplayService::Create(OneTable(MakeBuffer()));
  RILL_EXPECT_OK(service.status());
  return *std::move(service);
}

Message Request(absl::string_view table = "replay") {
  Message request{.values = SavedState(kRequest, kVersion)};
  request.values.Set(kTable, std::string(table));
  return request;
}

Message WriteRequest(int64_t number, TensorDict batch,
                     absl::string_view client = "a") {
  Message request = Request();
  request.values.Set(kClient, std::string(client));
  request.values.Set(kNumber, number);
  request.values.Set(kKind, kWrite);
  for (const absl::string_view name :
       {kProducer, kFirstLane, kLanes, kPolicyVersion, kSequence, kSource}) {
    request.values.Set(name, int64_t{0});
  }
  request.batch = std::move(batch);
  return request;
}

Message HelloRequest(int64_t newest, int64_t rows) {
  Message request = Request();
  request.values.Set(kClient, std::string("a"));
  request.values.Set(kNewest, newest);
  request.values.Set(kRows, rows);
  return request;
}

int64_t ValueOf(const absl::StatusOr<Message>& reply, absl::string_view name) {
  RILL_EXPECT_OK(reply.status());
  if (!reply.ok()) return -1;
  const auto value = reply->values.Get<int64_t>(name);
  RILL_EXPECT_OK(value.status());
  return value.value_or(-1);
}

TEST(ReplayServiceTest, Example) {
  const std::string directory =
      absl::StrCat(::testing::TempDir(), "/replay_service_example");
  const auto run = [&](std::unique_ptr<ReplayBuffer> buffer) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(const std::unique_ptr<Transport> transport,
                          InprocTransport::Create());
    std::map<std::string, std::unique_ptr<ReplayBuffer>> tables;
    tables["replay"] = std::move(buffer);
    RILL_ASSIGN_OR_RETURN(auto service,
                          ReplayService::Create(std::move(tables)));
    RILL_ASSIGN_OR_RETURN(auto server, transport->Listen("", service));
    RILL_RETURN_IF_ERROR(
        service->table("replay")->Extend(NumberedSteps(1, 10)).status());
    return service->Save(directory);
  };
  RILL_EXPECT_OK(run(MakeBuffer()));
}

TEST(ReplayServiceTest, ARepeatedOperationIsCarriedOutOnce) {
  const auto service = MakeService();
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(service->Call({.method = kOperation},
                                 WriteRequest(1, NumberedSteps(1, 10))));
  }
  EXPECT_EQ(ValueOf(service->Call({.method = kStats}, Request()), kSize), 10);
  RILL_ASSERT_OK(service->Call({.method = kOperation},
                               WriteRequest(1, NumberedSteps(1, 5), "b")));
  const auto stats = service->Call({.method = kStats}, Request());
  EXPECT_EQ(ValueOf(stats, kSize), 15);
  EXPECT_EQ(ValueOf(stats, kClients), 2);
  EXPECT_EQ(ValueOf(stats, kCapacity), 100);
}

TEST(ReplayServiceTest, ASampleNamesItsServer) {
  const auto service = MakeService();
  RILL_ASSERT_OK(service->table("replay")->Extend(NumberedSteps(1, 10)));
  Message request = Request();
  request.values.Set(kBatchSize, int64_t{7});
  RILL_ASSERT_OK_AND_ASSIGN(Message reply,
                            service->Call({.method = kSample}, request));
  ExpectWholeSteps(reply.batch, 100);
  RILL_ASSERT_OK_AND_ASSIGN(const auto servers,
                            reply.batch.Flat<int64_t>(kServerKey));
  EXPECT_EQ(servers.size(), 7);
  for (const int64_t server : servers) {
    EXPECT_EQ(server, service->server_number());
  }
  request.values.Set(kBatchSize, int64_t{0});
  RILL_ASSERT_OK_AND_ASSIGN(reply, service->Call({.method = kSample}, request));
  EXPECT_EQ(reply.batch.batch_shape().num_elements(), 4);
}

TEST(ReplayServiceTest, PrioritiesOfAnotherStartAreStale) {
  const auto service = MakeService();
  const auto other = MakeService();
  RILL_ASSERT_OK(service->table("replay")->Extend(NumberedSteps(1, 10)));
  Message request = Request();
  request.values.Set(kBatchSize, int64_t{3});
  RILL_ASSERT_OK_AND_ASSIGN(Message sample,
                            service->Call({.method = kSample}, request));
  Message update = Request();
  update.batch = sample.batch;
  update.values.Set(kPriorities, std::vector<double>{1.0});
  EXPECT_EQ(ValueOf(other->Call({.method = kUpdate}, update), kStale), 3);
  EXPECT_NE(service->server_number(), other->server_number());
}

TEST(ReplayServiceTest, ACheckpointHasTheRowsAndWhatWasCarriedOut) {
  const std::string directory =
      absl::StrCat(::testing::TempDir(), "/replay_service_checkpoint");
  {
    const auto service = MakeService();
    RILL_ASSERT_OK(service->Call({.method = kOperation},
                                 WriteRequest(1, NumberedSteps(1, 10))));
    RILL_ASSERT_OK(service->Save(directory));
    RILL_ASSERT_OK(service->Call({.method = kOperation},
                                 WriteRequest(2, NumberedSteps(1, 10, 10))));
  }
  ReplayService::TableOptions options;
  options["replay"] = {.storage = MakeStorage(100),
                       .sampler = MakeUniformSampler(),
                       .batch_size = 4};
  RILL_ASSERT_OK_AND_ASSIGN(const auto service,
                            ReplayService::Open(directory, std::move(options)));
  EXPECT_EQ(service->table("replay")->size(), 10);
  // The client had two acknowledged: the second is lost.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(
        ValueOf(service->Call({.method = kHello}, HelloRequest(2, 20)), kLost),
        10);
  }
  RILL_ASSERT_OK(service->Call({.method = kOperation},
                               WriteRequest(3, NumberedSteps(1, 5, 20))));
  // A request that is late from before the loss is known to be old.
  RILL_ASSERT_OK(service->Call({.method = kOperation},
                               WriteRequest(2, NumberedSteps(1, 10, 10))));
  EXPECT_EQ(service->table("replay")->size(), 15);
}

TEST(ReplayServiceTest, BadRequestsAreNamedAndChangeNothing) {
  const auto service = MakeService();
  const auto refuses = [&](absl::string_view method, const Message& request,
                           absl::StatusCode code, const std::string& says) {
    EXPECT_THAT(service->Call({.method = method}, request),
                StatusIs(code, HasSubstr(says)));
  };
  refuses("replay/none", Request(), absl::StatusCode::kUnimplemented,
          "replay/hello, replay/operation");
  refuses(kStats, Request("other"), absl::StatusCode::kNotFound,
          "got \"other\", want one of replay");
  refuses(kStats, {}, absl::StatusCode::kFailedPrecondition, "ReplayRequest");
  refuses(kOperation, Request(), absl::StatusCode::kFailedPrecondition,
          "client");
  refuses(kSample, Request(), absl::StatusCode::kFailedPrecondition,
          "batch_size");
  refuses(kUpdate, Request(), absl::StatusCode::kNotFound, "index_server");
  Message newer = Request();
  newer.values = SavedState(kRequest, kVersion + 1);
  refuses(kStats, newer, absl::StatusCode::kFailedPrecondition, "version 2");
  refuses(kHello, HelloRequest(-1, 0), absl::StatusCode::kInvalidArgument,
          "newest -1");
  Message wrong = WriteRequest(1, NumberedSteps(1, 2));
  wrong.values.Set(kKind, int64_t{9});
  refuses(kOperation, wrong, absl::StatusCode::kInvalidArgument, "got 9");
  EXPECT_EQ(service->table("replay")->size(), 0);
}

TEST(ReplayServiceTest, TablesAreNeeded) {
  EXPECT_THAT(ReplayService::Create({}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ReplayService::Create(OneTable(nullptr)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"replay\" is null")));
}

TEST(ReplayServiceTest, SeveralBatchesComeInOneReply) {
  const auto service = MakeService();
  const CallInfo info = {.method = kSample};
  Message request = Request();
  request.values.Set(kBatchSize, int64_t{5});
  request.values.Set(kCount, int64_t{3});
  EXPECT_THAT(service->Call(info, request).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  RILL_ASSERT_OK(service->table("replay")->Extend(NumberedSteps(1, 20)));
  RILL_ASSERT_OK_AND_ASSIGN(const Message reply, service->Call(info, request));
  RILL_ASSERT_OK_AND_ASSIGN(const auto rows, reply.values.Ints(kBatchRows));
  // All three, unless the machine was busy for 10 ms.
  EXPECT_THAT(rows, Each(5));
  EXPECT_EQ(reply.batch.batch_shape(),
            Shape({5 * static_cast<int64_t>(rows.size())}));
  for (const int64_t count : {0, 65}) {
    request.values.Set(kCount, count);
    EXPECT_THAT(service->Call(info, request).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("want [1, 64]")));
  }
}

TEST(ReplayServiceTest, ABatchThatIsDrawnWaitsForNoOther) {
  const std::shared_ptr<RateLimiter> limiter =
      *RateLimiter::Create(RateLimiter::Queue(20));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer,
      ReplayBuffer::Create({.storage = MakeStorage(100),
                            .sampler = MakeUniformSampler(),
                            .batch_size = 8,
                            .rate_limiter = limiter,
                            .rate_limit_timeout = absl::Milliseconds(1)}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto service,
                            ReplayService::Create(OneTable(std::move(buffer))));
  RILL_ASSERT_OK(service->table("replay")->Extend(NumberedSteps(1, 20)));
  Message request = Request();
  request.values.Set(kBatchSize, int64_t{0});
  request.values.Set(kCount, int64_t{3});
  while (limiter->CanSample(8)) {
    RILL_ASSERT_OK(service->Call({.method = kSample}, request));
  }
  EXPECT_EQ(limiter->GetStats().samples.waits, 0);
  EXPECT_EQ(limiter->GetStats().done.samples, 16);
}

TEST(ReplayServiceTest, BatchesOfATransformMayHaveMoreDimensions) {
  RILL_ASSERT_OK_AND_ASSIGN(auto sampler, MakeSliceSampler({.length = 4}));
  ReplayBuffer::Options options = {.storage = MakeStorage(100),
                                   .sampler = std::move(sampler),
                                   .batch_size = 8};
  RILL_ASSERT_OK_AND_ASSIGN(options.transforms.emplace_back(),
                            SequenceLines::Create({.length = 4}));
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create(std::move(options)));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 20)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto service,
                            ReplayService::Create(OneTable(std::move(buffer))));
  Message request = Request();
  request.values.Set(kBatchSize, int64_t{0});
  for (const int64_t count : {0, 1, 2}) {
    if (count > 0) request.values.Set(kCount, count);
    RILL_ASSERT_OK_AND_ASSIGN(const Message reply,
                              service->Call({.method = kSample}, request));
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor server,
                              reply.batch.Get("index_server"));
    EXPECT_EQ(reply.batch.batch_shape().rank(), 2);
    EXPECT_EQ(server.shape(), reply.batch.batch_shape());
  }
}

// Into new memory, into that of an earlier reply, and where that is still held.
TEST(ReplayServiceTest, SeveralBatchesAreThoseThatComeOneByOne) {
  const auto several = MakeService();
  const auto one_by_one = MakeService();
  for (const auto& service : {several, one_by_one}) {
    RILL_ASSERT_OK(service->table("replay")->Extend(NumberedSteps(1, 100)));
  }
  const CallInfo info = {.method = kSample};
  Message request = Request();
  request.values.Set(kBatchSize, int64_t{5});
  Message single = request;
  request.values.Set(kCount, int64_t{3});
  Message held;
  TensorDict copy;
  for (int round = 0; round < 8; ++round) {
    RILL_ASSERT_OK_AND_ASSIGN(Message reply, several->Call(info, request));
    RILL_ASSERT_OK_AND_ASSIGN(const auto rows, reply.values.Ints(kBatchRows));
    for (size_t i = 0; i < rows.size(); ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(Message want, one_by_one->Call(info, single));
      const auto begin = static_cast<int64_t>(5 * i);
      RILL_ASSERT_OK_AND_ASSIGN(TensorDict got,
                                reply.batch.Slice(0, begin, begin + 5));
      for (TensorDict* batch : {&got, &want.batch}) {
        RILL_ASSERT_OK(batch->Delete("index_server"));
      }
      RILL_EXPECT_OK(got.CheckEqual(want.batch));
    }
    if (round != 3) continue;
    RILL_ASSERT_OK_AND_ASSIGN(copy, reply.batch.Clone());
    held = std::move(reply);
  }
  RILL_EXPECT_OK(held.batch.CheckEqual(copy));
}

TEST(ReplayServiceTest, ASampleThatSomebodyHoldsStaysAsItIs) {
  const auto service = MakeService();
  RILL_ASSERT_OK(service->table("replay")->Extend(NumberedSteps(1, 100)));
  const CallInfo info = {.method = kSample};
  Message request = Request();
  request.values.Set(kBatchSize, int64_t{50});
  RILL_ASSERT_OK_AND_ASSIGN(Message held, service->Call(info, request));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, held.batch.Clone());
  const auto* const bytes = held.batch.Find("action")->raw_data();
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(service->Call(info, request));
  RILL_EXPECT_OK(held.batch.CheckEqual(want));
  held = {};
  // Its memory is one of those that serve again.
  std::set<const std::byte*> places;
  std::vector<Message> replies;
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(Message reply, service->Call(info, request));
    places.insert(reply.batch.Find("action")->raw_data());
    replies.push_back(std::move(reply));
  }
  EXPECT_EQ(places.count(bytes), 1);
}

}  // namespace
}  // namespace rill
