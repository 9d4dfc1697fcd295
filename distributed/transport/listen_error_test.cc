// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/listen_error.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

TEST(TryToListenTest, TheErrorSaysWhy) {
  RILL_EXPECT_OK(TryToListen("127.0.0.1", 0));
  EXPECT_THAT(TryToListen("256.0.0.1:x", 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("host: ")));
  // For documentation: no machine has it.
  EXPECT_THAT(TryToListen("192.0.2.1", 0),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST(TryToListenTest, APortInUseAlreadyExists) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const of = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, of, size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, of, &size), 0);
  EXPECT_THAT(TryToListen("127.0.0.1", ntohs(address.sin_port)),
              StatusIs(absl::StatusCode::kAlreadyExists));
  close(listener);
  // Nobody listens there for having tried.
  for (int i = 0; i < 2; ++i) {
    RILL_EXPECT_OK(TryToListen("127.0.0.1", ntohs(address.sin_port)));
  }
}

}  // namespace
}  // namespace rill
