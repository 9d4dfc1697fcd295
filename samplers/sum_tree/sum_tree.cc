// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/sum_tree/sum_tree.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <numeric>

#include "rill/samplers/sum_tree/line_kernels.h"
#include "rill/samplers/sum_tree/zeroed_array.h"

namespace rill::samplers_internal {
namespace {

// Lines of one chunk and level stay in the first cache.
constexpr size_t kChunk = 256;
constexpr double kMaxDouble = std::numeric_limits<double>::max();

int64_t LinesFor(int64_t values) {
  return std::max<int64_t>((values + kLine - 1) / kLine, 1);
}

// A list of lines without neighbours that are equal.
class Lines {
 public:
  size_t size() const { return size_; }
  const int64_t* data() const { return lines_.data(); }

  // Takes `count` lines, line(i) each. Lines before i may be overwritten by
  // then.
  template <typename LineAt>
  void Assign(size_t count, LineAt line) {
    // The compiler takes members for what the array may overlap.
    size_t size = 0;
    int64_t last = -1;
    for (size_t i = 0; i < count; ++i) {
      const int64_t next = line(i);
      size += next != last ? 1 : 0;
      last = next;
      lines_[size - 1] = next;
    }
    size_ = size;
  }
  // To the lines of the level above.
  template <typename Visit>
  void Rise(Visit visit) {
    Assign(size_, [&](size_t i) {
      const int64_t line = lines_[i] / kLine;
      visit(line);
      return line;
    });
  }

 private:
  std::array<int64_t, kChunk> lines_;
  size_t size_ = 0;
};

}  // namespace

SumTree::SumTree(int64_t size) : size_(size) {
  std::vector<int64_t> lines = {LinesFor(size)};
  while (lines.back() > 1) lines.push_back(LinesFor(lines.back()));
  lines.push_back(1);  // Its first value is the total.
  const int64_t all_lines =
      std::accumulate(lines.begin(), lines.end(), int64_t{0});
  memory_ = ZeroedArray<double>(all_lines * kLine);
  double* values = memory_.data();
  // The upper levels, which every batch visits, lie together at the front.
  levels_.resize(lines.size());
  for (size_t i = lines.size(); i-- > 0;) {
    levels_[i] = {.values = values, .lines = lines[i]};
    values += lines[i] * kLine;
  }
}

void SumTree::Set(absl::Span<const int64_t> slots,
                  absl::Span<const double> values) {
  for (size_t at = 0; at < slots.size(); at += kChunk) {
    SetChunk(slots.subspan(at, kChunk), values.subspan(at, kChunk));
  }
}

void SumTree::SetChunk(absl::Span<const int64_t> slots,
                       absl::Span<const double> values) {
  double* const leaves = levels_[0].values;
  // Spaced out: a processor drops requests for lines above those that it can
  // wait for at once.
  constexpr size_t kAhead = 24;
  for (const int64_t slot : slots.subspan(0, kAhead)) Prefetch(slot);
  Lines lines;
  lines.Assign(slots.size(), [&](size_t i) {
    if (i + kAhead < slots.size()) Prefetch(slots[i + kAhead]);
    leaves[slots[i]] = values[i];
    return slots[i] / kLine;
  });
  // A line that comes twice is summed twice, to the same value: rarer than
  // looking for it is dear. Levels of fewer lines than that are summed whole.
  size_t level = 0;
  // Parents are summed anew from their children, never changed by a difference:
  // rounding does not depend on the history.
  for (; levels_[level].lines > static_cast<int64_t>(lines.size()); ++level) {
    SumLines(levels_[level].values,
             absl::MakeConstSpan(lines.data(), lines.size()),
             levels_[level + 1].values);
    const double* const above = levels_[level + 2].values;
    lines.Rise(
        [above](int64_t line) { __builtin_prefetch(above + line, /*rw=*/1); });
  }
  for (; level + 1 < levels_.size(); ++level) {
    SumAllLines(levels_[level].values, levels_[level].lines,
                levels_[level + 1].values);
  }
}

void SumTree::Find(absl::Span<const double> targets,
                   absl::Span<int64_t> slots) const {
  std::array<double, kChunk> rests;
  alignas(kLine * sizeof(double)) std::array<double, kChunk * kLine> starts;
  for (size_t at = 0; at < targets.size(); at += kChunk) {
    const size_t count = std::min(kChunk, targets.size() - at);
    for (size_t i = 0; i < count; ++i) {
      const double target = targets[at + i];
      // NaN becomes 0. Infinity would reach the starts that mean "never".
      rests[i] = target > 0 ? std::min(target, kMaxDouble) : 0;
    }
    const auto chunk = absl::MakeSpan(rests.data(), count);
    const absl::Span<int64_t> nodes = slots.subspan(at, count);
    std::fill(nodes.begin(), nodes.end(), 0);
    for (size_t i = levels_.size() - 1; i-- > 0;) {
      const Level& level = levels_[i];
      const double* const below = i > 0 ? levels_[i - 1].values : nullptr;
      // Each line is visited more than once on average, so its sums are added
      // up once.
      if (level.lines <= static_cast<int64_t>(count)) {
        StartsOfLines(level.values, level.lines, starts.data());
        DescendByStarts(starts.data(), below, chunk, nodes);
      } else {
        Descend(level.values, below, chunk, nodes);
      }
    }
  }
}

}  // namespace rill::samplers_internal
