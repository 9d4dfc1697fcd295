// SPDX-License-Identifier: Apache-2.0
// Samples of a storage on a device whose streams run when the test says so:
// nothing waits, and whatever the order, memory and errors are right.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/finite_check.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"

namespace rill {
namespace {

using ::absl_testing::IsOkAndHolds;
using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Operation = FakeBackend::Operation;
using Kind = FakeBackend::Call::Kind;

// A buffer over ten steps on fake:0.
class EnqueuedSamplesTest : public ::testing::Test {
 protected:
  void SetUp() override { fake_ = FakeBackend::Install({}); }
  void TearDown() override {
    buffer_.reset();
    EXPECT_EQ(fake_->NumStreamsAndEvents(), 0);
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 0);
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kPinned), 0);
    EXPECT_THAT(fake_->TakeMisuse(), IsEmpty());
  }
  void Make(ReplayBuffer::Options options = {}) {
    options.storage =
        *DenseStorage::Create({.capacity = 10, .device = Device::Fake(0)});
    options.sampler = MakeUniformSampler();
    options.batch_size = 4;
    auto buffer = ReplayBuffer::Create(std::move(options));
    RILL_ASSERT_OK(buffer);
    buffer_ = *std::move(buffer);
    RILL_ASSERT_OK(buffer_->Extend(NumberedSteps(1, 10)));
  }
  static void ExpectSteps(const TensorDict& batch) {
    batch.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
      EXPECT_EQ(leaf.device(), Device::Fake(0)) << key;
    });
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, batch.To(Device::Cpu()));
    ExpectWholeSteps(host, 10);
  }
  int64_t NumWaits() {
    int64_t waits = 0;
    for (const FakeBackend::Call& call : fake_->TakeCalls()) {
      waits += call.kind == Kind::kSynchronizeEvent ||
               call.kind == Kind::kSynchronizeStream;
    }
    return waits;
  }

  FakeBackend* fake_ = nullptr;
  std::unique_ptr<ReplayBuffer> buffer_;
};

TEST_F(EnqueuedSamplesTest, APendingBatchWaitsForNothing) {
  Make();
  fake_->StartCalls();
  std::vector<ReplayBuffer::PendingBatch> pending;
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(pending.emplace_back(), buffer_->SamplePending());
    EXPECT_THAT(pending.back().copied->IsComplete(), IsOkAndHolds(false));
  }
  EXPECT_EQ(NumWaits(), 0);
  for (const ReplayBuffer::PendingBatch& batch : pending) {
    RILL_ASSERT_OK(batch.copied->Synchronize());
    ExpectSteps(batch.batch);
  }
}

TEST_F(EnqueuedSamplesTest, ABatchThatIsUsedAgainAllocatesNothing) {
  Make();
  TensorDict batch;
  for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(buffer_->SampleInto(&batch));
  const int64_t allocations = fake_->Count(Operation::kAllocate);
  for (int i = 0; i < 5; ++i) {
    RILL_ASSERT_OK(buffer_->SampleInto(&batch));
    ExpectSteps(batch);
  }
  EXPECT_EQ(fake_->Count(Operation::kAllocate), allocations);
}

TEST_F(EnqueuedSamplesTest, ErrorsOfEnqueuedWorkAreTheEvents) {
  Make();
  for (const Operation operation :
       {Operation::kGatherRows, Operation::kLaunch}) {
    fake_->FailNext(operation, 1, absl::InternalError("no work"));
    RILL_ASSERT_OK_AND_ASSIGN(const ReplayBuffer::PendingBatch pending,
                              buffer_->SamplePending());
    EXPECT_THAT(pending.copied->Synchronize(), IsInternal("no work"));
    fake_->Recover();
    // The next one goes on.
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict next, buffer_->Sample());
    ExpectSteps(next);
    fake_->FailNext(operation, 1, absl::InternalError("no work"));
    EXPECT_THAT(buffer_->Sample(), IsInternal("no work"));
    fake_->Recover();
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict last, buffer_->Sample());
    ExpectSteps(last);
  }
}

// At each call of the backend that can fail at once, in turn.
TEST_F(EnqueuedSamplesTest, ACallThatFailsCostsItsBatchAlone) {
  for (const Operation operation :
       {Operation::kAllocate, Operation::kCreateEvent}) {
    Make();
    for (int64_t nth = 1; nth <= 12; ++nth) {
      fake_->FailNext(operation, nth, absl::ResourceExhaustedError("none"));
      bool has_failed = false;
      for (int i = 0; i < 4; ++i) {
        absl::StatusOr<TensorDict> batch = buffer_->Sample();
        has_failed = has_failed || !batch.ok();
        if (batch.ok()) ExpectSteps(*batch);
      }
      EXPECT_TRUE(has_failed || nth > 4) << nth;
    }
    buffer_.reset();
  }
}

