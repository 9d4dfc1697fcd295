// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/apply.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/parallel_for.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/ops/keys.h"
#include "rill/tensordict/ops/shape_ops.h"
#include "rill/tensordict/ops/walk.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops {
namespace {

using ops_internal::MapTensors;

absl::Status CheckThreads(absl::string_view caller, int num_threads) {
  constexpr int kMaxThreads = 1024;
  if (num_threads >= 1 && num_threads <= kMaxThreads) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(caller, ": num_threads: got ", num_threads,
                   ", want one in [1, ", kMaxThreads, "]"));
}

absl::Status AtKey(const absl::Status& status, absl::string_view caller,
                   absl::string_view key) {
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; in ", caller,
                                   ", at key \"", key, "\""));
}

// A leaf, those of the others, and what the function made of them.
struct Call {
  std::string key;
  std::vector<Tensor> leaves;
  absl::StatusOr<Tensor> result = absl::StatusOr<Tensor>(Tensor());
};

// All calls made, in the order of MapTensors.
absl::StatusOr<std::vector<Call>> CallAll(absl::string_view caller,
                                          const TensorDict& dict,
                                          NamedLeafFunction fn,
                                          const ApplyOptions& options) {
  RILL_RETURN_IF_ERROR(CheckThreads(caller, options.num_threads));
  std::vector<Call> calls;
  RILL_RETURN_IF_ERROR(
      MapTensors(
          caller, dict,
          {.others = options.others, .if_missing = options.if_missing},
          [&](absl::string_view key, absl::Span<const Tensor> leaves) {
            calls.push_back({std::string(key), {leaves.begin(), leaves.end()}});
            return leaves[0];
          })
          .status());
  ParallelFor(
      static_cast<int64_t>(calls.size()), options.num_threads,
      [&](int64_t i) { calls[i].result = fn(calls[i].key, calls[i].leaves); });
  for (const Call& call : calls) {
    if (!call.result.ok()) return AtKey(call.result.status(), caller, call.key);
  }
  return calls;
}

}  // namespace

absl::StatusOr<TensorDict> NamedApply(const TensorDict& dict,
                                      NamedLeafFunction fn,
                                      const ApplyOptions& options) {
  RILL_ASSIGN_OR_RETURN(std::vector<Call> calls,
                        CallAll("ops::Apply", dict, fn, options));
  size_t next = 0;
  RILL_ASSIGN_OR_RETURN(
      TensorDict result,
      MapTensors("ops::Apply", dict, {.batch_shape = options.batch_shape},
                 [&](absl::string_view, absl::Span<const Tensor>) {
                   return std::move(calls[next++].result);
                 }));
  if (options.filter_empty) return FilterEmpty(result);
  return result;
}

absl::StatusOr<TensorDict> Apply(const TensorDict& dict, LeafFunction fn,
                                 const ApplyOptions& options) {
  return NamedApply(
      dict,
      [&](absl::string_view, absl::Span<const Tensor> leaves) {
        return fn(leaves);
      },
      options);
}

absl::Status ApplyInPlace(const TensorDict& dict, LeafFunction fn,
                          const ApplyOptions& options) {
  if (options.batch_shape.has_value()) {
    return absl::InvalidArgumentError(
        "ops::ApplyInPlace: batch_shape: got one, want none, as leaves keep "
        "their shapes");
  }
  RILL_ASSIGN_OR_RETURN(
      const std::vector<Call> calls,
      CallAll(
          "ops::ApplyInPlace", dict,
          [&](absl::string_view, absl::Span<const Tensor> leaves) {
            return fn(leaves);
          },
          options));
  for (const Call& call : calls) {
    if (!call.result->is_valid()) continue;
    const absl::Status status = call.leaves[0].CheckCopyFrom(*call.result);
    if (!status.ok()) return AtKey(status, "ops::ApplyInPlace", call.key);
  }
  for (const Call& call : calls) {
    if (!call.result->is_valid()) continue;
    RILL_RETURN_IF_ERROR(call.leaves[0].CopyFrom(*call.result));
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> MapChunks(
    const TensorDict& dict,
    absl::FunctionRef<absl::StatusOr<TensorDict>(const TensorDict& part)> fn,
    const MapOptions& options) {
  RILL_RETURN_IF_ERROR(CheckThreads("ops::MapChunks", options.num_threads));
  RILL_ASSIGN_OR_RETURN(const std::vector<TensorDict> parts,
                        Split(dict, options.chunk_size, options.dim));
  std::vector<absl::StatusOr<TensorDict>> results(parts.size());
  ParallelFor(static_cast<int64_t>(parts.size()), options.num_threads,
              [&](int64_t i) { results[i] = fn(parts[i]); });
  std::vector<TensorDict> joined;
  for (size_t i = 0; i < results.size(); ++i) {
    RILL_RETURN_IF_ERROR(results[i].status())
        << "in ops::MapChunks, part " << i << " of " << parts.size();
    joined.push_back(*std::move(results[i]));
  }
  const int rank = dict.batch_shape().rank();
  return Cat(joined, options.dim < 0 ? options.dim + rank : options.dim);
}

}  // namespace rill::ops
