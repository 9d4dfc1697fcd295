// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/replay_buffer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/replay/replay_buffer_state.h"
#include "rill/slots/plan_layout.h"
#include "rill/transforms/unit_transform.h"

namespace rill {
namespace {

absl::Status BadOption(absl::string_view option, absl::string_view got,
                       absl::string_view want) {
  return absl::InvalidArgumentError(absl::StrCat(
      "ReplayBuffer::Create: ", option, ": got ", got, ", want ", want));
}

absl::Status CheckPrefetch(const ReplayBuffer::Options& options) {
  constexpr int64_t kMaxPrefetch = 1024;
  constexpr int kMaxThreads = 256;
  if (options.prefetch < 0 || options.prefetch > kMaxPrefetch) {
    return BadOption("prefetch", absl::StrCat(options.prefetch),
                     absl::StrCat("[0, ", kMaxPrefetch, "]"));
  }
  if (options.prefetch > 0 && options.batch_size == 0) {
    return BadOption("prefetch",
                     absl::StrCat(options.prefetch, " with batch_size 0"),
                     "a batch_size: what is drawn ahead needs one");
  }
  if (options.prefetch_threads < 1 || options.prefetch_threads > kMaxThreads) {
    return BadOption("prefetch_threads", absl::StrCat(options.prefetch_threads),
                     absl::StrCat("[1, ", kMaxThreads, "]"));
  }
  if (options.rate_limit_timeout < absl::ZeroDuration()) {
    return BadOption("rate_limit_timeout",
                     absl::FormatDuration(options.rate_limit_timeout), ">= 0");
  }
  return absl::OkStatus();
}

// The two halves of the sampler's unit belong together.
absl::Status CheckUnit(const Sampler& sampler) {
  const PlanLayout plans = sampler.layout();
  if (const auto arithmetic = sampler.arithmetic(); arithmetic != nullptr) {
    RILL_RETURN_IF_ERROR(arithmetic->CheckLayout(plans))
        << "ReplayBuffer::Create: sampler: " << sampler.name();
    return absl::OkStatus();
  }
  if (plans.context.empty()) return absl::OkStatus();
  return BadOption(
      "sampler",
      absl::StrCat(sampler.name(), ", whose unit plans ", plans.ContextString(),
                   " beside its rows and has no arithmetic for them"),
      "a unit with both halves (replay/sample_units.h)");
}

replay_internal::SampleReader::Options ReaderOptions(
    const Sampler& sampler, const UnitTransform* unit,
    const Tensor::Options& memory) {
  replay_internal::SampleReader::Options options;
  options.is_weighted = sampler.is_weighted();
  options.unit = unit;
  options.sampler = std::string(sampler.name());
  options.memory = memory;
  return options;
}

}  // namespace

absl::Status ReplayBuffer::CheckOptions(const Options& options) {
  if (options.storage == nullptr) {
    return BadOption("storage", "null", "a storage");
  }
  if (options.sampler == nullptr) {
    return BadOption("sampler", "null", "a sampler");
  }
  if (options.clock == nullptr) {
    return BadOption("clock", "null", "a clock");
  }
  for (size_t i = 0; i < options.transforms.size(); ++i) {
    if (options.transforms[i] != nullptr) continue;
    return BadOption(absl::StrCat("transforms[", i, "]"), "null",
                     "a transform");
  }
  if (options.batch_size < 0 || options.batch_size > Sampler::kMaxBatchSize) {
    return BadOption("batch_size", absl::StrCat(options.batch_size),
                     absl::StrCat("[0, ", Sampler::kMaxBatchSize, "]"));
  }
  RILL_RETURN_IF_ERROR(CheckUnit(*options.sampler));
  RILL_RETURN_IF_ERROR(CheckPrefetch(options));
  if (options.device.has_value()) {
    RILL_RETURN_IF_ERROR(GetBackend(*options.device).status())
        << "ReplayBuffer::Create: device";
  }
  if (!options.pin_memory) return absl::OkStatus();
  if (options.device.has_value()) {
    return BadOption(
        "pin_memory",
        absl::StrCat("true, and device ", options.device->ToString()),
        "one of the two");
  }
  if (options.pin_for.is_cpu()) {
    return BadOption("pin_for", options.pin_for.ToString(),
                     "a device other than the CPU");
  }
  if (!options.storage->device().is_cpu()) {
    return BadOption("pin_memory",
                     absl::StrCat("true over a storage on ",
                                  options.storage->device().ToString()),
                     "a storage in host memory");
  }
  RILL_RETURN_IF_ERROR(GetBackend(options.pin_for).status())
      << "ReplayBuffer::Create: pin_memory";
  return absl::OkStatus();
}

ReplayBuffer::State::State(Options* options)
    : storage(std::move(options->storage)),
      sampler(std::move(options->sampler)),
      unit_transform(sampler->arithmetic()),
      clock(*options->clock),
      made_at(clock.Now()),
      wake(options->prefetch_threads) {}

absl::Status ReplayBuffer::State::MakeParts(Options* options) {
  RILL_ASSIGN_OR_RETURN(placement, replay_internal::Placement::Create(
                                       {.device = options->device,
                                        .pin_memory = options->pin_memory,
                                        .pin_for = options->pin_for,
                                        .storage_device = storage->device()}));
  const replay_internal::SampleReader::Options reader =
      ReaderOptions(*sampler, unit_transform.get(), placement->gather_memory());
  replay_internal::TransformStage::Options stage;
  stage.transforms = std::move(options->transforms);
  stage.sample_spec = [reader](const TensorDictSpec& rows) {
    return replay_internal::SampleReader(reader).SampleSpec(rows);
  };
  stage.before_waiting = [this] { wake.Ring(); };
  RILL_ASSIGN_OR_RETURN(
      transforms, replay_internal::TransformStage::Create(std::move(stage)));
  RILL_RETURN_IF_ERROR(
      transforms->CheckRows(storage->spec(), /*is_stored=*/true));
  RILL_ASSIGN_OR_RETURN(
      writes,
      replay_internal::WritePath::Create(
          {.storage = storage,
           .writer = options->writer != nullptr ? std::move(options->writer)
                                                : MakeRoundRobinWriter(),
           .sampler = sampler.get(),
           .transforms = transforms.get(),
           .gate = &gate,
           .rate_limiter = std::move(options->rate_limiter),
           .rate_limit_timeout = options->rate_limit_timeout}));
  samples = std::make_unique<replay_internal::SampleQueue>(
      replay_internal::SampleQueue::Options{.storage = storage.get(),
                                            .sampler = sampler.get(),
                                            .writes = &writes->counter(),
                                            .gate = &gate,
                                            .transforms = transforms.get(),
                                            .placement = placement.get(),
                                            .clock = &clock,
                                            .wake = &wake,
                                            .reader = reader,
                                            .batch_size = options->batch_size,
                                            .prefetch = options->prefetch,
                                            .seed = options->seed});
  samples->StartWorkers(options->prefetch_threads);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ReplayBuffer>> ReplayBuffer::Create(
    Options options) {
  RILL_RETURN_IF_ERROR(CheckOptions(options));
  auto state = std::make_unique<State>(&options);
  RILL_RETURN_IF_ERROR(state->MakeParts(&options));
  return std::unique_ptr<ReplayBuffer>(new ReplayBuffer(std::move(state)));
}

ReplayBuffer::ReplayBuffer(std::unique_ptr<State> state)
    : state_(std::move(state)) {}

ReplayBuffer::~ReplayBuffer() = default;

// --- Accessors ---------------------------------------------------------------

ReplayBuffer::Rates ReplayBuffer::Stats::RatesSince(
    const Stats& earlier) const {
  const double seconds = absl::ToDoubleSeconds(elapsed - earlier.elapsed);
  if (!(seconds > 0)) return {};
  const auto rate = [seconds](int64_t now, int64_t before) {
    return static_cast<double>(now - before) / seconds;
  };
  return {.rows_written = rate(rows_written, earlier.rows_written),
          .items_sampled = rate(items_sampled, earlier.items_sampled),
          .batches = rate(batches, earlier.batches)};
}

ReplayBuffer::Stats ReplayBuffer::GetStats() const {
  const State& state = *state_;
  Stats stats = {.size = size(),
                 .capacity = capacity(),
                 .usage = state.storage->MemoryUsage(),
                 .rows_written = state.writes->rows_written(),
                 .items = items()};
  stats.device_bytes = stats.usage.device;
  if (const RateLimiter* const limiter = state.writes->rate_limiter();
      limiter != nullptr) {
    stats.rate_limiter = limiter->GetStats();
  }
  stats.elapsed = state.clock.Now() - state.made_at;
  const replay_internal::SampleQueue::Counts counts = state.samples->counts();
  stats.device_bytes += counts.device_bytes;
  stats.items_sampled = counts.items;
  stats.batches = counts.batches;
  stats.batches_ahead = counts.ahead;
  stats.batches_awaited = counts.awaited;
  stats.time_awaited = counts.time_awaited;
  return stats;
}

int64_t ReplayBuffer::size() const { return state_->storage->size(); }

int64_t ReplayBuffer::items() const {
  const int64_t used_up = state_->sampler->AddUsedUp(0, nullptr);
  return std::max<int64_t>(size() - used_up, 0);
}

int64_t ReplayBuffer::capacity() const { return state_->storage->capacity(); }

const Storage& ReplayBuffer::storage() const { return *state_->storage; }

int64_t ReplayBuffer::batch_size() const {
  return state_->samples->batch_size();
}

uint64_t ReplayBuffer::batch_number() const {
  return state_->samples->batch_number();
}

int64_t ReplayBuffer::clears() const { return state_->writes->clears(); }

}  // namespace rill
