// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/gymnasium/python_child.h"

#include <sys/wait.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/testing/status_matchers.h"

namespace rill::gymnasium_internal {
namespace {

using ::testing::HasSubstr;

// A child that runs `code`, which sends bytes with send().
absl::StatusOr<std::unique_ptr<PythonChild>> Start(absl::string_view code) {
  const std::string script = absl::StrCat(
      "import os, signal, socket, struct, sys, time\n"
      "conn = socket.socket(fileno=3)\n"
      "def send(data): conn.sendall(struct.pack('<I', len(data)) + data)\n",
      code);
  return PythonChild::Start("python3", script.c_str(), {"an argument"},
                            {"RILL_PYTHON_CHILD_TEST=a value"});
}

absl::StatusOr<std::string> Answer(PythonChild& child, absl::Duration timeout) {
  PythonChild* const children[] = {&child};
  return PythonChild::Receive(children, Clock::Steady().Now() + timeout)[0];
}

constexpr absl::Duration kLong = absl::Minutes(1);

TEST(PythonChildTest, AnswersACommand) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto child, Start("send(conn.recv(3) + sys.argv[1].encode() +"
                        " os.environ['RILL_PYTHON_CHILD_TEST'].encode())\n"));
  RILL_ASSERT_OK(child->Send("abc"));
  EXPECT_THAT(Answer(*child, kLong), IsOkAndHolds("abcan argumenta value"));
}

TEST(PythonChildTest, AnswersMayBeLongAndComeInParts) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto child, Start("conn.sendall(struct.pack('<I', 1 << 20)[:2])\n"
                        "conn.sendall(struct.pack('<I', 1 << 20)[2:])\n"
                        "conn.sendall(b'x' * (1 << 20))\n"));
  EXPECT_THAT(Answer(*child, kLong), IsOkAndHolds(std::string(1 << 20, 'x')));
}

TEST(PythonChildTest, AnAnswerIsThereWhenItsChildHasEnded) {
  RILL_ASSERT_OK_AND_ASSIGN(auto child, Start("send(b'x' * 150000)\n"));
  siginfo_t ended = {};
  ASSERT_EQ(waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT), 0);
  EXPECT_THAT(Answer(*child, kLong), IsOkAndHolds(std::string(150000, 'x')));
}

// The child runs `code`; the error names `reason`.
struct Fault {
  std::string name;
  std::string code;
  absl::StatusCode status;
  std::string reason;
  absl::Duration timeout = kLong;
};
class PythonChildFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(PythonChildFaultTest, IsAnErrorWithItsReason) {
  const Fault& fault = GetParam();
  RILL_ASSERT_OK_AND_ASSIGN(auto child, Start(fault.code));
  EXPECT_THAT(Answer(*child, fault.timeout),
              StatusIs(fault.status, HasSubstr(fault.reason)));
  EXPECT_THAT(child->Send("S"), StatusIs(absl::StatusCode::kUnavailable));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, PythonChildFaultTest,
    ::testing::Values(
        Fault{"exit", "print('last words')\nos._exit(7)\n",
              absl::StatusCode::kUnavailable,
              "ended with exit status 7; its last output: last words"},
        Fault{"signal", "os.kill(os.getpid(), signal.SIGSEGV)\n",
              absl::StatusCode::kUnavailable, "ended by signal 11"},
        Fault{"exception", "raise ValueError('no such thing')\n",
              absl::StatusCode::kUnavailable, "ValueError: no such thing"},
        Fault{"garbage", "conn.sendall(b'garbage ' * 10)\ntime.sleep(600)\n",
              absl::StatusCode::kUnavailable,
              "wrote to descriptor 3, which is not its own, and was killed"},
        Fault{"closed", "conn.close()\nprint('no ears')\ntime.sleep(600)\n",
              absl::StatusCode::kUnavailable, "was killed"},
        Fault{"hang", "time.sleep(600)\n", absl::StatusCode::kDeadlineExceeded,
              "gave no answer in time and was killed", absl::Milliseconds(50)},
        Fault{"half", "conn.sendall(b'\\x08\\0\\0\\0half')\ntime.sleep(600)\n",
              absl::StatusCode::kDeadlineExceeded,
              "gave no answer in time and was killed", absl::Seconds(1)}),
    [](const auto& info) { return info.param.name; });

TEST(PythonChildTest, OneThatHangsLeavesTheAnswersOfOthers) {
  RILL_ASSERT_OK_AND_ASSIGN(auto hangs, Start("time.sleep(600)\n"));
  RILL_ASSERT_OK_AND_ASSIGN(auto answers,
                            Start("send(b'here')\ntime.sleep(600)\n"));
  PythonChild* const children[] = {hangs.get(), answers.get()};
  const auto results =
      PythonChild::Receive(children, Clock::Steady().Now() + absl::Seconds(5));
  EXPECT_THAT(results[0], StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(results[1], IsOkAndHolds("here"));
}

TEST(PythonChildTest, ASendToOneThatIsEndingSaysHowItEnded) {
  RILL_ASSERT_OK_AND_ASSIGN(auto child,
                            Start("conn.close()\nsum(range(1000000))\n"
                                  "os.kill(os.getpid(), signal.SIGSEGV)\n"));
  absl::Status status;
  while (status.ok()) status = child->Send("S");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("ended by signal 11")));
}

// The child ends by itself, and says so in the file, where nobody ends it.
TEST(PythonChildTest, OneThatWritesWithoutEndIsEnded) {
  const std::string file = absl::StrCat(testing::TempDir(), "/late");
  RILL_ASSERT_OK_AND_ASSIGN(
      auto child, Start(absl::StrCat("def late(*_):\n"
                                     "  open('",
                                     file,
                                     "', 'w').close()\n"
                                     "  os._exit(0)\n"
                                     "signal.signal(signal.SIGALRM, late)\n"
                                     "signal.alarm(30)\n"
                                     "send(b'')\n"
                                     "while True: print('garbage ' * 100)\n")));
  RILL_ASSERT_OK(Answer(*child, kLong));
  child.reset();
  EXPECT_FALSE(std::filesystem::exists(file));
}

// The first hangs. The last looks whether that one lives when its own socket
// closes, and makes a file if so.
TEST(PythonChildTest, ThoseThatEndTogetherAreToldBeforeOneIsKilled) {
  const std::string file = absl::StrCat(testing::TempDir(), "/told");
  std::vector<std::unique_ptr<PythonChild>> children(3);
  RILL_ASSERT_OK_AND_ASSIGN(children[0], Start("time.sleep(600)\n"));
  const std::string look =
      absl::StrCat("send(b'')\n", "conn.recv(1)\n", "os.kill(",
                   children[0]->pid(), ", 0)\n", "open('", file, "', 'w')\n");
  RILL_ASSERT_OK_AND_ASSIGN(children[2], Start(look));
  RILL_ASSERT_OK(Answer(*children[2], kLong));
  PythonChild::EndAll(children);
  EXPECT_TRUE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace rill::gymnasium_internal
