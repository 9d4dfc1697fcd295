// SPDX-License-Identifier: Apache-2.0
// Environment, policy and batches on a device or in host memory.
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/device/device_env.h"
#include "rill/envs/device/testing/async_policy.h"
#include "rill/envs/device/testing/fake_simulator.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/policies/policy.h"
#include "rill/flow/sink.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Call = FakeBackend::Call;

constexpr int64_t kLanes = 128;
constexpr int64_t kTime = 10;
constexpr int64_t kFrames = kLanes * kTime;  // A batch.

absl::StatusOr<std::unique_ptr<Env>> MakeEnv(Device device) {
  RILL_ASSIGN_OR_RETURN(
      auto host, MakeCartPole({.lanes = kLanes, .max_episode_steps = 40}));
  if (device.is_cpu()) return host;
  EnvSpec spec = host->spec();
  spec.device = device;
  RILL_ASSIGN_OR_RETURN(auto simulator, MakeFakeSimulator(std::move(host), {}));
  return MakeDeviceEnv(std::move(spec), std::move(simulator),
                       {.check_actions = false});
}

// A collector in host memory.
SyncCollector::Options Options(Policy* policy) {
  SyncCollector::Options options;
  options.policy = policy;
  options.frames_per_batch = kFrames;
  options.init_random_frames = 3 * kLanes;
  options.set_truncated = true;
  options.seed = 5;
  return options;
}

absl::StatusOr<std::unique_ptr<SyncCollector>> Make(
    Device env, SyncCollector::Options options) {
  RILL_ASSIGN_OR_RETURN(options.env, MakeEnv(env));
  return SyncCollector::Create(std::move(options));
}

// The first batches in host memory, of which nothing touches a device.
absl::StatusOr<std::vector<TensorDict>> HostBatches(int64_t count) {
  AsyncPolicy policy;
  RILL_ASSIGN_OR_RETURN(auto collector, Make(Device::Cpu(), Options(&policy)));
  std::vector<TensorDict> batches;
  for (int64_t i = 0; i < count; ++i) {
    RILL_ASSIGN_OR_RETURN(const TensorDict batch, collector->Next());
    RILL_ASSIGN_OR_RETURN(batches.emplace_back(), batch.Clone());
  }
  return batches;
}

// Copies of a batch on the device, made in the order of the stream.
absl::StatusOr<TensorDict> EnqueueCopy(const TensorDict& batch,
                                       const Stream& stream) {
  TensorDict copy(batch.batch_shape());
  for (const std::string& key : batch.LeafKeys()) {
    const Tensor& from = *batch.Find(key);
    RILL_ASSIGN_OR_RETURN(
        const Tensor to,
        Tensor::Empty(from.dtype(), from.shape(), {.device = Device::Fake()}));
    RILL_RETURN_IF_ERROR(to.CopyFromAsync(from, stream));
    RILL_RETURN_IF_ERROR(copy.Set(key, to));
  }
  return copy;
}

// Waits for nothing: kernels on ActContext::stream. Alternates actions.
class KernelPolicy final : public Policy {
 public:
  absl::StatusOr<int64_t> Act(const TensorDict& /*root*/,
                              const ActContext& context,
                              TensorDict* step) override {
    RILL_ASSIGN_OR_RETURN(const Tensor action, step->Get("action"));
    if (action.is_host()) {
      Write(action.raw_data(), context.step);
      return 7;
    }
    auto& fake = *static_cast<FakeBackend*>(context.stream->backend());
    RILL_RETURN_IF_ERROR(fake.Launch(
        0, context.stream->handle(), {{action.raw_data(), action.size_bytes()}},
        [step = context.step](absl::Span<std::byte* const> at) {
          Write(at[0], step);
        }));
    return 7;
  }

 private:
  static void Write(std::byte* action, int64_t step) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const int64_t chosen = (step + lane) % 2;
      std::memcpy(action + lane * sizeof(chosen), &chosen, sizeof(chosen));
    }
  }
};

class DevicesTest : public ::testing::Test {
 protected:
  void SetUp() override { fake_ = FakeBackend::Install({}); }
  void TearDown() override { EXPECT_THAT(fake_->TakeMisuse(), IsEmpty()); }

  FakeBackend* fake_;
};

// --- Every placement -------------------------------------------------------

enum class Hand { kNext, kPending, kNoCudaSync };

class PlacementTest
    : public DevicesTest,
      public ::testing::WithParamInterface<std::tuple<bool, bool, bool, Hand>> {
};

