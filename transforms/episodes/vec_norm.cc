// SPDX-License-Identifier: Apache-2.0
// A call makes two passes over its rows: one adds moments around the mean so
// far and merges them into the statistics, the other normalises by the result.
// Both go over blocks of at most kColumns columns, whose numbers stay on the
// stack, and over all rows of a block.
//
// Narrow rows fill no vector. Then 2^bits rows are taken as one row of as many
// columns (a group), each with sums of its own, which are added up at the end.
// Groups do not depend on the processor's vectors, so the order of additions is
// the same everywhere.
#include "rill/transforms/episodes/vec_norm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/bound_rows.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/leaf_spec.h"
#include "rill/tensordict/spec.h"
#include "rill/transforms/episodes/vec_norm_kernels.h"
#include "rill/transforms/episodes/vec_norm_statistics.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/spare/spare_tensors.h"

namespace rill {
namespace {

using transforms_internal::VecNormStatistics;

// Columns that are worked on at once, on the stack. Rows of up to kNarrow
// elements are looked at in groups, so that vectors are full. A group of the
// widest of them has kNarrow << kGroupBits elements, which is kColumns.
constexpr int64_t kColumns = 512;
constexpr int64_t kNarrow = 64;
constexpr int kGroupBits = 3;

// Keeps 1 + 2 n, the size of a state, far from overflow.
constexpr int64_t kMaxElements = int64_t{1} << 40;  // Of a row.

// Rows of a few lanes with fewer elements together are packed, on the stack.
constexpr int64_t kPacked = 512;

// Calls `fn` with begin and size of each run of lanes that are masked. Runs and
// not lanes, since the kernels take many rows at once.
template <typename Fn>
void ForRuns(absl::Span<const uint8_t> mask, const Fn& fn) {
  const auto lanes = static_cast<int64_t>(mask.size());
  for (int64_t lane = 0; lane < lanes;) {
    if (mask[static_cast<size_t>(lane)] == 0) {
      ++lane;
      continue;
    }
    int64_t end = lane;
    while (end < lanes && mask[static_cast<size_t>(end)] != 0) ++end;
    fn(lane, end - lane);
    lane = end;
  }
}

// The rows of a call: how many, the first one, and a function that calls
// another with begin and size of each run of them. A template, so that the one
// run of a step is called directly.
template <typename ForRows>
struct Rows {
  int64_t count = 0;
  int64_t first = 0;
  ForRows for_runs;
};

// Some columns of rows of `width` elements.
struct Columns {
  int64_t width = 0;
  int64_t begin = 0;
  int64_t count = 0;
  int group_bits = 0;
  // Rows that make one of the kernels' rows.
  int64_t group() const { return int64_t{1} << group_bits; }

  // Copies numbers of the columns for the further rows of a group. So few that
  // a call of memcpy would take longer.
  void Repeat(double* numbers) const {
    for (int64_t i = count; i < group() * count; ++i) {
      numbers[i] = numbers[i - count];
    }
  }
  // And adds them up again.
  void Fold(double* numbers) const {
    for (int64_t row = group(); --row > 0;) {
      for (int64_t c = 0; c < count; ++c) {
        numbers[(row - 1) * count + c] += numbers[row * count + c];
      }
    }
  }
  // Calls `kernel` with the first element, rows, pitch and columns of parts
  // that make up `rows` rows from `row` on.
  template <typename Kernel>
  void Split(int64_t row, int64_t rows, const Kernel& kernel) const {
    // The rows that make whole groups, then the rest as rows of their own,
    // which use the first `count` sums only.
    const int64_t groups = rows >> group_bits;
    const int64_t first = row * width + begin;
    const int64_t rest = rows - (groups << group_bits);
    if (groups > 0) {
      kernel(first, groups, width << group_bits, count << group_bits);
    }
    if (rest > 0) kernel(first + (rows - rest) * width, rest, width, count);
  }
};

class VecNormTransform final : public StepTransform {
 public:
  explicit VecNormTransform(const VecNorm::Options& options)
      : options_(options), spare_(2 * options.in_keys.size() + 8) {
    for (size_t i = 0; i < options.in_keys.size(); ++i) {
      state_shapes_.push_back({1 + 2 * options.shapes[i].num_elements()});
      AddStepLeaf(i, "");
      if (!absl::StartsWith(options.in_keys[i], "next/")) {
        AddStepLeaf(i, "next/");
      }
    }
  }

  absl::string_view name() const override { return "VecNorm"; }
  OptionValues option_values() const override {
    OptionValues values;
    values.Texts("in_keys", options_.in_keys);
    values.Texts("out_keys", options_.out_keys);
    std::vector<std::string> shapes;
    for (const Shape& shape : options_.shapes) {
      shapes.push_back(shape.ToString());
    }
    values.Texts("shapes", shapes);
    values.Double("decay", options_.decay).Double("eps", options_.eps);
    return values.Bool("frozen", options_.frozen);
  }

