// SPDX-License-Identifier: Apache-2.0
// What a sample of a storage on a device costs: launches, copies of rows,
// allocations, waits and bytes. A number that grows is a slower sample.
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/mixture_selector.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/selectors/recent_selector.h"
#include "rill/samplers/selectors/staleness_selector.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using Operation = FakeBackend::Operation;
using Kind = FakeBackend::Call::Kind;

struct Costs {
  int64_t gathers = 0;
  int64_t launches = 0;
  int64_t allocations = 0;
  int64_t waits = 0;
  int64_t copies = 0;  // Between host and device, as copies of their own.
  int64_t bytes = 0;   // Theirs, and those that launches read on the host.
  friend bool operator==(const Costs&, const Costs&) = default;
  friend void PrintTo(const Costs& costs, std::ostream* out) {
    *out << costs.gathers << " gathers, " << costs.launches << " launches, "
         << costs.allocations << " allocations, " << costs.waits << " waits, "
         << costs.copies << " copies, " << costs.bytes << " bytes";
  }
};

class Counter {
 public:
  explicit Counter(FakeBackend* fake) : fake_(fake), before_(Counts()) {
    fake_->StartCalls();
  }
  Costs Take() {
    Costs costs = Counts();
    costs.gathers -= before_.gathers;
    costs.launches -= before_.launches;
    costs.allocations -= before_.allocations;
    for (const FakeBackend::Call& call : fake_->TakeCalls()) {
      costs.waits += call.kind == Kind::kSynchronizeEvent ||
                     call.kind == Kind::kSynchronizeStream;
      costs.bytes += call.host_bytes;
      if (call.kind == Kind::kCopy && call.from_device != call.to_device) {
        ++costs.copies;
        costs.bytes += call.bytes;
      }
    }
    return costs;
  }

 private:
  Costs Counts() const {
    return {.gathers = fake_->Count(Operation::kGatherRows),
            .launches = fake_->Count(Operation::kLaunch),
            .allocations = fake_->Count(Operation::kAllocate)};
  }

  FakeBackend* const fake_;
  const Costs before_;
};

const NStepReturns::Options kThreeSteps = {.num_steps = 3};
const StackFrames::Options kFourFrames = {
    .num_frames = 4, .keys = {"pixels", "next/pixels"}, .dim = -3};

class SampleCostsTest : public ::testing::Test {
 protected:
  // Costs of a sample into a batch that is used again, and of a pending one.
  struct Both {
    Costs into;
    Costs pending;
  };
  Both CostsOf(std::unique_ptr<Sampler> sampler, int64_t batch_size) {
    FakeBackend* const fake = FakeBackend::Install({});
    Both both;
    {
      auto buffer = *ReplayBuffer::Create(
          {.storage = *DenseStorage::Create(
               {.capacity = 400, .device = Device::Fake(0)}),
           .sampler = std::move(sampler),
           .batch_size = batch_size});
      RILL_EXPECT_OK(buffer->Extend(Steps()));
      TensorDict batch;
      for (int i = 0; i < 3; ++i) RILL_EXPECT_OK(buffer->SampleInto(&batch));
      Counter into(fake);
      RILL_EXPECT_OK(buffer->SampleInto(&batch));
      both.into = into.Take();
      RILL_EXPECT_OK(buffer->SamplePending());
      Counter pending(fake);
      RILL_EXPECT_OK(buffer->SamplePending());
      both.pending = pending.Take();
    }
    return both;
  }

  // The waits of one write of a batch on the device.
  static int64_t WaitsOfAWrite(std::unique_ptr<Sampler> sampler) {
    FakeBackend* const fake = FakeBackend::Install({});
    auto buffer = *ReplayBuffer::Create(
        {.storage = *DenseStorage::Create(
             {.capacity = 400, .device = Device::Fake(0)}),
         .sampler = std::move(sampler)});
    const TensorDict steps = *Steps().To(Device::Fake(0));
    RILL_EXPECT_OK(buffer->Extend(steps));
    Counter write(fake);
    RILL_EXPECT_OK(buffer->Extend(steps));
    return write.Take().waits;
  }