// Every copy has a delay of its own. A wait or an order that is missing gives
// another batch. Where all is on the device and nobody waits there are 200,000
// steps, elsewhere some.
TEST_P(PlacementTest, BatchesEqualThoseOfHostMemory) {
  const auto [env_there, policy_there, stored_there, hand] = GetParam();
  const bool is_long =
      env_there && policy_there && stored_there && hand == Hand::kNoCudaSync;
  const int64_t batches = (is_long ? 200'000 : 8'000) / kFrames + 1;
  RILL_ASSERT_OK_AND_ASSIGN(const std::vector<TensorDict> want,
                            HostBatches(batches));
  const auto place = [](bool there) {
    return there ? Device::Fake() : Device::Cpu();
  };
  fake_ = FakeBackend::Install({.run_some_seed = 3});
  AsyncPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  SyncCollector::Options options = Options(&policy);
  options.policy_device = place(policy_there);
  options.storing_device = place(stored_there);
  options.no_cuda_sync = hand == Hand::kNoCudaSync;
  const bool has_device = env_there || policy_there || stored_there;
  // Half of them on the default stream.
  if (has_device && stored_there == policy_there) options.stream = &stream;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Make(place(env_there), std::move(options)));

  // Read when everything is over, each in the order of the stream.
  std::vector<TensorDict> copies;
  RILL_ASSERT_OK_AND_ASSIGN(
      const Stream used,
      Stream::Borrow(Device::Fake(), has_device && stored_there == policy_there
                                         ? stream.handle()
                                         : StreamHandle()));
  for (int64_t i = 0; i < batches; ++i) {
    TensorDict batch;
    if (hand == Hand::kPending) {
      RILL_ASSERT_OK_AND_ASSIGN(const auto pending, collector->NextPending());
      if (pending.copied != nullptr) {
        RILL_ASSERT_OK(pending.copied->Synchronize());
      }
      batch = pending.batch;
    } else {
      RILL_ASSERT_OK_AND_ASSIGN(batch, collector->Next());
    }
    ASSERT_EQ(batch.Find("action")->device(), place(stored_there));
    if (hand == Hand::kNoCudaSync && (env_there || stored_there)) {
      RILL_ASSERT_OK_AND_ASSIGN(copies.emplace_back(),
                                EnqueueCopy(batch, used));
    } else if (stored_there) {
      RILL_ASSERT_OK_AND_ASSIGN(batch, batch.To(Device::Cpu()));
      RILL_ASSERT_OK(batch.CheckEqual(want[i]));
    } else {
      RILL_ASSERT_OK(batch.CheckEqual(want[i]));
    }
  }
  EXPECT_EQ(collector->frames(), batches * kFrames);
  RILL_ASSERT_OK(used.Synchronize());
  for (size_t i = 0; i < copies.size(); ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict copy,
                              copies[i].To(Device::Cpu()));
    RILL_ASSERT_OK(copy.CheckEqual(want[i])) << "batch " << i;
  }
}

std::string NameOf(
    const ::testing::TestParamInfo<PlacementTest::ParamType>& info) {
  const auto [env_there, policy_there, stored_there, hand] = info.param;
  const auto place = [](bool there) { return there ? "Device" : "Host"; };
  const absl::string_view way = hand == Hand::kNext      ? "Next"
                                : hand == Hand::kPending ? "Pending"
                                                         : "NoCudaSync";
  return absl::StrCat("Env", place(env_there), "Policy", place(policy_there),
                      "Stored", place(stored_there), way);
}

INSTANTIATE_TEST_SUITE_P(
    All, PlacementTest,
    ::testing::Combine(::testing::Bool(), ::testing::Bool(), ::testing::Bool(),
                       ::testing::Values(Hand::kNext, Hand::kPending,
                                         Hand::kNoCudaSync)),
    NameOf);

// Every second batch ends early. Nobody waits for whole ones.
absl::StatusOr<std::vector<TensorDict>> ShortBatches(Device device,
                                                     int64_t count) {
  AsyncPolicy policy;
  SyncCollector::Options options = Options(&policy);
  options.storing_device = device;
  options.no_cuda_sync = true;
  int64_t asked = 0;
  options.is_interrupted = [&asked] { return ++asked % 13 == 2; };
  RILL_ASSIGN_OR_RETURN(auto collector, Make(device, std::move(options)));
  std::vector<TensorDict> batches;
  for (int64_t i = 0; i < count; ++i) {
    RILL_ASSIGN_OR_RETURN(SyncCollector::PendingBatch made,
                          collector->NextPending());
    if (made.copied != nullptr) {
      RILL_RETURN_IF_ERROR(made.copied->Synchronize());
    }
    RILL_ASSIGN_OR_RETURN(const TensorDict batch,
                          made.batch.To(Device::Cpu()));
    RILL_ASSIGN_OR_RETURN(batches.emplace_back(), batch.Clone());
  }
  return batches;
}

