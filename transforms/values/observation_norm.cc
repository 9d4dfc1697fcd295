// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/values/observation_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/rows/row_steps.h"
#include "rill/transforms/values/sip_hash.h"

namespace rill {
namespace {

using Kind = RowStep::Kind;

constexpr absl::string_view kCreate = "ObservationNorm::Create";
constexpr absl::string_view kInitStats = "ObservationNorm::InitStats";

template <typename... Parts>
absl::Status BadStats(const Parts&... what) {
  return InvalidArgument(kInitStats, ": ", what...);
}

// Numbers of many elements are compared by their hash: a checkpoint holds a
// text for each option.
void AddNumbers(absl::string_view name, const std::vector<double>& numbers,
                OptionValues* values) {
  if (numbers.size() == 1) {
    values->Double(name, numbers[0]);
    return;
  }
  const auto bytes =
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(numbers.data()),
                          numbers.size() * sizeof(double));
  values->Int(absl::StrCat(name, ".size"), static_cast<int64_t>(numbers.size()))
      .Unsigned(absl::StrCat(name, ".hash"),
                transforms_internal::SipHash(0, 0, bytes));
}

// Welford's method: mean and sum of squared deviations of what was added. Sums
// of squares would cancel where the mean is far from 0.
struct Moments {
  int64_t count = 0;
  double mean = 0;
  double squares = 0;

  void Add(double value) {
    ++count;
    const double delta = value - mean;
    mean += delta / static_cast<double>(count);
    squares += delta * (value - mean);
  }
};

// The moments of the elements of rows, some of which share theirs.
class RowMoments {
 public:
  static absl::StatusOr<RowMoments> Create(const Shape& row,
                                           const std::vector<int>& reduce_dim) {
    // `kept` is the shape of the moments: 1 in dimensions whose elements share.
    Shape kept = row;
    for (const int dim : reduce_dim) {
      if (dim >= 0 || dim < -row.rank()) {
        return BadStats("reduce_dim: got ", dim,
                        ", want dimensions < 0 of rows ", row.ToString());
      }
      kept = kept.WithSize(row.rank() + dim, 1);
    }
    RowMoments result(row);
    result.moments_.resize(static_cast<size_t>(kept.num_elements()));
    // For each element of a row the place of its moments, computed once: its
    // index without the shared dimensions.
    for (int64_t i = 0; i < row.num_elements(); ++i) {
      int64_t rest = i;
      int64_t at = 0;
      int64_t run = 1;
      for (int d = row.rank() - 1; d >= 0; --d) {
        // A dimension that is kept has the same size in both; size 1 adds 0
        // either way.
        if (kept[d] == row[d]) at += rest % row[d] * run;
        run *= kept[d];
        rest /= row[d];
      }
      result.index_.push_back(static_cast<size_t>(at));
    }
    return result;
  }

  const Shape& row() const { return row_; }
  const Moments& Of(size_t element) const { return moments_[index_[element]]; }

  template <typename T>
  void Add(const T* values, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) {
      for (const size_t at : index_) {
        moments_[at].Add(static_cast<double>(*values++));
      }
    }
  }

 private:
  explicit RowMoments(const Shape& row) : row_(row) {}

  Shape row_;
  std::vector<size_t> index_;  // Of each element of a row, in moments_.
  std::vector<Moments> moments_;
};

