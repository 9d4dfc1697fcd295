// SPDX-License-Identifier: Apache-2.0
// The suite of all transports, on one rank whose threads talk by way of MPI.
#include <memory>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "rill/distributed/transport/conformance/transport_conformance.h"
#include "rill/distributed/transport/mpi/mpi_transport.h"
#include "rill/distributed/transport/ranks/rank_transport.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

// MPI begins once in a process.
std::shared_ptr<RankTransport>& TheTransport() {
  static auto* const transport = new std::shared_ptr<RankTransport>();
  return *transport;
}

INSTANTIATE_TEST_SUITE_P(Mpi, TransportConformanceTest,
                         ::testing::Values([]() -> TransportSubject {
                           return {.transport = TheTransport(),
                                   .address = "",
                                   .free_address = "rank:0/nobody"};
                         }));

TEST(MpiConformanceTest, MpiBeginsOnce) {
  EXPECT_THAT(CreateMpiTransport(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       ::testing::HasSubstr("was begun in this process")));
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  auto transport = rill::CreateMpiTransport();
  if (!transport.ok()) {
    ADD_FAILURE() << transport.status();
    return 1;
  }
  rill::TheTransport() = *std::move(transport);
  const int status = RUN_ALL_TESTS();
  rill::TheTransport() = nullptr;
  return status;
}
