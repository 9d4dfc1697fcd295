// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/images/resize.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/device/stream.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/transforms/images/axis_weights.h"
#include "rill/transforms/images/image_kernels.h"
#include "rill/transforms/images/pixel_kernels.h"
#include "rill/transforms/rows/device_rows.h"
#include "rill/transforms/rows/element_kernels.h"
#include "rill/transforms/rows/row_map.h"
#include "rill/transforms/rows/row_steps.h"

namespace rill {
namespace {

using transforms_internal::AxisView;
using transforms_internal::AxisWeights;
using transforms_internal::NearestPixel;

constexpr int64_t kMaxSide = 65536;

// Weights that are kept, those of the last calls. A batch may have leaves of
// several sizes, and several threads may work on one.
constexpr size_t kMostIdle = 16;

// Rows and columns of an image.
struct Sides {
  int64_t height = 0;
  int64_t width = 0;
  friend bool operator==(const Sides&, const Sides&) = default;
};

// The sides of [..., height, width].
Sides SidesOf(const Shape& shape) {
  const int rank = shape.rank();
  return {shape[rank - 2], shape[rank - 1]};
}

class ResizeMap : public RowMap {
 public:
  explicit ResizeMap(const Sides& to) : to_(to) {}

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    const int rank = leaf.shape.rank();
    if (rank < 2 || leaf.shape[rank - 2] == 0 || leaf.shape[rank - 1] == 0 ||
        !Takes(leaf.dtype)) {
      return transforms_internal::Misfit(
          leaf, absl::StrCat("[..., height, width], both > 0, of ", pixels()));
    }
    RILL_RETURN_IF_ERROR(transforms_internal::CheckChannelsFirst(leaf));
    const Shape shape = ResultOf(leaf.shape);
    if (KeepsBounds(leaf)) {
      return LeafSpec::Bounded(leaf.dtype, shape, leaf.low, leaf.high);
    }
    return LeafSpec::Unbounded(leaf.dtype, shape);
  }
  bool maps_on_device() const override { return true; }

 protected:
  const Sides& to() const { return to_; }
  Shape ResultOf(const Shape& shape) const {
    return shape.Prefix(shape.rank() - 2).Concat({to_.height, to_.width});
  }
  virtual bool Takes(DType dtype) const = 0;
  virtual absl::string_view pixels() const = 0;
  // For leaves that it takes.
  virtual bool KeepsBounds(const LeafSpec& leaf) const {
    return leaf.domain == LeafSpec::Domain::kBounded && leaf.lows() == nullptr;
  }

 private:
  const Sides to_;
};

// --- Linear ------------------------------------------------------------------

// The weights for images of one size, and memory to work in. One call has it
// alone, as it writes to the scratch.
struct Resizer {
  Sides from;
  AxisWeights rows;
  AxisWeights columns;
  std::vector<float> scratch;
};

class BilinearMap final : public ResizeMap {
 public:
  BilinearMap(const Sides& to, bool antialias)
      : ResizeMap(to), antialias_(antialias) {}

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    const int64_t images =
        count * shape.Prefix(shape.rank() - 2).num_elements();
    if (images == 0) return absl::OkStatus();
    // Out of the list while it is used, so that the lock is not held over the
    // work.
    std::unique_ptr<Resizer> resizer = Take(SidesOf(shape));
    if (dtype == DType::kUInt8) {
      ResizeAll<uint8_t>(images, from, resizer.get(), to);
    } else {
      ResizeAll<float>(images, from, resizer.get(), to);
    }
    const absl::MutexLock lock(&mutex_);
    // The front was used longest ago.
    if (idle_.size() == kMostIdle) idle_.erase(idle_.begin());
    idle_.push_back(std::move(resizer));
    return absl::OkStatus();
  }

