// SPDX-License-Identifier: Apache-2.0
// 64 worker processes on the CPU: they never touch CUDA, linked in or not, and
// take little memory. The program runs beside a driver that writes down when it
// is loaded or called, by workers too (device/testing/cuda_record.h).
#include <sys/types.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/config.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/device/testing/cuda_record.h"
#include "rill/envs/cart_pole.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/process_traces.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

absl::StatusOr<WorkerParts> MakeWorker(const WorkerContext& /*context*/) {
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = 4}));
  return parts;
}

// Abseil's deadlock detector takes so much in a process that locks a mutex.
// Optimised builds have none.
#ifdef NDEBUG
[[maybe_unused]] constexpr int64_t kDetectorKilobytes = 0;
#else
[[maybe_unused]] constexpr int64_t kDetectorKilobytes = 1200;
#endif

// A number of kilobytes in a file of /proc.
int64_t Kilobytes(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  int64_t value = 0;
  while (file >> word) {
    if (word == name + ":") file >> value;
  }
  return value;
}

// The proportional set size: pages that several share count once in all.
int64_t KilobytesOf(const std::vector<pid_t>& processes) {
  int64_t sum = 0;
  for (const pid_t pid : processes) {
    sum += Kilobytes(absl::StrCat("/proc/", pid, "/smaps_rollup"), "Pss");
  }
  return sum;
}

TEST(ManyWorkersTest, SixtyFourWorkersTakeLittleMemoryAndNoCuda) {
  MultiCollectorOptions options;
  options.producer = 0;
  options.workers = 64;
  options.worker_name = "cart_pole";
  options.frames_per_batch = 64 * 4 * 16;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(collector->Next().status());
  const std::vector<pid_t> workers = ChildProcesses();
  EXPECT_THAT(workers, SizeIs(64));
  const int64_t kilobytes = KilobytesOf(workers);
  EXPECT_GT(kilobytes, 0);
#if !defined(ABSL_HAVE_ADDRESS_SANITIZER) && \
    !defined(ABSL_HAVE_THREAD_SANITIZER)
  EXPECT_LT(kilobytes, 60 * 1024 + 64 * kDetectorKilobytes);
#endif
  RecordProperty("kilobytes", absl::StrCat(kilobytes));
  EXPECT_THAT(CudaCalls(), IsEmpty());
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  const std::optional<int> worker =
      rill::WorkerMain(argc, argv, {{"cart_pole", rill::MakeWorker}});
  if (worker.has_value()) return *worker;
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
