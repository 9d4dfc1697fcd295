// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/manifest.h"

#include <unistd.h>

#include <string>

#include "absl/crc/crc32c.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/formats/file_tree.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using formats_internal::WriteInPlace;

class ManifestTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = FreshPath("manifest");
    RILL_ASSERT_OK(CreateDirectories(JoinPath(directory_, "inner")));
    WriteInPlace(Path("a.bin"), "123456789");
    WriteInPlace(Path("inner/b.bin"), "");
  }
  std::string Path(absl::string_view name) const {
    return JoinPath(directory_, name);
  }
  absl::StatusOr<Manifest> Read() const {
    return ReadManifest(directory_, "thing", 2);
  }
  // Puts `body` there with a seal that fits.
  void WriteSealed(absl::string_view body) const {
    const auto crc = static_cast<uint32_t>(absl::ComputeCrc32c(body));
    WriteInPlace(Path(kManifestFile),
                 absl::StrCat(body, ",\"crc32c\":\"",
                              absl::StrFormat("%08x", crc), "\"}\n"));
  }

  std::string directory_;
};

Manifest Thing() {
  Manifest manifest;
  manifest.kind = "thing";
  manifest.version = 2;
  manifest.fields["name"] = "a \"b\"";
  manifest.SetInt("count", -7);
  return manifest;
}

TEST_F(ManifestTest, Example) {
  Manifest manifest{.kind = "my_checkpoint"};
  manifest.SetInt("step", 70);
  RILL_ASSERT_OK(WriteManifest(manifest, directory_));
  RILL_ASSERT_OK_AND_ASSIGN(Manifest read,
                            ReadManifest(directory_, "my_checkpoint", 1));
  EXPECT_THAT(read.Int("step"), IsOkAndHolds(70));
}

TEST_F(ManifestTest, RoundTripKeepsKindVersionAndFields) {
  RILL_ASSERT_OK(WriteManifest(Thing(), directory_));
  RILL_ASSERT_OK_AND_ASSIGN(const Manifest read, Read());
  EXPECT_EQ(read.kind, "thing");
  EXPECT_EQ(read.version, 2);
  EXPECT_THAT(read.Text("name"), IsOkAndHolds("a \"b\""));
  EXPECT_THAT(read.Int("count"), IsOkAndHolds(-7));
  EXPECT_THAT(read.Int("name"), IsDataLoss());
  EXPECT_THAT(read.Text("none"), IsDataLoss("none"));
}

// docs/formats/manifest.md shows these bytes.
TEST_F(ManifestTest, BytesAreAsDocumented) {
  RILL_ASSERT_OK(WriteManifest(Thing(), directory_));
  EXPECT_THAT(ReadFile(Path(kManifestFile)),
              IsOkAndHolds(absl::StrCat(
                  R"({"kind":"thing","version":2,"fields":{"count":"-7",)",
                  R"("name":"a \"b\""},"files":[{"path":"a.bin","bytes":9,)",
                  R"("crc32c":"e3069283"},{"path":"inner/b.bin","bytes":0,)",
                  R"("crc32c":"00000000"}],"crc32c":"e786751e"})", "\n")));
}

TEST_F(ManifestTest, FilesThatOthersAnswerForAreNotRead) {
  RILL_ASSERT_OK(WriteManifest(Thing(), directory_));
  FileSums sums;
  RILL_ASSERT_OK(ReadManifest(directory_, "thing", 2, &sums));
  EXPECT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums["a.bin"], (FileSum{.bytes = 9, .crc32c = 0xe3069283}));
  const auto damaged = IsDataLoss("a.bin");
  WriteInPlace(Path("a.bin"), "987654321");
  RILL_EXPECT_OK(ReadManifest(directory_, "thing", 2, &sums));
  FileSums none;
  EXPECT_THAT(ReadManifest(directory_, "thing", 2, &none), damaged);
  // The seal of another file of that name.
  FileSums others = sums;
  ++others["a.bin"].crc32c;
  EXPECT_THAT(ReadManifest(directory_, "thing", 2, &others), damaged);
  WriteInPlace(Path("a.bin"), "98765432");
  EXPECT_THAT(ReadManifest(directory_, "thing", 2, &sums), damaged);
}

TEST_F(ManifestTest, NoManifestIsNotFound) {
  EXPECT_THAT(Read(), IsNotFound("rill.json"));
}

TEST_F(ManifestTest, OtherKindsAndNewerVersionsNameBothSides) {
  RILL_ASSERT_OK(WriteManifest(Thing(), directory_));
  EXPECT_THAT(ReadManifest(directory_, "storage", 9),
              IsFailedPrecondition("got a thing of version 2, want a storage"));
  EXPECT_THAT(ReadManifest(directory_, "thing", 1),
              IsFailedPrecondition("version at most 1"));
}

