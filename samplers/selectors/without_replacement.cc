// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/without_replacement.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/selectors/keyed_permutation.h"
#include "rill/samplers/transition_unit.h"

namespace rill {
namespace {

using samplers_internal::StateReader;
using samplers_internal::StateWriter;

class WithoutReplacementSelector final : public Selector {
 public:
  explicit WithoutReplacementSelector(const WithoutReplacementOptions& options)
      : options_(options) {}

  absl::Status CheckSelect(const Request& request,
                           const Anchors& anchors) const override {
    if (!options_.drop_last || anchors.size() >= request.count) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "items of an epoch: got ", anchors.size(), ", want >= ", request.count,
        ", a batch, because drop_last is set; write more rows first"));
  }

  absl::Status Select(const Request& request, const Anchors& anchors,
                      std::vector<Draw>* draws) override {
    RILL_RETURN_IF_ERROR(CheckSelect(request, anchors));
    const size_t begin = draws->size();
    Take(request, anchors, draws);
    // Of the rest of this epoch; what was too little is passed over.
    const size_t taken = draws->size() - begin;
    const bool is_enough = options_.drop_last
                               ? taken == static_cast<size_t>(request.count)
                               : taken > 0;
    if (is_enough) return absl::OkStatus();
    draws->resize(begin);
    Take(request, anchors, draws);
    return absl::OkStatus();
  }

  void SaveState(StateWriter* writer) const override {
    writer->Int(static_cast<int64_t>(epoch_));
    writer->Int(place_);
    writer->Int(ends_.empty() ? 0 : ends_.back());
  }

  absl::Status LoadState(StateReader* reader) override {
    RILL_ASSIGN_OR_RETURN(const int64_t epoch, reader->Int());
    RILL_ASSIGN_OR_RETURN(const int64_t place, reader->Int());
    RILL_ASSIGN_OR_RETURN(const int64_t slots, reader->Int());
    const int64_t want = ends_.empty() ? 0 : ends_.back();
    if (slots != want) {
      return reader->DoesNotFit(
          absl::StrCat("slots of an epoch: got ", slots, ", want ", want));
    }
    if (place < 0 || place > slots) {
      return reader->Damaged(absl::StrCat("place in the epoch: got ", place,
                                          ", want [0, ", slots, "]"));
    }
    epoch_ = static_cast<uint64_t>(epoch);
    place_ = place;
    return absl::OkStatus();
  }

  bool hears_anchors() const override { return false; }
  absl::string_view name() const override { return "WithoutReplacement"; }

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    lanes_ = lanes;
    used_.assign(cursors.size(), 0);
    for (size_t lane = 0; lane < cursors.size(); ++lane) {
      used_[lane] = std::min(cursors[lane].written, lanes.capacity);
    }
    UpdateEnds();
    epoch_ = 0;
    place_ = 0;
  }
  void OnRetire(const WriteEvent& /*event*/) override {}
  void OnWrite(const WriteEvent& event) override {
    if (!event.is_append) return;
    bool grows = false;
    for (const SlotRange& range : event.written) {
      int64_t& used = used_[lanes_.LaneOf(range.first)];
      const int64_t end = lanes_.PositionOf(range.first) + range.count;
      grows = grows || end > used;
      used = std::max(used, end);
    }
    if (!grows) return;
    UpdateEnds();
    if (place_ > 0) Restart();
  }
  void OnClear() override {
    std::fill(used_.begin(), used_.end(), 0);
    UpdateEnds();
    if (place_ > 0) Restart();
  }
  void OnAnchorsAdded(absl::Span<const SlotRange> /*slots*/) override {}
  void OnAnchorsRemoved(absl::Span<const SlotRange> /*slots*/) override {}
  void OnAnchorsCleared() override {}

 private:
  void Restart() {
    ++epoch_;
    place_ = 0;
  }

  // Takes the next anchors of this epoch, and goes to the next one behind the
  // last slot.
  void Take(const Request& request, const Anchors& anchors,
            std::vector<Draw>* draws) {
    if (ends_.empty()) return;
    const int64_t slots = ends_.back();
    if (options_.shuffle) order_.Set(request.seed, epoch_, slots);
    int64_t wanted = request.count;
    for (; place_ < slots && wanted > 0; ++place_) {
      const Slot slot = SlotOf(options_.shuffle ? order_.At(place_) : place_);
      if (!anchors.Contains(slot)) continue;
      draws->push_back({.slot = slot});
      --wanted;
    }
    if (place_ == slots) Restart();
  }

  Slot SlotOf(int64_t number) const {
    const int64_t lane =
        std::upper_bound(ends_.begin(), ends_.end(), number) - ends_.begin();
    return lanes_.SlotOf(lane, number - (lane == 0 ? 0 : ends_[lane - 1]));
  }

  void UpdateEnds() {
    ends_.resize(used_.size());
    int64_t end = 0;
    for (size_t lane = 0; lane < used_.size(); ++lane) {
      ends_[lane] = end += used_[lane];
    }
  }

  const WithoutReplacementOptions options_;
  Lanes lanes_;
  // Positions of each lane that have held a row since the last clear, and their
  // sums over the lanes up to it: an epoch numbers those slots.
  std::vector<int64_t> used_, ends_;
  uint64_t epoch_ = 0;
  int64_t place_ = 0;
  samplers_internal::KeyedPermutation order_;
};

}  // namespace

std::unique_ptr<Selector> MakeWithoutReplacementSelector(
    const WithoutReplacementOptions& options) {
  return std::make_unique<WithoutReplacementSelector>(options);
}

std::unique_ptr<Sampler> MakeSamplerWithoutReplacement(
    const WithoutReplacementOptions& options) {
  return *MakeSampler(MakeWithoutReplacementSelector(options),
                      MakeTransitionUnit(), "SamplerWithoutReplacement");
}

}  // namespace rill
