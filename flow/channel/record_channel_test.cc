// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/channel/record_channel.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/flow/conformance/sink_conformance.h"
#include "rill/flow/sink.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = RecordChannel::ProducerState;

TensorDictSpec Spec() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(spec.Set("observation",
                          LeafSpec{.dtype = DType::kFloat32, .shape = {3}}));
  RILL_EXPECT_OK(
      spec.Set("next/done", LeafSpec{.dtype = DType::kBool, .shape = {1}}));
  RILL_EXPECT_OK(spec.Set("id", LeafSpec{.dtype = DType::kInt64, .shape = {}}));
  return spec;
}

TensorDict Batch(const Shape& shape, uint64_t seed) {
  return *Spec().Random(shape, Rng(seed), 0);
}

// Keeps copies of what it is given.
class Recorder final : public Sink {
 public:
  absl::Status Write(const TensorDict& batch, const WriteInfo& info) override {
    if (!refuse.ok()) return refuse;
    batches.push_back(*batch.Clone());
    infos.push_back(info);
    return absl::OkStatus();
  }
  absl::Status Cut(int64_t producer, LaneRange lanes) override {
    if (!refuse.ok()) return refuse;
    cuts.push_back({producer, lanes, batches.size()});
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }

  struct SeenCut {
    int64_t producer;
    LaneRange lanes;
    size_t batches_before;
    friend bool operator==(const SeenCut&, const SeenCut&) = default;
  };

  absl::Status refuse;
  std::vector<SeenCut> cuts;
  std::vector<TensorDict> batches;
  std::vector<WriteInfo> infos;
};

TEST(RecordChannelTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto channel,
                            RecordChannel::Create({.spec = Spec()}));
  RILL_ASSERT_OK_AND_ASSIGN(auto producer, channel->OpenProducer(0));
  const TensorDict batch = Batch({2, 5}, 1);
  RILL_ASSERT_OK(producer->Write(
      batch, {.first_lane = 3, .policy_version = 7, .sequence = 9}));
  producer.reset();
  Recorder sink;
  while (channel->Wait(absl::Seconds(60)).ok()) {
    EXPECT_THAT(channel->Drain(&sink), IsOkAndHolds(1));
  }
  ASSERT_EQ(sink.batches.size(), 1);
  RILL_EXPECT_OK(sink.batches[0].CheckEqual(batch));
  EXPECT_EQ(sink.infos[0].first_lane, 3);
  EXPECT_EQ(sink.infos[0].policy_version, 7);
  EXPECT_EQ(sink.infos[0].sequence, 9);
}

TEST(RecordChannelTest, AReservedBatchIsWrittenWithoutACopy) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto channel,
                            RecordChannel::Create({.spec = Spec()}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto producer, channel->OpenProducer(0));
  const TensorDictSpec spec = Spec();
  for (uint64_t i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict lent, producer->Reserve({2, 5}));
    const TensorDict want = Batch({2, 5}, i);
    RILL_ASSERT_OK(lent.CopyFrom(want));
    RILL_ASSERT_OK(producer->Write(lent, {.sequence = 4}));
    FunctionSink sink([&](const TensorDict& batch, const WriteInfo& info) {
      for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
        EXPECT_EQ(batch.Find(leaf.key)->raw_data(),
                  lent.Find(leaf.key)->raw_data());
      }
      EXPECT_EQ(info.sequence, 4);
      return batch.CheckEqual(want);
    });
    EXPECT_THAT(channel->Drain(&sink), IsOkAndHolds(1));
  }
}

TEST(RecordChannelTest, AReservationAloneSendsNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto channel,
                            RecordChannel::Create({.spec = Spec()}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto producer, channel->OpenProducer(0));
  RILL_ASSERT_OK(producer->Reserve({2, 5}).status());
  Recorder sink;
  EXPECT_THAT(channel->Drain(&sink), IsOkAndHolds(0));
  const TensorDict batch = Batch({3}, 1);
  RILL_ASSERT_OK(producer->Write(batch, {}));
  EXPECT_THAT(channel->Drain(&sink), IsOkAndHolds(1));
  RILL_EXPECT_OK(sink.batches[0].CheckEqual(batch));
}

