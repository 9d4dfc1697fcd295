// SPDX-License-Identifier: Apache-2.0
// Readers and writers in processes of their own that are killed (SIGKILL) at
// any moment: snapshots stay whole, nobody waits for the dead, and their places
// come back.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>  // NOLINT(build/c++17)
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/rng.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/kill_count.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kWidth = 2000;  // So that a kill is likely to hit a read.

// Every element is the version.
void Fill(TensorDict* weights, int64_t version) {
  std::fill_n(weights->Find("w")->data<int64_t>(), kWidth, version);
}

TensorDict Weights(int64_t version) {
  TensorDict weights;
  RILL_EXPECT_OK(weights.Set("w", *Tensor::Empty(DType::kInt64, {kWidth})));
  Fill(&weights, version);
  return weights;
}

bool IsWhole(const WeightStore::Snapshot& snapshot) {
  const int64_t* const values = snapshot.weights.Find("w")->data<int64_t>();
  return std::all_of(values, values + kWidth,
                     [&](int64_t value) { return value == snapshot.version; });
}

// Children count here how many snapshots they have read.
class Progress {
 public:
  Progress() {
    void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    count_ = new (memory) std::atomic<int64_t>(0);
  }
  ~Progress() { munmap(count_, 4096); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  std::atomic<int64_t>& operator*() { return *count_; }

 private:
  std::atomic<int64_t>* count_;
};

// Reads until it is killed; 3 says that a snapshot was wrong.
[[noreturn]] void ReadForEver(WeightStore::Reader* reader,
                              std::atomic<int64_t>* progress) {
  int64_t before = 0;
  while (true) {
    const WeightStore::Snapshot snapshot = reader->Latest();
    if (snapshot.version < before || !IsWhole(snapshot)) _exit(3);
    before = snapshot.version;
    progress->fetch_add(1);
  }
}

pid_t ForkReader(WeightStore* store, bool attaches, Progress* progress) {
  **progress = 0;
  const pid_t pid = fork();
  if (pid != 0) return pid;
  auto reader = attaches ? WeightStore::AttachReader(dup(store->fd()))
                         : store->OpenReader();
  if (!reader.ok()) _exit(2);
  ReadForEver(reader->get(), &**progress);
}

int WaitFor(pid_t pid) {
  int how = 0;
  EXPECT_EQ(waitpid(pid, &how, 0), pid);
  return how;
}

std::vector<std::string> Descriptors() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

int64_t StoreMappings() {
  std::ifstream maps("/proc/self/maps");
  int64_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find("rill_weights") != std::string::npos;
  }
  return count;
}

TEST(WeightStoreKillTest, KilledReadersStopNobodyAndTheirPlacesComeBack) {
  const auto descriptors = Descriptors();
  {
    // One of the places is a reader's that is never killed, and the others are
    // taken by the dead again and again.
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto store,
        WeightStore::Create({.weights = Weights(0), .max_readers = 3}));
    Progress lasting_progress, progress;
    const pid_t lasting =
        ForkReader(store.get(), /*attaches=*/true, &lasting_progress);
    const Rng rng(1);
    TensorDict weights = Weights(0);
    int64_t version = 0;
    const int64_t kills = KillCount();
    for (int64_t kill_number = 0; kill_number < kills; ++kill_number) {
      const pid_t killed =
          ForkReader(store.get(), kill_number % 2 == 0, &progress);
      const int64_t reads = rng.UniformInt(kill_number, 0, 50);
      while (*progress <= reads || *lasting_progress == 0) {
        Fill(&weights, ++version);
        ASSERT_THAT(store->Publish(weights), IsOkAndHolds(version));
        int how = 0;
        ASSERT_EQ(waitpid(killed, &how, WNOHANG), 0) << how;
      }
      volatile int64_t spun = rng.UniformInt(kill_number, 1, 20000);
      while (spun > 0) spun = spun - 1;
      ASSERT_EQ(kill(killed, SIGKILL), 0);
      EXPECT_TRUE(WIFSIGNALED(WaitFor(killed)));
    }
    // Two of the three places are free: the lasting one has the third.
    RILL_ASSERT_OK_AND_ASSIGN(const auto first, store->OpenReader());
    RILL_ASSERT_OK_AND_ASSIGN(const auto second, store->OpenReader());
    EXPECT_THAT(store->OpenReader(), IsResourceExhausted());
    EXPECT_EQ(first->Latest().version, version);
    EXPECT_TRUE(IsWhole(second->Latest()));
    ASSERT_EQ(kill(lasting, SIGKILL), 0);
    const int how = WaitFor(lasting);
    EXPECT_TRUE(WIFSIGNALED(how)) << how;
    RILL_EXPECT_OK(store->OpenReader().status());
  }
  EXPECT_EQ(Descriptors(), descriptors);
  EXPECT_EQ(StoreMappings(), 0);
}

