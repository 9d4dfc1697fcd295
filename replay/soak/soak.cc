// SPDX-License-Identifier: Apache-2.0
// Replay buffers under full load for a long time: producers, learners, patches,
// queries and saves at once, every row checked, memory and descriptors
// watched. tools/soak runs it. Exits with 1 where a check failed.
// usage: soak DIRECTORY SECONDS
#include <dirent.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/stored_trajectory.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/tiered/tiered_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/peak_memory.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 2;  // One a producer.
constexpr int64_t kLaneSteps = 50'000;
constexpr int64_t kSteps = 100;  // Of one write.
constexpr int64_t kWidth = 16;
constexpr int64_t kEpisode = 37;
constexpr int64_t kItems = 256;
constexpr int64_t kSlice = 8;
constexpr int64_t kLaneBits = 40;

// The value of a row of step `id` in column `i`.
float ValueOf(int64_t id, int64_t i) {
  return static_cast<float>((id * 31 + i * 7) % 65'536);
}

// Steps [first, first + kSteps) of a lane; their ids tell lane and step.
absl::StatusOr<TensorDict> StepsOf(int64_t lane, int64_t first) {
  TensorDict steps({1, kSteps});
  RILL_ASSIGN_OR_RETURN(Tensor ids, Tensor::Zeros(DType::kInt64, {1, kSteps}));
  RILL_ASSIGN_OR_RETURN(Tensor values,
                        Tensor::Zeros(DType::kFloat32, {1, kSteps, kWidth}));
  RILL_ASSIGN_OR_RETURN(Tensor done,
                        Tensor::Zeros(DType::kBool, {1, kSteps, 1}));
  for (int64_t t = 0; t < kSteps; ++t) {
    const int64_t id = lane << kLaneBits | (first + t);
    ids.data<int64_t>()[t] = id;
    done.data<bool>()[t] = (first + t) % kEpisode == kEpisode - 1;
    for (int64_t i = 0; i < kWidth; ++i) {
      values.data<float>()[t * kWidth + i] = ValueOf(id, i);
    }
  }
  RILL_ASSIGN_OR_RETURN(const Tensor patches,
                        Tensor::Zeros(DType::kInt64, {1, kSteps}));
  RILL_RETURN_IF_ERROR(steps.Set("id", ids));
  RILL_RETURN_IF_ERROR(steps.Set("values", values));
  RILL_RETURN_IF_ERROR(steps.Set("next/done", done));
  RILL_RETURN_IF_ERROR(steps.Set("patch", patches));
  return steps;
}

// Every row is one row, whole; runs of `run` rows are consecutive steps.
absl::Status CheckRows(const TensorDict& rows, int64_t run) {
  RILL_ASSIGN_OR_RETURN(const auto ids, rows.Flat<int64_t>("id"));
  RILL_ASSIGN_OR_RETURN(const auto values, rows.Flat<float>("values"));
  RILL_ASSIGN_OR_RETURN(const auto done, rows.Flat<bool>("next/done"));
  RILL_ASSIGN_OR_RETURN(const auto patches, rows.Flat<int64_t>("patch"));
  for (size_t row = 0; row < ids.size(); ++row) {
    const int64_t id = ids[row];
    const int64_t step = id & ((int64_t{1} << kLaneBits) - 1);
    bool is_right = done[row] == (step % kEpisode == kEpisode - 1) &&
                    (patches[row] == 0 || patches[row] == id);
    for (int64_t i = 0; i < kWidth; ++i) {
      is_right &= values[row * kWidth + i] == ValueOf(id, i);
    }
    if (!is_right) {
      return absl::DataLossError(absl::StrCat("row of id ", id, " is torn"));
    }
    if (static_cast<int64_t>(row) % run != 0 && id != ids[row - 1] + 1) {
      return absl::DataLossError(
          absl::StrCat("after id ", ids[row - 1], " comes ", id));
    }
  }
  return absl::OkStatus();
}

int64_t OpenDescriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return -1;
  int64_t count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// One buffer and who works with it.
class Subject {
 public:
  Subject(std::string name, std::unique_ptr<ReplayBuffer> buffer, int64_t run)
      : name_(std::move(name)), buffer_(std::move(buffer)), run_(run) {}

  ~Subject() { Join(); }

  const std::string& name() const { return name_; }
  ReplayBuffer& buffer() { return *buffer_; }

  // With some rows, so that there is something to sample.
  absl::Status Start() {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      RILL_RETURN_IF_ERROR(Write(lane, 0));
    }
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      threads_.emplace_back([this, lane] { Note(Produce(lane)); });
    }
    threads_.emplace_back([this] { Note(Learn()); });
    return absl::OkStatus();
  }
  absl::Status Stop() {
    Join();
    return status();
  }
  absl::Status status() const {
    absl::MutexLock lock(&mutex_);
    return status_;
  }
  int64_t batches() const { return batches_; }
  int64_t patched() const { return patched_; }

 private:
  void Join() {
    is_stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  void Note(absl::Status status) {
    absl::MutexLock lock(&mutex_);
    status_.Update(status);
    if (!status.ok()) is_stopping_ = true;
  }

  absl::Status Write(int64_t lane, int64_t step) {
    RILL_ASSIGN_OR_RETURN(const TensorDict steps, StepsOf(lane, step));
    return buffer_->Extend(steps, {.first_lane = lane}).status();
  }

  absl::Status Produce(int64_t lane) {
    for (int64_t step = kSteps; !is_stopping_; step += kSteps) {
      RILL_RETURN_IF_ERROR(Write(lane, step));
    }
    return absl::OkStatus();
  }

  absl::Status Learn() {
    TensorDict batch;
    while (!is_stopping_) {
      RILL_RETURN_IF_ERROR(buffer_->SampleInto(&batch));
      RILL_RETURN_IF_ERROR(CheckRows(batch, run_));
      ++batches_;
      if (batches_ % 16 != 0) continue;
      RILL_RETURN_IF_ERROR(GiveBack(batch));
    }
    return absl::OkStatus();
  }

  // Priorities and a patch for the rows of a batch.
  absl::Status GiveBack(const TensorDict& batch) {
    RILL_ASSIGN_OR_RETURN(const auto ids, batch.Flat<int64_t>("id"));
    std::vector<float> priorities;
    for (const int64_t id : ids) {
      priorities.push_back(static_cast<float>(1 + id % 10));
    }
    RILL_RETURN_IF_ERROR(buffer_->UpdatePriorities(batch, priorities));
    TensorDict patch(batch.batch_shape());
    for (const char* const key : {"index", "index_generation"}) {
      RILL_ASSIGN_OR_RETURN(const Tensor leaf, batch.Get(key));
      RILL_RETURN_IF_ERROR(patch.Set(key, leaf));
    }
    RILL_ASSIGN_OR_RETURN(const Tensor leaf, batch.Get("id"));
    RILL_RETURN_IF_ERROR(patch.Set("patch", leaf));
    RILL_ASSIGN_OR_RETURN(const auto result, buffer_->UpdateIfPresent(patch));
    patched_ += result.num_updated;
    return absl::OkStatus();
  }

  const std::string name_;
  const std::unique_ptr<ReplayBuffer> buffer_;
  const int64_t run_;
  std::atomic<bool> is_stopping_ = false;
  std::atomic<int64_t> batches_ = 0;
  std::atomic<int64_t> patched_ = 0;
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

absl::StatusOr<std::vector<std::unique_ptr<Subject>>> MakeSubjects(
    const std::string& directory) {
  constexpr int64_t kCapacity = kLanes * kLaneSteps;
  std::vector<std::unique_ptr<Subject>> subjects;
  const auto add = [&](const char* name, std::shared_ptr<Storage> storage,
                       std::unique_ptr<Sampler> sampler, int64_t items,
                       int64_t run, int64_t prefetch) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(auto buffer,
                          ReplayBuffer::Create({.storage = std::move(storage),
                                                .sampler = std::move(sampler),
                                                .batch_size = items,
                                                .prefetch = prefetch}));
    subjects.push_back(std::make_unique<Subject>(name, std::move(buffer), run));
    return absl::OkStatus();
  };
  RILL_ASSIGN_OR_RETURN(auto dense, DenseStorage::Create({.capacity = kCapacity,
                                                          .lanes = kLanes}));
  RILL_ASSIGN_OR_RETURN(auto prioritized, MakePrioritizedSampler({}));
  RILL_RETURN_IF_ERROR(add("dense, prioritized", std::move(dense),
                           std::move(prioritized), kItems, 1, 0));
  RILL_ASSIGN_OR_RETURN(
      auto memmap,
      MemmapStorage::Create({.directory = absl::StrCat(directory, "/memmap"),
                             .capacity = kCapacity,
                             .lanes = kLanes}));
  RILL_ASSIGN_OR_RETURN(auto slices, MakeSliceSampler({.length = kSlice}));
  RILL_RETURN_IF_ERROR(add("memmap, slices, prefetch", std::move(memmap),
                           std::move(slices), kItems, kSlice, 2));
  RILL_ASSIGN_OR_RETURN(
      auto below,
      MemmapStorage::Create({.directory = absl::StrCat(directory, "/below"),
                             .capacity = kCapacity,
                             .lanes = kLanes}));
  RILL_ASSIGN_OR_RETURN(
      auto tiered, TieredStorage::Create({.below = std::move(below),
                                          .fast_capacity = kCapacity / 10}));
  RILL_RETURN_IF_ERROR(add("tiered, uniform, prefetch", std::move(tiered),
                           MakeUniformSampler(), kItems, 1, 2));
  return subjects;
}

