// SPDX-License-Identifier: Apache-2.0
// Saving and loading dictionaries against the machine's own time for the same
// bytes in the same run. "ratio" is our time over the machine's, each the best
// of its repetitions. "cpu_ratio" is the same of processor time, which says
// more on a machine that others use too.
//
//   bazel run --config=opt //formats:memmap_benchmark
//
// The machine's save is one new file: reserved, written from memory, synced and
// renamed over the old one. Its load is one mapping, of which every line is
// touched; its copy one memcpy out of that mapping into new memory.
//
// Every writer of a directory makes a file for each tensor. So for directories
// "files_ratio" is our time over the machine's for the same files, one after
// the other. A save writes and syncs all, exchanges the two directories and
// removes the old one. "cpu_files_ratio" is the same of processor time.
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "benchmark/benchmark.h"
#include "rill/base/clock.h"
#include "rill/base/file.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/tdz_archive.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using Mode = LoadMemmapOptions::Mode;

enum Format : int64_t { kDirectory, kTdz, kConsolidated };

std::string Folder() {
  const char* const folder = std::getenv("TEST_TMPDIR");
  const std::string path =
      JoinPath(folder == nullptr ? "/tmp" : folder,
               absl::StrCat("rill_memmap_benchmark_", getpid()));
  CHECK_OK(CreateDirectories(path));
  return path;
}

// Eight leaves of a rollout, most of it in the observations.
TensorDict MakeDict(int64_t bytes) {
  const int64_t rows = bytes / 4096;
  TensorDict dict({rows});
  const auto add = [&](absl::string_view key, DType dtype, Shape shape) {
    auto leaf = Tensor::Empty(dtype, shape);
    CHECK_OK(leaf);
    std::memset(leaf->raw_data(), 1, leaf->size_bytes());
    CHECK_OK(dict.Set(key, *leaf));
  };
  add("obs", DType::kUInt8, {rows, 1984});
  add("next/obs", DType::kUInt8, {rows, 1984});
  add("action", DType::kFloat32, {rows, 24});
  add("next/reward", DType::kFloat32, {rows, 1});
  add("next/done", DType::kBool, {rows, 1});
  add("index", DType::kInt64, {rows, 1});
  add("next/value", DType::kFloat32, {rows, 1});
  add("mask", DType::kBool, {rows, 13});
  return dict;
}

absl::Status Save(Format format, const TensorDict& dict,
                  const std::string& path) {
  switch (format) {
    case kDirectory:
      return SaveMemmapDirectory(dict, path);
    case kTdz:
      return SaveTdz(dict, path);
    case kConsolidated:
      break;
  }
  return SaveConsolidated(dict, path);
}

absl::StatusOr<TensorDict> Load(Format format, const std::string& path,
                                Mode mode) {
  switch (format) {
    case kDirectory:
      return LoadMemmapDirectory(path, {.mode = mode});
    case kTdz:
      return LoadTdz(path, {.mode = mode});
    case kConsolidated:
      break;
  }
  return LoadConsolidated(path, {.mode = mode});
}

// The time of one run: of the clock, and of the processor.
struct Cost {
  double wall = 1e9;
  double cpu = 1e9;

  void Lower(const Cost& other) {
    wall = std::min(wall, other.wall);
    cpu = std::min(cpu, other.cpu);
  }
};

double CpuSeconds() {
  rusage usage;
  CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) +
           1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

template <typename F>
Cost Measure(F&& work) {
  const double cpu = CpuSeconds();
  const absl::Time start = Clock::System().Now();
  work();
  return {absl::ToDoubleSeconds(Clock::System().Now() - start),
          CpuSeconds() - cpu};
}

// Makes a file of these bytes, and returns it.
int WriteNew(const std::string& path, const char* data, int64_t bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
  CHECK_GE(fd, 0);
  // Not every file system can; ours does without then, too.
  if (fallocate(fd, 0, 0, bytes) != 0) CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
  for (int64_t done = 0; done < bytes;) {
    const ssize_t n = write(fd, data + done, bytes - done);
    CHECK_GT(n, 0);
    done += n;
  }
  return fd;
}

// The machine's own save of `bytes`, over what is at `path`.
void WriteRaw(const std::string& path, const char* data, int64_t bytes) {
  const std::string fresh = path + ".new";
  const int fd = WriteNew(fresh, data, bytes);
  CHECK_EQ(fsync(fd), 0);
  CHECK_EQ(close(fd), 0);
  CHECK_EQ(rename(fresh.c_str(), path.c_str()), 0);
}

int64_t Touch(const char* data, int64_t bytes) {
  int64_t sum = 0;
  for (int64_t at = 0; at < bytes; at += 64) sum += data[at];
  return sum;
}

// The machine's own load of a file, by Touch or into new memory.
void ReadRaw(const std::string& path, int64_t bytes, Mode mode) {
  const int fd = open(path.c_str(), O_RDONLY);
  CHECK_GE(fd, 0);
  void* const data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  CHECK_NE(data, MAP_FAILED);
  if (mode == Mode::kCopy) {
    std::unique_ptr<char, void (*)(void*)> copy(
        static_cast<char*>(std::malloc(bytes)), std::free);
    std::memcpy(copy.get(), data, bytes);
    benchmark::ClobberMemory();
  } else {
    int64_t sum = Touch(static_cast<const char*>(data), bytes);
    benchmark::DoNotOptimize(sum);
  }
  munmap(data, bytes);
  close(fd);
}