  absl::StatusOr<TensorDict> InitialState(int64_t /*lanes*/) const override {
    TensorDict state;
    for (size_t i = 0; i < options_.in_keys.size(); ++i) {
      RILL_ASSIGN_OR_RETURN(Tensor zeros,
                            Tensor::Zeros(DType::kFloat64, state_shapes_[i]));
      RILL_RETURN_IF_ERROR(state.Set(options_.in_keys[i], std::move(zeros)));
    }
    return state;
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    constexpr absl::string_view kPlan = "VecNorm::PlanSteps";
    StepPlan plan = {.spec = step};
    // MapLeaves walks these leaves in the same order.
    for (const StepLeaf& leaf : step_leaves_) {
      RILL_ASSIGN_OR_RETURN(
          const LeafSpec before,
          transforms_internal::FindSpec(kPlan, leaf.in, step));
      const Shape& want = options_.shapes[leaf.key];
      const bool is_float =
          before.dtype == DType::kFloat32 || before.dtype == DType::kFloat64;
      if (!is_float || before.shape != want) {
        return absl::InvalidArgumentError(
            absl::StrCat(kPlan, ": \"", leaf.in, "\": got ", before.ToString(),
                         ", want float32 or float64", want.ToString(),
                         ", the shape that Options::shapes says"));
      }
      RILL_RETURN_IF_ERROR(plan.spec.Set(
          leaf.out, LeafSpec::Unbounded(before.dtype, before.shape)));
      plan.leaves.push_back(
          {.key = leaf.in,
           .dtype = before.dtype,
           .shape = before.shape,
           .use = leaf.is_in_place ? LeafUse::kUpdate : LeafUse::kRead});
      if (leaf.is_in_place) continue;
      plan.leaves.push_back({.key = leaf.out,
                             .dtype = before.dtype,
                             .shape = before.shape,
                             .use = LeafUse::kWrite});
    }
    return plan;
  }

  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* state) const override {
    int64_t count = 0;
    // Without a masked lane `first` is the end, and MapLeaves returns at once.
    for (const uint8_t is_reset : mask) count += is_reset != 0;
    return MapLeaves(/*is_next=*/false, count, mask, leaves, state);
  }

  absl::Status OnStep(Leaves leaves, TensorDict* state) const override {
    return MapLeaves(/*is_next=*/true, leaves[0].rows, {}, leaves, state);
  }

 private:
  struct StepLeaf {
    size_t key = 0;
    std::string in;
    std::string out;
    bool is_next = false;
    bool is_in_place = false;
  };

  // A leaf of the root stands for the one below next too; both share the
  // statistics of `key`.
  void AddStepLeaf(size_t key, absl::string_view prefix) {
    const std::string& in = options_.in_keys[key];
    const std::string& out =
        options_.out_keys.empty() ? in : options_.out_keys[key];
    step_leaves_.push_back(
        {.key = key,
         .in = absl::StrCat(prefix, in),
         .out = absl::StrCat(prefix, out),
         .is_next = !prefix.empty() || absl::StartsWith(in, "next/"),
         .is_in_place = in == out});
  }

  // `count` rows of the leaves: those that `mask` has, or all where it is
  // empty.
  absl::Status MapLeaves(bool is_next, int64_t count,
                         absl::Span<const uint8_t> mask, Leaves leaves,
                         TensorDict* state) const {
    if (count == 0) return absl::OkStatus();
    // Leaves of the other side have places too, so they are counted.
    size_t at = 0;
    for (const StepLeaf& leaf : step_leaves_) {
      const BoundLeaf& from = leaves[at++];
      const BoundLeaf& to = leaf.is_in_place ? from : leaves[at++];
      if (leaf.is_next != is_next) continue;
      const std::string& key = options_.in_keys[leaf.key];
      // The layout is checked at each call: a state may come from a file.
      const Tensor* const before = state->Find(key);
      if (before == nullptr || before->dtype() != DType::kFloat64 ||
          !before->is_contiguous() ||
          before->shape() != state_shapes_[leaf.key]) {
        return absl::FailedPreconditionError(absl::StrCat(
            "VecNorm: state: \"", key, "\": want contiguous float64",
            state_shapes_[leaf.key].ToString(), "; start with InitialState"));
      }
      Tensor after;  // A frozen one makes none.
      if (!options_.frozen) {
        RILL_ASSIGN_OR_RETURN(after,
                              spare_.Take(DType::kFloat64, before->shape()));
      }
      // Read from the old tensor, written into another: on an error the caller
      // keeps the old state.
      const VecNormStatistics old(*before);
      const VecNormStatistics made(options_.frozen ? *before : after);
      const bool is_finite =
          from.dtype == DType::kFloat32
              ? MapMasked<float>(from, to, count, mask, old, made)
              : MapMasked<double>(from, to, count, mask, old, made);
      if (!is_finite) {
        return absl::InvalidArgumentError(
            absl::StrCat("VecNorm: \"", leaf.in,
                         "\": got a value that is not finite, want finite ones "
                         "to learn from; the statistics stay"));
      }
      if (options_.frozen) continue;
      RILL_RETURN_IF_ERROR(state->Set(key, std::move(after)));
    }
    return absl::OkStatus();
  }

