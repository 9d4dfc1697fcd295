// SPDX-License-Identifier: Apache-2.0
// A buffer notes its decisions to a recorder, and a repeat finds those that are
// not the same.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/flow/decision_log.h"
#include "rill/recorder/flight_log.h"
#include "rill/recorder/flight_recorder.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/slots/slot.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = Decision::Kind;

// Values of a run that change what a buffer does or gets.
struct Values {
  int64_t first_step = 0;
  float priority = 0.5f;
  int64_t batch_size = 4;
  bool swaps_rows = false;  // Of two equal priorities.
  Slot patched = 3;
  double beta = 0.5;  // Of weights, where priorities differ.
};

// Each call that is noted, once.
absl::Status RunOf(DecisionLog* recorder, const Values& values) {
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Storage> storage,
                        DenseStorage::Create({.capacity = 32, .lanes = 2}));
  ReplayBuffer::Options options = {.storage = std::move(storage),
                                   .batch_size = 4,
                                   .seed = 5,
                                   .recorder = recorder};
  RILL_ASSIGN_OR_RETURN(options.sampler,
                        MakePrioritizedSampler({.beta = values.beta}));
  RILL_ASSIGN_OR_RETURN(const auto buffer,
                        ReplayBuffer::Create(std::move(options)));
  RILL_RETURN_IF_ERROR(
      buffer->Write(NumberedSteps(2, 8, values.first_step), {.producer = 3}));
  RILL_RETURN_IF_ERROR(buffer->Cut(3, {.first = 1, .count = 1}));
  RILL_ASSIGN_OR_RETURN(const TensorDict batch,
                        buffer->Sample(values.batch_size));
  const std::vector<float> priorities(values.batch_size, values.priority);
  RILL_RETURN_IF_ERROR(buffer->UpdatePriorities(batch, priorities));
  std::vector<Draw> two = {{.slot = 1, .generation = 1},
                           {.slot = 2, .generation = 1}};
  if (values.swaps_rows) std::swap(two[0], two[1]);
  RILL_RETURN_IF_ERROR(buffer->UpdatePriorities(two, {0.25f, 0.25f}));
  RILL_RETURN_IF_ERROR(
      buffer->WriteAt({values.patched}, *NumberedSteps(1, 1, 40).Index(0)));
  RILL_RETURN_IF_ERROR(buffer->SamplePending().status());
  return buffer->Clear();
}

std::string NewPath(absl::string_view name) {
  return ::testing::TempDir() + "/" + std::string(name);
}

std::string RecordRun(absl::string_view name) {
  const std::string path = NewPath(name);
  const auto recorder = FlightRecorder::Record({.path = path});
  RILL_EXPECT_OK(recorder);
  RILL_EXPECT_OK(RunOf(recorder->get(), {}));
  return path;
}

TEST(FlightTest, EachCallIsNotedWithWhatItIsOf) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string log,
                            ReadFile(RecordRun("calls")));
  RILL_ASSERT_OK_AND_ASSIGN(auto decoder, FlightDecoder::Create(log));
  std::vector<std::string> texts;
  for (FlightEvent event; decoder.Next(&event);) {
    EXPECT_EQ(event.decision.digest != 0,
              event.decision.kind == Kind::kWrite ||
                  event.decision.kind == Kind::kDraw ||
                  event.decision.kind == Kind::kPriorities ||
                  event.decision.kind == Kind::kPatch);
    event.decision.digest = 0;
    texts.push_back(FlightEventText(event));
  }
  EXPECT_THAT(
      texts,
      ElementsAre(HasSubstr("ReplayBuffer: seed 5, batch_size 4, capacity 32"),
                  "write of part 0: 0 2 8", "end_lanes of part 0: 1 1",
                  "draw of part 0: 4", "priorities of part 0: 4 0 -1 4",
                  "priorities of part 0: 2", "patch of part 0: 1",
                  "draw of part 0: 4", "clear of part 0"));
}

TEST(FlightTest, AnEqualRunIsRepeatedAndAnotherIsNamed) {
  const std::string path = RecordRun("repeated");
  RILL_ASSERT_OK_AND_ASSIGN(auto recorder, FlightRecorder::Repeat(path));
  RILL_EXPECT_OK(RunOf(recorder.get(), {}));
  RILL_EXPECT_OK(recorder->status());
  const std::vector<std::pair<Values, std::string>> others = {
      {{.first_step = 1}, "event 1: got write"},
      {{.batch_size = 5}, "event 3: got draw"},
      {{.priority = 0.6f}, "event 4: got priorities"},
      {{.swaps_rows = true}, "event 5: got priorities"},
      {{.patched = 4}, "event 6: got patch"},
      {{.beta = 0.6}, "event 7: got draw"},
  };
  for (const auto& [values, got] : others) {
    RILL_ASSERT_OK_AND_ASSIGN(recorder, FlightRecorder::Repeat(path));
    EXPECT_THAT(RunOf(recorder.get(), values), IsDataLoss(got));
  }
}

}  // namespace
}  // namespace rill
