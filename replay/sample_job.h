// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_SAMPLE_JOB_H_
#define RILL_REPLAY_SAMPLE_JOB_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/device/stream.h"
#include "rill/replay/sample_reader.h"
#include "rill/slots/sample_plan.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::replay_internal {

// A batch on its way: drawn, then gathered and transformed by one thread, then
// handed out. Its memory is used again.
// Thread-safety: thread-compatible; whoever holds it at its stage works on it.
struct SampleJob {
  enum class Stage { kDrawn, kRunning, kDone };

  explicit SampleJob(const SampleReader::Options& options) : reader(options) {}
  ~SampleJob() { AwaitCopy().IgnoreError(); }

  // Waits until nothing reads the memory of the last batch.
  absl::Status AwaitCopy() {
    const absl::Status status =
        copied == nullptr ? absl::OkStatus() : copied->Synchronize();
    copied = nullptr;
    in_flight.clear();
    return status;
  }

  // Device memory of its batch; 0 while somebody works on it.
  int64_t DeviceBytes() const {
    int64_t bytes = 0;
    if (stage == Stage::kRunning) return bytes;
    batch.ForEachLeaf([&bytes](absl::string_view, const Tensor& leaf) {
      if (!leaf.device().is_cpu()) bytes += leaf.size_bytes();
    });
    return bytes;
  }

  uint64_t number = 0;  // Of the batch.
  int64_t items = 0;
  uint64_t epoch = 0;           // Sampler::LastEpoch.
  Stage stage = Stage::kDrawn;  // Guarded by the buffer's queue.
  SamplePlan plan;
  SampleReader reader;
  TensorDict batch;
  // Where batches go to a device: the memory that they are gathered in, when
  // the copy is done, and what it uses.
  TensorDict staging;
  std::shared_ptr<const Event> copied;
  std::vector<Tensor> in_flight;
  absl::Status status;
  bool is_cleared = false;  // Rows of the plan were gone at the gather.
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_SAMPLE_JOB_H_