 private:
  static TensorDict Steps() {
    TensorDictSpec spec;
    const auto set = [&spec](absl::string_view key, const LeafSpec& leaf) {
      RILL_EXPECT_OK(spec.Set(key, leaf));
    };
    const LeafSpec pixels = LeafSpec::Unbounded(DType::kUInt8, {1, 4, 4});
    set("pixels", pixels);
    set("action", LeafSpec::Categorical(4));
    set("next/pixels", pixels);
    set("next/reward", LeafSpec::Unbounded(DType::kFloat32, {1}));
    set("next/terminated", LeafSpec::Binary({1}));
    set("next/truncated", LeafSpec::Binary({1}));
    set("next/done", LeafSpec::Binary({1}));
    return *spec.Random({1, 400}, Rng(3, RngStream::kUser), 0);
  }
};

std::unique_ptr<Sampler> Over(absl::StatusOr<SampleUnit> unit) {
  RILL_EXPECT_OK(unit);
  return *MakeUniformSamplerOver(*std::move(unit));
}

TEST_F(SampleCostsTest, PlainRows) {
  const Both costs = CostsOf(MakeUniformSampler(), 128);
  // Slots and generations.
  EXPECT_EQ(
      costs.into,
      (Costs{.gathers = 1, .launches = 1, .waits = 1, .bytes = 128 * 2 * 8}));
  EXPECT_EQ(costs.pending.waits, 0);
}

// Where nobody follows trajectories no flag goes to the host.
TEST_F(SampleCostsTest, AWriteWaitsForTheFlagsThatItsSamplerReads) {
  EXPECT_EQ(WaitsOfAWrite(MakeUniformSampler()), 0);
  for (const Device device : {Device::Cpu(), Device::Fake(0)}) {
    EXPECT_EQ(WaitsOfAWrite(*MakePrioritizedSampler({.device = device})), 0);
  }
  EXPECT_EQ(WaitsOfAWrite(Over(MakeTransitions({.n_step = kThreeSteps}))), 1);
}

TEST_F(SampleCostsTest, NoSelectorReadsTheEndsOfTrajectories) {
  const auto waits = [](auto selector) {
    auto sampler =
        *MakeSampler(std::move(selector), *MakeTransitions({}), "Sampler");
    return WaitsOfAWrite(std::move(sampler));
  };
  EXPECT_EQ(waits(MakeFifoSelector()), 0);
  EXPECT_EQ(waits(*MakeMinHeapSelector()), 0);
  EXPECT_EQ(waits(*MakeConsumingSelector()), 0);
  EXPECT_EQ(waits(MakeRecentSelector()), 0);
  EXPECT_EQ(waits(MakeStalenessSelector()), 0);
  std::vector<MixturePart> parts(1);
  parts[0] = {.selector = MakeUniformSelector(), .share = 1};
  EXPECT_EQ(waits(*MakeMixtureSelector(std::move(parts))), 0);
}

TEST_F(SampleCostsTest, Rainbow) {
  const Both costs = CostsOf(
      Over(MakeTransitions({.n_step = kThreeSteps, .frames = kFourFrames})),
      128);
  // The host's lists and places, one gather of all lists, the sums.
  // Lists are shorter where trajectories end.
  EXPECT_EQ(costs.into, (Costs{.launches = 3, .waits = 1, .bytes = 19240}));
  EXPECT_EQ(costs.pending.waits, 0);
}

TEST_F(SampleCostsTest, Sequences) {
  const Both costs = CostsOf(
      Over(MakeSequences({.sequences = {.length = 6, .burn_in = 2}})), 128);
  // Three marks of int64 beside the two, and three of flags.
  EXPECT_EQ(costs.into, (Costs{.gathers = 1,
                               .launches = 1,
                               .waits = 1,
                               .bytes = 128 * (5 * 8 + 3)}));
  EXPECT_EQ(costs.pending.waits, 0);
}

}  // namespace
}  // namespace rill
