// SPDX-License-Identifier: Apache-2.0
// Random rows of a memmap storage that memory cannot hold, beside the disk's
// own speed on the same files. tools/larger_than_memory runs it inside a limit.
// usage: larger_than_memory DIRECTORY LIMIT_BYTES ROW_BYTES
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/base/clock.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"

namespace rill {
namespace {

constexpr int64_t kBatch = 256;
constexpr int64_t kPage = 4096;
constexpr double kWarmSeconds = 1;
constexpr double kSeconds = 3;

using Slots = absl::Span<const Slot>;

double Now() {
  return absl::ToDoubleSeconds(Clock::System().Now() - absl::UnixEpoch());
}

absl::Status Failed(const char* what, const std::string& on) {
  return absl::InternalError(
      absl::StrCat("cannot ", what, " ", on, ": ", std::strerror(errno)));
}

// A file of rows, past the page cache and mapped.
struct RowFile {
  int fd = -1;
  std::byte* mapped = nullptr;
  int64_t bytes = 0;
  int64_t stride = 0;
};

absl::StatusOr<RowFile> OpenRows(const std::string& path, int64_t rows) {
  RowFile file;
  file.fd = open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (file.fd < 0) return Failed("open past the page cache", path);
  struct stat about;
  if (fstat(file.fd, &about) != 0) return Failed("look at", path);
  file.bytes = about.st_size;
  file.stride = file.bytes / rows;
  void* const at = mmap(nullptr, file.bytes, PROT_READ, MAP_SHARED, file.fd, 0);
  if (at == MAP_FAILED) return Failed("map", path);
  file.mapped = static_cast<std::byte*>(at);
  return file;
}

// Reads the pages that hold rows, all at once, by the kernel's asynchronous
// I/O: what the disk gives at this depth, with no page cache between.
class DirectReads {
 public:
  static absl::StatusOr<std::unique_ptr<DirectReads>> Create(
      const std::vector<RowFile>& files, int64_t depth) {
    std::unique_ptr<DirectReads> reads(new DirectReads(files));
    for (const RowFile& file : files) {
      reads->piece_bytes_ =
          std::max(reads->piece_bytes_, file.stride + 2 * kPage);
    }
    reads->piece_bytes_ &= -kPage;
    const int64_t count = depth * static_cast<int64_t>(files.size());
    if (syscall(SYS_io_setup, count, &reads->context_) != 0) {
      return Failed("start", "asynchronous I/O");
    }
    reads->memory_ = static_cast<std::byte*>(
        std::aligned_alloc(kPage, count * reads->piece_bytes_));
    reads->blocks_.resize(count);
    reads->pointers_.resize(count);
    reads->events_.resize(count);
    return reads;
  }
  ~DirectReads() {
    syscall(SYS_io_destroy, context_);
    std::free(memory_);
  }

  absl::Status Read(Slots slots) {
    int64_t count = 0;
    for (const Slot slot : slots) {
      for (const RowFile& file : files_) {
        const int64_t begin = slot * file.stride & -kPage;
        const int64_t end = ((slot + 1) * file.stride + kPage - 1) & -kPage;
        iocb& block = blocks_[count];
        block = {};
        block.aio_fildes = static_cast<uint32_t>(file.fd);
        block.aio_lio_opcode = IOCB_CMD_PREAD;
        block.aio_buf =
            reinterpret_cast<uintptr_t>(memory_ + count * piece_bytes_);
        block.aio_nbytes = end - begin;
        block.aio_offset = begin;
        pointers_[count++] = &block;
      }
    }
    for (int64_t sent = 0; sent < count;) {
      const int64_t n = syscall(SYS_io_submit, context_, count - sent,
                                pointers_.data() + sent);
      if (n <= 0) return Failed("submit", "a read");
      sent += n;
    }
    if (syscall(SYS_io_getevents, context_, count, count, events_.data(),
                nullptr) != count) {
      return Failed("wait for", "reads");
    }
    for (int64_t i = 0; i < count; ++i) {
      // The last page of a file may be short.
      if (events_[i].res <= 0) return absl::InternalError("a read failed");
    }
    return absl::OkStatus();
  }

 private:
  explicit DirectReads(const std::vector<RowFile>& files) : files_(files) {}

