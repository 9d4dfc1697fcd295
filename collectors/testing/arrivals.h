// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_TESTING_ARRIVALS_H_
#define RILL_COLLECTORS_TESTING_ARRIVALS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "rill/flow/sink.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Batches of a collector with producers 0 to workers - 1, and of producers that
// replace them.
struct Arrivals {
  explicit Arrivals(int64_t num_workers) : workers(num_workers) {}

  const int64_t workers;
  FunctionSink sink{[this](const TensorDict& batch, const WriteInfo& info) {
                      const int64_t worker = info.producer % workers;
                      if (worker == refused) {
                        return absl::UnavailableError("full");
                      }
                      batches[worker].push_back(*batch.Clone());
                      numbers[info.producer].push_back(info.sequence);
                      infos.push_back(info);
                      return absl::OkStatus();
                    },
                    [this](int64_t producer, LaneRange lanes) {
                      cuts.emplace_back(producer, lanes);
                      return absl::OkStatus();
                    }};
  std::optional<int64_t> refused;  // The worker whose batches are.
  std::map<int64_t, std::vector<TensorDict>> batches;  // By worker.
  std::map<int64_t, std::vector<int64_t>> numbers;     // By producer.
  std::vector<WriteInfo> infos;
  std::vector<std::pair<int64_t, LaneRange>> cuts;  // Of producers.
};

}  // namespace rill

#endif  // RILL_COLLECTORS_TESTING_ARRIVALS_H_