// --- RILL_CHECK_FINITE -------------------------------------------------------

TEST_F(EnqueuedSamplesTest, TheFiniteCheckSeesWhatTheStreamHasMade) {
  Make();
  TensorDict steps = NumberedSteps(1, 10);
  steps.Find("next/reward")->data<float>()[7] = std::nanf("");
  RILL_ASSERT_OK(buffer_->Extend(steps));
  const ScopedFiniteCheck check;
  int64_t refused = 0;
  for (int i = 0; i < 20; ++i) {
    const absl::StatusOr<TensorDict> batch = buffer_->Sample();
    if (batch.ok()) {
      RILL_EXPECT_OK(CheckFinite("a batch", *batch));
      continue;
    }
    EXPECT_THAT(batch.status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("Sample: \"next/reward\""),
                               HasSubstr("RILL_CHECK_FINITE is set"))));
    ++refused;
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 20);
}

// A batch whose values are on their way.
TEST_F(EnqueuedSamplesTest, TheFiniteCheckOfAWriteComesBehindTheStream) {
  Make();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there,
                            NumberedSteps(1, 3).To(Device::Fake(0)));
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor wrong,
      Tensor::From<float>({0, std::nanf(""), 0}, {1, 3, 1}));
  const Tensor& reward = *there.Find("next/reward");
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor right, reward.To(Device::Cpu()));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake(0)));
  const StreamScope scope(stream);
  const ScopedFiniteCheck check;
  RILL_ASSERT_OK(reward.CopyFromAsync(wrong, stream));
  EXPECT_THAT(buffer_->Extend(there), IsInvalidArgument("lane 0, step 1"));
  RILL_ASSERT_OK(reward.CopyFromAsync(right, stream));
  RILL_EXPECT_OK(buffer_->Extend(there));
}

// -----------------------------------------------------------------------------

TEST_F(EnqueuedSamplesTest, NoOrderOfWorkChangesABatch) {
  for (const int64_t prefetch : {0, 3}) {
    ReplayBuffer::Options options;
    options.prefetch = prefetch;
    options.prefetch_threads = 2;
    // A leaf that goes and one that comes while the gather is under way.
    options.transforms.push_back(*FunctionTransform::Create(
        {.forward = [](TensorDict* batch) -> absl::Status {
          RILL_RETURN_IF_ERROR(batch->Delete("next/done"));
          return batch->Set("bonus", *Tensor::Zeros(DType::kFloat32, {4}));
        }}));
    options.device = Device::Fake(0);
    Make(std::move(options));
    for (uint64_t seed = 0; seed < 20; ++seed) {
      RILL_ASSERT_OK_AND_ASSIGN(const ReplayBuffer::PendingBatch first,
                                buffer_->SamplePending());
      RILL_ASSERT_OK_AND_ASSIGN(const ReplayBuffer::PendingBatch second,
                                buffer_->SamplePending());
      // Overwrites rows of both.
      const auto step = static_cast<int64_t>(seed * 2);
      RILL_ASSERT_OK(buffer_->Extend(NumberedSteps(1, 2, 10 + step)));
      fake_->RunAll(seed);
      RILL_ASSERT_OK(second.copied->Synchronize());
      ExpectSteps(second.batch);
      RILL_ASSERT_OK(first.copied->Synchronize());
      ExpectSteps(first.batch);
    }
    buffer_.reset();
  }
}

TEST_F(EnqueuedSamplesTest, ABufferThatGoesWaitsForItsWork) {
  Make();
  RILL_ASSERT_OK_AND_ASSIGN(const ReplayBuffer::PendingBatch pending,
                            buffer_->SamplePending());
  buffer_.reset();
  EXPECT_THAT(pending.copied->IsComplete(), IsOkAndHolds(true));
  ExpectSteps(pending.batch);
}

TEST_F(EnqueuedSamplesTest, AFailedTransformDropsNothingThatIsInUse) {
  ReplayBuffer::Options options;
  auto fails = std::make_shared<bool>(true);
  options.transforms.push_back(
      *FunctionTransform::Create({.forward = [fails](TensorDict*) {
        return *fails ? absl::InternalError("no transform") : absl::OkStatus();
      }}));
  Make(std::move(options));
  EXPECT_THAT(buffer_->Sample(), IsInternal());
  *fails = false;
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer_->Sample());
  ExpectSteps(batch);
}

}  // namespace
}  // namespace rill
