// SPDX-License-Identifier: Apache-2.0
// The headers that most libraries of this repository include, compiled once for
// all of them with g++ (precompiled.bzl). Libraries still include what they use:
// clang and projects outside get no help from here.
#ifndef RILL_TOOLS_LIBRARY_HEADERS_H_
#define RILL_TOOLS_LIBRARY_HEADERS_H_

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

#endif  // RILL_TOOLS_LIBRARY_HEADERS_H_
