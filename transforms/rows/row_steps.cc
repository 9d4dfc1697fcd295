// SPDX-License-Identifier: Apache-2.0
// One class a kind of step. MapSpec decides dtype, shape and domain of the
// result and refuses what MapRows cannot take, so MapRows checks nothing.
#include "rill/transforms/rows/row_steps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/cast_elements.h"
#include "rill/transforms/rows/device_rows.h"
#include "rill/transforms/rows/row_kernels.h"

namespace rill {
namespace {

using transforms_internal::CropRows;
using transforms_internal::Misfit;
using transforms_internal::RowNumbers;
using transforms_internal::WithElement;
using transforms_internal::WithShape;

// Ends of a crop stay below this, so that sums of place and size do not
// overflow.
constexpr int64_t kMaxSide = std::numeric_limits<int64_t>::max();

bool IsFloat(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

// Calls fn(T()) with the C++ type of a dtype that has an order and is no bool;
// false where it has none.
template <typename Fn>
bool WithNumber(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kUInt8:
      fn(uint8_t());
      return true;
    case DType::kInt8:
      fn(int8_t());
      return true;
    case DType::kInt16:
      fn(int16_t());
      return true;
    case DType::kInt32:
      fn(int32_t());
      return true;
    case DType::kInt64:
      fn(int64_t());
      return true;
    case DType::kFloat32:
      fn(float());
      return true;
    case DType::kFloat64:
      fn(double());
      return true;
    default:
      return false;
  }
}

bool IsNumber(DType dtype) {
  return WithNumber(dtype, [](auto) {});
}

// `leaf` with fn of each bound where it has bounds; else any values of its
// layout: a choice is no choice after arithmetic.
absl::StatusOr<LeafSpec> MapDomain(const LeafSpec& leaf,
                                   absl::FunctionRef<double(double)> fn) {
  if (leaf.domain == LeafSpec::Domain::kBounded) return leaf.MapBounds(fn);
  return LeafSpec::Unbounded(leaf.dtype, leaf.shape);
}

// out[i] = fn(in[i]); `to` may be `from`.
template <typename T, typename Fn>
void MapElements(const std::byte* from, std::byte* to, int64_t count, Fn fn) {
  const T* const in = reinterpret_cast<const T*>(from);
  T* const out = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) out[i] = fn(in[i]);
}

// A map that is one step; what differs between the kinds is below it.
class StepMap : public RowMap {
 public:
  explicit StepMap(RowStep step) : step_({std::move(step)}) {}
  absl::Span<const RowStep> steps() const override { return step_; }

 protected:
  const RowStep& step() const { return step_[0]; }

 private:
  const std::vector<RowStep> step_;
};

class CastMap final : public StepMap {
 public:
  using StepMap::StepMap;
  bool is_flat() const override { return true; }

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    // The same dtype keeps its domain whatever it is.
    const DType to = step().dtype;
    // float16, bfloat16 and bool are cast too, but are no numbers of
    // WithNumber.
    if (leaf.dtype == to) return leaf;
    const bool has_arithmetic = leaf.dtype == DType::kBool ||
                                IsFloatingPoint(leaf.dtype) ||
                                IsNumber(leaf.dtype);
    if (!has_arithmetic) {
      return Misfit(leaf, "a dtype with arithmetic");
    }
    // Bounds that float32 rounds are those of the values that it rounds, as
    // rounding is monotonic. Bounds of each element stay behind: they are
    // tensors of the old dtype.
    if (leaf.domain == LeafSpec::Domain::kBounded && leaf.lows() == nullptr &&
        IsFloatingPoint(to)) {
      return LeafSpec::Bounded(to, leaf.shape, leaf.low, leaf.high);
    }
    LeafSpec after = leaf;
    after.dtype = to;
    // Choices stay choices where the new dtype can hold their numbers.
    const bool is_choice = leaf.domain != LeafSpec::Domain::kBounded &&
                           leaf.domain != LeafSpec::Domain::kUnbounded;
    if (is_choice && after.CheckDomain().ok()) return after;
    return LeafSpec::Unbounded(to, leaf.shape);
  }

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    CastElements(dtype, step().dtype, from, to, count * shape.num_elements());
    return absl::OkStatus();
  }
};