TEST(RecordChannelTest, APartOfAReservedBatchIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto channel,
                            RecordChannel::Create({.spec = Spec()}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto producer, channel->OpenProducer(0));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict lent, producer->Reserve({64}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict part, lent.Slice(0, 1, 33));
  EXPECT_THAT(producer->Write(part, {}), IsInvalidArgument("want all of it"));
  EXPECT_THAT(producer->Reserve({1 << 20, 100}), IsInvalidArgument());
}

TEST(RecordChannelTest, DrainOneTakesTheFirstBatchOfOneProducer) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto channel,
      RecordChannel::Create({.spec = Spec(), .producers = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto first, channel->OpenProducer(0));
  RILL_ASSERT_OK_AND_ASSIGN(const auto second, channel->OpenProducer(1));
  RILL_ASSERT_OK(first->Write(Batch({1}, 0), {.sequence = 1}));
  for (int64_t i = 1; i <= 2; ++i) {
    RILL_ASSERT_OK(second->Cut(1, {.first = 0, .count = 1}));
    RILL_ASSERT_OK(second->Write(Batch({1}, 0), {.sequence = i}));
  }
  Recorder sink;
  EXPECT_THAT(channel->DrainOne(1, &sink), IsOkAndHolds(true));
  ASSERT_EQ(sink.infos.size(), 1);
  EXPECT_EQ(sink.infos[0].producer, 1);
  EXPECT_EQ(sink.cuts.size(), 1);
  EXPECT_THAT(channel->DrainOne(1, &sink), IsOkAndHolds(true));
  EXPECT_EQ(sink.infos[1].sequence, 2);
  EXPECT_THAT(channel->DrainOne(1, &sink), IsOkAndHolds(false));
  EXPECT_THAT(channel->DrainOne(0, &sink), IsOkAndHolds(true));
  EXPECT_THAT(channel->DrainOne(2, &sink), IsOutOfRange());
}

TEST(RecordChannelTest, WhatALivingProducerHasOpenIsNotCutAsADeadOnes) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto channel,
                            RecordChannel::Create({.spec = Spec()}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto producer, channel->OpenProducer(0));
  RILL_ASSERT_OK(producer->Write(Batch({1}, 0), {}));
  Recorder sink;
  EXPECT_THAT(channel->DrainOne(0, &sink), IsOkAndHolds(true));
  RILL_EXPECT_OK(channel->CutIfDead(0, &sink));
  EXPECT_THAT(sink.cuts, IsEmpty());
  EXPECT_THAT(channel->CutIfDead(1, &sink), IsOutOfRange());
}

// Against a queue each, with rings so small that they wrap all the time.
TEST(RecordChannelTest, BatchesOfAnyShapeArriveWholeAndInOrder) {
  constexpr int64_t kProducers = 3;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto channel,
      RecordChannel::Create({.spec = Spec(),
                             .producers = kProducers,
                             .bytes = 4096,
                             .timeout = absl::ZeroDuration()}));
  std::vector<std::unique_ptr<Sink>> producers;
  for (int64_t i = 0; i < kProducers; ++i) {
    producers.push_back(*channel->OpenProducer(i));
  }
  std::vector<std::vector<TensorDict>> sent(kProducers), got(kProducers);
  FunctionSink sink([&](const TensorDict& batch, const WriteInfo& info) {
    got[info.producer].push_back(*batch.Clone());
    return absl::OkStatus();
  });
  const Rng rng(4);
  int full = 0;
  for (uint64_t i = 0; i < 5000; ++i) {
    const int64_t producer = rng.UniformInt(i, 0, kProducers);
    const int64_t lanes = 1 + rng.UniformInt(i, 1, 4);
    const int64_t steps = rng.UniformInt(i, 2, 20);
    const Shape shape =
        rng.UniformInt(i, 3, 2) == 0 ? Shape({steps}) : Shape({lanes, steps});
    TensorDict batch = Batch(shape, i);
    if (rng.UniformInt(i, 4, 4) == 0) batch = *batch.Slice(0, 0, shape[0] / 2);
    const absl::Status status = producers[producer]->Write(batch, {});
    if (absl::IsDeadlineExceeded(status)) {
      ++full;
    } else {
      RILL_ASSERT_OK(status);
      if (batch.batch_shape().num_elements() > 0) {
        sent[producer].push_back(*batch.Clone());
      }
    }
    if (rng.UniformInt(i, 5, 5) == 0) {
      RILL_ASSERT_OK(channel->Drain(&sink).status());
    }
  }
  RILL_ASSERT_OK(channel->Drain(&sink).status());
  EXPECT_GT(full, 0);
  for (int64_t producer = 0; producer < kProducers; ++producer) {
    ASSERT_EQ(got[producer].size(), sent[producer].size());
    for (size_t i = 0; i < got[producer].size(); ++i) {
      RILL_ASSERT_OK(got[producer][i].CheckEqual(sent[producer][i]));
    }
  }
}

