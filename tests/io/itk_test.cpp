// ITK with our ImageIO, found as programs find it, checked against ITK's own reader of NIfTI.
#include <gtest/gtest.h>
#include <itkImageIOFactory.h>
#include <itkNiftiImageIO.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "io/volume/volume_io.h"
#include "trivelet/streams.h"
#include "trivelet/volume.h"

namespace {

namespace fs = std::filesystem;
using itk::IOComponentEnum;

fs::path folder() {
  static const fs::path made = [] {
    std::string name = (fs::temp_directory_path() / "itk_test.XXXXXX").string();
    return fs::path(mkdtemp(name.data()));
  }();
  return made;
}

std::string file(const std::string& name) { return (folder() / name).string(); }

itk::ImageIOBase::Pointer reader_of(const std::string& path) {
  itk::ImageIOBase::Pointer io = itk::ImageIOFactory::CreateImageIO(path.c_str(), itk::IOFileModeEnum::ReadMode);
  if (io.IsNotNull()) {
    io->SetFileName(path);
    io->ReadImageInformation();
  }
  return io;
}

itk::ImageIORegion whole_of(const itk::ImageIOBase& io) {
  itk::ImageIORegion region(io.GetNumberOfDimensions());
  for (unsigned int axis = 0; axis < io.GetNumberOfDimensions(); ++axis) region.SetSize(axis, io.GetDimensions(axis));
  return region;
}

template <typename T>
std::vector<T> read(itk::ImageIOBase& io, const itk::ImageIORegion& region) {
  EXPECT_EQ(io.GetComponentSize(), sizeof(T));
  io.SetIORegion(region);
  std::vector<T> voxels(region.GetNumberOfPixels() * io.GetNumberOfComponents());
  io.Read(voxels.data());
  return voxels;
}

/// Turned about two axes, spaced unevenly.
itk::ImageIOBase::Pointer writer_of(const std::string& path, const std::vector<std::size_t>& extents,
                                    IOComponentEnum component, unsigned int components = 1) {
  itk::ImageIOBase::Pointer io = itk::ImageIOFactory::CreateImageIO(path.c_str(), itk::IOFileModeEnum::WriteMode);
  if (io.IsNull()) return io;
  io->SetNumberOfDimensions(static_cast<unsigned int>(extents.size()));
  for (unsigned int axis = 0; axis < extents.size(); ++axis) {
    io->SetDimensions(axis, extents[axis]);
    io->SetSpacing(axis, 0.5 + axis);
    if (axis < 3) io->SetOrigin(axis, 10.0 * axis - 7);  // headers have no fourth
  }
  if (extents.size() == 2) {
    io->SetDirection(0, std::vector<double>{0.6, 0.8});
    io->SetDirection(1, std::vector<double>{-0.8, 0.6});
  } else {
    const double c = 0.8, s = 0.6;
    const std::vector<std::vector<double>> columns = {{c, s, 0}, {-s * c, c * c, s}, {s * s, -s * c, c}};
    for (unsigned int axis = 0; axis < 3; ++axis) {
      std::vector<double> column = columns[axis];
      column.resize(extents.size());
      io->SetDirection(axis, column);
    }
  }
  io->SetComponentType(component);
  io->SetNumberOfComponents(components);
  io->SetFileName(path);
  io->SetIORegion(whole_of(*io));
  return io;
}

template <typename T>
std::vector<T> blob(const std::vector<std::size_t>& extents, std::size_t components = 1) {
  std::size_t count = components;
  for (const std::size_t n : extents) count *= n;
  std::mt19937 random(5);
  std::vector<T> voxels(count);
  for (std::size_t i = 0; i < count; ++i)
    voxels[i] = static_cast<T>(100 + 20 * std::sin(static_cast<double>(i % extents[0]) / 5) +
                               static_cast<double>(random() % 4));
  return voxels;
}

void expect_same_place(const itk::ImageIOBase& a, const itk::ImageIOBase& b) {
  ASSERT_EQ(a.GetNumberOfDimensions(), b.GetNumberOfDimensions());
  for (unsigned int axis = 0; axis < a.GetNumberOfDimensions(); ++axis) {
    EXPECT_EQ(a.GetDimensions(axis), b.GetDimensions(axis));
    EXPECT_NEAR(a.GetSpacing(axis), b.GetSpacing(axis), 1e-5);
    EXPECT_NEAR(a.GetOrigin(axis), b.GetOrigin(axis), 1e-5);
    for (unsigned int i = 0; i < a.GetNumberOfDimensions(); ++i)
      EXPECT_NEAR(a.GetDirection(axis)[i], b.GetDirection(axis)[i], 1e-5) << axis << " " << i;
  }
}

/// The file that the stream keeps the header of.
void decode_to(const std::string& stream, const std::string& path) {
  trivelet::FileSource source(stream);
  trivelet::VolumeDecoder decoder(source, {});
  const std::vector<std::uint8_t>& kept = decoder.info().envelope;
  trivelet::io::VolumeWriter writer(trivelet::io::parse_envelope(kept.data(), kept.size()), path, true);
  std::vector<std::byte> slice(decoder.output().slice_bytes());
  while (decoder.read(slice.data())) writer.write(slice.data(), slice.size());
  writer.finish();
}

TEST(Itk, WhatIsWrittenIsRead) {
  const std::vector<std::vector<std::size_t>> shapes = {{40, 30}, {40, 30, 12}, {20, 10, 6, 5}};
  for (const std::vector<std::size_t>& extents : shapes) {
    const std::vector<std::int16_t> voxels = blob<std::int16_t>(extents);
    const itk::ImageIOBase::Pointer out = writer_of(file("a.tvl"), extents, IOComponentEnum::SHORT);
    ASSERT_TRUE(out.IsNotNull());
    ASSERT_STREQ(out->GetNameOfClass(), "TriveletImageIO");
    out->WriteImageInformation();
    out->Write(voxels.data());
    const itk::ImageIOBase::Pointer in = reader_of(file("a.tvl"));
    ASSERT_TRUE(in.IsNotNull());
    expect_same_place(*in, *out);
    EXPECT_EQ(in->GetComponentType(), IOComponentEnum::SHORT);
    EXPECT_EQ(read<std::int16_t>(*in, whole_of(*in)), voxels);

    in->SetUseStreamedReading(true);
    itk::ImageIORegion part(static_cast<unsigned int>(extents.size()));
    std::vector<std::int16_t> expected;
    for (unsigned int axis = 0; axis < extents.size(); ++axis) {
      part.SetIndex(axis, static_cast<itk::IndexValueType>(extents[axis] / 3));
      part.SetSize(axis, (extents[axis] + 1) / 2);
    }
    part = in->GenerateStreamableReadRegionFromRequestedRegion(part);
    for (std::size_t i = 0; i < voxels.size(); ++i) {
      std::size_t rest = i;
      bool inside = true;
      for (unsigned int axis = 0; axis < extents.size(); ++axis) {
        const std::size_t at = rest % extents[axis], first = static_cast<std::size_t>(part.GetIndex(axis));
        inside = inside && at >= first && at < first + part.GetSize(axis);
        rest /= extents[axis];
      }
      if (inside) expected.push_back(voxels[i]);
    }
    EXPECT_EQ(expected.size(), part.GetNumberOfPixels());
    EXPECT_EQ(read<std::int16_t>(*in, part), expected);
  }
}

TEST(Itk, AsItsOwnReaderOfNifti) {
  const std::vector<std::size_t> extents = {40, 30, 12};
  const std::vector<float> voxels = blob<float>(extents);
  const itk::ImageIOBase::Pointer out = writer_of(file("b.tvl"), extents, IOComponentEnum::FLOAT);
  out->Write(voxels.data());
  decode_to(file("b.tvl"), file("b.nii"));
  const itk::NiftiImageIO::Pointer theirs = itk::NiftiImageIO::New();
  theirs->SetFileName(file("b.nii"));
  theirs->ReadImageInformation();
  const itk::ImageIOBase::Pointer ours = reader_of(file("b.tvl"));
  expect_same_place(*ours, *theirs);
  EXPECT_EQ(read<float>(*ours, whole_of(*ours)), read<float>(*theirs, whole_of(*theirs)));
}

TEST(Itk, ScaleFactorsOfTheFile) {
  trivelet::io::VolumeInfo info;
  info.voxel = {trivelet::VoxelType::kI16, true, 1};
  info.width = 16, info.height = 12, info.slices = 5;
  trivelet::io::Envelope envelope = trivelet::io::make_envelope(info, "nii");
  ASSERT_EQ(envelope.files.size(), 1u);
  const auto put = [&](std::size_t at, float value) {  // scl_slope, scl_inter; big endian as the voxels
    std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    for (std::size_t i = 0; i < 4; ++i, bits <<= 8) envelope.files[0].head.at(at + i) = std::byte(bits >> 24);
  };
  put(112, 0.5f);
  put(116, -1024);
  const std::vector<std::int16_t> voxels = blob<std::int16_t>({16, 12, 5});  // read as big endian: any values
  class Slices final : public trivelet::SliceSource {
   public:
    Slices(const trivelet::VolumeDescription& d, const void* v, std::vector<std::uint8_t> kept)
        : memory_(d, static_cast<const std::byte*>(v)), kept_(std::move(kept)) {}
    const trivelet::VolumeDescription& description() const override { return memory_.description(); }
    void read(std::byte* slice) override { memory_.read(slice); }
    void rewind() override { memory_.rewind(); }
    std::vector<std::uint8_t> envelope() override { return kept_; }

   private:
    trivelet::MemorySlices memory_;
    std::vector<std::uint8_t> kept_;
  } slices(info, voxels.data(), trivelet::io::serialise(envelope));
  trivelet::FileSink sink(file("c.tvl"), true);
  trivelet::encode_volume(slices, {}, sink);
  sink.commit();
  decode_to(file("c.tvl"), file("c.nii"));
  const itk::NiftiImageIO::Pointer theirs = itk::NiftiImageIO::New();
  theirs->SetFileName(file("c.nii"));
  theirs->ReadImageInformation();
  const itk::ImageIOBase::Pointer ours = reader_of(file("c.tvl"));
  EXPECT_EQ(ours->GetComponentType(), theirs->GetComponentType());
  EXPECT_EQ(read<float>(*ours, whole_of(*ours)), read<float>(*theirs, whole_of(*theirs)));
}

TEST(Itk, ColoursAndVectors) {
  for (const unsigned int components : {2u, 3u, 4u}) {
    const std::vector<std::uint8_t> voxels = blob<std::uint8_t>({20, 16, 4}, components);
    const itk::ImageIOBase::Pointer out = writer_of(file("d.tvl"), {20, 16, 4}, IOComponentEnum::UCHAR, components);
    out->Write(voxels.data());
    const itk::ImageIOBase::Pointer in = reader_of(file("d.tvl"));
    ASSERT_TRUE(in.IsNotNull());
    expect_same_place(*in, *out);
    EXPECT_EQ(in->GetNumberOfComponents(), components);
    EXPECT_EQ(in->GetPixelType(), components == 2   ? itk::IOPixelEnum::VECTOR
                                  : components == 3 ? itk::IOPixelEnum::RGB
                                                    : itk::IOPixelEnum::RGBA);
    EXPECT_EQ(read<std::uint8_t>(*in, whole_of(*in)), voxels);
  }
}

TEST(Itk, Compressors) {
  const std::vector<std::size_t> extents = {64, 64, 8};
  const std::vector<std::int32_t> voxels = blob<std::int32_t>(extents);
  const itk::ImageIOBase::Pointer out = writer_of(file("e.tvl"), extents, IOComponentEnum::INT);
  out->Write(voxels.data());
  const std::uintmax_t exact = fs::file_size(file("e.tvl"));
  out->SetCompressor("max_error=3");
  out->Write(voxels.data());
  EXPECT_LT(fs::file_size(file("e.tvl")), exact);
  const itk::ImageIOBase::Pointer in = reader_of(file("e.tvl"));
  const std::vector<std::int32_t> back = read<std::int32_t>(*in, whole_of(*in));
  EXPECT_NE(back, voxels);
  for (std::size_t i = 0; i < back.size(); ++i) ASSERT_LE(std::abs(back[i] - voxels[i]), 3);
  for (const char* wrong : {"BEST", "MAX_ERROR=", "MAX_ERROR=1x", "MAX_ERROR=-1", "QUALITY=101"})
    EXPECT_THROW((out->SetCompressor(wrong), out->Write(voxels.data())), itk::ExceptionObject) << wrong;
  EXPECT_EQ(read<std::int32_t>(*in, whole_of(*in)), back);  // what was refused has left the file alone
}

TEST(Itk, Refused) {
  std::ofstream(file("text.tvl")) << "no stream";
  EXPECT_TRUE(reader_of(file("text.tvl")).IsNull());
  EXPECT_TRUE(reader_of(file("missing.tvl")).IsNull());
  const std::vector<std::uint8_t> voxels = blob<std::uint8_t>({64, 64, 16});
  writer_of(file("f.tvl"), {64, 64, 16}, IOComponentEnum::UCHAR)->Write(voxels.data());
  const itk::ImageIOBase::Pointer in = reader_of(file("f.tvl"));
  in->SetIORegion(whole_of(*in));
  std::fstream damaged(file("f.tvl"), std::ios::in | std::ios::out | std::ios::binary);
  damaged.seekp(static_cast<std::streamoff>(fs::file_size(file("f.tvl")) / 2));
  damaged.write("\1\2\3\4", 4);
  damaged.close();
  std::vector<std::uint8_t> out(voxels.size());
  EXPECT_THROW(in->Read(out.data()), itk::ExceptionObject);
  const itk::ImageIOBase::Pointer five = writer_of(file("g.tvl"), {4, 4, 4}, IOComponentEnum::UCHAR, 5);
  EXPECT_THROW(five->Write(voxels.data()), itk::ExceptionObject);
  EXPECT_FALSE(fs::exists(file("g.tvl")));
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  setenv("ITK_AUTOLOAD_PATH", TRIVELET_ITK_FOLDER, 1);  // before ITK looks for factories
  const int result = RUN_ALL_TESTS();
  fs::remove_all(folder());
  return result;
}
