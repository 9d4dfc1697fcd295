// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/replay_buffer.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/replay/replay_buffer_state.h"

namespace rill {
namespace {

using replay_internal::kGenerationKey;
using replay_internal::kIndexKey;
using replay_internal::kWeightKey;

absl::Status BadOption(absl::string_view option, absl::string_view got,
                       absl::string_view want) {
  return absl::InvalidArgumentError(absl::StrCat(
      "ReplayBuffer::Create: ", option, ": got ", got, ", want ", want));
}

absl::Status CheckOptions(const ReplayBuffer::Options& options) {
  if (options.storage == nullptr) {
    return BadOption("storage", "null", "a storage");
  }
  if (options.sampler == nullptr) {
    return BadOption("sampler", "null", "a sampler");
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

replay_internal::SampleReader::Options ReaderOptions(const Sampler& sampler,
                                                     const UnitTransform* unit,
                                                     bool pin_memory,
                                                     Device pin_for) {
  replay_internal::SampleReader::Options options;
  options.is_weighted = sampler.is_weighted();
  options.unit = unit;
  if (pin_memory) options.memory = {pin_for, MemoryKind::kPinned};
  return options;
}

// An int64 leaf as host numbers, whatever its shape and place.
absl::StatusOr<Tensor> NumbersOf(const TensorDict& batch,
                                 absl::string_view key) {
  constexpr absl::string_view kCaller = "ReplayBuffer::UpdatePriorities";
  absl::StatusOr<Tensor> leaf = batch.Get(key);
  RILL_RETURN_IF_ERROR(leaf.status()) << kCaller << ": want a sample's leaves";
  if (leaf->dtype() != DType::kInt64) {
    return absl::InvalidArgumentError(
        absl::StrCat(kCaller, ": \"", key, "\": got ", DTypeName(leaf->dtype()),
                     ", want int64"));
  }
  RILL_ASSIGN_OR_RETURN(Tensor on_host, leaf->To(Device::Cpu()));
  return on_host.Contiguous();
}

}  // namespace

ReplayBuffer::State::State(Options options,
                           std::unique_ptr<Compose> all_transforms)
    : storage(std::move(options.storage)),
      sampler(std::move(options.sampler)),
      unit_transform(std::move(options.unit_transform)),
      batch_size(options.batch_size),
      pin_memory(options.pin_memory),
      device(options.device),
      pin_for(options.pin_for),
      transforms(std::move(all_transforms)),
      seed(options.seed),
      reader(
          ReaderOptions(*sampler, unit_transform.get(), pin_memory, pin_for)) {}

ReplayBuffer::State::~State() {
  if (is_sampler_attached) storage->RemoveObserver(sampler->observer());
  if (is_counter_attached) storage->RemoveObserver(&writes);
}

absl::Status ReplayBuffer::State::Attach() {
  RILL_RETURN_IF_ERROR(storage->AddObserver(sampler->observer()))
      << "ReplayBuffer::Create: sampler";
  is_sampler_attached = true;
  RILL_RETURN_IF_ERROR(storage->AddObserver(&writes));
  is_counter_attached = true;
  return absl::OkStatus();
}

absl::Status ReplayBuffer::State::CheckForward(const TensorDictSpec& rows) {
  if (is_forward_checked || rows.empty()) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec sample, reader.SampleSpec(rows));
  const absl::Status status = transforms->ForwardSpec(sample).status();
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("ReplayBuffer: transforms: got some that cannot work on "
                     "samples of the storage's rows: ",
                     status.message()));
  }
  is_forward_checked = true;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ReplayBuffer>> ReplayBuffer::Create(
    Options options) {
  RILL_RETURN_IF_ERROR(CheckOptions(options));
  RILL_ASSIGN_OR_RETURN(auto transforms,
                        Compose::Create(std::move(options.transforms)));
  auto state =
      std::make_unique<State>(std::move(options), std::move(transforms));
  {
    absl::MutexLock lock(&state->mutex);
    RILL_RETURN_IF_ERROR(state->CheckForward(state->storage->spec()));
  }
  RILL_RETURN_IF_ERROR(state->Attach());
  return std::unique_ptr<ReplayBuffer>(new ReplayBuffer(std::move(state)));
}

ReplayBuffer::ReplayBuffer(std::unique_ptr<State> state)
    : state_(std::move(state)) {}

ReplayBuffer::~ReplayBuffer() = default;

// --- Writing -----------------------------------------------------------------

absl::StatusOr<TensorDict> ReplayBuffer::State::BeforeWrite(
    const TensorDict& batch) {
  TensorDict rows = batch;
  if (rows.batch_shape().rank() == 1) {
    if (storage->lanes().count != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("ReplayBuffer::Extend: batch shape: got ",
                       rows.batch_shape().ToString(),
                       ", want [lanes, time]: the storage "
                       "has ",
                       storage->lanes().count, " lanes"));
    }
    RILL_ASSIGN_OR_RETURN(rows, rows.Unsqueeze(0));
  }
  RILL_RETURN_IF_ERROR(transforms->Inverse(&rows));
  return rows;
}