  const std::vector<RowFile>& files_;
  int64_t piece_bytes_ = 0;
  aio_context_t context_ = 0;
  std::byte* memory_ = nullptr;
  std::vector<iocb> blocks_;
  std::vector<iocb*> pointers_;
  std::vector<io_event> events_;
};

struct Speed {
  double rows = 0;  // A second.
  double disk_bytes = 0;
};

// Runs `read` on fresh random slots for some seconds; prints a line.
absl::StatusOr<Speed> Measure(const char* name, int64_t depth,
                              const Storage& storage,
                              absl::FunctionRef<absl::Status(Slots)> read) {
  static uint64_t turn = 0;
  const Rng rng(1);
  std::vector<Slot> slots(depth);
  const auto run = [&](double seconds) -> absl::StatusOr<int64_t> {
    int64_t rows = 0;
    for (const double begin = Now(); Now() - begin < seconds; rows += depth) {
      ++turn;
      for (int64_t i = 0; i < depth; ++i) {
        slots[i] =
            rng.UniformInt(turn, static_cast<uint32_t>(i), storage.capacity());
      }
      RILL_RETURN_IF_ERROR(read(slots));
    }
    return rows;
  };
  RILL_RETURN_IF_ERROR(run(kWarmSeconds).status());
  rusage before = {};
  rusage after = {};
  getrusage(RUSAGE_SELF, &before);
  const double begin = Now();
  RILL_ASSIGN_OR_RETURN(const int64_t rows, run(kSeconds));
  const double seconds = Now() - begin;
  getrusage(RUSAGE_SELF, &after);
  const Speed speed = {
      static_cast<double>(rows) / seconds,
      512.0 * static_cast<double>(after.ru_inblock - before.ru_inblock) /
          seconds};
  std::printf(
      "  %-34s %9.0f rows/s %8.1f MB/s off the disk %6.2f major "
      "faults/row\n",
      name, speed.rows, speed.disk_bytes / 1e6,
      static_cast<double>(after.ru_majflt - before.ru_majflt) /
          static_cast<double>(rows));
  std::fflush(stdout);
  return speed;
}

TensorDictSpec SpecOf(int64_t row_bytes) {
  const int64_t wide = (row_bytes - 13) / 2;
  TensorDictSpec spec;
  for (const auto& [key, leaf] :
       {std::pair("observation", LeafSpec::Unbounded(DType::kUInt8, {wide})),
        std::pair("next/observation",
                  LeafSpec::Unbounded(DType::kUInt8, {row_bytes - 13 - wide})),
        std::pair("action", LeafSpec::Unbounded(DType::kInt64, {})),
        std::pair("next/reward", LeafSpec::Unbounded(DType::kFloat32, {1})),
        std::pair("next/done", LeafSpec::Binary({1}))}) {
    spec.Set(key, leaf).IgnoreError();
  }
  return spec;
}

// Row r has its number as its action.
absl::Status Fill(int64_t row_bytes, Storage* storage) {
  const int64_t step = std::max<int64_t>((int64_t{1} << 20) / row_bytes, 1);
  const double begin = Now();
  for (int64_t row = 0; row < storage->capacity();) {
    const int64_t n = std::min(step, storage->capacity() - row);
    RILL_ASSIGN_OR_RETURN(const TensorDict batch, SpecOf(row_bytes).Zero({n}));
    int64_t* const ids = batch.Find("action")->data<int64_t>();
    for (int64_t i = 0; i < n; ++i) ids[i] = row++;
    RILL_RETURN_IF_ERROR(storage->Extend(batch).status());
  }
  const double written = Now();
  RILL_RETURN_IF_ERROR(storage->Sync());
  const double mb = static_cast<double>(storage->capacity() * row_bytes) / 1e6;
  std::printf("  %-34s %9.1f MB/s, with Sync %.1f MB/s\n", "written",
              mb / (written - begin), mb / (Now() - begin));
  return absl::OkStatus();
}

absl::Status ReadAndCheck(const Storage& storage, Slots slots,
                          TensorDict* rows) {
  RILL_RETURN_IF_ERROR(storage.Read(slots, rows));
  const int64_t* const ids = rows->Find("action")->data<int64_t>();
  if (std::equal(slots.begin(), slots.end(), ids)) return absl::OkStatus();
  return absl::DataLossError("a row that was read is not the one written");
}

// Copies rows out of mappings, one fault after the other.
void CopyByHand(const std::vector<RowFile>& files, Slots slots,
                std::vector<std::byte>* out) {
  for (const Slot slot : slots) {
    for (const RowFile& file : files) {
      std::memcpy(out->data(), file.mapped + slot * file.stride, file.stride);
    }
  }
}

absl::Status Compare(const Storage& storage,
                     const std::vector<RowFile>& files) {
  int64_t row_bytes = 0;
  for (const RowFile& file : files) row_bytes += file.stride;
  std::vector<std::byte> out(row_bytes);
  const auto by_hand = [&](Slots slots) {
    CopyByHand(files, slots, &out);
    return absl::OkStatus();
  };
  const auto forget = [&] {
    for (const RowFile& file : files) {
      posix_fadvise(file.fd, 0, 0, POSIX_FADV_DONTNEED);
    }
  };
  RILL_ASSIGN_OR_RETURN(const auto one, DirectReads::Create(files, 1));
  RILL_ASSIGN_OR_RETURN(const auto deep, DirectReads::Create(files, kBatch));
  RILL_RETURN_IF_ERROR(
      Measure("disk, one row after the other", 1, storage, [&](Slots slots) {
        return one->Read(slots);
      }).status());
  RILL_ASSIGN_OR_RETURN(
      const Speed disk,
      Measure("disk, 256 rows at once", kBatch, storage,
              [&](Slots slots) { return deep->Read(slots); }));
  for (const auto& [name, advice] :
       {std::pair("mapping, no hints", MADV_NORMAL),
        std::pair("mapping, told that it is random", MADV_RANDOM)}) {
    for (const RowFile& file : files) {
      madvise(file.mapped, file.bytes, advice);
    }
    forget();
    // One row at a time: a batch without hints takes seconds.
    RILL_RETURN_IF_ERROR(Measure(name, 1, storage, by_hand).status());
  }
  forget();
  TensorDict rows;
  RILL_ASSIGN_OR_RETURN(
      const Speed read,
      Measure("Storage::Read, 256 rows", kBatch, storage, [&](Slots slots) {
        return ReadAndCheck(storage, slots, &rows);
      }));
  std::printf("  Storage::Read / disk at once: rows %.2f, bytes %.2f\n",
              read.rows / disk.rows, read.disk_bytes / disk.disk_bytes);
  return absl::OkStatus();
}

absl::Status RunLayout(const std::string& directory, StorageLayout layout,
                       int64_t limit, int64_t row_bytes) {
  const bool is_rows = layout == StorageLayout::kRows;
  RILL_ASSIGN_OR_RETURN(
      const auto storage,
      MemmapStorage::Create(
          {.directory = absl::StrCat(directory, is_rows ? "/rows" : "/columns"),
           .capacity = 3 * limit / row_bytes,
           .layout = layout,
           .spec = SpecOf(row_bytes)}));
  std::printf("%s: %lld rows of %lld bytes, %.0f MB in a limit of %.0f MB\n",
              is_rows ? "rows (a record a row)" : "columns (a file a leaf)",
              static_cast<long long>(storage->capacity()),
              static_cast<long long>(row_bytes),
              static_cast<double>(storage->capacity() * row_bytes) / 1e6,
              static_cast<double>(limit) / 1e6);
  RILL_RETURN_IF_ERROR(Fill(row_bytes, storage.get()));
  const std::vector<const char*> names =
      is_rows
          ? std::vector<const char*>{"/rows/rows.bin"}
          : std::vector<const char*>{
                "/columns/observation.memmap",
                "/columns/next/observation.memmap", "/columns/action.memmap",
                "/columns/next/reward.memmap", "/columns/next/done.memmap"};
  std::vector<RowFile> files;
  for (const char* const name : names) {
    auto file = OpenRows(directory + name, storage->capacity());
    if (!file.ok()) return file.status();
    files.push_back(*file);
  }
  return Compare(*storage, files);
}

absl::Status Main(int argc, char** argv) {
  int64_t limit = 0;
  int64_t row_bytes = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[2], &limit) ||
      !absl::SimpleAtoi(argv[3], &row_bytes) || row_bytes < 32 ||
      limit < row_bytes * kBatch) {
    return absl::InvalidArgumentError(
        "usage: larger_than_memory DIRECTORY LIMIT_BYTES ROW_BYTES, rows of 32 "
        "bytes at least, a limit of 256 rows at least");
  }
  for (const StorageLayout layout :
       {StorageLayout::kRows, StorageLayout::kColumns}) {
    RILL_RETURN_IF_ERROR(RunLayout(argv[1], layout, limit, row_bytes));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  const absl::Status status = rill::Main(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "larger_than_memory: %s\n", status.ToString().c_str());
  return 1;
}