  absl::Status MapOnDevice(DeviceRows* rows) const override {
    const Shape shape = rows->shape();
    const int64_t images =
        rows->count() * shape.Prefix(shape.rank() - 2).num_elements();
    const Weights& weights = WeightsFor(SidesOf(shape));
    RILL_ASSIGN_OR_RETURN(const AxisView down, CopyAxis(weights.rows, rows));
    RILL_ASSIGN_OR_RETURN(const AxisView across,
                          CopyAxis(weights.columns, rows));
    return rows->Launch(
        rows->dtype(), ResultOf(shape),
        [&](const std::byte* from, std::byte* to, const Stream& stream) {
          const auto launch = [&](auto zero) {
            using T = decltype(zero);
            const transforms_internal::LinearKernel<T> kernel = {
                .from = reinterpret_cast<const T*>(from),
                .to = reinterpret_cast<T*>(to),
                .images = images,
                .rows = down,
                .columns = across};
            return LaunchKernel(kernel, GridFor(kernel.elements()), stream);
          };
          return rows->dtype() == DType::kUInt8 ? launch(uint8_t())
                                                : launch(float());
        });
  }

 protected:
  bool Takes(DType dtype) const override {
    return dtype == DType::kUInt8 || dtype == DType::kFloat32;
  }
  absl::string_view pixels() const override {
    return "uint8 or float32; ToTensorImage makes float32";
  }
  bool KeepsBounds(const LeafSpec& leaf) const override {
    // A sum of weights is at most 1, so values in [0, 1] and [-1, 1] stay
    // there. Any bounds of uint8 stay, as the result is rounded to whole
    // numbers.
    if (!ResizeMap::KeepsBounds(leaf)) return false;
    const bool is_unit = (leaf.low == 0 || leaf.low == -1) && leaf.high == 1;
    return is_unit || leaf.dtype == DType::kUInt8;
  }

 private:
  template <typename T>
  static void ResizeAll(int64_t images, const std::byte* from, Resizer* resizer,
                        std::byte* to) {
    const AxisWeights& rows = resizer->rows;
    const AxisWeights& columns = resizer->columns;
    const T* in = reinterpret_cast<const T*>(from);
    T* out = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < images; ++i) {
      transforms_internal::ResizePlane(in, rows.view(), columns.view(),
                                       resizer->scratch.data(), out);
      in += rows.from * columns.from;
      out += rows.to * columns.to;
    }
  }

  // An idle one for this size, or a new one.
  std::unique_ptr<Resizer> Take(const Sides& from) const {
    {
      const absl::MutexLock lock(&mutex_);
      for (auto idle = idle_.begin(); idle != idle_.end(); ++idle) {
        if (!((*idle)->from == from)) continue;
        std::unique_ptr<Resizer> taken = std::move(*idle);
        idle_.erase(idle);
        return taken;
      }
    }
    // Computed outside the lock. Two threads may so make the same weights, and
    // both are kept.
    auto made = std::make_unique<Resizer>();
    made->from = from;
    made->rows = transforms_internal::LinearWeights(from.height, to().height,
                                                    antialias_);
    made->columns =
        transforms_internal::LinearWeights(from.width, to().width, antialias_);
    made->scratch.resize(static_cast<size_t>(
        transforms_internal::ResizeScratchSize(made->columns.view())));
    return made;
  }

  // Those of images on a device, which stay where they are.
  struct Weights {
    Sides from;
    AxisWeights rows;
    AxisWeights columns;
  };
  const Weights& WeightsFor(const Sides& from) const {
    const absl::MutexLock lock(&mutex_);
    for (const Weights& weights : weights_) {
      if (weights.from == from) return weights;
    }
    weights_.push_back({from,
                        transforms_internal::LinearWeights(
                            from.height, to().height, antialias_),
                        transforms_internal::LinearWeights(
                            from.width, to().width, antialias_)});
    return weights_.back();
  }
  static absl::StatusOr<AxisView> CopyAxis(const AxisWeights& axis,
                                           DeviceRows* rows) {
    AxisView view = axis.view();
    RILL_ASSIGN_OR_RETURN(view.first,
                          rows->Copy(absl::MakeConstSpan(axis.first)));
    RILL_ASSIGN_OR_RETURN(view.count,
                          rows->Copy(absl::MakeConstSpan(axis.count)));
    RILL_ASSIGN_OR_RETURN(view.weights,
                          rows->Copy(absl::MakeConstSpan(axis.weights)));
    return view;
  }

  const bool antialias_;
  mutable absl::Mutex mutex_;
  mutable std::deque<Weights> weights_ ABSL_GUARDED_BY(mutex_);
  // The one that was used last comes last.
  mutable std::vector<std::unique_ptr<Resizer>> idle_ ABSL_GUARDED_BY(mutex_);
};

