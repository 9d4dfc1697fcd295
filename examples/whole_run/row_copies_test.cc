// SPDX-License-Identifier: Apache-2.0
// How often the bytes of a row are copied between a worker and a replay buffer.
//
// The linker gives this file the place of ScatterRowsOnHost, by which a storage
// takes rows, and of memcpy and memmove (--wrap in the BUILD file).
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/device/row_copy.h"
#include "rill/envs/cart_pole.h"
#include "rill/flow/sink.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/process_traces.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

// The memory that workers step into. Filled before counting begins.
struct Range {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};
std::array<Range, 64> rings;
std::atomic<size_t> num_rings = 0;  // 0: nothing is counted.

std::atomic<int64_t> stored_bytes = 0;  // From rings, by storages.
std::atomic<int64_t> other_bytes = 0;   // From rings, by all others.
thread_local bool is_in_row_copy = false;

bool IsInRing(const void* data) {
  const auto at = reinterpret_cast<uintptr_t>(data);
  for (size_t i = 0; i < num_rings; ++i) {
    if (at >= rings[i].begin && at < rings[i].end) return true;
  }
  return false;
}

void NoteCopy(const void* from, size_t bytes) {
  if (!is_in_row_copy && IsInRing(from)) {
    other_bytes += static_cast<int64_t>(bytes);
  }
}

void FindRings() {
  size_t count = 0;
  for (const std::string& line : MappingsOf("memfd")) {
    const size_t dash = line.find('-');
    const size_t space = line.find(' ');
    ASSERT_LT(count, rings.size());
    rings[count++] = {
        std::stoull(line.substr(0, dash), nullptr, 16),
        std::stoull(line.substr(dash + 1, space - dash - 1), nullptr, 16)};
  }
  num_rings = count;
}

}  // namespace

void RealScatterRowsOnHost(
    absl::Span<const RowColumn> columns,
    absl::Span<const int64_t>
        rows) __asm__("__real_" RILL_SCATTER_ROWS_ON_HOST);
void WrapScatterRowsOnHost(
    absl::Span<const RowColumn> columns,
    absl::Span<const int64_t>
        rows) __asm__("__wrap_" RILL_SCATTER_ROWS_ON_HOST);
void WrapScatterRowsOnHost(absl::Span<const RowColumn> columns,
                           absl::Span<const int64_t> rows) {
  for (const RowColumn& column : columns) {
    if (!IsInRing(column.batch)) continue;
    stored_bytes += column.width * static_cast<int64_t>(rows.size());
  }
  is_in_row_copy = true;
  RealScatterRowsOnHost(columns, rows);
  is_in_row_copy = false;
}

extern "C" {
void* __real_memcpy(void* to, const void* from, size_t bytes);
void* __real_memmove(void* to, const void* from, size_t bytes);
void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  NoteCopy(from, bytes);
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, size_t bytes) {
  NoteCopy(from, bytes);
  return __real_memmove(to, from, bytes);
}
}

namespace {

// MultiSyncCollectorTest and SyncCollectorTest have that a worker steps into
// the ring.
TEST(RowCopiesTest, ARowOfAWorkerIsCopiedOnceFromTheRingIntoTheStorage) {
  constexpr int64_t kBatches = 5;
  constexpr int64_t kWorkers = 2;
  MultiCollectorOptions options;
  options.producer = 0;
  options.workers = kWorkers;
  options.frames_per_batch = 4096;
  options.worker = [](const WorkerContext&) -> absl::StatusOr<WorkerParts> {
    WorkerParts parts;
    RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = 16}));
    return parts;
  };
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto storage,
      DenseStorage::Create({.capacity = 1 << 16, .lanes = kWorkers * 16}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto buffer,
      ReplayBuffer::Create(
          {.storage = std::move(storage), .sampler = MakeUniformSampler()}));
  RILL_ASSERT_OK(collector->CollectInto(*buffer));
  FindRings();
  ASSERT_GT(num_rings, 0u);

  int64_t bytes = 0;
  FunctionSink sink([&](const TensorDict& batch, const WriteInfo& info) {
    bytes += batch.size_bytes();
    return buffer->Write(batch, info);
  });
  stored_bytes = 0;
  other_bytes = 0;
  for (int64_t i = 0; i < kBatches; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(sink));
  }
  EXPECT_GT(bytes, kBatches * 4096 * 40);
  EXPECT_EQ(stored_bytes, bytes);
  // The 64 bytes that begin a record in the ring.
  EXPECT_LE(other_bytes, kBatches * kWorkers * 64);
}

}  // namespace
}  // namespace rill
