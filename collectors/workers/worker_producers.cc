// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/worker_producers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/flow/trajectory_id.h"

namespace rill::workers_internal {
namespace {

// Older states have none.
constexpr absl::string_view kKey = "producer";
// So many are set aside at most: there is room for several collectors.
constexpr int64_t kMost = 1 << 16;

int64_t Wanted(const MultiCollectorOptions& options) {
  // Options are checked: their product is a number of a producer.
  const int64_t all = options.workers * (options.max_restarts + 1);
  return options.producer.has_value()
             ? all
             : std::max(options.workers, std::min(kMost, all));
}

}  // namespace

absl::StatusOr<WorkerProducers> WorkerProducers::Create(
    const MultiCollectorOptions& options) {
  RILL_ASSIGN_OR_RETURN(
      ProducerNumbers numbers,
      ProducerNumbers::OfOrLowest(options.producer, Wanted(options)));
  return WorkerProducers(std::move(numbers), options.workers, NewSource());
}

absl::StatusOr<WorkerProducers> WorkerProducers::Read(
    const StateReader& state, absl::Span<const int64_t> restarts,
    const MultiCollectorOptions& options) {
  int64_t first = options.producer.value_or(0);
  if (!options.producer.has_value() && state.dict().Contains(kKey)) {
    RILL_ASSIGN_OR_RETURN(first, state.Get<int64_t>(kKey));
  }
  const int64_t workers = options.workers;
  if (first < 0 || first > kMaxTrajectoryProducer + 1 - workers) {
    return state.DoesNotFit(absl::StrCat("\"", kKey, "\": got ", first,
                                         ", want it in [0, 2^23 - workers]"));
  }
  int64_t count = Wanted(options);
  for (size_t i = 0; i < restarts.size(); ++i) {
    const int64_t begin = first + static_cast<int64_t>(i);
    const int64_t most = (kMaxTrajectoryProducer - begin) / workers;
    if (restarts[i] < 0 || restarts[i] > most) {
      return state.DoesNotFit(absl::StrCat("worker ", i, ": got ", restarts[i],
                                           " restarts, want [0, ", most, "]"));
    }
    count = std::max(count, workers * (restarts[i] + 1));
  }
  return WorkerProducers(ProducerNumbers::Of(first, count), workers,
                         NewSource());
}

void WorkerProducers::Save(StateWriter* state) const {
  state->Set(kKey, numbers_.first());
}

WorkerProducers WorkerProducers::Clone() const {
  return WorkerProducers(
      ProducerNumbers::Of(numbers_.first(), numbers_.count()), workers_,
      source_);
}

absl::Status WorkerProducers::Check(int64_t worker, int64_t restarts) const {
  if (worker + workers_ * restarts < numbers_.count()) return absl::OkStatus();
  return ResourceExhausted("worker ", worker, ": producer: got none, and the ",
                           numbers_.count(),
                           " numbers that were set aside are used up; give "
                           "one, from which on all are free");
}

}  // namespace rill::workers_internal
