// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/weights/weight_service.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;
using namespace weight_protocol;  // NOLINT: its names alone.

TensorDict Weights(float value) {
  TensorDict weights;
  RILL_EXPECT_OK(weights.Set("layer/w", *Tensor::From({value, value}, {2})));
  RILL_EXPECT_OK(weights.Set("b", *Tensor::From({value}, {1})));
  return weights;
}

std::unique_ptr<WeightStore> MakeStore(int64_t version = 0) {
  auto store = WeightStore::Create({.weights = Weights(0), .version = version});
  RILL_EXPECT_OK(store.status());
  return *std::move(store);
}

std::shared_ptr<WeightService> MakeService(const WeightStore& store) {
  WeightService::Readers readers;
  readers["policy"] = *store.OpenReader();
  auto service = WeightService::Create(std::move(readers));
  RILL_EXPECT_OK(service.status());
  return *std::move(service);
}

absl::StatusOr<Message> Pull(WeightService& service, int64_t have,
                             const std::string& name = "policy") {
  Message request{.values = SavedState(kRequest, kVersion)};
  request.values.Set(kName, name);
  request.values.Set(kHave, have);
  return service.Call({.method = kPull}, request);
}

TEST(WeightServiceTest, Example) {
  const auto store = MakeStore();
  const auto run = [&]() -> absl::Status {
    WeightService::Readers readers;
    RILL_ASSIGN_OR_RETURN(readers["policy"], store->OpenReader());
    RILL_ASSIGN_OR_RETURN(auto service,
                          WeightService::Create(std::move(readers)));
    return Pull(*service, -1).status();
  };
  RILL_EXPECT_OK(run());
}

TEST(WeightServiceTest, NewerWeightsComeAndElseTheVersionAlone) {
  const auto store = MakeStore(/*version=*/4);
  const auto service = MakeService(*store);
  RILL_ASSERT_OK_AND_ASSIGN(Message reply, Pull(*service, -1));
  EXPECT_THAT(reply.values.Get<int64_t>(kVersionValue), IsOkAndHolds(4));
  RILL_EXPECT_OK(reply.batch.CheckEqual(Weights(0)));
  RILL_ASSERT_OK_AND_ASSIGN(reply, Pull(*service, 4));
  EXPECT_THAT(reply.values.Get<int64_t>(kVersionValue), IsOkAndHolds(4));
  EXPECT_TRUE(reply.batch.empty());
  for (const float value : {1.0f, 2.0f, 3.0f}) {
    RILL_ASSERT_OK(store->Publish(Weights(value)).status());
  }
  RILL_ASSERT_OK_AND_ASSIGN(reply, Pull(*service, 4));
  EXPECT_THAT(reply.values.Get<int64_t>(kVersionValue), IsOkAndHolds(7));
  RILL_EXPECT_OK(reply.batch.CheckEqual(Weights(3)));
}

TEST(WeightServiceTest, ClientsShareTheCopyOfAVersionAndItDoesNotChange) {
  const auto store = MakeStore();
  const auto service = MakeService(*store);
  RILL_ASSERT_OK_AND_ASSIGN(const Message first, Pull(*service, -1));
  RILL_ASSERT_OK_AND_ASSIGN(const Message second, Pull(*service, -1));
  EXPECT_EQ(first.batch.Find("b")->data<float>(),
            second.batch.Find("b")->data<float>());
  for (const float value : {1.0f, 2.0f, 3.0f}) {
    RILL_ASSERT_OK(store->Publish(Weights(value)).status());
    RILL_ASSERT_OK(Pull(*service, -1).status());
  }
  RILL_EXPECT_OK(first.batch.CheckEqual(Weights(0)));
}

TEST(WeightServiceTest, BadRequestsAreNamed) {
  const auto store = MakeStore();
  const auto service = MakeService(*store);
  EXPECT_THAT(service->Call({.method = "weights/push"}, {}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("want weights/pull")));
  EXPECT_THAT(service->Call({.method = kPull}, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Pull(*service, -1, "critic"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("got \"critic\", want one of policy")));
  EXPECT_THAT(WeightService::Create({}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  WeightService::Readers readers;
  readers["policy"] = nullptr;
  EXPECT_THAT(WeightService::Create(std::move(readers)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"policy\" is null")));
}

}  // namespace
}  // namespace rill
