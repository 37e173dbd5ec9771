// The table of volume formats: how a file begins, how its header is read, and how a new header is made. A new format is
// a file with these functions (volume_input.h) and a row here.
#include "io/volume/volume_input.h"
#include "io/volume/volume_io.h"

namespace trivelet::io {

namespace {

VolumeLayout one_dicom_file(const FileToRead& file, const VolumeOptions& options) {
  return dicom_layout({file}, options);
}
template <VolumeLayout (*kLayout)(const FileToRead&)>
VolumeLayout without_options(const FileToRead& file, const VolumeOptions&) {
  return kLayout(file);
}

struct VolumeFormat {
  std::string_view name;
  bool (*begins_like)(std::string_view);
  VolumeLayout (*layout)(const FileToRead&, const VolumeOptions&);
};
// In the order in which files are looked at: MetaImage has no signature but words.
constexpr VolumeFormat kVolumeFormats[] = {
    {"nifti", is_nifti, without_options<nifti_layout>},
    {"nrrd", is_nrrd, without_options<nrrd_layout>},
    {"dicom", is_dicom, one_dicom_file},
    {"metaimage", is_metaimage, without_options<metaimage_layout>},
};

Envelope make_raw(const VolumeInfo& info) {
  Envelope e;
  e.format = "raw";
  e.files.emplace_back();
  e.files[0].voxel_bytes = info.bytes();
  return e;
}

struct NewEnvelope {
  std::string_view extension;
  Envelope (*make)(const VolumeInfo&);
};
constexpr NewEnvelope kNewEnvelopes[] = {
    {"nii", make_nifti}, {"nii.gz", make_nifti}, {"nrrd", make_nrrd}, {"mha", make_metaimage}, {"raw", make_raw},
};

}  // namespace

std::string volume_format_by_content(const FileToRead& file) {
  bool gzip = false;
  const auto input = open_input(file.open, file.path, gzip, file.limits);
  const std::string_view begin = input->ahead(4096);
  for (const VolumeFormat& f : kVolumeFormats)
    if (f.begins_like(begin)) return std::string(f.name);
  return {};
}

VolumeLayout volume_layout(const FileToRead& file, const std::string& format, const VolumeOptions& options) {
  for (const VolumeFormat& f : kVolumeFormats)
    if (f.name == format) return f.layout(file, options);
  if (format == "raw") return raw_layout(file, options);
  fail(ErrorKind::kBadArgument, file.path + ": volumes are nifti, nrrd, metaimage, dicom or raw, not '" + format + "'");
}

Envelope make_envelope(const VolumeInfo& info, const std::string& extension) {
  for (const NewEnvelope& e : kNewEnvelopes)
    if (e.extension == extension) return e.make(info);
  fail(ErrorKind::kUnsupported,
       "volumes can be written as .nii, .nii.gz, .nrrd, .mha and .raw, not '." + extension + "'");
}

bool can_make(const std::string& extension) {
  for (const NewEnvelope& e : kNewEnvelopes)
    if (e.extension == extension) return true;
  return false;
}

}  // namespace trivelet::io
