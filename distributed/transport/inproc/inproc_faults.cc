// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/inproc/inproc_faults.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

constexpr int64_t kMostCallsLate = 8;

// Draws of one request.
constexpr uint32_t kFaultDraw = 0;
constexpr uint32_t kLateDraw = 1;
constexpr uint32_t kDelayDraw = 2;
constexpr uint32_t kDraws = 3;

}  // namespace

absl::Status CheckInprocFaults(const InprocFaults& faults) {
  double sum = 0;
  const std::pair<const char*, double> all[] = {
      {"lose_request", faults.lose_request},
      {"lose_reply", faults.lose_reply},
      {"stall", faults.stall},
      {"repeat", faults.repeat},
      {"late", faults.late},
  };
  for (const auto& [name, probability] : all) {
    if (!(probability >= 0 && probability <= 1)) {
      return InvalidArgument("InprocFaults: ", name, ": got ", probability,
                             ", want a probability in [0, 1]");
    }
    sum += probability;
  }
  if (sum > 1) {
    return InvalidArgument("InprocFaults: the probabilities add up to ", sum,
                           ", want at most 1");
  }
  if (faults.max_delay < absl::ZeroDuration()) {
    return InvalidArgument("InprocFaults: max_delay: got ",
                           absl::FormatDuration(faults.max_delay),
                           ", want >= 0");
  }
  return absl::OkStatus();
}

InprocFate DrawInprocFate(const InprocFaults& faults, uint64_t stream,
                          uint32_t request) {
  const Rng rng(faults.seed);
  const auto draw = [&](uint32_t number) {
    return rng.UniformDouble(stream, request * kDraws + number);
  };
  InprocFate fate{.delay = draw(kDelayDraw) * faults.max_delay};
  const std::pair<InprocFault, double> all[] = {
      {InprocFault::kLoseRequest, faults.lose_request},
      {InprocFault::kLoseReply, faults.lose_reply},
      {InprocFault::kStall, faults.stall},
      {InprocFault::kRepeat, faults.repeat},
      {InprocFault::kLate, faults.late},
  };
  double left = draw(kFaultDraw);
  for (const auto& [fault, probability] : all) {
    if (left < probability) {
      fate.fault = fault;
      break;
    }
    left -= probability;
  }
  if (fate.fault == InprocFault::kLate) {
    fate.calls_late = 1 + rng.UniformInt(stream, request * kDraws + kLateDraw,
                                         kMostCallsLate);
  }
  return fate;
}

}  // namespace rill
