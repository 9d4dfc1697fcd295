// SPDX-License-Identifier: Apache-2.0
// The headers that almost every test includes, compiled once for all of them
// with g++ (tools/precompiled.bzl). Tests still include what they use: clang
// gets no help from here. What tools/library_headers.h has is here too, as a
// source takes one parsed header.
#ifndef RILL_TESTING_COMMON_HEADERS_H_
#define RILL_TESTING_COMMON_HEADERS_H_

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
#include "absl/status/status_matchers.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#endif  // RILL_TESTING_COMMON_HEADERS_H_