// A file of what we saved, below its directory; a directory where it has no
// size.
struct SavedFile {
  std::string path;
  int64_t bytes = -1;
};

std::vector<SavedFile> ListSaved(const std::string& directory) {
  std::vector<SavedFile> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(directory)) {
    const std::string path =
        entry.path().lexically_relative(directory).string();
    files.push_back({path, entry.is_directory()
                               ? -1
                               : static_cast<int64_t>(entry.file_size())});
  }
  return files;
}

void SyncRaw(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY);
  CHECK_GE(fd, 0);
  CHECK_EQ(fsync(fd), 0);
  close(fd);
}

// The machine's own save of the same files, in the place of `directory`.
void WriteRawFiles(const std::string& directory,
                   const std::vector<SavedFile>& files, const char* data) {
  const std::string fresh = directory + ".new";
  CHECK_EQ(mkdir(fresh.c_str(), 0777), 0);
  for (const SavedFile& file : files) {
    const std::string path = JoinPath(fresh, file.path);
    if (file.bytes < 0) {
      CHECK_EQ(mkdir(path.c_str(), 0777), 0);
      continue;
    }
    close(WriteNew(path, data, file.bytes));
  }
  for (const SavedFile& file : files) SyncRaw(JoinPath(fresh, file.path));
  SyncRaw(fresh);
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, directory.c_str(),
                RENAME_EXCHANGE) != 0) {
    CHECK_EQ(rename(fresh.c_str(), directory.c_str()), 0);
    return;
  }
  std::filesystem::remove_all(fresh);
}

// Runs the sides in turn, so that they meet the same machine. `same_files` may
// be null.
template <typename Ours, typename Machine>
void Compare(benchmark::State& state, int64_t bytes, Ours&& ours,
             Machine&& machine, const std::function<void()>& same_files) {
  Cost best_ours;
  Cost best_machine;
  Cost best_files;
  for (auto _ : state) {
    best_machine.Lower(Measure(machine));
    if (same_files) best_files.Lower(Measure(same_files));
    const Cost cost = Measure(ours);
    best_ours.Lower(cost);
    state.SetIterationTime(cost.wall);
  }
  if (same_files) {
    state.counters["files_ratio"] = best_ours.wall / best_files.wall;
    state.counters["cpu_files_ratio"] = best_ours.cpu / best_files.cpu;
  }
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  state.counters["ratio"] = best_ours.wall / best_machine.wall;
  state.counters["cpu_ratio"] = best_ours.cpu / best_machine.cpu;
  state.counters["GBps"] = gigabytes / best_ours.wall;
  state.counters["machine_GBps"] = gigabytes / best_machine.wall;
}

void BM_Save(benchmark::State& state) {
  const auto format = static_cast<Format>(state.range(0));
  const std::string folder = Folder();
  const TensorDict dict = MakeDict(state.range(1) << 20);
  const int64_t bytes = dict.size_bytes();
  const std::string raw(bytes, 'x');
  const std::string ours = JoinPath(folder, "ours");
  std::function<void()> same_files;
  std::vector<SavedFile> files;
  if (format == kDirectory) {
    CHECK_OK(Save(format, dict, ours));
    files = ListSaved(ours);
    same_files = [&] {
      WriteRawFiles(JoinPath(folder, "raw_files"), files, raw.data());
    };
  }
  Compare(
      state, bytes, [&] { CHECK_OK(Save(format, dict, ours)); },
      [&] { WriteRaw(JoinPath(folder, "raw"), raw.data(), bytes); },
      same_files);
  CHECK_OK(RemoveAll(folder));
}

// Maps and touches a byte of every line, or copies, without the disk: what was
// saved is in the page cache.
void BM_Load(benchmark::State& state) {
  const auto format = static_cast<Format>(state.range(0));
  const Mode mode = state.range(2) == 0 ? Mode::kMapReadOnly : Mode::kCopy;
  const std::string folder = Folder();
  const std::string path = JoinPath(folder, "ours");
  const std::string raw = JoinPath(folder, "raw");
  int64_t bytes = 0;
  {
    const TensorDict dict = MakeDict(state.range(1) << 20);
    bytes = dict.size_bytes();
    CHECK_OK(Save(format, dict, path));
    WriteRaw(raw, std::string(bytes, 'x').data(), bytes);
  }
  std::function<void()> same_files;
  std::vector<SavedFile> files;
  if (format == kDirectory) {
    files = ListSaved(path);
    same_files = [&] {
      for (const SavedFile& file : files) {
        if (file.bytes < 0) continue;
        ReadRaw(JoinPath(path, file.path), file.bytes, mode);
      }
    };
  }
  Compare(
      state, bytes,
      [&] {
        auto loaded = Load(format, path, mode);
        CHECK_OK(loaded);
        if (mode == Mode::kCopy) return;
        loaded->ForEachLeaf([](absl::string_view, const Tensor& leaf) {
          int64_t sum = Touch(reinterpret_cast<const char*>(leaf.raw_data()),
                              leaf.size_bytes());
          benchmark::DoNotOptimize(sum);
        });
      },
      [&] { ReadRaw(raw, bytes, mode); }, same_files);
  CHECK_OK(RemoveAll(folder));
}

BENCHMARK(BM_Save)
    ->ArgNames({"format", "MiB"})
    ->ArgsProduct({{kDirectory, kTdz, kConsolidated}, {16, 256}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Load)
    ->ArgNames({"format", "MiB", "copy"})
    ->ArgsProduct({{kDirectory, kTdz, kConsolidated}, {16, 256}, {0, 1}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rill
