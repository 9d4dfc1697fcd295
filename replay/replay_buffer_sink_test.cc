// SPDX-License-Identifier: Apache-2.0
// Replay buffers as sinks.
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/flow/conformance/sink_conformance.h"
#include "rill/replay/ensemble/offline_to_online.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/writers/removing_writer.h"
#include "rill/replay/writers/top_k_writer.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/slot.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill {
namespace {

std::vector<int64_t> Stored(const Storage& storage) {
  std::vector<Slot> slots(storage.size());
  std::iota(slots.begin(), slots.end(), 0);
  TensorDict rows;
  if (slots.empty()) return {};
  RILL_EXPECT_OK(storage.Read(slots, &rows));
  return StepsOf(rows);
}

std::shared_ptr<Storage> MakeSteps() {
  return *DenseStorage::Create({.capacity = 100});
}

SinkSubject Over(const std::shared_ptr<Storage>& storage,
                 ReplayBuffer::Options options) {
  options.storage = storage;
  options.sampler = MakeUniformSampler();
  return {.sink = *ReplayBuffer::Create(std::move(options)),
          .arrived = [storage] { return Stored(*storage); }};
}

SinkSubject Plain() { return Over(MakeSteps(), {}); }
SinkSubject WithTransforms() {
  ReplayBuffer::Options options;
  options.transforms.push_back(MakeFakeRowCounter());
  return Over(MakeSteps(), std::move(options));
}
SinkSubject WithTopKWriter() {
  return Over(MakeSteps(),
              {.writer = *TopKWriter::Create({.rank_key = "step"})});
}
SinkSubject WithRemovingWriter() {
  return Over(MakeSteps(), {.writer = MakeRemovingWriter()});
}
SinkSubject OfflineToOnline() {
  const std::shared_ptr<Storage> fresh = MakeSteps();
  const auto buffer = [](const std::shared_ptr<Storage>& storage) {
    return std::shared_ptr<ReplayBuffer>(*ReplayBuffer::Create(
        {.storage = storage, .sampler = MakeUniformSampler()}));
  };
  return {.sink = *OfflineToOnlineReplayBuffer::Create(
              {.offline = buffer(MakeSteps()), .online = buffer(fresh)}),
          .arrived = [fresh] { return Stored(*fresh); }};
}

constexpr const char* kNames[] = {"Plain", "WithTransforms", "WithTopKWriter",
                                  "WithRemovingWriter", "OfflineToOnline"};

INSTANTIATE_TEST_SUITE_P(ReplayBuffers, SinkConformanceTest,
                         ::testing::Values(Plain, WithTransforms,
                                           WithTopKWriter, WithRemovingWriter,
                                           OfflineToOnline),
                         [](const auto& info) {
                           return std::string(kNames[info.index]);
                         });

}  // namespace
}  // namespace rill
