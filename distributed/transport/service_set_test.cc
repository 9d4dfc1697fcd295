// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/service_set.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/inproc/inproc_transport.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

// Says its name and the method.
class Named final : public Service {
 public:
  explicit Named(std::string name) : name_(std::move(name)) {}
  absl::StatusOr<Message> Call(const CallInfo& info, const Message&) override {
    Message reply;
    reply.values.Set("name", name_);
    reply.values.Set("method", std::string(info.method));
    return reply;
  }

 private:
  const std::string name_;
};

TEST(ServiceSetTest, Example) {
  const auto run = [](std::shared_ptr<Service> replay,
                      std::shared_ptr<Service> weights) -> absl::Status {
    const absl::Time deadline = Clock::System().Now() + absl::Minutes(1);
    RILL_ASSIGN_OR_RETURN(auto transport, InprocTransport::Create());
    auto services = std::make_shared<ServiceSet>(
        ServiceSet::Services{{"replay", replay}, {"weights", weights}});
    RILL_ASSIGN_OR_RETURN(auto server, transport->Listen("", services));
    RILL_ASSIGN_OR_RETURN(auto connection,
                          transport->Connect(server->address(), deadline));
    return connection->Call("weights/pull", {}, deadline).status();
  };
  RILL_EXPECT_OK(
      run(std::make_shared<Named>("r"), std::make_shared<Named>("w")));
}

TEST(ServiceSetTest, TheFirstPartOfAMethodNamesTheService) {
  ServiceSet services({{"replay", std::make_shared<Named>("r")},
                       {"weights", std::make_shared<Named>("w")}});
  RILL_ASSERT_OK_AND_ASSIGN(const Message reply,
                            services.Call({.method = "weights/pull"}, {}));
  EXPECT_THAT(reply.values.Get<std::string>("name"), IsOkAndHolds("w"));
  EXPECT_THAT(reply.values.Get<std::string>("method"),
              IsOkAndHolds("weights/pull"));
}

TEST(ServiceSetTest, AMethodOfNoServiceListsThoseThereAre) {
  ServiceSet services(
      {{"replay", std::make_shared<Named>("r")}, {"weights", nullptr}});
  for (const char* const method : {"other/pull", "weights/pull", "", "/"}) {
    EXPECT_THAT(services.Call({.method = method}, {}),
                StatusIs(absl::StatusCode::kUnimplemented,
                         HasSubstr("replay/..., weights/...")));
  }
}

}  // namespace
}  // namespace rill
