#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "model_builder.h"

namespace tenon {
namespace {

std::filesystem::path library(const std::string& name) {
  return std::filesystem::path(TENON_TEST_LIBRARIES) / ("libcustom_" + name + ".so");
}

ModelBuilder model_of(const std::string& op) {
  ModelBuilder b;
  b.model().opset_imports.add("test.library", 1);
  b.input("x", ElementType::float32, SymbolicShape{Dim::symbol("n")});
  b.node(op, {"x"}, {"y"}, "mine", "test.library");
  b.output("y");
  return b;
}

SessionOptions with(const std::filesystem::path& path) {
  SessionOptions options;
  options.custom_operator_libraries = {path};
  return options;
}

std::string load_error(const std::filesystem::path& path) {
  return error_of([&] { model_of("AddTwo").session(with(path)); });
}

const NamedValues feeds = {{"x", Tensor({3}, {1.0f, 2.0f, 3.0f})}};

TEST(CustomOperatorLibrary, Runs) {
  ModelBuilder b = model_of("AddTwo");
  b.graph().nodes().front().set_attribute(ir::Attribute("times", int64_t{3}));
  Session session = b.session(with(library("operators")));
  EXPECT_EQ(session.outputs()[0].shape[0], "n");
  ASSERT_EQ(session.placement().size(), 1);
  EXPECT_EQ(session.placement()[0].kernel, "test.library.AddTwo");
  EXPECT_TRUE(identical(session.run(feeds).at("y").tensor(), Tensor({3}, {7.0f, 8.0f, 9.0f})));
}

// What it gives out stays good when the session that loaded the library is gone.
TEST(CustomOperatorLibrary, OutlivesSessions) {
  NamedValues outputs;
  for (int i = 0; i < 3; ++i) outputs = model_of("AddTwo").session(with(library("operators"))).run(feeds);
  EXPECT_TRUE(identical(outputs.at("y").tensor(), Tensor({3}, {3.0f, 4.0f, 5.0f})));
}

TEST(CustomOperatorLibrary, ManySessionsAtOnce) {
  std::vector<std::jthread> threads;
  std::vector<int> good(4);
  for (int& result : good) {
    threads.emplace_back([&result] {
      for (int i = 0; i < 10; ++i) {
        Session session = model_of("AddTwo").session(with(library("operators")));
        result += identical(session.run(feeds).at("y").tensor(), Tensor({3}, {3.0f, 4.0f, 5.0f}));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(good, std::vector<int>(4, 10));
}

TEST(CustomOperatorLibrary, FailuresNameTheNode) {
  const std::pair<const char*, const char*> cases[] = {
      {"ThrowsError", "invalid-value in test.library.ThrowsError 'mine' (node 0): not this time"},
      {"ThrowsException",
       "custom-operator in test.library.ThrowsException 'mine' (node 0): its kernel failed: out of luck"},
      {"ThrowsNumber",
       "custom-operator in test.library.ThrowsNumber 'mine' (node 0): its kernel failed with an exception that is no "
       "std::exception"},
      {"MistakesTheType",
       "type-mismatch in test.library.MistakesTheType 'mine' (node 0): the tensor holds float, double was asked for"},
  };
  for (const auto& [op, text] : cases) {
    Session session = model_of(op).session(with(library("operators")));
    EXPECT_EQ(error_of([&] { session.run(feeds); }), text);
  }
}

TEST(CustomOperatorLibrary, OfAnotherVersionIsRefused) {
  EXPECT_EQ(load_error(library("another_version")),
            "invalid-library: library '" + library("another_version").string() +
                "' has no custom operators for this Tenon: it was built for version 0.0.1-never, this is " +
                std::string(version()) + "\n  hint: build it again with the headers of this version");
  EXPECT_EQ(load_error(library("another_standard_library")),
            "invalid-library: library '" + library("another_standard_library").string() +
                "' has no custom operators for this Tenon: it was built with another standard library, this with " +
                standard_library + "\n  hint: build it with the compiler settings of this build");
}

// Else one library of the right version would vouch for all that are loaded after it.
TEST(CustomOperatorLibrary, EachHasItsOwnVersion) {
  std::vector<const CustomOperatorLibrary*> exports;
  for (const char* name : {"operators", "throws"}) {
    void* handle = dlopen(library(name).c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(handle);
    exports.push_back(static_cast<const CustomOperatorLibrary*>(dlsym(handle, "tenon_custom_operators")));
    ASSERT_TRUE(exports.back());
  }
  EXPECT_NE(exports[0]->tenon_version, exports[1]->tenon_version);
  EXPECT_STREQ(exports[0]->tenon_version, exports[1]->tenon_version);
  EXPECT_NE(exports[0]->standard_library, exports[1]->standard_library);
}

TEST(CustomOperatorLibrary, ThatIsNone) {
  EXPECT_EQ(load_error(library("nothing")),
            "invalid-library: library '" + library("nothing").string() +
                "' has no custom operators for this Tenon: it does not export 'tenon_custom_operators'\n"
                "  hint: define it with TENON_CUSTOM_OPERATORS");
  EXPECT_EQ(load_error(library("throws")),
            "invalid-library: library '" + library("throws").string() +
                "' has no custom operators for this Tenon: it failed while it listed them: no licence found");
  const std::string unlinked = load_error(library("unlinked"));
  EXPECT_NE(unlinked.find("undefined symbol: "), std::string::npos) << unlinked;
  EXPECT_TRUE(unlinked.ends_with("\n  hint: link it with Tenon")) << unlinked;
  const std::string text = load_error(TENON_SOURCE_DIR "/README.md");
  EXPECT_TRUE(text.starts_with("invalid-library: library '" TENON_SOURCE_DIR
                               "/README.md' has no custom operators for this Tenon: it cannot be loaded: "))
      << text;
}

TEST(CustomOperatorLibrary, ThatIsNotThere) {
  EXPECT_EQ(load_error("/nowhere/libmine.so"), "missing-file: there is no library '/nowhere/libmine.so'");
  EXPECT_EQ(load_error("libnot_there.so"),
            "missing-file: there is no library 'libnot_there.so' in the current folder, '" +
                std::filesystem::current_path().string() +
                "', nor where the system looks for them\n"
                "  hint: give its path, or name its folder in LD_LIBRARY_PATH");
}

TEST(CustomOperatorLibrary, Clashes) {
  SessionOptions options = with(library("operators"));
  options.custom_operators.push_back(CustomOperator("test.library", "AddTwo")
                                         .input("x", {ElementType::float32})
                                         .output("y", {ElementType::float32})
                                         .cpu([](CustomRun&) {}));
  EXPECT_EQ(
      error_of([&] { model_of("AddTwo").session(options); }),
      "invalid-argument: test.library.AddTwo of version 1 is defined twice: by custom_operators[0] and by library '" +
          library("operators").string() + "'");
}

}  // namespace
}  // namespace tenon
