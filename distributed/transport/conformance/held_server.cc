// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/conformance/held_server.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/testing/status_matchers.h"

namespace rill {

absl::Time Soon() { return Clock::System().Now() + absl::Minutes(1); }

HeldServer::HeldServer(Transport& far, Transport& near,
                       const std::string& address)
    : near(&near), service(std::make_shared<HeldService>()) {
  auto listens = far.Listen(address, service);
  RILL_EXPECT_OK(listens.status());
  if (!listens.ok()) return;
  server = *std::move(listens);
  connection = Connect();
}

std::unique_ptr<Connection> HeldServer::Connect() const {
  auto connects = near->Connect(server->address(), Soon());
  RILL_EXPECT_OK(connects.status());
  return connects.ok() ? *std::move(connects) : nullptr;
}

std::unique_ptr<CallStream> HeldServer::Open(absl::string_view method,
                                             int64_t window) const {
  auto stream = connection->Open(method, {.window = window}, Soon());
  RILL_EXPECT_OK(stream.status());
  return stream.ok() ? *std::move(stream) : nullptr;
}

}  // namespace rill
