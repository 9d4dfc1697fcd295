// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/uniform_sampler.h"

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/arguments.h"
#include "rill/samplers/live_rows.h"
#include "rill/samplers/state_bytes.h"

namespace rill {
namespace {

constexpr uint32_t kStateVersion = 1;

class UniformSampler final : public Sampler, private WriteObserver {
 public:
  WriteObserver* observer() override { return this; }

  absl::Status Plan(const Request& request, SamplePlan* plan) override {
    RILL_RETURN_IF_ERROR(samplers_internal::CheckBatchSize(
        name(), request.batch_size, kMaxBatchSize));
    const Rng rng(request.seed, RngStream::kSampler);
    absl::MutexLock lock(&mutex_);
    RILL_RETURN_IF_ERROR(
        samplers_internal::CheckLiveRows(name(), rows_.size(), 1));
    plan->Clear();
    plan->draws.reserve(request.batch_size);
    for (int64_t i = 0; i < request.batch_size; ++i) {
      plan->draws.push_back(rows_.At(rng.UniformInt(
          request.batch_number, static_cast<uint32_t>(i), rows_.size())));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> SaveState() const override {
    samplers_internal::StateWriter writer(name(), kStateVersion);
    absl::MutexLock lock(&mutex_);
    rows_.Save(&writer);
    return std::move(writer).Finish();
  }

  absl::Status LoadState(absl::string_view state) override {
    RILL_ASSIGN_OR_RETURN(
        samplers_internal::StateReader reader,
        samplers_internal::StateReader::Open(name(), kStateVersion, state));
    absl::MutexLock lock(&mutex_);
    samplers_internal::LiveRows loaded = rows_;
    RILL_RETURN_IF_ERROR(loaded.Load(name(), &reader));
    RILL_RETURN_IF_ERROR(reader.Finish());
    rows_ = std::move(loaded);
    return absl::OkStatus();
  }

  absl::string_view name() const override { return "UniformSampler"; }

 private:
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    absl::MutexLock lock(&mutex_);
    rows_.OnAttach(lanes, cursors);
  }
  void OnRetire(const WriteEvent& event) override {
    absl::MutexLock lock(&mutex_);
    rows_.OnRetire(event);
  }
  void OnWrite(const WriteEvent& event) override {
    absl::MutexLock lock(&mutex_);
    rows_.OnWrite(event);
  }
  void OnClear() override {
    absl::MutexLock lock(&mutex_);
    rows_.OnClear();
  }

  mutable absl::Mutex mutex_;
  samplers_internal::LiveRows rows_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Sampler> MakeUniformSampler() {
  return std::make_unique<UniformSampler>();
}

}  // namespace rill
