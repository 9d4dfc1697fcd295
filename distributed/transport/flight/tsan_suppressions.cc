// SPDX-License-Identifier: Apache-2.0
// Arrow and gRPC come as built libraries. ThreadSanitizer sees their memory by
// its malloc and memcpy, but none of the atomics that hand it over, so it takes
// them for races. Reports with a frame of theirs are left out: all of their
// own, and those of code that gRPC's threads call (flight_server.cc). The
// clients are looked at, and so are services over the other engines.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
extern "C" const char* __tsan_default_suppressions() {
  return "race:libarrow_flight.so\nrace:libarrow.so\n";
}
#endif
#endif