TEST(RecordChannelTest, ThreadsMayProduceAndFlushWaitsForTheDrain) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto channel,
      RecordChannel::Create({.spec = Spec(), .producers = 2, .bytes = 8192}));
  constexpr uint64_t kBatches = 500;
  std::vector<uint64_t> next(2);
  FunctionSink sink([&](const TensorDict& batch, const WriteInfo& info) {
    return batch.CheckEqual(
        Batch({1, 4}, 2 * next[info.producer]++ + info.producer));
  });
  const auto produce = [&](int64_t producer) {
    auto end = channel->OpenProducer(producer);
    ASSERT_TRUE(end.ok());
    for (uint64_t i = 0; i < kBatches; ++i) {
      ASSERT_TRUE((*end)->Write(Batch({1, 4}, 2 * i + producer), {}).ok());
    }
    EXPECT_TRUE((*end)->Flush().ok());
  };
  std::thread first(produce, 0), second(produce, 1);
  absl::Status status = absl::OkStatus();
  while (status.ok()) {
    status = channel->Wait(absl::InfiniteDuration());
    if (status.ok()) status = channel->Drain(&sink).status();
  }
  first.join();
  second.join();
  EXPECT_THAT(status, IsUnavailable());
  EXPECT_EQ(next[0], kBatches);
  EXPECT_EQ(next[1], kBatches);
  EXPECT_EQ(channel->producer_state(0), State::kClosed);
}

TEST(RecordChannelTest, WhatDoesNotFitIsRefusedAndNothingIsSent) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto channel,
      RecordChannel::Create({.spec = Spec(), .bytes = 4096}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto producer, channel->OpenProducer(0));
  const auto refused = [&](const TensorDict& batch, const std::string& text) {
    EXPECT_THAT(producer->Write(batch, {}), IsInvalidArgument(text));
  };
  refused(Batch({200, 1}, 1), "at most 4096");
  refused(Batch({}, 1), "want [lanes, time]");
  refused(Batch({1, 1, 1}, 1), "want [lanes, time]");
  TensorDict batch = Batch({1, 2}, 1);
  RILL_ASSERT_OK(batch.Delete("id"));
  refused(batch, "id");
  RILL_ASSERT_OK(batch.Set("id", *Tensor::Zeros(DType::kInt32, {1, 2})));
  refused(batch, "int32");
  batch = Batch({1, 2}, 1);
  RILL_ASSERT_OK(batch.Set("next/text", NonTensor{"\"x\""}));
  refused(batch, "next/text");
  Recorder sink;
  EXPECT_THAT(channel->Drain(&sink), IsOkAndHolds(0));
}

TEST(RecordChannelTest, OptionsAreChecked) {
  const auto create = [](RecordChannel::Options options) {
    return RecordChannel::Create(options).status();
  };
  EXPECT_THAT(create({}), IsInvalidArgument());
  TensorDictSpec spec = Spec();
  RILL_ASSERT_OK(spec.SetNonTensor("text"));
  EXPECT_THAT(create({.spec = spec}), IsInvalidArgument());
  EXPECT_THAT(create({.spec = Spec(), .producers = 0}), IsInvalidArgument());
  EXPECT_THAT(create({.spec = Spec(), .bytes = 0}), IsInvalidArgument());
  // More than there is.
  EXPECT_THAT(
      create({.spec = Spec(), .producers = 4096, .bytes = int64_t{1} << 40}),
      IsResourceExhausted());
}

