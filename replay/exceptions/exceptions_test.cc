// SPDX-License-Identifier: Apache-2.0
// Exceptions of a buffer's parts and of functions that it calls: each is the
// error of the call, and costs no other; nothing that is stored is lost.
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/sample_plan.h"
#include "rill/slots/slot.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Throws when it is armed, once.
class Fault {
 public:
  void Arm() { is_armed_ = true; }
  void Reach() const {
    if (is_armed_.exchange(false)) throw std::runtime_error("no layer 3");
  }

 private:
  mutable std::atomic<bool> is_armed_ = false;
};

auto Threw(absl::string_view who) {
  return StatusIs(absl::StatusCode::kInternal,
                  AllOf(HasSubstr(std::string(who)),
                        HasSubstr("threw std::runtime_error: no layer 3")));
}

// Another sampler, with faults before its calls.
struct SamplerFaults {
  Fault plan, update, retire, write, attach;
};
class FaultySampler final : public Sampler {
 public:
  FaultySampler(std::unique_ptr<Sampler> inner, const SamplerFaults* faults)
      : Sampler(inner->traits()), inner_(std::move(inner)), faults_(*faults) {}

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    faults_.attach.Reach();
    inner_->OnAttach(lanes, cursors);
  }
  void OnRetire(const WriteEvent& event) override {
    faults_.retire.Reach();
    inner_->OnRetire(event);
  }
  void OnWrite(const WriteEvent& event) override {
    faults_.write.Reach();
    inner_->OnWrite(event);
  }
  void OnClear() override { inner_->OnClear(); }
  absl::Status Plan(const Request& request, SamplePlan* plan) override {
    faults_.plan.Reach();
    return inner_->Plan(request, plan);
  }
  absl::Status UpdatePriorities(absl::Span<const Draw> draws,
                                absl::Span<const float> values) override {
    faults_.update.Reach();
    return inner_->UpdatePriorities(draws, values);
  }
  void FindCurrent(absl::Span<const Draw> draws,
                   absl::Span<uint8_t> is_current) const override {
    inner_->FindCurrent(draws, is_current);
  }
  void GetGenerations(absl::Span<const Slot> slots,
                      absl::Span<int64_t> generations) const override {
    inner_->GetGenerations(slots, generations);
  }
  absl::StatusOr<std::string> SaveState() const override {
    return inner_->SaveState();
  }

 private:
  absl::Status DoLoadState(absl::string_view state,
                           const LoadOptions& options) override {
    return inner_->LoadState(state, options);
  }

  const std::unique_ptr<Sampler> inner_;
  const SamplerFaults& faults_;
};

class FaultyWriter final : public Writer {
 public:
  explicit FaultyWriter(const Fault* fault)
      : Writer(MakeRoundRobinWriter()->traits()), fault_(*fault) {}
  absl::Status Attach(std::shared_ptr<Storage> storage) override {
    return inner_->Attach(std::move(storage));
  }
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override {
    fault_.Reach();
    return inner_->Extend(batch, info);
  }
  absl::Status WriteInPlace(absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace kind) override {
    fault_.Reach();
    return inner_->WriteInPlace(slots, rows, kind);
  }

 private:
  const Fault& fault_;
  const std::unique_ptr<Writer> inner_ = MakeRoundRobinWriter();
};

struct Faults {
  SamplerFaults sampler;
  Fault writer, forward, inverse;
};

absl::StatusOr<std::unique_ptr<ReplayBuffer>> MakeBuffer(const Faults& faults,
                                                         int64_t prefetch) {
  ReplayBuffer::Options options = {
      .storage = MakeStorage(8),
      .sampler = std::make_unique<FaultySampler>(MakeUniformSampler(),
                                                 &faults.sampler),
      .batch_size = 4,
      .seed = 3,
      .prefetch = prefetch,
      .writer = std::make_unique<FaultyWriter>(&faults.writer)};
  options.transforms.push_back(
      *FunctionTransform::Create({.forward =
                                      [&faults](TensorDict*) {
                                        faults.forward.Reach();
                                        return absl::OkStatus();
                                      },
                                  .inverse =
                                      [&faults](TensorDict*) {
                                        faults.inverse.Reach();
                                        return absl::OkStatus();
                                      }}));
  return ReplayBuffer::Create(std::move(options));
}

// The first error of some samples.
absl::Status SampleUntilError(ReplayBuffer& buffer) {
  for (int i = 0; i < 8; ++i) {
    const absl::Status status = buffer.Sample().status();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// With prefetch, draws and transforms of a batch may be ahead of its call.
class BufferExceptionTest : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    RILL_ASSERT_OK_AND_ASSIGN(buffer_, MakeBuffer(faults_, GetParam()));
    RILL_ASSERT_OK(buffer_->Extend(NumberedSteps(1, 6)));
  }
  // What it holds is what was stored, it takes more, and its samples are of
  // that.
  void ExpectUsable(int64_t rows) {
    EXPECT_EQ(buffer_->size(), rows);
    RILL_ASSERT_OK(buffer_->Extend(NumberedSteps(1, 8)));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict all, buffer_->ReadAll());
    EXPECT_THAT(all.Flat<int64_t>("action"),
                IsOkAndHolds(::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)));
    TensorDict batch;
    for (int i = 0; i < 8; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(batch, buffer_->Sample());
      RILL_ASSERT_OK(buffer_->UpdatePriorities(batch, {1.0f}));
    }
    // Its rows are the sampler's still: those behind the last write.
    RILL_ASSERT_OK_AND_ASSIGN(
        const TensorDict patch,
        batch.Select({"index", "index_generation", "next/reward"}));
    RILL_ASSERT_OK_AND_ASSIGN(const auto patched,
                              buffer_->UpdateIfPresent(patch));
    EXPECT_EQ(patched.num_updated, 4);
  }

  Faults faults_;
  std::unique_ptr<ReplayBuffer> buffer_;
};