// Multiplies and adds, or subtracts and divides. Rows of float32 run through
// the vector kernels with numbers that were rounded to float32. Rows of float64
// run through a scalar loop with the numbers as given.
class AffineMap final : public StepMap {
 public:
  explicit AffineMap(RowStep step) : StepMap(std::move(step)) {
    const size_t n =
        std::max(this->step().scale.size(), this->step().loc.size());
    // Makes both lists as long as the longer one, so that kernels have one
    // period.
    const auto spread = [n](const std::vector<double>& from,
                            std::vector<double>* wide,
                            std::vector<float>* rounded) {
      for (size_t i = 0; i < n; ++i) {
        wide->push_back(from.size() == 1 ? from[0] : from[i]);
        rounded->push_back(static_cast<float>(wide->back()));
      }
    };
    spread(this->step().scale, &scale_, &float_scale_);
    spread(this->step().loc, &loc_, &float_loc_);
  }
  bool is_flat() const override { return scale_.size() == 1; }
  bool is_in_place() const override { return true; }

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    if (!IsFloat(leaf.dtype)) return Misfit(leaf, "float32 or float64");
    const auto n = static_cast<int64_t>(scale_.size());
    if (n == 1) {
      // The bounds of float32 take the kernel's way, so that no value lies
      // outside them by a bit.
      return MapDomain(leaf, [&](double bound) {
        return leaf.dtype == DType::kFloat32
                   ? double{ApplyToFloat(static_cast<float>(bound))}
                   : Apply(bound, scale_[0], loc_[0]);
      });
    }
    // Numbers that differ from element to element make bounds that differ. They
    // are not computed.
    if (leaf.shape.num_elements() == n) {
      return LeafSpec::Unbounded(leaf.dtype, leaf.shape);
    }
    return Misfit(leaf, absl::StrCat("one element for each of ", n,
                                     " numbers of scale and loc"));
  }

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    const int64_t elements = count * shape.num_elements();
    const auto n = static_cast<int64_t>(scale_.size());
    if (dtype == DType::kFloat32) {
      const RowNumbers numbers = {float_scale_.data(), float_loc_.data(), n};
      (is_division() ? transforms_internal::ShiftThenDivide
                     : transforms_internal::ScaleThenShift)(
          reinterpret_cast<const float*>(from), numbers, elements,
          reinterpret_cast<float*>(to));
      return absl::OkStatus();
    }
    // Counts elements of a row; restarts with each row.
    size_t at = 0;
    MapElements<double>(from, to, elements, [&](double x) {
      const double y = Apply(x, scale_[at], loc_[at]);
      if (++at == scale_.size()) at = 0;
      return y;
    });
    return absl::OkStatus();
  }

 private:
  bool is_division() const {
    return step().kind == RowStep::Kind::kShiftThenDivide;
  }
  double Apply(double x, double scale, double loc) const {
    return is_division() ? (x - loc) / scale : x * scale + loc;
  }
  // As the kernels, with one number for all elements.
  float ApplyToFloat(float x) const {
    return is_division()
               ? static_cast<float>(Apply(x, float_scale_[0], float_loc_[0]))
               : std::fma(x, float_scale_[0], float_loc_[0]);
  }

  // As long as each other; the second of each rounded to float32.
  std::vector<double> scale_, loc_;
  std::vector<float> float_scale_, float_loc_;
};

