// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_CONFORMANCE_SINK_CONFORMANCE_H_
#define RILL_FLOW_CONFORMANCE_SINK_CONFORMANCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "rill/flow/sink.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// A step of the batches that the suite writes: `step` int64 [], and `wide`
// float32 [3] of the same value.
TensorDictSpec SinkConformanceSpec();

// A fresh sink of one lane with room for 100 steps, and a look behind it.
struct SinkSubject {
  std::shared_ptr<Sink> sink;
  // `step` of all that has arrived, in order; a row whose `wide` is another
  // counts as -1. A sink that hands batches on later does so here.
  std::function<std::vector<int64_t>()> arrived;
  // Batches of other leaves are refused.
  bool checks_leaves = true;
};
using SinkFactory = std::function<SinkSubject()>;

// Every Sink passes this suite; flow/sink_test.cc has sinks that it refuses. Use,
// in the sink's own test:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, SinkConformanceTest,
//                            ::testing::Values(MakeMySink));
class SinkConformanceTest : public ::testing::TestWithParam<SinkFactory> {};

// For subjects that hand batches on: keeps `step` of each row. Thread-safety:
// thread-compatible.
class StepRecorder {
 public:
  Sink& sink() { return sink_; }
  const std::vector<int64_t>& steps() const { return steps_; }

 private:
  absl::Status Add(const TensorDict& batch);

  std::vector<int64_t> steps_;
  FunctionSink sink_{
      [this](const TensorDict& batch, const WriteInfo&) { return Add(batch); }};
};

// `step` of each row, as SinkSubject::arrived.
std::vector<int64_t> StepsOf(const TensorDict& rows);

}  // namespace rill

#endif  // RILL_FLOW_CONFORMANCE_SINK_CONFORMANCE_H_
