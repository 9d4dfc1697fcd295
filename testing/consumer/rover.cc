// SPDX-License-Identifier: Apache-2.0

// A ring of one's own, and Rill's sampler to choose from it: the sampler sees
// slot numbers only, so it does not mind whose storage they belong to.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/slot.h"
#include "storage/ring.h"

namespace {

// Adds a pose and tells the sampler which slot was written.
void Add(rover::Ring& ring, rover::Pose pose, rill::WriteObserver& observer) {
  const int64_t slot = ring.written() % rover::Ring::kCapacity;
  const std::vector<rill::SlotRange> written = {{.first = slot, .count = 1}};
  rill::WriteEvent event;
  event.written = written;
  if (ring.written() >= rover::Ring::kCapacity) event.retired = written;
  observer.OnRetire(event);
  ring.Add(pose);
  observer.OnWrite(event);
}

}  // namespace

int main() {
  rover::Ring ring;
  std::unique_ptr<rill::Sampler> sampler = rill::MakeUniformSampler();
  const std::vector<rill::Cursor> cursors(1);
  sampler->observer()->OnAttach({.count = 1, .capacity = rover::Ring::kCapacity},
                                cursors);
  for (int step = 0; step < 20; ++step) {
    Add(ring, {.x = 0.5f * step, .y = -0.5f * step}, *sampler->observer());
  }
  rill::SamplePlan plan;
  if (absl::Status status =
          sampler->Plan({.batch_size = 4, .seed = 1, .batch_number = 0}, &plan);
      !status.ok()) {
    std::fprintf(stderr, "rover: %s\n", status.ToString().c_str());
    return 1;
  }
  for (const rill::Draw& draw : plan.draws) {
    const rover::Pose& pose = ring.at(draw.slot);
    std::printf("slot %lld: x %g y %g\n", static_cast<long long>(draw.slot),
                pose.x, pose.y);
  }
  return 0;
}