// x below low becomes low, above high becomes high. Comparisons are false for
// NaN, which so stays.
class ClipMap final : public StepMap {
 public:
  using StepMap::StepMap;
  bool is_flat() const override { return true; }
  bool is_in_place() const override { return true; }

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    double low = step().low;
    double high = step().high;
    bool is_empty = false;
    const bool is_number = WithNumber(leaf.dtype, [&](auto zero) {
      using T = decltype(zero);
      is_empty = !Holds<T>();
      // The bounds of integers are whole numbers: 0.5 .. 2.5 clips to 1 .. 2.
      if constexpr (std::is_integral_v<T>) {
        const auto [least, most] = Bounds<T>();
        low = static_cast<double>(least);
        high = static_cast<double>(most);
      }
    });
    if (!is_number) return Misfit(leaf, "a number");
    if (is_empty) {
      return Misfit(leaf, absl::StrCat("a dtype with a number in [", step().low,
                                       ", ", step().high, "]"));
    }
    // Any other domain becomes these bounds, in which all values now lie.
    if (leaf.domain != LeafSpec::Domain::kBounded) {
      return LeafSpec::Bounded(leaf.dtype, leaf.shape, low, high);
    }
    return leaf.MapBounds(
        [&](double bound) { return std::min(std::max(bound, low), high); });
  }

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    WithNumber(dtype, [&](auto zero) {
      using T = decltype(zero);
      const auto [low, high] = Bounds<T>();
      MapElements<T>(from, to, count * shape.num_elements(),
                     [low = low, high = high](T x) {
                       const T raised = x < low ? low : x;
                       return raised > high ? high : raised;
                     });
    });
    return absl::OkStatus();
  }

 private:
  // Whether a number of T lies inside the bounds. For integers [0.2, 0.8] has
  // none.
  template <typename T>
  bool Holds() const {
    if constexpr (std::is_floating_point_v<T>) {
      return true;
    } else {
      const double first = std::ceil(step().low);
      const double last = std::floor(step().high);
      // The end of T is a power of 2, which a double holds exactly. Its largest
      // number may be none: 2^63 - 1 rounds to 2^63.
      const double end = std::ldexp(1, std::numeric_limits<T>::digits);
      return first <= last && first < end &&
             last >= static_cast<double>(std::numeric_limits<T>::min());
    }
  }

  // The bounds in T: of integers the whole numbers inside them.
  template <typename T>
  std::pair<T, T> Bounds() const {
    if constexpr (std::is_floating_point_v<T>) {
      return {static_cast<T>(step().low), static_cast<T>(step().high)};
    } else {
      // Clamped before the cast: a double outside of T is undefined behaviour
      // there. The largest int64 rounds to 2^63, so >= has to catch it.
      const auto into = [](double value) -> T {
        constexpr auto kMin = std::numeric_limits<T>::min();
        constexpr auto kMax = std::numeric_limits<T>::max();
        if (value <= static_cast<double>(kMin)) return kMin;
        if (value >= static_cast<double>(kMax)) return kMax;
        return static_cast<T>(value);
      };
      return {into(std::ceil(step().low)), into(std::floor(step().high))};
    }
  }
};

class SignMap final : public StepMap {
 public:
  using StepMap::StepMap;
  bool is_flat() const override { return true; }
  bool is_in_place() const override { return true; }

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    if (!IsNumber(leaf.dtype)) return Misfit(leaf, "a number");
    const double low = leaf.dtype == DType::kUInt8 ? 0 : -1;
    return LeafSpec::Bounded(leaf.dtype, leaf.shape, low, 1);
  }

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    WithNumber(dtype, [&](auto zero) {
      using T = decltype(zero);
      // Zero and NaN come back as they are, so -0.0 keeps its sign.
      MapElements<T>(from, to, count * shape.num_elements(), [](T x) {
        if constexpr (std::is_unsigned_v<T>) {
          return static_cast<T>(x > 0);
        } else {
          return x > 0 ? T{1} : x < 0 ? T{-1} : x;
        }
      });
    });
    return absl::OkStatus();
  }
};

class IsPositiveMap final : public StepMap {
 public:
  using StepMap::StepMap;
  bool is_flat() const override { return true; }
  bool is_in_place() const override { return true; }

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    if (!IsFloat(leaf.dtype)) return Misfit(leaf, "float32 or float64");
    return LeafSpec::Binary(leaf.shape, leaf.dtype);
  }

  // NaN > 0 is false, so NaN becomes 0.
  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    WithNumber(dtype, [&](auto zero) {
      using T = decltype(zero);
      MapElements<T>(from, to, count * shape.num_elements(),
                     [](T x) { return static_cast<T>(x > 0); });
    });
    return absl::OkStatus();
  }
};

class UnitIntervalMap final : public StepMap {
 public:
  using StepMap::StepMap;
  bool is_flat() const override { return true; }

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    if (leaf.dtype != DType::kUInt8) return Misfit(leaf, "uint8");
    return LeafSpec::Bounded(DType::kFloat32, leaf.shape, 0, 1);
  }

  absl::Status MapRows(DType /*dtype*/, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    transforms_internal::UnitInterval(reinterpret_cast<const uint8_t*>(from),
                                      count * shape.num_elements(),
                                      reinterpret_cast<float*>(to));
    return absl::OkStatus();
  }

  // The one step with such a kernel: it makes four bytes of each byte.
  bool StreamRows(DType /*dtype*/, const Shape& shape, int64_t count,
                  const std::byte* from, std::byte* to) const override {
    transforms_internal::StreamUnitInterval(
        reinterpret_cast<const uint8_t*>(from), count * shape.num_elements(),
        reinterpret_cast<float*>(to));
    return true;
  }
};

