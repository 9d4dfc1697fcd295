// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/buffer_options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/replay/parts/part_fit.h"

namespace rill::replay_internal {
namespace {

absl::Status BadOption(absl::string_view option, absl::string_view got,
                       absl::string_view want) {
  return InvalidArgument("ReplayBuffer::Create: ", option, ": got ", got,
                         ", want ", want);
}

absl::Status CheckPrefetch(const BufferOptions& options) {
  constexpr int64_t kMaxPrefetch = 1024;
  constexpr int kMaxThreads = 256;
  if (options.prefetch < 0 || options.prefetch > kMaxPrefetch) {
    return BadOption("prefetch", absl::StrCat(options.prefetch),
                     absl::StrCat("[0, ", kMaxPrefetch, "]"));
  }
  if (options.prefetch > 0 && options.batch_size == 0) {
    return BadOption("prefetch",
                     absl::StrCat(options.prefetch, " with batch_size 0"),
                     "a batch_size: what is drawn ahead needs one");
  }
  if (options.prefetch_threads < 1 || options.prefetch_threads > kMaxThreads) {
    return BadOption("prefetch_threads", absl::StrCat(options.prefetch_threads),
                     absl::StrCat("[1, ", kMaxThreads, "]"));
  }
  if (options.rate_limit_timeout < absl::ZeroDuration()) {
    return BadOption("rate_limit_timeout",
                     absl::FormatDuration(options.rate_limit_timeout), ">= 0");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckBufferOptions(const BufferOptions& options) {
  if (options.storage == nullptr) {
    return BadOption("storage", "null", "a storage");
  }
  if (options.sampler == nullptr) {
    return BadOption("sampler", "null", "a sampler");
  }
  if (options.clock == nullptr) {
    return BadOption("clock", "null", "a clock");
  }
  for (size_t i = 0; i < options.transforms.size(); ++i) {
    if (options.transforms[i] != nullptr) continue;
    return BadOption(absl::StrCat("transforms[", i, "]"), "null",
                     "a transform");
  }
  if (options.batch_size < 0 || options.batch_size > Sampler::kMaxBatchSize) {
    return BadOption("batch_size", absl::StrCat(options.batch_size),
                     absl::StrCat("[0, ", Sampler::kMaxBatchSize, "]"));
  }
  RILL_RETURN_IF_ERROR(CheckFit(options.sampler->traits(),
                                options.writer != nullptr
                                    ? options.writer->traits()
                                    : MakeRoundRobinWriter()->traits()));
  RILL_RETURN_IF_ERROR(CheckPrefetch(options));
  if (options.device.has_value()) {
    RILL_RETURN_IF_ERROR(GetBackend(*options.device).status())
        << "ReplayBuffer::Create: device";
  }
  if (!options.pin_memory) return absl::OkStatus();
  if (options.device.has_value()) {
    return BadOption(
        "pin_memory",
        absl::StrCat("true, and device ", options.device->ToString()),
        "one of the two");
  }
  if (options.pin_for.is_cpu()) {
    return BadOption("pin_for", options.pin_for.ToString(),
                     "a device other than the CPU");
  }
  if (!options.storage->device().is_cpu()) {
    return BadOption("pin_memory",
                     absl::StrCat("true over a storage on ",
                                  options.storage->device().ToString()),
                     "a storage in host memory");
  }
  RILL_RETURN_IF_ERROR(GetBackend(options.pin_for).status())
      << "ReplayBuffer::Create: pin_memory";
  return absl::OkStatus();
}

}  // namespace rill::replay_internal