  // False where moments are not finite.
  template <typename T>
  bool MapMasked(const BoundLeaf& from, const BoundLeaf& to, int64_t count,
                 absl::Span<const uint8_t> mask,
                 const VecNormStatistics& before,
                 const VecNormStatistics& after) const {
    const T* const in = reinterpret_cast<const T*>(from.data);
    T* const out = reinterpret_cast<T*>(to.data);
    const auto all = [count](const auto& fn) { fn(0, count); };
    const Rows<decltype(all)> rows = {count, 0, all};
    if (mask.empty()) return MapRows(in, out, rows, before, after);
    if (count * std::max<int64_t>(1, before.n) <= kPacked) {
      return MapPacked(in, out, rows, mask, before, after);
    }
    const auto first = std::find_if(mask.begin(), mask.end(),
                                    [](uint8_t is_reset) { return is_reset; });
    const auto runs = [mask](const auto& fn) { ForRuns(mask, fn); };
    return MapRows(in, out,
                   Rows<decltype(runs)>{count, first - mask.begin(), runs},
                   before, after);
  }

  // Few rows here and there: one call of each kernel for all of them, and no
  // branch that depends on the mask.
  template <typename T, typename R>
  bool MapPacked(const T* in, T* out, const R& rows,
                 absl::Span<const uint8_t> mask,
                 const VecNormStatistics& before,
                 const VecNormStatistics& after) const {
    size_t lanes[kPacked + 1];
    size_t count = 0;
    for (size_t lane = 0; lane < mask.size(); ++lane) {
      lanes[count] = lane;
      count += mask[lane] != 0 ? 1 : 0;
    }
    const auto width = static_cast<size_t>(before.n);
    T packed[kPacked];
    T* end = packed;
    for (size_t i = 0; i < count; ++i) {
      const T* const row = in + lanes[i] * width;
      for (size_t c = 0; c < width; ++c) *end++ = row[c];
    }
    const bool is_finite = MapRows(packed, packed, rows, before, after);
    const T* row = packed;
    for (size_t i = 0; i < count; ++i) {
      T* const to = out + lanes[i] * width;
      for (size_t c = 0; c < width; ++c) to[c] = *row++;
    }
    return is_finite;
  }

  template <typename T, typename R>
  bool MapRows(const T* in, T* out, const R& rows,
               const VecNormStatistics& before,
               const VecNormStatistics& after) const {
    double shift[kColumns];
    double factor[kColumns];
    Columns columns = {.width = before.n};
    // Wider rows fill the vectors by themselves.
    if (columns.width > 0 && columns.width <= kNarrow) {
      // So many that they have a multiple of 2^kGroupBits elements.
      columns.group_bits = std::max(
          0,
          kGroupBits - std::countr_zero(static_cast<uint64_t>(columns.width)));
    }
    // The weight is computed once for all columns, before them: each column's
    // merge needs it.
    const double weight = options_.frozen ? before.weight()
                                          : options_.decay * before.weight() +
                                                static_cast<double>(rows.count);
    const double per_weight = weight > 0 ? 1 / weight : 0;
    bool is_finite = true;
    for (; columns.begin < columns.width; columns.begin += columns.count) {
      columns.count = std::min(kColumns, columns.width - columns.begin);
      // A frozen transform that has seen nothing leaves the values as they are.
      if (options_.frozen) {
        const bool is_known = before.weight() > 0;
        for (int64_t c = 0; c < columns.count; ++c) {
          const int64_t i = columns.begin + c;
          shift[c] = is_known ? before.mean(i) : 0;
          factor[c] = is_known ? Factor(per_weight * before.squares(i)) : 1;
        }
      } else {
        is_finite &=
            Learn(in, columns, rows, before, per_weight, after, shift, factor);
      }
      // The merged mean is the new shift; both numbers are spread over the
      // group.
      columns.Repeat(shift);
      columns.Repeat(factor);
      rows.for_runs([&](int64_t begin, int64_t count) {
        columns.Split(
            begin, count,
            [&](int64_t first, int64_t parts, int64_t pitch, int64_t width) {
              transforms_internal::ShiftThenScale(
                  in + first, parts, pitch, width, shift, factor, out + first);
            });
      });
    }
    if (!options_.frozen) after.weight() = weight;
    return is_finite;
  }