class ChannelsFirstMap final : public StepMap {
 public:
  using StepMap::StepMap;

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    const int rank = leaf.shape.rank();
    if (rank < 3) return Misfit(leaf, "[..., height, width, channels]");
    const Shape shape = leaf.shape.Prefix(rank - 3).Concat(
        {leaf.shape[rank - 1], leaf.shape[rank - 3], leaf.shape[rank - 2]});
    // Bounds of each element would have to be transposed too; they are given
    // up.
    return WithShape(leaf, shape);
  }

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    const int64_t elements = count * shape.num_elements();
    if (elements == 0) return absl::OkStatus();
    const int rank = shape.rank();
    const int64_t channels = shape[rank - 1];
    const int64_t pixels = shape[rank - 3] * shape[rank - 2];
    // One channel lies in the same order either way.
    if (channels == 1) {
      std::memcpy(to, from, static_cast<size_t>(elements * DTypeSize(dtype)));
      return absl::OkStatus();
    }
    const int64_t images = elements / (channels * pixels);
    WithElement(DTypeSize(dtype), [&](auto element) {
      using T = decltype(element);
      const T* in = reinterpret_cast<const T*>(from);
      T* out = reinterpret_cast<T*>(to);
      // Writes are contiguous and reads have a stride of a pixel. The other way
      // round, each cache line of the result would be written in parts.
      for (int64_t image = 0; image < images; ++image) {
        for (int64_t channel = 0; channel < channels; ++channel) {
          for (int64_t i = 0; i < pixels; ++i) {
            out[i] = in[i * channels + channel];
          }
          out += pixels;
        }
        in += pixels * channels;
      }
    });
    return absl::OkStatus();
  }
};

class CropMap final : public StepMap {
 public:
  using StepMap::StepMap;

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    const int rank = leaf.shape.rank();
    if (rank < 2) return Misfit(leaf, "[..., height, width]");
    RILL_RETURN_IF_ERROR(transforms_internal::CheckChannelsFirst(leaf));
    const RowStep& crop = step();
    // Subtractions, since the sum of place and size may be large.
    if (crop.height > leaf.shape[rank - 2] - crop.top ||
        crop.width > leaf.shape[rank - 1] - crop.left) {
      return Misfit(
          leaf, absl::StrCat("an image that holds rows ", crop.top, " to ",
                             crop.top + crop.height, " and columns ", crop.left,
                             " to ", crop.left + crop.width));
    }
    return WithShape(
        leaf, leaf.shape.Prefix(rank - 2).Concat({crop.height, crop.width}));
  }

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    const RowStep& crop = step();
    CropRows({crop.top, crop.left, crop.height, crop.width}, dtype, shape,
             count, from, to);
    return absl::OkStatus();
  }
};

class ReshapeMap final : public RowMap {
 public:
  using SpecFunction = std::function<absl::StatusOr<LeafSpec>(const LeafSpec&)>;
  explicit ReshapeMap(SpecFunction map_spec) : map_spec_(std::move(map_spec)) {}

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    return map_spec_(leaf);
  }

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    const int64_t bytes = count * shape.num_elements() * DTypeSize(dtype);
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }

  bool maps_on_device() const override { return true; }
  absl::Status MapOnDevice(DeviceRows* rows) const override {
    RILL_ASSIGN_OR_RETURN(
        const LeafSpec after,
        map_spec_(LeafSpec::Unbounded(rows->dtype(), rows->shape())));
    return rows->Reshape(after.shape);
  }

 private:
  const SpecFunction map_spec_;
};

template <typename... Parts>
absl::Status BadStep(const Parts&... what) {
  return InvalidArgument("MakeRowStep: ", what...);
}

