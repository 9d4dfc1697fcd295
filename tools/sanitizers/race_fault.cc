// SPDX-License-Identifier: Apache-2.0

// Copies into one record from two threads, without a lock if it was given an
// argument. The copies are memcpys of fixed size, which compilers inline:
// that is how Rill moves rows, and what gcc's thread sanitizer misses.

#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

namespace {

struct Record {
  char bytes[16];
};

Record shared_record;
std::mutex record_mutex;

void Write(char value, bool locked) {
  Record mine;
  std::memset(mine.bytes, value, sizeof(mine.bytes));
  for (int i = 0; i < 1000; ++i) {
    std::unique_lock<std::mutex> lock(record_mutex, std::defer_lock);
    if (locked) lock.lock();
    std::memcpy(&shared_record, &mine, sizeof(mine));
  }
}

}  // namespace

int main(int argc, char**) {
  const bool locked = argc <= 1;
  std::thread other(Write, 'a', locked);
  Write('b', locked);
  other.join();
  std::printf("record holds %c\n", shared_record.bytes[0]);
  return 0;
}