// Trajectories are whole runs of steps.
absl::Status QueryOnce(ReplayBuffer& buffer) {
  int64_t seen = 0;
  const auto visit =
      [&](const StoredTrajectory& trajectory) -> absl::StatusOr<bool> {
    RILL_RETURN_IF_ERROR(CheckRows(
        trajectory.rows, static_cast<int64_t>(trajectory.slots.size())));
    return ++seen < 20;
  };
  return buffer.Iterate({.only_whole = true}, visit);
}

absl::Status SaveAndOpen(ReplayBuffer& buffer, const std::string& directory) {
  RILL_RETURN_IF_ERROR(buffer.Save(directory));
  RILL_ASSIGN_OR_RETURN(
      std::shared_ptr<Storage> storage,
      DenseStorage::Create({.capacity = buffer.capacity(), .lanes = kLanes}));
  RILL_ASSIGN_OR_RETURN(auto sampler, MakePrioritizedSampler({}));
  RILL_ASSIGN_OR_RETURN(
      const auto opened,
      ReplayBuffer::Open(directory, {.storage = std::move(storage),
                                     .sampler = std::move(sampler),
                                     .batch_size = kItems}));
  RILL_ASSIGN_OR_RETURN(const TensorDict batch, opened->Sample());
  return CheckRows(batch, 1);
}

