// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_FUZZING_FUZZ_INPUT_H_
#define RILL_TOOLS_FUZZING_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

// Helpers for fuzz targets; tools/fuzzing/fuzz.bzl builds those.

// Ends the program where the code under test broke a promise; a sanitizer's
// finding to the fuzzer, a failed test to the replay.
#define RILL_FUZZ_CHECK(condition) \
  ((condition) ? void() : ::rill::FuzzFail(#condition, __FILE__, __LINE__))

namespace rill {

[[noreturn]] inline void FuzzFail(const char* what, const char* file,
                                  int line) {
  std::fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, what);
  std::abort();
}

// Reads values off the front of a fuzzer's bytes. Past the end all is zero, so
// that any input is a whole one.
// Thread-safety: thread-compatible.
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  bool is_empty() const { return rest_.empty(); }

  template <typename T>
  T Take() {
    T value = {};
    const size_t bytes = std::min(sizeof(T), rest_.size());
    if (bytes > 0) std::memcpy(&value, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    return value;
  }

  // In [low, high], by one byte: for small ranges.
  int64_t TakeSmall(int64_t low, int64_t high) {
    return low + Take<uint8_t>() % (high - low + 1);
  }

  // Mostly small and of both signs, now and then anything, or at the edges of
  // int64: for sizes, strides and indices.
  int64_t TakeHostile() {
    const uint8_t kind = Take<uint8_t>();
    switch (kind >> 5) {
      case 7:
        return Take<int64_t>();
      case 6:
        return INT64_MAX - (kind & 31);
      case 5:
        return INT64_MIN + (kind & 31);
      case 4:
        return int64_t{1} << (2 * (kind & 31));
      default:
        return kind - 16;
    }
  }

  // All that is left.
  std::string_view TakeRest() {
    const std::string_view rest = rest_;
    rest_ = {};
    return rest;
  }

  // At most `size` bytes.
  std::string_view TakeBytes(size_t size) {
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(bytes.size());
    return bytes;
  }

  // Up to the next zero byte, which is dropped.
  std::string_view TakeText() {
    const std::string_view text = TakeBytes(rest_.find('\0'));
    TakeBytes(1);
    return text;
  }

 private:
  std::string_view rest_;
};

}  // namespace rill

#endif  // RILL_TOOLS_FUZZING_FUZZ_INPUT_H_
