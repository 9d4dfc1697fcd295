// SPDX-License-Identifier: Apache-2.0

// Overflows a signed integer if it was given an argument.

#include <cstdio>
#include <limits>

int main(int argc, char**) {
  volatile int top = std::numeric_limits<int>::max();
  const int step = argc > 1 ? 1 : 0;
  const int sum = top + step;
  std::printf("sum %d\n", sum);
  return 0;
}
