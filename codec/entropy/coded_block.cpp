// The quantiser steps of subbands (FORMAT.md "Quantiser").
#include "codec/entropy/coded_block.h"

#include "codec/base/stream_header.h"

namespace trivelet {

float subband_step(const ComponentHeader& component, float step, double norm, int resolution) {
  return static_cast<float>(static_cast<double>(step) * static_cast<double>(component.weight) / norm *
                            component.scale_of(resolution));
}

StepTable::StepTable(const SubbandTable& table, float base, const ComponentHeader& component) {
  for (const Subband& s : table.all()) {
    const float v = subband_step(component, base, s.norm, s.resolution);
    step.push_back(v);
    inverse.push_back(1.0f / v);
  }
}

}  // namespace trivelet