absl::StatusOr<ExtendResult> ReplayBuffer::Extend(const TensorDict& batch,
                                                  const WriteInfo& info) {
  State& state = *state_;
  absl::MutexLock lock(&state.mutex);
  if (state.transforms->transforms().empty() && state.is_forward_checked) {
    return state.storage->Extend(batch, info);
  }
  // The inverse of a write that then fails has not happened.
  RILL_ASSIGN_OR_RETURN(const TensorDict before, state.transforms->SaveState());
  RILL_ASSIGN_OR_RETURN(const TensorDict rows, state.BeforeWrite(batch));
  absl::StatusOr<ExtendResult> result = state.CheckAndWrite(rows, info);
  // A transform takes what it has just saved.
  if (!result.ok()) state.transforms->LoadState(before).IgnoreError();
  return result;
}

absl::StatusOr<ExtendResult> ReplayBuffer::State::CheckAndWrite(
    const TensorDict& rows, const WriteInfo& info) {
  if (!is_forward_checked) {
    const TensorDictSpec spec = storage->spec();
    RILL_RETURN_IF_ERROR(
        CheckForward(spec.empty() ? TensorDictSpec::Of(rows) : spec));
  }
  return storage->Extend(rows, info);
}

absl::Status ReplayBuffer::Write(const TensorDict& batch,
                                 const WriteInfo& info) {
  return Extend(batch, info).status();
}

absl::Status ReplayBuffer::Flush() { return absl::OkStatus(); }

// --- Sampling ----------------------------------------------------------------

absl::Status ReplayBuffer::State::DrawAndRead(int64_t items, TensorDict* out) {
  // Another buffer on this storage may clear it between the plan and the read;
  // the plan is then made anew from what is there.
  constexpr int kAttempts = 4;
  absl::Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    RILL_RETURN_IF_ERROR(sampler->Plan(
        {.batch_size = items, .seed = seed, .batch_number = batch_number},
        &plan));
    status = reader.Read(*storage, plan, out);
    if (!absl::IsOutOfRange(status)) return status;
  }
  return status;
}

absl::Status ReplayBuffer::State::AfterRead(TensorDict* out) {
  if (transforms->transforms().empty()) return Place(out);
  constexpr std::array<absl::string_view, 3> kOrigins = {
      kIndexKey, kGenerationKey, kWeightKey};
  const Shape shape = out->batch_shape();
  std::array<Tensor, kOrigins.size()> origins;
  for (size_t i = 0; i < kOrigins.size(); ++i) {
    const Tensor* leaf = out->Find(kOrigins[i]);
    if (leaf != nullptr) origins[i] = *leaf;
  }
  // What a transform learned from a batch that then fails is forgotten.
  RILL_ASSIGN_OR_RETURN(const TensorDict before, transforms->SaveState());
  RILL_RETURN_IF_ERROR(transforms->Forward(out));
  absl::Status status;
  for (size_t i = 0; i < kOrigins.size() && status.ok(); ++i) {
    if (!origins[i].is_valid() || out->Contains(kOrigins[i]) ||
        !(out->batch_shape() == shape)) {
      continue;
    }
    absl::StatusOr<Tensor> moved = origins[i];
    if (out->device().has_value()) moved = moved->To(*out->device());
    status = moved.ok() ? out->Set(kOrigins[i], *moved) : moved.status();
  }
  if (status.ok()) status = Place(out);
  // A transform takes what it has just saved.
  if (!status.ok()) transforms->LoadState(before).IgnoreError();
  return status;
}

