// SPDX-License-Identifier: Apache-2.0
// DenseStorage beside hand-written loops over the same layout, in one process.
//
// Rows have 7 leaves: observation and next/observation, an action, a reward and
// three flags; the label says how many bytes that is.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/device/buffer.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr int64_t kBatch = 256;

struct RowKind {
  const char* name;
  std::vector<std::pair<const char*, LeafSpec>> leaves;
  int64_t capacity;
};

const RowKind& Kind(int64_t number) {
  static const std::vector<RowKind>* const kinds = [] {
    const LeafSpec flag = LeafSpec::Binary({1});
    const LeafSpec reward = LeafSpec::Unbounded(DType::kFloat32, {1});
    const LeafSpec action = LeafSpec::Unbounded(DType::kInt64, {});
    const auto rows = [&](DType dtype, int64_t size) {
      const LeafSpec seen = LeafSpec::Unbounded(dtype, {size});
      return std::vector<std::pair<const char*, LeafSpec>>{
          {"observation", seen},      {"action", action},
          {"next/observation", seen}, {"next/reward", reward},
          {"next/done", flag},        {"next/terminated", flag},
          {"next/truncated", flag}};
    };
    const std::vector<std::pair<const char*, LeafSpec>> narrow = {
        {"observation", LeafSpec::Unbounded(DType::kFloat32, {2})},
        {"action", LeafSpec::Unbounded(DType::kInt32, {})},
        {"next/reward", reward}};
    return new std::vector<RowKind>{
        {"47B", rows(DType::kFloat32, 4), int64_t{1} << 20},
        {"143B", rows(DType::kFloat32, 16), int64_t{1} << 20},
        {"527B", rows(DType::kFloat32, 64), int64_t{1} << 18},
        {"1.5KB", rows(DType::kFloat32, 188), int64_t{1} << 17},
        {"3KB", rows(DType::kFloat32, 376), int64_t{1} << 16},
        {"28KB", rows(DType::kUInt8, 14112), int64_t{1} << 13},
        {"16B", narrow, int64_t{1} << 20},
    };
  }();
  return (*kinds)[number];
}

TensorDictSpec SpecOf(const RowKind& kind) {
  TensorDictSpec spec;
  for (const auto& [key, leaf] : kind.leaves) {
    spec.Set(key, leaf).IgnoreError();
  }
  return spec;
}

std::unique_ptr<Storage> Filled(const RowKind& kind, StorageLayout layout,
                                int64_t capacity, bool dedup_next = false) {
  auto storage = DenseStorage::Create({.capacity = capacity,
                                       .layout = layout,
                                       .spec = SpecOf(kind),
                                       .dedup_next = dedup_next});
  if (!storage.ok()) return nullptr;
  auto batch = SpecOf(kind).Zero({1024});
  while (batch.ok() && (*storage)->size() < capacity) {
    if (!(*storage)->Extend(*batch).ok()) return nullptr;
  }
  return *std::move(storage);
}

// The same in files of a folder that is removed at the end.
class MemmapFilled {
 public:
  MemmapFilled(const RowKind& kind, StorageLayout layout, int64_t capacity) {
    std::string folder = "/var/tmp/rill_benchmark.XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) return;
    folder_ = folder;
    auto storage = MemmapStorage::Create({.directory = folder,
                                          .capacity = capacity,
                                          .layout = layout,
                                          .spec = SpecOf(kind)});
    if (storage.ok()) storage_ = *std::move(storage);
    auto batch = SpecOf(kind).Zero({1024});
    while (storage_ && storage_->size() < capacity) {
      if (!batch.ok() || !storage_->Extend(*batch).ok()) storage_ = nullptr;
    }
  }
  ~MemmapFilled() {
    storage_ = nullptr;
    if (!folder_.empty()) RemoveAll(folder_).IgnoreError();
  }
  Storage* get() const { return storage_.get(); }

 private:
  std::string folder_;
  std::unique_ptr<Storage> storage_;
};

// So many draws that a run does not see a row twice soon.
std::vector<std::vector<Slot>> Draws(int64_t capacity, int64_t n = kBatch) {
  const Rng rng(1);
  std::vector<std::vector<Slot>> draws(512);
  for (size_t i = 0; i < draws.size(); ++i) {
    for (int64_t k = 0; k < n; ++k) {
      draws[i].push_back(rng.UniformInt(i, static_cast<uint32_t>(k), capacity));
    }
  }
  return draws;
}

Storage* StorageOf(const std::unique_ptr<Storage>& made) { return made.get(); }
Storage* StorageOf(const MemmapFilled* made) { return made->get(); }

