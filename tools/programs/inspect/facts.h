// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_INSPECT_FACTS_H_
#define RILL_TOOLS_PROGRAMS_INSPECT_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rill/slots/slot.h"

namespace rill::inspect {

// a + b of counts, which are not negative, or the largest number: a file may
// say anything.
int64_t SumOfCounts(int64_t a, int64_t b);

// Facts of some numbers.
struct Spread {
  int64_t count = 0;
  double min = 0;
  double max = 0;
  double total = 0;

  void Add(double value, int64_t times = 1);
  double mean() const {
    return count == 0 ? 0 : total / static_cast<double>(count);
  }
};

// Those that live rows are of. An episode is complete where its first and its
// last step are live; the last one has an end flag.
struct Episodes {
  int64_t partial = 0;  // Begun, or cut at the beginning.
  Spread lengths;       // Of the complete ones, in steps.
  // Sums of their rewards; none where rows have no reward of one element.
  std::optional<Spread> returns = std::nullopt;
};

// A leaf of the rows, as text for people.
struct LeafFacts {
  std::string key = {};
  std::string dtype = {};
  std::string shape = {};  // Of a row.
  // Of the rows that were looked at for leaves, of what is not NaN. Empty where
  // there is none.
  std::string min = {};
  std::string max = {};
  int64_t nans = 0;
};

// The answers to what a user asks first of whatever holds rows: a storage's
// directory, a saved storage or buffer, a saved position, TorchRL's buffer.
struct Facts {
  Lanes lanes = {};
  // One a lane: steps ever appended, and the first one that is live. Empty
  // where they cannot be read.
  std::vector<int64_t> written = {};
  std::vector<int64_t> oldest = {};
  // Live rows that were looked at for what follows, the newest of each lane; 0
  // where none could be.
  int64_t rows_read = 0;
  std::optional<Episodes> episodes = std::nullopt;
  // The smallest and the largest of the rows.
  std::optional<std::pair<int64_t, int64_t>> policy_versions = std::nullopt;
  std::optional<Spread> priorities = std::nullopt;  // As they were given.
  std::string writer = {};  // "process 12", where one has it open.
  // Where FactOptions::leaves asks for them, of a storage's directory; and the
  // newest rows that were looked at for them.
  std::vector<LeafFacts> leaves = {};
  int64_t leaf_rows = 0;

  int64_t live() const;
  // Steps from the oldest live row to the newest of its lane, the largest.
  int64_t age() const;
};

}  // namespace rill::inspect

#endif  // RILL_TOOLS_PROGRAMS_INSPECT_FACTS_H_