// The last step: whatever the transforms made lies where it was asked for.
absl::Status ReplayBuffer::State::Place(TensorDict* out) const {
  if (device.has_value()) {
    RILL_ASSIGN_OR_RETURN(*out, out->To(*device));
    return absl::OkStatus();
  }
  if (!pin_memory) return absl::OkStatus();
  const bool is_as_read =
      transforms->transforms().empty() && unit_transform == nullptr;
  if (is_as_read ? reader.IsPinned(*out) : out->is_pinned()) {
    return absl::OkStatus();
  }
  RILL_ASSIGN_OR_RETURN(*out, out->Pin(pin_for));
  return absl::OkStatus();
}

absl::Status ReplayBuffer::State::SampleInto(int64_t items, TensorDict* out) {
  absl::MutexLock lock(&mutex);
  if (!is_forward_checked) {
    RILL_RETURN_IF_ERROR(CheckForward(storage->spec()));
  }
  RILL_RETURN_IF_ERROR(DrawAndRead(items, out));
  RILL_RETURN_IF_ERROR(AfterRead(out));
  ++batch_number;
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> ReplayBuffer::Sample(int64_t batch_size) {
  TensorDict batch;
  RILL_RETURN_IF_ERROR(state_->SampleInto(batch_size, &batch));
  return batch;
}

absl::StatusOr<TensorDict> ReplayBuffer::Sample() {
  TensorDict batch;
  RILL_RETURN_IF_ERROR(SampleInto(&batch));
  return batch;
}

absl::Status ReplayBuffer::SampleInto(TensorDict* out) {
  if (out == nullptr) {
    return absl::InvalidArgumentError(
        "ReplayBuffer::SampleInto: out: got null, want a TensorDict");
  }
  if (state_->batch_size == 0) {
    return absl::FailedPreconditionError(
        "ReplayBuffer::Sample: Options::batch_size: got 0, want > 0; set it, "
        "or call Sample(batch_size)");
  }
  return state_->SampleInto(state_->batch_size, out);
}

absl::Status ReplayBuffer::UpdatePriorities(
    const TensorDict& batch, absl::Span<const float> priorities) {
  RILL_ASSIGN_OR_RETURN(const Tensor index, NumbersOf(batch, kIndexKey));
  RILL_ASSIGN_OR_RETURN(const Tensor generations,
                        NumbersOf(batch, kGenerationKey));
  if (index.num_elements() != generations.num_elements()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ReplayBuffer::UpdatePriorities: \"", kGenerationKey, "\": got ",
        generations.shape().ToString(), ", want the shape of \"", kIndexKey,
        "\", ", index.shape().ToString()));
  }
  std::vector<Draw> draws(static_cast<size_t>(index.num_elements()));
  for (size_t i = 0; i < draws.size(); ++i) {
    draws[i].slot = index.data<int64_t>()[i];
    draws[i].generation = generations.data<int64_t>()[i];
  }
  absl::MutexLock lock(&state_->mutex);
  return state_->sampler->UpdatePriorities(draws, priorities);
}

// --- Accessors ---------------------------------------------------------------

int64_t ReplayBuffer::size() const { return state_->storage->size(); }

int64_t ReplayBuffer::capacity() const { return state_->storage->capacity(); }

const Storage& ReplayBuffer::storage() const { return *state_->storage; }

uint64_t ReplayBuffer::batch_number() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->batch_number;
}

}  // namespace rill