TEST_F(ManifestTest, ChangedFilesAreDataLossAndNamed) {
  RILL_ASSERT_OK(WriteManifest(Thing(), directory_));
  WriteInPlace(Path("a.bin"), "123456780");
  EXPECT_THAT(Read(), IsDataLoss("want e3069283"));
  WriteInPlace(Path("a.bin"), "12345678");
  EXPECT_THAT(Read(), IsDataLoss("got 8 bytes, want 9"));
  WriteInPlace(Path("a.bin"), "1234567890");
  EXPECT_THAT(Read(), IsDataLoss("got 10 bytes, want 9"));
  RILL_ASSERT_OK(RemoveAll(Path("a.bin")));
  EXPECT_THAT(Read(), IsDataLoss("a.bin"));
  WriteInPlace(Path("a.bin"), "123456789");
  RILL_EXPECT_OK(Read());
}

TEST_F(ManifestTest, FilesThatCameLaterDoNotMatter) {
  RILL_ASSERT_OK(WriteManifest(Thing(), directory_));
  WriteInPlace(Path("later"), "x");
  RILL_EXPECT_OK(Read());
}

TEST_F(ManifestTest, LinksAreRefused) {
  ASSERT_EQ(symlink("/etc/passwd", Path("link").c_str()), 0);
  EXPECT_THAT(WriteManifest(Thing(), directory_), IsInvalidArgument("link"));
  ASSERT_EQ(unlink(Path("link").c_str()), 0);
  RILL_ASSERT_OK(WriteManifest(Thing(), directory_));
  RILL_ASSERT_OK(RemoveAll(Path("a.bin")));
  ASSERT_EQ(symlink("/etc/passwd", Path("a.bin").c_str()), 0);
  EXPECT_THAT(Read(), IsInvalidArgument());
}

TEST_F(ManifestTest, EveryFlippedByteOfTheManifestIsFound) {
  RILL_ASSERT_OK(WriteManifest(Thing(), directory_));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text,
                            ReadFile(Path(kManifestFile)));
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] ^= 1;
    WriteInPlace(Path(kManifestFile), changed);
    EXPECT_THAT(Read(), IsDataLoss()) << i;
    WriteInPlace(Path(kManifestFile), text.substr(0, i));
    EXPECT_THAT(Read(), IsDataLoss()) << i;
  }
}

TEST_F(ManifestTest, SealedNonsenseIsDataLoss) {
  for (const absl::string_view body :
       {"", "{", "{\"kind\":\"thing\"", "[1",
        R"({"kind":"thing","version":-1,"fields":{},"files":[])",
        R"({"kind":"thing","version":1,"fields":[],"files":[])",
        R"({"kind":"thing","version":1,"fields":{"a":1},"files":[])",
        R"({"kind":"thing","version":1,"fields":{})",
        R"({"kind":"thing","version":1,"fields":{},"files":[7])",
        R"({"kind":"thing","version":1,"fields":{},"files":[{"path":"a.bin",)"
        R"("bytes":9,"crc32c":"xyzxyzxy"}])",
        R"({"kind":"thing","version":1,"fields":{},"files":[{"path":)"
        R"("../a.bin","bytes":9,"crc32c":"e3069283"}])",
        R"({"kind":"thing","version":1,"fields":{},"files":[{"path":)"
        R"("/etc/passwd","bytes":9,"crc32c":"e3069283"}])"}) {
    WriteSealed(body);
    EXPECT_THAT(Read(), IsDataLoss()) << body;
  }
  WriteSealed(absl::StrCat("{\"kind\":", std::string(1 << 20, '[')));
  EXPECT_THAT(Read(), IsDataLoss());
}

TEST_F(ManifestTest, AloneItSaysNothingOfFilesThatChange) {
  RILL_ASSERT_OK(WriteManifestAlone(Thing(), directory_));
  WriteInPlace(Path("a.bin"), "other");
  RILL_ASSERT_OK_AND_ASSIGN(const Manifest read, Read());
  EXPECT_EQ(read.fields, Thing().fields);
  Manifest manifest = Thing();
  manifest.kind = "";
  EXPECT_THAT(WriteManifestAlone(manifest, directory_), IsInvalidArgument());
}

TEST_F(ManifestTest, TextsMustBeUtf8) {
  Manifest manifest = Thing();
  manifest.fields["x"] = "\xFF";
  EXPECT_THAT(WriteManifest(manifest, directory_), IsInvalidArgument());
  manifest = Thing();
  manifest.kind = "";
  EXPECT_THAT(WriteManifest(manifest, directory_), IsInvalidArgument());
}

}  // namespace
}  // namespace rill
