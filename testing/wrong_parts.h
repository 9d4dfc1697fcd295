// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_WRONG_PARTS_H_
#define RILL_TESTING_WRONG_PARTS_H_

#include <string>
#include <vector>

#include "gtest/gtest.h"

// Shows that a conformance suite refuses what is wrong. Beside the suite's own
// test a function makes WrongParts: each breaks one promise, and names the test
// that must find it and what that test must say. At namespace scope,
// RILL_REFUSES_WRONG_PARTS(Suite, function) runs them.
//
// The program runs itself once more, with these tests over these parts alone,
// and looks at what they say. So a part that ends the program is found as well,
// and none of its failures is one of the program.
namespace rill {

template <typename Suite>
struct WrongPart {
  std::string name;  // What is wrong; letters and digits.
  std::string test;  // Of the suite; the only one that runs.
  std::string says;  // In the text of its failures.
  typename Suite::ParamType part;
};

namespace testing_internal {

struct Refusal {
  std::string name, test, says;
};

// The program is the one that runs the parts.
bool RunsWrongParts();

// What is not as it should be, a line each; empty where all were refused.
std::string Unrefused(const std::string& suite,
                      const std::vector<Refusal>& refusals);

template <typename Suite>
std::vector<typename Suite::ParamType> PartsToRun(
    const std::vector<WrongPart<Suite>>& wrong) {
  std::vector<typename Suite::ParamType> parts;
  if (!RunsWrongParts()) return parts;
  for (const WrongPart<Suite>& one : wrong) parts.push_back(one.part);
  return parts;
}

template <typename Suite>
std::string UnrefusedOf(const std::string& suite,
                        const std::vector<WrongPart<Suite>>& wrong) {
  std::vector<Refusal> refusals;
  for (const WrongPart<Suite>& one : wrong) {
    refusals.push_back({one.name, one.test, one.says});
  }
  return Unrefused(suite, refusals);
}

}  // namespace testing_internal
}  // namespace rill

#define RILL_REFUSES_WRONG_PARTS(Suite, parts)                         \
  INSTANTIATE_TEST_SUITE_P(                                            \
      Wrong, Suite,                                                    \
      ::testing::ValuesIn(                                             \
          ::rill::testing_internal::PartsToRun<Suite>(parts())),       \
      [](const auto& info) { return parts()[info.index].name; });      \
  TEST(Wrong##Suite, EachFailsTheTestThatItNames) {                    \
    const std::string wrong =                                          \
        ::rill::testing_internal::UnrefusedOf<Suite>(#Suite, parts()); \
    EXPECT_TRUE(wrong.empty()) << wrong;                               \
  }

#endif  // RILL_TESTING_WRONG_PARTS_H_
