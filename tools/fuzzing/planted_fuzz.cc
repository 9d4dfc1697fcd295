// SPDX-License-Identifier: Apache-2.0
// Reads past a buffer for inputs that start with "RILL": a fuzzer that does not
// find this within seconds is not switched on. tools/fuzz tries it first.
#include <cstddef>
#include <cstdint>
#include <memory>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::unique_ptr<char[]> buffer(new char[8]());
  size_t at = 0;
  if (size >= 4 && data[0] == 'R' && data[1] == 'I' && data[2] == 'L' &&
      data[3] == 'L') {
    at = 8;
  }
  volatile const char* const bytes = buffer.get();
  return bytes[at] == 1 ? -1 : 0;
}
