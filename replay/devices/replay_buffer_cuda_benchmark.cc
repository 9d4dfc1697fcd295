// SPDX-License-Identifier: Apache-2.0
// Samples of rows that lie on a CUDA device, or in host memory and are moved
// there. The limit is a copy of as many bytes in one piece.
//   bazel run --config=opt --config=cuda //replay/devices:replay_buffer_cuda_benchmark
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "rill/base/rng.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"

namespace rill {
namespace {

// Steps of an observation, an action and what follows.
struct RowKind {
  const char* name;
  DType dtype;
  int64_t observation;
  int64_t capacity;
};
constexpr RowKind kKinds[] = {
    {"HalfCheetah", DType::kFloat32, 17, 1'000'000},
    {"Humanoid", DType::kFloat32, 376, 100'000},
    {"Atari", DType::kUInt8, 28'224, 10'000},
};

TensorDictSpec SpecOf(const RowKind& kind) {
  const LeafSpec seen = LeafSpec::Unbounded(kind.dtype, {kind.observation});
  const std::pair<const char*, LeafSpec> leaves[] = {
      {"observation", seen},
      {"action", LeafSpec::Unbounded(DType::kFloat32, {6})},
      {"next/observation", seen},
      {"next/reward", LeafSpec::Unbounded(DType::kFloat32, {1})},
      {"next/done", LeafSpec::Binary({1})}};
  TensorDictSpec spec;
  for (const auto& [key, leaf] : leaves) spec.Set(key, leaf).IgnoreError();
  return spec;
}

// Full of random rows; made once, and kept.
std::shared_ptr<Storage> Filled(const RowKind& kind, Device device,
                                StorageLayout layout) {
  static auto& made = *new std::map<std::string, std::shared_ptr<Storage>>;
  std::shared_ptr<Storage>& known = made[absl::StrCat(
      kind.name, device.ToString(), static_cast<int>(layout))];
  if (known != nullptr) return known;
  auto storage = DenseStorage::Create({.capacity = kind.capacity,
                                       .layout = layout,
                                       .device = device,
                                       .spec = SpecOf(kind)});
  auto batch = SpecOf(kind).Random({500}, Rng(/*seed=*/1), 0);
  if (!storage.ok() || !batch.ok()) return nullptr;
  while ((*storage)->size() < kind.capacity) {
    if (!(*storage)->Extend(*batch).ok()) return nullptr;
  }
  return known = *std::move(storage);
}

void CountBytes(benchmark::State& state, int64_t bytes) {
  state.SetBytesProcessed(state.iterations() * bytes);
}

// The limit: `bytes` in one piece, many copies behind each other.
void Copies(benchmark::State& state, MemoryKind from, int64_t bytes) {
  constexpr int kInFlight = 100;
  auto source = Buffer::Allocate(bytes, Device::Cuda(), from);
  auto target = Buffer::Allocate(bytes, Device::Cuda(), MemoryKind::kDevice);
  auto stream = Stream::Create(Device::Cuda());
  if (!source.ok() || !target.ok() || !stream.ok()) {
    return state.SkipWithError("no CUDA device, or too little of its memory");
  }
  for ([[maybe_unused]] auto _ : state) {
    for (int i = 0; i < kInFlight; ++i) {
      CopyAsync((*target)->data(), (*source)->data(), bytes, *stream)
          .IgnoreError();
    }
    if (!stream->Synchronize().ok()) state.SkipWithError("a copy failed");
  }
  CountBytes(state, kInFlight * bytes);
}

// Reads of random rows, many enqueued behind each other.
void Reads(benchmark::State& state, const RowKind& kind, StorageLayout layout,
           int64_t batch_size) {
  constexpr int kInFlight = 100;
  const auto storage = Filled(kind, Device::Cuda(), layout);
  auto stream = Stream::Create(Device::Cuda());
  if (storage == nullptr || !stream.ok()) {
    return state.SkipWithError("no CUDA device, or too little of its memory");
  }
  const Rng rng(/*seed=*/1);
  std::vector<std::vector<Slot>> slots(kInFlight);
  for (int i = 0; i < kInFlight; ++i) {
    for (int64_t k = 0; k < batch_size; ++k) {
      slots[i].push_back(rng.UniformInt(i, k, kind.capacity));
    }
  }
  TensorDict batch;
  for ([[maybe_unused]] auto _ : state) {
    for (const std::vector<Slot>& each : slots) {
      if (!storage->EnqueueRead(each, *stream, &batch).ok()) {
        state.SkipWithError("a read failed");
      }
    }
    if (!stream->Synchronize().ok()) state.SkipWithError("a read failed");
  }
  CountBytes(state, kInFlight * batch.size_bytes());
}

// Whole samples, each complete before the next.
void Samples(benchmark::State& state, const RowKind& kind, Device stored,
             int64_t batch_size, int64_t prefetch) {
  ReplayBuffer::Options options = {
      .storage = Filled(kind, stored, StorageLayout::kAuto),
      .sampler = MakeUniformSampler(),
      .batch_size = batch_size,
      .prefetch = prefetch};
  if (stored.is_cpu()) options.device = Device::Cuda();
  if (options.storage == nullptr) {
    return state.SkipWithError("no CUDA device, or too little of its memory");
  }
  auto buffer = ReplayBuffer::Create(std::move(options));
  if (!buffer.ok()) {
    return state.SkipWithError(buffer.status().ToString());
  }
  TensorDict batch;
  for (int i = 0; i < 5; ++i) (*buffer)->SampleInto(&batch).IgnoreError();
  for ([[maybe_unused]] auto _ : state) {
    if (!(*buffer)->SampleInto(&batch).ok()) state.SkipWithError("no sample");
  }
  CountBytes(state, batch.size_bytes());
}

// A batch of the host's into a storage on the device.
void Extends(benchmark::State& state, const RowKind& kind, int64_t rows) {
  const auto storage = Filled(kind, Device::Cuda(), StorageLayout::kAuto);
  auto batch = SpecOf(kind).Random({rows}, Rng(/*seed=*/2), 0);
  if (storage == nullptr || !batch.ok()) {
    return state.SkipWithError("no CUDA device, or too little of its memory");
  }
  for ([[maybe_unused]] auto _ : state) {
    if (!storage->Extend(*batch).ok()) state.SkipWithError("no write");
  }
  CountBytes(state, batch->size_bytes());
}

void Register(const std::string& name,
              std::function<void(benchmark::State&)> run) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(run))->UseRealTime();
}

[[maybe_unused]] const bool registered = [] {
  for (const int64_t bytes : {36'000, 580'000, 14'500'000}) {
    for (const MemoryKind from : {MemoryKind::kDevice, MemoryKind::kPinned}) {
      Register(absl::StrCat("Copy/", MemoryKindName(from), "/", bytes),
               [=](benchmark::State& s) { Copies(s, from, bytes); });
    }
  }
  for (const RowKind& kind : kKinds) {
    for (const int64_t batch : {256, 4096}) {
      const std::string of = absl::StrCat(kind.name, "/", batch);
      Register("ReadRows/" + of, [=](benchmark::State& s) {
        Reads(s, kind, StorageLayout::kRows, batch);
      });
      Register("ReadColumns/" + of, [=](benchmark::State& s) {
        Reads(s, kind, StorageLayout::kColumns, batch);
      });
      Register("SampleOnDevice/" + of, [=](benchmark::State& s) {
        Samples(s, kind, Device::Cuda(), batch, 0);
      });
      Register("SampleFromHost/" + of, [=](benchmark::State& s) {
        Samples(s, kind, Device::Cpu(), batch, 0);
      });
      Register("SampleFromHostAhead/" + of, [=](benchmark::State& s) {
        Samples(s, kind, Device::Cpu(), batch, 4);
      });
    }
    for (const int64_t rows : {1, 1000}) {
      Register(absl::StrCat("Extend/", kind.name, "/", rows),
               [=](benchmark::State& s) { Extends(s, kind, rows); });
    }
  }
  return true;
}();

}  // namespace
}  // namespace rill