TEST(RecordChannelTest, WhatTheSinkRefusesStaysUntilAnotherTakesIt) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto channel,
      RecordChannel::Create({.spec = Spec(), .producers = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto producer, channel->OpenProducer(1));
  for (uint64_t i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(producer->Write(Batch({1, 2}, i), {}));
  }
  Recorder sink;
  sink.refuse = absl::ResourceExhaustedError("disk full");
  EXPECT_THAT(channel->Drain(&sink),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("disk full"), HasSubstr("producer 1"))));
  Recorder drops;
  EXPECT_THAT(channel->DrainOne(1, &drops), IsOkAndHolds(true));
  EXPECT_THAT(channel->DrainOne(0, &drops), IsOkAndHolds(false));
  EXPECT_THAT(channel->DrainOne(2, &drops), IsOutOfRange());
  sink.refuse = absl::OkStatus();
  EXPECT_THAT(channel->Drain(&sink), IsOkAndHolds(2));
  RILL_EXPECT_OK(sink.batches[0].CheckEqual(Batch({1, 2}, 1)));
}

TEST(RecordChannelTest, CutsArriveInOrderAndStayWhereTheyAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto channel,
      RecordChannel::Create({.spec = Spec(), .producers = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto producer, channel->OpenProducer(1));
  RILL_ASSERT_OK(producer->Write(Batch({2, 2}, 1), {.first_lane = 4}));
  RILL_ASSERT_OK(producer->Cut(0, {.first = 4, .count = 2}));
  RILL_ASSERT_OK(producer->Write(Batch({2, 2}, 2), {.first_lane = 4}));
  RILL_ASSERT_OK(producer->Cut(0, {.first = 5, .count = 1}));
  EXPECT_THAT(producer->Cut(0, {}), IsInvalidArgument());
  Recorder sink;
  EXPECT_THAT(channel->Drain(&sink), IsOkAndHolds(2));
  const Recorder::SeenCut first = {1, {.first = 4, .count = 2}, 1};
  const Recorder::SeenCut second = {1, {.first = 5, .count = 1}, 2};
  EXPECT_THAT(sink.cuts, ElementsAre(first, second));

  RILL_ASSERT_OK(producer->Cut(0, {.first = 4, .count = 1}));
  sink.refuse = absl::UnavailableError("busy");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(channel->Drain(&sink), IsUnavailable("from producer 1"));
  }
  sink.refuse = absl::OkStatus();
  EXPECT_THAT(channel->Drain(&sink), IsOkAndHolds(0));
  EXPECT_EQ(sink.cuts.size(), 3);
}

TEST(RecordChannelTest, AProducerThatClosesMayGoOn) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto channel,
                            RecordChannel::Create({.spec = Spec()}));
  Recorder sink;
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto producer, channel->OpenProducer(0));
    RILL_ASSERT_OK(producer->Write(Batch({1, 2}, i), {}));
  }
  EXPECT_THAT(channel->Drain(&sink), IsOkAndHolds(2));
  EXPECT_THAT(channel->Wait(absl::InfiniteDuration()), IsUnavailable());
  EXPECT_THAT(channel->Drain(&sink), IsOkAndHolds(0));
  EXPECT_THAT(sink.cuts, IsEmpty());
}

TEST(RecordChannelTest, ProducersAreToldWhenTheChannelGoes) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto channel, RecordChannel::Create({.spec = Spec(), .bytes = 4096}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto producer, channel->OpenProducer(0));
  std::thread thread([&] {
    absl::Status status;
    while (status.ok()) status = producer->Write(Batch({1, 8}, 1), {});
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  });
  RILL_EXPECT_OK(channel->Wait(absl::InfiniteDuration()));
  // The producer's sink holds the memory as well, which the channel closes.
  channel.reset();
  thread.join();
}

TEST(RecordChannelTest, ARecordThatClaimsTheNextOneIsNotTaken) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto channel,
      RecordChannel::Create({.spec = Spec(), .bytes = 4096}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto producer, channel->OpenProducer(0));
  RILL_ASSERT_OK(producer->Write(Batch({2, 2}, 1), {}));
  RILL_ASSERT_OK(producer->Write(Batch({2, 2}, 2), {}));
  constexpr int64_t kPage = 4096;  // Behind that of the ring's numbers.
  auto* const bytes =
      static_cast<int64_t*>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE,
                                 MAP_SHARED, channel->fd(), 2 * kPage));
  ASSERT_NE(bytes, MAP_FAILED);
  *bytes *= 2;
  munmap(bytes, kPage);
  Recorder sink;
  EXPECT_THAT(channel->Drain(&sink), IsDataLoss());
  EXPECT_TRUE(sink.batches.empty());
}

