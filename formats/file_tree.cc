// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/file_tree.h"

#include <fstream>

#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"

namespace rill::formats_internal {

std::vector<std::string> ListFiles(const std::string& directory) {
  std::vector<std::string> files;
  const auto names = ListDirectory(directory);
  if (!names.ok()) return files;
  for (const std::string& name : *names) {
    const std::string path = JoinPath(directory, name);
    if (!IsDirectory(path)) {
      files.push_back(name);
      continue;
    }
    for (const std::string& inner : ListFiles(path)) {
      files.push_back(JoinPath(name, inner));
    }
  }
  return files;
}

absl::Status CopyTree(const std::string& from, const std::string& to) {
  RILL_RETURN_IF_ERROR(CreateDirectories(to));
  RILL_ASSIGN_OR_RETURN(const auto names, ListDirectory(from));
  for (const std::string& name : names) {
    const std::string source = JoinPath(from, name);
    const std::string target = JoinPath(to, name);
    if (IsDirectory(source)) {
      RILL_RETURN_IF_ERROR(CopyTree(source, target));
      continue;
    }
    RILL_ASSIGN_OR_RETURN(const std::string content, ReadFile(source));
    WriteInPlace(target, content);
  }
  return absl::OkStatus();
}

void WriteInPlace(const std::string& path, absl::string_view content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  EXPECT_TRUE(file.good()) << path;
}

}  // namespace rill::formats_internal
