// SPDX-License-Identifier: Apache-2.0
// Environment, policy and batches on a device or in host memory.
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/devices/testing/cart_pole_collector.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/device/testing/fake_device_test.h"
#include "rill/envs/device/testing/async_policy.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/flow/sink.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;
using Call = FakeBackend::Call;

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

class DevicesTest : public FakeDeviceTest {};

// Every second batch ends early. Nobody waits for whole ones.
absl::StatusOr<std::vector<TensorDict>> ShortBatches(Device device,
                                                     int64_t count) {
  AsyncPolicy policy;
  SyncCollector::Options options = CartPoleCollectorOptions(&policy);
  options.storing_device = device;
  options.no_cuda_sync = true;
  int64_t asked = 0;
  options.is_interrupted = [&asked] { return ++asked % 13 == 2; };
  RILL_ASSIGN_OR_RETURN(auto collector,
                        CollectCartPole(device, std::move(options)));
  std::vector<TensorDict> batches;
  for (int64_t i = 0; i < count; ++i) {
    RILL_ASSIGN_OR_RETURN(SyncCollector::PendingBatch made,
                          collector->NextPending());
    if (made.copied != nullptr) {
      RILL_RETURN_IF_ERROR(made.copied->Synchronize());
    }
    RILL_ASSIGN_OR_RETURN(const TensorDict batch, made.batch.To(Device::Cpu()));
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
  SyncCollector::Options options = CartPoleCollectorOptions(&policy);
  options.set_truncated = false;
  options.storing_device = Device::Fake();
  options.stream = &stream;
  options.no_cuda_sync = true;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto collector, CollectCartPole(Device::Fake(), std::move(options)));
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
  SyncCollector::Options options = CartPoleCollectorOptions(&policy);
  options.set_truncated = false;
  options.stream = &stream;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto collector, CollectCartPole(Device::Fake(), std::move(options)));
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
  SyncCollector::Options options = CartPoleCollectorOptions(&policy);
  options.storing_device = Device::Fake();
  options.stream = &stream;
  options.no_cuda_sync = true;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            CollectCartPole(Device::Cpu(), std::move(options)));
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
  SyncCollector::Options options = CartPoleCollectorOptions(&policy);
  options.policy_device = Device::Fake();
  options.stream = &stream;
  options.no_cuda_sync = true;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            CollectCartPole(Device::Cpu(), std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(const std::vector<Call> calls,
                            CallsOfABatch(*fake_, *collector));
  EXPECT_EQ(CountOf(calls, Call::Kind::kSynchronizeStream, stream), kTime);
  EXPECT_EQ(CrossingsOn(stream, calls).to_host_bytes, 8 * kFrames);
}

TEST_F(DevicesTest, APendingBatchHasTheEventWhereItIsWhole) {
  KernelPolicy policy;
  SyncCollector::Options options = CartPoleCollectorOptions(&policy);
  options.storing_device = Device::Fake();
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            CollectCartPole(Device::Cpu(), std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto pending, collector->NextPending());
  ASSERT_NE(pending.copied, nullptr);
  EXPECT_THAT(pending.copied->IsComplete(), IsOkAndHolds(false));
  RILL_ASSERT_OK(pending.copied->Synchronize());
  EXPECT_EQ(fake_->NumPending(0, {}), 0);

  SyncCollector::Options on_host = CartPoleCollectorOptions(&policy);
  RILL_ASSERT_OK_AND_ASSIGN(collector,
                            CollectCartPole(Device::Cpu(), std::move(on_host)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto whole, collector->NextPending());
  EXPECT_EQ(whole.copied, nullptr);
}

// --- Sinks, states, errors -------------------------------------------------

TEST_F(DevicesTest, ASinkGetsWholeBatchesAlsoWithoutSync) {
  AsyncPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(const std::vector<TensorDict> want,
                            HostCartPoleBatches(2));
  for (const bool stored_there : {false, true}) {
    SyncCollector::Options options = CartPoleCollectorOptions(&policy);
    options.no_cuda_sync = true;
    if (stored_there) options.storing_device = Device::Fake();
    RILL_ASSERT_OK_AND_ASSIGN(
        auto collector, CollectCartPole(Device::Fake(), std::move(options)));
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
    SyncCollector::Options options = CartPoleCollectorOptions(&policy);
    options.policy_device = Device::Fake();
    options.storing_device = Device::Fake();
    options.stream = &stream;
    options.no_cuda_sync = true;
    return CollectCartPole(Device::Cpu(), std::move(options));
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
    SyncCollector::Options options = CartPoleCollectorOptions(&policy);
    options.set_truncated = false;  // It would wait.
    options.stream = &stream;
    options.no_cuda_sync = true;
    RILL_ASSIGN_OR_RETURN(auto collector,
                          CollectCartPole(Device::Fake(), std::move(options)));
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
    options.producer = 0;
    options.workers = 2;
    options.frames_per_batch = 2 * kFrames;
    options.worker =
        [acting](const WorkerContext&) -> absl::StatusOr<WorkerParts> {
      WorkerParts parts;
      RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPoleOn(Device::Cpu()));
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
  SyncCollector::Options options = CartPoleCollectorOptions(&policy);
  options.storing_device = Device::Fake();
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            CollectCartPole(Device::Cpu(), std::move(options)));
  fake_->FailNext(FakeBackend::Operation::kCopy, 1,
                  absl::UnavailableError("copy engine"));
  EXPECT_THAT(collector->Next(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("copy engine; SyncCollector::Next")));
  EXPECT_EQ(collector->frames(), 0);
  fake_->Recover();
  RILL_EXPECT_OK(collector->Next());
  EXPECT_EQ(collector->frames(), kFrames);
}

TEST_F(DevicesTest, RefusesPlacesThatDoNotFitAndNamesTheOption) {
  KernelPolicy policy;
  const auto create = [&](Device env, std::optional<Device> acting,
                          Device storing, const Stream* stream = nullptr) {
    SyncCollector::Options options = CartPoleCollectorOptions(&policy);
    options.policy_device = acting;
    options.storing_device = storing;
    options.stream = stream;
    return CollectCartPole(env, std::move(options)).status();
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
