// SPDX-License-Identifier: Apache-2.0
// The difference is taken in the observation's dtype, then rounded once to the
// stored one. The way back adds in the observation's dtype, so float16 costs
// only that one rounding of the difference.
#include "rill/transforms/episodes/next_observation_delta.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/device/stream.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/cast_elements.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/memory/spare_tensors.h"
#include "rill/transforms/rows/device_leaves.h"
#include "rill/transforms/rows/device_rows.h"
#include "rill/transforms/rows/element_copies.h"
#include "rill/transforms/rows/pair_kernels.h"
#include "rill/transforms/structure/key_paths.h"

namespace rill {
namespace {

using transforms_internal::CheckMaySet;
using transforms_internal::DeleteEntry;
using transforms_internal::DeviceWork;
using transforms_internal::GetFloat;
using transforms_internal::GetLeaf;
using transforms_internal::IsFloat32Or64;
using transforms_internal::ReadDeviceLeaf;
using transforms_internal::ReadLeaf;

constexpr absl::string_view kForward = "NextObservationDelta::Forward";
constexpr absl::string_view kInverse = "NextObservationDelta::Inverse";

std::string NextKey(absl::string_view key) {
  return absl::StrCat("next/", key);
}
std::string DeltaKey(absl::string_view key) {
  return absl::StrCat("next/delta/", key);
}

struct Keys {
  std::string now;
  std::string next;
  std::string delta;
};

// out = a + sign * b, of one dtype and shape. A product with 1 or -1 is exact,
// so one loop serves both ways.
template <typename T>
void Add(const Tensor& a, T sign, const Tensor& b, const Tensor& out) {
  const T* const x = a.data<T>();
  const T* const y = b.data<T>();
  T* const to = out.data<T>();
  for (int64_t i = 0; i < out.num_elements(); ++i) to[i] = x[i] + sign * y[i];
}

void Sum(const Tensor& a, int sign, const Tensor& b, const Tensor& out) {
  if (a.dtype() == DType::kFloat32) {
    Add<float>(a, static_cast<float>(sign), b, out);
  } else {
    Add<double>(a, sign, b, out);
  }
}

void CastInto(const Tensor& from, const Tensor& to) {
  CastElements(from.dtype(), to.dtype(), from.raw_data(), to.raw_data(),
               from.num_elements());
}

template <typename T>
absl::Status AddOn(const Stream& stream, const Tensor& a, T sign,
                   const Tensor& b, const Tensor& out) {
  if (out.num_elements() == 0) return absl::OkStatus();
  return LaunchKernel(
      transforms_internal::PairSumKernel<T>{.a = a.data<T>(),
                                            .sign = sign,
                                            .b = b.data<T>(),
                                            .out = out.data<T>(),
                                            .count = out.num_elements()},
      GridFor(out.num_elements()), stream);
}

absl::Status SumOn(const Stream& stream, const Tensor& a, int sign,
                   const Tensor& b, const Tensor& out) {
  return a.dtype() == DType::kFloat32
             ? AddOn<float>(stream, a, static_cast<float>(sign), b, out)
             : AddOn<double>(stream, a, sign, b, out);
}

// `from` in another dtype; itself where it has that.
absl::StatusOr<Tensor> CastOn(const Tensor& from, DType dtype,
                              DeviceWork::Call* call) {
  transforms_internal::ElementCopies copies(&call->stream());
  DeviceRows rows(from, /*batch_rank=*/0, call, &copies);
  RILL_RETURN_IF_ERROR(rows.Cast(dtype));
  RILL_ASSIGN_OR_RETURN(Tensor to,
                        rows.Finish(/*is_in_place=*/false, /*shares=*/true));
  RILL_RETURN_IF_ERROR(copies.Launch());
  return to;
}

class Delta final : public BatchTransform {
 public:
  explicit Delta(const NextObservationDelta::Options& options)
      : options_(options),
        spare_(4 * options.in_keys.size()),
        device_work_(4 * options.in_keys.size()) {
    for (const std::string& key : options.in_keys) {
      keys_.push_back({key, NextKey(key), DeltaKey(key)});
    }
  }

  absl::string_view name() const override { return "NextObservationDelta"; }
  OptionValues option_values() const override {
    return OptionValues()
        .Texts("in_keys", options_.in_keys)
        .Choice("delta_dtype", DTypeName(options_.delta_dtype))
        .Bool("drop_delta", options_.drop_delta);
  }

