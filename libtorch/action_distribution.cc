// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/action_distribution.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "c10/util/ArrayRef.h"
#include "rill/base/rng.h"
#include "rill/base/standard_normal.h"
#include "rill/base/status_macros.h"
#include "rill/envs/policies/network_actions.h"
#include "rill/libtorch/torch_call.h"

namespace rill {
namespace {

// log(2 pi) / 2.
const double kLogRootTwoPi = 0.5 * std::log(2 * std::numbers::pi);

std::string ShapeText(const at::Tensor& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.sizes(), ", "), "]");
}

// That both are floating-point tensors of one shape.
absl::Status CheckAlike(absl::string_view who, const at::Tensor& got,
                        const at::Tensor& want) {
  if (!got.defined() || !got.is_floating_point() ||
      got.sizes() != want.sizes()) {
    return InvalidArgument(
        who, ": got ",
        got.defined()
            ? absl::StrCat(c10::toString(got.scalar_type()), ShapeText(got))
            : "an undefined tensor",
        ", want floating-point numbers ", ShapeText(want));
  }
  return absl::OkStatus();
}

absl::Status CheckHasActions(absl::string_view who, const at::Tensor& tensor) {
  if (tensor.defined() && tensor.is_floating_point() && tensor.dim() >= 1 &&
      tensor.size(-1) >= 1) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      who, ": got ",
      tensor.defined()
          ? absl::StrCat(c10::toString(tensor.scalar_type()), ShapeText(tensor))
          : "an undefined tensor",
      ", want floating-point numbers [..., n] with n of at least 1");
}

}  // namespace

absl::StatusOr<Categorical> Categorical::Create(const at::Tensor& logits,
                                                const at::Tensor& mask) {
  RILL_RETURN_IF_ERROR(CheckHasActions("Categorical::Create: logits", logits));
  return CallTorch(
      [&]() -> absl::StatusOr<Categorical> {
        if (!mask.defined()) return Categorical(logits.log_softmax(-1));
        if (mask.scalar_type() != at::kBool || mask.sizes() != logits.sizes()) {
          return InvalidArgument("Categorical::Create: mask: got ",
                                 c10::toString(mask.scalar_type()),
                                 ShapeText(mask), ", want Bool",
                                 ShapeText(logits));
        }
        // Finite, so that 0 log 0 of the entropy is 0.
        return Categorical(
            logits
                .masked_fill(mask.logical_not(),
                             std::numeric_limits<float>::lowest() / 2)
                .log_softmax(-1));
      },
      "Categorical::Create");
}

absl::StatusOr<at::Tensor> Categorical::LogProb(
    const at::Tensor& action) const {
  return CallTorch(
      [&]() -> absl::StatusOr<at::Tensor> {
        const int64_t rows = log_probs_.numel() / log_probs_.size(-1);
        if (!action.defined() || action.scalar_type() != at::kLong ||
            action.numel() != rows) {
          return InvalidArgument(
              "Categorical::LogProb: action: got ",
              action.defined()
                  ? absl::StrCat(c10::toString(action.scalar_type()),
                                 ShapeText(action))
                  : "an undefined tensor",
              ", want Long with one for each of ", rows, " rows of logits");
        }
        std::vector<int64_t> sizes = log_probs_.sizes().vec();
        sizes.back() = 1;
        return log_probs_.gather(-1, action.reshape(sizes)).squeeze(-1);
      },
      "Categorical::LogProb");
}

absl::StatusOr<at::Tensor> Categorical::Entropy() const {
  return CallTorch(
      [&]() -> absl::StatusOr<at::Tensor> {
        return -(log_probs_.exp() * log_probs_).sum(-1);
      },
      "Categorical::Entropy");
}

absl::StatusOr<TanhNormal> TanhNormal::Create(const at::Tensor& loc,
                                              const at::Tensor& scale,
                                              const ActionBounds& bounds) {
  RILL_RETURN_IF_ERROR(CheckHasActions("TanhNormal::Create: loc", loc));
  RILL_RETURN_IF_ERROR(CheckAlike("TanhNormal::Create: scale", scale, loc));
  RILL_RETURN_IF_ERROR(CheckBounds("TanhNormal::Create", bounds,
                                   static_cast<size_t>(loc.size(-1))));
  std::vector<float> center, half;
  for (size_t i = 0; i < bounds.low.size(); ++i) {
    const float low = bounds.low[i], high = bounds.high[i];
    center.push_back(low + (high - low) / 2);
    half.push_back((high - low) / 2);
  }
  return CallTorch(
      [&]() -> absl::StatusOr<TanhNormal> {
        const auto like_loc = [&](const std::vector<float>& values) {
          return at::tensor(values).to(loc.options());
        };
        return TanhNormal(loc, scale, like_loc(center), like_loc(half));
      },
      "TanhNormal::Create");
}

at::Tensor TanhNormal::LogProbOf(const at::Tensor& noise,
                                 const at::Tensor& x) const {
  // log(1 - tanh(x)^2), without the difference of two numbers near 1.
  const at::Tensor log_slope =
      2 * (std::numbers::ln2 - x - at::softplus(-2 * x));
  return (-0.5 * noise.square() - scale_.log() - kLogRootTwoPi - half_.log() -
          log_slope)
      .sum(-1);
}

absl::StatusOr<TanhNormal::Drawn> TanhNormal::Draw(
    const at::Tensor& noise) const {
  RILL_RETURN_IF_ERROR(CheckAlike("TanhNormal::Draw: noise", noise, loc_));
  return CallTorch(
      [&]() -> absl::StatusOr<Drawn> {
        const at::Tensor there = noise.to(loc_.options());
        const at::Tensor x = loc_ + scale_ * there;
        return Drawn{.action = center_ + half_ * x.tanh(),
                     .log_prob = LogProbOf(there, x)};
      },
      "TanhNormal::Draw");
}

absl::StatusOr<at::Tensor> TanhNormal::LogProb(const at::Tensor& action) const {
  RILL_RETURN_IF_ERROR(CheckAlike("TanhNormal::LogProb: action", action, loc_));
  return CallTorch(
      [&]() -> absl::StatusOr<at::Tensor> {
        const at::Tensor squashed =
            ((action - center_) / half_).clamp(-1 + 1e-6, 1 - 1e-6);
        const at::Tensor x = squashed.atanh();
        return LogProbOf((x - loc_) / scale_, x);
      },
      "TanhNormal::LogProb");
}

absl::StatusOr<at::Tensor> TanhNormal::Mode() const {
  return CallTorch(
      [&]() -> absl::StatusOr<at::Tensor> {
        return center_ + half_ * loc_.tanh();
      },
      "TanhNormal::Mode");
}

at::Tensor StandardNormals(const Rng& rng, uint64_t batch,
                           c10::IntArrayRef sizes) {
  at::Tensor normals = at::empty(sizes, at::kFloat);
  float* const to = normals.mutable_data_ptr<float>();
  for (int64_t i = 0; i < normals.numel(); ++i) {
    to[i] = static_cast<float>(
        StandardNormal(rng.Bits(batch, static_cast<uint32_t>(i))));
  }
  return normals;
}

}  // namespace rill