TEST_F(DevicesTest, BatchesThatEndEarlyEqualThoseOfHostMemory) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto want, ShortBatches(Device::Cpu(), 20));
  RILL_ASSERT_OK_AND_ASSIGN(const auto got, ShortBatches(Device::Fake(), 20));
  int64_t short_batches = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    short_batches += want[i].batch_shape()[1] < kFrames / kLanes ? 1 : 0;
    RILL_ASSERT_OK(got[i].CheckEqual(want[i])) << "batch " << i;
  }
  EXPECT_GT(short_batches, 5);
}

// --- What crosses, and who waits -------------------------------------------

// The calls of one batch, behind the first.
absl::StatusOr<std::vector<Call>> CallsOfABatch(FakeBackend& fake,
                                                SyncCollector& collector) {
  RILL_RETURN_IF_ERROR(collector.Next().status());
  fake.StartCalls();
  RILL_RETURN_IF_ERROR(collector.Next().status());
  return fake.TakeCalls();
}

int64_t CountOf(const std::vector<Call>& calls, Call::Kind kind,
                const Stream& stream) {
  int64_t count = 0;
  for (const Call& call : calls) {
    count += call.kind == kind && call.stream == stream.handle().value ? 1 : 0;
  }
  return count;
}

// Sums over a batch's copies on the stream.
struct Crossings {
  int64_t to_host = 0;
  int64_t to_host_bytes = 0;
  int64_t to_device_bytes = 0;
  int64_t within_device_bytes = 0;
};

Crossings CrossingsOn(const Stream& stream, const std::vector<Call>& calls) {
  Crossings sums;
  for (const Call& call : calls) {
    if (call.kind != Call::Kind::kCopy) continue;
    if (call.stream != stream.handle().value) continue;
    if (call.from_device && call.to_device) {
      sums.within_device_bytes += call.bytes;
    } else if (call.from_device) {
      ++sums.to_host;
      sums.to_host_bytes += call.bytes;
    } else {
      sums.to_device_bytes += call.bytes;
    }
  }
  return sums;
}

// All but the simulator's own work is on the caller's stream: that of the
// policy, the copies, the batch. The host reads which lanes are done, and
// nothing else; version and trajectory come from it.
TEST_F(DevicesTest, WhatIsOnOneDeviceStaysThereAndOnTheCallersStream) {
  KernelPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  SyncCollector::Options options = Options(&policy);
  options.set_truncated = false;
  options.storing_device = Device::Fake();
  options.stream = &stream;
  options.no_cuda_sync = true;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Make(Device::Fake(), std::move(options)));
  const int64_t streams = fake_->Count(FakeBackend::Operation::kCreateStream);
  RILL_ASSERT_OK_AND_ASSIGN(const std::vector<Call> calls,
                            CallsOfABatch(*fake_, *collector));
  EXPECT_EQ(fake_->Count(FakeBackend::Operation::kCreateStream), streams);

  const Crossings crossings = CrossingsOn(stream, calls);
  EXPECT_EQ(crossings.to_host, kTime);
  EXPECT_EQ(crossings.to_host_bytes, kTime * kLanes);
  EXPECT_EQ(crossings.to_device_bytes, 2 * 8 * kFrames);
  EXPECT_GT(crossings.within_device_bytes, 40 * kFrames);
  // One for the flags of each step.
  EXPECT_EQ(CountOf(calls, Call::Kind::kSynchronizeStream, stream), kTime);
  RILL_ASSERT_OK_AND_ASSIGN(const Stream other,
                            Stream::Default(Device::Fake()));
  for (const Call::Kind kind : {Call::Kind::kCopy, Call::Kind::kCompute,
                                Call::Kind::kSynchronizeStream}) {
    EXPECT_EQ(CountOf(calls, kind, other), 0);
  }
}