TEST_P(BufferExceptionTest, OfATransformIsTheErrorOfItsBatch) {
  faults_.forward.Arm();
  EXPECT_THAT(SampleUntilError(*buffer_), Threw("in transform 0"));
  ExpectUsable(6);
}

TEST_P(BufferExceptionTest, OfAnInverseRefusesTheWrite) {
  faults_.inverse.Arm();
  EXPECT_THAT(buffer_->Extend(NumberedSteps(1, 2)), Threw("in transform 0"));
  ExpectUsable(6);
}

TEST_P(BufferExceptionTest, OfAWriterRefusesTheWrite) {
  faults_.writer.Arm();
  EXPECT_THAT(buffer_->Extend(NumberedSteps(1, 2)), Threw("Writer::Extend"));
  faults_.writer.Arm();
  EXPECT_THAT(buffer_->WriteAt({0}, *NumberedSteps(1, 1).Index(0)),
              Threw("Writer::WriteAt"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer_->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict patch,
      batch.Select({"index", "index_generation", "next/reward"}));
  faults_.writer.Arm();
  EXPECT_THAT(buffer_->UpdateIfPresent(patch), Threw("UpdateIfPresent"));
  ExpectUsable(6);
}

TEST_P(BufferExceptionTest, OfASamplerIsTheErrorOfTheCall) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer_->Sample());
  faults_.sampler.update.Arm();
  EXPECT_THAT(buffer_->UpdatePriorities(batch, {1.0f}),
              Threw("::UpdatePriorities"));
  faults_.sampler.plan.Arm();
  const absl::Status status = SampleUntilError(*buffer_);
  // A draw ahead that fails comes up with a later call, if it is still so.
  if (GetParam() == 0) {
    EXPECT_THAT(status, Threw("::Plan"));
  }
  ExpectUsable(6);
}

TEST_P(BufferExceptionTest, OfAVisitIsTheErrorOfTheCall) {
  const auto visit = [](const StoredTrajectory&) -> absl::StatusOr<bool> {
    throw std::runtime_error("no layer 3");
  };
  EXPECT_THAT(buffer_->Iterate({}, visit), Threw("Iterate"));
  EXPECT_THAT(buffer_->Query({}, visit), Threw("Iterate"));
  ExpectUsable(6);
}

// A sampler that has missed an event learns all rows anew, so it draws what it
// would have drawn, and no row that is gone.
TEST_P(BufferExceptionTest, OfASamplerThatIsNotifiedLosesNoWrite) {
  for (Fault* const fault : {&faults_.sampler.retire, &faults_.sampler.write}) {
    RILL_ASSERT_OK(buffer_->Extend(NumberedSteps(1, 8)));
    fault->Arm();
    RILL_ASSERT_OK(buffer_->Extend(NumberedSteps(1, 3, /*first=*/100)));
    EXPECT_EQ(buffer_->items(), 8);
    bool has_new = false;
    for (int i = 0; i < 20; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer_->Sample());
      RILL_ASSERT_OK_AND_ASSIGN(const auto actions,
                                batch.Flat<int64_t>("action"));
      for (const int64_t action : actions) has_new |= action >= 100;
    }
    EXPECT_TRUE(has_new);
  }
  ExpectUsable(8);
}

// One that cannot be attached again either draws nothing, and says so.
TEST_P(BufferExceptionTest, OfASamplerThatCannotGoOnEndsItsDraws) {
  faults_.sampler.write.Arm();
  faults_.sampler.attach.Arm();
  RILL_ASSERT_OK(buffer_->Extend(NumberedSteps(1, 2)));
  absl::Status status;
  for (int i = 0; i < 8 && status.ok(); ++i) {
    status = buffer_->Sample(3).status();
  }
  EXPECT_THAT(status, IsFailedPrecondition());
  EXPECT_EQ(buffer_->size(), 8);
}

INSTANTIATE_TEST_SUITE_P(Prefetch, BufferExceptionTest,
                         ::testing::Values(0, 2));

TEST(BufferCreateExceptionTest, OfAPartIsTheErrorOfCreate) {
  Faults faults;
  faults.sampler.attach.Arm();
  EXPECT_THAT(MakeBuffer(faults, 0), IsInternal("observer"));
  RILL_EXPECT_OK(MakeBuffer(faults, 0));
}

}  // namespace
}  // namespace rill