// Numbers are checked as float32, which the kernels use: a double of 1e-60 is
// finite and not 0, but is 0 there.
absl::Status CheckNumbers(const RowStep& step) {
  const size_t scales = step.scale.size();
  const size_t locs = step.loc.size();
  if (scales == 0 || locs == 0 ||
      (scales != locs && scales != 1 && locs != 1)) {
    return BadStep("scale and loc: got ", scales, " and ", locs,
                   " numbers, want one or as many as the other");
  }
  for (const double scale : step.scale) {
    const auto rounded = static_cast<float>(scale);
    if (std::isfinite(rounded) && rounded != 0) continue;
    return BadStep("scale: got ", scale,
                   ", want a finite float32 other than 0");
  }
  for (const double loc : step.loc) {
    if (std::isfinite(static_cast<float>(loc))) continue;
    return BadStep("loc: got ", loc, ", want a finite float32");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const RowMap>> MakeRowStep(const RowStep& step) {
  using Kind = RowStep::Kind;
  switch (step.kind) {
    case Kind::kCast:
      if (!IsNumber(step.dtype) && !IsFloatingPoint(step.dtype) &&
          step.dtype != DType::kBool) {
        return BadStep("dtype: got ", DTypeName(step.dtype),
                       ", want one with arithmetic");
      }
      return std::make_shared<CastMap>(step);
    case Kind::kScaleThenShift:
    case Kind::kShiftThenDivide:
      RILL_RETURN_IF_ERROR(CheckNumbers(step));
      return std::make_shared<AffineMap>(step);
    case Kind::kClip:
      // Written so that NaN fails too.
      if (!(step.low <= step.high)) {
        return BadStep("low and high: got ", step.low, " and ", step.high,
                       ", want low <= high");
      }
      return std::make_shared<ClipMap>(step);
    case Kind::kSign:
      return std::make_shared<SignMap>(step);
    case Kind::kIsPositive:
      return std::make_shared<IsPositiveMap>(step);
    case Kind::kUnitInterval:
      return std::make_shared<UnitIntervalMap>(step);
    case Kind::kChannelsFirst:
      return std::make_shared<ChannelsFirstMap>(step);
    case Kind::kCrop:
      if (step.top < 0 || step.left < 0 || step.height < 1 || step.width < 1 ||
          step.height > kMaxSide - step.top ||
          step.width > kMaxSide - step.left) {
        return BadStep(
            "crop: got top ", step.top, ", left ", step.left, ", height ",
            step.height, ", width ", step.width,
            ", want a place >= 0, at least one row and column, and no end past "
            "2^63");
      }
      return std::make_shared<CropMap>(step);
  }
  return BadStep("kind: got an unknown one");
}

std::shared_ptr<const RowMap> MakeReshape(
    std::function<absl::StatusOr<LeafSpec>(const LeafSpec&)> map_spec) {
  return std::make_shared<ReshapeMap>(std::move(map_spec));
}

namespace transforms_internal {

absl::Status Misfit(const LeafSpec& got, absl::string_view want) {
  return InvalidArgument("got ", got.ToString(), ", want ", want);
}

absl::Status CheckChannelsFirst(const LeafSpec& leaf) {
  const int rank = leaf.shape.rank();
  if (rank < 3 || leaf.shape[rank - 3] <= 4) return absl::OkStatus();
  const int64_t last = leaf.shape[rank - 1];
  if (last != 1 && last != 3 && last != 4) return absl::OkStatus();
  return Misfit(leaf,
                "channels first, [..., C, height, width]; ToTensorImage before "
                "this brings them there");
}

LeafSpec WithShape(const LeafSpec& leaf, const Shape& shape) {
  if (leaf.domain == LeafSpec::Domain::kBounded && leaf.lows() == nullptr) {
    return LeafSpec::Bounded(leaf.dtype, shape, leaf.low, leaf.high);
  }
  if (leaf.domain == LeafSpec::Domain::kBinary) {
    return LeafSpec::Binary(shape, leaf.dtype);
  }
  return LeafSpec::Unbounded(leaf.dtype, shape);
}

void CropRows(const CropPlace& crop, DType dtype, const Shape& shape,
              int64_t count, const std::byte* from, std::byte* to) {
  const int rank = shape.rank();
  const int64_t size = DTypeSize(dtype);
  const int64_t line = shape[rank - 1] * size;
  const int64_t width = crop.width * size;
  const int64_t images = count * shape.Prefix(rank - 2).num_elements();
  // A row of pixels at a time: within it the bytes are contiguous.
  for (int64_t i = 0; i < images; ++i, from += shape[rank - 2] * line) {
    const std::byte* in = from + crop.top * line + crop.left * size;
    for (int64_t y = 0; y < crop.height; ++y, in += line, to += width) {
      std::memcpy(to, in, static_cast<size_t>(width));
    }
  }
}

}  // namespace transforms_internal
}  // namespace rill