// Storage::Read of kBatch random rows into a reused batch.
void ReadRows(const Storage& storage, benchmark::State& state) {
  const auto draws = Draws(storage.capacity());
  TensorDict rows;
  size_t i = 0;
  for (auto _ : state) {
    if (!storage.Read(draws[i++ % draws.size()], &rows).ok()) {
      state.SkipWithError("Read");
    }
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

// Storage::Extend of so many rows to a full ring.
void ExtendBy(int64_t steps, const RowKind& kind, Storage* storage,
              benchmark::State& state) {
  const auto batch = SpecOf(kind).Zero({steps});
  if (!batch.ok()) return state.SkipWithError("batch");
  for (auto _ : state) {
    if (!storage->Extend(*batch).ok()) state.SkipWithError("Extend");
  }
  state.SetItemsProcessed(state.iterations() * steps);
}

template <typename Make>
void Gather(benchmark::State& state, Make make) {
  const RowKind& kind = Kind(state.range(0));
  const auto layout = static_cast<StorageLayout>(state.range(1));
  const int64_t capacity = state.range(2) == 0 ? kind.capacity : state.range(2);
  const auto made = make(kind, layout, capacity);
  const Storage* const storage = StorageOf(made);
  if (storage == nullptr) return state.SkipWithError("storage");
  ReadRows(*storage, state);
  state.SetLabel(absl::StrCat(kind.name, " ", StorageLayoutName(layout)));
}
void BM_Gather(benchmark::State& state) {
  Gather(state,
         [](const RowKind& kind, StorageLayout layout, int64_t capacity) {
           return Filled(kind, layout, capacity);
         });
}
// Rows in files that memory holds.
void BM_MemmapGather(benchmark::State& state) {
  std::optional<MemmapFilled> files;
  Gather(state, [&](const RowKind& kind, StorageLayout layout, int64_t rows) {
    return &files.emplace(kind, layout, rows);
  });
}

// The same with dedup_next or without. All rows share.
void BM_GatherDedup(benchmark::State& state) {
  const RowKind& kind = Kind(state.range(0));
  const auto storage =
      Filled(kind, StorageLayout::kRows, kind.capacity, state.range(1) != 0);
  ReadRows(*storage, state);
  state.SetLabel(kind.name);
  state.counters["MiB"] =
      static_cast<double>(storage->MemoryUsage().memory >> 20);
}

// Rows that follow one another.
void BM_ExtendDedup(benchmark::State& state) {
  const RowKind& kind = Kind(state.range(0));
  const auto storage =
      Filled(kind, StorageLayout::kRows, kind.capacity, state.range(1) != 0);
  ExtendBy(state.range(2), kind, storage.get(), state);
  state.SetLabel(kind.name);
}

// Hand-written copies for a known record: kStride bytes with leaves of kWidths
// bytes one behind the other. Each leaf is copied to and from an array. Narrow
// records: all rows prefetched, then one pass a leaf; wide ones row by row.
template <int64_t kStride, int64_t... kWidths>
struct Hand {
  static constexpr int64_t kBytes = kStride;
  static constexpr int64_t kWidth[] = {kWidths...};
  static constexpr size_t kLeaves = sizeof...(kWidths);
  static constexpr int64_t Offset(size_t leaf) {
    int64_t offset = 0;
    for (size_t i = 0; i < leaf; ++i) offset += kWidth[i];
    return offset;
  }
  using Arrays = std::array<std::vector<std::byte>, kLeaves>;
  static Arrays MakeArrays(int64_t n) {
    Arrays arrays;
    for (size_t i = 0; i < kLeaves; ++i) arrays[i].resize(n * kWidth[i]);
    return arrays;
  }

  template <bool kIsWrite, size_t kLeaf>
  static void CopyOne(std::byte* record, std::byte* place) {
    std::byte* const leaf = record + Offset(kLeaf);
    std::memcpy(kIsWrite ? leaf : place, kIsWrite ? place : leaf,
                kWidth[kLeaf]);
  }
  template <bool kIsWrite, size_t kLeaf>
  static void CopyLeaf(std::byte* table, const std::vector<Slot>& slots,
                       std::byte* array) {
    for (const Slot slot : slots) {
      CopyOne<kIsWrite, kLeaf>(table + slot * kStride, array);
      array += kWidth[kLeaf];
    }
  }
  template <bool kIsWrite, size_t... kLeaf>
  static void Copy(std::byte* table, const std::vector<Slot>& slots,
                   Arrays& arrays, std::index_sequence<kLeaf...>) {
    if constexpr (kStride <= 256) {
      for (const Slot slot : slots) {
        __builtin_prefetch(table + slot * kStride, kIsWrite);
      }
      (CopyLeaf<kIsWrite, kLeaf>(table, slots, arrays[kLeaf].data()), ...);
    } else {
      int64_t i = 0;
      for (const Slot slot : slots) {
        (CopyOne<kIsWrite, kLeaf>(table + slot * kStride,
                                  arrays[kLeaf].data() + i * kWidth[kLeaf]),
         ...);
        ++i;
      }
    }
  }
};
using Hand16 = Hand<16, 8, 4, 4>;
using Hand64 = Hand<64, 8, 16, 16, 4, 1, 1, 1>;
using Hand1500 = Hand<1536, 8, 752, 752, 4, 1, 1, 1>;
using Hand28K = Hand<28288, 8, 4, 14112, 14112, 1, 1, 1>;

template <typename H, bool kIsWrite>
void BM_ByHand(benchmark::State& state) {
  const int64_t capacity = state.range(0);
  auto buffer = Buffer::Allocate(capacity * H::kBytes);
  if (!buffer.ok()) return state.SkipWithError("memory");
  std::memset((*buffer)->data(), 0, capacity * H::kBytes);
  const auto draws = Draws(capacity);
  auto arrays = H::MakeArrays(kBatch);
  size_t i = 0;
  for (auto _ : state) {
    H::template Copy<kIsWrite>((*buffer)->data(), draws[i++ % draws.size()],
                               arrays, std::make_index_sequence<H::kLeaves>());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

// Storage::WriteAt of kBatch random rows.
void BM_Scatter(benchmark::State& state) {
  const RowKind& kind = Kind(state.range(0));
  const int64_t capacity = kind.capacity;
  const auto storage = Filled(kind, StorageLayout::kRows, capacity);
  const auto batch = SpecOf(kind).Zero({kBatch});
  if (!batch.ok()) return state.SkipWithError("batch");
  const auto draws = Draws(capacity);
  size_t i = 0;
  for (auto _ : state) {
    if (!storage->WriteAt(draws[i++ % draws.size()], *batch).ok()) {
      state.SkipWithError("WriteAt");
    }
  }
  state.SetLabel(kind.name);
  state.SetItemsProcessed(state.iterations() * kBatch);
}

// Readers of one storage side by side, each with a batch of its own; with
// range(2) beside a thread that extends by 1,000 rows without a pause.
void BM_Shared(benchmark::State& state) {
  static std::unique_ptr<Storage> storage;
  static std::atomic<bool> is_over;
  static std::thread writer;
  static int64_t batches;
  const RowKind& kind = Kind(state.range(0));
  const int64_t capacity = state.range(1) == 0 ? kind.capacity : state.range(1);
  const bool has_writer = state.range(2) != 0;
  if (state.thread_index() == 0) {
    storage = Filled(kind, StorageLayout::kAuto, capacity);
    is_over = false;
    batches = 0;
    if (has_writer) {
      writer = std::thread([&kind] {
        const auto batch = SpecOf(kind).Zero({1000});
        for (; batch.ok() && !is_over; ++batches) {
          storage->Extend(*batch).IgnoreError();
        }
      });
    }
  }
  const auto draws = Draws(capacity);
  TensorDict rows;
  size_t i = 97 * static_cast<size_t>(state.thread_index());
  for (auto _ : state) {
    if (!storage->Read(draws[i++ % draws.size()], &rows).ok()) {
      state.SkipWithError("Read");
    }
  }
  if (state.thread_index() == 0) {
    is_over = true;
    if (writer.joinable()) writer.join();
    storage.reset();
    if (has_writer) {
      state.counters["rows_written"] = benchmark::Counter(
          static_cast<double>(1000 * batches), benchmark::Counter::kIsRate);
    }
  }
  state.SetLabel(kind.name);
  state.SetItemsProcessed(state.iterations() * kBatch);
}

void BM_Extend(benchmark::State& state) {
  const RowKind& kind = Kind(state.range(0));
  const auto layout = static_cast<StorageLayout>(state.range(1));
  const int64_t capacity = state.range(3) == 0 ? kind.capacity : state.range(3);
  const auto storage = Filled(kind, layout, capacity);
  ExtendBy(state.range(2), kind, storage.get(), state);
  state.SetLabel(absl::StrCat(kind.name, " ", StorageLayoutName(layout)));
}

// 1,000 rows at a time beside a thread that reads kBatch random rows all the
// time (1) or none (0).
void BM_ExtendBeside(benchmark::State& state) {
  const RowKind& kind = Kind(state.range(0));
  const auto storage = Filled(kind, StorageLayout::kAuto, kind.capacity);
  const auto draws = Draws(kind.capacity);
  std::atomic<bool> is_over{false};
  std::thread reader([&] {
    TensorDict rows;
    for (size_t i = 0; state.range(1) != 0 && !is_over; ++i) {
      storage->Read(draws[i % draws.size()], &rows).IgnoreError();
    }
  });
  ExtendBy(1000, kind, storage.get(), state);
  is_over = true;
  reader.join();
  state.SetLabel(kind.name);
}

// The same record by record at a cursor.
void BM_ExtendByHand(benchmark::State& state) {
  const int64_t steps = state.range(0);
  const int64_t capacity = state.range(1);
  auto buffer = Buffer::Allocate(capacity * 64);
  if (!buffer.ok()) return state.SkipWithError("memory");
  std::memset((*buffer)->data(), 0, capacity * 64);
  auto arrays = Hand64::MakeArrays(steps);
  std::vector<Slot> slots(steps);
  int64_t cursor = 0;
  for (auto _ : state) {
    for (Slot& slot : slots) {
      slot = cursor;
      cursor = cursor + 1 == capacity ? 0 : cursor + 1;
    }
    Hand64::Copy</*kIsWrite=*/true>(
        (*buffer)->data(), slots, arrays,
        std::make_index_sequence<Hand64::kLeaves>());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * steps);
}

constexpr int64_t kRows = static_cast<int64_t>(StorageLayout::kRows);
constexpr int64_t kColumns = static_cast<int64_t>(StorageLayout::kColumns);

// Small ones for the smoke run: --benchmark_filter=.*/small.*
void SmallGather(benchmark::internal::Benchmark* b) {
  b->Args({0, kRows, 1024})->Args({0, kColumns, 1024});
}
void AllGathers(benchmark::internal::Benchmark* b) {
  for (int64_t kind = 0; kind < 7; ++kind) {
    b->Args({kind, kRows, 0})->Args({kind, kColumns, 0});
  }
}
void AllExtends(benchmark::internal::Benchmark* b) {
  for (const int64_t steps : {1, 1000}) {
    for (const int64_t kind : {0, 3, 5}) {
      b->Args({kind, kRows, steps, 0})->Args({kind, kColumns, steps, 0});
    }
  }
}

BENCHMARK(BM_Gather)->Name("small/Gather")->Apply(SmallGather);
BENCHMARK(BM_MemmapGather)->Name("small/MemmapGather")->Apply(SmallGather);
BENCHMARK_TEMPLATE(BM_ByHand, Hand64, false)
    ->Name("small/GatherByHand")
    ->Arg(1024);
BENCHMARK(BM_Shared)->Name("small/Shared")->Args({0, 1024, 1})->Threads(2);
BENCHMARK(BM_Extend)->Name("small/Extend")->Args({0, kRows, 8, 1024});
BENCHMARK(BM_ExtendByHand)->Name("small/ExtendByHand")->Args({8, 1024});
BENCHMARK(BM_Gather)->Name("Gather")->Apply(AllGathers);
// Kind, with dedup_next, (rows).
BENCHMARK(BM_GatherDedup)->Name("GatherDedup")->ArgsProduct({{5, 3}, {0, 1}});
BENCHMARK(BM_ExtendDedup)
    ->Name("ExtendDedup")
    ->ArgsProduct({{5}, {0, 1}, {1000, 1}});
BENCHMARK(BM_MemmapGather)->Name("MemmapGather")->Apply(AllGathers);
BENCHMARK(BM_Scatter)->Name("Scatter")->Arg(6)->Arg(0)->Arg(3)->Arg(5);
template <typename H>
void RegisterByHand(const std::string& kind, int64_t rows) {
  benchmark::RegisterBenchmark(absl::StrCat("GatherByHand/", kind).c_str(),
                               BM_ByHand<H, false>)
      ->Arg(rows);
  benchmark::RegisterBenchmark(absl::StrCat("ScatterByHand/", kind).c_str(),
                               BM_ByHand<H, true>)
      ->Arg(rows);
}
[[maybe_unused]] const bool kRegistered =
    (RegisterByHand<Hand16>("16B", 1 << 20),
     RegisterByHand<Hand64>("47B", 1 << 20),
     RegisterByHand<Hand1500>("1.5KB", 1 << 17),
     RegisterByHand<Hand28K>("28KB", 1 << 13), true);
// Kind, capacity (0: the kind's), with a writer.
BENCHMARK(BM_Shared)
    ->Name("Shared")
    ->Args({0, 0, 0})
    ->Args({0, 0, 1})
    ->Args({0, 4096, 1})
    ->Args({3, 0, 0})
    ->Args({3, 0, 1})
    ->ThreadRange(1, 2)
    ->UseRealTime();
BENCHMARK(BM_Extend)->Name("Extend")->Apply(AllExtends);
BENCHMARK(BM_ExtendBeside)
    ->Name("ExtendBeside")
    ->ArgsProduct({{0, 4, 5}, {0, 1}})
    ->UseRealTime();
BENCHMARK(BM_ExtendByHand)
    ->Name("ExtendByHand")
    ->Args({1, 1 << 20})
    ->Args({1000, 1 << 20});

}  // namespace
}  // namespace rill
