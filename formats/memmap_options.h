// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_MEMMAP_OPTIONS_H_
#define RILL_FORMATS_MEMMAP_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace rill {

// An entry that was left out of what was loaded.
struct RefusedEntry {
  std::string key;     // "info/agent".
  std::string reason;  // With the file.
  friend bool operator==(const RefusedEntry&, const RefusedEntry&) = default;
};

// How a saved dictionary comes back: LoadMemmapDirectory, LoadTdz,
// LoadConsolidated. Thread-safety: thread-compatible.
struct LoadMemmapOptions {
  // Map the files (nothing is read until it is touched), read-only or shared
  // and writable; or read them into memory of its own.
  enum class Mode : uint8_t { kMapReadOnly, kMapShared, kCopy };
  Mode mode = Mode::kMapReadOnly;

  // Null: an entry that is refused for what it is (a pickle, which would run
  // code; a dtype or a class of Python that is not here) fails the load. Else
  // the rest is loaded, and those entries are appended here. Broken files fail
  // either way.
  std::vector<RefusedEntry>* refused = nullptr;
};

}  // namespace rill

#endif  // RILL_FORMATS_MEMMAP_OPTIONS_H_
