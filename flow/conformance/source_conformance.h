// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_CONFORMANCE_SOURCE_CONFORMANCE_H_
#define RILL_FLOW_CONFORMANCE_SOURCE_CONFORMANCE_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "rill/flow/source.h"

namespace rill {

// Makes a fresh source that gives the same batches each time; called several
// times. It has 10 batches at least, and can save its state.
using SourceFactory = std::function<absl::StatusOr<std::unique_ptr<Source>>()>;

// The suite that every Source passes; flow/sink_test.cc has sources that it
// refuses. Use, in the source's own test:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, SourceConformanceTest,
//                            ::testing::Values([] { return MakeMine(); }));
class SourceConformanceTest : public ::testing::TestWithParam<SourceFactory> {};

}  // namespace rill

#endif  // RILL_FLOW_CONFORMANCE_SOURCE_CONFORMANCE_H_
