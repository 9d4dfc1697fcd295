// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/recent_selector.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/transition_unit.h"

namespace rill {
namespace {

// The substream of the second picks. Part of the reproducibility contract.
constexpr uint16_t kSubstream = 3;

class RecentSelector final : public Selector {
 public:
  RecentSelector()
      : Selector({.name = "Recent",
                  .picks_by_unit = true,
                  .needs_order = true,
                  .needs_anchor_events = false}) {}

  void Select(const Request& request, const Anchors& anchors,
              std::vector<Draw>* draws) override {
    const Rng first(request.seed, RngStream::kSampler);
    const Rng second(request.seed, RngStream::kSampler, kSubstream);
    for (int64_t i = 0; i < request.count; ++i) {
      const auto draw = static_cast<uint32_t>(request.first_draw + i);
      // Two streams of one draw number, so that selectors that share a batch
      // still share no random number.
      const Slot a = anchors.Pick(first.Bits(request.batch_number, draw));
      const Slot b = anchors.Pick(second.Bits(request.batch_number, draw));
      draws->push_back({.slot = AgeOf(b) < AgeOf(a) ? b : a});
    }
  }

  ValuesRead values_read() const override { return ValuesRead::None(); }
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    lanes_ = lanes;
    ends_.assign(cursors.size(), 0);
    for (size_t lane = 0; lane < cursors.size(); ++lane) {
      ends_[lane] = cursors[lane].written % lanes.capacity;
    }
  }
  void OnWrite(const WriteEvent& event) override {
    if (!event.is_append) return;
    for (const SlotRange& range : event.written) {
      ends_[lanes_.LaneOf(range.first)] =
          (lanes_.PositionOf(range.first) + range.count) % lanes_.capacity;
    }
  }
  void OnClear() override { ends_.assign(ends_.size(), 0); }

 private:
  // Steps of its lane that came after it.
  int64_t AgeOf(Slot slot) const {
    const int64_t age =
        ends_[lanes_.LaneOf(slot)] - 1 - lanes_.PositionOf(slot);
    return age < 0 ? age + lanes_.capacity : age;
  }

  Lanes lanes_;
  std::vector<int64_t> ends_;  // Where each lane's next row goes.
};

}  // namespace

std::unique_ptr<Selector> MakeRecentSelector() {
  return std::make_unique<RecentSelector>();
}

std::unique_ptr<Sampler> MakeRecentSampler() {
  return *MakeSampler(MakeRecentSelector(), MakeTransitionUnit(),
                      "RecentSampler");
}

}  // namespace rill
