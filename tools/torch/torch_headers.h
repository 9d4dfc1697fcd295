// SPDX-License-Identifier: Apache-2.0
// The headers that most sources beside LibTorch include, compiled once for all
// of them with g++ (tools/precompiled.bzl): nine tenths of such a source's time
// is the parsing of LibTorch. Sources still include what they use. The headers
// of tools/library_headers.h are here too, as a source takes one parsed header.
#ifndef RILL_TOOLS_TORCH_TORCH_HEADERS_H_
#define RILL_TOOLS_TORCH_TORCH_HEADERS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "ATen/core/Tensor.h"
#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "torch/nn/module.h"
#include "torch/nn/modules/container/sequential.h"
#include "torch/nn/modules/linear.h"

#endif  // RILL_TOOLS_TORCH_TORCH_HEADERS_H_
