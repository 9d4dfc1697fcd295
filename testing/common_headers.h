// SPDX-License-Identifier: Apache-2.0
// The headers that almost every test includes, compiled once for all of them
// with g++ (tools/precompiled.bzl). Tests still include what they use: clang
// gets no help from here.
#ifndef RILL_TESTING_COMMON_HEADERS_H_
#define RILL_TESTING_COMMON_HEADERS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

#endif  // RILL_TESTING_COMMON_HEADERS_H_