TEST(RecordChannelTest, WhatABrokenProducerHadOpenIsCut) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto channel,
      RecordChannel::Create({.spec = Spec(), .bytes = 4096}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto producer, channel->OpenProducer(0));
  RILL_ASSERT_OK(producer->Write(Batch({2, 2}, 1), {.first_lane = 3}));
  Recorder sink;
  RILL_ASSERT_OK(channel->Drain(&sink).status());
  RILL_ASSERT_OK(producer->Write(Batch({2, 2}, 2), {.first_lane = 3}));
  constexpr int64_t kPage = 4096;  // Behind that of the ring's numbers.
  auto* const words =
      static_cast<int64_t*>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE,
                                 MAP_SHARED, channel->fd(), 2 * kPage));
  ASSERT_NE(words, MAP_FAILED);
  words[words[0] / 8] = 1;  // The bytes of the second record.
  munmap(words, kPage);
  EXPECT_THAT(channel->Drain(&sink), IsDataLoss());
  EXPECT_THAT(channel->Drain(&sink), IsOkAndHolds(0));
  const Recorder::SeenCut want = {0, {.first = 3, .count = 2}, 1};
  EXPECT_THAT(sink.cuts, ElementsAre(want));
}

// A producer's process may write anything anywhere in the memory.
TEST(RecordChannelTest, NothingThatAProducerWritesIsBelieved) {
  const Rng rng(11);
  int refused = 0;
  for (uint64_t round = 0; round < 500; ++round) {
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto channel,
        RecordChannel::Create({.spec = Spec(), .producers = 2, .bytes = 4096}));
    RILL_ASSERT_OK_AND_ASSIGN(const auto bad, channel->OpenProducer(0));
    RILL_ASSERT_OK_AND_ASSIGN(const auto good, channel->OpenProducer(1));
    RILL_ASSERT_OK(bad->Write(Batch({2, 2}, round), {}));
    RILL_ASSERT_OK(good->Write(Batch({2, 2}, round), {}));
    // Its ring's page and the record's header: page 1, and behind the pages of
    // both rings the first of the data.
    constexpr int64_t kPage = 4096;
    auto* const memory =
        static_cast<std::byte*>(mmap(nullptr, 5 * kPage, PROT_READ | PROT_WRITE,
                                     MAP_SHARED, channel->fd(), 0));
    ASSERT_NE(memory, MAP_FAILED);
    const int64_t place = rng.UniformInt(round, 0, 2) == 0 ? 1 : 3;
    const int64_t word = rng.UniformInt(round, 1, 6);
    const int64_t values[] = {-1,   0,         1,         63,
                              4097, INT64_MIN, INT64_MAX, int64_t{1} << 40};
    const int64_t value = values[rng.UniformInt(round, 2, 8)];
    std::memcpy(memory + place * kPage + 8 * word, &value, 8);
    munmap(memory, 5 * kPage);
    Recorder sink;
    absl::Status status = channel->Drain(&sink).status();
    if (!status.ok()) {
      ++refused;
      EXPECT_THAT(status, IsDataLoss("producer 0"));
      RILL_EXPECT_OK(channel->Drain(&sink).status());
      EXPECT_FALSE(bad->Write(Batch({1, 1}, 0), {}).ok());
    }
    ASSERT_TRUE(
        std::any_of(sink.infos.begin(), sink.infos.end(),
                    [](const WriteInfo& info) { return info.producer == 1; }));
  }
  EXPECT_GT(refused, 100);
}

SinkSubject Producer() {
  struct Channel {
    StepRecorder recorder;
    std::unique_ptr<RecordChannel> channel =
        *RecordChannel::Create({.spec = SinkConformanceSpec()});
    std::unique_ptr<Sink> producer = *channel->OpenProducer(0);
  };
  const auto all = std::make_shared<Channel>();
  return {.sink = {all, all->producer.get()}, .arrived = [all] {
            RILL_EXPECT_OK(all->channel->Drain(&all->recorder.sink()));
            return all->recorder.steps();
          }};
}
INSTANTIATE_TEST_SUITE_P(RecordChannel, SinkConformanceTest,
                         ::testing::Values(Producer));

}  // namespace
}  // namespace rill
