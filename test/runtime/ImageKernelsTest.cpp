// Pictures: what is encoded decodes to the same, and what files name does not take time or memory without bounds.
#include "test/runtime/KernelTest.h"

#include <chrono>

namespace lathe::rt {
namespace {

template <typename T>
Tensor picture(DType type, std::vector<int64_t> dims) {
  Tensor t = Tensor::allocate(type, std::move(dims));
  for (int64_t i = 0; i < t.numElements(); ++i)
    t.data<T>()[i] = static_cast<T>(i * i * 31 + i * 7);
  return t;
}

/// A slope without edges, which JPEG keeps well.
Tensor slope(int64_t height, int64_t width, int64_t channels) {
  Tensor t = Tensor::allocate(DType::UInt8, {height, width, channels});
  for (int64_t i = 0; i < t.numElements(); ++i)
    t.data<uint8_t>()[i] = static_cast<uint8_t>(40 + 3 * (i / channels / width) + 2 * (i / channels % width) + 20 * (i % channels));
  return t;
}

std::string encoded(const std::string &op, AttrMap attrs, std::vector<Value> inputs) {
  auto out = KernelTest(op, std::move(attrs)).run(std::move(inputs));
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? (*out)[0].strings()[0] : "";
}

absl::StatusOr<Tensor> decoded(const std::string &op, const std::string &bytes, AttrMap attrs = {}) {
  auto out = KernelTest(op, std::move(attrs)).run({string0(bytes)});
  if (!out.ok())
    return out.status();
  return (*out)[0];
}

int worst(const Tensor &a, const Tensor &b) {
  EXPECT_EQ(a.dims(), b.dims());
  int most = 0;
  for (int64_t i = 0; i < std::min(a.numElements(), b.numElements()); ++i)
    most = std::max(most, std::abs(a.data<uint8_t>()[i] - b.data<uint8_t>()[i]));
  return most;
}

TEST(EncodePng, decodesToTheSame) {
  for (int64_t channels = 1; channels <= 4; ++channels)
    for (DType type : {DType::UInt8, DType::UInt16})
      for (int64_t compression : {-1, 0, 9}) {
        std::vector<int64_t> dims{2, 3, 5, 7, channels};
        Tensor images = type == DType::UInt8 ? picture<uint8_t>(type, dims) : picture<uint16_t>(type, dims);
        auto out = KernelTest("EncodePng", {{"T", type}, {"compression", compression}}).run({images});
        ASSERT_TRUE(out.ok()) << out.status();
        ASSERT_EQ((*out)[0].dims(), (std::vector<int64_t>{2, 3}));
        for (int64_t i = 0; i < 6; ++i) {
          auto back = decoded("DecodePng", (*out)[0].strings()[static_cast<size_t>(i)], {{"dtype", type}});
          ASSERT_TRUE(back.ok()) << back.status();
          ASSERT_EQ(back->dims(), (std::vector<int64_t>{5, 7, channels}));
          EXPECT_EQ(memcmp(back->data(), images.data<char>() + i * back->sizeBytes(), static_cast<size_t>(back->sizeBytes())), 0);
        }
      }
}

TEST(EncodePng, refusesNoPixels) {
  EXPECT_EQ(KernelTest("EncodePng", {}).run({Tensor::allocate(DType::UInt8, {0, 4, 3})}).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(KernelTest("EncodePng", {}).run({Tensor::allocate(DType::UInt8, {4, 4})}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(EncodeJpeg, decodesToNearlyTheSame) {
  for (int64_t channels : {1, 3})
    for (bool progressive : {false, true})
      for (bool optimize : {false, true})
        for (bool downsampling : {false, true}) {
          Tensor image = slope(35, 29, channels);
          std::string bytes = encoded("EncodeJpeg", {{"progressive", progressive}, {"optimize_size", optimize}, {"chroma_downsampling", downsampling}}, {image});
          auto back = decoded("DecodeJpeg", bytes, {{"dct_method", std::string("INTEGER_ACCURATE")}});
          ASSERT_TRUE(back.ok()) << back.status();
          EXPECT_LE(worst(image, *back), 6);
          EXPECT_EQ(bytes.find("\377\302") != std::string::npos, progressive);
        }
}

TEST(EncodeJpeg, writesWhatAttributesSay) {
  Tensor image = slope(35, 29, 3);
  std::string plain = encoded("EncodeJpeg", {}, {image});
  EXPECT_EQ(plain.substr(6, 12), std::string("JFIF\0\1\1\1\1\54\1\54", 12)); // 300 an inch
  std::string other = encoded("EncodeJpeg", {{"density_unit", std::string("cm")}, {"x_density", int64_t(2)}, {"y_density", int64_t(515)},
                                             {"xmp_metadata", std::string("<x/>")}, {"format", std::string("rgb")}}, {image});
  EXPECT_EQ(other.substr(6, 12), std::string("JFIF\0\1\1\2\0\2\2\3", 12));
  EXPECT_NE(other.find(std::string("http://ns.adobe.com/xap/1.0/\0<x/>", 33)), std::string::npos);
  EXPECT_LT(encoded("EncodeJpeg", {{"optimize_size", true}}, {image}).size(), plain.size());
  EXPECT_GT(encoded("EncodeJpeg", {{"chroma_downsampling", false}}, {image}).size(), plain.size());
  EXPECT_EQ(encoded("EncodeJpegVariableQuality", {}, {image, int0(95)}), plain);
  EXPECT_EQ(encoded("EncodeJpegVariableQuality", {}, {image, int0(20)}), encoded("EncodeJpeg", {{"quality", int64_t(20)}}, {image}));
  EXPECT_LT(encoded("EncodeJpeg", {{"quality", int64_t(20)}}, {image}).size(), plain.size());
}

TEST(EncodeJpeg, writesMoreThanABuffer) {
  Tensor image = picture<uint8_t>(DType::UInt8, {300, 400, 3});
  std::string bytes = encoded("EncodeJpeg", {{"quality", int64_t(100)}, {"chroma_downsampling", false}}, {image});
  EXPECT_GT(bytes.size(), size_t(1) << 16);
  auto back = decoded("DecodeJpeg", bytes, {{"dct_method", std::string("INTEGER_ACCURATE")}});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_LE(worst(image, *back), 6);
}

/// The bytes with another height and width in the frame's header.
std::string resized(std::string bytes, char header, int64_t height, int64_t width) {
  size_t at = bytes.find(std::string("\377") + header) + 5;
  bytes[at] = static_cast<char>(height >> 8), bytes[at + 1] = static_cast<char>(height);
  bytes[at + 2] = static_cast<char>(width >> 8), bytes[at + 3] = static_cast<char>(width);
  return bytes;
}

TEST(DecodeJpeg, boundsSizesAndScans) {
  Tensor image = slope(64, 64, 3);
  std::string plain = encoded("EncodeJpeg", {}, {image});
  for (const char *op : {"DecodeJpeg", "DecodeImage", "DecodeGif"})
    EXPECT_FALSE(decoded(op, resized(plain, '\300', 65500, 65500)).ok());
  EXPECT_FALSE(decoded("DecodeJpeg", resized(plain, '\300', 65500, 65500), {{"ratio", int64_t(8)}, {"try_recover_truncated", true}}).ok());
  // thousands of scans of a large picture, each of a few bytes, end soon
  std::string bytes = encoded("EncodeJpeg", {{"progressive", true}}, {image});
  size_t scan = bytes.find("\377\332");
  size_t next = bytes.find("\377\332", scan + 2);
  for (size_t table = bytes.find("\377\304", scan); table < next; table = std::string::npos)
    next = table;
  std::string bomb = bytes.substr(0, scan);
  ASSERT_NE(next, std::string::npos);
  bomb += bytes.substr(scan, 14); // the scan's header and no more than the beginning of its data
  for (int i = 0; i < 20000; ++i)
    bomb += bytes.substr(scan, 14);
  bomb += "\377\331";
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(decoded("DecodeJpeg", bomb).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(decoded("DecodeJpeg", resized(bomb, '\302', 8000, 8000)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(DecodeJpeg, saysNothingOnStderr) {
  std::string bytes = encoded("EncodeJpeg", {}, {slope(64, 64, 3)});
  testing::internal::CaptureStderr();
  for (size_t part : {size_t(0), size_t(3), size_t(100), bytes.size() / 2, bytes.size() - 2})
    for (bool recover : {false, true})
      (void)decoded("DecodeJpeg", bytes.substr(0, part), {{"try_recover_truncated", recover}});
  (void)decoded("DecodeGif", "GIF89a\1");
  (void)decoded("DecodePng", std::string("\211PNG\r\n\032\n") + "rubbish");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(DecodeGif, boundsFramesAndPixels) {
  auto le = [](int64_t v) { return std::string{static_cast<char>(v), static_cast<char>(v >> 8)}; };
  auto frame = [&](int64_t width, int64_t height) { return "," + le(0) + le(0) + le(width) + le(height) + std::string("\0\2\2\104\1\0", 6); };
  std::string head = "GIF89a" + le(1) + le(1) + std::string("\200\0\0\1\2\3\4\5\6", 9);
  auto one = decoded("DecodeGif", head + frame(1, 1) + ";");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(elements<uint8_t>(*one), (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_FALSE(decoded("DecodeGif", head + frame(65535, 65535) + ";").ok());
  // a large frame that has no data is dropped with its pixels; many small ones are all there
  std::string many = head;
  for (int i = 0; i < 5000; ++i)
    many += frame(1, 1);
  auto all = decoded("DecodeGif", many + ";");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->dim(0), 5000);
  EXPECT_EQ(decoded("DecodeGif", many + frame(16000, 16000) + ";")->dims(), (std::vector<int64_t>{5000, 1, 1, 3}));
}

/// Every execution goes on in the generator's stream as far behind the one before it as in TensorFlow.
TEST(SampleDistortedBoundingBox, goesOn) {
  KernelTest sample("SampleDistortedBoundingBox", {{"T", DType::Int32}, {"seed", int64_t(3)}, {"seed2", int64_t(4)}});
  Tensor boxes = Tensor::allocate(DType::Float32, {1, 2, 4});
  const float corners[8] = {.1f, .2f, .5f, .6f, .3f, .3f, .9f, .95f};
  std::copy(corners, corners + 8, boxes.data<float>());
  const std::vector<std::vector<int32_t>> begins{{1, 51, 0}, {0, 6, 0}, {32, 34, 0}}, sizes{{32, 34, -1}, {98, 111, -1}, {61, 80, -1}};
  for (int i = 0; i < 3; ++i) {
    auto out = sample.run({ints({100, 120, 3}), boxes});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(elements<int32_t>((*out)[0]), begins[i]);
    EXPECT_EQ(elements<int32_t>((*out)[1]), sizes[i]);
  }
}

/// Any damage gives a picture or an error.
TEST(DecodeImage, survivesDamage) {
  std::vector<std::string> files{encoded("EncodeJpeg", {}, {slope(40, 33, 3)}), encoded("EncodeJpeg", {{"progressive", true}}, {slope(40, 33, 1)}),
                                 encoded("EncodePng", {}, {slope(9, 7, 4)})};
  files.push_back(std::string("GIF89a\3\0\3\0\200\0\0\1\2\3\4\5\6!\371\4\1\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\2\104\1\0;", 43));
  uint32_t seed = 1;
  auto random = [&] { return seed = seed * 1664525 + 1013904223, seed >> 8; };
  int good = 0;
  for (const std::string &file : files)
    for (int round = 0; round < 400; ++round) {
      std::string bytes = file;
      for (uint32_t n = 1 + random() % 4; n > 0; --n)
        bytes[2 + random() % (bytes.size() - 2)] = static_cast<char>(random());
      if (random() % 4 == 0)
        bytes.resize(random() % bytes.size());
      good += decoded("DecodeImage", bytes).ok();
      good += decoded("DecodeJpeg", bytes, {{"try_recover_truncated", true}}).ok();
      auto out = KernelTest("DecodeAndCropJpeg", {{"acceptable_fraction", 0.1f}}).run({string0(bytes), ints({4, 5, 20, 11})});
      good += out.ok();
    }
  EXPECT_GT(good, 100);
}

} // namespace
} // namespace lathe::rt
