// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/parts/buffer_parts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "rill/base/status_macros.h"
#include "rill/replay/parts/part_fit.h"
#include "rill/replay/sampling/sample_reader.h"
#include "rill/specs/spec.h"
#include "rill/tensors/tensor.h"

namespace rill::replay_internal {
namespace {

SampleReader::Options ReaderOptions(const Sampler& sampler,
                                    const UnitTransform* unit,
                                    const Tensor::Options& memory) {
  SampleReader::Options options;
  options.is_weighted = sampler.traits().is_weighted;
  options.unit = unit;
  options.sampler = std::string(sampler.name());
  options.memory = memory;
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BufferParts>> BufferParts::Create(
    BufferOptions options) {
  auto parts = std::unique_ptr<BufferParts>(new BufferParts(&options));
  RILL_RETURN_IF_ERROR(parts->Make(&options));
  return parts;
}

BufferParts::BufferParts(BufferOptions* options)
    : storage(std::move(options->storage)),
      sampler(std::move(options->sampler)),
      unit_transform(sampler->traits().arithmetic),
      clock(*options->clock),
      made_at(clock.Now()),
      wake(options->prefetch_threads) {}

absl::Status BufferParts::Make(BufferOptions* options) {
  RILL_ASSIGN_OR_RETURN(
      placement, Placement::Create({.device = options->device,
                                    .pin_memory = options->pin_memory,
                                    .pin_for = options->pin_for,
                                    .storage_device = storage->device()}));
  // The reader makes leaves in the memory that the last step wants, so most
  // batches need no further copy.
  const SampleReader::Options reader =
      ReaderOptions(*sampler, unit_transform.get(), placement->gather_memory());
  TransformStage::Options stage;
  stage.transforms = std::move(options->transforms);
  stage.sample_spec =
      [this, reader, device = storage->device()](
          const TensorDictSpec& rows) -> absl::StatusOr<TensorDictSpec> {
    RILL_ASSIGN_OR_RETURN(TensorDictSpec sample,
                          SampleReader(reader).SampleSpec(rows));
    RILL_RETURN_IF_ERROR(
        CheckEnds(sampler->traits(), storage->traits().event_keys, rows));
    sample.set_device(device);
    return sample;
  };
  stage.can_fuse = [this](const TensorDictSpec& rows, const GatherPlan& plan) {
    return SampleReader::CanFuse(*storage, unit_transform.get(), rows, plan);
  };
  // A batch may wait for one that no worker has begun, since workers sleep
  // until several are drawn.
  stage.before_waiting = [this] { wake.Notify(); };
  RILL_ASSIGN_OR_RETURN(transforms, TransformStage::Create(std::move(stage)));
  RILL_RETURN_IF_ERROR(
      transforms->CheckRows(storage->spec(), /*is_stored=*/true));
  RILL_ASSIGN_OR_RETURN(
      writes,
      WritePath::Create({.storage = storage,
                         .writer = options->writer != nullptr
                                       ? std::move(options->writer)
                                       : MakeRoundRobinWriter(),
                         .sampler = sampler.get(),
                         .transforms = transforms.get(),
                         .drawn_rows = &drawn_rows,
                         .rate_limiter = std::move(options->rate_limiter),
                         .rate_limit_timeout = options->rate_limit_timeout}));
  samples = std::make_unique<SampleQueue>(
      SampleQueue::Options{.storage = storage.get(),
                           .sampler = sampler.get(),
                           .writes = &writes->counter(),
                           .drawn_rows = &drawn_rows,
                           .transforms = transforms.get(),
                           .placement = placement.get(),
                           .clock = &clock,
                           .wake = &wake,
                           .reader = reader,
                           .batch_size = options->batch_size,
                           .prefetch = options->prefetch,
                           .seed = options->seed,
                           .has_digests = options->recorder != nullptr});
  checkpoint = std::make_unique<const BufferCheckpoint>(
      BufferCheckpoint::Parts{.storage = storage.get(),
                              .sampler = sampler.get(),
                              .unit = unit_transform.get(),
                              .writes = writes.get(),
                              .samples = samples.get(),
                              .transforms = transforms.get()});
  // Last, when all that workers use is there.
  samples->StartWorkers(options->prefetch_threads);
  return absl::OkStatus();
}

BufferStats BufferParts::GetStats() const {
  BufferStats stats = {.size = storage->size(),
                       .capacity = storage->capacity(),
                       .usage = storage->MemoryUsage(),
                       .rows_written = writes->rows_written(),
                       .items = items()};
  stats.device_bytes = stats.usage.device;
  if (const RateLimiter* const limiter = writes->rate_limiter();
      limiter != nullptr) {
    stats.rate_limiter = limiter->GetStats();
  }
  stats.elapsed = clock.Now() - made_at;
  stats.is_fused = transforms->chain() != nullptr;
  const SampleQueue::Counts counts = samples->counts();
  stats.device_bytes += counts.device_bytes;
  stats.items_sampled = counts.items;
  stats.batches = counts.batches;
  stats.batches_ahead = counts.ahead;
  stats.batches_awaited = counts.awaited;
  stats.time_awaited = counts.time_awaited;
  return stats;
}

int64_t BufferParts::items() const {
  // Two looks at different moments, so the difference may fall below 0.
  const int64_t used_up = sampler->AddUsedUp(0, nullptr);
  return std::max<int64_t>(storage->size() - used_up, 0);
}

}  // namespace rill::replay_internal