TEST_F(DevicesTest, RowsOfADeviceCrossOnceIntoABatchInHostMemory) {
  KernelPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  SyncCollector::Options options = Options(&policy);
  options.set_truncated = false;
  options.stream = &stream;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Make(Device::Fake(), std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
  EXPECT_TRUE(batch.is_pinned());
  RILL_ASSERT_OK_AND_ASSIGN(const std::vector<Call> calls,
                            CallsOfABatch(*fake_, *collector));
  const int64_t host_leaves = 2 * 8 * kFrames;
  EXPECT_EQ(CrossingsOn(stream, calls).to_host_bytes,
            batch.size_bytes() - host_leaves + kTime * kLanes);
}

TEST_F(DevicesTest, ABatchOnTheDeviceFromHostMemoryWaitsForNoStream) {
  KernelPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  SyncCollector::Options options = Options(&policy);
  options.storing_device = Device::Fake();
  options.stream = &stream;
  options.no_cuda_sync = true;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Make(Device::Cpu(), std::move(options)));
  const int64_t streams = fake_->Count(FakeBackend::Operation::kCreateStream);
  RILL_ASSERT_OK_AND_ASSIGN(const std::vector<Call> calls,
                            CallsOfABatch(*fake_, *collector));
  EXPECT_EQ(fake_->Count(FakeBackend::Operation::kCreateStream), streams);
  int64_t events = 0;
  for (const Call& call : calls) {
    EXPECT_NE(call.kind, Call::Kind::kSynchronizeStream);
    if (call.kind == Call::Kind::kSynchronizeEvent) {
      ++events;  // Of the batch before, whose memory is written again.
    } else {
      EXPECT_EQ(call.stream, stream.handle().value);
      EXPECT_TRUE(call.to_device && !call.from_device);
    }
  }
  EXPECT_EQ(events, 1);
}

// A policy on the device costs a step one wait, for the action.
TEST_F(DevicesTest, AMovedPolicyWaitsOnceAStep) {
  KernelPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  SyncCollector::Options options = Options(&policy);
  options.policy_device = Device::Fake();
  options.stream = &stream;
  options.no_cuda_sync = true;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Make(Device::Cpu(), std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(const std::vector<Call> calls,
                            CallsOfABatch(*fake_, *collector));
  EXPECT_EQ(CountOf(calls, Call::Kind::kSynchronizeStream, stream), kTime);
  EXPECT_EQ(CrossingsOn(stream, calls).to_host_bytes, 8 * kFrames);
}

TEST_F(DevicesTest, APendingBatchHasTheEventWhereItIsWhole) {
  KernelPolicy policy;
  SyncCollector::Options options = Options(&policy);
  options.storing_device = Device::Fake();
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Make(Device::Cpu(), std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto pending, collector->NextPending());
  ASSERT_NE(pending.copied, nullptr);
  EXPECT_THAT(pending.copied->IsComplete(), IsOkAndHolds(false));
  RILL_ASSERT_OK(pending.copied->Synchronize());
  EXPECT_EQ(fake_->NumPending(0, {}), 0);

  SyncCollector::Options on_host = Options(&policy);
  RILL_ASSERT_OK_AND_ASSIGN(collector, Make(Device::Cpu(), std::move(on_host)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto whole, collector->NextPending());
  EXPECT_EQ(whole.copied, nullptr);
}

// --- Sinks, states, errors -------------------------------------------------

TEST_F(DevicesTest, ASinkGetsWholeBatchesAlsoWithoutSync) {
  AsyncPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const std::vector<TensorDict> want, HostBatches(2));
  for (const bool stored_there : {false, true}) {
    SyncCollector::Options options = Options(&policy);
    options.no_cuda_sync = true;
    if (stored_there) options.storing_device = Device::Fake();
    RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                              Make(Device::Fake(), std::move(options)));
    size_t calls = 0;
    FunctionSink sink(
        [&](const TensorDict& batch, const WriteInfo& info) -> absl::Status {
          EXPECT_EQ(fake_->NumPending(0, {}), 0);
          if (++calls == 1) return absl::UnavailableError("full");
          RILL_ASSIGN_OR_RETURN(const TensorDict host, batch.To(Device::Cpu()));
          return host.CheckEqual(want[static_cast<size_t>(info.sequence - 1)]);
        });
    EXPECT_THAT(collector->CollectInto(sink),
                StatusIs(absl::StatusCode::kUnavailable));
    RILL_EXPECT_OK(collector->CollectInto(sink));
    RILL_EXPECT_OK(collector->CollectInto(sink));
  }
}

