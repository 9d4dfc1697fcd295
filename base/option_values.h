// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_OPTION_VALUES_H_
#define RILL_BASE_OPTION_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace rill {

// The options that an object was made with, as names and texts in a fixed
// order, so that a checkpoint can say which of them are others now. Equal
// values have equal texts: a double has the shortest text that reads back as
// it, a text is quoted, with escapes for all that is not printable ASCII.
//
// Values are those that the object was given; what has changed while it ran is
// state. Every option is listed, whatever its value. An option that came later
// than others of its object is listed only where it is not its default, so that
// what was saved before is equal.
//
// Thread-safety: thread-compatible.
//
// Example (OptionValuesTest.Example runs it):
//   OptionValues values;
//   values.Double("alpha", 0.7).Bool("stratified", true);
class OptionValues {
 public:
  struct Value {
    std::string name;
    std::string text;
    // The name of a part's kind: what another kind saved is none of its state.
    bool is_kind = false;
    friend bool operator==(const Value&, const Value&) = default;
  };

  // Each adds one value. A name has no space; it comes once.
  OptionValues& Bool(absl::string_view name, bool value);
  OptionValues& Int(absl::string_view name, int64_t value);
  OptionValues& Unsigned(absl::string_view name, uint64_t value);
  OptionValues& Double(absl::string_view name, double value);
  OptionValues& Text(absl::string_view name, absl::string_view value);
  OptionValues& Texts(absl::string_view name,
                      absl::Span<const std::string> values);
  // One of a few words, without quotes: an enumerator.
  OptionValues& Choice(absl::string_view name, absl::string_view word);
  OptionValues& None(absl::string_view name) { return Choice(name, "none"); }
  // Functions cannot be compared, but for whether there is one.
  OptionValues& Function(absl::string_view name, bool is_given);
  // A part inside: `name` with the kind, then its options as "name.option".
  OptionValues& Part(absl::string_view name, absl::string_view kind,
                     const OptionValues& options);

  absl::Span<const Value> values() const ABSL_ATTRIBUTE_LIFETIME_BOUND {
    return values_;
  }
  friend bool operator==(const OptionValues&, const OptionValues&) = default;

 private:
  OptionValues& Add(absl::string_view name, std::string text,
                    bool is_kind = false);

  std::vector<Value> values_;
};

}  // namespace rill

#endif  // RILL_BASE_OPTION_VALUES_H_
