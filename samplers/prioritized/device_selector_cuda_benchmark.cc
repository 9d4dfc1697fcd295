// SPDX-License-Identifier: Apache-2.0
// Plans, and priorities that come back from a network on a CUDA device, where
// the sampler has its priorities there and where it has them on the host.
//   bazel run --config=opt --config=cuda //samplers/prioritized:device_selector_cuda_benchmark
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/samplers/prioritized/priority_updater.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/sampler.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

namespace rill {
namespace {

// Where the TD errors of a batch are made.
const Device kLearner = Device::Cuda();

// A sampler over `rows` rows that have had priorities of all sizes, and memory
// of the learner for `count` draws and their errors.
class Setup {
 public:
  Setup(int64_t rows, int64_t count, Device priorities, int64_t lanes = 1)
      : lanes_{.count = lanes, .capacity = rows / lanes}, count_(count) {
    status_ = Make(priorities);
  }
  const absl::Status& status() const { return status_; }
  const Lanes& lanes() const { return lanes_; }
  WriteObserver* observer() { return sampler_->observer(); }

  void Plan() {
    Note(sampler_->Plan(
        {.batch_size = count_, .seed = 1, .batch_number = batch_++}, &plan_));
  }
  // What the network has made becomes priorities.
  void Update() {
    if (PriorityUpdater* updater = sampler_->traits().priority_updater.get()) {
      Note(updater->Update({.slots = At<int64_t>(0),
                            .generations = At<int64_t>(8),
                            .priorities = At<float>(16),
                            .count = count_},
                           nullptr, *stream_));
      return;
    }
    Note(CopyAsync(errors_->data(), At<float>(16), 4 * count_, *stream_));
    Note(stream_->Synchronize());
    Note(sampler_->UpdatePriorities(
        plan_.draws, {reinterpret_cast<const float*>(errors_->data()),
                      static_cast<size_t>(count_)}));
  }
  // The draws of the plan, as a batch has them on the device.
  void MoveDraws() {
    std::vector<int64_t> numbers(2 * count_);
    for (int64_t i = 0; i < count_; ++i) {
      numbers[i] = plan_.draws[i].slot;
      numbers[count_ + i] = plan_.draws[i].generation;
    }
    Note(CopyBlocking(batch_memory_->data(), numbers.data(), 16 * count_,
                      kLearner));
  }
  void Await() { Note(stream_->Synchronize()); }

 private:
  absl::Status Make(Device priorities) {
    PrioritizedOptions options;
    options.device = priorities;
    RILL_ASSIGN_OR_RETURN(sampler_, MakePrioritizedSampler(options));
    RILL_ASSIGN_OR_RETURN(Stream stream, Stream::Create(kLearner));
    stream_ = std::make_unique<Stream>(std::move(stream));
    RILL_ASSIGN_OR_RETURN(batch_memory_, Buffer::Allocate(20 * count_, kLearner,
                                                          MemoryKind::kDevice));
    RILL_ASSIGN_OR_RETURN(
        errors_, Buffer::Allocate(4 * count_, kLearner, MemoryKind::kPinned));
    const Rng rng(1);
    std::vector<float> errors;
    for (int64_t i = 0; i < count_; ++i) {
      errors.push_back(rng.UniformFloat(1, static_cast<uint32_t>(i)));
    }
    RILL_RETURN_IF_ERROR(CopyBlocking(batch_memory_->data() + 16 * count_,
                                      errors.data(), 4 * count_, kLearner));
    const std::vector<Cursor> cursors(lanes_.count);
    observer()->OnAttach(lanes_, cursors);
    std::vector<double> given(lanes_.capacity);
    for (int64_t lane = 0; lane < lanes_.count; ++lane) {
      for (int64_t i = 0; i < lanes_.capacity; ++i) {
        given[i] = rng.UniformDouble(2 + static_cast<uint64_t>(lane),
                                     static_cast<uint32_t>(i));
      }
      const SlotRange range = {.first = lanes_.SlotOf(lane, 0),
                               .count = lanes_.capacity};
      WriteEvent event;
      event.written = {&range, 1};
      event.priorities = given;
      observer()->OnWrite(event);
    }
    Plan();
    MoveDraws();
    return status_;
  }
  template <typename T>
  T* At(int64_t bytes_a_row) const {
    return reinterpret_cast<T*>(batch_memory_->data() + bytes_a_row * count_);
  }
  void Note(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }

  const Lanes lanes_;
  const int64_t count_;
  absl::Status status_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Stream> stream_;
  std::shared_ptr<Buffer> batch_memory_;  // Slots, generations, errors.
  std::shared_ptr<Buffer> errors_;        // Of the host.
  SamplePlan plan_;
  uint64_t batch_ = 0;
};

Device PrioritiesOf(const benchmark::State& state) {
  return state.range(2) == 0 ? Device::Cpu() : kLearner;
}

// One step of a learner: a plan, and priorities for its rows.
void BM_PlanAndUpdate(benchmark::State& state) {
  Setup setup(state.range(0), state.range(1), PrioritiesOf(state));
  for (auto _ : state) {
    if (!setup.status().ok()) break;
    setup.Plan();
    setup.Update();
  }
  if (!setup.status().ok()) {
    return state.SkipWithError(setup.status().ToString());
  }
  state.SetItemsProcessed(state.iterations() * state.range(1));
}

// The host's part of an update, and what the device takes.
void BM_Update(benchmark::State& state) {
  Setup setup(state.range(0), state.range(1), PrioritiesOf(state));
  for (auto _ : state) {
    if (!setup.status().ok()) break;
    setup.Update();
    setup.Await();
  }
  if (!setup.status().ok()) {
    return state.SkipWithError(setup.status().ToString());
  }
  state.SetItemsProcessed(state.iterations() * state.range(1));
}

// A step of many lanes at once over old rows, and a plan that sees it. The
// batch is the number of lanes here.
void BM_StepAndPlan(benchmark::State& state) {
  Setup setup(state.range(0), /*count=*/256, PrioritiesOf(state),
              /*lanes=*/state.range(1));
  int64_t position = 0;
  std::vector<SlotRange> ranges(state.range(1));
  for (auto _ : state) {
    if (!setup.status().ok()) break;
    for (int64_t lane = 0; lane < state.range(1); ++lane) {
      ranges[lane] = {.first = setup.lanes().SlotOf(lane, position),
                      .count = 1};
    }
    position = (position + 1) % setup.lanes().capacity;
    WriteEvent event;
    event.retired = ranges;
    event.written = ranges;
    setup.observer()->OnRetire(event);
    setup.observer()->OnWrite(event);
    setup.Plan();
  }
  if (!setup.status().ok()) {
    return state.SkipWithError(setup.status().ToString());
  }
  state.SetItemsProcessed(state.iterations() * state.range(1));
}

#define RILL_SIZES_                                                   \
  ArgNames({"rows", "batch", "device"})                               \
      ->ArgsProduct({{1 << 20, 10000000}, {256, 1024, 8192}, {0, 1}}) \
      ->UseRealTime()
BENCHMARK(BM_PlanAndUpdate)->RILL_SIZES_;
BENCHMARK(BM_Update)->RILL_SIZES_;
BENCHMARK(BM_StepAndPlan)
    ->ArgNames({"rows", "lanes", "device"})
    ->ArgsProduct({{1 << 22}, {64, 4096, 65536}, {0, 1}})
    ->UseRealTime();

}  // namespace
}  // namespace rill