TEST_F(DevicesTest, ALoadedStateComesBehindTheBatchesBefore) {
  KernelPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  const auto make = [&] {
    SyncCollector::Options options = Options(&policy);
    options.policy_device = Device::Fake();
    options.storing_device = Device::Fake();
    options.stream = &stream;
    options.no_cuda_sync = true;
    return Make(Device::Cpu(), std::move(options));
  };
  RILL_ASSERT_OK_AND_ASSIGN(auto saved, make());
  FunctionSink full([](const TensorDict&, const WriteInfo&) {
    return absl::UnavailableError("full");
  });
  EXPECT_FALSE(saved->CollectInto(full).ok());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, saved->SaveState());
  RILL_ASSERT_OK_AND_ASSIGN(auto loaded, make());
  RILL_ASSERT_OK(loaded->Next().status());
  RILL_ASSERT_OK(loaded->Next().status());  // Not copied yet.
  RILL_ASSERT_OK(loaded->LoadState(state));
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, saved->Next());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, loaded->Next());
    RILL_ASSERT_OK(stream.Synchronize());
    RILL_EXPECT_OK(got.CheckEqual(want));
  }
}

TEST_F(DevicesTest, ASavedStateHasTheRootBehindTheLastStep) {
  KernelPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  const auto save = [&](bool waits) -> absl::StatusOr<TensorDict> {
    SyncCollector::Options options = Options(&policy);
    options.set_truncated = false;  // It would wait.
    options.stream = &stream;
    options.no_cuda_sync = true;
    RILL_ASSIGN_OR_RETURN(auto collector,
                          Make(Device::Fake(), std::move(options)));
    RILL_RETURN_IF_ERROR(collector->Next().status());
    if (waits) {
      RILL_RETURN_IF_ERROR(stream.Synchronize());
    }
    return collector->SaveState();
  };
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, save(true));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, save(false));
  RILL_EXPECT_OK(got.CheckEqual(want));
}

TEST_F(DevicesTest, WorkersTakeAPolicyDevice) {
  const auto collect = [](std::optional<Device> acting) {
    MultiCollectorOptions options;
    options.workers = 2;
    options.frames_per_batch = 2 * kFrames;
    options.worker =
        [acting](const WorkerContext&) -> absl::StatusOr<WorkerParts> {
      WorkerParts parts;
      RILL_ASSIGN_OR_RETURN(parts.env, MakeEnv(Device::Cpu()));
      parts.policy = std::make_unique<KernelPolicy>();
      parts.policy_device = acting;
      return parts;
    };
    return MultiSyncCollector::Create(options);
  };
  RILL_ASSERT_OK_AND_ASSIGN(auto want, collect(std::nullopt));
  RILL_ASSERT_OK_AND_ASSIGN(auto got, collect(Device::Fake()));
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want_batch, want->Next());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got_batch, got->Next());
    RILL_EXPECT_OK(got_batch.CheckEqual(want_batch));
  }
  EXPECT_GT(fake_->Count(FakeBackend::Operation::kLaunch), 0);
}

TEST_F(DevicesTest, ACopyThatFailsLosesTheBatchAndTheNextCallGoesOn) {
  KernelPolicy policy;
  SyncCollector::Options options = Options(&policy);
  options.storing_device = Device::Fake();
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Make(Device::Cpu(), std::move(options)));
  fake_->FailNext(FakeBackend::Operation::kCopy, 1,
                  absl::UnavailableError("copy engine"));
  EXPECT_THAT(collector->Next(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("copy engine; SyncCollector::Next")));
  EXPECT_EQ(collector->frames(), 0);
  RILL_EXPECT_OK(collector->Next());
  EXPECT_EQ(collector->frames(), kFrames);
}

TEST_F(DevicesTest, RefusesPlacesThatDoNotFitAndNamesTheOption) {
  KernelPolicy policy;
  const auto create = [&](Device env, std::optional<Device> acting,
                          Device storing, const Stream* stream = nullptr) {
    SyncCollector::Options options = Options(&policy);
    options.policy_device = acting;
    options.storing_device = storing;
    options.stream = stream;
    return Make(env, std::move(options)).status();
  };
  const Device cpu = Device::Cpu();
  const Device fake = Device::Fake();
  EXPECT_THAT(create(fake, Device::Fake(1), cpu),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("policy_device: got fake:1, want cpu or "
                                 "fake:0")));
  EXPECT_THAT(create(cpu, fake, Device::Fake(1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("storing_device: got fake:1")));
  EXPECT_THAT(create(cpu, cpu, Device::Fake(7)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("index of fake:7")));
  EXPECT_THAT(
      create(cpu, Device::Cuda(), cpu),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("cuda:0")));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake(1)));
  EXPECT_THAT(create(cpu, cpu, fake, &stream),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stream: got one of fake:1")));
  EXPECT_THAT(create(cpu, cpu, cpu, &stream),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want one of cpu")));
}

}  // namespace
}  // namespace rill