// Adds the rows of a batch; the first batch decides the shape of a row.
absl::Status AddBatch(const TensorDict& batch,
                      const ObservationNorm::StatsOptions& options,
                      std::optional<RowMoments>* moments) {
  RILL_ASSIGN_OR_RETURN(const Tensor leaf, transforms_internal::ReadLeaf(
                                               kInitStats, options.key, batch));
  const Shape row = leaf.shape().Suffix(batch.batch_shape().rank());
  const int64_t rows = batch.batch_shape().num_elements();
  if (!moments->has_value()) {
    RILL_ASSIGN_OR_RETURN(*moments,
                          RowMoments::Create(row, options.reduce_dim));
  }
  const bool is_double = leaf.dtype() == DType::kFloat64;
  if ((!is_double && leaf.dtype() != DType::kFloat32) ||
      row != (*moments)->row()) {
    return BadStats("\"", options.key, "\": got ", DTypeName(leaf.dtype()),
                    row.ToString(), ", want float32 or float64 rows ",
                    (*moments)->row().ToString());
  }
  if (is_double) {
    (*moments)->Add(leaf.data<double>(), rows);
  } else {
    (*moments)->Add(leaf.data<float>(), rows);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowwiseTransform>> ObservationNorm::Create(
    const Options& options) {
  if (options.loc.empty() || options.scale.empty()) {
    return InvalidArgument(
        kCreate, ": loc and scale: got ", options.loc.size(), " and ",
        options.scale.size(),
        " numbers, want some of each; InitStats computes them");
  }
  const bool divides = options.standard_normal;
  RowStep step = {
      .kind = divides ? Kind::kShiftThenDivide : Kind::kScaleThenShift,
      .scale = options.scale,
      .loc = options.loc};
  auto map = MakeRowStep(step);
  RILL_RETURN_IF_ERROR(map.status()) << "in " << kCreate;
  // The other formula with the same numbers undoes the first.
  step.kind = divides ? Kind::kScaleThenShift : Kind::kShiftThenDivide;
  RILL_ASSIGN_OR_RETURN(auto inverse, MakeRowStep(step));
  OptionValues values;
  AddNumbers("loc", options.loc, &values);
  AddNumbers("scale", options.scale, &values);
  values.Bool("standard_normal", divides);
  return RowwiseTransform::Make("ObservationNorm",
                                {.map = *std::move(map),
                                 .in_keys = options.in_keys,
                                 .out_keys = options.out_keys,
                                 .inverse = std::move(inverse),
                                 .in_keys_inv = options.in_keys_inv},
                                values);
}

absl::StatusOr<ObservationNorm::Stats> ObservationNorm::InitStats(
    absl::FunctionRef<absl::StatusOr<TensorDict>()> next_batch,
    const StatsOptions& options) {
  RILL_RETURN_IF_ERROR(CheckKey(options.key)) << kInitStats << ": key";
  if (options.num_iter < 1) {
    return BadStats("num_iter: got ", options.num_iter, ", want >= 1");
  }
  if (!(options.eps > 0) || !std::isfinite(options.eps)) {
    return BadStats("eps: got ", options.eps, ", want a finite number > 0");
  }
  std::optional<RowMoments> moments;
  for (int64_t i = 0; i < options.num_iter; ++i) {
    absl::StatusOr<TensorDict> batch = next_batch();
    RILL_RETURN_IF_ERROR(batch.status())
        << "batch " << i << " of " << kInitStats;
    RILL_RETURN_IF_ERROR(AddBatch(*batch, options, &moments));
  }
  Stats stats;
  const auto elements = static_cast<size_t>(moments->row().num_elements());
  for (size_t i = 0; i < elements; ++i) {
    const Moments& element = moments->Of(i);
    // Divided by n - 1, which is 0 for a single value.
    const double deviation =
        element.count < 2 ? std::numeric_limits<double>::quiet_NaN()
                          : std::sqrt(element.squares /
                                      static_cast<double>(element.count - 1));
    if (!std::isfinite(deviation)) {
      return BadStats("\"", options.key, "\": element ", i,
                      " of a row: got mean ", element.mean, " and deviation ",
                      deviation, " of ", element.count,
                      " values, want finite ones of at least two");
    }
    // A deviation near 0 would make a scale without bound.
    const double divisor = std::max(deviation, options.eps);
    // loc and scale are those of the formula that is asked for: x * scale + loc
    // has -mean / deviation and 1 / deviation.
    stats.loc.push_back(options.standard_normal ? element.mean
                                                : -element.mean / divisor);
    stats.scale.push_back(options.standard_normal ? divisor : 1 / divisor);
  }
  return stats;
}

}  // namespace rill