  double Factor(double variance) const {
    return 1 / std::max(options_.eps, std::sqrt(variance));
  }

  // Means and squares of the columns, without the weight; with the means also
  // in `shift`. False where one is not finite.
  template <typename T, typename R>
  bool Learn(const T* in, const Columns& columns, const R& rows,
             const VecNormStatistics& before, double per_weight,
             const VecNormStatistics& after, double* shift,
             double* factor) const {
    double sum[kColumns];
    double squares[kColumns];
    std::fill_n(sum, columns.count << columns.group_bits, 0);
    std::fill_n(squares, columns.count << columns.group_bits, 0);
    // Sums of squares around a number near the mean lose no digits to
    // cancellation. Before the first call that number is the first row.
    const T* const row = in + rows.first * columns.width + columns.begin;
    for (int64_t c = 0; c < columns.count; ++c) {
      shift[c] = before.weight() > 0 ? before.mean(columns.begin + c)
                                     : static_cast<double>(row[c]);
    }
    columns.Repeat(shift);
    rows.for_runs([&](int64_t begin, int64_t count) {
      columns.Split(
          begin, count,
          [&](int64_t first, int64_t parts, int64_t pitch, int64_t width) {
            transforms_internal::AddMoments(in + first, parts, pitch, width,
                                            shift, sum, squares);
          });
    });
    columns.Fold(sum);
    columns.Fold(squares);
    // `rows` is the unweighted count of this call; decay applies to what was
    // before.
    return transforms_internal::MergeMoments(
        {.rows = static_cast<double>(rows.count),
         .old = options_.decay * before.weight(),
         .decay = options_.decay,
         .per_weight = per_weight,
         .eps = options_.eps},
        columns.count, sum, squares, &before.squares(columns.begin), shift,
        &after.mean(columns.begin), &after.squares(columns.begin), factor);
  }

  const VecNorm::Options options_;
  std::vector<StepLeaf> step_leaves_;
  std::vector<Shape> state_shapes_;  // Of each of in_keys.
  mutable transforms_internal::SpareTensors spare_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> VecNorm::Create(
    const Options& options) {
  constexpr absl::string_view kCreate = "VecNorm::Create";
  const size_t keys = options.in_keys.size();
  if (keys == 0 || options.shapes.size() != keys ||
      (!options.out_keys.empty() && options.out_keys.size() != keys)) {
    return absl::InvalidArgumentError(absl::StrCat(
        kCreate, ": in_keys, shapes, out_keys: got ", keys, ", ",
        options.shapes.size(), " and ", options.out_keys.size(),
        ", want a shape for each key, at least one, and no or as many "
        "out_keys"));
  }
  // Both lists obey the same rule: a key of the root may not be mapped to one
  // below next.
  for (const auto* list : {&options.in_keys, &options.out_keys}) {
    std::set<std::string> seen;
    for (size_t i = 0; i < list->size(); ++i) {
      const std::string& key = (*list)[i];
      RILL_RETURN_IF_ERROR(CheckKey(key)) << kCreate << ": keys";
      if (!seen.insert(key).second ||
          absl::StartsWith(key, "next/") !=
              absl::StartsWith(options.in_keys[i], "next/")) {
        return absl::InvalidArgumentError(absl::StrCat(
            kCreate, ": keys: got \"", key, "\" for \"", options.in_keys[i],
            "\", want each once, and both below next/ or both at the root"));
      }
    }
  }
  // A key of the root stands for the one below next, which so may not be listed
  // itself.
  for (const auto* list : {&options.in_keys, &options.out_keys}) {
    const std::set<std::string> keys_of(list->begin(), list->end());
    for (const std::string& key : *list) {
      const std::string next = absl::StrCat("next/", key);
      if (keys_of.count(next) == 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(kCreate, ": keys: got \"", key, "\" and \"", next,
                       "\", want the first alone: it stands for both"));
    }
  }
  for (const Shape& shape : options.shapes) {
    if (shape.num_elements() <= kMaxElements) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(kCreate, ": shapes: got ", shape.ToString(),
                     ", want at most 2^40 elements"));
  }
  if (!(options.decay > 0 && options.decay <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat(kCreate, ": decay: got ", options.decay, ", want (0, 1]"));
  }
  if (!(options.eps > 0) || !std::isfinite(options.eps)) {
    return absl::InvalidArgumentError(
        absl::StrCat(kCreate, ": eps: got ", options.eps, ", want > 0"));
  }
  return std::make_unique<VecNormTransform>(options);
}

}  // namespace rill
