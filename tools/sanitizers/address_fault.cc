// SPDX-License-Identifier: Apache-2.0

// Reads one byte past a heap block if it was given an argument.

#include <cstddef>
#include <cstdio>
#include <vector>

int main(int argc, char**) {
  const std::vector<char> block(64, 'x');
  const size_t index = argc > 1 ? block.size() : block.size() - 1;
  const volatile char* bytes = block.data();
  std::printf("read byte %zu: %d\n", index, bytes[index]);
  return 0;
}
