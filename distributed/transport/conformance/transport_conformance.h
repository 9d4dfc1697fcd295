// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_CONFORMANCE_TRANSPORT_CONFORMANCE_H_
#define RILL_DISTRIBUTED_TRANSPORT_CONFORMANCE_TRANSPORT_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

// A fresh engine.
struct TransportSubject {
  std::shared_ptr<Transport> transport;
  // Where the suite listens; "" where the engine chooses.
  std::string address;
  // Where nobody listens.
  std::string free_address;
};
using TransportFactory = std::function<TransportSubject()>;

// Every Transport passes this suite; inproc/inproc_transport_test.cc has
// engines that it refuses. Use, in the engine's own test:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, TransportConformanceTest,
//                            ::testing::Values(MakeMyTransport));
class TransportConformanceTest
    : public ::testing::TestWithParam<TransportFactory> {};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_CONFORMANCE_TRANSPORT_CONFORMANCE_H_