absl::Status Soak(const std::string& directory, int64_t seconds) {
  RILL_ASSIGN_OR_RETURN(auto subjects, MakeSubjects(directory));
  for (const auto& subject : subjects) {
    RILL_RETURN_IF_ERROR(subject->Start()) << subject->name();
  }
  const Clock& clock = Clock::System();
  const absl::Time begin = clock.Now();
  const absl::Duration whole = absl::Seconds(seconds);
  const absl::Duration period = std::max(whole / 60, absl::Seconds(1));
  int64_t warm_bytes = 0, warm_descriptors = 0, last_bytes = 0;
  int64_t last_descriptors = 0;
  absl::Time next = begin;
  for (absl::Duration since; since < whole; since = clock.Now() - begin) {
    next += period;
    for (const auto& subject : subjects) {
      RILL_RETURN_IF_ERROR(subject->status()) << subject->name();
      RILL_RETURN_IF_ERROR(QueryOnce(subject->buffer())) << subject->name();
    }
    RILL_RETURN_IF_ERROR(
        SaveAndOpen(subjects[0]->buffer(), absl::StrCat(directory, "/saved")));
    last_bytes = AnonymousMemoryBytes();
    last_descriptors = OpenDescriptors();
    if (since < whole / 3) {
      warm_bytes = std::max(warm_bytes, last_bytes);
      warm_descriptors = std::max(warm_descriptors, last_descriptors);
    }
    std::string line = absl::StrFormat("%4.0f s  %4d MiB  %3d descriptors",
                                       absl::ToDoubleSeconds(since),
                                       last_bytes >> 20, last_descriptors);
    for (const auto& subject : subjects) {
      absl::StrAppend(&line, "  ", subject->name(), ": ",
                      subject->buffer().GetStats().rows_written / 1000,
                      "k rows, ", subject->batches(), " batches, ",
                      subject->patched(), " patched");
    }
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    absl::SleepFor(std::max(next - clock.Now(), absl::ZeroDuration()));
  }
  for (const auto& subject : subjects) {
    RILL_RETURN_IF_ERROR(subject->Stop()) << subject->name();
    if (subject->batches() == 0) {
      return absl::InternalError(
          absl::StrCat(subject->name(), ": got no batch, want some"));
    }
  }
  // Allocators keep what they had; what grows for ever does not stay below.
  const int64_t most = warm_bytes + warm_bytes / 10 + (int64_t{16} << 20);
  if (last_bytes > most || last_descriptors > warm_descriptors) {
    return absl::InternalError(absl::StrCat(
        "memory: got ", last_bytes, " bytes and ", last_descriptors,
        " descriptors at the end, want at most ", most, " and ",
        warm_descriptors, " as after a third of the time"));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  int64_t seconds = 0;
  if (argc != 3 || !absl::SimpleAtoi(argv[2], &seconds) || seconds < 1) {
    std::fprintf(stderr, "usage: soak DIRECTORY SECONDS\n");
    return 2;
  }
  const absl::Status status = rill::Soak(argv[1], seconds);
  if (!status.ok()) {
    std::fprintf(stderr, "soak: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  std::printf("flat: no torn row, memory and descriptors stayed\n");
  return 0;
}