// The writer is a child here, killed where it has copied and not yet said so.
TEST(WeightStoreKillTest, TheLastSnapshotOfAWriterThatWasKilledIsReadable) {
  int to_child[2], from_child[2];
  ASSERT_EQ(pipe2(to_child, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(from_child, O_CLOEXEC), 0);
  const pid_t writer = fork();
  if (writer == 0) {
    auto store = WeightStore::Create({.weights = Weights(0)});
    if (!store.ok()) _exit(2);
    const int fd = (*store)->fd();
    char go;
    if (write(from_child[1], &fd, sizeof(fd)) < 0) _exit(3);
    if (read(to_child[0], &go, 1) != 1) _exit(4);
    for (int64_t version = 1; version < 6; ++version) {
      if (!(*store)->Publish(Weights(version)).ok()) _exit(5);
    }
    ScopedFaultHook hook([](absl::string_view point, absl::string_view) {
      if (point == "weights.publish") raise(SIGKILL);
      return absl::OkStatus();
    });
    (*store)->Publish(Weights(6)).IgnoreError();
    _exit(6);
  }
  int theirs = -1;
  ASSERT_EQ(read(from_child[0], &theirs, sizeof(theirs)),
            static_cast<ssize_t>(sizeof(theirs)));
  const std::string path =
      "/proc/" + std::to_string(writer) + "/fd/" + std::to_string(theirs);
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto before,
      WeightStore::AttachReader(open(path.c_str(), O_RDWR | O_CLOEXEC)));
  const int mine = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const WeightStore::Snapshot first = before->Latest();
  ASSERT_EQ(write(to_child[1], "g", 1), 1);
  EXPECT_TRUE(WIFSIGNALED(WaitFor(writer)));
  EXPECT_EQ(first.version, 0);
  EXPECT_TRUE(IsWhole(first));
  EXPECT_EQ(before->Latest().version, 5);
  EXPECT_TRUE(IsWhole(before->Latest()));
  RILL_ASSERT_OK_AND_ASSIGN(const auto after, WeightStore::AttachReader(mine));
  EXPECT_EQ(after->Latest().version, 5);
  EXPECT_TRUE(IsWhole(after->Latest()));
  for (const int end : {to_child[0], to_child[1], from_child[0], from_child[1]})
    close(end);
}

TEST(WeightStoreKillTest, AForkedChildNeitherPublishesNorEndsItsParentsReader) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto store,
      WeightStore::Create({.weights = Weights(0), .max_readers = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(auto reader, store->OpenReader());
  const WeightStore::Snapshot held = reader->Latest();
  const pid_t pid = fork();
  if (pid == 0) {
    if (!absl::IsFailedPrecondition(store->Publish(Weights(1)).status())) {
      _exit(2);
    }
    reader.reset();
    _exit(absl::IsResourceExhausted(store->OpenReader().status()) ? 0 : 3);
  }
  EXPECT_EQ(WaitFor(pid), 0);
  for (int64_t version = 1; version < 10; ++version) {
    EXPECT_THAT(store->Publish(Weights(version)), IsOkAndHolds(version));
  }
  EXPECT_TRUE(IsWhole(held));
}

constexpr char kReaderFlag[] = "--read_weights_of_descriptor_10";

// This program as a reader: whole snapshots up to version 100.
int RunSpawnedReader() {
  auto reader = WeightStore::AttachReader(10);
  if (!reader.ok()) return 2;
  int64_t before = 0;
  while (before < 100) {
    const WeightStore::Snapshot snapshot = (*reader)->Latest();
    if (snapshot.version < before || !IsWhole(snapshot)) return 3;
    before = snapshot.version;
  }
  return 0;
}

TEST(WeightStoreKillTest, ASpawnedProgramReadsByTheDescriptorAlone) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto store,
                            WeightStore::Create({.weights = Weights(0)}));
  posix_spawn_file_actions_t actions;
  ASSERT_EQ(posix_spawn_file_actions_init(&actions), 0);
  ASSERT_EQ(posix_spawn_file_actions_adddup2(&actions, store->fd(), 10), 0);
  std::string program = "reader", flag = kReaderFlag;
  char* const arguments[] = {program.data(), flag.data(), nullptr};
  pid_t pid = 0;
  ASSERT_EQ(posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, arguments,
                        environ),
            0);
  posix_spawn_file_actions_destroy(&actions);
  int how = 0;
  for (int64_t version = 1; waitpid(pid, &how, WNOHANG) == 0; ++version) {
    RILL_ASSERT_OK(store->Publish(Weights(version)).status());
  }
  EXPECT_EQ(how, 0);
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], rill::kReaderFlag) == 0) {
    return rill::RunSpawnedReader();
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