// --- Nearest -----------------------------------------------------------------

// The width of an element is a constant, so that memcpy is one load and one
// store.
template <int64_t kSize>
void ResizeToNearest(int64_t images, const Sides& from, const Sides& to,
                     const std::byte* in, std::byte* out) {
  const float down = transforms_internal::NearestScale(from.height, to.height);
  const float across = transforms_internal::NearestScale(from.width, to.width);
  for (int64_t i = 0; i < images; ++i, in += from.height * from.width * kSize) {
    for (int64_t y = 0; y < to.height; ++y, out += to.width * kSize) {
      const std::byte* const line =
          in + NearestPixel(y, from.height, down) * from.width * kSize;
      for (int64_t x = 0; x < to.width; ++x) {
        std::memcpy(out + x * kSize,
                    line + NearestPixel(x, from.width, across) * kSize, kSize);
      }
    }
  }
}

class NearestMap final : public ResizeMap {
 public:
  using ResizeMap::ResizeMap;

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    const int64_t images =
        count * shape.Prefix(shape.rank() - 2).num_elements();
    const Sides sides = SidesOf(shape);
    transforms_internal::WithElement(DTypeSize(dtype), [&](auto element) {
      ResizeToNearest<sizeof(element)>(images, sides, this->to(), from, to);
    });
    return absl::OkStatus();
  }

  absl::Status MapOnDevice(DeviceRows* rows) const override {
    const Shape shape = rows->shape();
    const int64_t images =
        rows->count() * shape.Prefix(shape.rank() - 2).num_elements();
    const Sides sides = SidesOf(shape);
    return rows->Launch(
        rows->dtype(), ResultOf(shape),
        [&](const std::byte* from, std::byte* to, const Stream& stream) {
          const auto launch = [&]<typename T>(T) {
            const transforms_internal::NearestKernel<T> kernel = {
                .from = reinterpret_cast<const T*>(from),
                .to = reinterpret_cast<T*>(to),
                .images = images,
                .sides = {sides.height, sides.width, this->to().height,
                          this->to().width}};
            return LaunchKernel(kernel, GridFor(kernel.elements()), stream);
          };
          switch (DTypeSize(rows->dtype())) {
            case 1:
              return launch(uint8_t());
            case 2:
              return launch(uint16_t());
            case 4:
              return launch(uint32_t());
            case 8:
              return launch(uint64_t());
            default:
              return launch(transforms_internal::SixteenBytes());
          }
        });
  }

 protected:
  bool Takes(DType /*dtype*/) const override { return true; }
  absl::string_view pixels() const override { return "any dtype"; }
};

std::shared_ptr<const RowMap> MakeMap(const Resize::Options& options) {
  const Sides to = {options.h.value_or(options.w), options.w};
  if (options.interpolation == Resize::Interpolation::kNearest) {
    return std::make_shared<NearestMap>(to);
  }
  return std::make_shared<BilinearMap>(to, options.antialias);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowwiseTransform>> Resize::Create(
    const Options& options) {
  const int64_t h = options.h.value_or(options.w);
  if (std::min(options.w, h) < 1 || std::max(options.w, h) > kMaxSide) {
    return InvalidArgument("Resize::Create: w and h: got ", options.w, " and ",
                           h, ", want both in 1 .. ", kMaxSide);
  }
  const bool is_nearest = options.interpolation == Interpolation::kNearest;
  return RowwiseTransform::Make(
      "Resize",
      {.map = MakeMap(options),
       .in_keys = options.in_keys,
       .out_keys = options.out_keys},
      OptionValues()
          .Int("w", options.w)
          .Int("h", h)
          .Choice("interpolation", is_nearest ? "kNearest" : "kBilinear")
          .Bool("antialias", options.antialias));
}

}  // namespace rill