  absl::Status Inverse(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    RILL_ASSIGN_OR_RETURN(const Tensor first,
                          GetLeaf(kInverse, keys_[0].now, *batch));
    if (!first.is_host()) return InverseOn(first.device(), batch);
    RILL_ASSIGN_OR_RETURN(const auto found,
                          FindAll(kInverse, &Keys::next, &Keys::delta, *batch));
    for (size_t i = 0; i < keys_.size(); ++i) {
      const auto& [now, next] = found[i];
      // Before a write the batch's bytes are the writer's.
      RILL_ASSIGN_OR_RETURN(const Tensor wide,
                            spare_.Take(now.dtype(), now.shape()));
      Sum(next, -1, now, wide);
      RILL_ASSIGN_OR_RETURN(Tensor delta,
                            spare_.Take(options_.delta_dtype, now.shape()));
      CastInto(wide, delta);
      RILL_RETURN_IF_ERROR(DeleteEntry(keys_[i].next, batch));
      RILL_RETURN_IF_ERROR(batch->Set(keys_[i].delta, std::move(delta)));
    }
    return absl::OkStatus();
  }

  absl::Status Forward(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    RILL_ASSIGN_OR_RETURN(const Tensor first,
                          GetLeaf(kForward, keys_[0].now, *batch));
    if (!first.is_host()) return ForwardOn(first.device(), batch);
    RILL_ASSIGN_OR_RETURN(const auto found,
                          FindAll(kForward, &Keys::delta, &Keys::next, *batch));
    for (size_t i = 0; i < keys_.size(); ++i) {
      const auto& [now, delta] = found[i];
      RILL_ASSIGN_OR_RETURN(Tensor next, spare_.Take(now.dtype(), now.shape()));
      CastInto(delta, next);
      Sum(now, 1, next, next);
      RILL_RETURN_IF_ERROR(batch->Set(keys_[i].next, std::move(next)));
      if (!options_.drop_delta) continue;
      RILL_RETURN_IF_ERROR(DeleteEntry(keys_[i].delta, batch));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<TensorDictSpec> InverseSpec(
      const TensorDictSpec& spec) const override {
    constexpr absl::string_view kSpec = "NextObservationDelta::InverseSpec";
    TensorDictSpec after = spec;
    for (const std::string& key : options_.in_keys) {
      RILL_ASSIGN_OR_RETURN(const LeafSpec now, GetFloat(kSpec, key, spec));
      RILL_RETURN_IF_ERROR(
          CheckSpec(kSpec, NextKey(key), now.dtype, now.shape, spec));
      after.Erase(NextKey(key));
      RILL_RETURN_IF_ERROR(after.Set(
          DeltaKey(key), LeafSpec::Unbounded(options_.delta_dtype, now.shape)));
    }
    return after;
  }

  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override {
    constexpr absl::string_view kSpec = "NextObservationDelta::ForwardSpec";
    TensorDictSpec after = spec;
    for (const std::string& key : options_.in_keys) {
      RILL_ASSIGN_OR_RETURN(const LeafSpec now, GetFloat(kSpec, key, spec));
      RILL_RETURN_IF_ERROR(CheckSpec(kSpec, DeltaKey(key), options_.delta_dtype,
                                     now.shape, spec));
      // Rounded, it may lie outside of what the observation's domain says.
      RILL_RETURN_IF_ERROR(
          after.Set(NextKey(key), LeafSpec::Unbounded(now.dtype, now.shape)));
      if (options_.drop_delta) after.Erase(DeltaKey(key));
    }
    return after;
  }

 private:
  // The same on a device.
  absl::Status InverseOn(Device device, TensorDict* batch) const {
    DeviceWork::Call call(&device_work_);
    RILL_RETURN_IF_ERROR(call.Begin(device)) << kInverse;
    RILL_ASSIGN_OR_RETURN(
        const auto found,
        FindAll(kInverse, &Keys::next, &Keys::delta, *batch, &call));
    for (size_t i = 0; i < keys_.size(); ++i) {
      const auto& [now, next] = found[i];
      RILL_ASSIGN_OR_RETURN(const Tensor wide,
                            call.Take(now.dtype(), now.shape()));
      RILL_RETURN_IF_ERROR(SumOn(call.stream(), next, -1, now, wide));
      RILL_ASSIGN_OR_RETURN(Tensor delta,
                            CastOn(wide, options_.delta_dtype, &call));
      RILL_RETURN_IF_ERROR(DeleteEntry(keys_[i].next, batch));
      RILL_RETURN_IF_ERROR(batch->Set(keys_[i].delta, std::move(delta)));
    }
    return call.End();
  }
  absl::Status ForwardOn(Device device, TensorDict* batch) const {
    DeviceWork::Call call(&device_work_);
    RILL_RETURN_IF_ERROR(call.Begin(device)) << kForward;
    RILL_ASSIGN_OR_RETURN(
        const auto found,
        FindAll(kForward, &Keys::delta, &Keys::next, *batch, &call));
    for (size_t i = 0; i < keys_.size(); ++i) {
      const auto& [now, delta] = found[i];
      RILL_ASSIGN_OR_RETURN(const Tensor wide,
                            CastOn(delta, now.dtype(), &call));
      RILL_ASSIGN_OR_RETURN(Tensor next, call.Take(now.dtype(), now.shape()));
      RILL_RETURN_IF_ERROR(SumOn(call.stream(), now, 1, wide, next));
      RILL_RETURN_IF_ERROR(batch->Set(keys_[i].next, std::move(next)));
      if (!options_.drop_delta) continue;
      RILL_RETURN_IF_ERROR(DeleteEntry(keys_[i].delta, batch));
    }
    return call.End();
  }

  // The observation, and the leaf that is read beside it.
  struct Pair {
    Tensor now;
    Tensor other;
  };
  // All pairs, before the first result is set: with an error the batch is as it
  // was.
  absl::StatusOr<absl::InlinedVector<Pair, 8>> FindAll(
      absl::string_view caller, std::string Keys::*read,
      std::string Keys::*written, const TensorDict& batch,
      DeviceWork::Call* call = nullptr) const {
    absl::InlinedVector<Pair, 8> found;
    for (const Keys& key : keys_) {
      Pair& pair = found.emplace_back();
      RILL_ASSIGN_OR_RETURN(pair.now,
                            call == nullptr
                                ? ReadLeaf(caller, key.now, batch)
                                : ReadDeviceLeaf(caller, key.now, batch, call));
      const DType dtype = pair.now.dtype();
      if (!IsFloat32Or64(dtype)) {
        return InvalidArgument(caller, ": \"", key.now, "\": got ",
                               DTypeName(dtype), ", want float32 or float64");
      }
      const DType other = read == &Keys::delta ? options_.delta_dtype : dtype;
      const Shape& shape = pair.now.shape();
      RILL_ASSIGN_OR_RETURN(
          pair.other,
          call == nullptr
              ? ReadLeaf(caller, key.*read, other, shape, batch)
              : ReadDeviceLeaf(caller, key.*read, other, shape, batch, call));
      RILL_RETURN_IF_ERROR(CheckMaySet(caller, key.*written, batch));
    }
    return found;
  }

  static absl::Status CheckSpec(absl::string_view caller,
                                const std::string& key, DType dtype,
                                const Shape& shape,
                                const TensorDictSpec& spec) {
    RILL_ASSIGN_OR_RETURN(const LeafSpec leaf,
                          transforms_internal::GetSpec(caller, key, spec));
    if (leaf.dtype == dtype && leaf.shape == shape) return absl::OkStatus();
    return transforms_internal::Misfit(
        caller, key, leaf, absl::StrCat(DTypeName(dtype), shape.ToString()));
  }

  const NextObservationDelta::Options options_;
  std::vector<Keys> keys_;  // Of each of in_keys.
  mutable transforms_internal::SpareTensors spare_;
  mutable DeviceWork device_work_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTransform>> NextObservationDelta::Create(
    const Options& options) {
  constexpr absl::string_view kCreate = "NextObservationDelta::Create";
  if (!IsFloat32Or64(options.delta_dtype) &&
      options.delta_dtype != DType::kFloat16 &&
      options.delta_dtype != DType::kBFloat16) {
    return InvalidArgument(kCreate, ": delta_dtype: got ",
                           DTypeName(options.delta_dtype),
                           ", want float16, bfloat16, float32 or float64");
  }
  RILL_RETURN_IF_ERROR(
      transforms_internal::CheckRootKeys(kCreate, "in_keys", options.in_keys));
  // The next value of "delta/x" lies under "next/delta/x", which is also the
  // key of the difference of "x".
  for (const std::string& key : options.in_keys) {
    const std::string other = absl::StrCat("delta/", key);
    if (!absl::c_linear_search(options.in_keys, other)) continue;
    return InvalidArgument(kCreate, ": in_keys: got \"", key, "\" and \"",
                           other, "\", want one of them: both have a leaf \"",
                           DeltaKey(key), "\"");
  }
  return std::make_unique<Delta>(options);
}

}  // namespace rill
