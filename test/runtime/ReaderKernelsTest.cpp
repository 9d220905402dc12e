// Readers and TFRecord files; keys, values and counts are TensorFlow's, and so is test/data/runtime/records.gz.
#include "base/Bytes.h"
#include "base/Records.h"
#include "test/runtime/KernelTest.h"

#include <atomic>
#include <filesystem>
#include <thread>

namespace lathe::rt {
namespace {

std::string file(const char *name, std::string bytes) {
  std::string path = testing::TempDir() + "lathe-readers-" + name;
  EXPECT_TRUE(writeFile(path, bytes).ok());
  return path;
}

/// A reader, a queue of its work that is closed, and what they give.
struct Reading {
  Reading(std::string kind, AttrMap attrs, std::vector<std::string> work, bool v2 = true) : v(v2 ? "V2" : "") {
    KernelTest node(kind + v, attrs, resources);
    auto made = node.run({});
    EXPECT_TRUE(made.ok()) << made.status();
    reader = (*made)[0];
    AttrMap queueAttrs = {{"component_types", std::vector<DType>{DType::String}}, {"shared_name", std::string("q")}};
    queue = (*KernelTest("FIFOQueue" + v, queueAttrs, resources).run({}))[0];
    AttrMap types = {{"Tcomponents", std::vector<DType>{DType::String}}};
    EXPECT_TRUE(KernelTest("QueueEnqueueMany" + v, types, resources).run({queue, strings(work)}).ok());
    EXPECT_TRUE(KernelTest("QueueClose" + v, {}, resources).run({queue}).ok());
  }
  absl::StatusOr<std::vector<Tensor>> run(std::string op, std::vector<Value> more = {}) {
    more.insert(more.begin(), reader);
    return KernelTest(op + v, {}, resources).run(more);
  }
  absl::StatusOr<std::vector<Tensor>> read() { return run("ReaderRead", {queue}); }
  absl::StatusOr<std::vector<Tensor>> readUpTo(int64_t n) { return run("ReaderReadUpTo", {queue, long0(n)}); }
  /// "key=value,..." until the work is out, `count` at a time if positive, each call in brackets.
  std::string all(int64_t count = 0) {
    std::string text;
    for (;;) {
      auto r = count ? readUpTo(count) : read();
      if (!r.ok())
        return absl::IsOutOfRange(r.status()) ? text : absl::StrCat(text, r.status().ToString());
      text += "[";
      for (int64_t i = 0; i < (*r)[0].numElements(); ++i) {
        std::string key = (*r)[0].strings()[i];
        text += key.substr(key.rfind('-') + 1) + "=" + (*r)[1].strings()[i] + ";";
      }
      text += "]";
    }
  }
  int64_t count(const char *op) { return *(*run(op))[0].data<int64_t>(); }
  std::string v;
  std::shared_ptr<ResourceManager> resources = std::make_shared<ResourceManager>();
  Tensor reader, queue;
};

TEST(Readers, lines) {
  std::string a = file("a", "h\r\na\rb\n\nlast"), b = file("b", "x\ny\nz\n");
  for (bool v2 : {false, true}) {
    Reading skipping("TextLineReader", {{"skip_header_lines", int64_t(1)}}, {a, b}, v2);
    EXPECT_EQ(skipping.all(), "[a:2=a\rb;][a:3=;][a:4=last;][b:2=y;][b:3=z;]");
    EXPECT_EQ(skipping.count("ReaderNumRecordsProduced"), 5);
    EXPECT_EQ(skipping.count("ReaderNumWorkUnitsCompleted"), 2);
    EXPECT_EQ(skipping.run("ReaderSerializeState").status().code(), absl::StatusCode::kUnimplemented);
    Reading many("TextLineReader", {}, {a, b}, v2);
    EXPECT_EQ(many.all(3), "[a:1=h;a:2=a\rb;a:3=;][a:4=last;][b:1=x;b:2=y;b:3=z;]");
  }
  Reading missing("TextLineReader", {}, {a + "-none", b});
  EXPECT_EQ(missing.read().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(missing.all(), "[b:1=x;][b:2=y;][b:3=z;]");
}

TEST(Readers, fixedLengths) {
  std::string b = file("b", "x\ny\nz\n"), c = file("c", "HHabcdefghFF");
  auto attrs = [](int64_t header, int64_t footer, int64_t hop) {
    return AttrMap{{"record_bytes", int64_t(3)}, {"header_bytes", header}, {"footer_bytes", footer}, {"hop_bytes", hop}};
  };
  EXPECT_EQ(Reading("FixedLengthRecordReader", attrs(2, 2, 2), {c}).all(), "[c:0=abc;][c:1=cde;][c:2=efg;]");
  EXPECT_EQ(Reading("FixedLengthRecordReader", attrs(2, 2, 4), {c}).all(5), "[c:0=abc;c:1=efg;]");
  EXPECT_EQ(Reading("FixedLengthRecordReader", attrs(0, 0, 0), {b, c}).all(),
            "[b:0=x\ny;][b:1=\nz\n;][c:0=HHa;][c:1=bcd;][c:2=efg;][c:3=hFF;]");
}

TEST(Readers, wholeFilesAndIdentityKeepState) {
  std::string b = file("b", "x\ny\n");
  Reading whole("WholeFileReader", {}, {b});
  EXPECT_EQ(whole.all(), "[b=x\ny\n;]");
  Reading same("IdentityReader", {}, {"q", "r", "s"});
  auto first = same.readUpTo(5);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ((*first)[0].numElements(), 1);
  EXPECT_EQ(same.count("ReaderNumWorkUnitsCompleted"), 1);
  auto state = same.run("ReaderSerializeState");
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_TRUE(same.run("ReaderReset").ok());
  EXPECT_EQ(same.count("ReaderNumRecordsProduced"), 0);
  ASSERT_TRUE(same.run("ReaderRestoreState", {(*state)[0]}).ok());
  EXPECT_EQ(same.count("ReaderNumRecordsProduced"), 1);
  EXPECT_EQ(same.run("ReaderRestoreState", {string0("\xff")}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(same.all(), "[r=r;][s=s;]");
}

TEST(Readers, concurrentReadsShareTheWork) {
  std::vector<std::string> work;
  for (int i = 0; i < 20; ++i)
    work.push_back(file(absl::StrCat("w", i).c_str(), "1\n2\n3\n4\n5\n"));
  Reading reading("TextLineReader", {}, work);
  std::atomic<int> got{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (;;) {
        auto r = t % 2 ? reading.read() : reading.readUpTo(3);
        if (!r.ok())
          return;
        got += static_cast<int>((*r)[0].numElements());
      }
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(got, 100);
  EXPECT_EQ(reading.count("ReaderNumWorkUnitsCompleted"), 20);
}

TEST(Records, allCompressionsComeBack) {
  for (Compression c : {Compression::None, Compression::Zlib, Compression::Gzip}) {
    std::string path = testing::TempDir() + "lathe-records";
    auto writer = RecordWriter::create(path, c);
    ASSERT_TRUE(writer.ok()) << writer.status();
    std::vector<std::string> records;
    for (int i = 0; i < 50; ++i) {
      records.push_back(std::string(i * i * 97, static_cast<char>(i)));
      ASSERT_TRUE((*writer)->write(records.back()).ok());
    }
    ASSERT_TRUE((*writer)->close().ok());
    EXPECT_FALSE((*writer)->write("late").ok());
    auto reader = RecordReader::open(path, c);
    ASSERT_TRUE(reader.ok());
    std::string record;
    for (const std::string &expected : records) {
      ASSERT_TRUE(*(*reader)->next(record));
      EXPECT_EQ(record, expected);
    }
    EXPECT_FALSE(*(*reader)->next(record));
  }
  Reading theirs("TFRecordReader", {{"compression_type", std::string("GZIP")}},
                 {LATHE_SOURCE_DIR "/test/data/runtime/records.gz"});
  EXPECT_EQ(theirs.count("ReaderNumRecordsProduced"), 0);
  std::string text = theirs.all();
  EXPECT_NE(text.find("records.gz:35=xxxxx"), std::string::npos) << text;
}

TEST(Records, damageIsAnErrorWhereverItIs) {
  for (Compression c : {Compression::None, Compression::Gzip}) {
    std::string path = testing::TempDir() + "lathe-records-damaged";
    auto writer = RecordWriter::create(path, c);
    for (const char *record : {"first", "", "a third one"})
      ASSERT_TRUE((*writer)->write(record).ok());
    ASSERT_TRUE((*writer)->close().ok());
    std::string bytes = *readFile(path);
    auto readAll = [&]() -> absl::StatusOr<std::string> {
      auto reader = RecordReader::open(path, c);
      std::string record, all;
      for (;;) {
        auto any = (*reader)->next(record);
        if (!any.ok())
          return any.status();
        if (!*any)
          return all;
        all += record + "|";
      }
    };
    for (size_t n = 0; n < bytes.size(); ++n) {
      std::string changed = bytes;
      changed[n] ^= 0x41;
      ASSERT_TRUE(writeFile(path, changed).ok());
      auto r = readAll();
      if (r.ok()) { // gzip's header has bytes without meaning
        EXPECT_EQ(*r, "first||a third one|") << n;
      }
      ASSERT_TRUE(writeFile(path, bytes.substr(0, n)).ok());
      r = readAll();
      if (r.ok()) { // cut between records
        EXPECT_EQ(std::string("first||a third one|").rfind(*r, 0), 0u) << n;
      }
    }
  }
}

} // namespace
} // namespace lathe::rt
